"""Parts of the samples that are scored beside the whole."""

import numpy as np
import pytest

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.sections import Metrics, ScoredPart
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.several import OutputsEvaluator
from graphbench.tasks.base import named_scores


def scalar(name, location=Location.GRAPH):
    return Feature(name, Stage.OUTPUT, location, Kind.SCALAR)


RATIO, EFFICIENCY = scalar("ratio"), scalar("efficiency")
PARTS = {"converting": ScoredPart(output="ratio", above=0.05)}


@pytest.fixture
def values():
    rng = np.random.default_rng(3)
    ratio = np.where(rng.random(60) < 0.6, 0.01, rng.normal(size=60))
    truth = {"ratio": ratio, "efficiency": np.abs(ratio) / 3}
    return truth, {name: value + 0.1 * rng.normal(size=60) for name, value in truth.items()}


def score_by_hand(truth, predicted, rows):
    error = [np.mean(np.abs(predicted[name] - truth[name])[rows]) for name in truth]
    return float(np.mean(error))


@pytest.mark.parametrize("updates", [1, 7])
def test_a_part_has_the_score_of_its_graphs_alone_however_they_are_split_into_updates(values, updates):
    truth, predicted = values
    evaluator = OutputsEvaluator((RATIO, EFFICIENCY), "mae", ("rse",), parts=PARTS)
    for rows in np.array_split(np.arange(60), updates):
        evaluator.update(
            {name: value[rows] for name, value in truth.items()},
            {name: value[rows] for name, value in predicted.items()},
        )
    chosen = np.abs(truth["ratio"]) > 0.05
    scores = named_scores("test", evaluator)
    assert list(scores) == ["test", "test_converting"]
    assert scores["test"].primary == pytest.approx(score_by_hand(truth, predicted, slice(None)))
    assert scores["test_converting"].primary == pytest.approx(score_by_hand(truth, predicted, chosen))
    assert scores["test_converting"].graphs == chosen.sum()
    alone = OutputsEvaluator((RATIO, EFFICIENCY), "mae", ("rse",)).evaluate(
        {name: value[chosen] for name, value in truth.items()},
        {name: value[chosen] for name, value in predicted.items()},
    )
    assert scores["test_converting"].to_dict() == pytest.approx(alone.to_dict())


def test_a_single_output_has_parts_too(values):
    truth, predicted = (own["ratio"] for own in values)
    evaluator = FeatureEvaluator(RATIO, "rse", ("mae",), parts=PARTS)
    evaluator.update(truth, predicted)
    rows = np.abs(truth) > 0.05
    expected = np.sum((predicted - truth)[rows] ** 2) / np.sum((truth[rows] - truth[rows].mean()) ** 2)
    assert evaluator.groups()["converting"].primary == pytest.approx(expected)


def test_a_part_without_graphs_or_with_an_undefined_score_is_left_out():
    evaluator = FeatureEvaluator(RATIO, "rse", parts=PARTS)
    evaluator.update(np.array([0.01, 0.02, 0.03]), np.zeros(3))
    assert evaluator.groups() == {}
    evaluator.update(np.array([0.5, 0.5]), np.zeros(2))
    assert evaluator.groups() == {}  # all targets of the part are equal
    evaluator.update(np.array([-0.4]), np.zeros(1))
    assert evaluator.groups()["converting"].graphs == 3


def test_an_update_that_is_refused_changes_no_part(values):
    truth, predicted = values
    evaluator = OutputsEvaluator((RATIO, EFFICIENCY), "mae", parts=PARTS)
    evaluator.update(truth, predicted)
    before = evaluator.groups()["converting"].to_dict()
    with pytest.raises(EvaluationError):
        evaluator.update(truth, {**predicted, "efficiency": np.full(60, np.nan)})
    assert evaluator.groups()["converting"].to_dict() == before


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ((EFFICIENCY,), "'ratio'.*efficiency"),
        ((scalar("ratio", Location.NODE),), "needs outputs of graphs"),
        ((RATIO, scalar("other", Location.EDGE)), "needs outputs of graphs"),
        ((Feature("ratio", Stage.OUTPUT, Location.GRAPH, Kind.MASK),), "to be a scalar"),
    ],
)
def test_parts_that_do_not_fit_the_outputs_are_refused(outputs, message):
    with pytest.raises(EvaluationError, match=message):
        OutputsEvaluator(outputs, "accuracy" if outputs[0].kind is Kind.MASK else "mae", parts=PARTS)


def test_names_of_parts_are_words():
    with pytest.raises(ValueError, match="parts"):
        Metrics(primary="rse", parts={"n16": ScoredPart(output="ratio", above=0.0)})
