"""Local search for large cliques: a good first value for the exact search, and the answer where that one gives up.

The walk of Pullan and Hoos (2006, "Dynamic Local Search for the Maximum Clique Problem") without vertex penalties:
grow the clique while possible, else swap one member for a node that misses only this member, else add a random node
and drop the members it misses. A node enters once between two such restarts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below
from graphbench.domains.algoreas.bits import ONE, ZERO, contains, count, discard, insert, lowest_bit, popcount


@inner
def comes_before(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> bool:
    """Return whether set a of the same size comes before b, the sorted members read as words."""
    for w in range(a.shape[0]):
        differing = a[w] ^ b[w]
        if differing != ZERO:
            return (a[w] & differing & (~differing + ONE)) != ZERO
    return False


@inner
def _random_unused(choices: NDArray[np.uint64], used: NDArray[np.uint64], state: NDArray[np.uint64]) -> int:
    """Return a uniform member of ``choices`` that is not in ``used``, -1 if there is none."""
    words = choices.shape[0]
    total = 0
    for w in range(words):
        total += popcount(choices[w] & ~used[w])
    if total == 0:
        return -1
    skip = below(state, total)
    for w in range(words):
        rest = choices[w] & ~used[w]
        size = popcount(rest)
        if skip < size:
            for _ in range(skip):
                rest &= rest - ONE
            return (w << 6) + lowest_bit(rest)
        skip -= size
    return -1


@inner
def _first_missed(clique: NDArray[np.uint64], neighbours: NDArray[np.uint64]) -> int:
    for w in range(clique.shape[0]):
        missed = clique[w] & ~neighbours[w]
        if missed != ZERO:
            return (w << 6) + lowest_bit(missed)
    return -1


@inner
def _count_misses(
    strangers: NDArray[np.uint64],
    change: int,
    misses: NDArray[np.int64],
    none: NDArray[np.uint64],
    one: NDArray[np.uint64],
) -> None:
    """Add ``change`` to the misses of ``strangers`` and keep the sets of nodes with none and with one."""
    for w in range(strangers.shape[0]):
        rest = strangers[w]
        while rest != ZERO:
            bit = rest & (~rest + ONE)
            u = (w << 6) + lowest_bit(rest)
            rest ^= bit
            misses[u] += change
            none[w] = (none[w] | bit) if misses[u] == 0 else (none[w] & ~bit)
            one[w] = (one[w] | bit) if misses[u] == 1 else (one[w] & ~bit)


@kernel
def stranger_rows(adjacency: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each node the set of other nodes it has no edge to, ``uint64[n, W]``."""
    n, words = adjacency.shape
    strangers = np.zeros((n, words), np.uint64)
    for v in range(n):
        for u in range(n):
            if u != v and not contains(adjacency[v], u):
                strangers[v, u >> 6] |= ONE << np.uint64(u & 63)
    return strangers


@kernel
def improve_clique(
    adjacency: NDArray[np.uint64],
    strangers: NDArray[np.uint64],
    steps: int,
    state: NDArray[np.uint64],
    best: NDArray[np.uint64],
) -> int:
    """Walk ``steps`` steps from the clique ``best`` and leave there the largest clique met; return its size.

    Among the largest cliques met, the lexicographically smallest is kept. It is maximal: no node can be added.

    Args:
        adjacency: Neighbour sets ``uint64[n, W]``.
        strangers: Sets of non-neighbours, from `stranger_rows`.
        steps: Number of additions, swaps and restarts.
        state: State of the random generator, advanced.
        best: A clique ``uint64[W]``, possibly empty, improved in place.
    """
    n, words = adjacency.shape
    clique = best.copy()
    best_size = count(best)
    misses = np.zeros(n, np.int64)
    none = np.zeros(words, np.uint64)
    one = np.zeros(words, np.uint64)
    used = clique.copy()
    anchor = clique.copy()
    for v in range(n):
        insert(none, v)
    for v in range(n):
        if contains(clique, v):
            discard(none, v)
            _count_misses(strangers[v], 1, misses, none, one)
    size = best_size
    for _ in range(steps):
        v = _random_unused(none, used, state)
        if v < 0:
            overlap = ZERO
            for w in range(words):
                overlap |= clique[w] & anchor[w]
            if overlap != ZERO:
                v = _random_unused(one, used, state)
            if v < 0:
                v = below(state, n)
                while size < n and contains(clique, v):
                    v = below(state, n)
                for w in range(words):
                    used[w] = ZERO
        if contains(clique, v):
            break
        grown = misses[v] == 0
        dropped = _first_missed(clique, adjacency[v])
        while dropped >= 0:
            discard(clique, dropped)
            size -= 1
            _count_misses(strangers[dropped], -1, misses, none, one)
            insert(none, dropped) if misses[dropped] == 0 else insert(one, dropped)
            dropped = _first_missed(clique, adjacency[v])
        insert(clique, v)
        insert(used, v)
        size += 1
        discard(none, v)
        _count_misses(strangers[v], 1, misses, none, one)
        if grown:
            for w in range(words):
                anchor[w] = clique[w]
        if size > best_size or (size == best_size and comes_before(clique, best)):
            for w in range(words):
                best[w] = clique[w]
            best_size = size
    for v in range(n):
        if not contains(best, v) and _first_missed(best, adjacency[v]) < 0:
            insert(best, v)
            best_size += 1
    return best_size
