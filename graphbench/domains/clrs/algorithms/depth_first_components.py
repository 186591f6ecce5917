"""Parts of a graph by depth-first search (Cormen et al., section 22.5 and problem 22-2).

The search has the hints of ``depth_first``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.depth_first import (
    TICK,
    WHITE,
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
from graphbench.domains.clrs.recording import Log, record

_GRAPH = "pos:node/scalar, A:edge/scalar, adj:edge/mask"


@inner
def find_white_and_lower(
    log: Log, graph: NDArray[np.float64], walk: Walk, pi: NDArray[np.int32], times: Times, low: NDArray[np.float64]
) -> bool:
    """Move ``v`` over the nodes to the first white neighbour of ``u``; return whether there is one.

    Each neighbour on the way but the parent, even ``u`` itself, is a step: its entering time bounds ``low`` of ``u``.
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


@algorithm(
    undirected_graph,
    inputs=_GRAPH,
    hints="""is_cut_h:node/mask, pi_h:node/pointer, color:node/categorical(3), d:node/scalar, f:node/scalar,
        low:node/scalar, child_cnt:node/scalar, s_prev:node/pointer, s:node/mask_one, u:node/mask_one,
        v:node/mask_one, s_last:node/mask_one, time:graph/scalar""",
    outputs="is_cut:node/mask",
)
def articulation_points(
    log: Log,
    A: NDArray[np.float64],
    is_cut_h: NDArray[np.int32],
    pi_h: NDArray[np.int32],
    color: NDArray[np.int32],
    d: NDArray[np.float64],
    f: NDArray[np.float64],
    low: NDArray[np.float64],
    child_cnt: NDArray[np.float64],
    s_prev: NDArray[np.int32],
    s: NDArray[np.int32],
    u: NDArray[np.int32],
    v: NDArray[np.int32],
    s_last: NDArray[np.int32],
    time: NDArray[np.float64],
    is_cut: NDArray[np.int32],
) -> None:
    """Articulation points (problem 22-2): nodes whose loss cuts their component apart.

    The steps of a depth-first search, and one for every look at a neighbour found before that is not the parent.
    ``low`` is the earliest node that is reached from the subtree by one more edge; ``child_cnt`` counts in ticks.
    """
    walk, times = Walk(color, s_prev, s, u, v, s_last), Times(d, f, time)
    n = A.shape[0]
    pi_h[:] = np.arange(n)
    s_prev[:] = np.arange(n)
    for root in range(n):
        if color[root] != WHITE:
            continue
        push_root(log, walk, root)
        searching = True
        while searching:
            node = u[0]
            if d[node] == 0:
                enter(walk, times)
                low[node] = d[node]
                record(log)
            if find_white_and_lower(log, A, walk, pi_h, times, low):
                pi_h[v[0]] = node
                child_cnt[node] += TICK
                push(log, walk)
                continue
            finish(walk, times)
            for child in range(n):
                if pi_h[child] == node and child != node:
                    low[node] = min(low[node], low[child])
                    if low[child] >= d[node] and (node != root or child_cnt[node] > TICK):
                        is_cut_h[node] = 1
            record(log)
            searching = pop(walk)
    is_cut[:] = is_cut_h


@algorithm(
    undirected_graph,
    inputs=_GRAPH,
    hints="""is_bridge_h:edge/mask, pi_h:node/pointer, color:node/categorical(3), d:node/scalar, f:node/scalar,
        low:node/scalar, s_prev:node/pointer, s:node/mask_one, u:node/mask_one, v:node/mask_one, s_last:node/mask_one,
        time:graph/scalar""",
    outputs="is_bridge:edge/mask",
)
def bridges(
    log: Log,
    A: NDArray[np.float64],
    is_bridge_h: NDArray[np.int32],
    pi_h: NDArray[np.int32],
    color: NDArray[np.int32],
    d: NDArray[np.float64],
    f: NDArray[np.float64],
    low: NDArray[np.float64],
    s_prev: NDArray[np.int32],
    s: NDArray[np.int32],
    u: NDArray[np.int32],
    v: NDArray[np.int32],
    s_last: NDArray[np.int32],
    time: NDArray[np.float64],
    is_bridge: NDArray[np.int32],
) -> None:
    """Bridges (problem 22-2): edges whose loss cuts their component apart.

    The steps are the same as in ``articulation_points``. Pairs without an edge are masked, the diagonal is not.
    """
    walk, times = Walk(color, s_prev, s, u, v, s_last), Times(d, f, time)
    n = A.shape[0]
    for i in range(n):
        pi_h[i] = s_prev[i] = i
        for j in range(n):
            is_bridge_h[i, j] = 0 if A[i, j] != 0 or i == j else -1
    for root in range(n):
        if color[root] != WHITE:
            continue
        push_root(log, walk, root)
        searching = True
        while searching:
            node = u[0]
            if d[node] == 0:
                enter(walk, times)
                low[node] = d[node]
                record(log)
            if find_white_and_lower(log, A, walk, pi_h, times, low):
                pi_h[v[0]] = node
                push(log, walk)
                continue
            finish(walk, times)
            for child in range(n):
                if pi_h[child] == node and child != node:
                    low[node] = min(low[node], low[child])
                    if low[child] > d[node]:
                        is_bridge_h[node, child] = is_bridge_h[child, node] = 1
            record(log)
            searching = pop(walk)
    is_bridge[:] = is_bridge_h


@inner
def _search(log: Log, graph: NDArray[Any], walk: Walk, times: Times, root: int, component: NDArray[np.int32]) -> None:
    """Search from a white node; the nodes reached get the root as their component."""
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


@algorithm(
    directed_graph,
    inputs=_GRAPH,
    hints="""scc_id_h:node/pointer, A_t:edge/mask, color:node/categorical(3), d:node/scalar, f:node/scalar,
        s_prev:node/pointer, s:node/mask_one, u:node/mask_one, v:node/mask_one, s_last:node/mask_one,
        time:graph/scalar, phase:graph/mask""",
    outputs="scc_id:node/pointer",
)
def strongly_connected_components(
    log: Log,
    A: NDArray[np.float64],
    scc_id_h: NDArray[np.int32],
    A_t: NDArray[np.int32],
    color: NDArray[np.int32],
    d: NDArray[np.float64],
    f: NDArray[np.float64],
    s_prev: NDArray[np.int32],
    s: NDArray[np.int32],
    u: NDArray[np.int32],
    v: NDArray[np.int32],
    s_last: NDArray[np.int32],
    time: NDArray[np.float64],
    phase: NDArray[np.int32],
    scc_id: NDArray[np.int32],
) -> None:
    """Strongly connected components (section 22.5): search the graph, then its transpose from the last node finished.

    ``phase`` tells which of the two; a node's component is the root of its second search. The steps are those of
    ``dfs``, but in the second phase only roots have one for being entered, as the times of the first are kept. ``A_t``,
    the transpose with a full diagonal, is the same at every step.
    """
    walk, times = Walk(color, s_prev, s, u, v, s_last), Times(d, f, time)
    n = A.shape[0]
    for i in range(n):
        scc_id_h[i] = s_prev[i] = i
        for j in range(n):
            A_t[i, j] = A[j, i] != 0 or i == j
    tree = np.empty(n, np.int32)
    for root in range(n):
        if color[root] == WHITE:
            _search(log, A, walk, times, root, tree)
    color[:] = WHITE
    phase[0] = 1
    for root in np.argsort(-f, kind="mergesort"):
        if color[root] == WHITE:
            _search(log, A_t, walk, times, root, scc_id_h)
    scc_id[:] = scc_id_h
