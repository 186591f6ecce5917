"""Local search for large cuts: one-flip tabu search, restarted from a perturbed best cut.

Each step moves one node to the other side: the node that gains most (or loses least) among the nodes that were not
moved lately. A node that was moved lately may move if this gives a new best cut (Kochenberger et al. 2013). A walk
without improvement restarts, in turn from the best cut with a random part of the nodes flipped (as in breakout local
search, Benlic and Hao 2013) and from a random cut, because single flips do not leave local optima of graphs of cliques.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below

_MIN_TENURE = 5
_TENURE_SHARE = 50
_TENURE_SPREAD = 10
_MIN_PATIENCE = 100


@inner
def _gains(
    first: NDArray[np.int64],
    near: NDArray[np.int32],
    weight: NDArray[np.int32],
    side: NDArray[np.bool_],
    gain: NDArray[np.int64],
) -> int:
    """Fill in the gain of moving each node, and return the value of the cut."""
    twice = 0
    for v in range(side.shape[0]):
        gain[v] = 0
        for k in range(first[v], first[v + 1]):
            if side[near[k]] == side[v]:
                gain[v] += weight[k]
            else:
                gain[v] -= weight[k]
                twice += weight[k]
    return twice // 2


@inner
def _best_move(
    gain: NDArray[np.int64], until: NDArray[np.int64], step: int, wanted: int, state: NDArray[np.uint64]
) -> int:
    """Return a node with the highest gain that is not tabu or gains more than ``wanted``, -1 if there is none."""
    best = -1
    highest = np.int64(-(1 << 62))
    ties = 0
    for v in range(gain.shape[0]):
        value = gain[v]
        if value < highest or (until[v] >= step and value <= wanted):
            continue
        if value > highest:
            best, highest, ties = v, value, 1
        else:
            ties += 1
            if below(state, ties) == 0:
                best = v
    return best


@inner
def _move(
    v: int,
    first: NDArray[np.int64],
    near: NDArray[np.int32],
    weight: NDArray[np.int32],
    side: NDArray[np.bool_],
    gain: NDArray[np.int64],
) -> None:
    side[v] = not side[v]
    gain[v] = -gain[v]
    for k in range(first[v], first[v + 1]):
        u = near[k]
        change = 2 * np.int64(weight[k])
        gain[u] += change if side[u] == side[v] else -change


@inner
def _restart(best_side: NDArray[np.bool_], afresh: bool, side: NDArray[np.bool_], state: NDArray[np.uint64]) -> None:
    """Make ``side`` a random cut, or the best one with up to half of the nodes flipped."""
    n = side.shape[0]
    for v in range(n):
        side[v] = below(state, 2) == 1 if afresh else best_side[v]
    if not afresh:
        for _ in range(1 + below(state, n // 2 + 1)):
            v = below(state, n)
            side[v] = not side[v]


@kernel
def search_cut(
    first: NDArray[np.int64],
    near: NDArray[np.int32],
    weight: NDArray[np.int32],
    steps: int,
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.bool_], int]:
    """Return the sides ``bool[n]`` of the heaviest cut of the search, and its weight.

    Args:
        first: Neighbour lists ``int64[n + 1]``: node v has rows ``first[v]`` to ``first[v + 1] - 1``.
        near: The neighbours.
        weight: The weights, equal in both directions.
        steps: Moves to make.
        state: State of the random generator, advanced.
    """
    n = first.shape[0] - 1
    side = np.zeros(n, np.bool_)
    _restart(side, True, side, state)
    gain = np.empty(n, np.int64)
    value = _gains(first, near, weight, side, gain)
    best, best_side = value, side.copy()
    until = np.zeros(n, np.int64)
    tenure = _MIN_TENURE + n // _TENURE_SHARE
    patience = max(n, _MIN_PATIENCE)
    walk_best, last, afresh = value, 0, True
    for step in range(1, steps + 1):
        v = _best_move(gain, until, step, best - value, state)
        if v < 0:
            v = below(state, n)
        value += gain[v]
        _move(v, first, near, weight, side, gain)
        until[v] = step + tenure + below(state, _TENURE_SPREAD)
        if value > walk_best:
            walk_best, last = value, step
            if value > best:
                best = value
                best_side[:] = side
        if step - last >= patience:
            afresh = not afresh
            _restart(best_side, afresh, side, state)
            value = _gains(first, near, weight, side, gain)
            walk_best, last = value, step
    return best_side, best
