"""Minimum Steiner tree of three terminals (GraphBench, 3.3.3).

With three terminals an optimal tree is three shortest paths that meet in one node (Dreyfus and Wagner, 1971, for
three terminals), so trying every meeting node gives the true optimum, not an approximation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import neighbour_lists
from graphbench.core.rng import below, seed
from graphbench.domains.algoreas.weights import distinct_weights

NUM_TERMINALS = 3
WEIGHT_SCALE = 10.0


@inner
def shortest_distances(
    source: int,
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    arc: NDArray[np.int32],
    weight: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Return the distances from ``source``, ``float64[n]``, infinite where there is no path (Dijkstra, 1959)."""
    num_nodes = start.shape[0] - 1
    distance = np.full(num_nodes, np.inf)
    distance[source] = 0.0
    outside = np.empty(num_nodes, np.int64)
    for node in range(num_nodes):
        outside[node] = node
    for left in range(num_nodes, 0, -1):
        position = 0
        nearest = distance[outside[0]]
        for i in range(1, left):
            if distance[outside[i]] < nearest:
                position = i
                nearest = distance[outside[i]]
        node = outside[position]
        outside[position] = outside[left - 1]
        for slot in range(start[node], start[node + 1]):
            through = nearest + np.float64(weight[arc[slot] >> 1])
            if through < distance[neighbour[slot]]:
                distance[neighbour[slot]] = through
    return distance


@inner
def slot_to_root(
    node: int,
    distance: NDArray[np.float64],
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    arc: NDArray[np.int32],
    weight: NDArray[np.float32],
) -> int:
    """Return the slot of the first neighbour on a shortest path from the root of ``distance`` to ``node``."""
    for slot in range(start[node], start[node + 1]):
        if distance[neighbour[slot]] + np.float64(weight[arc[slot] >> 1]) == distance[node]:
            return slot
    return -1


@kernel
def steiner_tree(
    num_nodes: int, edges: NDArray[np.int32], weight: NDArray[np.float32], terminals: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the edges of a minimum tree that contains the three terminals.

    All leaves of the tree are terminals. Distances are float64 sums of the weights. Ties: of equally good meeting nodes
    the smallest id is taken, and every path from it follows, backwards from its terminal, the smallest neighbour on a
    shortest path. Such paths form a tree; the part of it above the first branching is cut off.

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``, ``u < v``, lexicographic.
        weight: ``float32[m]`` (any real type), positive.
        terminals: ``int64[3]`` node ids.

    Returns:
        ``bool[m]``.

    Raises:
        ValueError: No path joins the terminals.
    """
    start, neighbour, arc = neighbour_lists(num_nodes, edges)
    total = np.zeros(num_nodes)
    for terminal in terminals:
        total += shortest_distances(terminal, start, neighbour, arc, weight)
    meeting = 0
    for node in range(num_nodes):
        if total[node] < total[meeting]:
            meeting = node
    if total[meeting] == np.inf:
        raise ValueError("no path joins the terminals; pass a connected graph")
    distance = shortest_distances(meeting, start, neighbour, arc, weight)
    paths_over = np.zeros(edges.shape[0], np.int8)
    for terminal in terminals:
        node = int(terminal)
        while node != meeting:
            slot = slot_to_root(node, distance, start, neighbour, arc, weight)
            paths_over[arc[slot] >> 1] += 1
            node = int(neighbour[slot])
    # An edge of all three paths lies above the branching: the rest joins the terminals without it.
    return (paths_over > 0) & (paths_over < NUM_TERMINALS)


@inner
def _draw_terminals(state: NDArray[np.uint64], num_nodes: int) -> NDArray[np.int64]:
    """Return ``int64[3]`` different nodes, uniform."""
    terminals = np.empty(NUM_TERMINALS, np.int64)
    drawn = 0
    while drawn < NUM_TERMINALS:
        node = below(state, num_nodes)
        fresh = True
        for i in range(drawn):
            fresh &= terminals[i] != node
        if fresh:
            terminals[drawn] = node
            drawn += 1
    return terminals


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw weights and terminals for a shard, each graph from ``seed(key, index, attempt, 1)``, and find the trees.

    Drawn first: the three terminals, different, uniform; then weights, uniform on the multiples of 2**-20 in (0, 10),
    different within a graph. Sums of weights are exact in float64.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``.
        num_nodes: Number of nodes n of every graph, at least 3.
        edge_ptr: ``int64[S + 1]``.
        edges: ``int32[E, 2]``, ``u < v``, lexicographic within a graph; graphs are connected.

    Returns:
        ``weight`` (``float32[E]``), ``is_terminal`` (``uint8[S * n]``) and ``in_tree`` (``uint8[E]``).

    Raises:
        ValueError: Fewer than 3 nodes, or a graph in which the terminals are not connected.
    """
    if num_nodes < NUM_TERMINALS:
        raise ValueError("a graph of fewer than 3 nodes has no three terminals; ask for more nodes")
    weight = np.empty(edges.shape[0], np.float32)
    in_tree = np.empty(edges.shape[0], np.uint8)
    is_terminal = np.zeros(indices.shape[0] * num_nodes, np.uint8)
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], 1)
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        terminals = _draw_terminals(state, num_nodes)
        graph_weight = distinct_weights(state, end - begin, WEIGHT_SCALE)
        graph_tree = steiner_tree(num_nodes, edges[begin:end], graph_weight, terminals)
        for terminal in terminals:
            is_terminal[s * num_nodes + terminal] = 1
        for j in range(end - begin):
            weight[begin + j] = graph_weight[j]
            in_tree[begin + j] = graph_tree[j]
    return weight, is_terminal, in_tree
