"""The first screen: one line per dataset with the right numbers, and pictures of scores by size."""

from datetime import UTC, datetime

import pytest

from graphbench.catalog.names import card
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.boards import source_of, tables_of
from graphbench.leaderboard.overview import lines_of, size_chart, sparkline
from graphbench.leaderboard.texts import source_text
from graphbench.records.provenance import draw_of
from graphbench.records.stated import OWN_MODEL
from graphbench.reports.ood import grown_splits
from graphbench.training.config import draws_seen

from .conftest import bootstrapped, verified
from .conftest import make_record as toy_record

ID = "algoreas/mst_easy"


def make_record(*arguments, **changes):
    """Return a record of the current version of this module's dataset."""
    return toy_record(*arguments, **{"dataset": ID, "dataset_version": 1, **changes})


def line_of(records, **options):
    (line,) = lines_of(leaderboard_of(records, **options))
    return line


def test_a_line_has_the_best_of_each_kind():
    ranked = [bootstrapped(make_record(seed, dataset=ID, f1=0.8 + seed / 100)) for seed in range(3)]
    weaker = [bootstrapped(make_record(seed, dataset=ID, f1=0.5 + seed / 100, model="gt")) for seed in range(3)]
    single = [make_record(0, dataset=ID, f1=0.99, model="lucky")]
    forest = [make_record(0, dataset=ID, f1=0.87, model="forest", steps=None)]
    line = line_of([*ranked, *weaker, *single, *forest])
    assert (line.unit, line.domain, line.metric, line.models) == (ID, "algoreas", "f1", 4)
    assert line.best["open"].label == "gin" and line.ahead["open"].label == "lucky"
    assert (line.classical.name, line.classical.value) == ("forest", 0.87)
    assert (
        line.published.name == "gt" and line.published.value == 0.8566 and not line.beats_published(line.best["open"])
    )
    assert line.beats_published(line.ahead["open"])


def test_a_trained_model_of_ones_own_is_not_classical_and_a_rule_of_ones_own_is():
    own = make_record(0, dataset=ID, f1=0.9, model="my_gnn", steps=None, config={"kind": OWN_MODEL})
    line = line_of([own])
    assert line.best["open"].label == "my_gnn" and line.classical.name == "structural"
    rule = make_record(0, f1=0.99999, config={"kind": OWN_MODEL}, steps=None, parameters=0, wall_seconds=0)
    assert line_of([rule]).classical.value == 0.99999


def test_a_small_difference_is_a_small_step_of_the_picture():
    def height(*scores):
        splits = {name: {"f1": score} for name, score in zip(("test", "n256"), scores, strict=True)}
        found = leaderboard_of([make_record(0, dataset=ID).model_copy(update={"scores": splits})])
        points = sparkline(lines_of(found)[0]).points
        first, last = (float(point.split(",")[1]) for point in points.split())
        return last - first

    assert 0 <= height(0.9994, 0.9988) < 1 < height(0.9, 0.85) < 10 < height(0.9, 0.5)


@pytest.mark.thorough
def test_every_committed_dataset_has_a_line_whose_best_is_the_best_of_its_kind(committed_board):
    lines = {line.unit: line for line in lines_of(committed_board)}
    boards = [b for b in committed_board.boards if b.split == "test" and b.main and b.budget_class == "open"]
    assert lines.keys() == {board.unit for board in boards}
    for board in boards:
        line, sign = lines[board.unit], 1 if board.higher_is_better else -1
        trained = [row for row in board.rows if row.trained] or board.rows
        ranked = [row for row in trained if row.rank is not None] or trained
        assert sign * line.best["open"].mean == max(sign * row.mean for row in ranked)
        assert line.curve == tuple(sorted(line.curve)) and len(dict(line.curve)) == len(line.curve)
    kinds = {r.kind for board in boards for r in board.references}
    assert kinds == {"trivial", "rule", "solver", "bound", "published"}
    mst = lines[ID]
    assert mst.classical.name == "structural" and mst.trivial.value < mst.classical.value
    assert sparkline(mst).words.startswith(f"{mst.curve[0][1]:.4f} at 128")


def test_a_reference_that_is_given_a_part_of_the_answer_is_no_classical_method(committed_board):
    lines = {line.unit: line for line in lines_of(committed_board)}
    for unit, name in (("weather/sim_t21", "persistence 6h"), ("sat/small:select", "virtual best")):
        board = next(b for b in committed_board.boards if b.unit == unit and b.split == "test" and b.main)
        bound = next(r for r in board.references if r.name == name)
        assert bound.kind == "bound" and "is given the" in bound.basis
        assert lines[unit].classical is None or lines[unit].classical.name != name


