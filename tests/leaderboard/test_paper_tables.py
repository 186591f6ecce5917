"""Tables for papers: every number is that of the leaderboard, and what a test does not separate is marked."""

import csv
import io
import re
from statistics import mean, stdev
from typing import get_args

import pytest

from graphbench.core.errors import ArgumentError, ResultError
from graphbench.leaderboard.boards import tables_of
from graphbench.leaderboard.model import Unranked
from graphbench.leaderboard.paper_tables import _WHY, CSV_COLUMNS, FORMATS, paper_table

from .conftest import bootstrapped, make_record

MST, BRIDGES = "algoreas/mst_easy", "algoreas/bridges_easy"
SCORES = {
    ("best", MST): (0.90, 0.91, 0.905),
    ("near", MST): (0.90, 0.93, 0.87),
    ("far_off", MST): (0.50, 0.51, 0.505),
    ("single", MST): (0.95,),
    ("best", BRIDGES): (0.70, 0.71, 0.705),
}


@pytest.fixture
def records():
    """Records of four models on one dataset, and of one of them on another."""
    return [
        bootstrapped(make_record(seed, dataset=dataset, dataset_version=1, model=model, scores={"test": {"f1": score}}))
        for (model, dataset), scores in SCORES.items()
        for seed, score in enumerate(scores)
    ]


