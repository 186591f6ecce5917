"""Upper bounds of the heaviest cut of a graph with weights of both signs.

An edge of positive weight is satisfied if its ends are on different sides, and an edge of negative weight if its ends
are on the same side. A cycle with an odd number of positive edges is called odd; at least one of its edges is not
satisfied. If the weights |w| are divided among odd cycles, so that no edge gives out more than its weight, the weight
of every cut is below the sum of positive weights by at least the sum of the shares. This bound is good on sparse
graphs.

The other bound is good on dense graphs. A cut with sides s in {-1, 1} weighs half of the sum of all weights less
s'As / 4. With d the sums of |w| at the nodes and x = D^(1/2) s, s'As = x' D^(-1/2) A D^(-1/2) x is at least the
smallest eigenvalue of that matrix times x'x, the sum of d (Delorme and Poljak 1993, for one choice of their
correction).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from graphbench.core.kernels import inner, kernel

_SAFETY = 1e-6  # added to an eigenvalue bound before it is rounded down


@inner
def _pack_triangles(rest: NDArray[np.int32]) -> int:
    """Take odd triangles out of the signed weights ``rest [n, n]`` while there are any; return the sum of shares."""
    n = rest.shape[0]
    total = 0
    for u in range(n):
        for v in range(u + 1, n):
            for w in range(v + 1, n):
                if rest[u, v] == 0:
                    break
                product = np.int64(np.sign(rest[u, v])) * np.sign(rest[u, w]) * np.sign(rest[v, w])
                if product > 0:
                    share = min(abs(rest[u, v]), abs(rest[u, w]), abs(rest[v, w]))
                    _spend(rest, u, v, share)
                    _spend(rest, u, w, share)
                    _spend(rest, v, w, share)
                    total += share
    return total


@inner
def _spend(rest: NDArray[np.int32], u: int, v: int, share: int) -> None:
    left = rest[u, v] - share if rest[u, v] > 0 else rest[u, v] + share
    rest[u, v] = rest[v, u] = left


@inner
def _shortest_odd_walk(
    rest: NDArray[np.int32],
    first: NDArray[np.int64],
    near: NDArray[np.int32],
    root: int,
    before: NDArray[np.int32],
    queue: NDArray[np.int32],
) -> int:
    """Return the length of a shortest closed walk at ``root`` with an odd number of positive edges, 0 if there is none.

    States are 2 * node + parity; ``before`` receives the predecessor of every state, -1 if there is none.
    """
    before[:] = -1
    before[2 * root] = 2 * root
    queue[0] = 2 * root
    head, tail, level_end, length = 0, 1, 1, 1
    while head < tail:
        state = queue[head]
        head += 1
        v = state >> 1
        for row in range(first[v], first[v + 1]):
            u = near[row]
            weight = rest[v, u]
            if weight == 0:
                continue
            reached = 2 * u + ((state & 1) ^ (1 if weight > 0 else 0))
            if before[reached] < 0:
                before[reached] = state
                if reached == 2 * root + 1:
                    return length
                queue[tail] = reached
                tail += 1
        if head == level_end:
            level_end = tail
            length += 1
    return 0


@inner
def _spend_cycle(rest: NDArray[np.int32], root: int, before: NDArray[np.int32]) -> int:
    share = 1 << 40
    state = 2 * root + 1
    while state != 2 * root:
        share = min(share, int(abs(rest[state >> 1, before[state] >> 1])))
        state = before[state]
    state = 2 * root + 1
    while state != 2 * root:
        _spend(rest, state >> 1, before[state] >> 1, share)
        state = before[state]
    return share


@kernel
def pack_odd_cycles(first: NDArray[np.int64], near: NDArray[np.int32], weight: NDArray[np.int32]) -> int:
    """Return a lower bound on the positive weight that every cut misses, by a greedy packing of odd cycles.

    Short cycles are packed first. A shortest odd closed walk of the whole graph meets no node twice, so it is a cycle.

    Args:
        first: Neighbour lists ``int64[n + 1]``: node v has rows ``first[v]`` to ``first[v + 1] - 1``.
        near: The neighbours.
        weight: The weights.
    """
    n = first.shape[0] - 1
    rest = np.zeros((n, n), np.int32)
    for v in range(n):
        for row in range(first[v], first[v + 1]):
            rest[v, near[row]] = weight[row]
    total = _pack_triangles(rest)
    before = np.empty(2 * n, np.int32)
    queue = np.empty(2 * n, np.int32)
    wanted = 4
    while wanted > 0:
        following = 0
        for root in range(n):
            length = _shortest_odd_walk(rest, first, near, root, before, queue)
            while 0 < length <= wanted:
                total += _spend_cycle(rest, root, before)
                length = _shortest_odd_walk(rest, first, near, root, before, queue)
            if length > 0 and (following == 0 or length < following):
                following = length
        wanted = following
    return total


def eigenvalue_bound(first: NDArray[np.int64], near: NDArray[np.int32], weight: NDArray[np.int32]) -> int:
    """Return a bound of the weight of every cut from an eigenvalue, rounded down; arguments as `pack_odd_cycles`."""
    n = len(first) - 1
    source = np.repeat(np.arange(n), np.diff(first))
    sums = np.bincount(source, np.abs(weight), n)
    scale = 1 / np.sqrt(np.maximum(sums, 1))
    matrix = np.zeros((n, n))
    matrix[source, near] = weight * scale[source] * scale[near]
    smallest = eigh(matrix, eigvals_only=True, subset_by_index=[0, 0])[0]
    return math.floor(weight.sum() / 4 - smallest * sums.sum() / 4 + _SAFETY)
