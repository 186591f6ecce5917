"""Parts of a graph by depth-first search (Cormen et al., section 22.5 and problem 22-2).

The hints of the search are described in ``depth_first``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.depth_first import (
    TICK,
    WHITE,
    NodeColor,
    Times,
    Walk,
    enter,
    find_white,
    finish,
    pop,
    push,
    push_root,
)
from graphbench.domains.clrs.arguments import directed_graph, undirected_graph
from graphbench.domains.clrs.recording import (
    EdgeMask,
    GraphMask,
    GraphScalar,
    Log,
    NodeMask,
    NodeMaskOne,
    NodePointer,
    NodeScalar,
    record,
)

_GRAPH = "pos:node/scalar, A:edge/scalar, adj:edge/mask"


@inner
def find_white_and_lower(
    log: Log, graph: NDArray[np.float64], walk: Walk, pi: NDArray[np.int32], times: Times, low: NDArray[np.float64]
) -> bool:
    """Move ``v`` over the nodes to the first white neighbour of ``u``; return whether ``u`` has a white neighbour.

    Every other neighbour before it, except the parent, is a step: the time at which this neighbour was entered bounds
    ``low`` of ``u``.
    """
    node = walk.u[0]
    for other in range(graph.shape[0]):
        walk.v[0] = other
        if graph[node, other] == 0:
            continue
        if walk.color[other] == WHITE:
            return True
        if other != pi[node]:
            low[node] = min(low[node], times.d[other])
            record(log)
    return False


class ArticulationPointsHints(NamedTuple):
    """The hints of ``articulation_points``."""

    is_cut_h: NodeMask
    pi_h: NodePointer
    color: NodeColor
    d: NodeScalar
    f: NodeScalar
    low: NodeScalar
    child_cnt: NodeScalar
    s_prev: NodePointer
    s: NodeMaskOne
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne
    time: GraphScalar


@algorithm(undirected_graph, inputs=_GRAPH, hints=ArticulationPointsHints, outputs="is_cut:node/mask")
def articulation_points(
    log: Log, A: NDArray[np.float64], hints: ArticulationPointsHints, is_cut: NDArray[np.int32]
) -> None:
    """Articulation points (problem 22-2): nodes whose removal splits their component.

    The steps are the steps of a depth-first search, and one further step for every look at a neighbour that was entered
    before and is not the parent. ``low`` is the time of the earliest node that one edge reaches from the subtree;
    ``child_cnt`` counts children in ticks.
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
            node = walk.u[0]
            if times.d[node] == 0:
                enter(walk, times)
                hints.low[node] = times.d[node]
                record(log)
            if find_white_and_lower(log, A, walk, hints.pi_h, times, hints.low):
                hints.pi_h[walk.v[0]] = node
                hints.child_cnt[node] += TICK
                push(log, walk)
                continue
            finish(walk, times)
            for child in range(n):
                if hints.pi_h[child] == node and child != node:
                    hints.low[node] = min(hints.low[node], hints.low[child])
                    if hints.low[child] >= times.d[node] and (node != root or hints.child_cnt[node] > TICK):
                        hints.is_cut_h[node] = 1
            record(log)
            searching = pop(walk)
    is_cut[:] = hints.is_cut_h


class BridgesHints(NamedTuple):
    """The hints of ``bridges``."""

    is_bridge_h: EdgeMask
    pi_h: NodePointer
    color: NodeColor
    d: NodeScalar
    f: NodeScalar
    low: NodeScalar
    s_prev: NodePointer
    s: NodeMaskOne
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne
    time: GraphScalar


