"""The table of the parts of the test split."""

from __future__ import annotations

import graphbench
from graphbench.catalog.sections import Measured, MeasuredTask
from graphbench.evaluation.aggregates import aggregate
from graphbench.reports.pages import ABSENT
from graphbench.reports.parts import part_grid
from graphbench.reports.report import build_report

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
