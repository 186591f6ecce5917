"""Branch and bound for cliques of a wanted size, on bitsets.

A node of the search holds a clique and the set P of nodes adjacent to all of it, and asks for ``need`` more nodes. It
splits off a part of P that provably holds fewer than ``need`` mutually adjacent nodes and branches on the remaining
nodes only. The part is grown in three steps:

1. greedy colouring with ``need - 1`` colours (Tomita and Seki 2003; on bitsets: San Segundo et al. 2011);
2. re-colouring: an uncoloured node takes a colour class if the one neighbour it has there can move to another class
   (Tomita et al. 2010);
3. unit propagation: an uncoloured node v with some classes of which a clique containing v cannot use one node each is
   added for nothing, and these classes are used up (Li and Quan 2010; Li, Fang and Xu 2013).

The nodes must be numbered so that later nodes have smaller core numbers, see `search_order`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, highest_bit, insert, lowest_bit, popcount


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


@njit(cache=True)
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


@njit(cache=True)
def search_order(adjacency: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the search order and the core number of each place in it, both ``int64[n]``.

    The last node of the order has the smallest degree; it is taken away, and so on (Matula and Beck 1983). Among
    equal degrees the node with the smallest id goes first.
    """
    n, words = adjacency.shape
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for w in range(words):
            degree[v] += popcount(adjacency[v, w])
    order = np.empty(n, np.int64)
    core = np.empty(n, np.int64)
    largest = 0
    for place in range(n - 1, -1, -1):
        best = -1
        for v in range(n):
            if degree[v] >= 0 and (best < 0 or degree[v] < degree[best]):
                best = v
        largest = max(largest, degree[best])
        order[place] = best
        core[place] = largest
        degree[best] = -1
        for w in range(words):
            rest = adjacency[best, w]
            while rest != ZERO:
                u = (w << 6) + lowest_bit(rest)
                rest &= rest - ONE
                if degree[u] > 0:
                    degree[u] -= 1
    return order, core


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def find_clique(
    adjacency: NDArray[np.uint64],
    allowed: NDArray[np.uint64],
    need: int,
    most: int,
    budget: int,
    s: Scratch,
    members: NDArray[np.uint64],
) -> tuple[int, int]:
    """Search ``allowed`` for a largest clique of ``need`` to ``most`` nodes.

    Args:
        adjacency: Neighbour sets ``uint64[n, W]``, nodes in search order.
        allowed: Set ``uint64[W]`` in which the clique must lie.
        need: Least size, at least 1.
        most: The search ends with a clique of this size; after a smaller one it asks for one node more.
        budget: Largest number of search nodes to open.
        s: Working memory.
        members: Receives the largest clique found; untouched if there is none.

    Returns:
        The size of the clique found (0 if none) and the budget left; -1 if the budget ran out and the search
        is incomplete.
    """
    n, words = adjacency.shape
    candidates = np.empty((n + 1, words), np.uint64)
    branching = np.empty((n + 1, words), np.uint64)
    path = np.empty(n + 1, np.int64)
    found = 0
    for w in range(words):
        candidates[0, w] = allowed[w]
    depth = 0 if must_branch(adjacency, candidates[0], need, branching[0], s) else -1
    while depth >= 0:
        b = -1
        for w in range(words - 1, -1, -1):
            if branching[depth, w] != ZERO:
                b = (w << 6) + highest_bit(branching[depth, w])
                break
        if b < 0:
            depth -= 1
            continue
        path[depth] = b
        size = 0
        for w in range(words):
            candidates[depth + 1, w] = candidates[depth, w] & adjacency[b, w]
            size += popcount(candidates[depth + 1, w])
        missing = need - depth - 1
        if missing == 0 or (missing == 1 and size > 0):
            for w in range(words):
                members[w] = ZERO
            for i in range(depth + 1):
                insert(members, path[i])
            if missing == 1:
                insert(members, _first_node(candidates[depth + 1]))
            found = need
            if need >= most:
                return found, budget
            need += 1
            continue
        branching[depth, b >> 6] &= ~bit_of(b)
        candidates[depth, b >> 6] &= ~bit_of(b)
        if size < missing:
            continue
        if budget <= 0:
            return found, -1
        budget -= 1
        if must_branch(adjacency, candidates[depth + 1], missing, branching[depth + 1], s):
            depth += 1
    return found, budget


@njit(cache=True)
def _first_node(row: NDArray[np.uint64]) -> int:
    for w in range(row.shape[0]):
        if row[w] != ZERO:
            return (w << 6) + lowest_bit(row[w])
    return -1
