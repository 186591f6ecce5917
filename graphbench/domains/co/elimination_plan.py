"""The order in which the nodes of a sparse max-cut problem are eliminated, and the tables of the elimination.

Some nodes of high degree, the hubs, are set aside: the others then form a graph that is nearly a tree, and one by one
they are maximised out. A node in turn leaves a table of the best value for every choice of sides of its neighbours
among the nodes still to come, its scope. No scope exceeds a given width; with as few hubs as that takes, the next node
to go is one whose neighbours lack fewest edges to be a clique ("min-fill").

The scope of a table is written with the node that goes last at bit 0, so that the node that goes next is the top bit:
the two halves of a table are its two sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel


class Plan(NamedTuple):
    """Positions count the eliminated nodes in order, 0 to k - 1; tables are numbered by position."""

    hubs: NDArray[np.int32]  # [h] in order of choice
    order: NDArray[np.int32]  # [k] the other nodes in order of elimination
    size: NDArray[np.int64]  # [k] nodes in the scope
    scope: NDArray[np.int32]  # [k, width] positions, the last to go first
    weight: NDArray[np.int32]  # [k, width] weights of the edges to the nodes of the scope, 0 for no edge
    hub_first: NDArray[
        np.int64
    ]  # [h + 1] edges of a hub to others than hubs: rows hub_first[a] to hub_first[a + 1] - 1
    hub_near: NDArray[np.int32]  # their other ends, as positions
    hub_weight: NDArray[np.int32]  # their weights
    between: NDArray[np.int32]  # [h, h] weights between hubs
    first_child: NDArray[np.int64]  # [k + 1] tables that flow into the elimination of a position:
    child: NDArray[np.int32]  # rows first_child[i] to first_child[i + 1] - 1
    start: NDArray[np.int64]  # [k + 1] first row of a table in an array of all
    first_map: NDArray[np.int64]  # [k] where the map of a table begins in maps; -1 for tables with an empty scope
    maps: NDArray[np.int32]  # rows of a table, its top bit aside, by rows of the table it flows into


@inner
def _missing_edges(v: int, around: NDArray[np.int64], size: int, linked: NDArray[np.bool_]) -> int:
    missing = 0
    for i in range(size):
        for j in range(i):
            if not linked[around[i], around[j]]:
                missing += 1
    return missing


@inner
def _elimination_order(
    linked: NDArray[np.bool_], is_hub: NDArray[np.bool_], width: int, order: NDArray[np.int32]
) -> bool:
    """Fill in ``order`` and the edges that arise in ``linked``; return whether no scope exceeds ``width``."""
    n = linked.shape[0]
    waiting = ~is_hub
    around = np.empty(n, np.int64)
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for u in range(n):
            if waiting[v] and waiting[u] and linked[v, u]:
                degree[v] += 1
    for i in range(order.shape[0]):
        best, fewest = -1, n * n
        for v in range(n):
            if not waiting[v] or degree[v] > width:
                continue
            size = 0
            for u in range(n):
                if linked[v, u] and waiting[u]:
                    around[size] = u
                    size += 1
            missing = _missing_edges(v, around, size, linked)
            if missing < fewest:
                best, fewest = v, missing
                if missing == 0:
                    break
        if best < 0:
            return False
        order[i] = best
        waiting[best] = False
        size = 0
        for u in range(n):
            if linked[best, u] and waiting[u]:
                around[size] = u
                size += 1
                degree[u] -= 1
        for a in range(size):
            for b in range(a):
                u, w = around[a], around[b]
                if not linked[u, w]:
                    linked[u, w] = linked[w, u] = True
                    degree[u] += 1
                    degree[w] += 1
    return True


@inner
def _by_degree(linked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the nodes ordered so that each has most neighbours among the later nodes."""
    n = linked.shape[0]
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for u in range(n):
            degree[v] += 1 if linked[v, u] else 0
    result = np.empty(n, np.int32)
    for i in range(n):
        best = np.argmax(degree)
        result[i] = best
        for u in range(n):
            if linked[best, u] and degree[u] >= 0:
                degree[u] -= 1
        degree[best] = -1
    return result


