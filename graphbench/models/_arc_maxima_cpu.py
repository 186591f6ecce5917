"""The largest of the other arcs into a node, compiled for the CPU.

Rows ``2j`` and ``2j + 1`` of an array are the two directions of edge ``j``, so the reverse of row ``b`` is the row ``b
^ 1``. A node's incoming rows are read twice: once for the two largest values, which stay in registers, and once to
write the larger of them that another row holds. Widths are multiples of
:data:`~graphbench.models._vectors.LANES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, load, splat, store, where_less

_LOWEST, _ZERO, _NONE = np.float32(-np.inf), np.float32(0.0), np.float32(-1.0)


@inner
def _where_equal(left: Any, right: Any, chosen: Any, other: Any) -> Any:
    """Return ``chosen`` where two vectors without NaNs are equal, else ``other``."""
    return where_less(left, right, other, where_less(right, left, other, chosen))


@kernel
def other_maxima(
    values: NDArray[np.float32],
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    width: int,
    out: NDArray[np.float32],
    places: NDArray[np.float32],
) -> None:
    """Write, for every row b into a node v, the largest value of the other rows into v to row ``b ^ 1``; 0 if none.

    Args:
        values: [A * width].
        rows: [A]; the rows into node v are ``rows[offsets[v]:offsets[v + 1]]``.
        offsets: [N + 1].
        width: Numbers in a row.
        out: [A * width], overwritten.
        places: [2 * N * width], overwritten: for every node the rows of its largest and its second largest value, as
            float32; -1 without such a row; empty if nobody reads them. Of equal values the first row counts as larger.
    """
    vectors, placed = width // LANES, places.size > 0
    zero, lowest, none = splat(_ZERO), splat(_LOWEST), splat(_NONE)
    for v in range(offsets.size - 1):
        for i in range(vectors):
            best, second, at, next_at = lowest, lowest, none, none
            for k in range(offsets[v], offsets[v + 1]):
                value, row = load(values, rows[k] * vectors + i), splat(np.float32(rows[k]))
                next_at = where_less(best, value, at, where_less(second, value, row, next_at))
                second = where_less(best, value, best, where_less(second, value, value, second))
                at = where_less(best, value, row, at)
                best = where_less(best, value, value, best)
            others = where_less(next_at, zero, zero, second)
            for k in range(offsets[v], offsets[v + 1]):
                row = splat(np.float32(rows[k]))
                store(out, (rows[k] ^ 1) * vectors + i, _where_equal(at, row, others, best))
            if placed:
                store(places, 2 * v * vectors + i, at)
                store(places, (2 * v + 1) * vectors + i, next_at)


@kernel
def other_maxima_gradients(
    places: NDArray[np.float32],
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    width: int,
    gradients: NDArray[np.float32],
    of_values: NDArray[np.float32],
) -> None:
    """Write the gradients of the values of :func:`other_maxima`.

    Args:
        places: As that function wrote them.
        rows: As there, as are ``offsets`` and ``width``.
        offsets: See there.
        width: See there.
        gradients: [A * width], the gradients of ``out``.
        of_values: [A * width], overwritten.
    """
    vectors, zero = width // LANES, splat(_ZERO)
    for v in range(offsets.size - 1):
        for i in range(vectors):
            at, next_at = load(places, 2 * v * vectors + i), load(places, (2 * v + 1) * vectors + i)
            of_best, of_second = zero, zero
            for k in range(offsets[v], offsets[v + 1]):
                row, gradient = splat(np.float32(rows[k])), load(gradients, (rows[k] ^ 1) * vectors + i)
                of_best = of_best + _where_equal(at, row, zero, gradient)
                of_second = of_second + _where_equal(at, row, gradient, zero)
            for k in range(offsets[v], offsets[v + 1]):
                row = splat(np.float32(rows[k]))
                passed = _where_equal(at, row, of_best, _where_equal(next_at, row, of_second, zero))
                store(of_values, rows[k] * vectors + i, passed)
