"""Running sums of the objectives of solutions, relative to the best known values and the proved bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics.bootstrap import Floats, Tally, tallied
from graphbench.evaluation.metrics.registry import NO_FEATURE, Metric

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SolvedGraphs:
    """One update: feasible solutions of some graphs, by their objective.

    Attributes:
        values: int64 ``[G]``, the objective of each solution.
        maximise: Whether larger objectives are better.
        labels: int64 ``[G]``, the best known objective of each graph, -1 for a graph without; None if no graph has one.
        bounds: int64 ``[G]``, the limit of the objectives of a graph, -1 for a graph without; None if no graph has one.
        seconds: Seconds spent on all of them; None if not measured.
    """

    values: _Ints
    maximise: bool
    labels: _Ints | None = None
    bounds: _Ints | None = None
    seconds: float | None = None


class SolutionSums:
    """Sums over graphs of objectives, of their ratios to labels and bounds, and of seconds."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.graphs = self.objective = 0
        self.labelled = self.matched = 0
        self.ratio = self.gap = 0.0
        self.bounded = 0
        self.bound_ratio = 0.0
        self.timed = 0
        self.seconds = 0.0

    def add(self, solved: SolvedGraphs) -> None:
        """Take one update.

        Raises:
            EvaluationError: If a feasible solution is better than its bound allows, or than a label of 0.
        """
        better = np.greater if solved.maximise else np.less
        values, labels = _where_known(solved.values, solved.labels)
        of_bounded, bounds = _where_known(solved.values, solved.bounds)
        _refuse_any(better(of_bounded, bounds), of_bounded, bounds, "its bound")
        _refuse_any((labels == 0) & (values != 0), values, labels, "its label")
        matched, ratio, gap = _beside_labels(values, labels, solved.maximise)
        self.graphs += len(solved.values)
        self.objective += int(solved.values.sum())
        self.labelled += len(values)
        self.matched += int(matched.sum())
        self.ratio += float(ratio.sum())
        self.gap += float(gap.sum())
        self.bounded += len(of_bounded)
        self.bound_ratio += float(_ratios(of_bounded, bounds, solved.maximise).sum())
        if solved.seconds is not None:
            self.timed += len(solved.values)
            self.seconds += solved.seconds
        tallied(self, solved)

    def shares(self, solved: SolvedGraphs) -> Floats | None:
        """Return the contribution of each graph; ratios to bounds and seconds have no replicates."""
        rows = np.zeros((len(solved.values), 6))
        rows[:, 0], rows[:, 1] = solved.values, 1
        if solved.labels is not None:
            known = solved.labels >= 0
            rows[known, 2] = 1
            rows[known, 3:] = np.stack(_beside_labels(solved.values[known], solved.labels[known], solved.maximise), 1)
        return rows

    def like(self, totals: Floats) -> Self:
        """Return the sums of such objectives with other totals."""
        sums = type(self)()
        sums.objective, sums.graphs, sums.labelled, sums.matched, sums.ratio, sums.gap = totals.tolist()
        return sums


def mean_objective(sums: SolutionSums) -> float:
    """Return the mean objective of a solution."""
    return sums.objective / sums.graphs


def mean_ratio(sums: SolutionSums) -> float:
    """Return the mean over labelled graphs of value / label, or label / value where small values are better."""
    return sums.ratio / _counted(sums.labelled, "no graph has a label: a best known value")


def mean_gap(sums: SolutionSums) -> float:
    """Return the mean over labelled graphs of how far, in parts of the label, the value falls short of it."""
    return sums.gap / _counted(sums.labelled, "no graph has a label: a best known value")


def share_matched(sums: SolutionSums) -> float:
    """Return the share of labelled graphs whose value is the label's or better."""
    return sums.matched / _counted(sums.labelled, "no graph has a label: a best known value")


def mean_bound_ratio(sums: SolutionSums) -> float:
    """Return the mean over graphs with a bound of value / bound, or bound / value where small values are better."""
    return sums.bound_ratio / _counted(sums.bounded, "no graph has a proved bound")


def seconds_per_graph(sums: SolutionSums) -> float:
    """Return the mean of the seconds spent on a graph."""
    return sums.seconds / _counted(sums.timed, "nothing was timed: solutions came without seconds=")


def _counted(count: int, problem: str) -> int:
    if not count:
        raise EvaluationError(problem)
    return count


def _where_known(values: _Ints, reference: _Ints | None) -> tuple[_Ints, _Ints]:
    """Return the values and the references of the graphs that have a reference."""
    if reference is None:
        return values[:0], values[:0]
    return values[reference >= 0], reference[reference >= 0]


def _beside_labels(values: _Ints, labels: _Ints, maximise: bool) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return for each graph whether its value is the label's or better, the ratio of the two, and the gap."""
    ratio = _ratios(values, labels, maximise)
    matched = values >= labels if maximise else values <= labels
    return matched, ratio, 1.0 - ratio if maximise else values / np.maximum(labels, 1) - (labels > 0)


def _ratios(values: _Ints, reference: _Ints, maximise: bool) -> NDArray[np.float64]:
    """Return the quality of values relative to a reference: 1 as good, below 1 worse."""
    part, whole = (values, reference) if maximise else (reference, values)
    return np.where(whole == part, 1.0, part / np.maximum(whole, 1))


def _refuse_any(wrong: NDArray[np.bool_], values: _Ints, reference: _Ints, noun: str) -> None:
    if wrong.any():
        i = int(wrong.argmax())
        raise EvaluationError(
            f"a feasible solution has the value {values[i]}, but {noun} is {reference[i]}: that is wrong, or belongs "
            "to another graph"
        )


_METRICS = (
    Metric(
        "set_size", True, 0, math.inf, "Mean number of nodes of an independent set.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "cut_size", True, 0, math.inf, "Mean number of edges between the two sides.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "num_colors", False, 0, math.inf, "Mean number of colours of a proper colouring.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "cover_size", False, 0, math.inf, "Mean number of nodes of a vertex cover.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "clique_size", True, 0, math.inf, "Mean number of nodes of a clique.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "satisfied_clauses", True, 0, math.inf, "Mean number of clauses that an assignment satisfies.",
        NO_FEATURE, SolutionSums, mean_objective,
    ),
    Metric(
        "ratio", True, 0, math.inf,
        "Mean over graphs of the objective over the best known one; its inverse where small objectives are better.",
        NO_FEATURE, SolutionSums, mean_ratio,
    ),
    Metric(
        "gap", False, -math.inf, math.inf,
        "Mean over graphs of the distance of the objective from the best known one, in parts of the best known one; "
        "below 0 where better.",
        NO_FEATURE, SolutionSums, mean_gap,
    ),
    Metric(
        "matched", True, 0, 1, "Share of graphs whose objective is the best known one, or better.",
        NO_FEATURE, SolutionSums, share_matched,
    ),
    Metric(
        "bound_ratio", True, 0, 1,
        "Mean over graphs of the objective over its proved bound; its inverse where small objectives are better.",
        NO_FEATURE, SolutionSums, mean_bound_ratio,
    ),
    Metric(
        "seconds_per_graph", False, 0, math.inf, "Mean seconds spent on a graph; never the same twice.",
        NO_FEATURE, SolutionSums, seconds_per_graph, repeatable=False,
    ),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}
"""Name -> metric of this kind of task."""
