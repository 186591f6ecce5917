import re
from pathlib import Path

import pytest

import graphbench
from graphbench.core.errors import ResultError
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.published import published
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid, score_rows

from ..snapshots import require_snapshot
from .conftest import make_record
from .parsed_page import ParsedPage

ID = "algoreas/mst_medium"


def records():
    full = [make_record(seed, f1=value) for seed, value in enumerate((0.7, 0.8))]
    small = make_record(0, f1=0.45, model="gin_small", budget=Budget(small=True, label="5 steps <tiny>"))
    return [*full, small.model_copy(update={"notes": "stopped | early"})]


@pytest.fixture
def pages(tmp_path, card):
    paths = build_report(records(), tmp_path / "out", cards={ID: card})
    return {path.suffix: path for path in paths}


def parsed(path):
    return ParsedPage(path.read_text(encoding="utf-8"))


def test_the_page_is_self_contained(pages):
    checker = parsed(pages[".html"])
    assert checker.addresses and all(address.startswith("#") for address in checker.addresses)
    assert {address[1:] for address in checker.addresses} <= set(checker.ids)
    text = pages[".html"].read_text(encoding="utf-8")
    assert not re.search(r"@import|url\((?!#)|<script|<link|<img", text)
    assert "prefers-color-scheme: dark" in text
    assert text.count("<svg") == 2  # scores against size, learning curves


def test_the_pages_are_those_of_the_snapshots(pages):
    require_snapshot("report.md", pages[".md"].read_text(encoding="utf-8"))
    page = parsed(pages[".html"])
    require_snapshot("report-html.txt", "\n".join([*page.rows, ""]))


def test_the_overview_sets_numbers_side_by_side(pages):
    rows = [row for row in parsed(pages[".html"]).rows if "seed" in row and "steps" in row]
    assert [row.split("|")[:1] for row in rows][:2] == [[ID], ["gin_small"]]


def test_majority_stands_once_in_the_score_table(pages):
    assert not any(row.startswith("majority") for row in parsed(pages[".html"]).rows)


def test_text_is_escaped(pages):
    text = pages[".html"].read_text(encoding="utf-8")
    assert "Which edges are &lt;special&gt; &amp; few." in text
    assert "<tiny>" not in text


def test_the_markdown_and_its_figures(pages):
    text = pages[".md"].read_text(encoding="utf-8")
    figures = re.findall(r"!\[[^\]]+\]\((figures/[^)]+)\)", text)
    assert figures == ["figures/algoreas-mst_medium-ood.png", "figures/algoreas-mst_medium-curves.png"]
    assert all((pages[".md"].parent / name).read_bytes().startswith(b"\x89PNG") for name in figures)


def test_every_markdown_table_is_well_formed(pages):
    text = pages[".md"].read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) == 6
    for block in blocks:
        lines = block.replace(r"\|", "").splitlines()
        assert len(lines) > 2 and lines[1].startswith("| ---")
        assert len({line.count("|") for line in lines}) == 1


def test_all_sections_are_there(pages):
    text = pages[".md"].read_text(encoding="utf-8")
    headings = ["Splits", "Scores on the test split", "Out of distribution", "Learning curves", "Cost", "Provenance"]
    assert re.findall("^### (.*)$", text, re.MULTILINE) == headings


def test_empty_parts_are_left_out(tmp_path, card):
    bare = make_record(curves={}, scores={"test": {"f1": 0.5}})
    (page,) = build_report([bare], tmp_path / "page.html", cards={ID: card})
    text = page.read_text(encoding="utf-8")
    assert "Out of distribution" not in text and "Learning curves" not in text and "<svg" not in text
    assert "small run" not in text.split("</style>")[1]


def test_reference_solvers_stand_between_trivial_ones_and_ours(tmp_path, card):
    scores = {split: {"exact_search": {"f1": value}} for split, value in (("test", 0.99), ("n192", 0.98))}
    solved = card.model_copy(update={"measured": card.measured.model_copy(update={"solvers": scores})})
    rows = [(row.name, row.kind, row.values) for row in score_rows(solved, aggregate(records()))]
    assert ("exact search", "solver", ("0.9900", "–", "–")) in rows  # noqa: RUF001
    kinds = [kind for _, kind, _ in rows]
    assert kinds.index("trivial") < kinds.index("solver") < kinds.index("ours")
    grid = ood_grid(solved, aggregate(records()))
    column = grid.heads.index("exact search (solver)")
    assert [row[column] for row in grid.rows] == ["0.9900", "0.9800", "–"]  # noqa: RUF001
    for path in build_report(records(), tmp_path, cards={ID: solved}):
        assert "A solver is a reference program with knowledge of the task" in path.read_text(encoding="utf-8")
    for path in build_report(records(), tmp_path, cards={ID: card}):
        assert "solver" not in path.read_text(encoding="utf-8")


def test_scores_of_older_data_are_not_compared(tmp_path, card):
    (page,) = build_report([make_record(dataset_version=1)], tmp_path / "page.md", cards={ID: card})
    text = page.read_text(encoding="utf-8")
    assert "| old data, version 1 |" in text
    assert "version 1 (the card is at 2)" in text


