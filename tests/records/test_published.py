"""The published numbers: written here by hand once more, counted, and read from the paper where it is at hand."""

import re
from pathlib import Path

import pytest

from graphbench.core.errors import ResultError
from graphbench.evaluation.metrics import METRICS
from graphbench.records.published import published, published_score, read_published

FAMILIES = {
    "MST": "mst",
    "Bridges": "bridges",
    "Steiner Trees": "steiner_tree",
    "Max Clique": "max_clique",
    "Max Matching": "max_matching",
    "Topological Sorting": "topological_sort",
    "Flow": "flow",
}
LEVELS = ("easy", "medium", "hard")
PAPER = Path(__file__).resolve().parents[3] / "shared" / "papers" / "graphbench.txt"


def all_scores():
    return [s for family in FAMILIES.values() for level in LEVELS for s in published(f"algoreas/{family}_{level}")]


@pytest.mark.parametrize(
    ("dataset", "model", "metric", "value", "std", "table"),
    [
        ("mst_easy", "gin", "f1", 0.6906, 0.1655, 16),
        ("mst_hard", "gt", "f1", 0.8421, 0.0115, 16),
        ("bridges_hard", "gin", "f1", 0.968, 0.0178, 16),
        ("steiner_tree_easy", "gt", "f1", 0.6691, 0.0112, 16),
        ("steiner_tree_hard", "gin", "f1", 0.5516, 0.2368, 16),
        ("max_clique_medium", "gt", "f1", 0.4859, 0.0017, 16),
        ("max_matching_medium", "gt", "f1", 0.6915, 0.009, 16),
        ("topological_sort_easy", "gt", "mae", 0.116, 0.0058, 17),
        ("topological_sort_hard", "gin", "mae", 0.1301, 0.0046, 17),
        ("flow_easy", "gt", "mae", 4.2737, 0.0646, 17),
        ("flow_medium", "gin", "mae", 9.5960, 0.1707, 17),
    ],
)
def test_main_tables(dataset, model, metric, value, std, table):
    score = published_score(f"algoreas/{dataset}", "test", model, metric)
    assert (score.value, score.std, score.seeds, score.table) == (value, std, 3, table)
    assert score.reference == f"GraphBench, Table {table}"


@pytest.mark.parametrize(
    ("dataset", "split", "model", "metric", "value"),
    [
        ("mst_medium", "test", "gin", "f1", 0.6103),
        ("mst_medium", "n512", "gt", "f1", 0.8817),
        ("bridges_medium", "n192", "gin", "f1", 0.9213),
        ("max_clique_medium", "n384", "gin", "f1", 0.2926),
        ("max_matching_medium", "n384", "gt", "f1", 0.5770),
        ("topological_sort_medium", "n192", "gin", "mae", 0.181),
        ("topological_sort_medium", "n512", "gt", "mae", 0.2071),
    ],
)
def test_size_table(dataset, split, model, metric, value):
    score = published_score(f"algoreas/{dataset}", split, model, metric, study="ood")
    assert (score.value, score.std, score.seeds, score.table, score.study) == (value, None, 1, 18, "ood")


def test_out_of_time_is_null_with_a_note():
    gaps = [s for s in all_scores() if s.value is None]
    assert {(s.dataset, s.split, s.model) for s in gaps} == {
        ("algoreas/max_matching_medium", "n512", "gin"),
        ("algoreas/max_matching_medium", "n512", "gt"),
    }
    assert all("OOT" in s.note for s in gaps)


def test_counts():
    tables = [s.table for s in all_scores()]
    assert {table: tables.count(table) for table in set(tables)} == {16: 30, 17: 12, 18: 60}
    assert {s.model for s in all_scores()} == {"gin", "gt"}
    assert all(s.metric in METRICS for s in all_scores())
    keys = [(s.dataset, s.split, s.model, s.study) for s in all_scores()]
    assert len(keys) == len(set(keys))


def test_unpublished():
    assert published("algoreas/nothing") == []
    assert published_score("algoreas/mst_easy", "n192", "gin", "f1") is None
    assert published_score("algoreas/mst_easy", "test", "gin", "f1", study="ood").table == 16  # the only one printed


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not beside the repository")
def test_every_number_stands_in_the_paper():
    text = PAPER.read_text(encoding="utf-8")
    family = level = None
    seen = 0
    for line in text[text.index("Table 16: Resulting") : text.index("Table 18: Size")].splitlines():
        match = re.fullmatch(r"(.*?)(GIN|GT) ([\d.]+)±\\pm ([\d.]+)", line)
        if not match:
            continue
        words = match[1].split()
        if words and words[-1] in LEVELS:
            level = words.pop()
        family = FAMILIES[" ".join(words)] if words else family
        metric = "mae" if family in ("topological_sort", "flow") else "f1"
        score = published_score(f"algoreas/{family}_{level}", "test", match[2].lower(), metric)
        assert (score.value, score.std) == (float(match[3]), float(match[4])), line
        seen += 1
    for line in text[text.index("Table 18: Size") :].splitlines()[2:14]:
        match = re.fullmatch(r"(?:(.*) \((?:MAE|F1)\) )?(GIN|GT) (.*)", line)
        family = FAMILIES[match[1]] if match[1] else family
        metric = "mae" if family == "topological_sort" else "f1"
        for split, cell in zip(("test", "n192", "n256", "n384", "n512"), match[3].split(), strict=True):
            score = published_score(f"algoreas/{family}_medium", split, match[2].lower(), metric, study="ood")
            assert score.value == (None if cell == "OOT" else float(cell)), line
            seen += 1
    assert seen == 30 + 12 + 60


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{metric: f1, split: test, scores: {d: {gin: [0.5]}}}", "has 1 cells, expected 2"),
        ("{metric: f1, splits: [a, b], scores: {d: {gin: [0.5]}}}", "has 1 cells, expected 2"),
        ("{metric: f1, scores: {}}", "give either 'split'"),
        ("{metric: f1, split: test, scores: {}, colour: red}", "colour"),
        ("{metric: f1, split: test, scores: {d: {gin: [x, 0.1]}}}", "tables.0.scores.d.gin"),
    ],
)
def test_malformed_files_are_refused(tmp_path, table, message):
    path = tmp_path / "x.yaml"
    path.write_text(f"paper: P\ndomain: d\ntables:\n  - {table}\n", encoding="utf-8")
    with pytest.raises(ResultError, match=re.escape(message)):
        read_published(path)


def test_tables_say_of_which_datasets_scores_are_not_comparable(tmp_path):
    text = """
paper: "A: paper"
domain: toys
tables:
  - metric: f1
    split: test
    not_comparable: {"a_*": other labels}
    scores: {a_1: {gin: [0.5, null]}, b: {gin: [0.4, null]}}
"""
    (tmp_path / "toys.yaml").write_text(text)
    assert [score.not_comparable for score in read_published(tmp_path / "toys.yaml")] == ["other labels", ""]
    (tmp_path / "wrong.yaml").write_text(text.replace('"a_*"', "c"))
    with pytest.raises(ResultError, match="not_comparable names 'c'"):
        read_published(tmp_path / "wrong.yaml")


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [("algoreas/mst_easy", False), ("algoreas/max_clique_easy", True), ("sat/small:kissat", True)],
)
def test_other_labels_are_marked(dataset, expected):
    assert {bool(score.not_comparable) for score in published(dataset)} == {expected}
