"""Neighbour lists of an undirected graph, for compiled kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel


class Neighbours(NamedTuple):
    """Neighbour lists: node ``v`` has rows ``first[v]`` to ``first[v + 1] - 1``, sorted by neighbour."""

    first: NDArray[np.int64]  # [n + 1]
    node: NDArray[np.int32]  # [2 m] the neighbour
    edge: NDArray[np.int32]  # [2 m] the row of the edge in the list of edges


@kernel
def neighbour_lists(num_nodes: int, edges: NDArray[np.int32]) -> Neighbours:
    """Return the neighbour lists of the edges ``int32[m, 2]``, each listed once, ``u < v``, sorted."""
    first = np.zeros(num_nodes + 2, np.int64)
    for e in range(edges.shape[0]):
        first[edges[e, 0] + 2] += 1
        first[edges[e, 1] + 2] += 1
    for v in range(num_nodes):
        first[v + 2] += first[v + 1]
    node = np.empty(2 * edges.shape[0], np.int32)
    edge = np.empty(2 * edges.shape[0], np.int32)
    for larger in (1, 0):  # a node meets its smaller neighbours first: sorted edges give sorted lists
        for e in range(edges.shape[0]):
            v = edges[e, larger]
            node[first[v + 1]], edge[first[v + 1]] = edges[e, 1 - larger], e
            first[v + 1] += 1
    return Neighbours(first[: num_nodes + 1].copy(), node, edge)
