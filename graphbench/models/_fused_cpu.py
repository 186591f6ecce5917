"""Compiled parts of training steps on the CPU: each kernel reads its inputs once and keeps no intermediate values.

Separate torch operations would write and read arrays of E or N * k rows, which takes longer than the arithmetic.
Widths are multiples of :data:`~graphbench.models._vectors.LANES`, except for :func:`keep` and :func:`keep_gradients`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.models._vectors import LANES, bits_less, load, splat, store, where_bits, where_less

_ZERO = np.float32(0.0)
_TILE = 4  # rows of neighbouring pairs that are read together, where they are read by columns


@kernel
def add_messages(
    nodes: NDArray[np.float32],
    edges: NDArray[np.float32],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    width: int,
    sums: NDArray[np.float32],
    positive: NDArray[np.uint16],
) -> None:
    """Add ``max(nodes[u] + edges[a % R], 0)`` to ``sums[v]`` for every arc a = (u, v).

    Args:
        nodes: [N * width].
        edges: [R * width]; R divides E.
        source: [E].
        target: [E].
        width: Numbers in a row.
        sums: [T * width], changed.
        positive: [E * width / LANES], written: a bit per number of a message, 1 where it is positive; empty if
            nothing reads them.
    """
    vectors, zero, rows = width // LANES, splat(_ZERO), edges.size // width
    keeps = positive.size > 0
    for e in range(rows):
        row = e * vectors
        for a in range(e, source.size, rows):
            read, written = source[a] * vectors, target[a] * vectors
            for i in range(vectors):
                value = load(nodes, read + i) + load(edges, row + i)
                bits = bits_less(zero, value)
                store(sums, written + i, load(sums, written + i) + where_bits(bits, value, zero))
                if keeps:
                    positive[a * vectors + i] = bits


@kernel
def add_message_gradients(
    positive: NDArray[np.uint16],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    width: int,
    gradients: NDArray[np.float32],
    of_nodes: NDArray[np.float32],
    of_edges: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`add_messages` to ``of_nodes``, and write ``of_edges``.

    Args:
        positive: As in :func:`add_messages`, as are ``source``, ``target`` and ``width``.
        source: See there.
        target: See there.
        width: See there.
        gradients: [T * width], the gradients of the sums.
        of_nodes: [N * width], changed.
        of_edges: [R * width], overwritten.
    """
    vectors, zero, rows = width // LANES, splat(_ZERO), of_edges.size // width
    for e in range(rows):
        row = e * vectors
        for i in range(vectors):
            store(of_edges, row + i, zero)
        for a in range(e, source.size, rows):
            read, summed = source[a] * vectors, target[a] * vectors
            for i in range(vectors):
                passed = where_bits(positive[a * vectors + i], load(gradients, summed + i), zero)
                store(of_nodes, read + i, load(of_nodes, read + i) + passed)
                store(of_edges, row + i, load(of_edges, row + i) + passed)


@kernel
def add_ends(
    edges: NDArray[np.float32],
    sent: NDArray[np.float32],
    taken: NDArray[np.float32],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    width: int,
    sums: NDArray[np.float32],
) -> None:
    """Write ``edges[a] + sent[u] + taken[v]`` to ``sums[a]`` for every arc a = (u, v).

    Args:
        edges: [E * width].
        sent: [N * width].
        taken: [N * width].
        source: [E].
        target: [E].
        width: Numbers in a row.
        sums: [E * width], overwritten.
    """
    vectors = width // LANES
    for a in range(source.size):
        row, one, other = a * vectors, source[a] * vectors, target[a] * vectors
        for i in range(vectors):
            store(sums, row + i, load(edges, row + i) + load(sent, one + i) + load(taken, other + i))


@kernel
def add_to_ends(
    gradients: NDArray[np.float32],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    width: int,
    of_sent: NDArray[np.float32],
    of_taken: NDArray[np.float32],
) -> None:
    """Add ``gradients[a]`` to ``of_sent[u]`` and ``of_taken[v]`` for every arc a = (u, v).

    Args:
        gradients: [E * width].
        source: [E].
        target: [E].
        width: Numbers in a row.
        of_sent: [N * width], changed.
        of_taken: [N * width], changed.
    """
    vectors = width // LANES
    for a in range(source.size):
        row, one, other = a * vectors, source[a] * vectors, target[a] * vectors
        for i in range(vectors):
            value = load(gradients, row + i)
            store(of_sent, one + i, load(of_sent, one + i) + value)
            store(of_taken, other + i, load(of_taken, other + i) + value)


