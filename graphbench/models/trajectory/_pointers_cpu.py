"""The scores of pointers, compiled for the CPU: no vector of a pair or a triple of nodes is written to memory.

All arrays are contiguous and have one dimension; ``width`` numbers in a row, a multiple of ``LANES``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, spread, store, total, where_less
from graphbench.models.trajectory._messages_cpu import add_column_gradients

_ZERO = np.float32(0.0)


@inner
def _pair_vector(
    columns: NDArray[np.float32],
    weights: NDArray[np.float32],
    tails: NDArray[np.float32],
    heads: NDArray[np.float32],
    rows: NDArray[np.float32],
    pair: int,
    tail: int,
    head: int,
    vectors: int,
    count: int,
    i: int,
) -> Any:
    """Return vector ``i`` of a pair: the sum of its linear map, the vectors of its nodes, and its row if any."""
    value = load(tails, tail * vectors + i) + load(heads, head * vectors + i)
    for f in range(count):
        value = value + spread(columns, pair * count + f) * load(weights, f * vectors + i)
    if rows.size:
        value = value + load(rows, pair * vectors + i)
    return value


@kernel
def pair_scores(
    columns: NDArray[np.float32],
    weights: NDArray[np.float32],
    tails: NDArray[np.float32],
    heads: NDArray[np.float32],
    rows: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    scores: NDArray[np.float32],
) -> None:
    """Write ``relu(columns[u, v] @ weights + tails[u] + heads[v] + rows[u, v]) . last`` for all pairs of nodes.

    Args:
        columns: [B * n * n * F].
        weights: [F * width].
        tails: [B * n * width], as is ``heads``.
        heads: See ``tails``.
        rows: [B * n * n * width]; empty for zeros.
        last: [width].
        nodes: n.
        scores: [B * n * n], overwritten.
    """
    width = last.size
    vectors, zero = width // LANES, splat(_ZERO)
    count = weights.size // width
    for tail in range(tails.size // width):
        for v in range(nodes):
            pair, head, summed = tail * nodes + v, tail // nodes * nodes + v, zero
            for i in range(vectors):
                value = _pair_vector(columns, weights, tails, heads, rows, pair, tail, head, vectors, count, i)
                summed = summed + where_less(zero, value, value, zero) * load(last, i)
            scores[pair] = total(summed)


@kernel
def pair_score_gradients(
    columns: NDArray[np.float32],
    weights: NDArray[np.float32],
    tails: NDArray[np.float32],
    heads: NDArray[np.float32],
    rows: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    gradients: NDArray[np.float32],
    of_columns: NDArray[np.float32],
    of_weights: NDArray[np.float32],
    of_tails: NDArray[np.float32],
    of_heads: NDArray[np.float32],
    of_rows: NDArray[np.float32],
    of_last: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`pair_scores`, of the arguments with the same names.

    Args:
        columns: As in :func:`pair_scores`, as are all arguments that are not explained here.
        weights: See there.
        tails: See there.
        heads: See there.
        rows: See there.
        last: See there.
        nodes: See there.
        gradients: [B * n * n], the gradients of the scores.
        of_columns: [B * n * n * F], changed, like all that follow; empty if the columns need no gradient.
        of_weights: [F * width].
        of_tails: [B * n * width], as is ``of_heads``.
        of_heads: See ``of_tails``.
        of_rows: [B * n * n * width]; empty if there are no rows.
        of_last: [width].
    """
    width = last.size
    vectors, zero, passed = width // LANES, splat(_ZERO), empty_vectors(width // LANES)
    count = weights.size // width
    for tail in range(tails.size // width):
        for v in range(nodes):
            pair, head = tail * nodes + v, tail // nodes * nodes + v
            if gradients[pair] == _ZERO:
                continue
            gradient, at_tail, at_head = splat(gradients[pair]), tail * vectors, head * vectors
            for i in range(vectors):
                value = _pair_vector(columns, weights, tails, heads, rows, pair, tail, head, vectors, count, i)
                store(of_last, i, load(of_last, i) + gradient * where_less(zero, value, value, zero))
                back = where_less(zero, value, gradient * load(last, i), zero)
                store(passed, i, back)
                store(of_tails, at_tail + i, load(of_tails, at_tail + i) + back)
                store(of_heads, at_head + i, load(of_heads, at_head + i) + back)
                if of_rows.size:
                    store(of_rows, pair * vectors + i, load(of_rows, pair * vectors + i) + back)
            add_column_gradients(columns, pair, weights, passed, 0, width, of_columns, of_weights)


@kernel
def triple_scores(
    sources: NDArray[np.float32],
    targets: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    scores: NDArray[np.float32],
) -> None:
    """Write ``relu(targets[k] - sources[i, j]) . last`` for all triples of nodes.

    Args:
        sources: [B * n * n * width].
        targets: [B * n * width].
        last: [width].
        nodes: n.
        scores: [B * n * n * n], overwritten.
    """
    vectors, zero = last.size // LANES, splat(_ZERO)
    for pair in range(scores.size // nodes):
        first, source = pair // (nodes * nodes) * nodes, pair * vectors
        for k in range(nodes):
            target, summed = (first + k) * vectors, zero
            for i in range(vectors):
                value = load(targets, target + i) - load(sources, source + i)
                summed = summed + where_less(zero, value, value, zero) * load(last, i)
            scores[pair * nodes + k] = total(summed)


@kernel
def triple_score_gradients(
    sources: NDArray[np.float32],
    targets: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    gradients: NDArray[np.float32],
    of_sources: NDArray[np.float32],
    of_targets: NDArray[np.float32],
    of_last: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`triple_scores`.

    Args:
        sources: As in :func:`triple_scores`, as are ``targets``, ``last`` and ``nodes``.
        targets: See there.
        last: See there.
        nodes: See there.
        gradients: [B * n * n * n], the gradients of the scores.
        of_sources: [B * n * n * width], changed.
        of_targets: [B * n * width], changed.
        of_last: [width], changed.
    """
    vectors, zero = last.size // LANES, splat(_ZERO)
    for pair in range(gradients.size // nodes):
        first, source = pair // (nodes * nodes) * nodes, pair * vectors
        for k in range(nodes):
            gradient, target = splat(gradients[pair * nodes + k]), (first + k) * vectors
            for i in range(vectors):
                value = load(targets, target + i) - load(sources, source + i)
                store(of_last, i, load(of_last, i) + gradient * where_less(zero, value, value, zero))
                back = where_less(zero, value, gradient * load(last, i), zero)
                store(of_targets, target + i, load(of_targets, target + i) + back)
                store(of_sources, source + i, load(of_sources, source + i) - back)


@kernel
def triplet_scores(
    ends: NDArray[np.float32],
    firsts: NDArray[np.float32],
    seconds: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    scores: NDArray[np.float32],
) -> None:
    """Write ``relu(ends[i, j] + firsts[i, k] + seconds[j, k]) . last`` for all triples of nodes.

    Args:
        ends: [B * n * n * width], as are ``firsts`` and ``seconds``.
        firsts: See ``ends``.
        seconds: See ``ends``.
        last: [width].
        nodes: n.
        scores: [B * n * n * n], overwritten.
    """
    vectors, zero = last.size // LANES, splat(_ZERO)
    for row in range(scores.size // (nodes * nodes)):
        graph = row // nodes
        for j in range(nodes):
            pair, other = (row * nodes + j) * vectors, graph * nodes + j
            for k in range(nodes):
                first, second, summed = (row * nodes + k) * vectors, (other * nodes + k) * vectors, zero
                for i in range(vectors):
                    value = load(ends, pair + i) + load(firsts, first + i) + load(seconds, second + i)
                    summed = summed + where_less(zero, value, value, zero) * load(last, i)
                scores[(row * nodes + j) * nodes + k] = total(summed)


@kernel
def triplet_score_gradients(
    ends: NDArray[np.float32],
    firsts: NDArray[np.float32],
    seconds: NDArray[np.float32],
    last: NDArray[np.float32],
    nodes: int,
    gradients: NDArray[np.float32],
    of_ends: NDArray[np.float32],
    of_firsts: NDArray[np.float32],
    of_seconds: NDArray[np.float32],
    of_last: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`triplet_scores`.

    Args:
        ends: As in :func:`triplet_scores`, as are ``firsts``, ``seconds``, ``last`` and ``nodes``.
        firsts: See there.
        seconds: See there.
        last: See there.
        nodes: See there.
        gradients: [B * n * n * n], the gradients of the scores.
        of_ends: [B * n * n * width], changed, as are ``of_firsts`` and ``of_seconds``.
        of_firsts: See ``of_ends``.
        of_seconds: See ``of_ends``.
        of_last: [width], changed.
    """
    vectors, zero = last.size // LANES, splat(_ZERO)
    for row in range(gradients.size // (nodes * nodes)):
        graph = row // nodes
        for j in range(nodes):
            pair, other = (row * nodes + j) * vectors, graph * nodes + j
            for k in range(nodes):
                first, second = (row * nodes + k) * vectors, (other * nodes + k) * vectors
                gradient = splat(gradients[(row * nodes + j) * nodes + k])
                for i in range(vectors):
                    value = load(ends, pair + i) + load(firsts, first + i) + load(seconds, second + i)
                    store(of_last, i, load(of_last, i) + gradient * where_less(zero, value, value, zero))
                    back = where_less(zero, value, gradient * load(last, i), zero)
                    store(of_ends, pair + i, load(of_ends, pair + i) + back)
                    store(of_firsts, first + i, load(of_firsts, first + i) + back)
                    store(of_seconds, second + i, load(of_seconds, second + i) + back)
