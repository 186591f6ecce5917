"""Neighbour lists of a stored undirected graph, inside compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel


@kernel
def neighbour_lists(
    num_nodes: int, edges: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the neighbours of every node in compressed form.

    Stored edge ``j`` joining ``u = edges[j, 0]`` and ``v = edges[j, 1]`` stands for the arcs ``2j`` (u to v) and
    ``2j + 1`` (v to u): the order in which batches hold them. So ``arc >> 1`` is the edge and ``arc ^ 1`` the reverse.

    Args:
        num_nodes: Number of nodes n.
        edges: ``int32[m, 2]``. Where they are sorted, with ``u < v``, neighbours come in ascending order.

    Returns:
        ``start`` (``int32[n + 1]``), ``neighbour`` and ``arc`` (both ``int32[2m]``): node ``u`` has the neighbours
        ``neighbour[start[u]:start[u + 1]]``, reached over the arcs ``arc[start[u]:start[u + 1]]``.
    """
    num_edges = edges.shape[0]
    start = np.zeros(num_nodes + 1, np.int32)
    for j in range(num_edges):
        start[edges[j, 0]] += 1
        start[edges[j, 1]] += 1
    total = 0
    for node in range(num_nodes + 1):
        degree = start[node]
        start[node] = total
        total += degree
    neighbour = np.empty(2 * num_edges, np.int32)
    arc = np.empty(2 * num_edges, np.int32)
    # Filling moves start[u] to the end of its range; a shift by one node afterwards undoes it.
    for j in range(num_edges):
        u, v = edges[j, 0], edges[j, 1]
        neighbour[start[u]], arc[start[u]] = v, 2 * j
        start[u] += 1
        neighbour[start[v]], arc[start[v]] = u, 2 * j + 1
        start[v] += 1
    for node in range(num_nodes, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0
    return start, neighbour, arc
