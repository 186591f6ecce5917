"""Linear algebra of small dense matrices in plain loops: the same bits on every machine, which no BLAS promises.

All functions are for compiled code; matrices are float64 and in C order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel

Floats = NDArray[np.float64]

_SMALL = 1e-9  # relative size below which a pivot of a semidefinite matrix is zero


@kernel
def product(left: Floats, right: Floats) -> Floats:
    """Return ``left @ right``."""
    rows, inner, columns = left.shape[0], left.shape[1], right.shape[1]
    result = np.zeros((rows, columns))
    for i in range(rows):
        for k in range(inner):
            factor = left[i, k]
            if factor != 0.0:
                for j in range(columns):
                    result[i, j] += factor * right[k, j]
    return result


@kernel
def transposed(matrix: Floats) -> Floats:
    """Return the transpose in C order."""
    result = np.empty((matrix.shape[1], matrix.shape[0]))
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            result[j, i] = matrix[i, j]
    return result


@kernel
def block(matrix: Floats, first_row: int, last_row: int, first: int, last: int) -> Floats:
    """Return a copy of the rows and columns from the first to before the last."""
    result = np.empty((last_row - first_row, last - first))
    for i in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[i, j] = matrix[first_row + i, first + j]
    return result


@kernel
def put(target: Floats, first_row: int, first: int, factor: float, source: Floats) -> None:
    """Write a multiple of a matrix into another one, from a row and column on."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[first_row + i, first + j] = factor * source[i, j]


@kernel
def add(target: Floats, factor: float, source: Floats) -> None:
    """Add a multiple of a matrix to another one."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] += factor * source[i, j]


@kernel
def identity(n: int) -> Floats:
    """Return the identity matrix."""
    result = np.zeros((n, n))
    for i in range(n):
        result[i, i] = 1.0
    return result


@kernel
def congruent(matrix: Floats, columns: Floats) -> Floats:
    """Return ``columns.T @ matrix @ columns``."""
    return product(transposed(columns), product(matrix, columns))


@kernel
def solve(matrix: Floats, right: Floats) -> Floats:
    """Return the solution X of ``matrix @ X = right``, by elimination with partial pivoting; infinite if singular."""
    n, columns = matrix.shape[0], right.shape[1]
    left, solution = matrix.copy(), right.copy()
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(left[i, k]) > abs(left[pivot, k]):
                pivot = i
        if left[pivot, k] == 0.0:
            return np.full((n, columns), np.inf)
        if pivot != k:
            for j in range(n):
                left[k, j], left[pivot, j] = left[pivot, j], left[k, j]
            for j in range(columns):
                solution[k, j], solution[pivot, j] = solution[pivot, j], solution[k, j]
        for i in range(k + 1, n):
            ratio = left[i, k] / left[k, k]
            for j in range(k, n):
                left[i, j] -= ratio * left[k, j]
            for j in range(columns):
                solution[i, j] -= ratio * solution[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(columns):
            total = solution[k, j]
            for i in range(k + 1, n):
                total -= left[k, i] * solution[i, j]
            solution[k, j] = total / left[k, k]
    return solution


@kernel
def cholesky(matrix: Floats) -> Floats:
    """Return the lower factor L of a positive definite matrix, with ``L @ L.T`` equal to it."""
    n = matrix.shape[0]
    lower = np.zeros((n, n))
    for j in range(n):
        for i in range(j, n):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(total) if i == j else total / lower[j, j]
    return lower


@kernel
def semidefinite_factor(matrix: Floats) -> Floats:
    """Return F, float64 ``[n, rank]``, with ``F @ F.T`` equal to a positive semidefinite matrix (pivoted Cholesky)."""
    n = matrix.shape[0]
    rest, factor = matrix.copy(), np.zeros((n, n))
    largest = 0.0
    for i in range(n):
        largest = max(largest, matrix[i, i])
    rank = 0
    while rank < n:
        pivot = 0
        for i in range(n):
            if rest[i, i] > rest[pivot, pivot]:
                pivot = i
        if not rest[pivot, pivot] > _SMALL * largest:
            break
        scale = np.sqrt(rest[pivot, pivot])
        for i in range(n):
            factor[i, rank] = rest[i, pivot] / scale
        for i in range(n):
            for j in range(n):
                rest[i, j] -= factor[i, rank] * factor[j, rank]
        rank += 1
    return block(factor, 0, n, 0, rank)


@kernel
def norm(matrix: Floats) -> float:
    """Return the Frobenius norm."""
    total = 0.0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * matrix[i, j]
    return float(np.sqrt(total))
