"""Searches for cliques of graphs of at most 64 nodes, each set of nodes one word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit, popcount


@inner
def _colours_suffice(neighbours: NDArray[np.uint64], candidates: np.uint64, k: int) -> bool:
    """Return whether greedy colouring needs at most k colours for ``candidates``."""
    left = candidates
    for _ in range(k):
        free = left
        while free != ZERO:
            v = lowest_bit(free)
            free &= free - ONE
            left ^= bit_of(v)
            free &= ~neighbours[v]
        if left == ZERO:
            return True
    return left == ZERO


@inner
def _greedy_size(neighbours: NDArray[np.uint64], candidates: np.uint64) -> int:
    """Return the size of the clique that grows by the node with most neighbours among the candidates."""
    size = 0
    while candidates != ZERO:
        best, best_degree = -1, -1
        rest = candidates
        while rest != ZERO:
            v = lowest_bit(rest)
            rest &= rest - ONE
            degree = popcount(neighbours[v] & candidates)
            if degree > best_degree:
                best, best_degree = v, degree
        candidates &= neighbours[best]
        size += 1
    return size


@inner
def _word_of(path: NDArray[np.int64], depth: int) -> np.uint64:
    """Return the first ``depth`` nodes of a path as a word."""
    word = ZERO
    for i in range(depth):
        word |= bit_of(path[i])
    return word


@inner
def _open_first(
    neighbours: NDArray[np.uint64], depth: int, candidates: NDArray[np.uint64], path: NDArray[np.int64]
) -> None:
    """Move the first candidate at ``depth`` to the path, and write the candidates that are its neighbours below it."""
    rest = candidates[depth]
    v = lowest_bit(rest)
    path[depth] = v
    candidates[depth] = rest & (rest - ONE)
    candidates[depth + 1] = candidates[depth] & neighbours[v]


@inner
def first_maximum_clique(
    num_nodes: int,
    neighbours: NDArray[np.uint64],
    budget: int,
    candidates: NDArray[np.uint64],
    path: NDArray[np.int64],
) -> tuple[np.uint64, int]:
    """Return the lexicographically smallest maximum clique as a word, and the budget left.

    Cliques are visited in lexicographic order. A branch is left only if colouring shows that it holds no clique of at
    least ``target`` nodes, and ``target`` is never above the maximum before the first maximum clique is met.

    Args:
        num_nodes: Number of nodes n, 1 to 64.
        neighbours: Neighbour sets ``uint64[n]``.
        budget: Largest number of search nodes to open; the second result is -1 if it did not suffice, and the
            first is then the best clique met, possibly empty.
        candidates: Working memory ``uint64[n + 1]``.
        path: Working memory ``int64[n + 1]``.
    """
    everyone = ~ZERO >> np.uint64(64 - num_nodes)
    target = _greedy_size(neighbours, everyone)
    best = ZERO
    candidates[0] = everyone
    depth = 0
    while depth >= 0:
        rest = candidates[depth]
        if rest == ZERO and depth >= target:
            best = _word_of(path, depth)
            target = depth + 1
        if depth + popcount(rest) < target or _colours_suffice(neighbours, rest, target - depth - 1):
            depth -= 1
            continue
        if budget <= 0:
            return best, -1
        budget -= 1
        _open_first(neighbours, depth, candidates, path)
        depth += 1
    return best, budget


@inner
def clique_of_size(
    neighbours: NDArray[np.uint64],
    allowed: np.uint64,
    size: int,
    budget: int,
    candidates: NDArray[np.uint64],
    path: NDArray[np.int64],
) -> tuple[np.uint64, int]:
    """Return the lexicographically smallest clique of ``size`` nodes in ``allowed``, and the budget left.

    Args:
        neighbours: Neighbour sets ``uint64[n]``.
        allowed: The nodes in which the clique must lie.
        size: Number of its nodes, from 0 on.
        budget: Largest number of search nodes to open; the second result is -1 if it did not suffice.
        candidates: Working memory ``uint64[n + 1]``.
        path: Working memory ``int64[n + 1]``.

    Returns:
        The clique as a word, empty if there is none or the budget did not suffice; and the budget left.
    """
    candidates[0] = allowed
    depth = 0
    while depth >= 0:
        if depth == size:
            return _word_of(path, depth), budget
        rest = candidates[depth]
        if depth + popcount(rest) < size or _colours_suffice(neighbours, rest, size - depth - 1):
            depth -= 1
            continue
        if budget <= 0:
            return ZERO, -1
        budget -= 1
        _open_first(neighbours, depth, candidates, path)
        depth += 1
    return ZERO, budget
