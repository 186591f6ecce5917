"""The metrics by name: direction, range, meaning, the feature types they score, and how they are computed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.core.plugins import about_broken, calling_module
from graphbench.core.registry import Registry
from graphbench.evaluation.metrics.accumulators import (
    BinaryCounts,
    Confusion,
    ErrorSums,
    GraphF1Sum,
    GraphRightCounts,
    OutputSums,
    Pairs,
    RightCounts,
)
from graphbench.evaluation.metrics.judged import JudgedSums, mean_of
from graphbench.evaluation.metrics.selection import (
    SelectionSums,
    mean_closed_gap,
    mean_cost,
    mean_regret,
    share_best,
)
from graphbench.evaluation.metrics.solutions import (
    SolutionSums,
    mean_bound_ratio,
    mean_gap,
    mean_objective,
    mean_ratio,
    seconds_per_graph,
    share_matched,
)
from graphbench.evaluation.metrics.weather import WeatherSums, mean_acc, mean_relative_mse

_BINARY = frozenset({Kind.MASK, Kind.MASK_ONE})
_DISCRETE = _BINARY | {Kind.CATEGORICAL, Kind.POINTER, Kind.PERMUTATION}
_CLASSES = frozenset({Kind.CATEGORICAL})
_REAL = frozenset({Kind.SCALAR})
_TEXT = frozenset({Kind.TEXT})
_ROUNDING = 1e-9
_SOLUTION: frozenset[Kind] = frozenset()  # scores solutions of problems, not predictions of a feature
_CHOICE: frozenset[Kind] = frozenset()  # scores the choice of an algorithm, not predictions of a feature
_FORECAST: frozenset[Kind] = frozenset()  # scores fields on a grid
_ANSWER: frozenset[Kind] = frozenset()  # scores whole structures that a judge has read


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its direction and range, what it can score, and how it is computed.

    Attributes:
        name: Name in cards, scores and records.
        higher_is_better: Direction.
        lowest: Smallest possible value.
        highest: Largest possible value.
        description: What it measures, with its convention for degenerate input.
        kinds: Feature types it scores; none where it scores solutions of problems, choices of algorithms, or whole
            structures.
        accumulator: What it streams into; metrics with the same one share it.
        value: The metric of a finished accumulator.
        needs_graphs: Whether it must know which graph each item belongs to.
        squared: Whether it is a function of squared errors; models of tasks that it ranks then learn by squared errors.
        repeatable: Whether the same predictions have the same value whenever they are scored; a time has not.
    """

    name: str
    higher_is_better: bool
    lowest: float
    highest: float
    description: str
    kinds: frozenset[Kind]
    accumulator: Callable[[], Any]
    value: Callable[[Any], float]
    needs_graphs: bool = False
    squared: bool = False
    repeatable: bool = True


def _f1(counts: BinaryCounts) -> float:
    marked = 2 * counts.true_positive + counts.false_positive + counts.false_negative
    return _ratio(2 * counts.true_positive, marked)


def _precision(counts: BinaryCounts) -> float:
    return _ratio(counts.true_positive, counts.true_positive + counts.false_positive)


def _recall(counts: BinaryCounts) -> float:
    return _ratio(counts.true_positive, counts.true_positive + counts.false_negative)


def _share_right(counts: RightCounts | GraphRightCounts) -> float:
    return _ratio(counts.right, counts.total)


def _output_score(sums: OutputSums) -> float:
    return sums.value


def _graph_f1(sums: GraphF1Sum) -> float:
    return _ratio(sums.sum, sums.total)


def _macro_f1(confusion: Confusion) -> float:
    counts = confusion.counts
    marked = counts.sum(axis=0) + counts.sum(axis=1)
    seen = marked > 0
    return float(np.mean(2 * np.diag(counts)[seen] / marked[seen]))


def _mae(sums: ErrorSums) -> float:
    return float(sums.absolute.mean() / sums.rows)


def _mse(sums: ErrorSums) -> float:
    return float(sums.squared.mean() / sums.rows)


def _rmse(sums: ErrorSums) -> float:
    return math.sqrt(_mse(sums))


def _rse(sums: ErrorSums) -> float:
    _refuse_constant_targets("rse", sums.lowest, sums.highest)
    return float(np.mean(sums.squared / sums.deviation))


def _r2(sums: ErrorSums) -> float:
    _refuse_constant_targets("r2", sums.lowest, sums.highest)
    return float(np.mean(1.0 - sums.squared / sums.deviation))