@inner
def _scopes(
    linked: NDArray[np.bool_], weight: NDArray[np.int32], order: NDArray[np.int32], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    k = order.shape[0]
    size = np.zeros(k, np.int64)
    scope = np.full((k, width), -1, np.int32)
    scope_weights = np.zeros((k, width), np.int32)
    for i in range(k):
        for j in range(k - 1, i, -1):
            if linked[order[i], order[j]]:
                scope[i, size[i]] = j
                scope_weights[i, size[i]] = weight[order[i], order[j]]
                size[i] += 1
    return size, scope, scope_weights


@inner
def _maps(size: NDArray[np.int64], scope: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return, per table, which of its rows (top bit aside) belongs to each row of the table it flows into."""
    k = size.shape[0]
    first = np.full(k, -1, np.int64)
    total = 0
    for c in range(k):
        if size[c] > 0:
            first[c] = total
            total += 1 << size[scope[c, size[c] - 1]]
    maps = np.zeros(total, np.int32)
    for c in range(k):
        if size[c] == 0:
            continue
        parent = scope[c, size[c] - 1]
        bit = 0
        for b in range(size[parent]):
            if bit < size[c] - 1 and scope[parent, b] == scope[c, bit]:
                for row in range(1 << size[parent]):
                    if (row >> b) & 1:
                        maps[first[c] + row] |= 1 << bit
                bit += 1
    return first, maps


@inner
def _with_fewest_hubs(
    linked: NDArray[np.bool_], ranked: NDArray[np.int32], width: int, most_hubs: int
) -> tuple[int, NDArray[np.bool_], NDArray[np.int32]]:
    """Return the number of hubs needed among ``ranked``, the filled graph, and the order of the other nodes.

    The number is halved in, as if more hubs were always as good; it is ``most_hubs + 1`` if it would be higher.
    """
    n = linked.shape[0]
    fewest, most = 1, most_hubs + 1
    filled, order = linked, np.empty(0, np.int32)
    while fewest < most:
        count = (fewest + most) // 2
        is_hub = np.zeros(n, np.bool_)
        for i in range(count):
            is_hub[ranked[i]] = True
        trial, trial_order = linked.copy(), np.empty(n - count, np.int32)
        if _elimination_order(trial, is_hub, width, trial_order):
            most, filled, order = count, trial, trial_order
        else:
            fewest = count + 1
    return most, filled, order


@inner
def _hub_edges(
    matrix: NDArray[np.int32], hubs: NDArray[np.int32], order: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    first = np.zeros(hubs.shape[0] + 1, np.int64)
    near = np.empty(hubs.shape[0] * order.shape[0], np.int32)
    weight = np.empty(hubs.shape[0] * order.shape[0], np.int32)
    row = 0
    for a in range(hubs.shape[0]):
        for i in range(order.shape[0]):
            if matrix[order[i], hubs[a]] != 0:
                near[row], weight[row] = i, matrix[order[i], hubs[a]]
                row += 1
        first[a + 1] = row
    return first, near[:row].copy(), weight[:row].copy()


@inner
def _children(size: NDArray[np.int64], scope: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the tables that flow into each position: a table flows into the first position of its scope to go."""
    k = size.shape[0]
    first = np.zeros(k + 1, np.int64)
    for c in range(k):
        if size[c] > 0:
            first[scope[c, size[c] - 1] + 1] += 1
    for i in range(k):
        first[i + 1] += first[i]
    child = np.empty(first[k], np.int32)
    filled = first.copy()
    for c in range(k):
        if size[c] > 0:
            parent = scope[c, size[c] - 1]
            child[filled[parent]] = c
            filled[parent] += 1
    return first, child


@kernel
def plan_elimination(
    first: NDArray[np.int64], near: NDArray[np.int32], weight: NDArray[np.int32], width: int, most_hubs: int
) -> tuple[bool, Plan]:
    """Return whether at most ``most_hubs`` hubs leave scopes of at most ``width`` nodes, and if so, the plan.

    Args:
        first: Neighbour lists ``int64[n + 1]``: node v has rows ``first[v]`` to ``first[v + 1] - 1``.
        near: The neighbours.
        weight: The weights.
        width: Largest scope.
        most_hubs: Largest number of hubs, at most 62.
    """
    n = first.shape[0] - 1
    matrix = np.zeros((n, n), np.int32)
    for v in range(n):
        for row in range(first[v], first[v + 1]):
            matrix[v, near[row]] = weight[row]
    linked = matrix != 0
    ranked = _by_degree(linked)
    most_hubs = min(most_hubs, n)
    count, filled, order = _with_fewest_hubs(linked, ranked, width, most_hubs)
    feasible = count <= most_hubs
    hubs = ranked[: count if feasible else 0].copy()
    size, scope, scope_weights = _scopes(filled, matrix, order, width)
    hub_first, hub_near, hub_weight = _hub_edges(matrix, hubs, order)
    between = np.empty((hubs.shape[0], hubs.shape[0]), np.int32)
    for a in range(hubs.shape[0]):
        for b in range(hubs.shape[0]):
            between[a, b] = matrix[hubs[a], hubs[b]]
    start = np.zeros(order.shape[0] + 1, np.int64)
    for i in range(order.shape[0]):
        start[i + 1] = start[i] + (1 << size[i])
    first_child, child = _children(size, scope)
    first_map, maps = _maps(size, scope)
    return feasible, Plan(
        hubs,
        order,
        size,
        scope,
        scope_weights,
        hub_first,
        hub_near,
        hub_weight,
        between,
        first_child,
        child,
        start,
        first_map,
        maps,
    )
