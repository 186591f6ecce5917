"""Attention with a bias on some pairs of tokens, compiled for the CPU, in blocks that fit the first cache.

Scores of a block of keys and a group of ``LANES`` queries are computed, biased, and used at once, with the queries in
the lanes of vectors; the maximum of every query's scores grows from block to block (Milakov and Gimelshein, 2018; Dao
et al., 2022). The backward pass computes the scores again. Memory is linear in the tokens.

Arrays of tokens are float32 ``[B * H * L * D]``: B graphs, H heads, L tokens (padded), D numbers; head ``n`` of the
batch is head ``n % H`` of graph ``n // H``. Within a kernel, rows of tokens have W numbers, the multiple of ``LANES``
from D on, padded with zeros; "lanes" are the transposed rows of every group, ``[groups * W]`` vectors.

The biased pairs are ordered by graph, group of the query, key, and query. ``starts`` int64 [B * groups + 1] has the
first pair of every group, and ``pairs`` int64 [2, P] the positions of query and key within their graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import (
    LANES,
    empty_vectors,
    exponential,
    has_many_registers,
    load,
    splat,
    spread,
    store,
    where_less,
)

_BLOCK = 64  # keys whose scores are held at once
_ROWS = 8  # of a product, which are computed together
_ZERO, _ONE, _LOWEST = np.float32(0.0), np.float32(1.0), np.float32(-1e30)


@inner
def _multiply(
    a: NDArray[np.float32],
    steps: tuple[int, int, int],
    count: int,
    b: NDArray[np.float32],
    vectors: tuple[int, int],
    out: NDArray[np.float32],
    rows: tuple[int, int],
    factor: Any,
) -> None:
    """Multiply 8 rows of numbers by ``count`` vectors: ``out[r] = factor * out[r] + sum over k of a[r, k] * b[k]``.

    Args:
        a: Numbers.
        steps: The number ``a[0, 0]``, the step from row to row, and the step from column to column.
        count: Number of columns.
        b: Vectors.
        vectors: The vector ``b[0]`` and the step to the next.
        out: Vectors, changed.
        rows: The vector ``out[0]`` and the step to the next.
        factor: A vector.
    """
    if has_many_registers():
        _multiply_eight(a, steps, count, b, vectors, out, rows, factor)
        return
    (first, row, column), (to, step) = steps, rows
    _multiply_four(a, steps, count, b, vectors, out, rows, factor)
    _multiply_four(a, (first + 4 * row, row, column), count, b, vectors, out, (to + 4 * step, step), factor)


@inner
def _multiply_eight(
    a: NDArray[np.float32],
    steps: tuple[int, int, int],
    count: int,
    b: NDArray[np.float32],
    vectors: tuple[int, int],
    out: NDArray[np.float32],
    rows: tuple[int, int],
    factor: Any,
) -> None:
    """Multiply 8 rows at once: the sums that keep the units of AVX-512 busy."""
    first, row, column = steps
    read, step = vectors
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = splat(_ZERO)
    for k in range(count):
        x, at = load(b, read + k * step), first + k * column
        c0 = c0 + spread(a, at) * x
        c1 = c1 + spread(a, at + row) * x
        c2 = c2 + spread(a, at + 2 * row) * x
        c3 = c3 + spread(a, at + 3 * row) * x
        c4 = c4 + spread(a, at + 4 * row) * x
        c5 = c5 + spread(a, at + 5 * row) * x
        c6 = c6 + spread(a, at + 6 * row) * x
        c7 = c7 + spread(a, at + 7 * row) * x
    to, step = rows
    store(out, to, load(out, to) * factor + c0)
    store(out, to + step, load(out, to + step) * factor + c1)
    store(out, to + 2 * step, load(out, to + 2 * step) * factor + c2)
    store(out, to + 3 * step, load(out, to + 3 * step) * factor + c3)
    store(out, to + 4 * step, load(out, to + 4 * step) * factor + c4)
    store(out, to + 5 * step, load(out, to + 5 * step) * factor + c5)
    store(out, to + 6 * step, load(out, to + 6 * step) * factor + c6)
    store(out, to + 7 * step, load(out, to + 7 * step) * factor + c7)


@inner
def _multiply_four(
    a: NDArray[np.float32],
    steps: tuple[int, int, int],
    count: int,
    b: NDArray[np.float32],
    vectors: tuple[int, int],
    out: NDArray[np.float32],
    rows: tuple[int, int],
    factor: Any,
) -> None:
    """Multiply 4 rows at once: the registers of AVX2 hold these sums beside the factors, and not the sums of 8 rows."""
    first, row, column = steps
    read, step = vectors
    c0 = c1 = c2 = c3 = splat(_ZERO)
    for k in range(count):
        x, at = load(b, read + k * step), first + k * column
        c0 = c0 + spread(a, at) * x
        c1 = c1 + spread(a, at + row) * x
        c2 = c2 + spread(a, at + 2 * row) * x
        c3 = c3 + spread(a, at + 3 * row) * x
    to, step = rows
    store(out, to, load(out, to) * factor + c0)
    store(out, to + step, load(out, to + step) * factor + c1)
    store(out, to + 2 * step, load(out, to + 2 * step) * factor + c2)
    store(out, to + 3 * step, load(out, to + 3 * step) * factor + c3)


@inner
def _zeros(vectors: int) -> NDArray[np.float32]:
    """Return float32 [vectors, LANES], zero."""
    zeros = empty_vectors(vectors)
    zeros[:] = _ZERO
    return zeros


@inner
def _rows(tokens: NDArray[np.float32], first: int, shape: tuple[int, int], factor: np.float32) -> NDArray[np.float32]:
    """Return ``factor`` times a head's tokens as padded rows; ``shape`` is (tokens, D), ``first`` the first number."""
    length, width = shape
    vectors = (width + LANES - 1) // LANES
    rows = _zeros((length + _BLOCK) * vectors)
    for t in range(length):
        for d in range(width):
            rows[t * vectors + d // LANES, d % LANES] = tokens[first + t * width + d] * factor
    return rows


@inner
def _lanes(tokens: NDArray[np.float32], first: int, shape: tuple[int, int], factor: np.float32) -> NDArray[np.float32]:
    """Return ``factor`` times a head's tokens as lanes, see :func:`_rows`."""
    length, width = shape
    padded = (width + LANES - 1) // LANES * LANES
    lanes = _zeros((length + LANES - 1) // LANES * padded)
    for t in range(length):
        for d in range(width):
            lanes[t // LANES * padded + d, t % LANES] = tokens[first + t * width + d] * factor
    return lanes


@inner
def _scores(
    rows: NDArray[np.float32], block: int, count: int, lanes: NDArray[np.float32], group: int, width: int, out: Any
) -> None:
    """Write the products of ``count`` rows from ``block`` on with a group of lanes to ``out``, one vector per row."""
    padded = (width + LANES - 1) // LANES * LANES
    for j in range(0, count, _ROWS):
        for i in range(_ROWS):
            store(out, j + i, splat(_ZERO))
        steps = ((block + j) * padded, padded, 1)
        _multiply(rows, steps, width, lanes, (group * padded, 1), out, (j, 1), splat(_ONE))


@inner
def _add_by_number(
    rows: NDArray[np.float32], block: int, count: int, weights: Any, out: Any, group: int, width: int, factor: Any
) -> None:
    """Set the group's lanes of ``out`` to ``factor`` times them plus the sum of ``count`` rows, times their weights."""
    padded = (width + LANES - 1) // LANES * LANES
    for d in range(0, width, _ROWS):
        steps = (block * padded + d, 1, padded)
        _multiply(rows, steps, count, weights, (0, 1), out, (group * padded + d, 1), factor)


@inner
def _add_by_row(
    rows: NDArray[np.float32], group: int, weights: Any, block: int, count: int, out: Any, width: int
) -> None:
    """Add the rows of a group, times their weights, to ``count`` rows of ``out`` from ``block`` on."""
    vectors = (width + LANES - 1) // LANES
    for j in range(0, count, _ROWS):
        for i in range(vectors):
            read, written = (group * LANES * vectors + i, vectors), ((block + j) * vectors + i, vectors)
            _multiply(weights, (j * LANES, LANES, 1), LANES, rows, read, out, written, splat(_ONE))


@inner
def _pairs_before(starts: NDArray[np.int64], group: int, first: int, keys: NDArray[np.int64], end: int) -> int:
    """Return the end of a group's pairs whose keys lie before ``end``; ``first`` is the first pair."""
    last = starts[group + 1]
    while first < last and keys[first] < end:
        first += 1
    return first


@kernel
def attend(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    values: NDArray[np.float32],
    bias: NDArray[np.float32],
    starts: NDArray[np.int64],
    pairs: NDArray[np.int64],
    lengths: NDArray[np.int64],
    width: int,
    numbers: tuple[int, int],
    normalisers: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write the result of attention of some heads.

    Args:
        queries: Tokens, as are ``keys``, ``values`` and ``out``.
        keys: See there.
        values: See there.
        bias: [P, H].
        starts: See above, as is ``pairs``.
        pairs: See there.
        lengths: [B], tokens per graph.
        width: D.
        numbers: The first head of the batch to compute, and the last one plus 1.
        normalisers: [B * H * L], the logarithms of the sums of exponential scores; written where there is a token.
        out: Written where there is a token.
    """
    heads, scale = bias.shape[1], np.float32(1.0 / np.sqrt(width))
    size = normalisers.size // (lengths.size * heads)
    groups, padded = (size + LANES - 1) // LANES, (width + LANES - 1) // LANES * LANES
    scores = _zeros(_BLOCK)
    for number in range(numbers[0], numbers[1]):
        graph, head, first = number // heads, number % heads, number * size * width
        length = lengths[graph]
        shape = (length, width)
        q, k, v = (
            _lanes(queries, first, shape, scale),
            _rows(keys, first, shape, _ONE),
            _rows(values, first, shape, _ONE),
        )
        sums, masses, highest = _zeros(groups * padded), _zeros(groups), _zeros(groups)
        highest[:] = _LOWEST
        at = starts[graph * groups : (graph + 1) * groups].copy()
        for block in range(0, length, _BLOCK):
            count = min(_BLOCK, length - block)
            for group in range((length + LANES - 1) // LANES):
                _scores(k, block, count, q, group, width, scores)
                end = _pairs_before(starts, graph * groups + group, at[group], pairs[1], block + count)
                for p in range(at[group], end):
                    scores[pairs[1, p] - block, pairs[0, p] - group * LANES] += bias[p, head]
                at[group] = end
                top = load(highest, group)
                for j in range(count):
                    score = load(scores, j)
                    top = where_less(top, score, score, top)
                shrink, mass = exponential(load(highest, group) - top), splat(_ZERO)
                for j in range(count):
                    weight = exponential(load(scores, j) - top)
                    store(scores, j, weight)
                    mass = mass + weight
                store(highest, group, top)
                store(masses, group, load(masses, group) * shrink + mass)
                _add_by_number(v, block, count, scores, sums, group, width, shrink)
        for t in range(length):
            group, lane = t // LANES, t % LANES
            normalisers[number * size + t] = highest[group, lane] + np.log(masses[group, lane])
            share = _ONE / masses[group, lane]
            for d in range(width):
                out[first + t * width + d] = sums[group * padded + d, lane] * share


@kernel
def attend_backward(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    values: NDArray[np.float32],
    bias: NDArray[np.float32],
    starts: NDArray[np.int64],
    pairs: NDArray[np.int64],
    lengths: NDArray[np.int64],
    width: int,
    numbers: tuple[int, int],
    normalisers: NDArray[np.float32],
    out: NDArray[np.float32],
    gradients: NDArray[np.float32],
    of_queries: NDArray[np.float32],
    of_keys: NDArray[np.float32],
    of_values: NDArray[np.float32],
    of_bias: NDArray[np.float32],
) -> None:
    """Write the gradients of :func:`attend`.

    Args:
        queries: As in :func:`attend`, as are the arguments up to ``numbers``.
        keys: See there.
        values: See there.
        bias: See there.
        starts: See there.
        pairs: See there.
        lengths: See there.
        width: See there.
        numbers: See there.
        normalisers: The result of :func:`attend`, as is ``out``.
        out: See there.
        gradients: Tokens, the gradients of ``out``.
        of_queries: Written where there is a token, as are ``of_keys`` and ``of_values``.
        of_keys: See there.
        of_values: See there.
        of_bias: [P, H], written.
    """
    heads, scale = bias.shape[1], np.float32(1.0 / np.sqrt(width))
    size = normalisers.size // (lengths.size * heads)
    groups, padded = (size + LANES - 1) // LANES, (width + LANES - 1) // LANES * LANES
    weights, slopes = _zeros(_BLOCK), _zeros(_BLOCK)
    for number in range(numbers[0], numbers[1]):
        graph, head, first = number // heads, number % heads, number * size * width
        length = lengths[graph]
        shape = (length, width)
        q, q_rows = _lanes(queries, first, shape, scale), _rows(queries, first, shape, scale)
        g, g_rows = _lanes(gradients, first, shape, _ONE), _rows(gradients, first, shape, _ONE)
        k, v = _rows(keys, first, shape, _ONE), _rows(values, first, shape, _ONE)
        of_q, of_k, of_v = _zeros(groups * padded), np.zeros_like(k), np.zeros_like(v)
        means, logarithms = _zeros(groups), _zeros(groups)
        for t in range(length):
            logarithms[t // LANES, t % LANES] = normalisers[number * size + t]
            for d in range(first + t * width, first + (t + 1) * width):
                means[t // LANES, t % LANES] += gradients[d] * out[d]
        at = starts[graph * groups : (graph + 1) * groups].copy()
        for block in range(0, length, _BLOCK):
            count = min(_BLOCK, length - block)
            for group in range((length + LANES - 1) // LANES):
                _scores(k, block, count, q, group, width, weights)
                _scores(v, block, count, g, group, width, slopes)
                end = _pairs_before(starts, graph * groups + group, at[group], pairs[1], block + count)
                for p in range(at[group], end):
                    weights[pairs[1, p] - block, pairs[0, p] - group * LANES] += bias[p, head]
                logarithm, mean = load(logarithms, group), load(means, group)
                for j in range(count):
                    weight = exponential(load(weights, j) - logarithm)
                    store(weights, j, weight)
                    store(slopes, j, weight * (load(slopes, j) - mean))
                for p in range(at[group], end):
                    of_bias[p, head] = slopes[pairs[1, p] - block, pairs[0, p] - group * LANES]
                at[group] = end
                _add_by_number(k, block, count, slopes, of_q, group, width, splat(_ONE))
                _add_by_row(g_rows, group, weights, block, count, of_v, width)
                _add_by_row(q_rows, group, slopes, block, count, of_k, width)
        for t in range(length):
            row, vectors = t // LANES * padded, padded // LANES
            for d in range(width):
                to = first + t * width + d
                of_queries[to] = of_q[row + d, t % LANES] * scale
                of_keys[to] = of_k[t * vectors + d // LANES, d % LANES]
                of_values[to] = of_v[t * vectors + d // LANES, d % LANES]
