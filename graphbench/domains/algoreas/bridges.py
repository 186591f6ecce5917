"""Bridges: the edges whose removal disconnects their ends (GraphBench, 3.3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.neighbours import neighbour_lists


@kernel
def find_bridges(num_nodes: int, edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which edges are bridges.

    Depth-first search with low links (Tarjan, 1974), without recursion: the edge to a child is a bridge if nothing
    below the child reaches above it. O(n + m).

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``; parallel edges are allowed and are no bridges.

    Returns:
        ``bool[m]``.
    """
    start, neighbour, arc = neighbour_lists(num_nodes, edges)
    is_bridge = np.zeros(edges.shape[0], np.bool_)
    order = np.full(num_nodes, -1, np.int64)
    low = np.empty(num_nodes, np.int64)
    entered_by = np.full(num_nodes, -1, np.int64)
    cursor = np.empty(num_nodes, np.int64)
    path = np.empty(num_nodes, np.int64)
    visited = 0
    for root in range(num_nodes):
        if order[root] >= 0:
            continue
        path[0], depth = root, 1
        order[root] = low[root] = visited
        cursor[root] = start[root]
        visited += 1
        while depth > 0:
            node = path[depth - 1]
            if cursor[node] < start[node + 1]:
                slot = cursor[node]
                cursor[node] += 1
                other, edge = neighbour[slot], arc[slot] >> 1
                if edge == entered_by[node]:
                    continue
                if order[other] >= 0:
                    low[node] = min(low[node], order[other])
                    continue
                order[other] = low[other] = visited
                visited += 1
                entered_by[other] = edge
                cursor[other] = start[other]
                path[depth] = other
                depth += 1
            else:
                depth -= 1
                if depth > 0:
                    parent = path[depth - 1]
                    low[parent] = min(low[parent], low[node])
                    is_bridge[entered_by[node]] = low[node] > order[parent]
    return is_bridge


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> NDArray[np.uint8]:
    """Find the bridges of the graphs of a shard.

    Nothing is drawn: ``key`` and ``attempts`` are taken so that all label kernels are called alike.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``.
        num_nodes: Number of nodes of every graph.
        edge_ptr: ``int64[S + 1]``.
        edges: ``int32[E, 2]``, ``u < v``, lexicographic within a graph.

    Returns:
        ``is_bridge``, ``uint8[E]``.
    """
    is_bridge = np.empty(edges.shape[0], np.uint8)
    for s in range(indices.shape[0]):
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        graph_bridges = find_bridges(num_nodes, edges[begin:end])
        for j in range(end - begin):
            is_bridge[begin + j] = graph_bridges[j]
    return is_bridge
