"""The metrics by name: direction, range, meaning, the feature types they score, and how they are computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import EvaluationError
from graphbench.core.plugins import about_broken, calling_module
from graphbench.core.registry import Registry
from graphbench.core.suggestions import closest

_ROUNDING = 1e-9
NO_FEATURE: frozenset[Kind] = frozenset()
"""The feature types of metrics that score something else than predictions of a feature, such as solutions."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its direction and range, the features that it can score, and its computation.

    Attributes:
        name: Name in cards, scores and records.
        higher_is_better: Direction.
        lowest: Smallest possible value.
        highest: Largest possible value.
        description: The measured quantity, with its convention for degenerate input.
        kinds: Feature types it scores; none where it scores solutions of problems, choices of algorithms, or whole
            structures.
        accumulator: Class of its running sums; metrics with the same accumulator share it.
        value: The metric of a finished accumulator.
        needs_graphs: Whether it must know which graph each item belongs to.
        needs_measure: Whether it is a function of the sizes that the task's measure of sets of nodes gives.
        needs_scores: Whether it ranks items by their scores (:attr:`Items.scores`), so that labels do not suffice.
        skips_undefined: Whether the mean over several outputs leaves out those for which it is undefined, as OGB does.
        ranks_within_graphs: Whether it compares the items of a graph with each other, so that a graph has several.
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
    needs_measure: bool = False
    needs_scores: bool = False
    skips_undefined: bool = False
    ranks_within_graphs: bool = False
    squared: bool = False
    repeatable: bool = True


# module -> names of the metrics that its METRICS has; a module is imported when one of its metrics is first needed
_NAMES = {
    "graphbench.evaluation.metrics.of_features": "score accuracy accuracy_per_graph f1 f1_per_graph precision "
    "recall roc_auc average_precision mrr hits_at_1 hits_at_3 hits_at_10 hits_at_20 hits_at_50 hits_at_100 "
    "macro_f1 exact_match mae mse rmse r2 rse spearman within_ratio",
    "graphbench.tasks.solve.metrics": "set_size cut_size num_colors cover_size clique_size satisfied_clauses ratio "
    "gap matched bound_ratio seconds_per_graph",
    "graphbench.tasks.select.metrics": "closed_gap par10 best_share regret",
    "graphbench.tasks.generate.metrics": "quality of_best valid correct mean_ands mean_depth met ratio_error "
    "efficiency_loss mean_devices",
    "graphbench.tasks.forecast.metrics": "relative_mse acc",
}
_BUILT_IN = {name: f"{module}:METRICS[{name}]" for module, names in _NAMES.items() for name in names.split()}

METRICS: Registry[Metric] = Registry("metric", EvaluationError, lambda: _BUILT_IN)
"""Name -> metric."""


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
        hint = closest(name, METRICS) or f"; use one of {', '.join(METRICS)}"
        raise EvaluationError(f"unknown metric {name!r}{hint}{about_broken()}")
    registered = METRICS[name]
    if feature is not None and feature.kind not in registered.kinds:
        able = ", ".join(m.name for m in METRICS.values() if feature.kind in m.kinds)
        raise EvaluationError(
            f"the metric {name!r} cannot score {feature.name!r}, which is a {feature.kind.value}; use one of {able}"
        )
    if feature is not None and feature.location is Location.GRAPH and registered.ranks_within_graphs:
        raise EvaluationError(
            f"the metric {name!r} ranks the items of a graph among each other, and {feature.name!r} has one item per "
            "graph; use roc_auc or average_precision, or make the candidates nodes or edges of a graph"
        )
    return registered


def range_problem(name: str, value: float) -> str | None:
    """Return why a number is no score of a metric, or None; a name that is not registered takes any finite number.

    The last bits of a sum may lie beyond the range.
    """
    if not math.isfinite(value):
        return f"{name} is {value}; a score is a finite number"
    registered = METRICS.get(name)
    if registered is None or registered.lowest - _ROUNDING <= value <= registered.highest + _ROUNDING:
        return None
    return f"{name} is {value:g}, outside its range from {registered.lowest:g} to {registered.highest:g}"


def default_metrics(feature: Feature) -> tuple[str, tuple[str, ...]]:
    """Return the primary metric of a feature's type and the ones reported beside it."""
    primary, *also = _DEFAULTS[feature.kind]
    return primary, tuple(also)
