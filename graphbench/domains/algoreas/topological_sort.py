"""Topological order of an acyclic orientation, the available node of smallest priority first (GraphBench, 3.3.3).

The order is Kahn's (1962), with a binary heap for the available nodes: O(m + n log n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import seed, shuffle
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit
from graphbench.domains.algoreas.weights import distinct_weights


@kernel
def orient_edges(
    edges: NDArray[np.int32], position: NDArray[np.int64], arcs: NDArray[np.int32], row_end: NDArray[np.int64]
) -> None:
    """Direct every edge from the smaller to the larger position.

    Args:
        edges: ``int32[m, 2]``, ``u < v``, lexicographic.
        position: ``int64[n]``, different numbers.
        arcs: ``int32[m, 2]``, overwritten with the arcs (source, target), lexicographic.
        row_end: ``int64[n]``, overwritten: the arcs of source ``u`` end before ``arcs[row_end[u]]``.
    """
    row_end[:] = 0
    for j in range(edges.shape[0]):
        u, v = edges[j, 0], edges[j, 1]
        row_end[u if position[u] < position[v] else v] += 1
    total = 0
    for node in range(position.shape[0]):
        degree = row_end[node]
        row_end[node] = total
        total += degree
    # A stable counting sort by source is enough: at one node, edges to smaller ids come first, in ascending order.
    for j in range(edges.shape[0]):
        u, v = edges[j, 0], edges[j, 1]
        source, target = (u, v) if position[u] < position[v] else (v, u)
        row = row_end[source]
        row_end[source] = row + 1
        arcs[row, 0], arcs[row, 1] = source, target


@inner
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


@inner
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


@inner
def _small_ranks(
    arcs: NDArray[np.int32],
    row_end: NDArray[np.int64],
    waiting_for: NDArray[np.int64],
    priority: NDArray[np.float32],
    rank: NDArray[np.int64],
    by_priority: NDArray[np.int64],
) -> int:
    """Fill ``rank`` for at most 64 nodes and return the number of nodes reached.

    The available nodes are the bits of one word, in order of priority, so that the next one is its lowest bit.
    """
    num_nodes = rank.shape[0]
    for node in range(num_nodes):
        smaller = 0
        for other in range(num_nodes):
            smaller += 1 if priority[other] < priority[node] else 0
        rank[node] = smaller  # the node's bit, until it is taken
        by_priority[smaller] = node
    available = ZERO
    for node in range(num_nodes):
        if waiting_for[node] == 0:
            available |= bit_of(rank[node])
    taken = 0
    while available != ZERO:
        node = by_priority[lowest_bit(available)]
        available &= available - ONE
        rank[node] = taken
        taken += 1
        for j in range(row_end[node - 1] if node > 0 else 0, row_end[node]):
            target = arcs[j, 1]
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                available |= bit_of(rank[target])
    return taken


@inner
def _large_ranks(
    arcs: NDArray[np.int32],
    row_end: NDArray[np.int64],
    waiting_for: NDArray[np.int64],
    priority: NDArray[np.float32],
    rank: NDArray[np.int64],
    heap: NDArray[np.int64],
) -> int:
    """Fill ``rank`` and return the number of nodes reached."""
    size = 0
    for node in range(rank.shape[0]):
        if waiting_for[node] == 0:
            _push(heap, size, node, priority)
            size += 1
    taken = 0
    while size > 0:
        node = _pop(heap, size, priority)
        size -= 1
        rank[node] = taken
        taken += 1
        for j in range(row_end[node - 1] if node > 0 else 0, row_end[node]):
            target = arcs[j, 1]
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                _push(heap, size, target, priority)
                size += 1
    return taken


@kernel
def topological_ranks(
    arcs: NDArray[np.int32],
    row_end: NDArray[np.int64],
    priority: NDArray[np.float32],
    rank: NDArray[np.int64],
    scratch: NDArray[np.int64],
) -> None:
    """Find each node's place in the order that always takes the available node of smallest priority.

    A node is available when all its predecessors are taken.

    Args:
        arcs: ``int32[m, 2]`` arcs (source, target), sorted by source.
        row_end: ``int64[n]``: the arcs of source ``u`` end before ``arcs[row_end[u]]``.
        priority: ``float32[n]``, different numbers.
        rank: ``int64[n]``, overwritten with a permutation of 0 .. n-1.
        scratch: ``int64[2, n]``.

    Raises:
        ValueError: The arcs close a cycle.
    """
    waiting_for = scratch[0]
    waiting_for[:] = 0
    for j in range(arcs.shape[0]):
        waiting_for[arcs[j, 1]] += 1
    if rank.shape[0] <= 64:
        taken = _small_ranks(arcs, row_end, waiting_for, priority, rank, scratch[1])
    else:
        taken = _large_ranks(arcs, row_end, waiting_for, priority, rank, scratch[1])
    if taken < rank.shape[0]:
        raise ValueError("the arcs close a cycle, so there is no topological order; pass an acyclic graph")


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
    row_end = np.empty(num_nodes, np.int64)
    graph_rank = np.empty(num_nodes, np.int64)
    scratch = np.empty((2, num_nodes), np.int64)
    for s in range(num_graphs):
        state = seed(key, indices[s], attempts[s], 1)
        for node in range(num_nodes):
            position[node] = node
        shuffle(state, position)
        graph_arcs, at = arcs[edge_ptr[s] : edge_ptr[s + 1]], s * num_nodes
        orient_edges(edges[edge_ptr[s] : edge_ptr[s + 1]], position, graph_arcs, row_end)
        graph_priority = distinct_weights(state, num_nodes, 1.0)
        topological_ranks(graph_arcs, row_end, graph_priority, graph_rank, scratch)
        for node in range(num_nodes):
            priority[at + node] = graph_priority[node]
            rank[at + node] = np.float32(graph_rank[node] / last)
    return arcs, priority, rank
