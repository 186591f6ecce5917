"""Value of a maximum flow between two nodes, with a capacity for each direction of each edge (GraphBench, 3.3.3).

Capacities are whole multiples of a power of two that float32 holds exactly. The flow is computed on the multiples, in
integers, so its value is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import neighbour_lists
from graphbench.core.rng import below, seed

CAPACITY_STEP = 2.0**-22
_CAPACITY_BOUND = 3 * 2**22


@inner
def _set_distances_to(
    sink: int,
    source: int,
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    arc: NDArray[np.int32],
    residual: NDArray[np.int64],
    distance: NDArray[np.int64],
    queue: NDArray[np.int64],
) -> None:
    """Set the number of residual arcs to ``sink`` for all nodes nearer than ``source``, and -1 beyond."""
    distance[:] = -1
    distance[sink] = 0
    queue[0], head, tail = sink, 0, 1
    while head < tail and distance[source] < 0:
        node = queue[head]
        head += 1
        for slot in range(start[node], start[node + 1]):
            other = neighbour[slot]
            if distance[other] < 0 and residual[arc[slot] ^ 1] > 0:
                distance[other] = distance[node] + 1
                queue[tail] = other
                tail += 1


@inner
def _push_along(path: NDArray[np.int64], length: int, residual: NDArray[np.int64]) -> tuple[int, int]:
    """Saturate the path of arcs; return the amount and the position of the first arc that is full."""
    amount = residual[path[0]]
    full = 0
    for i in range(1, length):
        if residual[path[i]] < amount:
            amount = residual[path[i]]
            full = i
    for i in range(length):
        residual[path[i]] -= amount
        residual[path[i] ^ 1] += amount
    return amount, full


@kernel
def max_flow(num_nodes: int, edges: NDArray[np.int32], capacity: NDArray[np.int64], source: int, sink: int) -> int:
    """Return the value of a maximum flow from ``source`` to ``sink``, by Dinic's algorithm (1970).

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``.
        capacity: ``int64[m, 2]``, not negative: column 0 from ``edges[j, 0]`` to ``edges[j, 1]``, column 1 back.
        source: Node id.
        sink: Another node id.

    Returns:
        The value, in the unit of the capacities.

    Raises:
        ValueError: Source and sink are the same node.
    """
    if source == sink:
        raise ValueError("source and sink are the same node; pass two different nodes")
    start, neighbour, arc = neighbour_lists(num_nodes, edges)
    residual = capacity.copy().reshape(-1)
    distance = np.empty(num_nodes, np.int64)
    queue = np.empty(num_nodes, np.int64)
    cursor = np.empty(num_nodes, np.int64)
    path = np.empty(num_nodes, np.int64)
    nodes = np.empty(num_nodes + 1, np.int64)
    value = 0
    while True:
        _set_distances_to(sink, source, start, neighbour, arc, residual, distance, queue)
        if distance[source] < 0:
            return value
        for node in range(num_nodes):
            cursor[node] = start[node]
        nodes[0], depth = source, 0
        while depth >= 0:
            node = nodes[depth]
            if node == sink:
                amount, depth = _push_along(path, depth, residual)
                value += amount
            elif cursor[node] == start[node + 1]:  # a dead end: step back and past the arc that led here
                depth -= 1
                if depth >= 0:
                    cursor[nodes[depth]] += 1
            else:
                slot = cursor[node]
                if residual[arc[slot]] > 0 and distance[neighbour[slot]] == distance[node] - 1:
                    path[depth] = arc[slot]
                    depth += 1
                    nodes[depth] = neighbour[slot]
                else:
                    cursor[node] += 1


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Draw a flow problem on each graph of a shard from ``seed(key, index, attempt, 1)``, and solve it.

    Drawn first: source and sink, different, uniform; then, edge by edge and in both directions, capacities uniform on
    the multiples of 2**-22 in (0, 3).

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``.
        num_nodes: Number of nodes of every graph, at least 2.
        edge_ptr: ``int64[S + 1]``.
        edges: ``int32[E, 2]``, ``u < v``, lexicographic within a graph.

    Returns:
        ``capacity`` (``float32[E, 2]``: column 0 from u to v, column 1 from v to u), ``source`` and ``sink``
        (``int32[S]`` node ids) and ``value`` (``float32[S]``: the exact value, rounded once).

    Raises:
        ValueError: Fewer than 2 nodes.
    """
    if num_nodes < 2:
        raise ValueError("a graph of one node has no source and sink; ask for at least 2 nodes")
    num_graphs = indices.shape[0]
    capacity = np.empty((edges.shape[0], 2), np.float32)
    source = np.empty(num_graphs, np.int32)
    sink = np.empty(num_graphs, np.int32)
    value = np.empty(num_graphs, np.float32)
    for s in range(num_graphs):
        state = seed(key, indices[s], attempts[s], 1)
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        source_node = below(state, num_nodes)
        sink_node = (source_node + 1 + below(state, num_nodes - 1)) % num_nodes
        steps = np.empty((end - begin, 2), np.int64)
        for j in range(end - begin):
            for direction in range(2):
                steps[j, direction] = 1 + below(state, _CAPACITY_BOUND - 1)
                capacity[begin + j, direction] = np.float32(steps[j, direction] * CAPACITY_STEP)
        source[s], sink[s] = source_node, sink_node
        flow = max_flow(num_nodes, edges[begin:end], steps, source_node, sink_node)
        value[s] = np.float32(flow * CAPACITY_STEP)
    return capacity, source, sink, value
