"""Each metric against scikit-learn, SciPy or a loop, and the laws that hold for all of them."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics import METRICS, default_metrics, metric
from graphbench.tasks.evaluator import Evaluator

MASK = Feature.parse("in_tree", ["output", "edge", "mask"])
CLASS = Feature.parse("colour", ["output", "node", "categorical(4)"])
SCALAR = Feature.parse("value", ["output", "node", "scalar"])
POINTER = Feature.parse("parent", ["output", "node", "pointer"])


def every_metric(feature: Feature) -> list[str]:
    return [m.name for m in METRICS.values() if feature.kind in m.kinds and not m.needs_measure]


def scored(feature: Feature, truth, predicted, batch=None) -> dict[str, float]:
    names = every_metric(feature)
    if batch is None:
        names = [name for name in names if not METRICS[name].needs_graphs]
    return Evaluator.from_features(feature, names[0], names[1:]).evaluate(truth, predicted, batch).to_dict()


@pytest.mark.parametrize("seed", range(5))
def test_mask_metrics_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.random(200) < 0.2, rng.random(200) < 0.4
    score = scored(MASK, truth, predicted)
    assert score["f1"] == pytest.approx(sk.f1_score(truth, predicted), rel=1e-12)
    assert score["precision"] == pytest.approx(sk.precision_score(truth, predicted), rel=1e-12)
    assert score["recall"] == pytest.approx(sk.recall_score(truth, predicted), rel=1e-12)
    assert score["accuracy"] == pytest.approx(sk.accuracy_score(truth, predicted), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_class_metrics_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, 3, 100), rng.integers(0, 4, 100)  # class 3 is predicted but never true
    score = scored(CLASS, truth, predicted)
    assert score["accuracy"] == pytest.approx(sk.accuracy_score(truth, predicted), rel=1e-12)
    assert score["macro_f1"] == pytest.approx(
        sk.f1_score(truth, predicted, average="macro", zero_division=0), rel=1e-12
    )


def test_macro_f1_skips_classes_that_never_occur():
    truth = predicted = np.array([0, 0, 1])
    assert scored(CLASS, truth, predicted)["macro_f1"] == 1.0


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_scalar_metrics_equal_scikit_learn_and_scipy(columns, offset):
    rng = np.random.default_rng(7)
    shape = (150,) if columns is None else (150, columns)
    truth = np.round(rng.normal(size=shape), 1) + offset  # rounding makes ties
    predicted = truth + np.round(rng.normal(size=shape), 1)
    score = scored(SCALAR, truth, predicted)
    assert score["mae"] == pytest.approx(sk.mean_absolute_error(truth, predicted), rel=1e-9)
    assert score["mse"] == pytest.approx(sk.mean_squared_error(truth, predicted), rel=1e-9)
    assert score["rmse"] == pytest.approx(np.sqrt(sk.mean_squared_error(truth, predicted)), rel=1e-9)
    assert score["r2"] == pytest.approx(sk.r2_score(truth, predicted), rel=1e-6)
    assert score["rse"] == pytest.approx(1 - sk.r2_score(truth, predicted), rel=1e-6)
    pairs = [(truth, predicted)] if columns is None else zip(truth.T, predicted.T, strict=True)
    assert score["spearman"] == pytest.approx(np.mean([spearmanr(a, b).statistic for a, b in pairs]), rel=1e-9)


def test_r2_streams_without_cancelling():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4000) + 1e8
    predicted = truth + 0.5 * rng.normal(size=4000)
    evaluator = Evaluator.from_features(SCALAR, "r2")
    for part in range(0, 4000, 10):
        evaluator.update(truth[part : part + 10], predicted[part : part + 10])
    assert evaluator.compute().primary == pytest.approx(sk.r2_score(truth, predicted), rel=1e-6)


def per_graph(truth, predicted, batch, score) -> float:
    return float(np.mean([score(truth[batch == g], predicted[batch == g]) for g in np.unique(batch)]))


def brute_f1(truth, predicted) -> float:
    return 1.0 if not truth.any() and not predicted.any() else sk.f1_score(truth, predicted, zero_division=0)


def test_per_graph_metrics_equal_a_loop_over_graphs():
    rng = np.random.default_rng(3)
    batch = rng.integers(0, 40, 300) * 7  # neither sorted nor without gaps
    truth, predicted = rng.random(300) < 0.1, rng.random(300) < 0.1
    score = scored(MASK, truth, predicted, batch)
    assert score["f1_per_graph"] == pytest.approx(per_graph(truth, predicted, batch, brute_f1), rel=1e-12)
    right = per_graph(truth, predicted, batch, lambda a, b: float((a == b).all()))
    assert score["accuracy_per_graph"] == pytest.approx(right, rel=1e-12)


def test_f1_conventions_without_positives():
    empty = np.zeros(4, dtype=bool)
    score = scored(MASK, empty, empty, np.array([0, 0, 1, 1]))
    assert score["f1"] == sk.f1_score(empty, empty, zero_division=0) == 0.0
    assert score["f1_per_graph"] == 1.0
    assert score["precision"] == score["recall"] == 0.0
    assert score["accuracy"] == 1.0


def test_f1_per_graph_differs_from_pooled():
    truth = np.array([1, 0, 1, 1, 1, 1], dtype=bool)
    predicted = np.array([0, 1, 1, 1, 1, 1], dtype=bool)
    score = scored(MASK, truth, predicted, np.array([0, 0, 1, 1, 1, 1]))
    assert score["f1_per_graph"] == 0.5
    assert score["f1"] == pytest.approx(0.8)


def test_constant_targets_are_an_error_and_constant_predictions_are_not():
    for name in ("r2", "rse", "spearman"):
        with pytest.raises(EvaluationError, match=f"{name} is undefined.*column 1 equal 3"):
            Evaluator.from_features(SCALAR, name).evaluate(np.array([[1, 3], [2, 3]]), np.array([[1, 2], [2, 3]]))
    assert Evaluator.from_features(SCALAR, "spearman").evaluate([1.0, 2.0], [5.0, 5.0]).primary == 0.0
    assert Evaluator.from_features(SCALAR, "mae").evaluate([3.0, 3.0], [3.0, 5.0]).primary == 1.0


def test_an_undefined_metric_beside_the_primary_one_is_left_out():
    evaluator = Evaluator.from_features(SCALAR, "mae", ("r2", "spearman", "rmse"))
    score = evaluator.evaluate([3.0, 3.0], [3.0, 5.0])
    assert score.to_dict() == {"mae": 1.0, "rmse": pytest.approx(2**0.5)}
    assert list(score.undefined) == ["r2", "spearman"]
    with pytest.raises(KeyError, match=r"'r2' was left out.*column 0 equal 3"):
        score["r2"]
    assert evaluator.evaluate([3.0, 4.0], [3.0, 5.0]).undefined == {}


def test_unknown_and_unfitting_metrics_suggest_others():
    with pytest.raises(EvaluationError, match=r"unknown metric 'acuracy'.*'accuracy'"):
        metric("acuracy")
    with pytest.raises(EvaluationError, match="'mae' cannot score 'in_tree'"):
        metric("mae", MASK)
    with pytest.raises(EvaluationError, match="unknown metric 'zzz'; use one of"):
        metric("zzz")


@pytest.mark.parametrize("kind", list(Kind))
def test_default_metrics_fit_their_type(kind):
    feature = Feature("f", MASK.stage, MASK.location, kind, 3 if kind is Kind.CATEGORICAL else 0)
    primary, also = default_metrics(feature)
    assert all(feature.kind in METRICS[name].kinds for name in (primary, *also))
    assert Evaluator.from_features(feature).primary_name == primary


@st.composite
def samples(draw):
    """A feature with targets, predictions, the rows' graphs and cut points between whole graphs."""
    feature = draw(st.sampled_from([MASK, CLASS, SCALAR, POINTER]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=8))
    rows = sum(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if feature.kind is Kind.SCALAR:
        truth, predicted = np.round(rng.normal(size=(2, rows)), 1)
        truth[:2] = -9.0, 9.0  # never constant
    elif feature.kind is Kind.MASK:
        truth, predicted = rng.random((2, rows)) < draw(st.sampled_from([0.0, 0.2, 0.7]))
    else:
        truth, predicted = rng.integers(0, 4, (2, rows))
    cuts = draw(st.lists(st.integers(1, len(sizes) - 1), max_size=4, unique=True))
    return feature, truth, predicted, np.repeat(np.arange(len(sizes)), sizes), sorted(cuts)


@settings(deadline=None, max_examples=150)
@given(samples())
def test_streaming_equals_one_call(sample):
    feature, truth, predicted, batch, cuts = sample
    names = every_metric(feature)
    evaluator = Evaluator.from_features(feature, names[0], names[1:])
    whole = evaluator.evaluate(truth, predicted, batch)
    for start, stop in zip([0, *cuts], [*cuts, batch.max() + 1], strict=True):
        rows = (batch >= start) & (batch < stop)
        evaluator.update(truth[rows], predicted[rows], batch[rows] - start)
    streamed = evaluator.compute()
    assert streamed.graphs == whole.graphs == batch.max() + 1
    assert streamed.items_scored == whole.items_scored == len(truth)
    assert streamed.to_dict() == pytest.approx(whole.to_dict(), rel=1e-12, abs=1e-12)
    if feature.kind is not Kind.SCALAR:
        counted = [name for name in whole if name != "f1_per_graph"]
        assert [streamed[name] for name in counted] == [whole[name] for name in counted]


@settings(deadline=None, max_examples=100)
@given(samples(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(sample, random):
    feature, truth, predicted, batch, _ = sample
    order = list(range(len(truth)))
    random.shuffle(order)
    first, second = (
        scored(feature, truth, predicted, batch),
        scored(feature, truth[order], predicted[order], batch[order]),
    )
    assert second == pytest.approx(first, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(samples())
def test_scores_lie_in_their_range_and_perfect_predictions_reach_the_good_end(sample):
    feature, truth, predicted, batch, _ = sample
    for name, value in scored(feature, truth, predicted, batch).items():
        assert METRICS[name].lowest <= value <= METRICS[name].highest + 1e-12
    for name, value in scored(feature, truth, truth, batch).items():
        best = METRICS[name].highest if METRICS[name].higher_is_better else METRICS[name].lowest
        if feature.kind is not Kind.MASK or truth.any():
            assert value == pytest.approx(best, abs=1e-12), name


F1 = """
import sys

import graphbench
from graphbench.catalog.features import parse_features
from graphbench.evaluation.evaluator import FeatureEvaluator

(feature,) = parse_features({"in_tree": ["output", "edge", "mask"]})
assert FeatureEvaluator(feature, "f1").evaluate([True, False], [True, True]).primary > 0
graphbench.Evaluator("algoreas/mst_easy").evaluate([True, False], [True, True])
rooms = {name.split(".")[2] for name in sys.modules if name.startswith("graphbench.tasks.") and name.count(".") == 3}
domains = {name.split(".")[2] for name in sys.modules if name.startswith("graphbench.domains.")}
print(sorted(rooms), sorted(domains - {"errors"}))
"""


def test_an_f1_loads_no_kind_of_task_and_no_domain_that_it_does_not_need():
    done = subprocess.run([sys.executable, "-c", F1], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['predict'] ['algoreas']"
