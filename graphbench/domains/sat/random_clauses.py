"""Kernels of formulas with clauses of one length: uniform random k-SAT and community attachment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below, seed, uniform
from graphbench.domains.sat.drawing import draw_subset, real_between, rounded, whole_between, write_random_clause

Formula = tuple[int, NDArray[np.int32], NDArray[np.int64]]
"""Number of variables, literals int32 ``[L]`` and starts of the clauses int64 ``[m + 1]``, as in `Cnf`."""


@kernel
def draw_uniform(
    key: np.uint64, index: int, attempt: int, variables: tuple[int, int], ratio: tuple[float, float], k: int
) -> Formula:
    """Draw a formula of uniform random k-SAT: clauses of k distinct variables with random signs, drawn independently.

    ``variables`` and ``ratio`` (clauses per variable) are the ranges from which the sizes are drawn.
    """
    state = seed(key, index, attempt, 0)
    n = whole_between(state, variables[0], variables[1])
    m = rounded(real_between(state, ratio[0], ratio[1]) * n)
    literals = np.empty(m * k, np.int32)
    chosen = np.empty(k, np.int64)
    for j in range(m):
        draw_subset(state, n, chosen)
        write_random_clause(state, chosen, literals, j * k)
    return n, literals, np.arange(m + 1) * k


@kernel
def draw_community(
    key: np.uint64,
    index: int,
    attempt: int,
    variables: tuple[int, int],
    communities: tuple[int, int],
    ratio: tuple[float, float],
    modularity: tuple[float, float],
    k: int,
) -> Formula:
    """Draw a formula by community attachment.

    Source: Giraldez-Cru and Levy, 2016, "Generating SAT instances with community structure".
    The n variables form c communities of consecutive numbers whose sizes differ by at most one. With probability
    P = Q + 1/c, at most 1, the k distinct variables of a clause are drawn from one community, chosen uniformly;
    otherwise from k different communities, one from each. The signs are random.
    """
    state = seed(key, index, attempt, 0)
    n = whole_between(state, variables[0], variables[1])
    c = whole_between(state, communities[0], communities[1])
    m = rounded(real_between(state, ratio[0], ratio[1]) * n)
    p = real_between(state, modularity[0], modularity[1]) + 1.0 / c
    literals = np.empty(m * k, np.int32)
    chosen = np.empty(k, np.int64)
    size, larger = n // c, n % c
    for j in range(m):
        if uniform(state) < p:
            i = below(state, c)
            draw_subset(state, size + (1 if i < larger else 0), chosen)
            first = i * size + min(i, larger)
            for a in range(k):  # adding to the whole array would take as long as the rest of the draw
                chosen[a] += first
        else:
            draw_subset(state, c, chosen)
            for a in range(k):
                i = chosen[a]
                chosen[a] = i * size + min(i, larger) + below(state, size + (1 if i < larger else 0))
        write_random_clause(state, chosen, literals, j * k)
    return n, literals, np.arange(m + 1) * k
