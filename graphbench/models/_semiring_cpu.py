"""Products and closures of matrices in the semirings (max, min) and (max, +), compiled for the CPU.

The matrices of a batch are packed: float32 [C, P] holds one row per channel, and in a row the matrices of all graphs,
one after the other, each row by row; P is the sum of the squared numbers of nodes. The kernels read these arrays as
arrays of one dimension, [C * P], and take one matrix at a time, which fits the first-level or second-level cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, store, where_less

_LOWEST, _ZERO, _HALF = np.float32(-np.inf), np.float32(0.0), np.float32(0.5)
_ONE, _TWO, _THREE = np.float32(1.0), np.float32(2.0), np.float32(3.0)
_NONE = np.float32(-1.0)  # no stage
_BITS, _LOW_BITS = 15, 2**15 - 1  # of the number of a node
_BLOCK = 4  # stages of a closure that are applied to a row at once


@inner
def _fill_rows(values: NDArray[np.float32], size: int, rows: NDArray[np.float32]) -> None:
    """Copy a matrix [size * size] to rows of whole vectors, one dimension, with the lowest value beyond a row."""
    width = (size + LANES - 1) // LANES * LANES
    for u in range(size):
        for v in range(size):
            rows[u * width + v] = values[u * size + v]
        for v in range(size, width):
            rows[u * width + v] = _LOWEST


@inner
def _fill_panels(values: NDArray[np.float32], size: int, panels: NDArray[np.float32]) -> None:
    """Copy a matrix [size * size] to panels of ``LANES`` columns, [ceil(size / LANES) * size, LANES].

    The rows of a panel are neighbours in memory, so that a panel stays in the cache while the rows of the left factor
    pass over it.
    """
    for panel in range((size + LANES - 1) // LANES):
        column = panel * LANES
        columns = min(LANES, size - column)
        for w in range(size):
            for lane in range(columns):
                panels[panel * size + w, lane] = values[w * size + column + lane]
            for lane in range(columns, LANES):
                panels[panel * size + w, lane] = _LOWEST


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
        left: [C * P].
        right: [C * P].
        nodes: [B], the nodes of every graph; the sum of their squares is P.
        minima: The channels, the first ones, whose ``op`` is the minimum; in the others it is the sum.
        out: [C * P], overwritten.
        middles: [C * P], overwritten; empty if nobody reads the positions.
    """
    most, pairs = (nodes.max() if nodes.size else 0), (nodes * nodes).sum()
    panels = empty_vectors((most + LANES - 1) // LANES * most + 1)
    results, places, placed = empty_vectors(4), empty_vectors(4), middles.size > 0
    for channel in range(left.size // max(pairs, 1)):
        first = channel * pairs
        for size in nodes:
            end = first + size * size
            _fill_panels(right[first:end], size, panels)
            for panel in range((size + LANES - 1) // LANES):
                column = panel * LANES
                for u in range(0, size, 4):
                    rows = min(4, size - u)
                    factor, begin = left[first:end], panel * size
                    _four_rows(factor, u, rows, panels, begin, size, channel >= minima, placed, results, places)
                    for i in range(rows):
                        written = first + (u + i) * size + column
                        for lane in range(min(LANES, size - column)):
                            out[written + lane] = results[i, lane]
                            if placed:
                                middles[written + lane] = np.int16(places[i, lane])
            first = end


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

    The left factor is [size * size].

    If ``placed``, ``places`` [4, LANES] receives the first positions w of the maxima.
    """
    i0, i1, i2, i3 = u * size, (u + min(1, rows - 1)) * size, (u + min(2, rows - 1)) * size, (u + rows - 1) * size
    best0 = best1 = best2 = best3 = splat(_LOWEST)
    at0 = at1 = at2 = at3 = splat(_ZERO)
    for w in range(size):
        row, place = load(panels, begin + w), splat(np.float32(w))
        a0, a1, a2, a3 = splat(left[i0 + w]), splat(left[i1 + w]), splat(left[i2 + w]), splat(left[i3 + w])
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
        gradients: [C * P], the gradients of ``out``.
        of_left: [C * P], changed.
        of_right: [C * P], changed.
    """
    pairs, one = (nodes * nodes).sum(), np.float32(1.0)
    for channel in range(left.size // max(pairs, 1)):
        first = channel * pairs
        for size in nodes:
            for u in range(size):
                row = first + u * size
                for v in range(size):
                    w, gradient = middles[row + v], gradients[row + v]
                    at_left, at_right = row + w, first + w * size + v
                    if channel >= minima:
                        of_left[at_left] += gradient
                        of_right[at_right] += gradient
                    else:
                        share = _share(left[at_left], right[at_right])
                        of_left[at_left] += share * gradient
                        of_right[at_right] += (one - share) * gradient
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
        values: [C * P]; where walks add their steps, no value is above 0.
        nodes: As in :func:`products`.
        minima: The channels, the first ones, whose walks take the minimum of their steps; in the others walks add them.
        out: [C * P], overwritten.
        middles: As in :func:`products`.
    """
    most, pairs = (nodes.max() if nodes.size else 0), (nodes * nodes).sum()
    count = (most + LANES - 1) // LANES * most + 1
    rows, stages, staged = empty_vectors(count), empty_vectors(count), middles.size > 0
    numbers, recorded = rows.reshape(count * LANES), stages.reshape(count * LANES)
    passed = empty_vectors(_BLOCK * ((most + LANES - 1) // LANES) + 1)
    for channel in range(values.size // max(pairs, 1)):
        first = channel * pairs
        for size in nodes:
            vectors = (size + LANES - 1) // LANES
            _fill_rows(values[first : first + size * size], size, numbers)
            if staged:
                recorded[: size * vectors * LANES] = _NONE
            for w in range(0, size, _BLOCK):
                _pass_block(rows, stages, w, size, vectors, channel >= minima, staged, passed)
            for u in range(size):
                for v in range(size):
                    out[first + u * size + v] = numbers[u * vectors * LANES + v]
            if staged:
                for u in range(size):
                    for v in range(size):
                        middles[first + u * size + v] = np.int16(recorded[u * vectors * LANES + v])
            first += size * size


@inner
def _pass_block(
    rows: NDArray[np.float32],
    stages: NDArray[np.float32],
    w: int,
    size: int,
    vectors: int,
    adds: bool,
    staged: bool,
    passed: NDArray[np.float32],
) -> None:
    """Let walks pass through ``_BLOCK`` nodes from w on: ``rows`` [size * vectors, LANES] are changed.

    The rows of these nodes pass through the stages first, and ``passed`` [_BLOCK * vectors, LANES] receives each row as
    it is at the stage of its node. Then every other row is read and written once, with the values and in the order of
    single stages. Rows of nodes beyond the last one are the lowest value, which raises nothing.

    If ``staged``, ``stages`` [size * vectors, LANES] receives the last stage that raised a value.
    """
    end = min(w + _BLOCK, size)
    for stage in range(w, end):
        begin = (stage - w) * vectors
        for i in range(vectors):
            store(passed, begin + i, load(rows, stage * vectors + i))
        for u in range(w, end):
            _one_step(rows, stages, u, stage, begin, vectors, adds, staged, passed)
    for i in range((end - w) * vectors, _BLOCK * vectors):
        store(passed, i, splat(_LOWEST))
    _four_steps(rows, stages, w, size, vectors, adds, staged, passed)


@inner
def _one_step(
    rows: NDArray[np.float32],
    stages: NDArray[np.float32],
    u: int,
    stage: int,
    begin: int,
    vectors: int,
    adds: bool,
    staged: bool,
    passed: NDArray[np.float32],
) -> None:
    """Let the walks from u pass through the node of one stage, whose row begins at ``passed[begin]``."""
    step, number = splat(rows[u * vectors + stage // LANES, stage % LANES]), splat(np.float32(stage))
    for i in range(vectors):
        other, now = load(passed, begin + i), load(rows, u * vectors + i)
        value = step + other if adds else where_less(step, other, step, other)
        if staged:
            store(stages, u * vectors + i, where_less(now, value, number, load(stages, u * vectors + i)))
        store(rows, u * vectors + i, where_less(now, value, value, now))


@inner
def _raised(now: np.float32, step: np.float32, other: np.float32, adds: bool) -> np.float32:
    """Return the larger one of a value and of a step combined with another value."""
    value = step + other if adds else (step if step < other else other)
    return value if now < value else now


@inner
def _four_steps(
    rows: NDArray[np.float32],
    stages: NDArray[np.float32],
    w: int,
    size: int,
    vectors: int,
    adds: bool,
    staged: bool,
    passed: NDArray[np.float32],
) -> None:
    """Let the walks from all other nodes pass through the nodes w to w + 3, whose rows are in ``passed``."""
    column, lane = w // LANES, w % LANES  # a block is in one vector: LANES is a multiple of _BLOCK
    one, two, three = vectors, 2 * vectors, 3 * vectors
    first = np.float32(w)
    n0, n1, n2, n3 = splat(first), splat(first + _ONE), splat(first + _TWO), splat(first + _THREE)
    for u in range(size):
        if w <= u < w + _BLOCK:
            continue
        row = u * vectors
        x0, x1, x2, x3 = (
            rows[row + column, lane],
            rows[row + column, lane + 1],
            rows[row + column, lane + 2],
            rows[row + column, lane + 3],
        )
        x1 = _raised(x1, x0, passed[column, lane + 1], adds)
        x2 = _raised(x2, x0, passed[column, lane + 2], adds)
        x3 = _raised(x3, x0, passed[column, lane + 3], adds)
        x2 = _raised(x2, x1, passed[one + column, lane + 2], adds)
        x3 = _raised(x3, x1, passed[one + column, lane + 3], adds)
        x3 = _raised(x3, x2, passed[two + column, lane + 3], adds)
        s0, s1, s2, s3 = splat(x0), splat(x1), splat(x2), splat(x3)
        for i in range(vectors):
            p0, p1, p2, p3 = load(passed, i), load(passed, one + i), load(passed, two + i), load(passed, three + i)
            if adds:
                a0, a1, a2, a3 = s0 + p0, s1 + p1, s2 + p2, s3 + p3
            else:
                a0, a1 = where_less(s0, p0, s0, p0), where_less(s1, p1, s1, p1)
                a2, a3 = where_less(s2, p2, s2, p2), where_less(s3, p3, s3, p3)
            b0 = load(rows, row + i)
            b1 = where_less(b0, a0, a0, b0)
            b2 = where_less(b1, a1, a1, b1)
            b3 = where_less(b2, a2, a2, b2)
            if staged:
                number = where_less(b0, a0, n0, load(stages, row + i))
                number = where_less(b2, a2, n2, where_less(b1, a1, n1, number))
                store(stages, row + i, where_less(b3, a3, n3, number))
            store(rows, row + i, where_less(b3, a3, a3, b3))


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
        gradients: [C * P], the gradients of ``out``.
        of_values: [C * P], overwritten.
    """
    most, pairs = (nodes.max() if nodes.size else 0), (nodes * nodes).sum()
    starts, order = np.empty(most + 2, np.int64), np.empty(most * most, np.int32)
    for channel in range(out.size // max(pairs, 1)):
        first = channel * pairs
        for size in nodes:
            end = first + size * size
            _sort_by_stage(middles[first:end], size, starts, order)
            of_values[first:end] = gradients[first:end]
            _pass_back(out[first:end], size, channel >= minima, starts, order, of_values[first:end])
            first = end


@inner
def _pass_back(
    closed: NDArray[np.float32],
    size: int,
    adds: bool,
    starts: NDArray[np.int64],
    order: NDArray[np.int32],
    passed: NDArray[np.float32],
) -> None:
    """Move the gradients ``passed`` [size * size] of a closure to the steps of walks.

    Args:
        closed: [size * size], the closure.
        size: Nodes.
        adds: Whether walks add their steps.
        starts: See :func:`_sort_by_stage`.
        order: See there.
        passed: Changed.
    """
    for w in range(size - 1, -1, -1):
        for position in range(starts[w + 1] - 1, starts[w] - 1, -1):
            u, v = order[position] >> _BITS, order[position] & _LOW_BITS
            at, left, right = u * size + v, u * size + w, w * size + v
            gradient = passed[at]
            passed[at] = _ZERO
            share = _ONE if adds else _share(closed[left], closed[right])
            passed[left] += share * gradient
            passed[right] += gradient if adds else (_ONE - share) * gradient


@inner
def _sort_by_stage(stages: NDArray[np.int16], size: int, starts: NDArray[np.int64], order: NDArray[np.int32]) -> None:
    """Write the pairs (u, v) in the order of their stages, as ``u * 2^15 + v``.

    Args:
        stages: [size * size], -1 to size - 1.
        size: Nodes.
        starts: [size + 2], overwritten; the pairs of stage w are ``order[starts[w] : starts[w + 1]]``.
        order: [size * size], overwritten.
    """
    starts[: size + 2] = 0
    for stage in stages:
        starts[stage + 2] += 1
    for w in range(1, size + 2):
        starts[w] += starts[w - 1]
    for u in range(size):
        for v in range(size):
            stage = stages[u * size + v] + 1
            order[starts[stage]] = (u << _BITS) + v
            starts[stage] += 1
