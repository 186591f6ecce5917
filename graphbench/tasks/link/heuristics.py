"""Scores of candidate pairs that follow from the edges alone: no weights, no features.

The common neighbours of Liben-Nowell and Kleinberg (2003), the index of Adamic and Adar (2003), and preferential
attachment (Barabasi and Albert, 1999). Neighbours count in either direction, loops do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PAIRS_AT_ONCE = 1 << 16


def common_neighbours(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the number of common neighbours of every pair, float64 ``[P]``.

    Args:
        edges: int ``[E, 2]``.
        nodes: Number of nodes.
        pairs: int64 ``[2, P]``.
    """
    return _shared(_adjacency(edges, nodes), np.ones(nodes), pairs)


def adamic_adar(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the sum of 1 / log(degree) over the common neighbours of every pair, float64 ``[P]``."""
    adjacency = _adjacency(edges, nodes)
    degree = np.asarray(adjacency.sum(axis=1)).reshape(-1)
    weights = np.zeros(nodes)  # a common neighbour of two nodes has two neighbours or more
    np.divide(1.0, np.log(np.maximum(degree, 1)), out=weights, where=degree > 1)
    return _shared(adjacency, weights, pairs)


def preferential_attachment(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return the product of the degrees of every pair, float64 ``[P]``."""
    degree = np.asarray(_adjacency(edges, nodes).sum(axis=1), np.float64).reshape(-1)
    product: Floats = degree[pairs[0]] * degree[pairs[1]]
    return product


def reverse_arc(edges: NDArray[Any], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return 1 for every pair whose reverse is an arc, else 0, float64 ``[P]``."""
    arcs = np.unique(edges[:, 0].astype(np.int64) * nodes + edges[:, 1])
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


def _adjacency(edges: NDArray[Any], nodes: int) -> Any:
    """Return the symmetric adjacency matrix without loops, a sparse matrix of zeros and ones."""
    from scipy.sparse import csr_matrix

    kept = edges[edges[:, 0] != edges[:, 1]].astype(np.int64)
    both = np.unique(np.concatenate([kept, kept[:, ::-1]]), axis=0)
    return csr_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(nodes, nodes))


def _shared(adjacency: Any, weights: Floats, pairs: NDArray[np.int64]) -> Floats:
    """Return the sum of the weights of the common neighbours of every pair."""
    weighted = adjacency.multiply(weights[None, :]).tocsr()
    parts = [np.empty(0)]
    for first in range(0, pairs.shape[1], _PAIRS_AT_ONCE):
        sources, targets = pairs[:, first : first + _PAIRS_AT_ONCE]
        parts.append(np.asarray(weighted[sources].multiply(adjacency[targets]).sum(axis=1)).reshape(-1))
    return np.concatenate(parts)
