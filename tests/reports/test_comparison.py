"""Which published scores stand beside which runs: those of the split, or of one drawn alike, and those of people."""

import pytest

from graphbench.catalog.names import card
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.published import PublishedScore, published
from graphbench.reports import comparison
from graphbench.reports.comparison import compared_with, notes_on, reference_scores, same_splits, scores_on_test
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid, overview_rows, published_notes, score_rows

from .conftest import make_record

KINDS = ("clean", "supporting", "irrelevant", "disconnected")


def record(dataset, processor="gat", splits=(), **changes):
    scores = {"test": {"accuracy": 0.5}, **{split: {"accuracy": 0.25} for split in splits}}
    config = {"model": {"processor": processor}, "training": {"steps": 100}}
    fields = {"dataset": dataset, "dataset_version": card(dataset).version, "model": processor, "config": config}
    return make_record(**fields | {"scores": scores, "curves": {}} | changes)


def test_splits_of_the_same_parameters_are_the_same():
    assert same_splits(card("clutrr/rob_supporting"), "test") == ["test", "supporting"]
    assert same_splits(card("clutrr/rob_supporting"), "supporting") == ["supporting", "test"]
    assert same_splits(card("clutrr/rob_clean"), "test") == ["test", "clean"]
    assert same_splits(card("clutrr/gen_23"), "test") == ["test"]  # two and three facts: neither k2 nor k3
    assert same_splits(card("algoreas/mst_easy"), "train") == ["train"]  # val is drawn alike, and not to test on
    assert same_splits(card("clrs_text/bfs"), "test_n16") == ["test_n16"]


@pytest.mark.parametrize(
    ("dataset", "expected"), [("rob_clean", 1.0), ("rob_supporting", 0.98), ("rob_irrelevant", 0.93)]
)
def test_a_published_score_holds_for_a_split_drawn_alike(dataset, expected):
    puzzles = card(dataset)
    (runs,) = aggregate([record(puzzles.id)])
    score = compared_with(runs, puzzles, "test", "accuracy")
    assert (score.value, score.table, score.split) == (expected, 2, dataset.removeprefix("rob_"))
    (row,) = overview_rows(puzzles, [runs])
    assert row.published.startswith(f"{expected:.4f} ±") and row.difference == f"−{expected - 0.5:.4f}"  # noqa: RUF001
    (other,) = aggregate([record(puzzles.id, protocol="official")])
    assert compared_with(other, puzzles, "test", "accuracy") is None
    assert overview_rows(puzzles, [other])[0].difference == "other protocol"


def test_a_split_with_scores_of_its_own_keeps_them(monkeypatch):
    puzzles = card("rob_supporting")
    own = PublishedScore(dataset=puzzles.id, split="test", model="gat", metric="accuracy", value=0.125, paper="P")
    both = [*published(puzzles.id), own]
    monkeypatch.setattr(comparison, "published", lambda dataset: both)
    monkeypatch.setattr("graphbench.records.published.published", lambda dataset: both)
    (runs,) = aggregate([record(puzzles.id)])
    assert compared_with(runs, puzzles, "test", "accuracy").value == 0.125
    assert [score.value for score in scores_on_test(puzzles, puzzles.id) if score.model == "gat"] == [0.125]
    small = own.model_copy(update={"split": "supporting", "study": "main", "value": 0.75})
    both.append(small)
    assert [score.value for score in scores_on_test(puzzles, puzzles.id) if score.model == "gat"] == [0.125]


def test_all_models_of_a_paper_stand_in_the_score_table_whatever_was_trained():
    puzzles = card("rob_supporting")
    rows = [row for row in score_rows(puzzles, aggregate([record(puzzles.id, "gin")])) if row.kind == "published"]
    assert {row.name for row in rows} == {s.model for s in published(puzzles.id)} and len(rows) == 7
    (gat,) = (row for row in rows if row.name == "gat")
    assert gat.values[0] == "0.9800 ± 0.0100"
    assert gat.basis == "CLUTRR, Table 2, 10 seeds; of supporting, drawn as test is"
    trees = score_rows(card("algoreas/mst_medium"), aggregate([make_record()]))
    assert {row.basis for row in trees if row.kind == "published"} == {"GraphBench, Table 16, 3 seeds"}


def test_notes_are_of_tables_with_a_number_on_the_page():
    puzzles = card("rob_supporting")
    stranger = published_notes(puzzles, aggregate([record(puzzles.id, "gin", KINDS)]))
    assert len(stranger) == 1 and stranger[0].startswith("CLUTRR, Table 2: k = 2 and 3")
    (both,) = published_notes(puzzles, aggregate([record(puzzles.id, "gat", KINDS)]))
    assert both.startswith("CLUTRR, Table 2; CLUTRR, Table 3: k = 2 and 3, crowd-sourced")  # never Table 4
    puzzles = card("gen_23")
    assert published_notes(puzzles, aggregate([record(puzzles.id, "gat")])) == []
    (people,) = published_notes(puzzles, aggregate([record(puzzles.id, "gat", ("k2",))]))
    assert people.startswith("CLUTRR, Table 5: People")
    assert notes_on([score for score in published("algoreas/mst_easy") if not score.note]) == []


def test_people_stand_beside_every_model():
    puzzles = card("gen_23")
    people = reference_scores(puzzles.id, "accuracy", puzzles.ood)
    assert {name: list(scores) for name, scores in people.items()} == {
        name: ["k2", "k3", "k4", "k5", "k6"] for name in ("human_time_limited", "human_unlimited_time")
    }
    results = aggregate([record(puzzles.id, "gin", puzzles.ood), record(puzzles.id, "gat", ("k2",), seed=1)])
    grid = ood_grid(puzzles, results)
    column = grid.heads.index("human time limited, published")
    assert [row[column] for row in grid.rows] == [
        *("–", "0.8480", "0.7730", "0.4770", "0.4240", "0.4060", "–", "–", "–", "–")  # noqa: RUF001
    ]
    assert reference_scores(puzzles.id, "macro_f1", puzzles.ood) == {}
    assert not any(row.name.startswith("human") for row in score_rows(puzzles, results))


def test_a_report_of_other_models_has_numbers_and_no_idle_note(tmp_path):
    small = record("clutrr/rob_supporting", "gin", KINDS, budget=Budget(small=True))
    (page,) = build_report([small], tmp_path / "page.md")
    text = page.read_text(encoding="utf-8")
    assert "| mac | published | 0.6500 ± 0.0400 |" in text and "Table 2: " in text
    assert "Table 3" not in text and "Table 4" not in text
