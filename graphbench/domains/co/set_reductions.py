"""Reductions of the independent set problem that lose no optimum (survey: Lamm et al. 2017).

- A node without neighbours is taken.
- A node whose neighbours are all adjacent to each other is taken and these are removed.
- A node v with two neighbours a, b that are not adjacent is folded: v, a, b become one node with the other neighbours
  of a and b. If it is in the set, a and b are, else v is.
- A node whose neighbourhood includes the closed neighbourhood of a neighbour is removed (domination).

Sparse random graphs often vanish altogether, which solves them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

_MAX_NEIGHBOURS = 12  # of nodes that are looked at: the work grows with the square
_LEFT, _TAKEN, _REMOVED, _FOLDED = 0, 1, 2, 3


class ReducedSet(NamedTuple):
    """The rest of a graph, and the data that extend a set of the rest to the graph.

    A set of s nodes of the rest becomes one of s + ``gained`` nodes of the graph.
    """

    nodes: NDArray[np.int32]  # [k] the nodes left
    edges: NDArray[np.int32]  # [j, 2] the edges left, as places in nodes, u < v, sorted
    gained: int
    fate: NDArray[np.int8]  # [n] left, taken, removed or folded
    folds: NDArray[np.int32]  # [f, 3] (v, a, b) in order: v folded, a kept as the joint node, b merged into it


@inner
def _remove(v: int, fate: int, linked: NDArray[np.bool_], degree: NDArray[np.int64], fates: NDArray[np.int8]) -> None:
    fates[v] = fate
    degree[v] = 0
    for u in range(linked.shape[0]):
        if linked[v, u]:
            linked[v, u] = linked[u, v] = False
            degree[u] -= 1


@inner
def _merge(b: int, a: int, linked: NDArray[np.bool_], degree: NDArray[np.int64], fates: NDArray[np.int8]) -> None:
    """Give the neighbours of b to a and remove b."""
    for u in range(linked.shape[0]):
        if linked[b, u]:
            linked[b, u] = linked[u, b] = False
            degree[u] -= 1
            if not linked[a, u]:
                linked[a, u] = linked[u, a] = True
                degree[a] += 1
                degree[u] += 1
    degree[b] = 0
    fates[b] = _FOLDED


@inner
def _dominates(u: int, near: NDArray[np.int64], count: int, linked: NDArray[np.bool_]) -> bool:
    """Return whether u, one of ``near[:count]``, is adjacent to all others of them."""
    i = 0
    while i < count and (near[i] == u or linked[u, near[i]]):
        i += 1
    return i == count


@inner
def _reduce_at(
    v: int,
    near: NDArray[np.int64],
    linked: NDArray[np.bool_],
    degree: NDArray[np.int64],
    fates: NDArray[np.int8],
    fold: NDArray[np.int32],
) -> int:
    """Apply a rule at v; return 0 if none applies, 1 if nodes were removed, 2 if v was folded (``fold`` says how)."""
    count = 0
    for u in range(linked.shape[0]):
        if linked[v, u]:
            near[count] = u
            count += 1
    dominators = 0
    for i in range(count):
        if _dominates(near[i], near, count, linked):
            near[dominators], near[i] = near[i], near[dominators]
            dominators += 1
    for i in range(dominators):
        _remove(near[i], _REMOVED, linked, degree, fates)
    if degree[v] == 0:
        fates[v] = _TAKEN
        return 1
    if degree[v] != 2:
        return 1 if dominators > 0 else 0
    a, b = near[dominators], near[dominators + 1]
    if linked[a, b]:
        return 1
    fold[0], fold[1], fold[2] = v, a, b
    _remove(v, _FOLDED, linked, degree, fates)
    _merge(b, a, linked, degree, fates)
    return 2


@kernel
def reduce_set(num_nodes: int, edges: NDArray[np.int32]) -> ReducedSet:
    """Apply the rules until none applies; edges are ``int32[m, 2]``."""
    n = num_nodes
    linked = np.zeros((n, n), np.bool_)
    degree = np.zeros(n, np.int64)
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        linked[u, v] = linked[v, u] = True
        degree[u] += 1
        degree[v] += 1
    fates = np.zeros(n, np.int8)
    folds = np.empty((n, 3), np.int32)
    near = np.empty(n, np.int64)
    gained = count = 0
    changed = True
    while changed:
        changed = False
        for v in range(n):
            if fates[v] != _LEFT or degree[v] > _MAX_NEIGHBOURS:
                continue
            outcome = _reduce_at(v, near, linked, degree, fates, folds[count])
            changed = changed or outcome > 0
            count += 1 if outcome == 2 else 0
            gained += 1 if outcome == 2 or fates[v] == _TAKEN else 0
    position = np.empty(n, np.int32)
    nodes = np.empty(n, np.int32)
    left = 0
    for v in range(n):
        if fates[v] == _LEFT:
            position[v] = left
            nodes[left] = v
            left += 1
    rest = np.empty((edges.shape[0], 2), np.int32)
    rows = 0
    for i in range(left):
        for j in range(i + 1, left):
            if linked[nodes[i], nodes[j]]:
                rest[rows, 0], rest[rows, 1] = i, j
                rows += 1
    return ReducedSet(nodes[:left].copy(), rest[:rows].copy(), gained, fates, folds[:count].copy())


def expand_set(reduced: ReducedSet, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the independent set ``bool[n]`` of the graph that a set ``bool[k]`` of the nodes left stands for."""
    result = reduced.fate == _TAKEN
    result[reduced.nodes[members]] = True
    for v, a, b in reduced.folds[::-1].tolist():
        result[b] = result[a]
        result[v] = not result[a]
    return result
