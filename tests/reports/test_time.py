"""The time of an answer beside its score, in tables and figures of tasks whose models search."""

from datetime import UTC, datetime

import pytest

import graphbench
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.record import RunRecord
from graphbench.reports.pages import ABSENT
from graphbench.reports.plots import COLOURS, time_figure
from graphbench.reports.report import build_report
from graphbench.reports.tables import metric_heads, score_heads, score_rows

ID = "co/rb_small:mis"


def record(model, time, gap, **changes):
    fields = {
        "dataset": ID,
        "dataset_version": 1,
        "model": model,
        "config": {"model": {"processor": model}},
        "parameters": 1,
        "seed": 0,
        "steps": 10,
        "batch_size": 4,
        "budget": Budget(small=True),
        "started": datetime(2026, 1, 2, tzinfo=UTC),
        "wall_seconds": 1.0,
        "latency_ms_batched": time,
        "scores": {"test": {"set_size": 20.0, "ratio": 1 - gap, "gap": gap}},
        "graphs_scored": {"test": 500},
    }
    return RunRecord.model_validate(fields | changes)


@pytest.fixture
def results():
    return aggregate([record("fast", 2.0, 0.3), record("slow", 900.0, 0.01), record("beaten", 500.0, 0.4)])


def test_the_table_of_scores_shows_the_time_where_models_search(results):
    card = graphbench.card(ID)
    assert score_heads(card) == ["set_size ↑", "ratio ↑", "bound_ratio ↑", "gap ↓", "matched ↑", "time per sample"]
    times = {row.name: row.values[-1] for row in score_rows(card, results)}
    assert all(len(row.values) == 6 for row in score_rows(card, results))
    assert [times[name] for name in ("fast", "slow", "beaten")] == ["2 ms", "900 ms", "500 ms"]
    assert times["greedy"] == times["gin"] == ABSENT
    other = graphbench.card("co/rb_small:mis_size")
    assert score_heads(other) == metric_heads(other)
    assert {len(row.values) for row in score_rows(other, results)} == {len(score_heads(other))}


def test_the_figure_joins_the_models_that_no_faster_one_beats(results):
    figure = time_figure(results, "gap", higher_is_better=False)
    (axes,) = figure.axes
    front, *points = axes.lines
    assert front.get_xydata().tolist() == [[0.002, 0.3], [0.9, 0.01]]
    assert [(point.get_xdata()[0], point.get_color() == COLOURS[0]) for point in points] == [
        (0.002, True), (0.5, False), (0.9, True),
    ]  # fmt: skip
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert time_figure(results, "set_size", higher_is_better=True).axes[0].get_yscale() == "linear"
    assert time_figure(results[:1], "gap", higher_is_better=False) is None
    assert time_figure(results, "no_metric", higher_is_better=True) is None


def test_models_scored_on_other_samples_are_not_in_the_figure_of_the_report(results, tmp_path):
    apart = record("apart", 1.0, 0.001, graphs_scored={"test": 7})
    runs = [runs.records[0] for runs in results]
    page, _ = build_report([*runs, apart], tmp_path, cards={ID: graphbench.card(ID)})
    text = page.read_text(encoding="utf-8")
    assert "gap against the time of an answer" in text and "| apart" in text
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    (drawn,) = [part for part in html.split("<svg") if "gap against the time of an answer" in part]
    assert "beaten" in drawn.split("</svg>")[0] and "apart" not in drawn.split("</svg>")[0]
