from dataclasses import replace

import numpy as np
import pytest
import torch

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.references import whole_split
from graphbench.evaluation.trivial import best_floor, trivial_scores

MASK = Feature.parse("in_tree", ["output", "edge", "mask"])
CLASS = Feature.parse("colour", ["output", "node", "categorical(3)"])
SCALAR = Feature.parse("value", ["output", "graph", "scalar"])


def test_mask_predictors():
    train = np.array([1] * 20 + [0] * 80)
    test = np.array([1, 1, 1, 0] * 500)
    batch = np.repeat(np.arange(500), 4)
    scores = trivial_scores(MASK, train, test, batch, ["f1", "accuracy", "recall", "f1_per_graph"])
    assert set(scores) == {"all_positive", "all_negative", "majority", "random"}
    assert scores["all_positive"] == pytest.approx({"f1": 6 / 7, "accuracy": 0.75, "recall": 1, "f1_per_graph": 6 / 7})
    assert scores["all_negative"] == {"f1": 0.0, "accuracy": 0.25, "recall": 0.0, "f1_per_graph": 0.0}
    assert scores["majority"] == scores["all_negative"]  # of the training targets, not of the test targets
    assert scores["random"]["recall"] == pytest.approx(0.2, abs=0.03)  # the training rate


def test_majority_may_be_positive():
    scores = trivial_scores(MASK, np.array([1, 1, 0]), np.array([1, 0]), None, ["f1", "f1_per_graph"])
    assert scores["majority"] == scores["all_positive"] == pytest.approx({"f1": 2 / 3})


def test_random_is_a_function_of_the_seed():
    train, test = np.array([0, 1]), np.tile([0, 1], 50)
    first, again, other = (trivial_scores(MASK, train, test, None, ["f1"], seed=s)["random"] for s in (1, 1, 2))
    assert first == again != other


def test_scalar_predictors():
    scores = trivial_scores(SCALAR, [0.0, 0.0, 9.0], torch.tensor([0.0, 1.0, 2.0]), None, ["mae", "r2", "spearman"])
    assert scores["mean"] == pytest.approx({"mae": 2.0, "r2": -6.0, "spearman": 0.0})
    assert scores["median"] == pytest.approx({"mae": 1.0, "r2": -1.5, "spearman": 0.0})
    columns = trivial_scores(SCALAR, np.array([[1.0, 5.0]]), np.array([[1.0, 6.0]]), None, ["mae"])
    assert columns["mean"] == {"mae": 0.5}


def test_scalars_with_a_width_are_predicted_column_by_column():
    wide = Feature.parse("wind", ["output", "node", "scalar(2)"])
    train = np.array([[0.0, 10.0], [0.0, 10.0], [9.0, 40.0]])
    scores = trivial_scores(wide, train, torch.tensor([[3.0, 20.0], [0.0, 20.0]]), np.array([0, 1]), ["mae"])
    assert scores["mean"] == pytest.approx({"mae": 0.75})  # (1.5 of the first column + 0 of the second) / 2
    assert scores["median"] == pytest.approx({"mae": (1.5 + 10) / 2})
    with pytest.raises(EvaluationError, match=r"'wind' is a scalar\(2\): give \[items, 2\]"):
        trivial_scores(wide, train[:, 0], train[:, 0], None, ["mae"])


def test_class_predictors():
    scores = trivial_scores(CLASS, np.array([2, 2, 0]), np.array([2] * 600 + [0] * 300), None, ["accuracy"])
    assert scores["majority"]["accuracy"] == pytest.approx(2 / 3)
    assert scores["random"]["accuracy"] == pytest.approx(5 / 9, abs=0.06)


@pytest.mark.parametrize(
    ("feature", "train", "test", "metrics", "message"),
    [
        (MASK, [], [1], ["f1"], "y_train is empty"),
        (MASK, [1], [1], [], "no metric is named"),
        (MASK, [1], [1], ["f1x"], "unknown metric 'f1x'"),
        (MASK, [1], [1], ["f1_per_graph"], "need the graphs"),
        (SCALAR, [[1.0, 2.0]], [1.0], ["mae"], "columns must agree"),
        (Feature.parse("p", ["output", "node", "pointer"]), [1], [1], ["accuracy"], "'p' is a pointer"),
    ],
)
def test_errors(feature, train, test, metrics, message):
    with pytest.raises(EvaluationError, match=message):
        trivial_scores(feature, train, test, None, metrics)


def test_best_floor_follows_the_metrics_direction(card):
    whole = whole_split(card, "test")
    assert best_floor(card, "test", "f1", whole) == ("all_positive", 0.4)
    assert best_floor(card, "test", "f1") == ("all_positive", 0.4)
    assert best_floor(card, "test", "f1", replace(whole, count=whole.count - 1)) is None
    assert best_floor(card, "n512", "f1", whole_split(card, "n512")) is None
    measured = card.measured.model_copy(update={"floor": {"test": {"mean": {"mae": 2.0}, "median": {"mae": 1.0}}}})
    assert best_floor(card.model_copy(update={"measured": measured}), "test", "mae", whole) == ("median", 1.0)
    assert best_floor(card.model_copy(update={"measured": None}), "test", "mae", whole) is None
