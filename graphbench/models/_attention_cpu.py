"""The part of biased attention that fused kernels do not know, compiled for the CPU: the pairs that have a bias.

A fused kernel attends without bias and returns the logarithm of every row's normaliser. Here the weights of the biased
pairs are corrected, ``exp(s) -> exp(s + b)``, in numerator and normaliser. The correction subtracts numbers of similar
size where the biased pairs lose almost all weight of a row; such a row is computed again as a whole.

All tensors of tokens are float32 ``[T * H * D]``, token after token: T tokens of all graphs, padded to the same number
per graph, H heads of D numbers, where D is a multiple of ``LANES``. Values per token and head are ``[T, H]``.
``partners[starts[t]:starts[t + 1]]`` are the tokens that have a bias with token t as the query. Values per pair and
head are ``[P, H]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, load, splat, store, total

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_LEAST_LEFT = np.float32(0.1)  # share of a normaliser that must be left for the correction to be exact enough
_LARGEST_CHANGE = np.float32(1e8)  # of a weight, relative; a larger one makes the correction of a row inexact


@inner
def _dot(a: NDArray[np.float32], first: int, b: NDArray[np.float32], second: int, vectors: int) -> np.float32:
    """Return the product of two rows of vectors; ``first`` and ``second`` number their first vectors."""
    products = load(a, first) * load(b, second)
    for i in range(1, vectors):
        products = products + load(a, first + i) * load(b, second + i)
    product: np.float32 = total(products)
    return product


@inner
def _add(
    to: NDArray[np.float32], first: int, factor: np.float32, a: NDArray[np.float32], second: int, vectors: int
) -> None:
    """Add ``factor`` times a row of vectors to another row."""
    factors = splat(factor)
    for i in range(vectors):
        store(to, first + i, load(to, first + i) + factors * load(a, second + i))


@inner
def _whole_row(
    t: int,
    h: int,
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    bias: NDArray[np.float32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int64],
    graph: tuple[int, int],
    vectors: int,
    row: NDArray[np.float32],
) -> None:
    """Write the biased scores of token t's head h to ``row[:length]``; ``graph`` is (first token, length)."""
    first, length = graph
    heads = bias.shape[1]
    for j in range(length):
        row[j] = _dot(queries, (t * heads + h) * vectors, keys, ((first + j) * heads + h) * vectors, vectors)
    for p in range(starts[t], starts[t + 1]):
        row[partners[p] - first] += bias[p, h]


