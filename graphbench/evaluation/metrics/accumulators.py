"""Running sums from which the metrics are computed.

Each takes any number of updates and holds counts, sums or (for rank correlation alone) the values themselves, so that
the result never depends on how the items were split into updates. Counts are exact; sums are float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from graphbench.evaluation.metrics.bootstrap import Floats, Tally, poisson_weights, tallied
from graphbench.evaluation.metrics.items import Items

HITS = (1, 3, 10, 20, 50, 100)
"""The ranks up to which an item is a hit, of the metrics ``hits_at_<k>``."""


class Accumulator(Protocol):
    """Running sums to which checked items are added."""

    def add(self, items: Items) -> None:
        """Take one update."""


class BinaryCounts:
    """True and false positives and negatives over all items."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.true_positive = self.false_positive = self.false_negative = self.true_negative = 0

    def add(self, items: Items) -> None:
        """Take one update of bool arrays."""
        hits = int(np.count_nonzero(items.truth & items.predicted))
        predicted = int(np.count_nonzero(items.predicted))
        actual = int(np.count_nonzero(items.truth))
        self.true_positive += hits
        self.false_positive += predicted - hits
        self.false_negative += actual - hits
        self.true_negative += items.truth.size - predicted - actual + hits
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        truth, predicted = items.truth, items.predicted
        flags = (truth & predicted, ~truth & predicted, truth & ~predicted, ~truth & ~predicted)
        return np.stack([items.count_per_graph(flag) for flag in flags], axis=1).astype(np.float64)

    def like(self, totals: Floats) -> Self:
        """Return such counts with other totals."""
        counts = type(self)()
        counts.true_positive, counts.false_positive, counts.false_negative, counts.true_negative = totals.tolist()
        return counts


class RightCounts:
    """Items predicted exactly, and all items."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.right = self.total = 0

    def add(self, items: Items) -> None:
        """Take one update of bool or integer arrays."""
        self.right += int(np.count_nonzero(items.truth == items.predicted))
        self.total += items.truth.size
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        right = items.truth == items.predicted
        return np.stack([items.count_per_graph(flags) for flags in (right, np.ones_like(right))], axis=1).astype(
            np.float64
        )

    def like(self, totals: Floats) -> Self:
        """Return such counts with other totals."""
        counts = type(self)()
        counts.right, counts.total = totals.tolist()
        return counts


class OutputSums:
    """The sums behind the score of an algorithm's output: hits and misses of masks, or right items."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.part = self.whole = 0
        self.of_mask = False

    def add(self, items: Items) -> None:
        """Take one update of arrays of one dtype: bool (masks) or integers (classes, pointers)."""
        truth, predicted = items.truth, items.predicted
        if truth.dtype.kind == "b":
            self.of_mask = True
            self.part += 2 * int(np.count_nonzero(truth & predicted))
            self.whole += int(np.count_nonzero(truth)) + int(np.count_nonzero(predicted))
        else:
            self.part += int(np.count_nonzero(truth == predicted))
            self.whole += truth.size
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        truth, predicted = items.truth, items.predicted
        if truth.dtype.kind == "b":
            part = 2 * items.count_per_graph(truth & predicted)
            whole = items.count_per_graph(truth) + items.count_per_graph(predicted)
        else:
            part, whole = (items.count_per_graph(flags) for flags in (truth == predicted, np.ones(truth.shape, bool)))
        return np.stack([part, whole], axis=1).astype(np.float64)

    def like(self, totals: Floats) -> Self:
        """Return such sums with other totals."""
        sums = type(self)()
        sums.of_mask = self.of_mask
        sums.part, sums.whole = totals.tolist()
        return sums

    @property
    def value(self) -> float:
        """F1 of masks (1 if nothing is or is predicted positive), or share of right items."""
        if not self.whole:
            return 1.0 if self.of_mask else 0.0
        return self.part / self.whole


