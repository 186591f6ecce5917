"""Topological order of an acyclic orientation, the available node of smallest priority first (GraphBench, 3.3.3).

The order is Kahn's (1962), with a binary heap for the available nodes: O(m + n log n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.algoreas.bits import ZERO, bit_of
from graphbench.domains.algoreas.weights import distinct_weights
from graphbench.domains.rng import seed, shuffle
from graphbench.kernels import kernel


@kernel
def orient_edges(num_nodes: int, edges: NDArray[np.int32], position: NDArray[np.int64]) -> NDArray[np.int32]:
    """Direct every edge from the smaller to the larger position.

    Args:
        num_nodes: Number of nodes n.
        edges: ``int32[m, 2]``, ``u < v``, lexicographic.
        position: ``int64[n]``, different numbers.

    Returns:
        ``int32[m, 2]`` arcs (source, target), lexicographic.
    """
    num_edges = edges.shape[0]
    arcs = np.empty((num_edges, 2), np.int32)
    next_row = np.zeros(num_nodes + 1, np.int64)
    for j in range(num_edges):
        u, v = edges[j, 0], edges[j, 1]
        next_row[(u if position[u] < position[v] else v) + 1] += 1
    for node in range(num_nodes):
        next_row[node + 1] += next_row[node]
    # A stable counting sort by source is enough: at one node, edges to smaller ids come first, in ascending order.
    for j in range(num_edges):
        u, v = edges[j, 0], edges[j, 1]
        source, target = (u, v) if position[u] < position[v] else (v, u)
        row = next_row[source]
        next_row[source] = row + 1
        arcs[row, 0], arcs[row, 1] = source, target
    return arcs


@kernel
def _push(heap: NDArray[np.int64], size: int, node: int, priority: NDArray[np.float32]) -> None:
    """Add ``node`` to the heap of ``size`` nodes."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if priority[heap[parent]] <= priority[node]:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = node


@kernel
def _pop(heap: NDArray[np.int64], size: int, priority: NDArray[np.float32]) -> int:
    """Remove and return the node of smallest priority of the heap of ``size`` nodes."""
    smallest = int(heap[0])
    last = heap[size - 1]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and priority[heap[child + 1]] < priority[heap[child]]:
            child += 1
        if priority[last] <= priority[heap[child]]:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = last
    return smallest


@kernel
def _small_ranks(num_nodes: int, arcs: NDArray[np.int32], priority: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return what ``topological_ranks`` returns, for at most 64 nodes: one word of predecessors per node.

    A graph this small has no list of neighbours and no heap: the first available node in order of priority is found
    by looking. Nodes on a cycle get the rank -1.
    """
    waiting_for = np.zeros(num_nodes, np.uint64)
    for j in range(arcs.shape[0]):
        waiting_for[arcs[j, 1]] |= bit_of(arcs[j, 0])
    queue = np.empty(num_nodes, np.int64)  # by priority
    for node in range(num_nodes):
        place = node
        while place > 0 and priority[queue[place - 1]] > priority[node]:
            queue[place] = queue[place - 1]
            place -= 1
        queue[place] = node
    rank = np.full(num_nodes, -1, np.int64)
    taken = ZERO
    left = num_nodes
    for position in range(num_nodes):
        for place in range(left):
            node = queue[place]
            if waiting_for[node] & ~taken == ZERO:
                break
        else:
            return rank
        rank[node] = position
        taken |= bit_of(node)
        left -= 1
        for later in range(place, left):
            queue[later] = queue[later + 1]
    return rank


@kernel
def topological_ranks(num_nodes: int, arcs: NDArray[np.int32], priority: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return each node's place in the order that always takes the available node of smallest priority.

    A node is available when all its predecessors are taken.

    Args:
        num_nodes: Number of nodes n.
        arcs: ``int32[m, 2]`` arcs (source, target), sorted by source.
        priority: ``float32[n]``, different numbers.

    Returns:
        ``int64[n]``, a permutation of 0 .. n-1.

    Raises:
        ValueError: The arcs close a cycle.
    """
    if num_nodes <= 64:
        small = _small_ranks(num_nodes, arcs, priority)
        if small.min() < 0:
            raise ValueError("the arcs close a cycle, so there is no topological order; pass an acyclic graph")
        return small
    first = np.zeros(num_nodes + 1, np.int64)
    waiting_for = np.zeros(num_nodes, np.int64)
    for j in range(arcs.shape[0]):
        first[arcs[j, 0] + 1] += 1
        waiting_for[arcs[j, 1]] += 1
    for node in range(num_nodes):
        first[node + 1] += first[node]
    heap = np.empty(num_nodes, np.int64)
    size = 0
    for node in range(num_nodes):
        if waiting_for[node] == 0:
            _push(heap, size, node, priority)
            size += 1
    rank = np.empty(num_nodes, np.int64)
    taken = 0
    while size > 0:
        node = _pop(heap, size, priority)
        size -= 1
        rank[node] = taken
        taken += 1
        for j in range(first[node], first[node + 1]):
            target = arcs[j, 1]
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                _push(heap, size, target, priority)
                size += 1
    if taken < num_nodes:
        raise ValueError("the arcs close a cycle, so there is no topological order; pass an acyclic graph")
    return rank


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Orient, prioritise and order the graphs of a shard, each from ``seed(key, index, attempt, 1)``.

    Drawn first: a uniform permutation of the nodes that orients the edges; then priorities, different, uniform on the
    multiples of 2**-24 in (0, 1).

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``.
        num_nodes: Number of nodes n of every graph.
        edge_ptr: ``int64[S + 1]``.
        edges: ``int32[E, 2]``, ``u < v``, lexicographic within a graph.

    Returns:
        ``arcs`` (``int32[E, 2]``, lexicographic within a graph), ``priority`` (``float32[S * n]``) and ``rank``
        (``float32[S * n]``: place / (n - 1), 0 for n = 1).
    """
    num_graphs = indices.shape[0]
    arcs = np.empty((edges.shape[0], 2), np.int32)
    priority = np.empty(num_graphs * num_nodes, np.float32)
    rank = np.empty(num_graphs * num_nodes, np.float32)
    last = max(num_nodes - 1, 1)
    position = np.empty(num_nodes, np.int64)
    for s in range(num_graphs):
        state = seed(key, indices[s], attempts[s], 1)
        for node in range(num_nodes):
            position[node] = node
        shuffle(state, position)
        begin, at = edge_ptr[s], s * num_nodes
        own_arcs = orient_edges(num_nodes, edges[begin : edge_ptr[s + 1]], position)
        own_priority = distinct_weights(state, num_nodes, 1.0)
        own_rank = topological_ranks(num_nodes, own_arcs, own_priority)
        for j in range(own_arcs.shape[0]):
            arcs[begin + j, 0], arcs[begin + j, 1] = own_arcs[j, 0], own_arcs[j, 1]
        for node in range(num_nodes):
            priority[at + node] = own_priority[node]
            rank[at + node] = np.float32(own_rank[node] / last)
    return arcs, priority, rank
