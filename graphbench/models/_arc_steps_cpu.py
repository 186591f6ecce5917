"""Parts of steps on arcs, compiled for the CPU: maxima of messages, sums of both directions, and gates.

Rows ``2j`` and ``2j + 1`` of an array are the two directions of edge ``j``, so the reverse of row ``b`` is the row ``b
^ 1``. Widths are multiples of :data:`~graphbench.models._vectors.LANES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, exponential, load, splat, store, where_less

_LOWEST, _ZERO, _ONE, _NONE = np.float32(-np.inf), np.float32(0.0), np.float32(1.0), np.float32(-1.0)


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

    The rows into a node are read twice: once for the two largest values, which stay in registers, and once to write
    the larger of them that another row holds.

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


@kernel
def add_directions(
    terms: NDArray[np.float32], constants: NDArray[np.float32], width: int, hidden: NDArray[np.float32]
) -> None:
    """Write ``max(constants[a] + terms[a, first half] + terms[a ^ 1, second half], 0)`` to ``hidden[a]``.

    Args:
        terms: [A * 2 * width].
        constants: [A * width].
        width: Numbers in a row of ``hidden``.
        hidden: [A * width], overwritten.
    """
    vectors, zero = width // LANES, splat(_ZERO)
    for a in range(constants.size // width):
        ahead, back = 2 * a * vectors, (2 * (a ^ 1) + 1) * vectors
        for i in range(vectors):
            value = load(constants, a * vectors + i) + load(terms, ahead + i) + load(terms, back + i)
            store(hidden, a * vectors + i, where_less(zero, value, value, zero))


@kernel
def add_directions_gradients(
    hidden: NDArray[np.float32],
    width: int,
    gradients: NDArray[np.float32],
    of_terms: NDArray[np.float32],
    of_constants: NDArray[np.float32],
) -> None:
    """Write the gradients of the terms and the constants of :func:`add_directions`.

    Args:
        hidden: [A * width], as that function wrote it.
        width: Numbers in a row of ``hidden``.
        gradients: [A * width], the gradients of ``hidden``.
        of_terms: [A * 2 * width], overwritten.
        of_constants: [A * width], overwritten.
    """
    vectors, zero = width // LANES, splat(_ZERO)
    for a in range(hidden.size // width):
        ahead, back = 2 * a * vectors, (2 * (a ^ 1) + 1) * vectors
        for i in range(vectors):
            row = a * vectors + i
            passed = where_less(zero, load(hidden, row), load(gradients, row), zero)
            store(of_constants, row, passed)
            store(of_terms, ahead + i, passed)
            store(of_terms, back + i, passed)


@inner
def _share(gate: Any) -> Any:
    """Return the logistic function of a vector."""
    one = splat(_ONE)
    return one / (one + exponential(splat(_ZERO) - gate))


@kernel
def mix(states: NDArray[np.float32], updates: NDArray[np.float32], width: int, mixed: NDArray[np.float32]) -> None:
    """Write ``states + share (values - states)`` row by row; the share is the logistic function of the gates.

    Args:
        states: [A * width].
        updates: [A * 2 * width], the values of a row and its gates.
        width: Numbers in a row of ``states``.
        mixed: [A * width], overwritten.
    """
    vectors = width // LANES
    for a in range(states.size // width):
        for i in range(vectors):
            state, value = load(states, a * vectors + i), load(updates, 2 * a * vectors + i)
            share = _share(load(updates, (2 * a + 1) * vectors + i))
            store(mixed, a * vectors + i, state + share * (value - state))


@kernel
def mix_gradients(
    states: NDArray[np.float32],
    updates: NDArray[np.float32],
    width: int,
    gradients: NDArray[np.float32],
    of_states: NDArray[np.float32],
    of_updates: NDArray[np.float32],
) -> None:
    """Write the gradients of the states and the updates of :func:`mix`.

    Args:
        states: As in :func:`mix`, as are ``updates`` and ``width``.
        updates: See there.
        width: See there.
        gradients: [A * width], the gradients of ``mixed``.
        of_states: [A * width], overwritten.
        of_updates: [A * 2 * width], overwritten.
    """
    vectors = width // LANES
    for a in range(states.size // width):
        for i in range(vectors):
            value, share = 2 * a * vectors + i, _share(load(updates, (2 * a + 1) * vectors + i))
            gradient = load(gradients, a * vectors + i)
            passed = share * gradient
            store(of_updates, value, passed)
            kept = gradient - passed
            store(of_states, a * vectors + i, kept)
            difference = load(updates, value) - load(states, a * vectors + i)
            store(of_updates, value + vectors, kept * share * difference)
