"""Minimum spanning trees (Cormen et al., chapter 23)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import undirected_graph, undirected_graph_with_source
from graphbench.domains.clrs.recording import (
    EdgeMask,
    Ints,
    Log,
    NodeMask,
    NodeMaskOne,
    NodePointer,
    NodeScalar,
    record,
)

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


class MstKruskalHints(NamedTuple):
    """The hints of ``mst_kruskal``."""

    in_mst_h: EdgeMask
    pi: NodePointer
    u: NodeMaskOne
    v: NodeMaskOne
    root_u: NodeMaskOne
    root_v: NodeMaskOne
    mask_u: NodeMask
    mask_v: NodeMask
    phase: Annotated[Ints, "graph/categorical(3)"]


@algorithm(
    undirected_graph,
    inputs="pos:node/scalar, A:edge/scalar, adj:edge/mask",
    hints=MstKruskalHints,
    outputs="in_mst:edge/mask",
)
def mst_kruskal(log: Log, A: NDArray[np.float64], hints: MstKruskalHints, in_mst: NDArray[np.int32]) -> None:
    """Kruskal's algorithm (section 23.2): take the edges by weight, and keep each one that joins two trees.

    The trees are disjoint sets (section 21.3): ``pi`` leads to their roots. An edge has a step for taking it up, one
    for every move to the root of ``u``, then of ``v``, and one for the union, in which the lower root points to the
    higher. ``mask_u`` and ``mask_v`` are the nodes seen on the way.
    """
    hints.pi[:] = np.arange(A.shape[0])
    record(log)
    for edge in edges_by_weight(A):
        u, v = edge
        hints.u[0] = hints.root_u[0] = u
        hints.v[0] = hints.root_v[0] = v
        hints.mask_u[:] = 0
        hints.mask_u[u] = 1
        hints.mask_v[:] = 0
        hints.mask_v[v] = 1
        hints.phase[0] = FIND_U
        record(log)
        _climb(log, hints.pi, hints.root_u, hints.mask_u)
        hints.phase[0] = FIND_V
        _climb(log, hints.pi, hints.root_v, hints.mask_v)
        root_u, root_v = hints.root_u[0], hints.root_v[0]
        if root_u != root_v:
            hints.in_mst_h[u, v] = hints.in_mst_h[v, u] = 1
            hints.pi[min(root_u, root_v)] = max(root_u, root_v)
        hints.phase[0] = UNITE
        record(log)
    in_mst[:] = hints.in_mst_h


@kernel
def smallest_in_queue(key: NDArray[np.float64], in_queue: NDArray[np.int32]) -> int:
    """Return the node of the queue with the smallest key, the lowest of equal ones; -1 where the queue is empty."""
    smallest = -1
    for node in range(key.shape[0]):
        if in_queue[node] and (smallest < 0 or key[node] < key[smallest]):
            smallest = node
    return smallest


class MstPrimHints(NamedTuple):
    """The hints of ``mst_prim``."""

    pi_h: NodePointer
    key: NodeScalar
    mark: NodeMask
    in_queue: NodeMask
    u: NodeMaskOne


@algorithm(
    undirected_graph_with_source,
    inputs="pos:node/scalar, s:node/mask_one, A:edge/scalar, adj:edge/mask",
    hints=MstPrimHints,
    outputs="pi:node/pointer",
)
def mst_prim(log: Log, A: NDArray[np.float64], s: int, hints: MstPrimHints, pi: NDArray[np.int32]) -> None:
    """Prim's algorithm (section 23.2): grow a tree from the source, always by the lightest edge that leaves it.

    There is one step per node of the component of the source; the nodes of other components keep pointing to
    themselves. ``mark`` are the nodes of the tree. ``key`` are the weights of the lightest edges to the tree; the key
    of a node stays when the node has joined the tree.
    """
    n = A.shape[0]
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
            if A[node, v] != 0 and not hints.mark[v] and (not hints.in_queue[v] or A[node, v] < hints.key[v]):
                hints.pi_h[v] = node
                hints.key[v] = A[node, v]
                hints.in_queue[v] = 1
        record(log)
        node = smallest_in_queue(hints.key, hints.in_queue)
    pi[:] = hints.pi_h
