"""Runs of rows: their offsets, and the copy loop of shuffled batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel


def offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the running sum of ``counts`` with a leading zero, int64 ``[len + 1]``."""
    ptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    return ptr


def take_runs(array: NDArray[Any], first: NDArray[Any], ptr: NDArray[np.int64]) -> NDArray[Any]:
    """Return the concatenation of runs of rows of a C-contiguous array.

    Args:
        array: Any dtype, ``[rows, ...]``.
        first: First row of every run, ``[runs]``.
        ptr: int64 ``[runs + 1]``: run ``i`` has ``ptr[i + 1] - ptr[i]`` rows and goes to row ``ptr[i]``.
    """
    taken = np.empty((int(ptr[-1]), *array.shape[1:]), array.dtype)
    width = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    if taken.size:
        _copy_runs(
            array.reshape(-1).view(np.uint8), first.astype(np.int64), ptr, width, taken.reshape(-1).view(np.uint8)
        )
    return taken


@kernel
def _copy_runs(
    source: NDArray[np.uint8], first: NDArray[np.int64], ptr: NDArray[np.int64], width: int, target: NDArray[np.uint8]
) -> int:
    touched = 0  # prefetch: independent reads, one per cache line, so that cache misses overlap
    for i in range(first.shape[0]):
        for byte in range(first[i] * width, (first[i] + ptr[i + 1] - ptr[i]) * width, 64):
            touched += source[byte]
    for i in range(first.shape[0]):
        at, count = first[i] * width, (ptr[i + 1] - ptr[i]) * width
        to = ptr[i] * width
        for byte in range(count):
            target[to + byte] = source[at + byte]
    return touched


def smallest_integer(largest: int) -> np.dtype[Any]:
    """Return the smallest of uint8, uint16, int32 and int64 that holds 0 .. ``largest``."""
    for candidate in (np.uint8, np.uint16, np.int32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.int64)


def pointer_dtype(largest: int) -> np.dtype[Any]:
    """Return the integer type of offsets up to ``largest``: int32, or int64 where it is too small."""
    return np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)


def distinct_values(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different values of an array, rising; ``numpy.unique`` is 25 times slower on millions of values."""
    ordered = np.sort(values)
    different: NDArray[np.int64] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return different