@pytest.mark.thorough
def test_runs_on_several_draws_are_one_row_with_a_note(tmp_path, card):
    runs = [
        make_record(seed, f1=f1, data_seed=k, data_fingerprint=f"v2-ab12cd34ef56-draw{k}")
        for seed, k, f1 in ((0, 1, 0.7), (0, 2, 0.8), (1, 3, 0.9))
    ]
    text = build_report(runs, tmp_path / "page.md", cards={ID: card})[0].read_text(encoding="utf-8")
    assert "| gin | 0.8000 ± 0.1000 | 3 runs (2 seeds, 3 data seeds), 100 steps |" in text
    assert "| random **[other samples]** | trivial |" in text and "| on 100 graphs, data seed 0 |" in text
    assert "| gin | ours | 0.8000 ± 0.1000 | 0.9000 ± 0.0000 | 0.7900 ± 0.1000 | 3 runs (2 seeds, 3 data seeds)" in text
    note = (
        "- gin: mean over 3 runs with 2 training seeds (0, 1) and 3 data seeds (1, 2, 3); standard error of f1 on test"
    )
    assert f"{note}: 0.0577\n- Statistics of splits, and scores of trivial" in text
    assert "; 3 data seeds (1, 2, 3); v2-ab12cd34ef56-draw3; test 01234567 |" in text
    unequal = [*runs, make_record(2, f1=0.6, data_seed=3, data_fingerprint="v2-ab12cd34ef56-draw3")]
    text = build_report(unequal, tmp_path / "unequal.md", cards={ID: card})[0].read_text(encoding="utf-8")
    assert "| gin, data seed 1 | 0.7000 | 1 seed of data seed 1, 100 steps |" in text
    assert "| gin, data seed 3 | 0.7500 ± 0.2121 | 2 seeds of data seed 3, 100 steps |" in text
    text = build_report(runs[:1], tmp_path / "one.md", cards={ID: card})[0].read_text(encoding="utf-8")
    assert "| 1 seed of data seed 1, 100 steps |" in text
    assert "- gin: mean over 1 run with 1 training seed (0) and 1 data seed (1)\n" in text
    text = build_report(records(), tmp_path / "none.md", cards={ID: card})[0].read_text(encoding="utf-8")
    assert "data seed" not in text


def test_the_catalogues_cards_are_used_by_default(tmp_path):
    record = make_record(dataset="algoreas/mst_easy", dataset_version=1)
    (page,) = build_report([record], tmp_path, formats=["md"])
    assert page == tmp_path / "report.md"
    assert "algoreas/mst_easy: Minimum spanning tree" in page.read_text(encoding="utf-8")
    assert "| 0.6906 ± 0.1655 |" in page.read_text(encoding="utf-8")


def test_errors(tmp_path, card):
    with pytest.raises(ResultError, match="no run records to report"):
        build_report([], tmp_path)
    with pytest.raises(ResultError, match=r"unknown report format \['pdf'\]"):
        build_report(records(), tmp_path, formats=["pdf"], cards={ID: card})
    with pytest.raises(ResultError, match="all records are of datasets that have no card: algoreas/gone; import"):
        build_report([make_record(dataset="algoreas/gone")], tmp_path)
    assert not list(tmp_path.glob("report*"))


def test_records_of_removed_datasets_are_left_out_and_named(tmp_path, card):
    removed = make_record(dataset="mine/go|ne")
    pages = build_report([*records(), removed], tmp_path, cards={ID: card})
    markdown, html = (page.read_text(encoding="utf-8") for page in pages)
    assert "Left out, because no card is known for their datasets: mine/go\\|ne." in markdown
    assert "Left out, because no card is known for their datasets: mine/go|ne." in html
    assert all("Left out" not in page.read_text() for page in build_report(records(), tmp_path, cards={ID: card}))


def test_outputs_that_are_no_report(tmp_path, card):
    for name in ("one.pdf", "one.txt", "one.HTM"):
        with pytest.raises(ResultError, match=r"\.md or \.html"):
            build_report(records(), tmp_path / name, cards={ID: card})
        assert not (tmp_path / name).exists()
    (tmp_path / "folder.pdf").mkdir()
    for name in ("folder.pdf", "run-1.5"):
        (path,) = build_report(records(), tmp_path / name, ["md"], cards={ID: card})
        assert path == tmp_path / name / "report.md"


def test_outputs_that_cannot_be_written(tmp_path, card):
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "deeper", Path("/proc/foo"), Path("/proc/foo.md")):
        with pytest.raises(ResultError, match=f"cannot write the report {output}.*(;|or) choose another output"):
            build_report(records(), output, cards={ID: card})
    assert (tmp_path / "file").read_text() == "mine"


def test_runs_on_a_task_stand_beside_what_is_expected_of_that_task(tmp_path):
    scores = {"test": {"set_size": 17.5, "ratio": 0.85}, "large": {"set_size": 35.0, "ratio": 0.8125}}
    record = make_record(0, dataset="co/rb_small:mis", dataset_version=1, scores=scores)
    text = build_report([record], tmp_path / "page.md")[0].read_text()
    card = graphbench.card("co/rb_small:mis")
    floor = card.floor["test"]
    (solver,) = (score for score in published(card.address) if score.model == "solver")
    assert "set_size ↑" in text and "mae" not in text and "17.5" in text
    assert f"{floor['greedy']['set_size']:.4g}"[:4] in text and f"{floor['random']['set_size']:.4g}"[:4] in text
    (transfer,) = (line for line in text.splitlines() if line.startswith("| large | 1021.43 |"))
    assert "| split (ratio ↑) | nodes | gin |" in text and transfer.startswith("| large | 1021.43 | 0.8125 |")
    assert f"| solver | published | {solver.value:.4f} ± {solver.std:.4f} |" in text and "Table 13" in text
