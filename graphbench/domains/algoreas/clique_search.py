"""Branch and bound for cliques of a wanted size, on bitsets, with the bound of `clique_bound`.

The nodes must be numbered so that later nodes have smaller core numbers, see `search_order`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, highest_bit, insert, lowest_bit, popcount
from graphbench.domains.algoreas.clique_bound import Scratch, must_branch


@kernel
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
    for position in range(n - 1, -1, -1):
        best = -1
        for v in range(n):
            if degree[v] >= 0 and (best < 0 or degree[v] < degree[best]):
                best = v
        largest = max(largest, degree[best])
        order[position] = best
        core[position] = largest
        degree[best] = -1
        for w in range(words):
            rest = adjacency[best, w]
            while rest != ZERO:
                u = (w << 6) + lowest_bit(rest)
                rest &= rest - ONE
                if degree[u] > 0:
                    degree[u] -= 1
    return order, core


@kernel
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
    clique_size = 0
    for w in range(words):
        candidates[0, w] = allowed[w]
    depth = 0 if must_branch(adjacency, candidates[0], need, branching[0], s) else -1
    while depth >= 0:
        b = last_node(branching[depth])
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
            clique_size = need
            if need >= most:
                return clique_size, budget
            need += 1
            continue
        branching[depth, b >> 6] &= ~bit_of(b)
        candidates[depth, b >> 6] &= ~bit_of(b)
        if size < missing:
            continue
        if budget <= 0:
            return clique_size, -1
        budget -= 1
        if must_branch(adjacency, candidates[depth + 1], missing, branching[depth + 1], s):
            depth += 1
    return clique_size, budget


@inner
def _first_node(row: NDArray[np.uint64]) -> int:
    for w in range(row.shape[0]):
        if row[w] != ZERO:
            return (w << 6) + lowest_bit(row[w])
    return -1


@inner
def last_node(row: NDArray[np.uint64]) -> int:
    """Return the last node of a set ``uint64[W]``; -1 if it is empty."""
    for w in range(row.shape[0] - 1, -1, -1):
        if row[w] != ZERO:
            return (w << 6) + highest_bit(row[w])
    return -1


@inner
def _nth_node(row: NDArray[np.uint64], skip: int) -> int:
    for w in range(row.shape[0]):
        rest = row[w]
        while rest != ZERO:
            if skip == 0:
                return (w << 6) + lowest_bit(rest)
            skip -= 1
            rest &= rest - ONE
    return -1


@kernel
def estimate_nodes(
    adjacency: NDArray[np.uint64],
    allowed: NDArray[np.uint64],
    need: int,
    probes: int,
    state: NDArray[np.uint64],
    s: Scratch,
) -> float:
    """Return an unbiased estimate of how many nodes `find_clique` opens if there is no clique of ``need`` nodes.

    Each probe goes down at random, one branch a level; a node counts for the product of the numbers of branches above
    it (Knuth 1975). The mean is dominated by few probes, so it tells an order of magnitude only.
    """
    words = allowed.shape[0]
    candidates = np.empty(words, np.uint64)
    branching = np.empty(words, np.uint64)
    total = 0.0
    for _ in range(probes):
        weight = 1.0
        missing = need
        for w in range(words):
            candidates[w] = allowed[w]
        while missing > 1 and must_branch(adjacency, candidates, missing, branching, s):
            branches = 0
            for w in range(words):
                branches += popcount(branching[w])
            skip = below(state, branches)
            b = _nth_node(branching, skip)
            weight *= branches
            total += weight
            missing -= 1
            # The branch of b excludes the nodes that are branched on before it: the later ones.
            for w in range(words):
                later = ZERO
                if w > b >> 6:
                    later = branching[w]
                elif w == b >> 6:
                    later = branching[w] & ~((bit_of(b) << ONE) - ONE)
                candidates[w] &= adjacency[b, w] & ~later
    return total / probes
