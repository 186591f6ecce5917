"""Arguments that are no plain arrays of numbers, values that no sum can hold, and arguments in the wrong order."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError, GraphBenchError
from graphbench.tasks.evaluator import Evaluator

MASK = Feature.parse("in_tree", ["output", "edge", "mask"])
CLASS = Feature.parse("colour", ["output", "node", "categorical(3)"])
SCALAR = Feature.parse("value", ["output", "graph", "scalar"])
WIDE = Feature.parse("wind", ["output", "node", "scalar(3)"])
POINTER = Feature.parse("parent", ["output", "node", "pointer"])
CHOICE = Feature.parse("root", ["output", "node", "mask_one"])

TRUTH = np.array([1, 0, 1, 0])
PROBABILITIES = np.array([0.9, 0.2, 0.7, 0.1])
BATCH = np.array([0, 0, 1, 1])


def quantised(values: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(values, 0.1, 0, torch.quint8)


def nested(values: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([values[:2], values[2:]])


ODD_TENSORS = {
    "meta": lambda values: values.to("meta"),
    "sparse": lambda values: values.to_sparse(),
    "nested": nested,
    "quantised": quantised,
    "complex": lambda values: values.to(torch.complex64),
}


@pytest.mark.parametrize("kind", ODD_TENSORS)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("in_a_list", [False, True])
@pytest.mark.parametrize("feature", [MASK, SCALAR, CLASS], ids=lambda feature: feature.name)
def test_tensors_without_plain_numbers_are_refused(kind: str, place: int, in_a_list: bool, feature: Feature) -> None:
    given: list[Any] = [torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor(BATCH)]
    if in_a_list and place < 2:
        given = [[given[0]], [given[1]], None]
    target = given[place][0] if isinstance(given[place], list) else given[place]
    odd = ODD_TENSORS[kind](target.float())
    given[place] = [odd] if isinstance(given[place], list) else odd
    name = ("y_true", "y_pred", "batch")[place]
    with pytest.raises(
        EvaluationError, match=rf"{name}(\[0\])? (is a tensor that cannot be read|has dtype complex|has 2)"
    ):
        Evaluator.from_features(feature, scores="label").evaluate(*given)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16])
def test_short_floats_are_numbers(dtype: torch.dtype) -> None:
    predicted = torch.tensor([1.0, 0.0, 1.0, 0.0]).to(dtype)
    assert Evaluator.from_features(MASK).evaluate(TRUTH, predicted).primary == 1.0
    assert Evaluator.from_features(SCALAR).evaluate(torch.tensor(TRUTH).to(dtype), predicted).primary == 0.0
    assert Evaluator.from_features(POINTER, scores="label").evaluate(TRUTH, predicted).primary == 1.0


@pytest.mark.parametrize(
    "value", [None, 5, {"a": 1}, object(), [None], [[1, 2], 3], [[[1]], "a"], iter([1]), 1e400, 10**400]
)
def test_other_objects_are_refused(value: Any) -> None:
    for given in ((value, TRUTH), (TRUTH, value), (TRUTH, TRUTH, value)):
        if given[-1] is None and len(given) == 3:
            continue
        with pytest.raises(EvaluationError):
            Evaluator.from_features(MASK).evaluate(*given)


def test_masked_arrays_are_refused_where_something_is_masked() -> None:
    evaluator = Evaluator.from_features(MASK)
    some, none = (np.ma.masked_array(TRUTH, mask) for mask in ([0, 1, 0, 0], [0, 0, 0, 0]))
    assert evaluator.evaluate(none, TRUTH, np.ma.masked_array(BATCH)).primary == 1.0
    for given in ((some, TRUTH), (TRUTH, some), (TRUTH, TRUTH, np.ma.masked_equal(BATCH, 0)), ([some], [TRUTH])):
        with pytest.raises(EvaluationError, match=r"masked array with [12] masked"):
            evaluator.evaluate(*given)


@pytest.mark.parametrize("batch", [[-1, 0, 1, 1], [0, 0, 1, -5], np.array([0, 0, 1, 2**63], np.uint64)])
def test_graph_indices_start_at_zero(batch: Any) -> None:
    with pytest.raises(EvaluationError, match=r"batch holds .* at row .*graph indices"):
        Evaluator.from_features(MASK).evaluate(TRUTH, TRUTH, batch)


@pytest.mark.parametrize("value", [1e308, -1e200, 1e155])
def test_scalars_whose_squares_overflow_are_refused(value: float) -> None:
    evaluator = Evaluator.from_features(SCALAR)
    evaluator.update(np.ones(3), np.ones(3))
    with pytest.raises(EvaluationError, match=r"y_pred holds .* at row 2.*overflow.*model"):
        evaluator.update(np.ones(4), np.array([1, 1, value, 1]))
    with pytest.raises(EvaluationError, match=r"y_true holds .* at row 0.*overflow.*data"):
        evaluator.update(np.array([value]), np.ones(1))
    assert evaluator.compute()["mae"] == 0.0  # refused updates change nothing
    largest = np.full(1000, np.finfo(np.float32).max, np.float32)
    assert np.isfinite(list(evaluator.evaluate(np.arange(1000), largest).values())).all()


@pytest.mark.parametrize("value", [1e300, 2.0**63, float(np.finfo(np.float32).max)])
def test_node_numbers_beyond_all_integers_are_refused(value: float) -> None:
    for given in ((np.array([value]), np.array([1])), (np.array([1]), np.array([value]))):
        with pytest.raises(EvaluationError, match="takes node numbers from 0"):
            Evaluator.from_features(POINTER, scores="label").evaluate(*given)


@pytest.mark.parametrize(
    ("feature", "truth", "predicted"),
    [
        (MASK, PROBABILITIES, TRUTH),
        (MASK, PROBABILITIES, TRUTH.astype(bool)),
        (MASK, torch.tensor(PROBABILITIES), torch.tensor(TRUTH)),
        (MASK, [PROBABILITIES], [TRUTH]),
        (CHOICE, PROBABILITIES, TRUTH),
        (CLASS, np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 0])),
        (CLASS, np.eye(3)[[0, 1, 2, 0]] * 2.5, np.array([0, 1, 2, 0])),
        (POINTER, PROBABILITIES, TRUTH),
    ],
)
def test_swapped_arguments_are_noticed_where_types_tell(feature: Feature, truth: Any, predicted: Any) -> None:
    with pytest.raises(EvaluationError, match=r"swapped.*\(y_true, y_pred\)"):
        Evaluator.from_features(feature).evaluate(truth, predicted, None if isinstance(truth, list) else BATCH)


def test_wrong_targets_alone_are_no_sign_of_swapped_arguments() -> None:
    for truth, predicted in ((PROBABILITIES, PROBABILITIES), (TRUTH + 1, TRUTH)):
        with pytest.raises(EvaluationError, match="has targets 0 and 1 alone") as caught:
            Evaluator.from_features(MASK).evaluate(truth, predicted)
        assert "swapped" not in str(caught.value)


def test_the_columns_of_predictions_are_those_of_the_feature() -> None:
    evaluator = Evaluator.from_features(WIDE)
    truth = np.arange(12.0).reshape(4, 3)
    assert evaluator.evaluate(truth, truth + 1, BATCH).primary == 1.0
    for predicted in (truth[:, :2], truth[:, 0], truth[:, :1]):
        with pytest.raises(EvaluationError, match=r"y_pred has shape .*'wind' is a scalar\(3\): give \[items, 3\]"):
            evaluator.evaluate(truth, predicted)
    with pytest.raises(EvaluationError, match=r"y_true has shape \(4,\); 'wind' is a scalar\(3\)"):
        evaluator.evaluate(truth[:, 0], truth[:, 0])


@pytest.mark.parametrize("dataset", [5, 2.5, ["algoreas/mst_easy"], b"algoreas/mst_easy", None])
def test_datasets_that_are_no_names(dataset: Any) -> None:
    with pytest.raises(GraphBenchError, match="the dataset is"):
        Evaluator(dataset)


@pytest.mark.parametrize("options", [{"expected_graphs": "3"}, {"expected_graphs": 2.5}, {"expected_graphs": True}])
def test_numbers_of_graphs_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(EvaluationError, match="must be positive and a whole number"):
        Evaluator.from_features(MASK, **options)
    assert Evaluator.from_features(MASK, expected_graphs=np.int64(2)).evaluate(TRUTH, TRUTH, BATCH).graphs == 2


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((5,), {}), ((MASK, 5), {}), ((MASK, ["f1"]), {}), ((MASK,), {"scores": 5}), ((MASK,), {"scores": ["logit"]})],
)
def test_wrong_types_of_features_metrics_and_scales(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    with pytest.raises(EvaluationError):
        Evaluator.from_features(*arguments, **options)
