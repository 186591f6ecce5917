"""Messages between all pairs of nodes, compiled for the CPU: two layers and the maximum over senders in one pass.

The vectors of a receiver's messages stay in the cache: only the values of the hidden layer are kept, for the backward
pass. There, most messages have no gradient, and a message has a gradient in a few channels alone: the outer layer
passes on one row per channel of a receiver, and only messages that are a maximum somewhere reach the inner layer.

All arrays are contiguous and have one dimension; ``width`` numbers in a row, a multiple of ``LANES``. A matrix of
weights whose rows are read together comes as panels, [columns / LANES, rows, LANES], see :func:`panels_of`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, spread, store, total, where_less

_ZERO, _LOWEST = np.float32(0.0), np.float32(-np.inf)


@inner
def panels_of(weight: NDArray[np.float32], rows: int, width: int, panels: NDArray[np.float32]) -> None:
    """Write a matrix [rows * width] as panels of ``LANES`` columns, whose rows are neighbours in memory."""
    vectors = width // LANES
    for row in range(rows):
        for i in range(vectors):
            store(panels, i * rows + row, load(weight, row * vectors + i))


@inner
def _multiply(
    left: NDArray[np.float32],
    rows: int,
    panels: NDArray[np.float32],
    bias: NDArray[np.float32],
    width: int,
    positive: bool,
    out: NDArray[np.float32],
    first: int,
) -> None:
    """Write ``left @ weights + bias`` to rows ``first``, ``first + 1``, ... of ``out``; ``positive``: its ReLU."""
    vectors, zero = width // LANES, splat(_ZERO)
    for i in range(vectors):
        begin, start = i * width, load(bias, i)
        for row in range(0, rows, 4):
            at0, at1 = row, min(row + 1, rows - 1)
            at2, at3 = min(row + 2, rows - 1), min(row + 3, rows - 1)
            in0, in1, in2, in3 = at0 * width, at1 * width, at2 * width, at3 * width
            sum0 = sum1 = sum2 = sum3 = start
            for k in range(width):
                weights = load(panels, begin + k)
                sum0 = sum0 + spread(left, in0 + k) * weights
                sum1 = sum1 + spread(left, in1 + k) * weights
                sum2 = sum2 + spread(left, in2 + k) * weights
                sum3 = sum3 + spread(left, in3 + k) * weights
            if positive:
                sum0, sum1 = where_less(zero, sum0, sum0, zero), where_less(zero, sum1, sum1, zero)
                sum2, sum3 = where_less(zero, sum2, sum2, zero), where_less(zero, sum3, sum3, zero)
            store(out, (first + at0) * vectors + i, sum0)
            store(out, (first + at1) * vectors + i, sum1)
            store(out, (first + at2) * vectors + i, sum2)
            store(out, (first + at3) * vectors + i, sum3)


@inner
def _add_products(
    left: NDArray[np.float32], right: NDArray[np.float32], rows: int, width: int, out: NDArray[np.float32]
) -> None:
    """Add ``left.T @ right`` to ``out`` [width * width]; both factors have ``rows`` rows of ``width`` numbers."""
    vectors = width // LANES
    for o in range(0, width, 4):
        for i in range(vectors):
            at = o * vectors + i
            sum0, sum1 = load(out, at), load(out, at + vectors)
            sum2, sum3 = load(out, at + 2 * vectors), load(out, at + 3 * vectors)
            for row in range(rows):
                value, factor = load(right, row * vectors + i), row * width + o
                sum0 = sum0 + spread(left, factor) * value
                sum1 = sum1 + spread(left, factor + 1) * value
                sum2 = sum2 + spread(left, factor + 2) * value
                sum3 = sum3 + spread(left, factor + 3) * value
            store(out, at, sum0)
            store(out, at + vectors, sum1)
            store(out, at + 2 * vectors, sum2)
            store(out, at + 3 * vectors, sum3)


@inner
def _neighbours(present: NDArray[np.bool_], graph: int, receiver: int, nodes: int, senders: NDArray[np.int64]) -> int:
    """Write the nodes that send to a receiver, and return their number; all nodes if ``present`` is empty."""
    count = 0
    for sender in range(nodes):
        if not present.size or present[(graph * nodes + sender) * nodes + receiver]:
            senders[count] = sender
            count += 1
    return count


@inner
def _fill_sum(
    columns: NDArray[np.float32],
    pair: int,
    weights: NDArray[np.float32],
    sent: NDArray[np.float32],
    sender: int,
    taken: NDArray[np.float32],
    receiver: int,
    width: int,
    sums: NDArray[np.float32],
    row: int,
) -> None:
    """Write the ReLU of the sum of a pair's linear map and the vectors of its nodes to a row of ``sums``."""
    vectors, zero = width // LANES, splat(_ZERO)
    count = weights.size // width
    for i in range(vectors):
        value = load(sent, sender * vectors + i) + load(taken, receiver * vectors + i)
        for f in range(count):
            value = value + spread(columns, pair * count + f) * load(weights, f * vectors + i)
        store(sums, row * vectors + i, where_less(zero, value, value, zero))


