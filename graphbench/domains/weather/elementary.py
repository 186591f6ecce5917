"""Elementary functions and linear equations with the same bits on all processors that have AVX2.

Numpy and LAPACK have several implementations of these functions, for processors with and without AVX-512, which differ
in the last bits. Here the C library computes one number after the other (the versions of glibc since 2.28 agree), and
linear equations are solved by sums, products and quotients of single numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.kernels import kernel

Floats = NDArray[np.float64]


def log(values: ArrayLike) -> Floats:
    """Return natural logarithms; float64 of the same shape."""
    return _applied(_log, values)


def exp(values: ArrayLike) -> Floats:
    """Return exponentials; float64 of the same shape."""
    return _applied(_exp, values)


def power(base: ArrayLike, exponent: float) -> Floats:
    """Return positive numbers to the power of one exponent; float64 of the same shape."""
    return exp(exponent * log(base))


def sine_of_degrees(angles: ArrayLike) -> Floats:
    """Return sines of angles in degrees; float64 of the same shape."""
    degrees = np.asarray(angles, np.float64)
    return np.array([math.sin(math.radians(angle)) for angle in degrees.ravel().tolist()]).reshape(degrees.shape)


def solve(matrices: ArrayLike, right: ArrayLike) -> Floats:
    """Solve linear equations by elimination with partial pivoting, as :func:`numpy.linalg.solve` does.

    Args:
        matrices: float64 ``[..., n, n]``.
        right: float64 ``[n]`` or ``[..., n, k]``.

    Returns:
        float64 of the shape of ``right``, with the leading dimensions of ``matrices``.

    Raises:
        numpy.linalg.LinAlgError: If a matrix is singular.
    """
    left, columns = np.asarray(matrices, np.float64), np.asarray(right, np.float64)
    n = left.shape[-1]
    vector = columns.ndim == 1
    columns = columns[:, None] if vector else columns
    columns = np.broadcast_to(columns, (*left.shape[:-2], n, columns.shape[-1]))
    both = np.concatenate([left, columns], axis=-1).reshape(-1, n, n + columns.shape[-1])
    for one in both:
        for i in range(n):
            pivot = i + int(np.argmax(np.abs(one[i:, i])))
            if one[pivot, i] == 0.0:
                raise np.linalg.LinAlgError("a matrix is singular")
            one[[i, pivot]] = one[[pivot, i]]
            one[i] /= one[i, i]
            factors = one[:, i].copy()
            factors[i] = 0.0
            one -= factors[:, None] * one[i]
    solved = both[..., n:].reshape(columns.shape)
    return solved[..., 0] if vector else solved


def inverse(matrices: ArrayLike) -> Floats:
    """Return the inverses of matrices; float64 ``[..., n, n]``."""
    return solve(matrices, np.eye(np.shape(matrices)[-1]))


@contextmanager
def portable_algebra() -> Iterator[None]:
    """Have :mod:`numpy.linalg` solve and invert as this module does, for packages that call it."""
    package: Any = np.linalg
    before = package.solve, package.inv
    package.solve, package.inv = solve, inverse
    try:
        yield
    finally:
        package.solve, package.inv = before


def _applied(function: Callable[[Floats, Floats], None], values: ArrayLike) -> Floats:
    array = np.ascontiguousarray(values, np.float64)
    result = np.empty_like(array)
    function(array.reshape(-1), result.reshape(-1))
    return result


@kernel
def _log(values: Floats, result: Floats) -> None:
    for i in range(len(values)):
        result[i] = math.log(values[i])


@kernel
def _exp(values: Floats, result: Floats) -> None:
    for i in range(len(values)):
        result[i] = math.exp(values[i])