def test_curves_are_drawn_in_their_order():
    scores = {"test": {"f1": 0.9}, "n256": {"f1": 0.8}, "n512": {"f1": 0.6}}
    found = leaderboard_of([make_record(0, dataset=ID).model_copy(update={"scores": scores})])
    chart = size_chart([b for b in found.boards if b.budget_class == "open"])
    assert [label for _, label in chart.sizes] == ["128", "256", "512"]
    xs = [x for x, _ in chart.sizes]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)  # doublings are equally far apart
    (curve,) = chart.curves
    heights = [y for _, y, _ in curve.points]
    assert heights == sorted(heights) and [value for *_, value in curve.points] == [0.9, 0.8, 0.6]  # y grows downwards


def test_the_source_of_a_row_is_the_weakest_of_its_runs():
    first, second, third = (bootstrapped(make_record(seed, dataset=ID, f1=0.8 + seed / 100)) for seed in range(3))
    again = {(second.relative_path.as_posix(), second.started)}
    assert source_of(first, again) == "stated" and source_of(second, again) == "recomputed"
    assert source_of(verified(third), set()) == "verified"
    (row,) = next(iter(tables_of([first, second, verified(third)], repeated=again).boards)).rows
    assert row.provenance == "stated" and row.sources == ("stated", "recomputed", "verified")
    assert source_text(row) == "stated; 1 of 3 recomputed; 1 of 3 verified; 0.5000 on a sealed draw"
    whole = next(iter(tables_of([verified(r, algorithm=True) for r in (first, second, third)]).boards)).rows[0]
    assert whole.provenance == "verified" and whole.algorithm
    assert source_text(whole) == "verified, an algorithm; 0.5000, 0.5000, 0.5000 on sealed draws"


def test_a_row_whose_settings_were_chosen_by_the_split_says_so():
    dataset = "clutrr/gen_23"
    assert draws_seen(dataset, "epignn") == (0, 1) and draws_seen(dataset, "gat") == draws_seen(dataset, "mine") == ()
    records = [make_record(0, dataset=dataset, model=name) for name in ("epignn", "gat")]
    renamed = [record.model_copy(update={"scores": {"test": {"accuracy": 0.9}}}) for record in records]
    rows = {row.model: row for board in leaderboard_of(renamed).boards for row in board.rows}
    assert not rows["epignn"].blind and rows["gat"].blind
    assert source_text(rows["epignn"]) == "stated; settings chosen by this split"
    assert source_text(rows["gat"]) == "stated"


def test_a_repetition_of_another_run_of_the_name_does_not_count():
    record = make_record(0, dataset=ID)
    assert source_of(record, {(record.relative_path.as_posix(), datetime(2020, 1, 1, tzinfo=UTC))}) == "stated"


def test_draws_follow_from_commitment_and_beacon_alone():
    draws = {draw_of("ab" * 32, f"beacon {i}") for i in range(1000)} | {draw_of(f"{i:064x}", "b") for i in range(1000)}
    assert len(draws) == 2000 and min(draws) >= 1 and max(draws) < 2**31
    assert draw_of("ab" * 32, "the hash of a block") == verified(make_record(0)).verification.data_seed


def test_splits_of_other_kinds_are_no_sizes():
    """Their graphs differ from the test graphs in more than their size, and may have another size as well."""
    assert grown_splits(card("circuits/converters_10")) == {"k5", "k7"}
    assert grown_splits(card("co/rb_small:mis")) == {"large"}
    assert grown_splits(card("sat/small:kissat")) == {"larger"}
    assert grown_splits(card("sat/pairs_sr")) == {"n80", "n160"}
    assert grown_splits(card("chip_design/aig:generate")) == {"n5", "n9"}
    assert grown_splits(card("clutrr/rob_clean")) == set()
    scores = {"test": {"f1": 0.9}, "n192": {"f1": 0.8}, "sparse": {"f1": 0.1}}
    record = make_record(dataset=ID).model_copy(update={"scores": scores})
    assert [value for _, value in line_of([record]).curve] == [0.9, 0.8]


def test_a_line_says_how_many_samples_were_scored():
    whole, part = make_record(0, dataset=ID), make_record(0, dataset=ID)
    assert line_of([whole.model_copy(update={"graphs_scored": {"test": 10_000}})]).graphs is None
    assert line_of([part.model_copy(update={"graphs_scored": {"test": 50}})]).graphs == 50