@kernel
def join_reverse(
    pairs: NDArray[np.float32], counts: NDArray[np.int64], width: int, joined: NDArray[np.float32]
) -> None:
    """Write the rows of (u, v) and (v, u), one after the other, for all pairs of nodes of every graph.

    Args:
        pairs: [P * width], one row per pair of nodes of a graph, row by row and graph after graph.
        counts: [B], the nodes of every graph; the sum of their squares is P.
        width: Numbers in a row.
        joined: [P * 2 * width], overwritten.
    """
    vectors, first = width // LANES, 0
    for size in counts:
        for begin in range(0, size, _TILE):
            for v in range(size):
                for u in range(begin, min(begin + _TILE, size)):
                    row, reverse = first + u * size + v, first + v * size + u
                    for i in range(vectors):
                        store(joined, row * 2 * vectors + i, load(pairs, row * vectors + i))
                        store(joined, (row * 2 + 1) * vectors + i, load(pairs, reverse * vectors + i))
        first += size * size


@kernel
def add_joined(
    gradients: NDArray[np.float32], counts: NDArray[np.int64], width: int, of_pairs: NDArray[np.float32]
) -> None:
    """Write the gradients of the pairs of :func:`join_reverse`.

    Args:
        gradients: [P * 2 * width], the gradients of ``joined``.
        counts: See :func:`join_reverse`.
        width: Numbers in a row of ``of_pairs``.
        of_pairs: [P * width], overwritten.
    """
    vectors, first = width // LANES, 0
    for size in counts:
        for begin in range(0, size, _TILE):
            for v in range(size):
                for u in range(begin, min(begin + _TILE, size)):
                    row, reverse = first + u * size + v, first + v * size + u
                    for i in range(vectors):
                        other = load(gradients, (reverse * 2 + 1) * vectors + i)
                        store(of_pairs, row * vectors + i, load(gradients, row * 2 * vectors + i) + other)
        first += size * size


@kernel
def sum_of_pairs(
    vectors: NDArray[np.float32],
    values: NDArray[np.float32],
    counts: NDArray[np.int64],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    sums: NDArray[np.float32],
) -> None:
    """Write ``sum over j < counts[n] of max(vectors[n, j] weight[0] + values[n, j] weight[1] + bias, 0)``.

    Args:
        vectors: [N, k].
        values: [N, k].
        counts: [N], at most k.
        weight: [2 * width].
        bias: [width].
        sums: [N * width], overwritten.
    """
    parts, zero = bias.size // LANES, splat(_ZERO)
    for n in range(counts.size):
        for i in range(parts):
            first, second, shift, total = load(weight, i), load(weight, parts + i), load(bias, i), zero
            for j in range(counts[n]):
                inner = splat(vectors[n, j]) * first + splat(values[n, j]) * second + shift
                total = total + where_less(zero, inner, inner, zero)
            store(sums, n * parts + i, total)


@kernel
def add_gradients_of_pairs(
    vectors: NDArray[np.float32],
    values: NDArray[np.float32],
    counts: NDArray[np.int64],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    gradients: NDArray[np.float32],
    of_values: NDArray[np.float32],
    of_weight: NDArray[np.float32],
    of_bias: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`sum_of_pairs`, given the gradients of its sums.

    Args:
        vectors: As in :func:`sum_of_pairs`, as are ``values``, ``counts``, ``weight`` and ``bias``; without gradient.
        values: See there.
        counts: See there.
        weight: See there.
        bias: See there.
        gradients: [N * width], the gradients of the sums.
        of_values: [N, k], changed.
        of_weight: [2 * width], changed.
        of_bias: [width], changed.
    """
    parts, zero = bias.size // LANES, splat(_ZERO)
    lanes = np.empty(LANES, np.float32)
    for n in range(counts.size):
        for j in range(counts[n]):
            vector, value, of_value = splat(vectors[n, j]), splat(values[n, j]), zero
            for i in range(parts):
                second = load(weight, parts + i)
                inner = vector * load(weight, i) + value * second + load(bias, i)
                passed = where_less(zero, inner, load(gradients, n * parts + i), zero)
                of_value = of_value + passed * second
                store(of_weight, i, load(of_weight, i) + passed * vector)
                store(of_weight, parts + i, load(of_weight, parts + i) + passed * value)
                store(of_bias, i, load(of_bias, i) + passed)
            store(lanes, 0, of_value)
            of_values[n, j] += lanes.sum()


@kernel
def keep(
    values: NDArray[np.float32], bits: NDArray[np.int16], lowest: int, scale: np.float32, kept: NDArray[np.float32]
) -> None:
    """Write ``scale * values`` where ``bits >= lowest``, else 0; all have one dimension.

    Args:
        values: The values that are kept or dropped.
        bits: Random numbers.
        lowest: The lowest random number that keeps a value.
        scale: Factor of the kept values.
        kept: Overwritten.
    """
    for i in range(values.size):
        kept[i] = values[i] * scale if bits[i] >= lowest else _ZERO
