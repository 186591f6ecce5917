"""Tabular selectors of algorithms, each against a direct computation with scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.base import TaskFeatures
from graphbench.models.registry import build_task_model
from graphbench.models.tabular.config import SelectorModelConfig
from graphbench.models.tabular.estimators import make_estimator
from graphbench.models.tabular.selectors import METHODS

NAMES = ["a", "b", "c", "d"]
FOREST = {"n_estimators": 12, "min_samples_leaf": 2, "random_state": 0, "n_jobs": 1}


def portfolio(rows=120, algorithms=4, seed=0):
    """Features, and costs that depend on them: every algorithm has a direction in which it is slow."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, 5)).astype(np.float32)
    costs = np.exp(table @ rng.normal(size=(5, algorithms)) + 0.3 * rng.normal(size=(rows, algorithms)))
    return table, costs


def make(processor, **options):
    return lambda regression: make_estimator(processor, regression, 0, options)


def values_of(method, table, costs, seen, names=NAMES, maker=None):
    maker = maker or make("random_forest", n_estimators=12)
    return METHODS[method].values(METHODS[method].fit(table, costs, names, maker), seen, names)


@pytest.fixture(scope="module")
def data():
    table, costs = portfolio()
    return table[:80], costs[:80], table[80:], costs[80:]


def test_log_costs_are_those_of_a_forest_per_algorithm(data):
    table, costs, seen, _ = data
    found = values_of("log_costs", table, costs, seen)
    for k in range(4):
        forest = RandomForestRegressor(**FOREST).fit(table, np.log10(costs[:, k]))
        np.testing.assert_allclose(np.log10(found[:, k]), forest.predict(seen))


