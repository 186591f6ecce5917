"""The table of the parts of the test split."""

from __future__ import annotations

import pytest

import graphbench
from graphbench.catalog.sections import Measured, MeasuredTask
from graphbench.records.aggregates import aggregate
from graphbench.reports.pages import ABSENT
from graphbench.reports.parts import output_grid, part_grid
from graphbench.reports.report import build_report
from graphbench.reports.tables import score_rows

from .conftest import make_record


def test_parts_of_the_test_split_stand_in_columns():
    card = graphbench.card("chip_design/aig:generate")
    scores = MeasuredTask(
        floor={"test": {"simple": {"quality": 50.0}}, "test_n8m2": {"simple": {"quality": 60.0}}},
        solvers={"n5": {"abc": {"quality": 1.0}}, "test_n6m1": {"abc": {"quality": 70.0}}},
    )
    grid = part_grid(card.model_copy(update={"measured": Measured(version=1, tasks={"generate": scores})}), ())
    assert grid is not None
    assert grid.heads[1:] == ("kind", "n6m1", "n6m2", "n7m1", "n7m2", "n8m1", "n8m2", "all")
    assert grid.rows[0] == ("simple", "trivial", *[ABSENT] * 5, "60.0000", "50.0000")
    assert grid.rows[1] == ("abc", "solver", "70.0000", *[ABSENT] * 6)
    assert grid.rows[2][:3] == ("strash", "published", "73.9000") and grid.rows[2][-1] == "75.7600"
    assert [row[0] for row in grid.rows[2:]] == ["strash", "resyn", "compress2", "resyn2rs"]


def test_datasets_without_parts_have_no_such_table():
    for name in ("algoreas/mst_easy", "co/rb_small:mis", "clrs_text/bfs"):
        assert part_grid(graphbench.card(name), ()) is None


def test_parts_that_a_card_names_stand_beside_the_whole(tmp_path):
    id_ = "circuits/converters_5:ratio"

    def record(seed, part):
        whole = {"rse": 0.2 + 0.1 * seed, "mae": 0.05, "spearman": 0.9}
        scores = {"test": whole, "test_converting": {**whole, "rse": part}}
        return make_record(seed).model_copy(update={"dataset": id_, "scores": scores, "primary": "rse"})

    records = [record(0, 0.5), record(1, 0.7)]
    grid = part_grid(graphbench.card(id_), aggregate(records))
    assert grid is not None and grid.heads[1:] == ("kind", "converting", "all")
    (ours,) = [row for row in grid.rows if row[1] == "ours"]
    assert ours[2].startswith("0.6000 ± 0.1414")
    text = "".join(path.read_text() for path in build_report(records, tmp_path / "out") if path.suffix == ".md")
    assert "### Parts of the test split" in text and "0.6000" in text


def test_outputs_that_are_scored_together_have_columns_of_their_own():
    id_ = "circuits/converters_5:both"

    def record(seed):
        scores = {"rse": 0.2, "mae": 0.1, "spearman": 0.9, "rse_ratio": 0.3 + 0.1 * seed, "rse_efficiency": 0.1}
        return make_record(seed).model_copy(
            update={"dataset": id_, "dataset_version": 1, "scores": {"test": scores}, "primary": "rse"}
        )

    card, runs = graphbench.card(id_), aggregate([record(0), record(1)])
    grid = output_grid(card, runs)
    assert grid is not None and grid.heads == ("predictor", "kind", "rse of ratio ↓", "rse of efficiency ↓")
    kinds = [row[1] for row in grid.rows]
    assert kinds == ["trivial", "trivial", "ours", *["published"] * 4]
    assert grid.rows[0][0] == "mean" and float(grid.rows[0][2]) == pytest.approx(1.0, abs=0.01)
    assert grid.rows[2][2].startswith("0.3500 ±") and grid.rows[2][3].startswith("0.1000")
    assert grid.rows[3][:1] + grid.rows[3][2:] == ("gt", "0.1200", "0.0700")
    rows = [row for row in score_rows(card, runs) if row.kind == "published"]
    assert rows == []  # no paper prints the mean of both outputs


def test_a_single_output_has_no_such_columns():
    assert output_grid(graphbench.card("circuits/converters_5:ratio"), ()) is None