@algorithm(undirected_graph, inputs=_GRAPH, hints=BridgesHints, outputs="is_bridge:edge/mask")
def bridges(log: Log, A: NDArray[np.float64], hints: BridgesHints, is_bridge: NDArray[np.int32]) -> None:
    """Bridges (problem 22-2): edges whose removal splits their component.

    The steps are the same as in ``articulation_points``. Pairs without an edge are masked, the diagonal is not.
    """
    walk = Walk(hints.color, hints.s_prev, hints.s, hints.u, hints.v, hints.s_last)
    times = Times(hints.d, hints.f, hints.time)
    n = A.shape[0]
    for i in range(n):
        hints.pi_h[i] = walk.s_prev[i] = i
        for j in range(n):
            hints.is_bridge_h[i, j] = 0 if A[i, j] != 0 or i == j else -1
    for root in range(n):
        if walk.color[root] != WHITE:
            continue
        push_root(log, walk, root)
        searching = True
        while searching:
            node = walk.u[0]
            if times.d[node] == 0:
                enter(walk, times)
                hints.low[node] = times.d[node]
                record(log)
            if find_white_and_lower(log, A, walk, hints.pi_h, times, hints.low):
                hints.pi_h[walk.v[0]] = node
                push(log, walk)
                continue
            finish(walk, times)
            for child in range(n):
                if hints.pi_h[child] == node and child != node:
                    hints.low[node] = min(hints.low[node], hints.low[child])
                    if hints.low[child] > times.d[node]:
                        hints.is_bridge_h[node, child] = hints.is_bridge_h[child, node] = 1
            record(log)
            searching = pop(walk)
    is_bridge[:] = hints.is_bridge_h


@inner
def _search(log: Log, graph: NDArray[Any], walk: Walk, times: Times, root: int, component: NDArray[np.int32]) -> None:
    """Search from a white node, and write the root as the component of all nodes that are reached."""
    push_root(log, walk, root)
    searching = True
    while searching:
        node = walk.u[0]
        component[node] = root
        if walk.color[node] == WHITE or times.d[node] == 0:
            enter(walk, times)
            record(log)
        if find_white(graph, walk):
            push(log, walk)
        else:
            finish(walk, times)
            record(log)
            searching = pop(walk)


class StronglyConnectedComponentsHints(NamedTuple):
    """The hints of ``strongly_connected_components``."""

    scc_id_h: NodePointer
    A_t: EdgeMask
    color: NodeColor
    d: NodeScalar
    f: NodeScalar
    s_prev: NodePointer
    s: NodeMaskOne
    u: NodeMaskOne
    v: NodeMaskOne
    s_last: NodeMaskOne
    time: GraphScalar
    phase: GraphMask


@algorithm(directed_graph, inputs=_GRAPH, hints=StronglyConnectedComponentsHints, outputs="scc_id:node/pointer")
def strongly_connected_components(
    log: Log, A: NDArray[np.float64], hints: StronglyConnectedComponentsHints, scc_id: NDArray[np.int32]
) -> None:
    """Strongly connected components (section 22.5): search the graph, then its transpose from the last node finished.

    ``phase`` is 0 in the first search and 1 in the second; the component of a node is the root of its second search.
    The steps are the same as in ``dfs``, except that in the second phase only roots have a step when they are entered,
    because the times of the first phase are kept. ``A_t``, the transpose with a full diagonal, is the same at every
    step.
    """
    walk = Walk(hints.color, hints.s_prev, hints.s, hints.u, hints.v, hints.s_last)
    times = Times(hints.d, hints.f, hints.time)
    n = A.shape[0]
    for i in range(n):
        hints.scc_id_h[i] = walk.s_prev[i] = i
        for j in range(n):
            hints.A_t[i, j] = A[j, i] != 0 or i == j
    tree = np.empty(n, np.int32)
    for root in range(n):
        if walk.color[root] == WHITE:
            _search(log, A, walk, times, root, tree)
    walk.color[:] = WHITE
    hints.phase[0] = 1
    for root in np.argsort(-times.f, kind="mergesort"):
        if walk.color[root] == WHITE:
            _search(log, hints.A_t, walk, times, root, hints.scc_id_h)
    scc_id[:] = hints.scc_id_h
