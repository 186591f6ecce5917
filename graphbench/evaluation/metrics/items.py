"""The input of accumulators: checked arrays, one row per scored item."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
            never the caller's own memory, so accumulators may keep them.
        predicted: Predictions, same shape and dtype.
        graph: int64 ``[items]``, the graph of each row, numbered 0, 1, ... without gaps; None if unknown.
        num_graphs: Number of graphs with at least one item; 0 if unknown.
        classes: Number of classes of a categorical feature, else 0.
        samples: int64 ``[num_graphs]``, the numbers of the graphs in their split; None where they follow the numbers
            of the update before.
    """

    truth: NDArray[Any]
    predicted: NDArray[Any]
    graph: NDArray[np.int64] | None = None
    num_graphs: int = 0
    classes: int = 0
    samples: NDArray[np.int64] | None = None

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
