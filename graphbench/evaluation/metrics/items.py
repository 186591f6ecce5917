"""The input of accumulators: checked arrays, one row per scored item, and the parts of the samples that they select."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.sections import ScoredPart
from graphbench.core.errors import EvaluationError

_ROUNDING = 1e-6  # relative error of sums of float32 targets


@dataclass(frozen=True, slots=True)
class TargetSums:
    """Sums over the targets that were scored, which distinguish them from other targets in any order of the samples.

    Attributes:
        count: Number of values.
        total: Sum of the values.
        squares: Sum of the squares of the values.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, targets: NDArray[Any]) -> TargetSums:
        """Return the sums with further targets, of any shape and type."""
        values = targets.astype(np.float64, copy=False).ravel()
        squares = float(np.dot(values, values))
        return TargetSums(self.count + values.size, self.total + float(values.sum()), self.squares + squares)

    def agree_with(self, other: TargetSums) -> bool:
        """Return whether two sums belong to the same values, up to rounding."""
        scale = math.sqrt(max(self.squares, other.squares) * max(self.count, other.count, 1))
        return (
            self.count == other.count
            and abs(self.total - other.total) <= _ROUNDING * scale
            and math.isclose(self.squares, other.squares, rel_tol=_ROUNDING)
        )


@dataclass(frozen=True, slots=True)
class Items:
    """One update, already checked: the arrays agree in shape, are finite and hold values of the feature's type.

    Attributes:
        truth: Targets, ``[items]`` or ``[items, K]``: bool (masks), int64 (classes, pointers) or float64 (scalars);
            never a view of the caller's memory, so accumulators may keep them.
        predicted: Predictions, same shape and dtype.
        graph: int64 ``[items]``, the graph of each row, numbered 0, 1, ... without gaps; None if unknown.
        num_graphs: Number of graphs with at least one item; 0 if unknown.
        classes: Number of classes of a categorical feature, else 0.
        samples: int64 ``[num_graphs]``, the numbers of the graphs in their split; None where they follow the numbers
            of the update before.
        within: int64 ``[2, num_graphs]``, the size of the largest structure among the predicted nodes of every graph,
            and among the target nodes, by the measure of the task; None without a measure or without the graphs.
        copies: Rows of every item: 2 for undirected edges, which have a row per direction.
        scores: float64, shaped as ``predicted``: the scores of masks, higher for items that are more likely in the
            mask; None unless a metric needs them.
    """

    truth: NDArray[Any]
    predicted: NDArray[Any]
    graph: NDArray[np.int64] | None = None
    num_graphs: int = 0
    classes: int = 0
    samples: NDArray[np.int64] | None = None
    within: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None
    copies: int = 1

    def count_per_graph(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many true flags each graph holds, int64 ``[num_graphs]``; ``flags`` is shaped as ``truth``."""
        if self.graph is None:
            raise RuntimeError("the rows' graphs are unknown")
        rows = flags if flags.ndim == 1 else flags.sum(axis=1)
        return np.bincount(self.graph, weights=rows, minlength=self.num_graphs).astype(np.int64)

    def sum_per_graph(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sums of the values of each graph's rows, float64 ``[num_graphs, K]``.

        Args:
            values: ``[items]`` (K = 1) or ``[items, K]``.
        """
        if self.graph is None:
            raise RuntimeError("the rows' graphs are unknown")
        columns = values.reshape(len(values), -1).T
        sums = [np.bincount(self.graph, weights=column, minlength=self.num_graphs) for column in columns]
        return np.stack(sums, axis=1)


Parts = Mapping[str, ScoredPart]


def check_parts(parts: Parts, outputs: Sequence[Feature]) -> dict[str, ScoredPart]:
    """Return the parts, after checking that the outputs fit them.

    Raises:
        EvaluationError: If a part names something else than a scalar output of graphs, or an output lies elsewhere.
    """
    features = {f.name: f for f in outputs}
    for name, part in parts.items():
        feature = features.get(part.output)
        if feature is None:
            raise EvaluationError(f"the part {name!r} names {part.output!r}; the outputs are {', '.join(features)}")
        if feature.kind is not Kind.SCALAR or any(f.location is not Location.GRAPH for f in outputs):
            raise EvaluationError(f"the part {name!r} needs outputs of graphs, and {part.output!r} to be a scalar")
    return dict(parts)


def rows_of_parts(parts: Parts, items: Mapping[str, Items]) -> dict[str, NDArray[np.bool_]]:
    """Return the rows that belong to every part, bool ``[graphs]``.

    Args:
        parts: The parts by name.
        items: Output -> its checked items, one row per graph.
    """
    rows = {}
    for name, part in parts.items():
        size = np.abs(items[part.output].truth)
        rows[name] = (size if size.ndim == 1 else size.max(axis=1)) > part.above
    return rows


def restricted(items: Items, rows: NDArray[np.bool_]) -> Items:
    """Return the chosen rows of items of graphs."""
    count = int(np.count_nonzero(rows))
    graph = None if items.graph is None else np.arange(count)
    scores = None if items.scores is None else items.scores[rows]
    chosen = replace(items, truth=items.truth[rows], predicted=items.predicted[rows], scores=scores)
    return replace(chosen, graph=graph, num_graphs=count)
