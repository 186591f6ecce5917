"""The step of an LSTM cell with layer normalisations, compiled for the CPU: one pass over the items, forward and back.

All arrays are contiguous and have one dimension; rows have ``width`` numbers, a multiple of ``LANES``. The gates of an
item are four rows: enter, candidate, keep and leave. The backward pass computes the gates again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, exponential, load, splat, store, total, where_less

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_EPSILON = np.float32(1e-5)  # of torch's layer normalisation
_ENTER, _CANDIDATE, _KEEP, _LEAVE, _CELL = range(5)  # rows of an item in the scratch arrays
_SHARE = 1024  # items whose gradients of parameters are added in float32


@inner
def _sigmoid(x: Any) -> Any:
    one = splat(_ONE)
    return one / (one + exponential(splat(_ZERO) - x))


@inner
def _normalise(
    rows: NDArray[np.float32],
    first: int,
    count: int,
    vectors: int,
    hats: NDArray[np.float32],
    row: int,
    rates: NDArray[np.float32],
) -> None:
    """Write ``count`` rows, each with mean 0 and variance 1, to rows of ``hats``, and their factors to ``rates``.

    The rows go through each of three steps together, because a row alone waits for its sums.
    """
    width = np.float32(vectors * LANES)
    for r in range(count):
        sum_ = splat(_ZERO)
        for i in range(first + r * vectors, first + (r + 1) * vectors):
            sum_ = sum_ + load(rows, i)
        rates[row + r] = total(sum_) / width
    for r in range(count):
        mean, squares = splat(rates[row + r]), splat(_ZERO)
        for i in range(vectors):
            difference = load(rows, first + r * vectors + i) - mean
            squares = squares + difference * difference
            store(hats, (row + r) * vectors + i, difference)
        rates[row + r] = _ONE / np.sqrt(total(squares) / width + _EPSILON)
    for r in range(row, row + count):
        rate = splat(rates[r])
        for i in range(r * vectors, (r + 1) * vectors):
            store(hats, i, load(hats, i) * rate)


@inner
def _fill_gates(
    raw: NDArray[np.float32],
    cells: NDArray[np.float32],
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
    item: int,
    vectors: int,
    hats: NDArray[np.float32],
    gates: NDArray[np.float32],
    rates: NDArray[np.float32],
) -> None:
    """Compute an item up to the normalised sum of its cell and candidate.

    ``hats`` [5 * vectors, LANES] receives the normalised gates and sum, ``gates`` [4 * vectors, LANES] the gates behind
    their activations, and ``rates`` [5] the factors of the normalisations.
    """
    zero, one = splat(_ZERO), splat(_ONE)
    _normalise(raw, item * 4 * vectors, 4, vectors, hats, 0, rates)
    for gate in range(4):
        for i in range(gate * vectors, (gate + 1) * vectors):
            x = load(hats, i) * load(scale, i) + load(shift, i)
            if gate == _CANDIDATE:
                store(gates, i, where_less(zero, x, x, zero))
            elif gate == _KEEP:
                store(gates, i, _sigmoid(x + one))
            else:
                store(gates, i, _sigmoid(x))
    for i in range(vectors):
        entered = load(gates, _ENTER * vectors + i) * load(gates, _CANDIDATE * vectors + i)
        kept = load(gates, _KEEP * vectors + i) * load(cells, item * vectors + i)
        store(hats, _CELL * vectors + i, kept + entered)
    _normalise(hats, _CELL * vectors, 1, vectors, hats, _CELL, rates)


@kernel
def step(
    raw: NDArray[np.float32],
    cells: NDArray[np.float32],
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    states: NDArray[np.float32],
    updated: NDArray[np.float32],
) -> None:
    """Write the new states and cells.

    Args:
        raw: [N * 4 * width], the gates before their normalisations.
        cells: [N * width].
        scale: [4 * width], of the normalised gates.
        shift: [4 * width], added to them.
        weight: [width], of the normalised cell.
        bias: [width], added to it.
        states: [N * width], overwritten.
        updated: [N * width], the new cells, overwritten.
    """
    vectors, zero = weight.size // LANES, splat(_ZERO)
    hats, gates, rates = empty_vectors(5 * vectors), empty_vectors(4 * vectors), np.empty(5, np.float32)
    for item in range(cells.size // weight.size):
        _fill_gates(raw, cells, scale, shift, item, vectors, hats, gates, rates)
        for i in range(vectors):
            cell = load(hats, _CELL * vectors + i) * load(weight, i) + load(bias, i)
            store(updated, item * vectors + i, cell)
            store(states, item * vectors + i, where_less(zero, cell, cell, zero) * load(gates, _LEAVE * vectors + i))


@inner
def _pass_normalisations(
    slopes: NDArray[np.float32],
    hats: NDArray[np.float32],
    row: int,
    count: int,
    vectors: int,
    rates: NDArray[np.float32],
    sums: NDArray[np.float32],
    out: NDArray[np.float32],
    first: int,
) -> None:
    """Write the gradients of the numbers behind ``count`` rows of ``hats`` to ``out``, given those of the rows.

    ``slopes`` has the gradients of the rows, and ``sums`` [2, 5] is scratch space.
    """
    width = np.float32(vectors * LANES)
    for r in range(count):
        sum_, product = splat(_ZERO), splat(_ZERO)
        for i in range((row + r) * vectors, (row + r + 1) * vectors):
            sum_ = sum_ + load(slopes, i)
            product = product + load(slopes, i) * load(hats, i)
        sums[0, r], sums[1, r] = total(sum_) / width, total(product) / width
    for r in range(count):
        mean, share, rate = splat(sums[0, r]), splat(sums[1, r]), splat(rates[row + r])
        for i in range(vectors):
            at = (row + r) * vectors + i
            value = rate * (load(slopes, at) - mean - load(hats, at) * share)
            store(out, first + r * vectors + i, value)


@inner
def _flush(part: NDArray[np.float32], sums: NDArray[np.float64]) -> None:
    """Add the numbers of ``part`` to ``sums`` and set them to 0."""
    numbers = part.reshape(part.size)
    for i in range(numbers.size):
        sums[i] += numbers[i]
        numbers[i] = _ZERO


@kernel
def step_gradients(
    raw: NDArray[np.float32],
    cells: NDArray[np.float32],
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    of_states: NDArray[np.float32],
    of_updated: NDArray[np.float32],
    of_raw: NDArray[np.float32],
    of_cells: NDArray[np.float32],
    of_parameters: NDArray[np.float64],
) -> None:
    """Write the gradients of :func:`step`.

    Args:
        raw: As in :func:`step`, as are the arguments up to ``bias``.
        cells: See there.
        scale: See there.
        shift: See there.
        weight: See there.
        bias: See there.
        of_states: [N * width], the gradients of ``states``.
        of_updated: [N * width], the gradients of ``updated``.
        of_raw: [N * 4 * width], overwritten.
        of_cells: [N * width], overwritten.
        of_parameters: [10 * width], changed: the gradients of scale, weight, shift and bias are added.
    """
    vectors, zero, one = weight.size // LANES, splat(_ZERO), splat(_ONE)
    hats, gates, rates = empty_vectors(5 * vectors), empty_vectors(4 * vectors), np.empty(5, np.float32)
    slopes, part = empty_vectors(5 * vectors), empty_vectors(10 * vectors)
    part[:] = _ZERO
    sums = np.empty((2, 5), np.float32)
    for item in range(cells.size // weight.size):
        _fill_gates(raw, cells, scale, shift, item, vectors, hats, gates, rates)
        for i in range(vectors):
            hat, leave = load(hats, _CELL * vectors + i), load(gates, _LEAVE * vectors + i)
            cell, of_state = hat * load(weight, i) + load(bias, i), load(of_states, item * vectors + i)
            slope = load(of_updated, item * vectors + i) + where_less(zero, cell, of_state * leave, zero)
            state = where_less(zero, cell, cell, zero)
            store(slopes, _LEAVE * vectors + i, of_state * state * leave * (one - leave))
            store(part, _CELL * vectors + i, load(part, _CELL * vectors + i) + slope * hat)
            store(part, 9 * vectors + i, load(part, 9 * vectors + i) + slope)
            store(slopes, _CELL * vectors + i, slope * load(weight, i))
        _pass_normalisations(slopes, hats, _CELL, 1, vectors, rates, sums, slopes, _CELL * vectors)
        for i in range(vectors):
            slope, keep = load(slopes, _CELL * vectors + i), load(gates, _KEEP * vectors + i)
            enter, candidate = load(gates, _ENTER * vectors + i), load(gates, _CANDIDATE * vectors + i)
            store(of_cells, item * vectors + i, slope * keep)
            store(slopes, _ENTER * vectors + i, slope * candidate * enter * (one - enter))
            store(slopes, _CANDIDATE * vectors + i, where_less(zero, candidate, slope * enter, zero))
            store(slopes, _KEEP * vectors + i, slope * load(cells, item * vectors + i) * keep * (one - keep))
        for i in range(4 * vectors):
            slope = load(slopes, i)
            store(part, i, load(part, i) + slope * load(hats, i))
            store(part, 5 * vectors + i, load(part, 5 * vectors + i) + slope)
            store(slopes, i, slope * load(scale, i))
        _pass_normalisations(slopes, hats, 0, 4, vectors, rates, sums, of_raw, item * 4 * vectors)
        if item % _SHARE == _SHARE - 1:
            _flush(part, of_parameters)
    _flush(part, of_parameters)
