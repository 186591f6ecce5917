"""Metrics of predicted features: how each is computed from sums that stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics.accumulators import (
    HITS,
    BinaryCounts,
    CandidateRanks,
    Confusion,
    ErrorSums,
    GraphF1Sum,
    GraphRightCounts,
    OutputSums,
    Pairs,
    Ranked,
    RightCounts,
    WithinSums,
)
from graphbench.evaluation.metrics.registry import Metric

_BINARY = frozenset({Kind.MASK, Kind.MASK_ONE})
_SETS = frozenset({Kind.MASK})
_DISCRETE = _BINARY | {Kind.CATEGORICAL, Kind.POINTER, Kind.PERMUTATION}
_CLASSES = frozenset({Kind.CATEGORICAL})
_REAL = frozenset({Kind.SCALAR})
_TEXT = frozenset({Kind.TEXT})


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


def _within_ratio(sums: WithinSums) -> float:
    return _ratio(sums.sum, sums.total)


def _roc_auc(ranked: Ranked) -> float:
    return _mean_of_columns("roc_auc", ranked, Ranked.area)


def _average_precision(ranked: Ranked) -> float:
    return _mean_of_columns("average_precision", ranked, Ranked.average_precision)


def _mrr(ranks: CandidateRanks) -> float:
    return _of_ranked("mrr", ranks.reciprocal, ranks)


def _hits(k: int, ranks: CandidateRanks) -> float:
    return _of_ranked(f"hits_at_{k}", float(ranks.hits[HITS.index(k)]), ranks)


def _of_ranked(name: str, part: float, ranks: CandidateRanks) -> float:
    if not ranks.ranked:
        raise EvaluationError(f"{name} is undefined: no target is 1; score graphs with items of the mask")
    return part / ranks.ranked


def _mean_of_columns(name: str, ranked: Ranked, value: Callable[[Ranked, int], float]) -> float:
    """Return the mean over the columns that have targets of both kinds."""
    columns = [j for j in range(ranked.columns) if ranked.has_both(j)]
    if not columns:
        raise EvaluationError(f"{name} is undefined: all targets are alike; score items of both kinds")
    return float(np.mean([value(ranked, j) for j in columns]))


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
    """Return the rank of every value, equal values sharing the mean of their ranks; float64 ``[items]``."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2.0)[inverse]


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    a, b = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else 0.0


_METRICS = (
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
        "Mean over graphs of the F1 of each graph; a graph with no positives, none predicted, counts 1.",
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
        "within_ratio", True, 0, math.inf,
        "Mean over graphs of the size of the largest structure, such as a clique, among the predicted nodes over that "
        "among the target nodes; predicting all nodes reaches 1.",
        _SETS, WithinSums, _within_ratio, needs_graphs=True, needs_measure=True,
    ),
    Metric(
        "roc_auc", True, 0, 1,
        "Area under the ROC curve: the probability that an item of the mask has a higher score than another one, ties "
        "counting half; averaged over columns that have both, undefined without any.",
        _SETS, Ranked, _roc_auc, needs_scores=True, skips_undefined=True,
    ),
    Metric(
        "average_precision", True, 0, 1,
        "Average precision: the precision at every score of an item, weighted by the gain of recall there; averaged "
        "over columns that have both kinds of items, undefined without any.",
        _SETS, Ranked, _average_precision, needs_scores=True, skips_undefined=True,
    ),
    Metric(
        "mrr", True, 0, 1,
        "Mean reciprocal rank: of every item of the mask the reciprocal of its rank by score among the other items of "
        "its graph, ties sharing the mean rank; undefined without any.",
        _SETS, CandidateRanks, _mrr, needs_graphs=True, needs_scores=True, skips_undefined=True,
        ranks_within_graphs=True,
    ),
    *(
        Metric(
            f"hits_at_{k}", True, 0, 1,
            f"Share of the items of the mask with a rank of at most {k} by score among the other items of their graph; "
            "undefined without any.",
            _SETS, CandidateRanks, partial(_hits, k), needs_graphs=True, needs_scores=True, skips_undefined=True,
        ranks_within_graphs=True,
        )
        for k in HITS
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
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}
"""Name -> metric of predicted features."""
