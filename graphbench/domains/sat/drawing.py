"""Small random draws that the kernels of several formula families share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.core.rng import below, next_u64, uniform


@inner
def whole_between(state: NDArray[np.uint64], low: int, high: int) -> int:
    """Return a whole number uniform on low .. high, both included."""
    return low + below(state, high - low + 1)


@inner
def real_between(state: NDArray[np.uint64], low: float, high: float) -> float:
    """Return a number uniform on [low, high)."""
    return low + (high - low) * uniform(state)


@inner
def rounded(number: float) -> int:
    """Return the nearest whole number; halves are rounded up."""
    return math.floor(number + 0.5)


@inner
def draw_subset(state: NDArray[np.uint64], n: int, chosen: NDArray[np.int64]) -> None:
    """Fill ``chosen`` int64 ``[k]`` with a uniform subset of 0 .. n-1, sorted (Floyd; Bentley and Floyd, 1987)."""
    k = len(chosen)
    for size in range(k):
        top = n - k + size
        pick = below(state, top + 1)
        taken = False
        for i in range(size):
            taken = taken or chosen[i] == pick
        if taken:
            pick = top
        for i in range(size):  # insertion without branches to mispredict
            chosen[i], pick = min(chosen[i], pick), max(chosen[i], pick)
        chosen[size] = pick


@inner
def draw_three(state: NDArray[np.uint64], n: int) -> tuple[int, int, int]:
    """Return the subset that `draw_subset` draws for k = 3; without an array and loops it takes half the time."""
    x = below(state, n - 2)
    y = below(state, n - 1)
    if y == x:
        y = n - 2
    z = below(state, n)
    if z in (x, y):
        z = n - 1
    x, y = min(x, y), max(x, y)
    y, z = min(y, z), max(y, z)
    return min(x, y), max(x, y), z


@inner
def signed(variable: int, signs: np.uint64, position: int) -> int:
    """Return a variable, counted from 0, as a literal: positive if the bit of ``signs`` at the position is 1.

    No branch can be mispredicted.
    """
    negative: int = np.int64((signs >> np.uint64(position)) & np.uint64(1)) - 1  # type: ignore[assignment] # 0 or -1
    return ((variable + 1) ^ negative) - negative


@inner
def write_random_clause(
    state: NDArray[np.uint64], variables: NDArray[np.int64], literals: NDArray[np.int32], at: int
) -> None:
    """Write at most 64 variables, counted from 0, with random signs as literals from position ``at`` on."""
    signs = next_u64(state)
    for i in range(len(variables)):
        literals[at + i] = signed(variables[i], signs, i)
