"""Kernels of formulas with clauses of one length: uniform random k-SAT and community attachment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, seed, uniform
from graphbench.domains.sat.drawing import (
    draw_subset,
    draw_three,
    real_between,
    rounded,
    signed,
    whole_between,
    write_random_clause,
)

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
    if k == 3:
        _attach_threes(state, n, c, p, literals)
    else:
        _attach(state, n, c, p, literals, k)
    return n, literals, np.arange(m + 1) * k


@inner
def _draw_member(state: NDArray[np.uint64], i: int, size: int, larger: int) -> int:
    """Return a uniform variable of community i; the first ``larger`` communities have ``size + 1`` variables."""
    return i * size + min(i, larger) + below(state, size + (1 if i < larger else 0))


@inner
def _attach(state: NDArray[np.uint64], n: int, c: int, p: float, literals: NDArray[np.int32], k: int) -> None:
    """Write the clauses of `draw_community`."""
    chosen = np.empty(k, np.int64)
    size, larger = n // c, n % c
    for at in range(0, len(literals), k):
        inside = uniform(state) < p
        i = below(state, c) if inside else 0
        draw_subset(state, size + (1 if i < larger else 0) if inside else c, chosen)
        for a in range(k):  # adding to the whole array would take as long as the rest of the draw
            first = i * size + min(i, larger)
            chosen[a] = chosen[a] + first if inside else _draw_member(state, chosen[a], size, larger)
        write_random_clause(state, chosen, literals, at)


@inner
def _attach_threes(state: NDArray[np.uint64], n: int, c: int, p: float, literals: NDArray[np.int32]) -> None:
    """Write the clauses of `_attach` for k = 3 in half the time: without an array and loops."""
    size, larger = n // c, n % c
    for at in range(0, len(literals), 3):
        inside = uniform(state) < p
        i = below(state, c) if inside else 0
        x, y, z = draw_three(state, size + (1 if i < larger else 0) if inside else c)
        if inside:
            first = i * size + min(i, larger)
            x, y, z = x + first, y + first, z + first
        else:
            x = _draw_member(state, x, size, larger)
            y = _draw_member(state, y, size, larger)
            z = _draw_member(state, z, size, larger)
        signs = next_u64(state)
        literals[at], literals[at + 1], literals[at + 2] = signed(x, signs, 0), signed(y, signs, 1), signed(z, signs, 2)


_MOST_LITERALS = 64  # of a clause of `draw_mixed`; the chance of a longer one is below 1e-13


@kernel
def draw_mixed(
    key: np.uint64, index: int, attempt: int, variables: tuple[int, int], ratio: tuple[float, float]
) -> Formula:
    """Draw clauses of mixed lengths, the stream of SR(n): 1 + Bernoulli(0.7) + Geometric(0.4) distinct variables.

    Source: Selsam et al., 2019, "Learning a SAT solver from single-bit supervision", section 4. Signs are random, and
    a clause has at most n variables. ``variables`` and ``ratio`` (clauses per variable) are the ranges from which the
    sizes are drawn.
    """
    state = seed(key, index, attempt, 0)
    n = whole_between(state, variables[0], variables[1])
    m = rounded(real_between(state, ratio[0], ratio[1]) * n)
    most = min(n, _MOST_LITERALS)
    ptr = np.zeros(m + 1, np.int64)
    literals = np.empty(m * most, np.int32)
    chosen = np.empty(most, np.int64)
    for j in range(m):
        length = 2 if uniform(state) < 0.3 else 3
        while length < most and uniform(state) >= 0.4:
            length += 1
        length = min(length, most)
        draw_subset(state, n, chosen[:length])
        write_random_clause(state, chosen[:length], literals, ptr[j])
        ptr[j + 1] = ptr[j] + length
    return n, literals[: ptr[m]].copy(), ptr
