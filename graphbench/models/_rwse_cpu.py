"""Return probabilities of random walks on the CPU, compiled.

For one graph, ``diag(P^1), ..., diag(P^k)`` with ``P = D^-1 A`` are computed for a block of columns at a time. A block
of a matrix power is a small dense matrix that stays in the first-level cache; the next power is one sparse product, a
sum of rows. When A is symmetric, so is ``S = D^-1/2 A D^-1/2``, and ``diag(P^(i+j)) = colsum(S^i * S^j)``: half the
powers do.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_BLOCK = 32  # columns per block: constant, so that the inner loops are unrolled into vector instructions
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@njit(cache=True)
def _neighbour_lists(
    source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int, self_loops: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (starts int64[N+1], targets of the arcs that leave each node)."""
    starts = np.zeros(num_nodes + 1, np.int64)
    extra = 1 if self_loops else 0
    for s in source:
        starts[s + 1] += 1
    for v in range(num_nodes):
        starts[v + 1] += starts[v] + extra
    fill = starts[:num_nodes].copy()
    neighbours = np.empty(starts[num_nodes], np.int64)
    if self_loops:
        for v in range(num_nodes):
            neighbours[fill[v]] = v
            fill[v] += 1
    for j in range(source.size):
        s = source[j]
        neighbours[fill[s]] = target[j]
        fill[s] += 1
    return starts, neighbours


@njit(cache=True, inline="always")
def _sum_rows(
    rows: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    begin: int,
    end: int,
    first: int,
    total: NDArray[np.float32],
) -> None:
    """Write into ``total`` the sum of the rows of one node's neighbours; four rows at a time save stores."""
    for c in range(_BLOCK):
        total[c] = _ZERO
    j = begin
    while j + 4 <= end:
        v0, v1 = neighbours[j] - first, neighbours[j + 1] - first
        v2, v3 = neighbours[j + 2] - first, neighbours[j + 3] - first
        for c in range(_BLOCK):
            total[c] += (rows[v0, c] + rows[v1, c]) + (rows[v2, c] + rows[v3, c])
        j += 4
    while j < end:
        v0 = neighbours[j] - first
        for c in range(_BLOCK):
            total[c] += rows[v0, c]
        j += 1


@njit(cache=True)
def _symmetric_block(
    first: int,
    size: int,
    block: int,
    width: int,
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    inverse: NDArray[np.float32],
    now: NDArray[np.float32],
    after: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the rows of ``out`` of one block; ``now`` holds ``Y_i = D^-1/2 S^i``, so that ``D Y_(i+1) = A Y_i``."""
    steps = out.shape[1]
    total = np.empty(_BLOCK, np.float32)
    odd = np.empty(_BLOCK, np.float32)
    even = np.empty(_BLOCK, np.float32)
    now[:size, :] = _ZERO
    for c in range(width):
        v = first + block + c
        scale = np.sqrt(inverse[v])
        for j in range(starts[v], starts[v + 1]):
            now[neighbours[j] - first, c] += scale * inverse[neighbours[j]]
        out[v, 0] = now[block + c, c] / scale if inverse[v] > 0 else _ZERO
    if steps > 1:
        even[:] = _ZERO
        for u in range(size):
            if inverse[first + u] > 0:
                degree = _ONE / inverse[first + u]
                for c in range(_BLOCK):
                    even[c] += now[u, c] * now[u, c] * degree
        for c in range(width):
            out[first + block + c, 1] = even[c]
    power = 2
    while 2 * power - 1 <= steps:
        odd[:] = _ZERO
        even[:] = _ZERO
        for u in range(size):
            _sum_rows(now, neighbours, starts[first + u], starts[first + u + 1], first, total)
            scale = inverse[first + u]
            for c in range(_BLOCK):
                after[u, c] = scale * total[c]
                odd[c] += now[u, c] * total[c]
                even[c] += after[u, c] * total[c]
        for c in range(width):
            out[first + block + c, 2 * power - 2] = odd[c]
            if 2 * power <= steps:
                out[first + block + c, 2 * power - 1] = even[c]
        now, after = after, now
        power += 1


@njit(cache=True)
def _general_block(
    first: int,
    size: int,
    block: int,
    width: int,
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    inverse: NDArray[np.float32],
    now: NDArray[np.float32],
    after: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the rows of ``out`` of one block of columns of ``P^1 ... P^k``; no symmetry is assumed."""
    total = np.empty(_BLOCK, np.float32)
    now[:size, :] = _ZERO
    for c in range(width):
        now[block + c, c] = _ONE
    for power in range(out.shape[1]):
        for u in range(size):
            _sum_rows(now, neighbours, starts[first + u], starts[first + u + 1], first, total)
            scale = inverse[first + u]
            for c in range(_BLOCK):
                after[u, c] = scale * total[c]
        for c in range(width):
            out[first + block + c, power] = after[block + c, c]
        now, after = after, now


@njit(cache=True)
def return_probabilities(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    ptr: NDArray[np.int64],
    steps: int,
    symmetric: bool,
    self_loops: bool,
) -> NDArray[np.float32]:
    """Return ``diag(P^1) ... diag(P^steps)`` of every graph of a batch.

    Args:
        source: int64 [E], tails of the arcs, numbered through the batch.
        target: int64 [E], heads of the arcs.
        ptr: int64 [B+1], graph ``g`` holds the nodes ``ptr[g] .. ptr[g+1]-1``.
        steps: Longest walk.
        symmetric: Whether every arc is present in both directions, equally often.
        self_loops: Whether one loop is added to every node.

    Returns:
        float32 [N, steps].
    """
    num_nodes = ptr[-1]
    starts, neighbours = _neighbour_lists(source, target, num_nodes, self_loops)
    inverse = np.zeros(num_nodes, np.float32)
    largest = 0
    for v in range(num_nodes):
        if starts[v + 1] > starts[v]:
            inverse[v] = _ONE / np.float32(starts[v + 1] - starts[v])
    for g in range(ptr.size - 1):
        largest = max(largest, ptr[g + 1] - ptr[g])
    now = np.empty((largest, _BLOCK), np.float32)
    after = np.empty((largest, _BLOCK), np.float32)
    out = np.zeros((num_nodes, steps), np.float32)
    for g in range(ptr.size - 1):
        first, size = ptr[g], ptr[g + 1] - ptr[g]
        for block in range(0, size, _BLOCK):
            width = min(_BLOCK, size - block)
            if symmetric:
                _symmetric_block(first, size, block, width, starts, neighbours, inverse, now, after, out)
            else:
                _general_block(first, size, block, width, starts, neighbours, inverse, now, after, out)
    return out
