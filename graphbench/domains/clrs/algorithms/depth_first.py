"""Depth-first search and topological sort (Cormen et al., sections 22.3 and 22.4).

A node is white until the search reaches it, grey while it is on the stack, and black when it is finished. Pointers show
the stack: ``s_last`` is the node on top, and ``s_prev`` points from every node to the node below it. The root and the
nodes that are not on the stack point to themselves. ``s`` is the root of the search, ``u`` the current node, and ``v``
the neighbour that was looked at last (after a complete scan, this is the last node of the graph).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared, directed_graph
from graphbench.domains.clrs.recording import GraphScalar, Ints, Log, NodeMaskOne, NodePointer, NodeScalar, record

WHITE, GREY, BLACK = range(3)
NodeColor = Annotated[Ints, "node/categorical(3)"]
TICK = 0.01  # times are sums of ticks, rounded as such sums are: 0.09 + 0.01 is less than 0.1


class Walk(NamedTuple):
    """The hints that show the position of a search."""

    color: NDArray[np.int32]  # [n]
    s_prev: NDArray[np.int32]  # [n]
    s: NDArray[np.int32]  # [1], as are the following fields
    u: NDArray[np.int32]
    v: NDArray[np.int32]
    s_last: NDArray[np.int32]


class Times(NamedTuple):
    """The hints that tell when nodes were entered and finished."""

    d: NDArray[np.float64]  # [n], 0 until entered
    f: NDArray[np.float64]  # [n]
    time: NDArray[np.float64]  # [1]


@inner
def push_root(log: Log, walk: Walk, root: int) -> None:
    """Begin a search at a white node: a separate step, in which the node is still white."""
    walk.s[0] = walk.u[0] = walk.v[0] = walk.s_last[0] = root
    record(log)


@inner
def push(log: Log, walk: Walk) -> None:
    """Push ``v`` on the stack, which is one step; afterwards ``v`` is the current node."""
    node = walk.v[0]
    walk.color[node] = GREY
    walk.s_prev[node] = walk.s_last[0]
    walk.s_last[0] = node
    record(log)
    walk.u[0] = node


@inner
def pop(walk: Walk) -> bool:
    """Pop the finished node ``u``; return whether the stack has another node, which becomes the current node."""
    finished = walk.u[0]
    below = walk.s_prev[finished]
    walk.s_prev[finished] = finished
    walk.s_last[0] = walk.u[0] = below
    return below != finished


@inner
def enter(walk: Walk, times: Times) -> None:
    """Make ``u`` grey and write the time into ``d``."""
    times.time[0] += TICK
    times.d[walk.u[0]] = times.time[0]
    walk.color[walk.u[0]] = GREY


@inner
def finish(walk: Walk, times: Times) -> None:
    """Make ``u`` black and write the time into ``f``."""
    times.time[0] += TICK
    times.f[walk.u[0]] = times.time[0]
    walk.color[walk.u[0]] = BLACK


@inner
def find_white(graph: NDArray[Any], walk: Walk) -> bool:
    """Move ``v`` over the nodes to the first white neighbour of ``u``; return whether ``u`` has a white neighbour."""
    node = walk.u[0]
    for other in range(graph.shape[0]):
        walk.v[0] = other
        if graph[node, other] != 0 and walk.color[other] == WHITE:
            return True
    return False


class DfsHints(NamedTuple):
    """The hints of ``dfs``."""

    pi_h: NodePointer
    color: NodeColor
    d: NodeScalar
    f: NodeScalar
    s_prev: NodePointer
    s: NodeMaskOne
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne
    time: GraphScalar


@algorithm(
    directed_graph, inputs="pos:node/scalar, A:edge/scalar, adj:edge/mask", hints=DfsHints, outputs="pi:node/pointer"
)
def dfs(log: Log, A: NDArray[np.float64], hints: DfsHints, pi: NDArray[np.int32]) -> None:
    """Depth-first search (section 22.3): roots and neighbours in the order of their numbers.

    Every node has three steps: it is pushed (or chosen as a root), it is entered, it is finished.
    """
    walk = Walk(hints.color, hints.s_prev, hints.s, hints.u, hints.v, hints.s_last)
    times = Times(hints.d, hints.f, hints.time)
    n = A.shape[0]
    hints.pi_h[:] = np.arange(n)
    walk.s_prev[:] = np.arange(n)
    for root in range(n):
        if walk.color[root] != WHITE:
            continue
        push_root(log, walk, root)
        searching = True
        while searching:
            if times.d[walk.u[0]] == 0:
                enter(walk, times)
                record(log)
            if find_white(A, walk):
                hints.pi_h[walk.v[0]] = walk.u[0]
                push(log, walk)
            else:
                finish(walk, times)
                record(log)
                searching = pop(walk)
    pi[:] = hints.pi_h


def acyclic_graph(A: Instances) -> Prepared:
    """Prepare a directed graph ``A`` of two nodes or more that has no cycles and no self-loops."""
    prepared = directed_graph(A)
    for cycle in map(find_cycle, prepared.arguments[0]):
        if len(cycle):
            around = " -> ".join(str(node) for node in [*cycle[:8], *(["..."] if len(cycle) > 8 else []), cycle[0]])
            raise ArgumentError(f"A has the cycle {around}; give a graph without cycles, self-loops included")
    return prepared


@kernel
def find_cycle(graph: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the nodes of a cycle, in the order of its arcs, or an empty array for a graph without cycles. O(n^2)."""
    n = graph.shape[0]
    following = np.zeros(n, np.int64)  # arcs to nodes that are left
    for u in range(n):
        for v in range(n):
            following[u] += graph[u, v] != 0
    done = np.empty(n, np.int64)  # nodes that lead to no cycle
    count = 0
    for u in range(n):
        if following[u] == 0:
            done[count] = u
            count += 1
    at = 0
    while at < count:
        for u in range(n):
            if graph[u, done[at]] != 0:
                following[u] -= 1
                if following[u] == 0:
                    done[count] = u
                    count += 1
        at += 1
    if count == n:
        return done[:0]
    return _walk_in_circle(graph, following)