def _spearman(pairs: Pairs) -> float:
    truth, predicted = pairs.truth, pairs.predicted
    _refuse_constant_targets("spearman", truth.min(axis=0), truth.max(axis=0))
    columns = [_correlation(_ranks(truth[:, j]), _ranks(predicted[:, j])) for j in range(truth.shape[1])]
    return float(np.mean(columns))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _refuse_constant_targets(name: str, lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> None:
    constant = np.flatnonzero(lowest == highest)
    if constant.size:
        column = int(constant[0])
        raise EvaluationError(
            f"{name} is undefined: all targets of column {column} equal {lowest[column]:g}; "
            "score more items or use mae or mse"
        )


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of every value, ties sharing the mean of their places; float64 ``[items]``."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2.0)[place]


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    a, b = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else 0.0


_ALL = (
    Metric(
        "score", True, 0, 1,
        "Mean over an algorithm's outputs: F1 of masks (1 if nothing is or is predicted positive), share of positions "
        "predicted exactly of all others; masked positions are left out.",
        _DISCRETE, OutputSums, _output_score,
    ),
    Metric("accuracy", True, 0, 1, "Share of items predicted exactly.", _DISCRETE, RightCounts, _share_right),
    Metric(
        "accuracy_per_graph", True, 0, 1, "Share of graphs all of whose items are predicted exactly.",
        _DISCRETE, GraphRightCounts, _share_right, needs_graphs=True,
    ),
    Metric(
        "f1", True, 0, 1,
        "F1 of the positive class, pooled over the items of all graphs; 0 if nothing is or is predicted positive.",
        _BINARY, BinaryCounts, _f1,
    ),
    Metric(
        "f1_per_graph", True, 0, 1,
        "Mean over graphs of each graph's own F1; a graph with no positives, none predicted, counts 1.",
        _BINARY, GraphF1Sum, _graph_f1, needs_graphs=True,
    ),
    Metric(
        "precision", True, 0, 1, "Share of the predicted positives that are positive; 0 if none is predicted.",
        _BINARY, BinaryCounts, _precision,
    ),
    Metric(
        "recall", True, 0, 1, "Share of the positives that are predicted; 0 if there is none.",
        _BINARY, BinaryCounts, _recall,
    ),
    Metric(
        "macro_f1", True, 0, 1, "Mean of the classes' F1 scores over the classes that occur in targets or predictions.",
        _CLASSES, Confusion, _macro_f1,
    ),
    Metric(
        "exact_match", True, 0, 1,
        "Share of texts whose last array-like object is the reference's, character for character.",
        _TEXT, RightCounts, _share_right,
    ),
    Metric("mae", False, 0, math.inf, "Mean absolute error over all values.", _REAL, ErrorSums, _mae),
    Metric(
        "mse", False, 0, math.inf,
        "Mean squared error over all values; of forecasts the sum over variables of that over all levels of each.",
        _REAL, ErrorSums, _mse, squared=True,
    ),
    Metric(
        "rmse", False, 0, math.inf, "Square root of the mean squared error.", _REAL, ErrorSums, _rmse, squared=True
    ),
    Metric(
        "r2", True, -math.inf, 1,
        "Coefficient of determination, 1 - RSE, averaged over columns; undefined for constant targets.",
        _REAL, ErrorSums, _r2, squared=True,
    ),
    Metric(
        "rse", False, 0, math.inf,
        "Relative squared error: squared errors over squared deviations of the targets from their mean, averaged over "
        "columns; undefined for constant targets.",
        _REAL, ErrorSums, _rse, squared=True,
    ),
    Metric(
        "spearman", True, -1, 1,
        "Spearman's rank correlation, ties sharing their mean rank, averaged over columns; 0 for constant predictions, "
        "undefined for constant targets.",
        _REAL, Pairs, _spearman,
    ),
    Metric(
        "set_size", True, 0, math.inf, "Mean number of nodes of an independent set.",
        _SOLUTION, SolutionSums, mean_objective,
    ),
    Metric(
        "cut_size", True, 0, math.inf, "Mean number of edges between the two sides.",
        _SOLUTION, SolutionSums, mean_objective,
    ),
    Metric(
        "num_colors", False, 0, math.inf, "Mean number of colours of a proper colouring.",
        _SOLUTION, SolutionSums, mean_objective,
    ),
    Metric(
        "ratio", True, 0, math.inf,
        "Mean over graphs of the objective over the best known one; its inverse where small objectives are better.",
        _SOLUTION, SolutionSums, mean_ratio,
    ),
    Metric(
        "gap", False, -math.inf, math.inf,
        "Mean over graphs of how far the objective is from the best known one, in parts of that; below 0 where better.",
        _SOLUTION, SolutionSums, mean_gap,
    ),
    Metric(
        "matched", True, 0, 1, "Share of graphs whose objective is the best known one, or better.",
        _SOLUTION, SolutionSums, share_matched,
    ),
    Metric(
        "bound_ratio", True, 0, 1,
        "Mean over graphs of the objective over its proved bound; its inverse where small objectives are better.",
        _SOLUTION, SolutionSums, mean_bound_ratio,
    ),
    Metric(
        "seconds_per_graph", False, 0, math.inf, "Mean seconds spent on a graph; never the same twice.",
        _SOLUTION, SolutionSums, seconds_per_graph, repeatable=False,
    ),
    Metric(
        "closed_gap", True, -math.inf, 1,
        "Share closed of the gap in mean cost between the best single algorithm on the training split (0) and the best "
        "one of each instance (1); where these are equal, 0, or below 0 for what costs more.",
        _CHOICE, SelectionSums, mean_closed_gap,
    ),
    Metric(
        "par10", False, 0, math.inf,
        "Mean cost of the chosen algorithms, overhead included; unsolved instances cost ten times the cutoff.",
        _CHOICE, SelectionSums, mean_cost,
    ),
    Metric(
        "best_share", True, 0, 1, "Share of instances on which a cheapest algorithm was chosen; ties count.",
        _CHOICE, SelectionSums, share_best,
    ),
    Metric(
        "regret", False, 0, math.inf, "Mean of what the chosen algorithms cost beyond the cheapest, overhead included.",
        _CHOICE, SelectionSums, mean_regret,
    ),
    Metric(
        "quality", True, 0, math.inf,
        "Mean over answers of what each is worth beside the reference's 100; a wrong answer is worth 0.",
        _ANSWER, JudgedSums, mean_of("quality"),
    ),
    Metric(
        "valid", True, 0, 1, "Share of answers that are well-formed, right or not.",
        _ANSWER, JudgedSums, mean_of("valid"),
    ),
    Metric("correct", True, 0, 1, "Share of answers that are right.", _ANSWER, JudgedSums, mean_of("correct")),
    Metric(
        "mean_ands", False, 0, math.inf, "Mean number of ANDs of the circuits that are right.",
        _ANSWER, JudgedSums, mean_of("mean_ands"),
    ),
    Metric(
        "mean_depth", False, 0, math.inf, "Mean number of levels of the circuits that are right.",
        _ANSWER, JudgedSums, mean_of("mean_depth"),
    ),
    Metric(
        "relative_mse", False, 0, math.inf,
        "Mean over channels of the mean squared error over that of persistence, which is 1.",
        _FORECAST, WeatherSums, mean_relative_mse, squared=True,
    ),
    Metric(
        "acc", True, -1, 1,
        "Mean over channels of the anomaly correlation: of forecast and truth minus the climatology of training, "
        "weighted by area, averaged over times.",
        _FORECAST, WeatherSums, mean_acc,
    ),
)  # fmt: skip

METRICS: Registry[Metric] = Registry("metric", EvaluationError)
for _entry in _ALL:
    METRICS.add(_entry.name, _entry, __name__)


def register_metric(metric: Metric) -> Metric:
    """Make a metric available to cards and evaluators by its name, and return it.

    Raises:
        PluginError: If another metric has the name.
    """
    METRICS.add(metric.name, metric, calling_module())
    return metric


_DEFAULTS: dict[Kind, tuple[str, ...]] = {
    Kind.MASK: ("f1", "accuracy", "f1_per_graph"),
    Kind.MASK_ONE: ("accuracy_per_graph", "f1"),
    Kind.CATEGORICAL: ("accuracy", "macro_f1"),
    Kind.POINTER: ("accuracy", "accuracy_per_graph"),
    Kind.PERMUTATION: ("accuracy", "accuracy_per_graph"),
    Kind.SCALAR: ("mae", "rmse", "r2"),
    Kind.TEXT: ("exact_match",),
}


def metric(name: str, feature: Feature | None = None) -> Metric:
    """Return the metric of that name.

    Args:
        name: Its name, e.g. ``f1``.
        feature: If given, the metric must be able to score it.

    Raises:
        EvaluationError: If there is no such metric (the nearest name is suggested) or it cannot score the feature.
    """
    if not isinstance(name, str):
        raise EvaluationError(f"a metric is named by a string, got {name!r}; use one of {', '.join(METRICS)}")
    if name not in METRICS:
        near = difflib.get_close_matches(name, METRICS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(METRICS)}"
        raise EvaluationError(f"unknown metric {name!r}; {hint}{about_broken()}")
    found = METRICS[name]
    if feature is not None and feature.kind not in found.kinds:
        able = ", ".join(m.name for m in METRICS.values() if feature.kind in m.kinds)
        raise EvaluationError(
            f"the metric {name!r} cannot score {feature.name!r}, which is a {feature.kind.value}; use one of {able}"
        )
    return found


def range_problem(name: str, value: float) -> str | None:
    """Return why a number is no score of a metric, or None; a name that is not registered takes any finite number.

    The last bits of a sum may lie beyond the range.
    """
    if not math.isfinite(value):
        return f"{name} is {value}; a score is a finite number"
    found = METRICS.get(name)
    if found is None or found.lowest - _ROUNDING <= value <= found.highest + _ROUNDING:
        return None
    return f"{name} is {value:g}, outside its range from {found.lowest:g} to {found.highest:g}"


def default_metrics(feature: Feature) -> tuple[str, tuple[str, ...]]:
    """Return the primary metric of a feature's type and the ones reported beside it."""
    primary, *also = _DEFAULTS[feature.kind]
    return primary, tuple(also)
