"""Return probabilities of random walks on the CPU, compiled.

For one graph, ``diag(P^1), ..., diag(P^k)`` with ``P = D^-1 A`` are computed for a block of columns at a time. A block
of a matrix power is a small dense matrix that stays in the first-level cache; the next power is one sparse product, a
sum of rows. When A is symmetric, so is ``S = D^-1/2 A D^-1/2``, and ``diag(P^(i+j)) = colsum(S^i * S^j)``: half the
powers do. A row of a block is one vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import arc_lists
from graphbench.models._vectors import LANES, empty_vectors, load, splat, store

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@inner
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
    columns: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the rows of ``out`` of one block; ``now`` holds ``Y_i = D^-1/2 S^i``, so that ``D Y_(i+1) = A Y_i``."""
    steps = out.shape[1]
    now[:size] = _ZERO
    columns[0] = _ZERO
    for c in range(width):
        v = first + block + c
        scale = np.sqrt(inverse[v])
        for j in range(starts[v], starts[v + 1]):
            now[neighbours[j] - first, c] += scale * inverse[neighbours[j]]
        columns[0, c] = now[block + c, c] / scale if inverse[v] > 0 else _ZERO
    even = splat(_ZERO)
    for u in range(size):
        degree = np.float32(starts[first + u + 1] - starts[first + u])
        row = load(now, u)
        even += row * row * splat(degree)
    store(columns, 1, even)
    power = 2
    while 2 * power - 1 <= steps:
        odd, even = splat(_ZERO), splat(_ZERO)
        for u in range(size):
            total = splat(_ZERO)
            for j in range(starts[first + u], starts[first + u + 1]):
                total += load(now, neighbours[j] - first)
            row = splat(inverse[first + u]) * total
            odd += load(now, u) * total
            even += row * total
            store(after, u, row)
        store(columns, 2 * power - 2, odd)
        store(columns, 2 * power - 1, even)
        now, after = after, now
        power += 1
    for c in range(width):
        for i in range(steps):
            out[first + block + c, i] = columns[i, c]


@inner
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
    now[:size] = _ZERO
    for c in range(width):
        now[block + c, c] = _ONE
    for power in range(out.shape[1]):
        for u in range(size):
            total = splat(_ZERO)
            for j in range(starts[first + u], starts[first + u + 1]):
                total += load(now, neighbours[j] - first)
            store(after, u, splat(inverse[first + u]) * total)
        for c in range(width):
            out[first + block + c, power] = after[block + c, c]
        now, after = after, now


@kernel
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
    if self_loops:
        loops = np.arange(num_nodes)
        starts, neighbours = arc_lists(num_nodes, np.concatenate((loops, source)), np.concatenate((loops, target)))
    else:
        starts, neighbours = arc_lists(num_nodes, source, target)
    inverse = np.zeros(num_nodes, np.float32)
    largest = 0
    for v in range(num_nodes):
        if starts[v + 1] > starts[v]:
            inverse[v] = _ONE / np.float32(starts[v + 1] - starts[v])
    for g in range(ptr.size - 1):
        largest = max(largest, ptr[g + 1] - ptr[g])
    now, after, columns = empty_vectors(largest), empty_vectors(largest), empty_vectors(steps + 2)
    out = np.zeros((num_nodes, steps), np.float32)
    for g in range(ptr.size - 1):
        first, size = ptr[g], ptr[g + 1] - ptr[g]
        for block in range(0, size, LANES):
            width = min(LANES, size - block)
            if symmetric:
                _symmetric_block(first, size, block, width, starts, neighbours, inverse, now, after, columns, out)
            else:
                _general_block(first, size, block, width, starts, neighbours, inverse, now, after, out)
    return out
