"""The bound of the search for cliques of a wanted size, on bitsets.

A node of the search holds a clique and the set P of nodes adjacent to all of it, and asks for ``need`` more nodes. It
splits off a part of P that provably holds fewer than ``need`` mutually adjacent nodes and branches on the remaining
nodes only. The part is grown in three steps:

1. greedy colouring with ``need - 1`` colours (Tomita and Seki 2003; on bitsets: San Segundo et al. 2011);
2. re-colouring: an uncoloured node takes a colour class if the one neighbour it has there can move to another class
   (Tomita et al. 2010);
3. unit propagation: an uncoloured node v with some classes of which a clique containing v cannot use one node each is
   added for nothing, and these classes are used up (Li and Quan 2010; Li, Fang and Xu 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit, popcount


class Scratch(NamedTuple):
    """Working memory of the bound for one graph of n nodes and W words per set."""

    classes: NDArray[np.uint64]  # [n + 1, W] colour classes
    used: NDArray[np.bool_]  # [n + 1] classes used up by an earlier node
    propagated: NDArray[np.bool_]  # [n + 1] classes reduced to one node
    needed: NDArray[np.bool_]  # [n + 2] units needed for the conflict
    units: NDArray[np.int64]  # [n + 2] nodes forced into the clique, in order
    unit_class: NDArray[np.int64]  # [n + 2] the class each comes from
    alive: NDArray[np.uint64]  # [W] common neighbours of the units
    left: NDArray[np.uint64]  # [W] nodes without a colour
    free: NDArray[np.uint64]  # [W] a working set


@kernel
def make_scratch(num_nodes: int, words: int) -> Scratch:
    """Allocate the working memory of the bound."""
    return Scratch(
        np.zeros((num_nodes + 1, words), np.uint64),
        np.zeros(num_nodes + 1, np.bool_),
        np.zeros(num_nodes + 1, np.bool_),
        np.zeros(num_nodes + 2, np.bool_),
        np.zeros(num_nodes + 2, np.int64),
        np.zeros(num_nodes + 2, np.int64),
        np.zeros(words, np.uint64),
        np.zeros(words, np.uint64),
        np.zeros(words, np.uint64),
    )


@inner
def _leaves_uncoloured(adjacency: NDArray[np.uint64], candidates: NDArray[np.uint64], k: int, s: Scratch) -> bool:
    """Colour ``candidates`` with k classes, lowest node first; return whether nodes are left in ``s.left``."""
    words = candidates.shape[0]
    rest = ZERO
    for w in range(words):
        s.left[w] = candidates[w]
        rest |= candidates[w]
    for c in range(k):
        if rest == ZERO:
            return False
        for w in range(words):
            s.free[w] = s.left[w]
            s.classes[c, w] = ZERO
        rest = ZERO
        for w in range(words):
            while s.free[w] != ZERO:
                low = lowest_bit(s.free[w])
                bit = bit_of(low)
                v = (w << 6) + low
                s.classes[c, w] |= bit
                s.free[w] &= ~bit
                for z in range(w, words):
                    s.free[z] &= ~adjacency[v, z]
            s.left[w] &= ~s.classes[c, w]
            rest |= s.left[w]
    return rest != ZERO


@inner
def _fits_after_move(adjacency: NDArray[np.uint64], v: int, k: int, s: Scratch) -> bool:
    """Give v a class by moving at most one node; return whether it worked."""
    words = adjacency.shape[1]
    for c in range(k):
        hits = 0
        other = -1
        for w in range(words):
            common = s.classes[c, w] & adjacency[v, w]
            if common != ZERO:
                hits += popcount(common)
                other = (w << 6) + lowest_bit(common)
            if hits > 1:
                break
        if hits == 0:
            s.classes[c, v >> 6] |= bit_of(v)
            return True
        if hits > 1:
            continue
        for to in range(k):
            clash = ZERO
            for w in range(words):
                clash |= s.classes[to, w] & adjacency[other, w]
            if clash == ZERO and to != c:
                s.classes[c, other >> 6] &= ~bit_of(other)
                s.classes[to, other >> 6] |= bit_of(other)
                s.classes[c, v >> 6] |= bit_of(v)
                return True
    return False


@inner
def _conflict_from(adjacency: NDArray[np.uint64], v: int, k: int, s: Scratch) -> tuple[int, int]:
    """Put v into the clique, propagate; return (the class left without a node or -1, the number of units)."""
    words = adjacency.shape[1]
    for c in range(k):
        s.propagated[c] = s.used[c]
    for w in range(words):
        s.alive[w] = adjacency[v, w]
    s.units[0], s.unit_class[0] = v, -1
    m = 1
    again = True
    while again:
        again = False
        for c in range(k):
            if s.propagated[c]:
                continue
            choices = 0
            for w in range(words):
                choices += popcount(s.classes[c, w] & s.alive[w])
            if choices == 0:
                return c, m
            if choices > 1:
                continue
            u = -1
            for w in range(words):
                only = s.classes[c, w] & s.alive[w]
                if only != ZERO:
                    u = (w << 6) + lowest_bit(only)
            s.propagated[c] = True
            s.units[m], s.unit_class[m] = u, c
            m += 1
            for w in range(words):
                s.alive[w] &= adjacency[u, w]
            again = True
    return -1, m


@inner
def _need_units(adjacency: NDArray[np.uint64], c: int, spared: int, m: int, s: Scratch) -> None:
    """Mark the first units (of m) that together rule out every node of class c but ``spared``."""
    words = adjacency.shape[1]
    for w in range(words):
        s.free[w] = s.classes[c, w]
    if spared >= 0:
        s.free[spared >> 6] &= ~bit_of(spared)
    for i in range(m):
        ruled_out = ZERO
        rest = ZERO
        for w in range(words):
            ruled_out |= s.free[w] & ~adjacency[s.units[i], w]
            s.free[w] &= adjacency[s.units[i], w]
            rest |= s.free[w]
        if ruled_out != ZERO:
            s.needed[i] = True
        if rest == ZERO:
            return


@inner
def _use_up_conflict(adjacency: NDArray[np.uint64], conflict: int, m: int, s: Scratch) -> None:
    """Mark as used the classes from which the conflict follows."""
    for i in range(m):
        s.needed[i] = False
    s.used[conflict] = True
    _need_units(adjacency, conflict, -1, m, s)
    for i in range(m - 1, 0, -1):
        if s.needed[i]:
            s.used[s.unit_class[i]] = True
            _need_units(adjacency, s.unit_class[i], s.units[i], i, s)


@inner
def must_branch(
    adjacency: NDArray[np.uint64],
    candidates: NDArray[np.uint64],
    need: int,
    branching: NDArray[np.uint64],
    s: Scratch,
) -> bool:
    """Return whether ``candidates`` may hold a clique of ``need`` nodes.

    If so, ``branching uint64[W]`` receives nodes of which every such clique contains at least one.
    """
    k = need - 1
    if not _leaves_uncoloured(adjacency, candidates, k, s):
        return False
    words = candidates.shape[0]
    remaining = ZERO
    for w in range(words):
        todo = s.left[w]
        while todo != ZERO:
            low = lowest_bit(todo)
            todo &= todo - ONE
            if _fits_after_move(adjacency, (w << 6) + low, k, s):
                s.left[w] &= ~bit_of(low)
        remaining |= s.left[w]
    if remaining == ZERO:
        return False
    for c in range(k):
        s.used[c] = False
    remaining = ZERO
    for w in range(words):
        todo = s.left[w]
        branching[w] = todo
        while todo != ZERO:
            low = lowest_bit(todo)
            todo &= todo - ONE
            conflict, m = _conflict_from(adjacency, (w << 6) + low, k, s)
            if conflict >= 0:
                _use_up_conflict(adjacency, conflict, m, s)
                branching[w] &= ~bit_of(low)
        remaining |= branching[w]
    return remaining != ZERO
