"""Distinct random weights that float32 holds exactly, inside compiled kernels.

Weights lie on an even grid in the open interval (0, scale). The step is the smallest power of two, 2**-24 at least,
for which all grid points are exact float32 numbers; so distinct grid points stay distinct, sums of weights are exact
in float64, and algorithms may compute with the integer multiples of the step. Steps: 2**-24 for scale 1, 2**-22 for
scale 3, 2**-21 for 5 and 2**-20 (about 1e-6) for 10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below

_MANTISSA = 2**24


@kernel
def grid_step(scale: float) -> float:
    """Return the distance between neighbouring weights of the interval (0, scale), for scale >= 1."""
    step = 1.0 / _MANTISSA
    while scale > step * _MANTISSA:
        step *= 2.0
    return step


@kernel
def distinct_integers(state: NDArray[np.uint64], count: int, bound: int) -> NDArray[np.int64]:
    """Return ``int64[count]`` integers, uniform on 1 .. bound-1, all different.

    A value already seen is drawn again at once, so the result is uniform over all ordered selections.

    Raises:
        ValueError: More values are asked for than the range holds.
    """
    if count >= bound:
        raise ValueError("more distinct weights asked for than the grid of float32 weights holds")
    size = 16
    while size < 2 * count:
        size *= 2
    seen = np.zeros(size, np.int32)
    values = np.empty(count, np.int64)
    for i in range(count):
        fresh = False
        while not fresh:
            value = 1 + below(state, bound - 1)
            slot = value & (size - 1)
            while seen[slot] != 0 and seen[slot] != value:
                slot = (slot + 1) & (size - 1)
            fresh = seen[slot] == 0
        seen[slot] = value
        values[i] = value
    return values


@kernel
def distinct_weights(state: NDArray[np.uint64], count: int, scale: float) -> NDArray[np.float32]:
    """Return ``float32[count]`` weights, uniform on the grid in (0, scale), all different.

    Args:
        state: Generator of the sample; advanced.
        count: Number of weights.
        scale: Upper end of the interval, at least 1; excluded, like 0.
    """
    step = grid_step(scale)
    integers = distinct_integers(state, count, int(scale / step))
    weights = np.empty(count, np.float32)
    for i in range(count):
        weights[i] = np.float32(integers[i] * step)
    return weights