@kernel
def correct(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    values: NDArray[np.float32],
    bias: NDArray[np.float32],
    changes: NDArray[np.float32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int64],
    lengths: NDArray[np.int64],
    normalisers: NDArray[np.float32],
    whole: NDArray[np.bool_],
    weights: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Turn the result of attention without bias into attention with bias.

    Args:
        queries: The queries, times the factor of the scores.
        keys: The keys.
        values: The values.
        bias: [P, H], the biases.
        changes: [P, H], ``exp(bias) - 1``.
        starts: int64 [T + 1].
        partners: int64 [P], the keys of the pairs.
        lengths: int64 [B], tokens per graph.
        normalisers: [T, H], logarithms of the rows' normalisers; changed to the biased ones.
        whole: [T, H], written: whether the row was computed as a whole.
        weights: [P, H], written: ``exp(score - biased normaliser)`` of the rows that are corrected.
        out: Result of attention without bias; changed.
    """
    tokens, heads = normalisers.shape
    size = tokens // lengths.size
    width = out.size // (tokens * heads)
    vectors = width // LANES
    row, sums = np.empty(size, np.float32), np.empty(width, np.float32)
    for t in range(tokens):
        first, last = starts[t], starts[t + 1]
        if first == last:
            continue
        begin, length = t // size * size, lengths[t // size]
        for h in range(heads):
            at, left, largest = (t * heads + h) * vectors, _ONE, _ZERO
            sums[:] = _ZERO
            for p in range(first, last):
                other = (partners[p] * heads + h) * vectors
                weight = np.exp(_dot(queries, at, keys, other, vectors) - normalisers[t, h])
                weights[p, h] = weight
                change = weight * changes[p, h]
                left += change
                largest = max(largest, changes[p, h])
                _add(sums, 0, change, values, other, vectors)
            if left >= _LEAST_LEFT and largest <= _LARGEST_CHANGE:
                normalisers[t, h] += np.log(left)
                share = _ONE / left
                for p in range(first, last):
                    weights[p, h] *= share
                for i in range(vectors):
                    store(out, at + i, (load(out, at + i) + load(sums, i)) * splat(share))
                continue
            whole[t, h] = True
            _whole_row(t, h, queries, keys, bias, starts, partners, (begin, length), vectors, row)
            highest, mass = row[:length].max(), _ZERO
            sums[:] = _ZERO
            for j in range(length):
                weight = np.exp(row[j] - highest)
                mass += weight
                _add(sums, 0, weight, values, ((begin + j) * heads + h) * vectors, vectors)
            normalisers[t, h] = highest + np.log(mass)
            for i in range(vectors):
                store(out, at + i, load(sums, i) * splat(_ONE / mass))


@kernel
def correct_gradients(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    values: NDArray[np.float32],
    bias: NDArray[np.float32],
    changes: NDArray[np.float32],
    starts: NDArray[np.int64],
    partners: NDArray[np.int64],
    lengths: NDArray[np.int64],
    normalisers: NDArray[np.float32],
    whole: NDArray[np.bool_],
    weights: NDArray[np.float32],
    out: NDArray[np.float32],
    gradients: NDArray[np.float32],
    of_queries: NDArray[np.float32],
    of_keys: NDArray[np.float32],
    of_values: NDArray[np.float32],
    of_bias: NDArray[np.float32],
) -> None:
    """Turn gradients of attention without bias into gradients with bias.

    The gradients without bias were computed from the biased result and the biased normalisers, with a normaliser of
    infinity in the rows that are computed as a whole.

    Args:
        queries: As in :func:`correct`, as are the arguments up to ``weights``.
        keys: See there.
        values: See there.
        bias: See there.
        changes: See there.
        starts: See there.
        partners: See there.
        lengths: See there.
        normalisers: Biased.
        whole: See there.
        weights: See there.
        out: The biased result.
        gradients: Gradients of the result.
        of_queries: Gradients of the queries, which are times the factor of the scores; changed.
        of_keys: Gradients of the keys; changed.
        of_values: Gradients of the values; changed.
        of_bias: [P, H], overwritten.
    """
    tokens, heads = normalisers.shape
    size = tokens // lengths.size
    vectors = out.size // (tokens * heads) // LANES
    row = np.empty(size, np.float32)
    for t in range(tokens):
        first, last = starts[t], starts[t + 1]
        if first == last:
            continue
        begin, length = t // size * size, lengths[t // size]
        for h in range(heads):
            at = (t * heads + h) * vectors
            mean = _dot(gradients, at, out, at, vectors)
            if whole[t, h]:
                _whole_row(t, h, queries, keys, bias, starts, partners, (begin, length), vectors, row)
                for j in range(length):
                    other = ((begin + j) * heads + h) * vectors
                    weight = np.exp(row[j] - normalisers[t, h])
                    row[j] = weight * (_dot(gradients, at, values, other, vectors) - mean)
                    _add(of_values, other, weight, gradients, at, vectors)
                    _add(of_queries, at, row[j], keys, other, vectors)
                    _add(of_keys, other, row[j], queries, at, vectors)
                for p in range(first, last):
                    of_bias[p, h] = row[partners[p] - begin]
                continue
            for p in range(first, last):
                other = (partners[p] * heads + h) * vectors
                slope = _dot(gradients, at, values, other, vectors) - mean
                change = weights[p, h] * changes[p, h]
                of_bias[p, h] = (weights[p, h] + change) * slope
                _add(of_values, other, change, gradients, at, vectors)
                _add(of_queries, at, change * slope, keys, other, vectors)
                _add(of_keys, other, change * slope, queries, at, vectors)