def test_costs_of_nearest_neighbours_are_means_over_the_nearest_instances(data):
    table, costs, seen, _ = data
    found = values_of("costs", table, costs, seen, maker=make("k_nearest", n_neighbors=7))
    scaler = StandardScaler().fit(table)
    distances = np.linalg.norm(scaler.transform(seen)[:, None] - scaler.transform(table)[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, :7]
    np.testing.assert_allclose(found, costs[nearest].mean(axis=1))
    looked_up = NearestNeighbors(n_neighbors=7).fit(scaler.transform(table)).kneighbors(scaler.transform(seen))[1]
    assert all(set(a) == set(b) for a, b in zip(looked_up.tolist(), nearest.tolist(), strict=True))


def test_pairwise_regression_sums_the_differences_of_all_pairs(data):
    table, costs, seen, _ = data
    found = values_of("pairwise_regression", table, costs, seen)
    total = np.zeros((len(seen), 4))
    for i, j in permutations(range(4), 2):
        low, high = min(i, j), max(i, j)
        forest = RandomForestRegressor(**FOREST).fit(table, costs[:, low] - costs[:, high])
        total[:, i] += forest.predict(seen) if i < j else -forest.predict(seen)
    np.testing.assert_allclose(found, total / 4)
    linear = values_of("pairwise_regression", table, costs, seen, maker=make("linear"))
    single = values_of("costs", table, costs, seen, maker=make("linear"))
    np.testing.assert_allclose(linear, single - single.mean(axis=1, keepdims=True), rtol=1e-4)


def votes_by_hand(table, costs, seen):
    """Return the chosen algorithm of every instance: weighted classifiers, then votes, ties as documented."""
    count = costs.shape[1]
    beats = np.zeros((len(seen), count, count), int)
    for i in range(count):
        for j in range(i + 1, count):
            gap = np.abs(costs[:, i] - costs[:, j])
            used = gap > 0
            forest = RandomForestClassifier(**FOREST)
            forest.fit(table[used], (costs[used, i] < costs[used, j]).astype(int), sample_weight=gap[used])
            first = forest.predict(seen)
            beats[:, i, j], beats[:, j, i] = first, 1 - first
    means, chosen = costs.mean(axis=0), []
    for wins in beats:
        votes = wins.sum(axis=1)
        left = [k for k in range(count) if votes[k] == votes.max()]
        among = {k: sum(wins[k, other] for other in left) for k in left}
        left = [k for k in left if among[k] == max(among.values())]
        chosen.append(min(left, key=lambda k: means[k]))
    return np.array(chosen)


def test_pairwise_classification_is_a_weighted_vote(data):
    table, costs, seen, _ = data
    found = values_of("pairwise_classification", table, costs, seen)
    np.testing.assert_array_equal(found.argmin(axis=1), votes_by_hand(table, costs, seen))
    assert len(set(found.argmin(axis=1).tolist())) > 1


def test_the_weights_of_pairwise_classification_are_the_differences_in_cost():
    """A few instances with large differences outvote many with small ones; also behind a pipeline."""
    table = np.zeros((10, 1), np.float32)
    costs = np.array([[1.0, 1.1]] * 9 + [[60.0, 1.0]])
    for processor in ("random_forest", "linear"):
        found = values_of("pairwise_classification", table, costs, table[:1], ["a", "b"], make(processor))
        assert found.argmin(axis=1).tolist() == [1]
    weights = np.abs(costs[:, 0] - costs[:, 1])
    direct = LogisticRegression(max_iter=1000).fit(table, costs[:, 0] < costs[:, 1], weights / weights.mean())
    assert not direct.predict(table[:1])[0]


def test_equal_votes_go_to_the_algorithm_that_wins_among_the_tied_and_then_to_the_cheaper_one():
    """Constant pairs decide every vote: a beats b, b beats c, c beats a; d loses to all."""
    cycle = {"a b": ["first"], "b c": ["first"], "a c": ["second"]}
    losing = {f"{name} d": ["first"] for name in "abc"}
    method, table = METHODS["pairwise_classification"], np.zeros((1, 1))
    for order in (["c", "a", "b", "d"], ["b", "d", "c", "a"]):
        values = method.values({**cycle, **losing, "order": order}, table, NAMES)
        assert NAMES[int(values.argmin())] == next(name for name in order if name != "d")
    shared = {"a b": ["second"], "a c": ["first"], "a d": ["first"], "b c": ["second"], "b d": ["first"]}
    values = method.values({**shared, "c d": ["neither"], "order": ["a", "b", "c", "d"]}, table, NAMES)
    assert NAMES[int(values.argmin())] == "b"  # a and b have two votes each, and b beats a
    assert np.floor(-values[0]).tolist() == [2, 2, 1, 0]


def test_pairs_without_anything_to_tell_apart_are_constant():
    table = np.arange(6, dtype=np.float32)[:, None]
    costs = np.array([[1.0, 2.0, 2.0]] * 6)
    found = values_of("pairwise_classification", table, costs, table, ["a", "b", "c"])
    assert found.argmin(axis=1).tolist() == [0] * 6
    fitted = METHODS["pairwise_classification"].fit(table, costs, ["a", "b", "c"], make("random_forest"))
    assert {name: fitted[name] for name in ("a b", "a c", "b c")} == {
        "a b": ["first"],
        "a c": ["first"],
        "b c": ["neither"],
    }
    assert (values_of("multiclass", table, costs, table, ["a", "b", "c"]) == [-1, 0, 0]).all()


def test_multiclass_is_minus_the_probability_of_being_the_cheapest(data):
    table, costs, seen, _ = data
    costs = costs.copy()
    costs[:, 1] = costs.max() + 1  # never the cheapest: it has no class
    found = values_of("multiclass", table, costs, seen)
    forest = RandomForestClassifier(**FOREST).fit(table, costs.argmin(axis=1))
    assert forest.classes_.tolist() == [0, 2, 3] and (found[:, 1] == 0).all()
    by_mean = np.argsort(costs.mean(axis=0))
    relabelled = RandomForestClassifier(**FOREST).fit(table, np.argsort(by_mean)[costs.argmin(axis=1)])
    expected = np.zeros((len(seen), 4))
    expected[:, by_mean[relabelled.classes_]] = relabelled.predict_proba(seen)
    np.testing.assert_allclose(-found, expected)
    assert np.abs(expected[:, [0, 2, 3]] - forest.predict_proba(seen)).mean() < 0.05


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("processor", ["random_forest", "xgboost"])
def test_every_method_chooses_better_than_one_algorithm_for_all(method, processor):
    if processor == "xgboost":
        pytest.importorskip("xgboost")
    table, costs = portfolio(400, 3, seed=4)
    found = values_of(method, table[:300], costs[:300], table[300:], NAMES[:3], make(processor, n_estimators=30))
    test = costs[300:]
    chosen = test[np.arange(100), found.argmin(axis=1)].mean()
    single, best = test[:, costs[:300].mean(axis=0).argmin()].mean(), test.min(axis=1).mean()
    assert (single - chosen) / (single - best) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "selector_name", "learner"),
    [
        ("pairwise_regression", "PairwiseRegressor", "RandomForestRegressorWrapper"),
        ("pairwise_classification", "PairwiseClassifier", "RandomForestClassifierWrapper"),
        ("multiclass", "MultiClassClassifier", "RandomForestClassifierWrapper"),
    ],
)
def test_methods_agree_with_asf(method, selector_name, learner, data):
    """The framework that the paper used, where it is installed, on the same forests."""
    selectors = pytest.importorskip("asf.selectors")
    pandas = pytest.importorskip("pandas")
    wrapper = pytest.importorskip("asf.predictors.random_forest")
    table, costs, seen, _ = data
    columns = [f"x{i}" for i in range(table.shape[1])]
    features = pandas.DataFrame(table, columns=columns, index=[f"i{i}" for i in range(len(table))])
    performance = pandas.DataFrame(costs, columns=NAMES, index=features.index)
    selector = getattr(selectors, selector_name)(getattr(wrapper, learner), random_state=0)
    selector.fit(features, performance)
    new = pandas.DataFrame(seen, columns=columns, index=[f"n{i}" for i in range(len(seen))])
    theirs = [NAMES.index(selector.predict(new)[name][0][0]) for name in new.index]
    ours = values_of(method, table, costs, seen, maker=make("random_forest", n_estimators=100)).argmin(axis=1)
    assert np.mean(ours == np.array(theirs)) > 0.8


def test_outputs_that_are_no_costs_of_graphs_are_refused():
    for spec in (
        {"a": ["output", "node", "scalar"], "b": ["output", "graph", "scalar"]},
        {"a": ["output", "graph", "scalar"]},
    ):
        with pytest.raises(ConfigError, match="kind selector"):
            build_task_model(SelectorModelConfig(), {"toys/x": TaskFeatures(parse_features(spec))})