class GraphRightCounts:
    """Graphs all of whose items are predicted exactly, and all graphs."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.right = self.total = 0

    def add(self, items: Items) -> None:
        """Take one update of bool or integer arrays whose items have graphs."""
        wrong = items.count_per_graph(items.truth != items.predicted)
        self.right += int(np.count_nonzero(wrong == 0))
        self.total += items.num_graphs
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        right = items.count_per_graph(items.truth != items.predicted) == 0
        return np.stack([right, np.ones(len(right))], axis=1).astype(np.float64)

    def like(self, totals: Floats) -> Self:
        """Return such counts with other totals."""
        counts = type(self)()
        counts.right, counts.total = totals.tolist()
        return counts


class GraphF1Sum:
    """Sum of the F1 scores of single graphs, and the number of graphs."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.sum = 0.0
        self.total = 0

    def add(self, items: Items) -> None:
        """Take one update of bool arrays whose items have graphs."""
        scores = _f1_of_graphs(items)
        self.sum += float(scores.sum())
        self.total += items.num_graphs
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        scores = _f1_of_graphs(items)
        return np.stack([scores, np.ones(len(scores))], axis=1)

    def like(self, totals: Floats) -> Self:
        """Return such sums with other totals."""
        sums = type(self)()
        sums.sum, sums.total = totals.tolist()
        return sums


class WithinSums:
    """Sum over graphs of how large a structure the predicted nodes contain, in parts of that of the target nodes."""

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.sum = 0.0
        self.total = 0

    def add(self, items: Items) -> None:
        """Take one update of bool arrays whose nodes have been measured."""
        self.sum += float(_ratios_within(items).sum())
        self.total += items.num_graphs
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph."""
        ratios = _ratios_within(items)
        return np.stack([ratios, np.ones(len(ratios))], axis=1)

    def like(self, totals: Floats) -> Self:
        """Return such sums with other totals."""
        sums = type(self)()
        sums.sum, sums.total = totals.tolist()
        return sums


def _ratios_within(items: Items) -> Floats:
    if items.within is None:
        raise RuntimeError("the nodes have not been measured")
    largest_predicted, largest = items.within
    return np.where(largest == 0, 1.0, largest_predicted / np.maximum(largest, 1))


def _f1_of_graphs(items: Items) -> Floats:
    doubled_hits = 2 * items.count_per_graph(items.truth & items.predicted)
    marked = items.count_per_graph(items.truth) + items.count_per_graph(items.predicted)
    return np.where(marked == 0, 1.0, doubled_hits / np.maximum(marked, 1))


class Ranked:
    """All targets and scores of masks, kept because ranks need every score at once.

    Values of single columns are those of scikit-learn's ``roc_auc_score`` and ``average_precision_score``.
    """

    tally: Tally | None = None
    keeps_samples = True

    def __init__(self) -> None:
        """Start empty."""
        self._truth: list[NDArray[np.bool_]] = []
        self._scores: list[Floats] = []
        self._sample: list[NDArray[np.int64]] = []  # of every item, counted over all updates
        self._samples = 0
        self._of_column: dict[int, tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]] = {}
        self._weights: Floats | None = None  # of every item

    def add(self, items: Items) -> None:
        """Take one update of bool targets and their scores, and keep them."""
        if items.scores is None:
            raise RuntimeError("the items have no scores")
        self._truth.append(_two_axes(items.truth))
        self._scores.append(_two_axes(items.scores))
        if items.graph is not None:
            self._sample.append(items.graph + self._samples)
            self._samples += items.num_graphs
        self._of_column.clear()
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return an entry per graph, as the numbers of the graphs are what is kept; None where they are unknown."""
        return None if items.graph is None else np.zeros((items.num_graphs, 1))

    def like(self, totals: Floats) -> Self:
        """Return the same items with the weights of one replicate, whose number ``totals`` has."""
        if self.tally is None:
            raise RuntimeError("there are no replicates without a tally")
        other = type(self)()
        other._truth, other._scores, other._of_column = self._truth, self._scores, self._of_column
        weights = poisson_weights(self.tally.seed, np.concatenate(self.tally.kept), int(totals[0]))[0]
        other._weights = weights[np.concatenate(self._sample)]
        return other

    @property
    def columns(self) -> int:
        """Number of columns of the targets."""
        return int(self._truth[0].shape[1])

    def has_both(self, column: int) -> bool:
        """Return whether a column has items of the mask and others, of some weight."""
        positive, negative = self._counts(column)
        return bool(positive.sum() > 0 and negative.sum() > 0)

    def area(self, column: int) -> float:
        """Return the area under the ROC curve of a column."""
        positive, negative = self._counts(column)
        below = np.cumsum(negative) - negative
        return float(positive @ (below + negative / 2) / (positive.sum() * negative.sum()))

    def average_precision(self, column: int) -> float:
        """Return the average precision of a column."""
        positive, negative = (counts[::-1] for counts in self._counts(column))
        hits = np.cumsum(positive)
        chosen = hits + np.cumsum(negative)
        precision = np.divide(hits, chosen, out=np.zeros_like(hits), where=chosen > 0)
        return float(positive @ precision / positive.sum())

    def _counts(self, column: int) -> tuple[Floats, Floats]:
        """Return the weight of the items of the mask, and of the others, at every score of a column, ascending."""
        if column not in self._of_column:
            scores = np.concatenate([part[:, column] for part in self._scores])
            order = np.argsort(scores, kind="stable")
            starts = np.flatnonzero(np.concatenate([[True], np.diff(scores[order]) != 0]))
            self._of_column[column] = np.concatenate([part[:, column] for part in self._truth])[order], order, starts
        truth, order, starts = self._of_column[column]
        weights = np.ones(len(order)) if self._weights is None else self._weights[order]
        return np.add.reduceat(weights * truth, starts), np.add.reduceat(weights * ~truth, starts)


