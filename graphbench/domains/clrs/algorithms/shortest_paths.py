"""Shortest paths (Cormen et al., chapters 24 and 25).

Of several paths of equal length, an algorithm keeps the first one that it finds. Nodes that are not reached keep
pointing to themselves, with distance 0; a mask marks the nodes that are reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.depth_first import (
    BLACK,
    GREY,
    NodeColor,
    Walk,
    acyclic_graph,
    find_white,
    pop,
    push,
    push_root,
)
from graphbench.domains.clrs.algorithms.spanning_trees import smallest_in_queue
from graphbench.domains.clrs.arguments import (
    ArgumentError,
    Instances,
    Prepared,
    directed_graph,
    directed_graph_with_source,
)
from graphbench.domains.clrs.recording import (
    EdgeMask,
    EdgePointer,
    EdgeScalar,
    GraphMask,
    Log,
    NodeMask,
    NodeMaskOne,
    NodePointer,
    NodeScalar,
    record,
)

_GRAPH = "pos:node/scalar, A:edge/scalar, adj:edge/mask"
_GRAPH_AND_SOURCE = "pos:node/scalar, s:node/mask_one, A:edge/scalar, adj:edge/mask"


def graph_with_distances(A: Instances, s: Instances) -> Prepared:
    """Prepare a graph ``A`` and a start node ``s`` that reaches no cycle of negative weight."""
    prepared = directed_graph_with_source(A, s)
    graphs, starts = prepared.arguments
    for i in _with_negative_weights(graphs):
        start = int(starts[i])
        node = find_node_without_distance(graphs[i], start)
        if node >= 0:
            raise ArgumentError(
                f"A has a cycle of negative weight on the way from s = {start} to node {node}, so no path is the "
                "shortest; give weights without such cycles (an undirected edge of negative weight is one)"
            )
    return prepared


def graph_without_negative_weights(A: Instances, s: Instances) -> Prepared:
    """Prepare a graph ``A`` whose weights are not negative, and a start node ``s``."""
    prepared = directed_graph_with_source(A, s)
    graphs, _ = prepared.arguments
    for graph in graphs[_with_negative_weights(graphs)]:
        u, v = np.argwhere(graph < 0)[0]
        raise ArgumentError(
            f"A[{u}, {v}] is {graph[u, v]}; Dijkstra's algorithm needs weights of 0 or more; change the weight, or "
            "use bellman_ford"
        )
    return prepared


def acyclic_graph_with_source(A: Instances, s: Instances) -> Prepared:
    """Prepare a directed graph ``A`` without cycles, and a start node ``s``."""
    acyclic_graph(A)
    return directed_graph_with_source(A, s)


def graph_with_all_distances(A: Instances) -> Prepared:
    """Prepare a graph ``A`` that has no cycle of negative weight."""
    prepared = directed_graph(A)
    (graphs,) = prepared.arguments
    for i in _with_negative_weights(graphs):
        node = find_node_on_negative_cycle(graphs[i])
        if node >= 0:
            raise ArgumentError(
                f"A has a cycle of negative weight through node {node}, so no path is the shortest; give weights "
                "without such cycles (an undirected edge of negative weight is one)"
            )
    return prepared


def _with_negative_weights(graphs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the numbers of the graphs, of ``[S, n, n]``, that have one."""
    return np.flatnonzero((graphs < 0).any(axis=(1, 2)))


@kernel
def relax_all(A: NDArray[np.float64], d: NDArray[np.float64], reached: NDArray[np.int32], pi: NDArray[np.int32]) -> int:
    """Relax every arc once, with the distances before the call; return a node whose distance fell, else -1."""
    n = A.shape[0]
    before, reached_before = d.copy(), reached.copy()
    changed = -1
    for u in range(n):
        if not reached_before[u]:
            continue
        for v in range(n):
            if A[u, v] != 0 and (not reached[v] or before[u] + A[u, v] < d[v]):
                d[v] = before[u] + A[u, v]
                pi[v] = u
                reached[v] = 1
                changed = v
    return changed


