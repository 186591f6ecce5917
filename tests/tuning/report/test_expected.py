"""What is expected of a model stands beside what a search has found, and a score at the trivial ones is warned of."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphbench.catalog.names import catalog
from graphbench.records.published import published
from graphbench.tuning.history import History
from graphbench.tuning.report.expected import below_floor_text, expected_grid, expected_notes, expected_of
from graphbench.tuning.report.plots import best_figure
from graphbench.tuning.report.report import incumbent_text, write_report
from graphbench.tuning.report.sentences import summary, warnings_of

from .synthetic import make_result, make_trials

FLOOR = catalog().card("algoreas/mst_easy").floor["val"]["all_positive"]["f1"]


def history(*, cost: float | None = None, **what: Any) -> History:
    """A run, of which no trial is better than the given cost, with other facts on what was tuned."""
    trials = make_trials()
    if cost is not None:
        trials = [t if t.cost is None else replace(t, cost=max(cost, t.cost)) for t in trials]
    result = make_result(trials)
    result["what"] |= {"limit": None, "val_limit": None} | what
    return History(json.loads(json.dumps(result)))


def test_the_table_shows_the_trivial_predictors_and_the_published_scores() -> None:
    run = history()
    found = expected_of(run)
    assert found is not None and run.incumbent is not None
    grid = expected_grid(run, run.incumbent, found)
    assert grid.heads == ("predictor", "kind", "f1 ↑", "split", "basis")
    rows = {(row[0], row[1]): row[2:] for row in grid.rows}
    assert rows["incumbent", "ours"] == (f"{1 - run.incumbent.measured:.4f}", "val", "729 steps")
    assert rows["default configuration", "ours"][1] == "val"
    assert rows["all positive", "trivial"][:2] == (f"{FLOOR:.4f}", "val")
    gin = next(score for score in published("algoreas/mst_easy") if (score.model, score.split) == ("gin", "test"))
    assert rows["gin", "published"][0].startswith(f"{gin.value:.4f}")
    assert rows["gin", "published"][1:] == ("test", "GraphBench, Table 16, 3 seeds")
    assert ("gt", "published") in rows
    notes = " ".join(expected_notes(run, found))
    assert "Published scores are on the test split" in notes and "not comparable" not in notes.partition(";")[0]


def test_a_search_on_a_part_of_the_split_has_no_trivial_score_to_beat() -> None:
    run = history(cost=0.99, val_limit=1000)
    found = expected_of(run)
    assert found is not None and run.incumbent is not None and found.floor is None and found.references is None
    rows = expected_grid(run, run.incumbent, found).rows
    assert rows[-1][1] == "trivial, other samples" and rows[-1][-1] == "on 10,000 graphs"
    assert "10,000 graphs of the split, this run on 1,000 graphs" in " ".join(expected_notes(run, found))
    assert below_floor_text(run, found) == ""
    figure = best_figure(run, found)
    assert figure is not None
    assert "best trivial" not in {str(line.get_label()) for axes in figure.axes for line in axes.get_lines()}


def test_the_figure_shows_both_as_lines() -> None:
    run = history()
    found = expected_of(run)
    figure = best_figure(run, found)
    assert figure is not None and found is not None and found.floor == ("all positive", FLOOR)
    for axes in figure.axes:
        lines = {str(line.get_label()): list(line.get_ydata()) for line in axes.get_lines()}
        assert lines["best trivial"] == [FLOOR, FLOOR]
        assert lines["gin on test, published"] == [0.6906, 0.6906]
        assert "gt on test, published" not in lines, "of another architecture"
        low, high = axes.get_ylim()
        assert low < FLOOR < 0.6906 < high


def test_without_a_published_score_of_the_architecture_the_best_one_is_drawn() -> None:
    run = history()
    run.result["baseline"]["model"]["processor"] = "deepsets"
    found = expected_of(run)
    assert found is not None
    assert [score.model for score in found.of_model] == ["gt"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_importance")
@pytest.mark.parametrize(("cost", "warned"), [(None, False), (1 - FLOOR, True), (0.9, True)])
def test_a_best_configuration_below_the_floor_is_warned_of_everywhere(
    cost: float | None, warned: bool, tmp_path: Path
) -> None:
    run = history(cost=cost)
    text = f"no better than the best trivial predictor (all positive: {FLOOR:.4f})"
    assert any(text in warning for warning in warnings_of(run)) == warned
    assert any(text in sentence and sentence.startswith("Warning: ") for sentence in summary(run)) == warned
    assert run.incumbent is not None and (text in incumbent_text(run, run.incumbent)) == warned
    write_report(run.result, tmp_path)
    assert all((text in (tmp_path / name).read_text()) == warned for name in ("report.md", "report.html"))


def test_of_errors_a_larger_score_is_below_the_floor() -> None:
    card = catalog().card("algoreas/flow_easy")
    metric = card.metrics.primary
    by_name = {name: scores[metric] for name, scores in card.floor["val"].items()}
    floor = min(value for name, value in by_name.items() if name not in card.task.rules)
    assert min(by_name.values()) < floor  # a rule that reads the graph is better, and does not count
    for cost, warned in ((floor * 0.9, False), (floor * 1.1, True)):
        run = history(cost=cost, dataset="algoreas/flow_easy", metric=metric)
        best = run.incumbent
        assert best is not None and best.measured == cost
        assert bool(below_floor_text(run, expected_of(run))) == warned


def test_the_split_of_validation_is_that_of_the_run() -> None:
    run = history(dataset="clrs/bfs", metric="score", overrides={"training.val_split": "val_multi_size"})
    found = expected_of(run)
    assert found is not None and found.split == "val_multi_size" and found.floor == ("initial", 0.368164)
    run = history(dataset="clrs/bfs", metric="score", configuration={"training.val_split": "val_multi_size"})
    found = expected_of(run)
    assert found is not None and found.split == "val_multi_size"


@pytest.mark.slow
@pytest.mark.usefixtures("without_importance")
@pytest.mark.parametrize(
    "what",
    [
        {"dataset": None},
        {"dataset": "mine/gone"},
        {"data": "v999-0a1b2c3d"},
        {"metric": "loss"},
        {"metric": None},
    ],
    ids=["own method", "unknown dataset", "other data", "loss", "no metric"],
)
def test_where_nothing_can_be_expected_the_report_is_written_without(what: dict[str, Any], tmp_path: Path) -> None:
    run = history(cost=0.9, **what)
    assert expected_of(run) is None and warnings_of(run) == []
    write_report(run.result, tmp_path)
    assert "Expected scores" not in (tmp_path / "report.md").read_text()


def test_a_search_logs_the_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from graphbench.tuning.optimizer import Optimizer

    class Method:
        def __init__(self) -> None:
            self.description = {"dataset": "algoreas/mst_easy", "model": "gin_small", "metric": "f1"}

        def __call__(self, config: dict[str, Any], seed: int, budget: int) -> float:
            return 0.9

    space = {"lr": {"type": "float", "range": [0, 1]}}
    args = {"space": space, "min_budget": 1, "max_budget": 1, "trials": 1, "output": tmp_path, "method": "random"}
    with caplog.at_level(logging.WARNING):
        Optimizer(args, Method()).optimize(report=False)
    assert f"no better than the best trivial predictor (all positive: {FLOOR:.4f})" in caplog.text
