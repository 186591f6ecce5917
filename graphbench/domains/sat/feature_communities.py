"""Communities of a weighted graph by the Louvain method, in integer arithmetic.

Blondel et al. 2008, "Fast unfolding of communities in large networks": every node in turn moves to the neighbouring
community that raises the modularity most, until none does; then communities become nodes, and so on. Nodes move in a
seeded order. Gains are compared as integers, so the communities do not depend on the machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import permutation, seed

_ROUNDS = 8
_LEVELS = 6


@kernel
def communities(
    first: NDArray[np.int64], nodes: NDArray[np.int32], weights: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], int]:
    """Return the community of every node, and the number of steps of the search.

    Args:
        first: int64 ``[N + 1]``, where the neighbours of every node begin in ``nodes``.
        nodes: int32 ``[2E]``, all neighbours of every node.
        weights: int64 ``[2E]``, the weights of the edges: at least 1 each, with a sum below 2**31.
        key: Seed of the order in which nodes move.

    Returns:
        The communities, int64 ``[N]``, numbered 0, 1, ..., and the number of steps.
    """
    result = np.arange(len(first) - 1)
    state = seed(key, 0, 0, 0)
    steps = 0
    loops = np.zeros(len(first) - 1, np.int64)
    for _ in range(_LEVELS):
        community, took = _move_nodes(first, nodes, weights, loops, permutation(state, len(first) - 1))
        steps += took
        count = _renumber(community)
        for v in range(len(result)):
            result[v] = community[result[v]]
        if count == len(first) - 1:
            break
        first, nodes, weights, loops = _merged(first, nodes, weights, loops, community, count)
        steps += len(nodes)
    return result, steps


@inner
def _move_nodes(
    first: NDArray[np.int64],
    nodes: NDArray[np.int32],
    weights: NDArray[np.int64],
    loops: NDArray[np.int64],
    order: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Return the community of every node after moves of single nodes, and the number of steps.

    ``loops`` int64 ``[N]`` is twice the weight of the edges inside every node (merged from several nodes).
    """
    n = len(first) - 1
    community = np.arange(n)
    degree = loops.copy()
    for v in range(n):
        for k in range(first[v], first[v + 1]):
            degree[v] += weights[k]
    inside = degree.copy()  # the sum of the degrees in every community
    double = degree.sum()
    linked, near = np.zeros(n, np.int64), np.empty(n, np.int64)
    steps = 0
    for _ in range(_ROUNDS):
        moved = 0
        for v in order:
            size = 0
            for k in range(first[v], first[v + 1]):
                c = community[nodes[k]]
                if linked[c] == 0:
                    near[size] = c
                    size += 1
                linked[c] += weights[k]
            current = community[v]
            inside[current] -= degree[v]
            best, gain = current, linked[current] * double - degree[v] * inside[current]
            for i in range(size):
                c = near[i]
                value = linked[c] * double - degree[v] * inside[c]
                if value > gain:
                    best, gain = c, value
                linked[c] = 0
            inside[best] += degree[v]
            community[v] = best
            moved += 1 if best != current else 0
            steps += 1 + first[v + 1] - first[v]
        if moved == 0:
            break
    return community, steps


@inner
def _renumber(community: NDArray[np.int64]) -> int:
    """Renumber the communities in place to 0, 1, ... in the order of their first nodes; return their number."""
    number = np.full(len(community), -1, np.int64)
    count = 0
    for v in range(len(community)):
        if number[community[v]] < 0:
            number[community[v]] = count
            count += 1
        community[v] = number[community[v]]
    return count


@inner
def _merged(
    first: NDArray[np.int64],
    nodes: NDArray[np.int32],
    weights: NDArray[np.int64],
    loops: NDArray[np.int64],
    community: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the graph of the communities: neighbours as ``first`` and ``nodes``, weights, and ``loops``."""
    n = len(first) - 1
    start = np.zeros(count + 1, np.int64)
    for v in range(n):
        start[community[v] + 1] += 1
    for c in range(count):
        start[c + 1] += start[c]
    after, members = start[:-1].copy(), np.empty(n, np.int64)
    for v in range(n):
        members[after[community[v]]] = v
        after[community[v]] += 1
    starts, inner_weight = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    others, sums = np.empty(len(nodes), np.int32), np.empty(len(nodes), np.int64)
    slot = np.full(count, -1, np.int64)
    size = 0
    for c in range(count):
        begin = size
        for i in range(start[c], start[c + 1]):
            v = members[i]
            inner_weight[c] += loops[v]
            for k in range(first[v], first[v + 1]):
                d = community[nodes[k]]
                if d == c:
                    inner_weight[c] += weights[k]
                elif slot[d] >= begin:
                    sums[slot[d]] += weights[k]
                else:
                    slot[d] = size
                    others[size], sums[size] = d, weights[k]
                    size += 1
        starts[c + 1] = size
    return starts, others[:size].copy(), sums[:size].copy(), inner_weight


@kernel
def modularity(
    first: NDArray[np.int64], nodes: NDArray[np.int32], weights: NDArray[np.int64], community: NDArray[np.int64]
) -> float:
    """Return the modularity of communities (Newman and Girvan 2004), 0 for a graph without edges."""
    n = len(first) - 1
    within, double = 0, 0
    degrees = np.zeros(n, np.int64)
    for v in range(n):
        for k in range(first[v], first[v + 1]):
            degrees[community[v]] += weights[k]
            double += weights[k]
            within += weights[k] if community[nodes[k]] == community[v] else 0
    if double == 0:
        return 0.0
    result = within / double
    for c in range(n):
        result -= (degrees[c] / double) ** 2
    return result
