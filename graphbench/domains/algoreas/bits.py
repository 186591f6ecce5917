"""Bit operations on ``uint64`` words inside compiled kernels, one machine instruction each.

A set of nodes is a row of words: node ``v`` is bit ``v % 64`` of word ``v // 64``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

ONE = np.uint64(1)
ZERO = np.uint64(0)
_LOW6 = np.uint64(63)


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of set bits of a ``uint64`` as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a ``uint64``, 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _leading_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@inner
def highest_bit(word: np.uint64) -> int:
    """Return the position of the highest set bit of a ``uint64``, -1 if there is none."""
    return 63 - _leading_zeros(word)


@inner
def bit_of(node: int) -> np.uint64:
    """Return the word in which only the bit of ``node`` is set."""
    return ONE << (np.uint64(node) & _LOW6)


@kernel
def contains(row: NDArray[np.uint64], node: int) -> bool:
    """Return whether ``node`` is in the set ``row``."""
    return (row[node >> 6] & bit_of(node)) != ZERO


@kernel
def insert(row: NDArray[np.uint64], node: int) -> None:
    """Add ``node`` to the set ``row``."""
    row[node >> 6] |= bit_of(node)


@kernel
def discard(row: NDArray[np.uint64], node: int) -> None:
    """Remove ``node`` from the set ``row``."""
    row[node >> 6] &= ~bit_of(node)


@kernel
def count(row: NDArray[np.uint64]) -> int:
    """Return the number of nodes in the set ``row``."""
    total = 0
    for word in row:
        total += popcount(word)
    return total


def members_of(row: NDArray[np.uint64], num_nodes: int) -> NDArray[np.uint8]:
    """Return for each node whether it is in a set ``uint64[words]``, as 0 or 1, ``uint8[n]``."""
    return np.unpackbits(row.view(np.uint8), count=num_nodes, bitorder="little")


@kernel
def adjacency_rows(num_nodes: int, edges: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the neighbour sets ``uint64[n, words]`` of an undirected graph given as ``edges [m, 2]``."""
    rows = np.zeros((num_nodes, (num_nodes + 63) >> 6), np.uint64)
    for e in range(edges.shape[0]):
        u, v = np.int64(edges[e, 0]), np.int64(edges[e, 1])
        rows[u, v >> 6] |= bit_of(v)  # type: ignore[arg-type]
        rows[v, u >> 6] |= bit_of(u)  # type: ignore[arg-type]
    return rows
