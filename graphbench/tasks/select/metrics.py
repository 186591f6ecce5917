"""Running sums of the costs of the chosen, the single best and the virtual best algorithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics.bootstrap import Floats, Tally, tallied
from graphbench.evaluation.metrics.registry import NO_FEATURE, Metric

TIED = 1e-9  # relative difference up to which two mean training costs count as equal
_NO_GAP = 1e-12  # share of the single best algorithm's cost below which the gap is rounding


@dataclass(frozen=True, slots=True)
class SelectedInstances:
    """One update: the algorithm that was chosen for each of some instances.

    Attributes:
        costs: float64 ``[S, K]``, the cost of each algorithm, positive.
        choices: int64 ``[S]``, the column of the chosen algorithm.
        overhead: float64 ``[S]``, the cost of making the choice, in the unit of the costs.
    """

    costs: Floats
    choices: NDArray[np.int64]
    overhead: Floats


class SelectionSums:
    """Sums over instances of the costs of the choices, of the cheapest algorithms, and of every algorithm.

    Attributes:
        graphs: Number of instances.
        chosen: Sum of the costs of the choices, overhead included.
        best: Sum of the costs of the cheapest algorithms.
        right: Number of instances on which a cheapest algorithm was chosen.
        costs: Sum of the costs of every algorithm, float64 ``[K]``; None before any update.
        train_costs: Mean cost of every algorithm on the training split, float64 ``[K]``; None where it is unknown.
    """

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.graphs = self.right = 0
        self.chosen = self.best = 0.0
        self.costs: Floats | None = None
        self.train_costs: Floats | None = None

    def add(self, selected: SelectedInstances) -> None:
        """Take one update."""
        costs = selected.costs
        chosen_costs = costs[np.arange(len(costs)), selected.choices]
        best = costs.min(axis=1)
        self.graphs += len(costs)
        self.chosen += float((chosen_costs + selected.overhead).sum())
        self.best += float(best.sum())
        self.right += int(np.count_nonzero(chosen_costs == best))
        total = costs.sum(axis=0)
        self.costs = total if self.costs is None else self.costs + total
        tallied(self, selected)

    def shares(self, selected: SelectedInstances) -> Floats | None:
        """Return the contribution of each instance."""
        costs, best = selected.costs, selected.costs.min(axis=1)
        chosen_costs = costs[np.arange(len(costs)), selected.choices]
        each = np.stack([np.ones(len(costs)), chosen_costs + selected.overhead, best, chosen_costs == best], axis=1)
        return np.concatenate([each, costs], axis=1)

    def like(self, totals: Floats) -> Self:
        """Return the sums of such choices with other totals."""
        sums = type(self)()
        sums.graphs, sums.chosen, sums.best, sums.right = totals[:4].tolist()
        sums.costs, sums.train_costs = totals[4:], self.train_costs
        return sums


def mean_cost(sums: SelectionSums) -> float:
    """Return the mean cost of the choices, overhead included."""
    return sums.chosen / sums.graphs


def mean_regret(sums: SelectionSums) -> float:
    """Return how much the choices cost beyond the cheapest algorithms, on average; never below 0."""
    return max(0.0, sums.chosen - sums.best) / sums.graphs


def share_best(sums: SelectionSums) -> float:
    """Return the share of instances on which a cheapest algorithm was chosen."""
    return sums.right / sums.graphs


def mean_closed_gap(sums: SelectionSums) -> float:
    """Return the closed gap of the sums; see :func:`gap_closed`.

    Raises:
        EvaluationError: If the mean costs on the training split are unknown.
    """
    if sums.train_costs is None:
        raise EvaluationError(
            "closed_gap needs the mean cost of every algorithm on the training split, which the card does not have; "
            "give train_costs={output: mean cost}, or let `graphbench verify --update` write them next to the card"
        )
    assert sums.costs is not None
    single_best = cost_of_single_best(sums.costs, sums.train_costs)
    return gap_closed(single_best / sums.graphs, sums.chosen / sums.graphs, sums.best / sums.graphs)


def cost_of_single_best(costs: Floats, train_costs: Floats) -> float:
    """Return the cost of the algorithm whose mean training cost is lowest; the mean cost of all that tie for it.

    Ties are decided neither by the order of the algorithms nor by the costs that are scored.

    Args:
        costs: float64 ``[K]``, the cost of each algorithm where it is scored.
        train_costs: float64 ``[K]``, the mean cost of each on the training split.
    """
    return float(np.sort(costs[train_costs <= train_costs.min() * (1 + TIED)]).mean())


def gap_closed(single_best: float, selector: float, virtual_best: float) -> float:
    """Return the share of the gap between two algorithms that a selector closes (GraphBench, section 3.3.1).

    ``(single_best - selector) / (single_best - virtual_best)``: 1 for the virtual best, 0 for the single best, and
    below 0 for worse choices. Where the single best algorithm is the virtual best one on the instances that are scored,
    there is no gap to close: the value is then 0 for a selector that costs no more, and
    ``(single_best - selector) / single_best``, which is below 0, for one that costs more.

    Args:
        single_best: Mean cost of the single best algorithm, positive.
        selector: Mean cost of the selector, overhead included.
        virtual_best: Mean cost of the cheapest algorithm of each instance.
    """
    gap = single_best - virtual_best
    if gap <= _NO_GAP * single_best:
        return min(0.0, (single_best - selector) / single_best)
    return (single_best - selector) / gap


_METRICS = (
    Metric(
        "closed_gap", True, -math.inf, 1,
        "Share closed of the gap in mean cost between the best single algorithm on the training split (0) and the best "
        "one of each instance (1); where the two are equal, 0, or below 0 for choices that cost more.",
        NO_FEATURE, SelectionSums, mean_closed_gap,
    ),
    Metric(
        "par10", False, 0, math.inf,
        "Mean cost of the chosen algorithms, overhead included; unsolved instances cost ten times the cutoff.",
        NO_FEATURE, SelectionSums, mean_cost,
    ),
    Metric(
        "best_share", True, 0, 1, "Share of instances on which a cheapest algorithm was chosen; ties count.",
        NO_FEATURE, SelectionSums, share_best,
    ),
    Metric(
        "regret", False, 0, math.inf, "Mean extra cost of the chosen algorithms over the cheapest, overhead included.",
        NO_FEATURE, SelectionSums, mean_regret,
    ),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}
"""Name -> metric of this kind of task."""
