"""Products and closures of matrices in the semirings (max, min) and (max, +), compiled for the CPU.

A batch is float32 [M, n, n], matrices of one size, of which each uses its first rows and columns alone. Right factors
are copied to panels of ``LANES`` columns, whose rows are neighbours in memory, so that a panel stays in the first-level
cache while all rows of the left factor pass over it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, store, where_less

_LOWEST, _ZERO, _HALF = np.float32(-np.inf), np.float32(0.0), np.float32(0.5)
_NONE = np.float32(-1.0)


@inner
def _fill_panels(matrix: NDArray[np.float32], size: int, panels: NDArray[np.float32]) -> None:
    """Copy ``matrix[:size, :size]`` to panels [ceil(size / LANES) * size, LANES], with the lowest value beyond it."""
    for panel in range((size + LANES - 1) // LANES):
        first = panel * LANES
        width = min(LANES, size - first)
        for w in range(size):
            row = panel * size + w
            for lane in range(width):
                panels[row, lane] = matrix[w, first + lane]
            for lane in range(width, LANES):
                panels[row, lane] = _LOWEST


@kernel
def products(
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    sizes: NDArray[np.int64],
    sums: NDArray[np.bool_],
    out: NDArray[np.float32],
    middles: NDArray[np.int16],
) -> None:
    """Write ``out[u, v] = max over w of op(left[u, w], right[w, v])`` of every matrix, and the first such w.

    Args:
        left: [M, n, n].
        right: [M, n, n].
        sizes: [M], rows and columns in use.
        sums: [M], whether ``op`` is the sum; otherwise it is the minimum.
        out: [M, n, n], overwritten in the rows and columns in use.
        middles: [M, n, n], overwritten likewise; of no matrices if nobody reads the positions.
    """
    n = left.shape[1]
    panels = empty_vectors((n + LANES - 1) // LANES * n + 1)
    results, places = empty_vectors(4), empty_vectors(4)
    for m in range(left.shape[0]):
        size = sizes[m]
        _fill_panels(right[m], size, panels)
        for panel in range((size + LANES - 1) // LANES):
            for u in range(0, size, 4):
                rows = min(4, size - u)
                if middles.shape[0]:
                    _four_rows_with_places(left[m], u, rows, panels, panel * size, size, sums[m], results, places)
                else:
                    _four_rows(left[m], u, rows, panels, panel * size, size, sums[m], results)
                first = panel * LANES
                for i in range(rows):
                    for lane in range(min(LANES, size - first)):
                        out[m, u + i, first + lane] = results[i, lane]
                        if middles.shape[0]:
                            middles[m, u + i, first + lane] = np.int16(places[i, lane])


@inner
def _four_rows(
    left: NDArray[np.float32],
    u: int,
    rows: int,
    panels: NDArray[np.float32],
    begin: int,
    size: int,
    adds: bool,
    results: NDArray[np.float32],
) -> None:
    """Write up to four rows of a product in one panel to ``results`` [4, LANES]; missing rows repeat the last one."""
    u1, u2, u3 = u + min(1, rows - 1), u + min(2, rows - 1), u + min(3, rows - 1)
    best0, best1, best2, best3 = splat(_LOWEST), splat(_LOWEST), splat(_LOWEST), splat(_LOWEST)
    if adds:
        for w in range(size):
            row = load(panels, begin + w)
            s0, s1 = splat(left[u, w]) + row, splat(left[u1, w]) + row
            s2, s3 = splat(left[u2, w]) + row, splat(left[u3, w]) + row
            best0, best1 = where_less(best0, s0, s0, best0), where_less(best1, s1, s1, best1)
            best2, best3 = where_less(best2, s2, s2, best2), where_less(best3, s3, s3, best3)
    else:
        for w in range(size):
            row = load(panels, begin + w)
            a0, a1, a2, a3 = splat(left[u, w]), splat(left[u1, w]), splat(left[u2, w]), splat(left[u3, w])
            s0, s1 = where_less(a0, row, a0, row), where_less(a1, row, a1, row)
            s2, s3 = where_less(a2, row, a2, row), where_less(a3, row, a3, row)
            best0, best1 = where_less(best0, s0, s0, best0), where_less(best1, s1, s1, best1)
            best2, best3 = where_less(best2, s2, s2, best2), where_less(best3, s3, s3, best3)
    store(results, 0, best0)
    store(results, 1, best1)
    store(results, 2, best2)
    store(results, 3, best3)


@inner
def _four_rows_with_places(
    left: NDArray[np.float32],
    u: int,
    rows: int,
    panels: NDArray[np.float32],
    begin: int,
    size: int,
    adds: bool,
    results: NDArray[np.float32],
    places: NDArray[np.float32],
) -> None:
    """As :func:`_four_rows`; ``places`` [4, LANES] are the first positions w of the maxima."""
    u1, u2, u3 = u + min(1, rows - 1), u + min(2, rows - 1), u + min(3, rows - 1)
    best0, best1, best2, best3 = splat(_LOWEST), splat(_LOWEST), splat(_LOWEST), splat(_LOWEST)
    at0, at1, at2, at3 = splat(_ZERO), splat(_ZERO), splat(_ZERO), splat(_ZERO)
    for w in range(size):
        row, place = load(panels, begin + w), splat(np.float32(w))
        a0, a1, a2, a3 = splat(left[u, w]), splat(left[u1, w]), splat(left[u2, w]), splat(left[u3, w])
        if adds:
            s0, s1, s2, s3 = a0 + row, a1 + row, a2 + row, a3 + row
        else:
            s0, s1 = where_less(a0, row, a0, row), where_less(a1, row, a1, row)
            s2, s3 = where_less(a2, row, a2, row), where_less(a3, row, a3, row)
        at0, at1 = where_less(best0, s0, place, at0), where_less(best1, s1, place, at1)
        at2, at3 = where_less(best2, s2, place, at2), where_less(best3, s3, place, at3)
        best0, best1 = where_less(best0, s0, s0, best0), where_less(best1, s1, s1, best1)
        best2, best3 = where_less(best2, s2, s2, best2), where_less(best3, s3, s3, best3)
    store(results, 0, best0)
    store(results, 1, best1)
    store(results, 2, best2)
    store(results, 3, best3)
    store(places, 0, at0)
    store(places, 1, at1)
    store(places, 2, at2)
    store(places, 3, at3)


@kernel
def product_gradients(
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    sizes: NDArray[np.int64],
    sums: NDArray[np.bool_],
    middles: NDArray[np.int16],
    gradients: NDArray[np.float32],
    of_left: NDArray[np.float32],
    of_right: NDArray[np.float32],
) -> None:
    """Add to ``of_left`` and ``of_right`` the gradients of :func:`products`, which go to the positions of the maxima.

    A minimum passes its gradient to the smaller factor, and one half to each of two equal factors.
    """
    for m in range(left.shape[0]):
        size = sizes[m]
        for u in range(size):
            for v in range(size):
                w, gradient = middles[m, u, v], gradients[m, u, v]
                if sums[m]:
                    of_left[m, u, w] += gradient
                    of_right[m, w, v] += gradient
                elif left[m, u, w] < right[m, w, v]:
                    of_left[m, u, w] += gradient
                elif right[m, w, v] < left[m, u, w]:
                    of_right[m, w, v] += gradient
                else:
                    of_left[m, u, w] += _HALF * gradient
                    of_right[m, w, v] += _HALF * gradient


@kernel
def closures(
    values: NDArray[np.float32],
    sizes: NDArray[np.int64],
    sums: NDArray[np.bool_],
    out: NDArray[np.float32],
    middles: NDArray[np.int16],
) -> None:
    """Write the best value over all walks from u to v of the product of their steps, of every matrix.

    Floyd and Warshall's algorithm: stage w lets walks pass through w. ``middles`` holds the last stage that raised a
    value, -1 where the step from u to v is the best walk.

    Args:
        values: [M, n, n]; where walks add, no value is above 0.
        sizes: [M], rows and columns in use.
        sums: [M], whether walks add their steps; otherwise they take the minimum.
        out: [M, n, n], overwritten in the rows and columns in use.
        middles: [M, n, n], overwritten likewise; of no matrices if nobody reads the stages.
    """
    n = values.shape[1]
    most = (n + LANES - 1) // LANES
    rows, stages = empty_vectors(n * most + 1), empty_vectors(n * most + 1)
    for m in range(values.shape[0]):
        size = sizes[m]
        vectors = (size + LANES - 1) // LANES
        for u in range(size):
            for v in range(vectors * LANES):
                rows[u * vectors + v // LANES, v % LANES] = values[m, u, v] if v < size else _LOWEST
                stages[u * vectors + v // LANES, v % LANES] = _NONE
        if middles.shape[0]:
            _close_with_stages(rows, stages, size, vectors, sums[m])
        else:
            _close(rows, size, vectors, sums[m])
        for u in range(size):
            for v in range(size):
                out[m, u, v] = rows[u * vectors + v // LANES, v % LANES]
                if middles.shape[0]:
                    middles[m, u, v] = np.int16(stages[u * vectors + v // LANES, v % LANES])


@inner
def _close(rows: NDArray[np.float32], size: int, vectors: int, adds: bool) -> None:
    """Close a matrix in place; ``rows`` [size * vectors, LANES]."""
    for w in range(size):
        for u in range(size):
            step = splat(rows[u * vectors + w // LANES, w % LANES])
            if adds:
                for i in range(vectors):
                    value, now = step + load(rows, w * vectors + i), load(rows, u * vectors + i)
                    store(rows, u * vectors + i, where_less(now, value, value, now))
            else:
                for i in range(vectors):
                    other, now = load(rows, w * vectors + i), load(rows, u * vectors + i)
                    value = where_less(step, other, step, other)
                    store(rows, u * vectors + i, where_less(now, value, value, now))


@inner
def _close_with_stages(
    rows: NDArray[np.float32], stages: NDArray[np.float32], size: int, vectors: int, adds: bool
) -> None:
    """As :func:`_close`; ``stages`` [size * vectors, LANES] receives the last stage that raised a value."""
    for w in range(size):
        stage = splat(np.float32(w))
        for u in range(size):
            step = splat(rows[u * vectors + w // LANES, w % LANES])
            for i in range(vectors):
                other, now = load(rows, w * vectors + i), load(rows, u * vectors + i)
                value = step + other if adds else where_less(step, other, step, other)
                store(stages, u * vectors + i, where_less(now, value, stage, load(stages, u * vectors + i)))
                store(rows, u * vectors + i, where_less(now, value, value, now))


@kernel
def closure_gradients(
    out: NDArray[np.float32],
    sizes: NDArray[np.int64],
    sums: NDArray[np.bool_],
    middles: NDArray[np.int16],
    gradients: NDArray[np.float32],
) -> None:
    """Turn the gradients of closures into the gradients of their steps, in place.

    A value that stage w raised last is the product of the closure's values from u to w and from w to v, which earlier
    stages raised last; so the stages are gone through backwards. A minimum passes its gradient to the smaller value,
    and one half to each of two equal values.

    Args:
        out: [M, n, n], the closures.
        sizes: [M].
        sums: [M].
        middles: [M, n, n], from :func:`closures`.
        gradients: [M, n, n], changed.
    """
    n = out.shape[1]
    starts, pairs = np.empty(n + 2, np.int64), np.empty(n * n, np.int64)
    for m in range(out.shape[0]):
        size = sizes[m]
        starts[: size + 2] = 0
        for u in range(size):
            for v in range(size):
                starts[middles[m, u, v] + 2] += 1
        for w in range(size):
            starts[w + 2] += starts[w + 1]
        for u in range(size):
            for v in range(size):
                w = middles[m, u, v]
                pairs[starts[w + 1]] = u * size + v
                starts[w + 1] += 1
        for position in range(size * size - 1, -1, -1):
            u, v = divmod(pairs[position], size)
            w = middles[m, u, v]
            if w < 0:
                break
            gradient = gradients[m, u, v]
            gradients[m, u, v] = _ZERO
            if sums[m]:
                gradients[m, u, w] += gradient
                gradients[m, w, v] += gradient
            elif out[m, u, w] < out[m, w, v]:
                gradients[m, u, w] += gradient
            elif out[m, w, v] < out[m, u, w]:
                gradients[m, w, v] += gradient
            else:
                gradients[m, u, w] += _HALF * gradient
                gradients[m, w, v] += _HALF * gradient
