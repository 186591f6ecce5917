"""Products and closures of matrices in the semirings (max, min) and (max, +), compiled for the CPU.

The matrices of a batch are packed: float32 [P, C] holds one row per ordered pair (u, v) of nodes of one graph, row by
row and graph after graph, and one column per channel; every graph has C matrices. A kernel takes one channel of one
graph at a time, as a matrix in the first-level or second-level cache, whose rows are vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, store, where_less

_LOWEST, _ZERO, _HALF = np.float32(-np.inf), np.float32(0.0), np.float32(0.5)
_NONE = np.float32(-1.0)


@inner
def _fill_rows(values: NDArray[np.float32], first: int, channel: int, size: int, rows: NDArray[np.float32]) -> None:
    """Copy one matrix to rows of vectors, [size * ceil(size / LANES), LANES], with the lowest value beyond them."""
    vectors = (size + LANES - 1) // LANES
    for u in range(size):
        for v in range(size):
            rows[u * vectors + v // LANES, v % LANES] = values[first + u * size + v, channel]
        for v in range(size, vectors * LANES):
            rows[u * vectors + v // LANES, v % LANES] = _LOWEST


@inner
def _fill_panels(values: NDArray[np.float32], first: int, channel: int, size: int, panels: NDArray[np.float32]) -> None:
    """Copy one matrix to panels of ``LANES`` columns, [ceil(size / LANES) * size, LANES], one after the other.

    The rows of a panel are neighbours in memory, so that a panel stays in the cache while the rows of the left factor
    pass over it.
    """
    for w in range(size):
        row = first + w * size
        for v in range(size):
            panels[v // LANES * size + w, v % LANES] = values[row + v, channel]
        for v in range(size, (size + LANES - 1) // LANES * LANES):
            panels[v // LANES * size + w, v % LANES] = _LOWEST


@kernel
def products(
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    nodes: NDArray[np.int64],
    minima: int,
    out: NDArray[np.float32],
    middles: NDArray[np.int16],
) -> None:
    """Write ``out[u, v] = max over w of op(left[u, w], right[w, v])`` of every matrix, and the first such w.

    Args:
        left: [P, C].
        right: [P, C].
        nodes: [B], the nodes of every graph; the sum of their squares is P.
        minima: The channels, the first ones, whose ``op`` is the minimum; in the others it is the sum.
        out: [P, C], overwritten.
        middles: [P * C], overwritten, graph by graph and channel by channel; empty if nobody reads the positions.
    """
    most = nodes.max() if nodes.size else 0
    vectors = (most + LANES - 1) // LANES
    panels, factors = empty_vectors(vectors * most + 1), np.empty((most, most), np.float32)
    results, places, placed, first = empty_vectors(4), empty_vectors(4), middles.size > 0, 0
    for size in nodes:
        for channel in range(left.shape[1]):
            _fill_panels(right, first, channel, size, panels)
            for u in range(size):
                for w in range(size):
                    factors[u, w] = left[first + u * size + w, channel]
            written = first * left.shape[1] + channel * size * size
            for panel in range((size + LANES - 1) // LANES):
                column = panel * LANES
                for u in range(0, size, 4):
                    rows = min(4, size - u)
                    _four_rows(factors, u, rows, panels, panel * size, size, channel >= minima, placed, results, places)
                    for i in range(rows):
                        begin = (u + i) * size + column
                        for lane in range(min(LANES, size - column)):
                            out[first + begin + lane, channel] = results[i, lane]
                            if placed:
                                middles[written + begin + lane] = np.int16(places[i, lane])
        first += size * size


@inner
def _four_rows(
    left: NDArray[np.float32],
    u: int,
    rows: int,
    panels: NDArray[np.float32],
    begin: int,
    size: int,
    adds: bool,
    placed: bool,
    results: NDArray[np.float32],
    places: NDArray[np.float32],
) -> None:
    """Write up to four rows of a product in one panel to ``results`` [4, LANES]; missing rows repeat the last one.

    If ``placed``, ``places`` [4, LANES] receives the first positions w of the maxima.
    """
    u1, u2, u3 = u + min(1, rows - 1), u + min(2, rows - 1), u + min(3, rows - 1)
    best0 = best1 = best2 = best3 = splat(_LOWEST)
    at0 = at1 = at2 = at3 = splat(_ZERO)
    for w in range(size):
        row, place = load(panels, begin + w), splat(np.float32(w))
        a0, a1, a2, a3 = splat(left[u, w]), splat(left[u1, w]), splat(left[u2, w]), splat(left[u3, w])
        if adds:
            s0, s1, s2, s3 = a0 + row, a1 + row, a2 + row, a3 + row
        else:
            s0, s1 = where_less(a0, row, a0, row), where_less(a1, row, a1, row)
            s2, s3 = where_less(a2, row, a2, row), where_less(a3, row, a3, row)
        if placed:
            at0, at1 = where_less(best0, s0, place, at0), where_less(best1, s1, place, at1)
            at2, at3 = where_less(best2, s2, place, at2), where_less(best3, s3, place, at3)
        best0, best1 = where_less(best0, s0, s0, best0), where_less(best1, s1, s1, best1)
        best2, best3 = where_less(best2, s2, s2, best2), where_less(best3, s3, s3, best3)
    for i, (best, at) in enumerate(((best0, at0), (best1, at1), (best2, at2), (best3, at3))):
        store(results, i, best)
        store(places, i, at)


@kernel
def product_gradients(
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    nodes: NDArray[np.int64],
    minima: int,
    middles: NDArray[np.int16],
    gradients: NDArray[np.float32],
    of_left: NDArray[np.float32],
    of_right: NDArray[np.float32],
) -> None:
    """Add to ``of_left`` and ``of_right`` the gradients of :func:`products`, which go to the positions of the maxima.

    A minimum passes its gradient to the smaller factor, and one half to each of two equal factors.

    Args:
        left: As in :func:`products`, as are ``right``, ``nodes``, ``minima`` and ``middles``.
        right: See there.
        nodes: See there.
        minima: See there.
        middles: See there.
        gradients: [P, C], the gradients of ``out``.
        of_left: [P, C], changed.
        of_right: [P, C], changed.
    """
    first, channels = 0, left.shape[1]
    for size in nodes:
        for u in range(size):
            for v in range(size):
                pair = u * size + v
                for channel in range(channels):
                    w = middles[first * channels + channel * size * size + pair]
                    gradient = gradients[first + pair, channel]
                    at_left, at_right = first + u * size + w, first + w * size + v
                    if channel >= minima:
                        of_left[at_left, channel] += gradient
                        of_right[at_right, channel] += gradient
                    else:
                        share = _share(left[at_left, channel], right[at_right, channel])
                        of_left[at_left, channel] += share * gradient
                        of_right[at_right, channel] += (np.float32(1.0) - share) * gradient
        first += size * size


@inner
def _share(left: np.float32, right: np.float32) -> np.float32:
    """Return the share of the gradient of a minimum that its left argument receives."""
    if left < right:
        return np.float32(1.0)
    return _ZERO if right < left else _HALF


@kernel
def closures(
    values: NDArray[np.float32],
    nodes: NDArray[np.int64],
    minima: int,
    out: NDArray[np.float32],
    middles: NDArray[np.int16],
) -> None:
    """Write the largest value of a walk from u to v, the product of the walk's steps, of every matrix.

    Floyd and Warshall's algorithm: stage w lets walks pass through w. ``middles`` holds the last stage that raised a
    value, -1 where the step from u to v is the best walk.

    Args:
        values: [P, C]; where walks add their steps, no value is above 0.
        nodes: As in :func:`products`.
        minima: The channels, the first ones, whose walks take the minimum of their steps; in the others walks add them.
        out: [P, C], overwritten.
        middles: As in :func:`products`.
    """
    most = nodes.max() if nodes.size else 0
    count = (most + LANES - 1) // LANES * most + 1
    rows, stages, staged, first = empty_vectors(count), empty_vectors(count), middles.size > 0, 0
    for size in nodes:
        vectors = (size + LANES - 1) // LANES
        for channel in range(values.shape[1]):
            _fill_rows(values, first, channel, size, rows)
            stages[: size * vectors] = _NONE
            _close(rows, stages, size, vectors, channel >= minima, staged)
            written = first * values.shape[1] + channel * size * size
            for u in range(size):
                for v in range(size):
                    out[first + u * size + v, channel] = rows[u * vectors + v // LANES, v % LANES]
                    if staged:
                        middles[written + u * size + v] = np.int16(stages[u * vectors + v // LANES, v % LANES])
        first += size * size


@inner
def _close(
    rows: NDArray[np.float32], stages: NDArray[np.float32], size: int, vectors: int, adds: bool, staged: bool
) -> None:
    """Close a matrix in place; ``rows`` [size * vectors, LANES].

    If ``staged``, ``stages`` [size * vectors, LANES] receives the last stage that raised a value.
    """
    for w in range(size):
        stage = splat(np.float32(w))
        for u in range(size):
            step = splat(rows[u * vectors + w // LANES, w % LANES])
            for i in range(vectors):
                other, now = load(rows, w * vectors + i), load(rows, u * vectors + i)
                value = step + other if adds else where_less(step, other, step, other)
                if staged:
                    store(stages, u * vectors + i, where_less(now, value, stage, load(stages, u * vectors + i)))
                store(rows, u * vectors + i, where_less(now, value, value, now))


@kernel
def closure_gradients(
    out: NDArray[np.float32],
    nodes: NDArray[np.int64],
    minima: int,
    middles: NDArray[np.int16],
    gradients: NDArray[np.float32],
    of_values: NDArray[np.float32],
) -> None:
    """Write the gradients of the steps of :func:`closures`.

    A value that stage w raised last is the product of the closure's values from u to w and from w to v, which earlier
    stages raised last; so the stages are gone through backwards. A minimum passes its gradient to the smaller value,
    and one half to each of two equal values.

    Args:
        out: As in :func:`closures`, as are ``nodes``, ``minima`` and ``middles``.
        nodes: See there.
        minima: See there.
        middles: See there.
        gradients: [P, C], the gradients of ``out``.
        of_values: [P, C], overwritten.
    """
    most = nodes.max() if nodes.size else 0
    starts, pairs, first, channels = np.empty(most + 2, np.int64), np.empty(most * most, np.int64), 0, out.shape[1]
    closed, passed = np.empty((most, most), np.float32), np.empty((most, most), np.float32)
    for size in nodes:
        for channel in range(channels):
            stages = middles[first * channels + channel * size * size :][: size * size]
            _sort_by_stage(stages, size, starts, pairs)
            for u in range(size):
                for v in range(size):
                    closed[u, v] = out[first + u * size + v, channel]
                    passed[u, v] = gradients[first + u * size + v, channel]
            for position in range(size * size - 1, starts[0] - 1, -1):
                u, v = divmod(pairs[position], size)
                w, gradient = stages[pairs[position]], passed[u, v]
                passed[u, v] = _ZERO
                if channel >= minima:
                    passed[u, w] += gradient
                    passed[w, v] += gradient
                else:
                    share = _share(closed[u, w], closed[w, v])
                    passed[u, w] += share * gradient
                    passed[w, v] += (np.float32(1.0) - share) * gradient
            for u in range(size):
                for v in range(size):
                    of_values[first + u * size + v, channel] = passed[u, v]
        first += size * size


@inner
def _sort_by_stage(stages: NDArray[np.int16], size: int, starts: NDArray[np.int64], pairs: NDArray[np.int64]) -> None:
    """Write the numbers of pairs in the order of their stages; ``starts[0]`` receives the count of pairs without one.

    Args:
        stages: [size * size], -1 to size - 1.
        size: Nodes.
        starts: [size + 2], overwritten; ``starts[w + 1]`` is the end of stage w.
        pairs: [size * size], overwritten.
    """
    starts[: size + 2] = 0
    for stage in stages:
        starts[stage + 2] += 1
    for w in range(1, size + 2):
        starts[w] += starts[w - 1]
    for pair in range(size * size):
        pairs[starts[stages[pair] + 1]] = pair
        starts[stages[pair] + 1] += 1