class CandidateRanks:
    """Ranks of the items of a mask among the other items of their graph: links among candidates, answers among options.

    The rank of an item of the mask is 1, plus the number of other items of its graph with a higher score, plus half the
    number of those with the same score, as OGB counts. Columns are ranked apart.
    """

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.ranked = 0.0
        self.reciprocal = 0.0
        self.hits = np.zeros(len(HITS))

    def add(self, items: Items) -> None:
        """Take one update of bool targets and their scores."""
        for counts in self._counts(items):
            self.ranked += float(counts[0].sum())
            self.reciprocal += float(counts[1].sum())
            self.hits += counts[2:].sum(axis=1)
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        totals: Floats = np.sum(list(self._counts(items)), axis=0)
        return totals.T

    def like(self, totals: Floats) -> Self:
        """Return such sums with other totals."""
        sums = type(self)()
        sums.ranked, sums.reciprocal = float(totals[0]), float(totals[1])
        sums.hits = totals[2:]
        return sums

    @staticmethod
    def _counts(items: Items) -> Iterator[Floats]:
        """Yield per column the sums of ranked items, reciprocal ranks and hits, float64 ``[2 + hits, graphs]``."""
        if items.scores is None or items.graph is None:
            raise RuntimeError("the items have no scores or no graphs")
        truth, scores, graph = _two_axes(items.truth), _two_axes(items.scores), items.graph
        for column in range(truth.shape[1]):
            wanted = truth[:, column]
            ranks = ranks_among(scores[:, column], wanted, graph, items.copies)
            values = [np.ones(len(ranks)), 1 / ranks, *(ranks <= k for k in HITS)]
            yield np.stack([np.bincount(graph[wanted], weights=v, minlength=items.num_graphs) for v in values])


def ranks_among(scores: Floats, wanted: NDArray[np.bool_], group: NDArray[np.int64], copies: int = 1) -> Floats:
    """Return the rank of every wanted item among the items of its group that are not wanted, float64 ``[wanted]``.

    Args:
        scores: float64 ``[items]``; higher comes first, and items of one score share the mean of their ranks.
        wanted: bool ``[items]``.
        group: int64 ``[items]``.
        copies: Rows of every item, so many rows of other items count as one.
    """
    levels, level = np.unique(scores, return_inverse=True)
    key = group * len(levels) + level
    others = np.sort(key[~wanted])
    mine, end = key[wanted], (group[wanted] + 1) * len(levels)
    below_or_equal = np.searchsorted(others, mine, side="right")
    higher = np.searchsorted(others, end, side="left") - below_or_equal
    ties = below_or_equal - np.searchsorted(others, mine, side="left")
    return 1.0 + (higher + ties / 2) / copies


