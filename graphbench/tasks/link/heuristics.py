"""Scores of candidate pairs that follow from the edges alone: no weights, no features.

The common neighbours of Liben-Nowell and Kleinberg (2003), the index of Adamic and Adar (2003), and preferential
attachment (Barabasi and Albert, 1999). Neighbours count in either direction, loops do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.ragged import distinct_values

Floats = NDArray[np.float64]


def common_neighbours(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the number of common neighbours of every pair, float64 ``[P]``.

    Args:
        edges: int ``[E, 2]``.
        nodes: Number of nodes.
        pairs: int64 ``[2, P]``; pairs of one source that follow each other are fast.
    """
    starts, ends = _neighbours(edges, nodes)
    return _shared_weights(starts, ends, np.ones(nodes), pairs)


def adamic_adar(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the sum of 1 / log(degree) over the common neighbours of every pair, float64 ``[P]``."""
    starts, ends = _neighbours(edges, nodes)
    degree = np.diff(starts)
    weights = np.zeros(nodes)  # a common neighbour of two nodes has two neighbours or more
    np.divide(1.0, np.log(np.maximum(degree, 1)), out=weights, where=degree > 1)
    return _shared_weights(starts, ends, weights, pairs)


def preferential_attachment(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the product of the degrees of every pair, float64 ``[P]``."""
    starts, _ = _neighbours(edges, nodes)
    degree = np.diff(starts).astype(np.float64)
    product: Floats = degree[pairs[0]] * degree[pairs[1]]
    return product


def reverse_arc(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return 1 for every pair whose reverse is an arc, else 0, float64 ``[P]``."""
    arcs = distinct_values(edges[:, 0].astype(np.int64) * nodes + edges[:, 1])
    reverse = pairs[1] * nodes + pairs[0]
    place = np.searchsorted(arcs, reverse).clip(max=max(len(arcs) - 1, 0))
    found: Floats = (arcs[place] == reverse).astype(np.float64) if len(arcs) else np.zeros(pairs.shape[1])
    return found


HEURISTICS: Mapping[str, Callable[[NDArray[Any], int, NDArray[np.int64]], Floats]] = {
    "common_neighbours": common_neighbours,
    "adamic_adar": adamic_adar,
    "preferential_attachment": preferential_attachment,
}
"""Name -> the function that scores pairs."""

OF_ARCS: Mapping[str, Callable[[NDArray[Any], int, NDArray[np.int64]], Floats]] = {"reverse_arc": reverse_arc}
"""Name -> the function that scores pairs, for directed graphs."""


def _neighbours(edges: NDArray[Any], nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the neighbours of all nodes without loops: offsets int64 ``[nodes + 1]``, and rising lists of numbers."""
    kept = edges[edges[:, 0] != edges[:, 1]].astype(np.int64)
    keys = distinct_values(np.concatenate([kept[:, 0] * nodes + kept[:, 1], kept[:, 1] * nodes + kept[:, 0]]))
    rows, ends = np.divmod(keys, nodes)
    return np.searchsorted(rows, np.arange(nodes + 1)).astype(np.int64), ends


@kernel
def _shared_weights(
    starts: NDArray[np.int64], ends: NDArray[np.int64], weights: Floats, pairs: NDArray[np.int64]
) -> Floats:
    """Return the sum of the weights of the common neighbours of every pair."""
    total = np.zeros(pairs.shape[1])
    seen = np.full(len(weights), -1, np.int64)  # the last source that a node is a neighbour of
    for p in range(pairs.shape[1]):
        source, target = pairs[0, p], pairs[1, p]
        if p == 0 or source != pairs[0, p - 1]:
            for k in range(starts[source], starts[source + 1]):
                seen[ends[k]] = source
        for k in range(starts[target], starts[target + 1]):
            if seen[ends[k]] == source:
                total[p] += weights[ends[k]]
    return total
