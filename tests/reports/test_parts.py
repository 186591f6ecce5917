"""The table of the parts of the test split."""

from __future__ import annotations

import graphbench
from graphbench.catalog.sections import Measured, MeasuredTask
from graphbench.reports.pages import ABSENT
from graphbench.reports.parts import part_grid


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