def _two_axes(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.ndim == 2 else values[:, np.newaxis]


class Confusion:
    """How often each class was predicted for each true class: int64 ``[classes, classes]``, rows true."""

    def __init__(self) -> None:
        """Start from zero."""
        self.counts: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def add(self, items: Items) -> None:
        """Take one update of class numbers below ``items.classes``."""
        size = items.classes
        pairs = np.bincount(items.truth * size + items.predicted, minlength=size * size).reshape(size, size)
        self.counts = pairs if self.counts.size == 0 else self.counts + pairs


class ErrorSums:
    """Per column: sums of absolute and squared errors, and the spread of the targets.

    The squared deviations from the mean are merged by the pairwise update of Chan, Golub and LeVeque (1983), which
    does not cancel when the mean is large. A tally holds deviations from the first target, for the same reason.
    """

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.rows = 0
        self._origin: NDArray[np.float64] | None = None
        self.absolute: NDArray[np.float64] = np.zeros(0)
        self.squared: NDArray[np.float64] = np.zeros(0)
        self.mean: NDArray[np.float64] = np.zeros(0)
        self.deviation: NDArray[np.float64] = np.zeros(0)
        self.lowest: NDArray[np.float64] = np.zeros(0)
        self.highest: NDArray[np.float64] = np.zeros(0)

    def add(self, items: Items) -> None:
        """Take one update of float64 arrays."""
        truth, error = _two_axes(items.truth), _two_axes(items.predicted) - _two_axes(items.truth)
        rows, mean = truth.shape[0], truth.mean(axis=0)
        deviation = np.square(truth - mean).sum(axis=0)
        if self.rows == 0:
            self.absolute = self.squared = self.mean = self.deviation = np.zeros(truth.shape[1])
            self.lowest, self.highest = truth.min(axis=0), truth.max(axis=0)
        total, shift = self.rows + rows, mean - self.mean
        self.absolute = self.absolute + np.abs(error).sum(axis=0)
        self.squared = self.squared + np.square(error).sum(axis=0)
        self.deviation = self.deviation + deviation + np.square(shift) * (self.rows * rows / total)
        self.mean = self.mean + shift * (rows / total)
        self.lowest = np.minimum(self.lowest, truth.min(axis=0))
        self.highest = np.maximum(self.highest, truth.max(axis=0))
        self.rows = total
        tallied(self, items, items.samples)

    def shares(self, items: Items) -> Floats | None:
        """Return the contribution of each graph; None where the graphs are unknown."""
        if items.graph is None:
            return None
        truth, error = _two_axes(items.truth), _two_axes(items.predicted) - _two_axes(items.truth)
        self._origin = truth[0].copy() if self._origin is None else self._origin
        moved = truth - self._origin
        each = np.concatenate(
            [np.ones((len(truth), 1)), np.abs(error), np.square(error), moved, np.square(moved)], axis=1
        )
        return items.sum_per_graph(each)

    def like(self, totals: Floats) -> Self:
        """Return such sums with other totals; lowest and highest targets stay."""
        sums = type(self)()
        sums.rows = totals[0]
        sums.absolute, sums.squared, moved, moved_squared = np.split(totals[1:], 4)
        sums.mean = moved / totals[0]
        sums.deviation = moved_squared - totals[0] * np.square(sums.mean)
        sums.lowest, sums.highest = self.lowest, self.highest
        return sums


class Pairs:
    """All targets and predictions, kept because ranks need every value at once."""

    def __init__(self) -> None:
        """Start empty."""
        self._truth: list[NDArray[np.float64]] = []
        self._predicted: list[NDArray[np.float64]] = []

    def add(self, items: Items) -> None:
        """Take one update of float64 arrays and keep them."""
        self._truth.append(_two_axes(items.truth))
        self._predicted.append(_two_axes(items.predicted))

    @property
    def truth(self) -> NDArray[np.float64]:
        """Targets, float64 ``[items, K]``."""
        return np.concatenate(self._truth)

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Predictions, float64 ``[items, K]``."""
        return np.concatenate(self._predicted)