@kernel
def find_node_without_distance(A: NDArray[np.float64], s: int) -> int:
    """Return a node that walks from ``s`` reach at ever lower cost, -1 where there is none: O(n^3)."""
    n = A.shape[0]
    d, reached, pi = np.zeros(n), np.zeros(n, np.int32), np.zeros(n, np.int32)
    reached[s] = 1
    changed = s
    rounds = 0
    while changed >= 0 and rounds < n:  # paths have fewer than n arcs: an improvement in round n is no path
        changed = relax_all(A, d, reached, pi)
        rounds += 1
    return changed


class BellmanFordHints(NamedTuple):
    """The hints of ``bellman_ford``."""

    pi_h: NodePointer
    d: NodeScalar
    msk: NodeMask


@algorithm(graph_with_distances, inputs=_GRAPH_AND_SOURCE, hints=BellmanFordHints, outputs="pi:node/pointer")
def bellman_ford(log: Log, A: NDArray[np.float64], s: int, hints: BellmanFordHints, pi: NDArray[np.int32]) -> None:
    """Bellman-Ford algorithm (section 24.1): relax all arcs in rounds until nothing changes; a step per round.

    After round k, ``d`` is the weight of the shortest path of at most k arcs; ``msk`` are the nodes reached.
    """
    hints.pi_h[:] = np.arange(A.shape[0])
    hints.msk[s] = 1
    record(log)
    while relax_all(A, hints.d, hints.msk, hints.pi_h) >= 0:
        record(log)
    pi[:] = hints.pi_h


class DijkstraHints(NamedTuple):
    """The hints of ``dijkstra``."""

    pi_h: NodePointer
    d: NodeScalar
    mark: NodeMask
    in_queue: NodeMask
    u: NodeMaskOne


@algorithm(graph_without_negative_weights, inputs=_GRAPH_AND_SOURCE, hints=DijkstraHints, outputs="pi:node/pointer")
def dijkstra(log: Log, A: NDArray[np.float64], s: int, hints: DijkstraHints, pi: NDArray[np.int32]) -> None:
    """Dijkstra's algorithm (section 24.3): take the nearest node of the queue and relax its arcs; one step per node.

    ``mark`` are the nodes taken, whose distances ``d`` are final.
    """
    n, d = A.shape[0], hints.d
    hints.pi_h[:] = np.arange(n)
    hints.u[0] = s
    hints.in_queue[s] = 1
    record(log)
    node = s
    while node >= 0:
        hints.u[0] = node
        hints.mark[node] = 1
        hints.in_queue[node] = 0
        for v in range(n):
            if A[node, v] != 0 and not hints.mark[v] and (not hints.in_queue[v] or d[node] + A[node, v] < d[v]):
                hints.pi_h[v] = node
                d[v] = d[node] + A[node, v]
                hints.in_queue[v] = 1
        record(log)
        node = smallest_in_queue(d, hints.in_queue)
    pi[:] = hints.pi_h


@inner
def _list_reachable(
    log: Log, A: NDArray[np.float64], walk: Walk, root: int, topo: NDArray[np.int32], head: NDArray[np.int32]
) -> None:
    """Put the nodes that the root reaches in topological order: a finished node goes to the front of the list."""
    push_root(log, walk, root)
    walk.color[root] = GREY
    record(log)
    searching = True
    while searching:
        if find_white(A, walk):
            push(log, walk)
            continue
        finished = walk.u[0]
        walk.color[finished] = BLACK
        if walk.color[head[0]] == BLACK:  # before the first node is finished, the head means nothing
            topo[finished] = head[0]
        head[0] = finished
        record(log)
        searching = pop(walk)


class DagShortestPathsHints(NamedTuple):
    """The hints of ``dag_shortest_paths``."""

    pi_h: NodePointer
    d: NodeScalar
    mark: NodeMask
    topo_h: NodePointer
    topo_head_h: NodeMaskOne
    color: NodeColor
    s_prev: NodePointer
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne
    phase: GraphMask


