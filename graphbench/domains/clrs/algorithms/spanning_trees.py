"""Minimum spanning trees (Cormen et al., chapter 23)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import undirected_graph, undirected_graph_with_source
from graphbench.domains.clrs.recording import Log, record

UNITE, FIND_U, FIND_V = range(3)  # phases of Kruskal's algorithm


@kernel
def edges_by_weight(A: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the edges u < v of an undirected graph, int32 ``[edges, 2]``: lightest first, equal ones by rows."""
    n = A.shape[0]
    count = 0
    for u in range(n):
        for v in range(u + 1, n):
            count += A[u, v] != 0
    edges = np.empty((count, 2), np.int32)
    weights = np.empty(count)
    at = 0
    for u in range(n):
        for v in range(u + 1, n):
            if A[u, v] != 0:
                edges[at, 0], edges[at, 1], weights[at] = u, v, A[u, v]
                at += 1
    return edges[np.argsort(weights, kind="mergesort")]


@inner
def _climb(log: Log, pi: NDArray[np.int32], at: NDArray[np.int32], seen: NDArray[np.int32]) -> None:
    """Move ``at`` up to the root of its tree, a step per move; visited nodes point to it (path compression)."""
    while pi[at[0]] != at[0]:
        at[0] = pi[at[0]]
        for node in range(pi.shape[0]):
            if seen[node]:
                pi[node] = at[0]
        seen[at[0]] = 1
        record(log)


@algorithm(
    undirected_graph,
    inputs="pos:node/scalar, A:edge/scalar, adj:edge/mask",
    hints="""in_mst_h:edge/mask, pi:node/pointer, u:node/mask_one, v:node/mask_one, root_u:node/mask_one,
        root_v:node/mask_one, mask_u:node/mask, mask_v:node/mask, phase:graph/categorical(3)""",
    outputs="in_mst:edge/mask",
)
def mst_kruskal(
    log: Log,
    A: NDArray[np.float64],
    in_mst_h: NDArray[np.int32],
    pi: NDArray[np.int32],
    u: NDArray[np.int32],
    v: NDArray[np.int32],
    root_u: NDArray[np.int32],
    root_v: NDArray[np.int32],
    mask_u: NDArray[np.int32],
    mask_v: NDArray[np.int32],
    phase: NDArray[np.int32],
    in_mst: NDArray[np.int32],
) -> None:
    """Kruskal's algorithm (section 23.2): take the edges by weight, and keep each one that joins two trees.

    The trees are disjoint sets (section 21.3): ``pi`` leads to their roots. An edge has a step for taking it up, one
    for every move to the root of ``u``, then of ``v``, and one for the union, in which the lower root points to the
    higher. ``mask_u`` and ``mask_v`` are the nodes seen on the way.
    """
    pi[:] = np.arange(A.shape[0])
    record(log)
    for edge in edges_by_weight(A):
        u[0] = root_u[0] = edge[0]
        v[0] = root_v[0] = edge[1]
        mask_u[:] = 0
        mask_u[u[0]] = 1
        mask_v[:] = 0
        mask_v[v[0]] = 1
        phase[0] = FIND_U
        record(log)
        _climb(log, pi, root_u, mask_u)
        phase[0] = FIND_V
        _climb(log, pi, root_v, mask_v)
        if root_u[0] != root_v[0]:
            in_mst_h[u[0], v[0]] = in_mst_h[v[0], u[0]] = 1
            pi[min(root_u[0], root_v[0])] = max(root_u[0], root_v[0])
        phase[0] = UNITE
        record(log)
    in_mst[:] = in_mst_h


@kernel
def smallest_in_queue(key: NDArray[np.float64], in_queue: NDArray[np.int32]) -> int:
    """Return the node of the queue with the smallest key, the lowest of equal ones; -1 where the queue is empty."""
    smallest = -1
    for node in range(key.shape[0]):
        if in_queue[node] and (smallest < 0 or key[node] < key[smallest]):
            smallest = node
    return smallest


@algorithm(
    undirected_graph_with_source,
    inputs="pos:node/scalar, s:node/mask_one, A:edge/scalar, adj:edge/mask",
    hints="pi_h:node/pointer, key:node/scalar, mark:node/mask, in_queue:node/mask, u:node/mask_one",
    outputs="pi:node/pointer",
)
def mst_prim(
    log: Log,
    A: NDArray[np.float64],
    s: int,
    pi_h: NDArray[np.int32],
    key: NDArray[np.float64],
    mark: NDArray[np.int32],
    in_queue: NDArray[np.int32],
    u: NDArray[np.int32],
    pi: NDArray[np.int32],
) -> None:
    """Prim's algorithm (section 23.2): grow a tree from the source, always by the lightest edge that leaves it.

    One step per node of the source's component; the others stay their own parents. ``mark`` are the nodes of the tree,
    ``key`` the weights of the lightest edges to it, kept when a node has joined.
    """
    n = A.shape[0]
    pi_h[:] = np.arange(n)
    u[0] = s
    in_queue[s] = 1
    record(log)
    node = s
    while node >= 0:
        u[0] = node
        mark[node] = 1
        in_queue[node] = 0
        for v in range(n):
            if A[node, v] != 0 and not mark[v] and (not in_queue[v] or A[node, v] < key[v]):
                pi_h[v] = node
                key[v] = A[node, v]
                in_queue[v] = 1
        record(log)
        node = smallest_in_queue(key, in_queue)
    pi[:] = pi_h
