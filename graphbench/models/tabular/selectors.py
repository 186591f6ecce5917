"""Methods of algorithm selection: estimators are fitted on a table of features and the costs of algorithms.

Each method returns a value per algorithm, and the algorithm with the lowest value is chosen. ``c_k`` is the cost of
algorithm ``k``:

===========================  ==========================================================================================
``log_costs``                An estimator per algorithm predicts ``log10 c_k`` (an empirical performance model; Hutter
                             et al., 2014); the value is 10 to this power.
``costs``                    An estimator per algorithm predicts ``c_k``. With k nearest neighbours, the value is the
                             mean cost over the nearest training instances.
``pairwise_regression``      An estimator per pair predicts ``c_i - c_j`` (Kerschke et al., 2018); the value of ``i`` is
                             the sum over all ``j``, divided by K: the excess of ``i`` over the mean of all algorithms.
``pairwise_classification``  A classifier per pair predicts the cheaper algorithm; instances are weighted by
                             ``|c_i - c_j|``, divided by its mean (Xu et al., 2012). The value is minus the number of
                             pairs won. Ties are broken by the votes among the tied algorithms, then by the lower mean
                             training cost.
``multiclass``               One classifier predicts the cheapest algorithm (ties go to the lower mean training cost);
                             the value is minus the probability of the algorithm.
===========================  ==========================================================================================

Algorithms and pairs are ordered by name, so that the order of the columns has no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Fitted = dict[str, list[Any]]
"""The fitted state of a method, by name: estimators, and names of algorithms."""

_FIRST, _SECOND, _NEITHER = "first", "second", "neither"


class Make(Protocol):
    """Makes new estimators."""

    def __call__(self, regression: bool) -> Any:
        """Return an estimator of numbers, or of classes."""
        ...


@dataclass(frozen=True)
class Method:
    """A method of algorithm selection.

    Attributes:
        fit: ``(table [T, columns], costs [T, K], names, make) -> fitted``; the names are in ascending order.
        values: ``(fitted, table [S, columns], names) -> values [S, K]``; the lowest value is chosen.
    """

    fit: Callable[[NDArray[Any], Floats, Sequence[str], Make], Fitted]
    values: Callable[[Fitted, NDArray[Any], Sequence[str]], Floats]


def _fit_log_costs(table: NDArray[Any], costs: Floats, names: Sequence[str], make: Make) -> Fitted:
    return _fit_costs(table, np.log10(costs), names, make)


def _log_cost_values(fitted: Fitted, table: NDArray[Any], names: Sequence[str]) -> Floats:
    values: Floats = 10.0 ** _cost_values(fitted, table, names)
    return values


def _fit_costs(table: NDArray[Any], costs: Floats, names: Sequence[str], make: Make) -> Fitted:
    return {name: [make(True).fit(table, costs[:, k])] for k, name in enumerate(names)}


def _cost_values(fitted: Fitted, table: NDArray[Any], names: Sequence[str]) -> Floats:
    return np.stack([fitted[name][0].predict(table).astype(np.float64) for name in names], axis=1)


def _fit_pairwise_regression(table: NDArray[Any], costs: Floats, names: Sequence[str], make: Make) -> Fitted:
    return {
        _pair(names, i, j): [make(True).fit(table, costs[:, i] - costs[:, j])]
        for i, j in combinations(range(len(names)), 2)
    }


def _pairwise_regression_values(fitted: Fitted, table: NDArray[Any], names: Sequence[str]) -> Floats:
    excess = np.zeros((len(table), len(names)))
    for i, j in combinations(range(len(names)), 2):
        difference = fitted[_pair(names, i, j)][0].predict(table).astype(np.float64)
        excess[:, i] += difference
        excess[:, j] -= difference
    return excess / len(names)


def _fit_pairwise_classification(table: NDArray[Any], costs: Floats, names: Sequence[str], make: Make) -> Fitted:
    fitted: Fitted = {"order": _cheapest_first(costs, names)}
    for i, j in combinations(range(len(names)), 2):
        difference = costs[:, i] - costs[:, j]
        differs = difference != 0
        wins = (difference[differs] < 0).astype(np.int64)
        if len(np.unique(wins)) == 2:
            estimator = make(False)
            fitted[_pair(names, i, j)] = [
                estimator.fit(table[differs], wins, **_weighted(estimator, np.abs(difference[differs])))
            ]
        else:  # one class only
            fitted[_pair(names, i, j)] = [_NEITHER if not len(wins) else _FIRST if wins[0] else _SECOND]
    return fitted


def _pairwise_classification_values(fitted: Fitted, table: NDArray[Any], names: Sequence[str]) -> Floats:
    count = len(names)
    wins = np.zeros((len(table), count, count), bool)  # row beats column
    for i, j in combinations(range(count), 2):
        wins[:, i, j], wins[:, j, i] = _winners(fitted[_pair(names, i, j)][0], table)
    votes = wins.sum(axis=2)
    tied = votes[:, :, None] == votes[:, None, :]
    among_tied = (wins & tied).sum(axis=2)
    order = np.array([fitted["order"].index(name) for name in names])
    values: Floats = -(votes + (among_tied + (count - 1 - order) / count) / count)
    return values


def _winners(classifier: Any, table: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether the first algorithm of a pair wins, and whether the second one wins, per instance."""
    if isinstance(classifier, str):
        return np.full(len(table), classifier == _FIRST), np.full(len(table), classifier == _SECOND)
    first = classifier.predict(table).astype(bool)
    return first, ~first


def _fit_multiclass(table: NDArray[Any], costs: Floats, names: Sequence[str], make: Make) -> Fitted:
    order = _cheapest_first(costs, names)
    best = costs[:, [names.index(name) for name in order]].argmin(axis=1)
    seen, labels = np.unique(best, return_inverse=True)
    estimators = [make(False).fit(table, labels)] if len(seen) > 1 else []
    return {"classes": [order[k] for k in seen], "estimators": estimators}


def _multiclass_values(fitted: Fitted, table: NDArray[Any], names: Sequence[str]) -> Floats:
    values = np.zeros((len(table), len(names)))
    columns = [names.index(name) for name in fitted["classes"]]
    values[:, columns] = -fitted["estimators"][0].predict_proba(table) if fitted["estimators"] else -1.0
    return values


METHODS: Mapping[str, Method] = {
    "log_costs": Method(_fit_log_costs, _log_cost_values),
    "costs": Method(_fit_costs, _cost_values),
    "pairwise_regression": Method(_fit_pairwise_regression, _pairwise_regression_values),
    "pairwise_classification": Method(_fit_pairwise_classification, _pairwise_classification_values),
    "multiclass": Method(_fit_multiclass, _multiclass_values),
}


def _pair(names: Sequence[str], i: int, j: int) -> str:
    return f"{names[i]} {names[j]}"


def _cheapest_first(costs: Floats, names: Sequence[str]) -> list[str]:
    """Return the algorithms sorted by mean training cost, then by name."""
    means = dict(zip(names, costs.mean(axis=0).tolist(), strict=True))
    return sorted(names, key=lambda name: (means[name], name))


def _weighted(estimator: Any, weights: Floats) -> dict[str, Floats]:
    """Return the keyword argument of ``fit`` that weights instances; a pipeline passes it to its last step."""
    steps = getattr(estimator, "steps", None)
    return {"sample_weight" if steps is None else f"{steps[-1][0]}__sample_weight": weights / weights.mean()}