@algorithm(acyclic_graph_with_source, inputs=_GRAPH_AND_SOURCE, hints=DagShortestPathsHints, outputs="pi:node/pointer")
def dag_shortest_paths(
    log: Log, A: NDArray[np.float64], s: int, hints: DagShortestPathsHints, pi: NDArray[np.int32]
) -> None:
    """Shortest paths of an acyclic graph (section 24.2): relax the arcs of every node, in topological order.

    Phase 0 sorts the reached nodes, with the steps of ``topological_sort``. Phase 1 has one step per node of the list;
    the head of the list moves on. ``mark`` are the nodes that have a distance.
    """
    n = A.shape[0]
    hints.pi_h[:] = np.arange(n)
    hints.topo_h[:] = np.arange(n)
    hints.s_prev[:] = np.arange(n)
    root = np.empty(1, np.int32)  # not among the hints
    walk = Walk(hints.color, hints.s_prev, root, hints.u, hints.v, hints.s_last)
    _list_reachable(log, A, walk, s, hints.topo_h, hints.topo_head_h)
    hints.phase[0] = 1
    hints.mark[s] = 1
    record(log)
    node = s
    while hints.topo_h[node] != node:
        for other in range(n):
            if A[node, other] != 0 and (not hints.mark[other] or hints.d[node] + A[node, other] < hints.d[other]):
                hints.d[other] = hints.d[node] + A[node, other]
                hints.pi_h[other] = node
                hints.mark[other] = 1
        node = hints.topo_h[node]
        hints.topo_head_h[0] = node
        record(log)
    pi[:] = hints.pi_h


@kernel
def start_from_arcs(
    A: NDArray[np.float64], Pi: NDArray[np.int32], D: NDArray[np.float64], connected: NDArray[np.int32]
) -> None:
    """Fill the matrices of the Floyd-Warshall algorithm with the paths of one arc, and of none."""
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            Pi[i, j] = i
            D[i, j] = A[i, j]
            connected[i, j] = A[i, j] != 0 or i == j


@kernel
def allow_on_the_way(k: int, Pi: NDArray[np.int32], D: NDArray[np.float64], connected: NDArray[np.int32]) -> None:
    """Replace the path of every pair of nodes by the path through ``k`` if that path is shorter."""
    n = D.shape[0]
    for i in range(n):
        if not connected[i, k]:
            continue
        for j in range(n):
            if connected[k, j] and (not connected[i, j] or D[i, k] + D[k, j] < D[i, j]):
                D[i, j] = D[i, k] + D[k, j]
                Pi[i, j] = Pi[k, j]
                connected[i, j] = 1


@kernel
def find_node_on_negative_cycle(A: NDArray[np.float64]) -> int:
    """Return a node of a cycle of negative weight, -1 where there is none: O(n^3)."""
    n = A.shape[0]
    D, connected, Pi = np.empty((n, n)), np.empty((n, n), np.int32), np.empty((n, n), np.int32)
    start_from_arcs(A, Pi, D, connected)
    for k in range(n):
        if D[k, k] < 0:  # a cycle shows at its highest node: the others are allowed by then
            return k
        allow_on_the_way(k, Pi, D, connected)
    return -1


class FloydWarshallHints(NamedTuple):
    """The hints of ``floyd_warshall``."""

    Pi_h: EdgePointer
    D: EdgeScalar
    msk: EdgeMask
    k: NodeMaskOne


@algorithm(graph_with_all_distances, inputs=_GRAPH, hints=FloydWarshallHints, outputs="Pi:edge/pointer")
def floyd_warshall(log: Log, A: NDArray[np.float64], hints: FloydWarshallHints, Pi: NDArray[np.int32]) -> None:
    """Floyd-Warshall algorithm (section 25.2): allow one more node as an inner node of paths; a step before each node.

    ``Pi[i, j]`` is the node before j on the path from i, and i where there is none; ``msk`` are the pairs that have
    one. ``D[i, i]`` is 0, but with a self-loop the weight of the shortest cycle. The last hint lacks the last node.
    """
    start_from_arcs(A, hints.Pi_h, hints.D, hints.msk)
    for node in range(A.shape[0]):
        hints.k[0] = node
        record(log)
        allow_on_the_way(node, hints.Pi_h, hints.D, hints.msk)
    Pi[:] = hints.Pi_h
