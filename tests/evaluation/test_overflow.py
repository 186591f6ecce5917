"""Finite predictions that the type of the targets cannot hold are refused with value and place, by every evaluator."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphbench
from graphbench.catalog.features import parse_features
from graphbench.core.errors import EvaluationError, GenerationError
from graphbench.data.store.casting import compact
from graphbench.evaluation.inputs import ScoreScale, checked_items
from graphbench.tasks.trace.outputs import checked_outputs

LARGEST = float(np.finfo(np.float32).max)


def _scalar(location="graph", width=1):
    kind = "scalar" if width == 1 else f"scalar({width})"
    return parse_features({"speed": ["output", location, kind]})[0]


@pytest.mark.parametrize("value", [1e39, -1e39, 1e300, np.nextafter(1e39, 1e40)])
@pytest.mark.parametrize("as_given", [np.array, list, torch.tensor])
def test_scalars_beyond_the_type_of_the_targets_are_refused(value, as_given):
    rows = [0.0, 1.0, float(value), 2.0]
    predicted = torch.tensor(rows, dtype=torch.float64) if as_given is torch.tensor else as_given(rows)
    with pytest.raises(EvaluationError) as caught:
        checked_items(_scalar(), np.zeros(4, np.float32), predicted, None, ScoreScale.LOGIT)
    assert f"{float(value)}" in str(caught.value) and "row 2" in str(caught.value)


def test_the_largest_number_of_the_type_and_wider_targets_are_scored():
    items, _ = checked_items(_scalar(), np.zeros(2, np.float32), [LARGEST, -LARGEST], None, ScoreScale.LOGIT)
    assert items.predicted.tolist() == [LARGEST, -LARGEST]
    items, _ = checked_items(_scalar(), np.zeros(1), [1e39], None, ScoreScale.LOGIT)
    assert items.predicted.tolist() == [1e39]
    items, _ = checked_items(_scalar(), np.zeros(1, np.int64), [1e39], None, ScoreScale.LOGIT)
    assert items.predicted.tolist() == [1e39]


def test_columns_of_wide_scalars_are_named():
    predicted = np.zeros((3, 2))
    predicted[1, 1] = 1e40
    with pytest.raises(EvaluationError, match=r"1e\+40 at row 1, column 1"):
        checked_items(_scalar(width=2), np.zeros((3, 2), np.float32), predicted, None, ScoreScale.LOGIT)


def test_outputs_of_trajectories():
    truth = {"speed": np.zeros((2, 3), np.float32)}
    with pytest.raises(EvaluationError, match=r"1e\+40 at row 1, column 2"):
        checked_outputs([_scalar("node")], truth, {"speed": [[0, 0, 0], [0, 0, 1e40]]}, ScoreScale.LOGIT)
    with pytest.raises(EvaluationError, match=r"1e\+200 at row 0"):
        checked_outputs([_scalar()], {"speed": np.zeros(1)}, {"speed": [1e200]}, ScoreScale.LOGIT)
    pointer = parse_features({"speed": ["output", "graph", "pointer"]})[0]
    with pytest.raises(EvaluationError, match=r"1e\+19"):
        checked_outputs([pointer], {"speed": np.zeros(1, int)}, {"speed": [1e19]}, ScoreScale.LABEL)


def test_predicted_costs_of_algorithms():
    evaluator = graphbench.Evaluator("sat/aslib")
    truth = {name: np.ones(2, np.float32) for name in evaluator.names}
    predicted = {name: np.ones(2) for name in evaluator.names}
    assert evaluator.evaluate(truth, predicted, overhead=0.0).graphs == 2
    predicted[evaluator.names[0]][1] = 1e39
    with pytest.raises(EvaluationError, match=r"1e\+39 at row 1"):
        evaluator.evaluate(truth, predicted, overhead=0.0)


def test_changes_of_weather():
    evaluator = graphbench.Evaluator("weather/sim_t21")
    change = np.zeros((1, 512, 83), np.float32)
    predicted = np.zeros((1, 512, 83))
    predicted[0, 7, 3] = 1e39
    with pytest.raises(EvaluationError, match=r"1e\+39 at time 0 of this update, point 7"):
        evaluator.evaluate(change, predicted)


def test_generated_scalars_are_not_stored_as_infinity(make_card):
    from dataclasses import replace

    from graphbench.data.components.domain import find

    card = make_card()
    maker = find("generator", card.generator)
    samples = maker.draw(card, "train", np.arange(2), np.zeros(2, np.int64))
    weights = np.asarray(samples.values["weight"], np.float64).copy()
    weights[3] = 1e39
    changed = replace(samples, values={**samples.values, "weight": weights})
    with pytest.raises(GenerationError, match=r"weight holds 1e\+39 in row 3"):
        compact(card.graph_schema, changed, maker)
