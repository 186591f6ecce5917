"""References stand beside models only where both are of the same samples; every other score says on which it is."""

from __future__ import annotations

import json

import pytest

import graphbench
from graphbench.catalog.names import catalog
from graphbench.catalog.resources import baselines_dir
from graphbench.catalog.sections import Measured, MeasuredScores, MeasuredTask
from graphbench.evaluation.references import SampleSet, measured_references, references_on, samples_text, whole_split
from graphbench.evaluation.trivial import best_floor
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.model import to_json
from graphbench.leaderboard.texts import away_grid
from graphbench.records.aggregates import aggregate
from graphbench.records.files import load_records
from graphbench.reports.beside import beside, samples_of, shared_references
from graphbench.reports.ood import plot_ood
from graphbench.reports.parts import output_grid
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid, overview_rows, score_rows

from .conftest import make_record

SELECT = "sat/small:select"
ALL = [card.with_task(task) for card in catalog().cards.values() for task in card.tasks] + [
    card for card in catalog().cards.values() if not card.tasks
]


def solver_card(**changes):
    """The card of the solver selection, whose virtual best has PAR10 5 on the first 64 test formulas."""
    task = {
        "floor": {"test": {"single_best": {"par10": 6.0, "closed_gap": 0.0}}},
        "solvers": {"test": {"virtual_best": {"par10": 5.0, "closed_gap": 1.0}}},
        "scored_samples": {"test": 64},
    } | changes
    card = graphbench.card(SELECT)
    return card.model_copy(update={"measured": Measured(version=card.version, tasks={"select": MeasuredTask(**task)})})


def selector(count, seed=0, **changes):
    scores = {"test": {"par10": 4.2, "closed_gap": 0.5}}
    about = {"dataset": SELECT, "dataset_version": 1, "scores": scores, "curves": {}, "data_hashes": {}}
    return make_record(seed, model="rf", graphs_scored={"test": count}, **about | changes)


@pytest.mark.parametrize("known", [True, False])
def test_a_virtual_best_on_other_formulas_is_set_apart_everywhere(tmp_path, known):
    """Today it stands above the models on 364 formulas, and every model seems to beat it."""
    card = solver_card(**({} if known else {"scored_samples": {}}))
    results = aggregate([selector(364)])
    rows = score_rows(card, results)
    assert rows[0].kind == "ours" and rows[0].caveat == ""
    apart = [row for row in rows if row.kind in ("trivial", "solver")]
    assert apart == rows[-2:] and all(row.caveat == "other samples" for row in apart)
    said = "on 64 instances" if known else "on an unknown number of instances"
    assert all(said in row.basis for row in apart)
    assert overview_rows(card, results)[0].trivial.startswith("–") and said in overview_rows(card, results)[0].trivial  # noqa: RUF001
    (page,) = build_report([selector(364)], tmp_path, ["html"], {SELECT: card})
    assert page.read_text(encoding="utf-8").count("other samples") >= 2
    boards = leaderboard_of([selector(364)], {SELECT: card}).boards
    assert {board.budget_class for board in boards} >= {"minutes", "open"}
    for board in boards:
        measured = [reference for reference in board.references if reference.kind != "published"]
        assert measured and all(r.apart and not r.comparable and said[3:] in r.basis for r in measured)
        assert board.anchors is None and board.references[-len(measured) :] == tuple(measured)
    content = json.loads(to_json(leaderboard_of([selector(364)], {SELECT: card})))
    shown = [r for r in content["boards"][0]["references"] if r["kind"] != "published"]
    assert {r["samples"] for r in shown} == {64 if known else None}


def test_on_the_same_formulas_it_stands_with_the_models():
    card, results = solver_card(), aggregate([selector(64)])
    rows = score_rows(card, results)
    assert [row.kind for row in rows[:3]] == ["trivial", "solver", "ours"] and not any(
        "other" in row.caveat for row in rows
    )
    boards = leaderboard_of([selector(64)], {SELECT: card}).boards
    assert {board.budget_class for board in boards} >= {"minutes", "open"}
    for board in boards:
        assert board.anchors == (0.0, 1.0) and not any(reference.apart for reference in board.references)


def test_scores_on_the_first_samples_are_taken_where_models_were_scored_on_these():
    few = MeasuredScores(floor={"test": {"single_best": {"closed_gap": 0.1}}}, scored_samples={"test": 32})
    card = solver_card(scores_on_first={32: few})
    assert [found.samples.count for found in measured_references(card, "test")] == [64, 32]
    assert best_floor(card, "test", "closed_gap", SampleSet(1, 0, 32)) == ("single_best", 0.1)
    assert best_floor(card, "test", "closed_gap", SampleSet(1, 0, 33)) is None
    assert [row.values[0] for row in score_rows(card, aggregate([selector(32)]))[:2]] == ["0.1000", "0.5000"]


