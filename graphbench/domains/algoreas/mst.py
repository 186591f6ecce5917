"""Minimum spanning tree of a graph with distinct random weights (GraphBench, 3.3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.neighbours import neighbour_lists
from graphbench.core.rng import seed
from graphbench.domains.algoreas.weights import distinct_weights

WEIGHT_SCALE = 10.0


@kernel
def minimum_spanning_tree(num_nodes: int, edges: NDArray[np.int32], weight: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return a mask of the edges of the minimum spanning tree (of a forest, if the graph is not connected).

    Prim's algorithm (1957) with an array of the nodes outside the tree: O(n**2 + m), for these dense graphs faster
    than sorting the edges. Of edges of equal weight the one stored first is preferred, as in Kruskal's algorithm with
    a stable sort.

    Args:
        num_nodes: Number of nodes n.
        edges: ``int32[m, 2]``, ``u < v``, lexicographic.
        weight: ``float32[m]`` (any real type), finite.

    Returns:
        ``bool[m]``.
    """
    start, neighbour, arc = neighbour_lists(num_nodes, edges)
    in_tree = np.zeros(edges.shape[0], np.bool_)
    outside = np.empty(num_nodes, np.int64)
    link = np.empty(num_nodes, np.int64)  # best edge to the tree, -1 for none so far, -2 for nodes in the tree
    cost = np.empty(num_nodes, np.float64)
    for node in range(num_nodes):
        outside[node], link[node], cost[node] = node, -1, np.inf
    for left in range(num_nodes, 0, -1):
        position = 0
        for i in range(1, left):
            node, best = outside[i], outside[position]
            if cost[node] < cost[best] or (cost[node] == cost[best] and link[node] < link[best]):
                position = i
        node = outside[position]
        outside[position] = outside[left - 1]
        if link[node] >= 0:
            in_tree[link[node]] = True
        link[node] = -2
        for slot in range(start[node], start[node + 1]):
            other, edge = neighbour[slot], arc[slot] >> 1
            if link[other] == -2:
                continue
            if weight[edge] < cost[other] or (weight[edge] == cost[other] and edge < link[other]):
                link[other], cost[other] = edge, weight[edge]
    return in_tree


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Weight the graphs of a shard, each from ``seed(key, index, attempt, 1)``, and find their spanning trees.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``.
        num_nodes: Number of nodes of every graph.
        edge_ptr: ``int64[S + 1]``.
        edges: ``int32[E, 2]``, ``u < v``, lexicographic within a graph.

    Returns:
        ``weight`` (``float32[E]``, uniform on the multiples of 2**-20 in (0, 10), different within a graph, so the
        tree is unique) and ``in_tree`` (``uint8[E]``).
    """
    weight = np.empty(edges.shape[0], np.float32)
    in_tree = np.empty(edges.shape[0], np.uint8)
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], 1)
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        graph_weight = distinct_weights(state, end - begin, WEIGHT_SCALE)
        graph_tree = minimum_spanning_tree(num_nodes, edges[begin:end], graph_weight)
        for j in range(end - begin):
            weight[begin + j] = graph_weight[j]
            in_tree[begin + j] = graph_tree[j]
    return weight, in_tree
