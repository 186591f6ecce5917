"""Neighbour lists of graphs in compressed form, for compiled kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel


class Neighbours(NamedTuple):
    """Neighbour lists: node ``v`` has the rows ``first[v]`` to ``first[v + 1] - 1``, in the order of the arcs.

    Attributes:
        first: int64 ``[n + 1]``.
        node: int32 ``[2 m]``, the neighbour.
        arc: int32 ``[2 m]``, the number of the arc that leads to the neighbour.
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    arc: NDArray[np.int32]


@kernel
def neighbour_lists(num_nodes: int, edges: NDArray[np.int32]) -> Neighbours:
    """Return the neighbours of every node of an undirected graph.

    Stored edge ``j`` joining ``u = edges[j, 0]`` and ``v = edges[j, 1]`` stands for the arcs ``2j`` (u to v) and
    ``2j + 1`` (v to u): the order in which batches hold them. So ``arc >> 1`` is the edge and ``arc ^ 1`` the reverse.

    Args:
        num_nodes: Number of nodes n.
        edges: int32 ``[m, 2]``. If the edges are sorted, with ``u < v``, neighbours come in ascending order.
    """
    first = np.zeros(num_nodes + 1, np.int64)
    for j in range(edges.shape[0]):
        first[edges[j, 0]] += 1
        first[edges[j, 1]] += 1
    _set_ends(first)
    node, arc = np.empty(2 * edges.shape[0], np.int32), np.empty(2 * edges.shape[0], np.int32)
    for j in range(edges.shape[0] - 1, -1, -1):
        u, v = edges[j, 0], edges[j, 1]
        first[v] -= 1
        node[first[v]], arc[first[v]] = u, 2 * j + 1
        first[u] -= 1
        node[first[u]], arc[first[u]] = v, 2 * j
    return Neighbours(first, node, arc)


@kernel
def arc_lists(num_nodes: int, source: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the targets of the arcs that leave each node of a directed graph.

    Args:
        num_nodes: Number of nodes n.
        source: int ``[A]``, the nodes that the arcs leave.
        target: int ``[A]``, the nodes that the arcs lead to.

    Returns:
        ``first`` int64 ``[n + 1]`` and ``node`` ``[A]`` of the type of ``target``: node ``v`` has the targets
        ``node[first[v]:first[v + 1]]``, in the order of the arcs.
    """
    first = np.zeros(num_nodes + 1, np.int64)
    for v in source:
        first[v] += 1
    _set_ends(first)
    node = np.empty(source.shape[0], target.dtype)
    for j in range(source.shape[0] - 1, -1, -1):
        first[source[j]] -= 1
        node[first[source[j]]] = target[j]
    return first, node


@inner
def _set_ends(first: NDArray[np.int64]) -> None:
    """Turn the number of rows of each node into the end of its rows; filling from the last row then finds the begin."""
    total = 0
    for v in range(first.shape[0]):
        total += first[v]
        first[v] = total


@kernel
def first_foreign_arc(source: NDArray[np.int64], target: NDArray[np.int64], ptr: NDArray[np.int64]) -> int:
    """Return the number of the first arc that names no node or joins two graphs; -1 without such an arc.

    Args:
        source: int64 [E].
        target: int64 [E].
        ptr: int64 [B + 1], the first node of each graph, rising from 0.
    """
    nodes = ptr[-1]
    graph = np.empty(nodes, np.int64)
    for g in range(ptr.size - 1):
        graph[ptr[g] : ptr[g + 1]] = g
    for a in range(source.size):
        u, v = source[a], target[a]
        if u < 0 or v < 0 or u >= nodes or v >= nodes or graph[u] != graph[v]:
            return a
    return -1