@pytest.mark.parametrize("changes", [{"data_seed": 1}, {"dataset_version": 7}, {"graphs_scored": {"test": 63}}])
def test_runs_of_other_data_say_so_beside_runs_of_the_references_data(changes):
    card = solver_card()
    results = aggregate([selector(64), _other(changes)])
    rows = {row.name: row for row in score_rows(card, results)}
    assert rows["virtual best"].caveat == rows["rf"].caveat == ""
    assert rows["other"].caveat == "other samples" and "; on 6" in rows["other"].basis
    assert shared_references(card, "test", results) is None


def _other(changes):
    record = selector(64)
    return record.model_copy(update={"model": "other", **changes})


def test_other_content_is_another_set_where_both_hashes_are_known():
    card = solver_card(scored_hashes={"test": "aa"})
    assert references_on(card, "test", SampleSet(1, 0, 64, "aa")) and references_on(card, "test", SampleSet(1, 0, 64))
    assert references_on(card, "test", SampleSet(1, 0, 64, "bb")) is None
    assert samples_text(SampleSet(1, 0, 64, "aa"), "times", SampleSet(1, 0, 64, "bb")) == "64 times, other content"


def test_cells_of_tables_over_splits_and_outputs_say_it(card):
    scored = {"test": 50, "n192": 10}
    results = aggregate([make_record(graphs_scored=scored)])
    cells = {row[0]: row for row in ood_grid(card, results).rows}
    assert cells["test"][-1] == "0.4000 [on 100 graphs]" and cells["n192"][-1] == "0.4000"
    lines = {str(line.get_label()): list(line.get_ydata()) for line in plot_ood(results, card).axes[0].get_lines()}
    assert lines["best trivial"] == [0.4]
    own = graphbench.card("circuits/converters_5:both")
    scores = {"test": {"rse": 0.2, "rse_ratio": 0.3}}
    about = {"dataset": own.address, "dataset_version": 1, "scores": scores, "graphs_scored": {"test": 7}}
    grid = output_grid(own, aggregate([make_record(**about)]))
    trivial = next(row for row in grid.rows if row[1] == "trivial")
    assert trivial[2].endswith("[on 14,600 graphs]")


def test_a_record_that_does_not_say_how_many_is_of_the_whole_split(card):
    assert samples_of(make_record(), card, "test").is_same(whole_split(card, "test"))


@pytest.mark.parametrize("card", ALL, ids=lambda card: card.address)
def test_every_committed_score_says_on_how_many_samples_it_was_measured(card):
    if card.measured is None:
        return
    measured = card.measured_scores
    for name, block in [(None, measured), *measured.scores_on_first.items()]:
        assert set(block.scored_samples) == {*block.floor, *block.solvers}, name
        for split, count in block.scored_samples.items():
            base = split if split in card.all_splits else "test"
            assert 0 < count <= min(card.split(base).count, name or count)
            if name is not None and split in card.all_splits:
                assert count == name < measured.scored_samples[split]


def test_committed_records_of_selectors_stand_beside_the_virtual_best_of_the_same_formulas():
    """The virtual best is the best possible choice, so no model on its formulas is better."""
    records = load_records(SELECT, baselines_dir() / "results")
    card, board = graphbench.card(SELECT), leaderboard_of(records)
    ours = aggregate(records)
    best = beside(card, "test", ours)
    assert not best.references_stand_apart and best.references.samples.count == 364 == card.split("test").count
    for runs in ours:
        assert runs.score("test", "par10").mean >= best.references.solvers["virtual_best"]["par10"]
    assert all(b.anchors is not None for b in board.boards if b.split == "test" and b.main)


def test_no_committed_table_mixes_counts_silently(committed_board):
    seen = 0
    for table in committed_board.boards:
        for reference in table.references:
            if reference.kind == "published":
                continue
            spec = catalog().card(table.dataset.partition("@")[0]).all_splits.get(table.split)
            scored = table.data.graphs if table.data.graphs is not None else getattr(spec, "count", None)
            assert reference.apart == (reference.samples is None or reference.samples != scored), (table, reference)
            assert reference.comparable != reference.apart
            assert not reference.apart or "measured on" in reference.basis
            seen += 1
        assert table.anchors is None or not any(r.apart for r in table.references if r.kind != "published")
    assert seen > 100
    for section in {(b.dataset, b.protocol, b.budget_class) for b in committed_board.boards if b.main}:
        own = [b for b in committed_board.boards if (b.dataset, b.protocol, b.budget_class) == section and b.main]
        grid = away_grid(own)
        apart = sum(r.apart for b in own for r in b.references)
        assert grid is None or sum(" [on " in cell for row in grid.rows for cell in row) == apart


def test_submissions_are_compared_with_the_trivial_predictor_of_the_whole_split(card):
    assert best_floor(card, "test", "f1", whole_split(card, "test")) == ("all_positive", 0.4)
    assert best_floor(card, "n192", "f1", SampleSet(2, 0, 9)) is None