@kernel
def receive(
    columns: NDArray[np.float32],
    weights: NDArray[np.float32],
    sent: NDArray[np.float32],
    taken: NDArray[np.float32],
    inner_weight: NDArray[np.float32],
    inner_bias: NDArray[np.float32],
    outer_weight: NDArray[np.float32],
    outer_bias: NDArray[np.float32],
    present: NDArray[np.bool_],
    nodes: int,
    width: int,
    maxima: NDArray[np.float32],
    positions: NDArray[np.int16],
    hidden: NDArray[np.float32],
) -> None:
    """Write the maximum of each receiver's messages.

    The message from u to v is ``outer(relu(inner(relu(columns[u, v] @ weights + sent[u] + taken[v]))))``.

    Args:
        columns: [B * n * n * F].
        weights: [F * width].
        sent: [B * n * width].
        taken: [B * n * width].
        inner_weight: [width * width], inputs by outputs, as is ``outer_weight``.
        inner_bias: [width], as is ``outer_bias``.
        outer_weight: See ``inner_weight``.
        outer_bias: See ``inner_bias``.
        present: [B * n * n], whether u sends to v; empty if every node sends to every node.
        nodes: n, at most 32767.
        width: Numbers in a row.
        maxima: [B * n * width], overwritten; the lowest value where nothing is received.
        positions: [B * n * width], overwritten: the position of the first maximum among the receiver's senders. Empty
            without a backward pass.
        hidden: [messages * width], overwritten: the hidden layer, receiver after receiver. Empty without a backward
            pass.
    """
    vectors, lowest = width // LANES, splat(_LOWEST)
    inner_panels, outer_panels = empty_vectors(width * vectors), empty_vectors(width * vectors)
    panels_of(inner_weight, width, width, inner_panels)
    panels_of(outer_weight, width, width, outer_panels)
    sums, tile = empty_vectors(nodes * vectors), empty_vectors(nodes * vectors)
    senders, places, kept = np.empty(nodes, np.int64), empty_vectors(vectors), positions.size > 0
    first = 0
    for receiver in range(sent.size // width):
        graph = receiver // nodes
        count = _neighbours(present, graph, receiver % nodes, nodes, senders)
        for row in range(count):
            sender = graph * nodes + senders[row]
            pair = sender * nodes + receiver % nodes
            _fill_sum(columns, pair, weights, sent, sender, taken, receiver, width, sums, row)
        if kept:
            _multiply(sums, count, inner_panels, inner_bias, width, True, hidden, first)
            for k in range(count * vectors):
                store(tile, k, load(hidden, first * vectors + k))
        else:
            _multiply(sums, count, inner_panels, inner_bias, width, True, tile, 0)
        _multiply(tile, count, outer_panels, outer_bias, width, False, sums, 0)
        for i in range(vectors):
            best, place = lowest, splat(_ZERO)
            for row in range(count):
                value = load(sums, row * vectors + i)
                place = where_less(best, value, splat(np.float32(row)), place)
                best = where_less(best, value, value, best)
            store(maxima, receiver * vectors + i, best)
            store(places, i, place)
        if kept:
            for i in range(width):
                positions[receiver * width + i] = np.int16(places[i // LANES, i % LANES])
        first += count


@kernel
def receive_gradients(
    columns: NDArray[np.float32],
    weights: NDArray[np.float32],
    sent: NDArray[np.float32],
    taken: NDArray[np.float32],
    inner_weight: NDArray[np.float32],
    outer_weight: NDArray[np.float32],
    present: NDArray[np.bool_],
    nodes: int,
    width: int,
    positions: NDArray[np.int16],
    hidden: NDArray[np.float32],
    gradients: NDArray[np.float32],
    of_columns: NDArray[np.float32],
    of_weights: NDArray[np.float32],
    of_sent: NDArray[np.float32],
    of_taken: NDArray[np.float32],
    of_inner: NDArray[np.float32],
    of_inner_bias: NDArray[np.float32],
    of_outer: NDArray[np.float32],
    of_outer_bias: NDArray[np.float32],
) -> None:
    """Add the gradients of :func:`receive`, of the arguments with the same names.

    Args:
        columns: As in :func:`receive`, as are all arguments that are not explained here.
        weights: See there.
        sent: See there.
        taken: See there.
        inner_weight: [width * width], outputs by inputs, as is ``outer_weight``: the transposed arrays of
            :func:`receive`.
        outer_weight: See ``inner_weight``.
        present: See there.
        nodes: See there.
        width: See there.
        positions: See there.
        hidden: See there.
        gradients: [B * n * width], the gradients of ``maxima``.
        of_columns: [B * n * n * F], changed, like all that follow; empty if the columns need no gradient.
        of_weights: [F * width].
        of_sent: [B * n * width].
        of_taken: [B * n * width].
        of_inner: [width * width], outputs by inputs, as is ``of_outer``.
        of_inner_bias: [width].
        of_outer: [width * width].
        of_outer_bias: [width].
    """
    vectors, zero = width // LANES, splat(_ZERO)
    panels, nothing = empty_vectors(width * vectors), empty_vectors(vectors)
    panels_of(inner_weight, width, width, panels)
    for i in range(vectors):
        store(nothing, i, zero)
    sums, passed = empty_vectors(nodes * vectors), empty_vectors(nodes * vectors)
    back = empty_vectors(nodes * vectors)
    senders, rows, winners = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    first = 0
    for receiver in range(sent.size // width):
        graph = receiver // nodes
        count = _neighbours(present, graph, receiver % nodes, nodes, senders)
        rows[:count] = -1
        best = 0
        for channel in range(width):
            gradient = gradients[receiver * width + channel]
            if not count or gradient == _ZERO:
                continue
            place = positions[receiver * width + channel]
            row = rows[place]
            if row < 0:
                rows[place] = row = best
                winners[best] = place
                best += 1
                for i in range(vectors):
                    store(passed, row * vectors + i, zero)
            _pass_through(gradient, outer_weight, hidden, channel, first + place, vectors, passed, row, of_outer)
            of_outer_bias[channel] += gradient
        for row in range(best):
            sender = graph * nodes + senders[winners[row]]
            pair, begin = sender * nodes + receiver % nodes, (first + winners[row]) * vectors
            _fill_sum(columns, pair, weights, sent, sender, taken, receiver, width, sums, row)
            for i in range(vectors):
                value = where_less(zero, load(hidden, begin + i), load(passed, row * vectors + i), zero)
                store(passed, row * vectors + i, value)
                store(of_inner_bias, i, load(of_inner_bias, i) + value)
        _add_products(passed, sums, best, width, of_inner)
        _multiply(passed, best, panels, nothing, width, False, back, 0)
        for row in range(best):
            sender = graph * nodes + senders[winners[row]]
            pair = sender * nodes + receiver % nodes
            for i in range(vectors):
                at = row * vectors + i
                value = where_less(zero, load(sums, at), load(back, at), zero)
                store(back, at, value)
                store(of_sent, sender * vectors + i, load(of_sent, sender * vectors + i) + value)
                store(of_taken, receiver * vectors + i, load(of_taken, receiver * vectors + i) + value)
            add_column_gradients(columns, pair, weights, back, row, width, of_columns, of_weights)
        first += count


@inner
def _pass_through(
    gradient: np.float32,
    weight: NDArray[np.float32],
    hidden: NDArray[np.float32],
    channel: int,
    message: int,
    vectors: int,
    passed: NDArray[np.float32],
    row: int,
    of_weight: NDArray[np.float32],
) -> None:
    """Add the gradient of one channel of a message to a row of ``passed``, and to a row of the weight's gradient."""
    factor = splat(gradient)
    for i in range(vectors):
        at, weighed = row * vectors + i, channel * vectors + i
        store(passed, at, load(passed, at) + factor * load(weight, weighed))
        store(of_weight, weighed, load(of_weight, weighed) + factor * load(hidden, message * vectors + i))


@inner
def add_column_gradients(
    columns: NDArray[np.float32],
    pair: int,
    weights: NDArray[np.float32],
    gradients: NDArray[np.float32],
    row: int,
    width: int,
    of_columns: NDArray[np.float32],
    of_weights: NDArray[np.float32],
) -> None:
    """Add the gradients of a pair's columns and of their weights; ``gradients`` holds the one of their product."""
    vectors = width // LANES
    count = weights.size // width
    for f in range(count):
        factor, summed = spread(columns, pair * count + f), splat(_ZERO)
        for i in range(vectors):
            value, weight = load(gradients, row * vectors + i), f * vectors + i
            summed = summed + value * load(weights, weight)
            store(of_weights, weight, load(of_weights, weight) + factor * value)
        if of_columns.size:
            of_columns[pair * count + f] += total(summed)