@inner
def _walk_in_circle(graph: NDArray[np.float64], following: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow arcs among the remaining nodes until a node comes again; return the nodes between its two visits."""
    n = graph.shape[0]
    position = np.full(n, -1, np.int64)
    walked = np.empty(n, np.int64)
    count = 0
    node = np.flatnonzero(following)[0]
    while position[node] < 0:
        position[node] = count
        walked[count] = node
        count += 1
        for v in range(n):
            if graph[node, v] != 0 and following[v] > 0:
                node = v
                break
    return walked[position[node] : count]


class TopologicalSortHints(NamedTuple):
    """The hints of ``topological_sort``."""

    topo_h: NodePointer
    topo_head_h: NodeMaskOne
    color: NodeColor
    s_prev: NodePointer
    s: NodeMaskOne
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne


@algorithm(
    acyclic_graph,
    inputs="pos:node/scalar, A:edge/scalar, adj:edge/mask",
    hints=TopologicalSortHints,
    outputs="topo:node/pointer, topo_head:node/mask_one",
)
def topological_sort(
    log: Log, A: NDArray[np.float64], hints: TopologicalSortHints, topo: NDArray[np.int32], topo_head: NDArray[np.int32]
) -> None:
    """Topological sort (section 22.4): every node finished by a depth-first search goes in front of the list.

    Every node has two steps: it is pushed, it is finished. A root has a further step before, in which it is chosen.
    ``topo`` points from every node to the next node of the list, and from the last node to itself.
    """
    walk = Walk(hints.color, hints.s_prev, hints.s, hints.u, hints.v, hints.s_last)
    n = A.shape[0]
    hints.topo_h[:] = np.arange(n)
    walk.s_prev[:] = np.arange(n)
    for root in range(n):
        if walk.color[root] != WHITE:
            continue
        push_root(log, walk, root)
        walk.color[root] = GREY
        record(log)
        searching = True
        while searching:
            if find_white(A, walk):
                push(log, walk)
                continue
            walk.color[walk.u[0]] = BLACK
            if walk.color[hints.topo_head_h[0]] == BLACK:  # before the first node is finished, the head means nothing
                hints.topo_h[walk.u[0]] = hints.topo_head_h[0]
            hints.topo_head_h[0] = walk.u[0]
            record(log)
            searching = pop(walk)
    topo[:] = hints.topo_h
    topo_head[:] = hints.topo_head_h