def rows_of(text):
    """Return name -> cells of a table in Markdown."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {cells[0].replace("\\", ""): cells[1:] for cells in lines[2:]}


def test_cells_are_mean_and_deviation_with_bold_and_marks(records):
    rows = rows_of(paper_table(records, "markdown"))
    head = paper_table(records, "markdown").splitlines()[0]
    assert "algoreas/bridges_easy (f1 ↑)" in head and "algoreas/mst_easy (f1 ↑)" in head
    assert list(rows)[:4] == [
        "best",
        "single",
        "near",
        "far_off",
    ]  # models with all columns first, then by their places
    bridges, mst = rows["best"]
    scores = SCORES["best", MST]
    assert bridges == "**0.7050** ± 0.0050‡" and mst == f"{mean(scores):.4f} ± {stdev(scores):.4f}"
    assert rows["single"] == ["–", "**0.9500**‡"]  # noqa: RUF001
    assert rows["near"][1].endswith("†") and not rows["far_off"][1].endswith(("†", "‡"))
    assert rows["gin (published)"][1].startswith("0.69") and "structural (rule)" in rows


def test_the_interval_is_that_of_the_board(records):
    board = next(b for b in tables_of(records).boards if (b.dataset, b.budget_class) == (MST, "open"))
    low, high = next((r.interval.low, r.interval.high) for r in board.rows if r.label == "best")
    assert f"[{low:.4f}, {high:.4f}]" in rows_of(paper_table(records, "markdown", intervals=True))["best"][1]
    assert "[" not in rows_of(paper_table(records, "markdown"))["best"][1]


def test_what_an_interval_leaves_out_is_told_where_one_is_shown(records):
    text = paper_table(records, "latex", intervals=True)
    assert "leaves the draw of the test samples out" in text and "no width" not in text
    assert "intervals" not in paper_table(records, "latex")
    facts = {"dataset": MST, "dataset_version": 1, "model": "perfect", "replicates": {"test": (1.0,) * 200}}
    perfect = [make_record(seed, **facts, scores={"test": {"f1": 1.0}}) for seed in range(3)]
    assert "an interval of no width" in paper_table(perfect, "markdown", intervals=True)


def test_all_forms_have_the_same_names(records):
    """Two configurations of one name on one dataset."""
    facts = {"dataset": MST, "dataset_version": 1, "model": "best", "config": {"model": {"layers": 9}}}
    other = [bootstrapped(make_record(seed, **facts, scores={"test": {"f1": 0.3}})) for seed in range(3)]
    text = paper_table([*records, *other], "markdown")
    names = {row["model"] for row in csv.DictReader(io.StringIO(paper_table([*records, *other], "csv")))}
    assert sum(name.startswith("best") for name in names) == 2 and names == set(rows_of(text))


def test_latex_is_a_whole_table_with_escaped_names(records):
    text = paper_table(records, "latex", intervals=True)
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 1
    assert all(line.count(" & ") == 2 for line in lines) and text.isascii()
    assert r"far\_off" in text and r"mst\_easy (f1 $\uparrow$)" in text
    assert len(re.findall(r"\\textbf\{", text)) == 2 and r"$^{\dagger}$" in text and r"$^{\ddagger}$" in text
    evil = [record.model_copy(update={"model": "a_%$#&{}~^\\"}) for record in records]
    name = next(line for line in paper_table(evil, "latex").splitlines() if line.startswith("a"))
    assert name.startswith(r"a\_\%\$\#\&\{\}\textasciitilde{}\textasciicircum{}\textbackslash{} & ")


def test_csv_has_every_number(records):
    rows = list(csv.DictReader(io.StringIO(paper_table(records, "csv"))))
    assert tuple(rows[0]) == CSV_COLUMNS
    row = next(r for r in rows if (r["dataset"], r["model"]) == (MST, "far_off"))
    assert float(row["mean"]) == pytest.approx(0.505) and float(row["deviation"]) == pytest.approx(0.005)
    assert (row["seeds"], row["best"], row["separated_from_best"], row["class"]) == ("3", "False", "True", "minutes")
    assert float(row["low"]) < 0.505 < float(row["high"])
    assert next(r for r in rows if r["model"] == "single")["best"] == "True"


def test_splits_models_and_classes_are_chosen(records):
    sizes = [
        make_record(0, model="sized", dataset=MST, dataset_version=1, scores={"test": {"f1": 0.6}, "n192": {"f1": 0.5}})
    ]
    text = paper_table(sizes, "markdown", splits=("test", "n*"))
    assert text.splitlines()[0] == "| model | test (f1 ↑) | n192 (f1 ↑) |"
    assert "single" not in paper_table(records, "markdown", models=("best", "near"))
    slow = [r.model_copy(update={"cpu_seconds": 9000.0}) for r in records if r.model == "far_off"]
    assert "far_off" not in rows_of(paper_table([*records[:3], *slow], "markdown", budget_class="minutes"))


def test_what_gives_no_table_is_an_error(records):
    with pytest.raises(ArgumentError, match=f"'word'; choose from {', '.join(FORMATS)}"):
        paper_table(records, "word")
    with pytest.raises(ResultError, match="no record has a score"):
        paper_table(records, "latex", splits="n512")


def scored_on(graphs, model, seed=0):
    scored = {"graphs_scored": {"test": graphs}, "scores": {"test": {"f1": 0.8}}}
    return bootstrapped(make_record(seed, dataset=MST, dataset_version=1, model=model, **scored))


def test_a_model_on_other_samples_is_named(records):
    text = paper_table([*records, scored_on(400, "mine")], "markdown")
    assert "mine" not in rows_of(text)
    assert "left out: mine on algoreas/mst_easy test, scored on 400 samples" in text


def test_a_part_of_a_split_is_told_and_stands_beside_no_printed_score():
    text = paper_table([scored_on(400, "mine")], "latex")
    assert "scored on a part, 400 samples" in text and "(published)" not in text
    (board,) = (board for board in tables_of([scored_on(400, "mine")]).boards if board.budget_class == "open")
    printed = [reference for reference in board.references if reference.kind == "published"]
    assert printed and not any(reference.comparable for reference in printed)
    assert "scored on 400 of 10,000 graphs" in printed[0].basis


def test_what_was_not_tested_says_why(records):
    assert set(_WHY) == set(get_args(Unranked))
    text = paper_table(records, "markdown")
    assert "not tested: there is no other tested model, or it lacks one of the seeds 0, 1 and 2" in text
    assert "there is no other" not in paper_table(records, "markdown", models=["near", "single", "far_off"])


def test_a_copy_of_a_run_is_named(records):
    copy = next(record for record in records if record.model == "single").model_copy(update={"seed": 4})
    text = paper_table([*records, copy], "markdown", models="single")
    assert f"single on {MST} test: 1 run with the scores of another seed (seed 4) left out" in text


def test_equal_means_are_all_bold():
    rows = rows_of(paper_table([scored_on(10000, "one"), scored_on(10000, "two")], "markdown"))
    assert all(rows[name][0].startswith("**0.8000**") for name in ("one", "two"))
