"""Structurally hashed circuits of truth tables, in compiled code.

The circuit of a function is its Shannon decomposition: f is ``x ? f1 : f0`` for its last input x, and the two cofactors
are decomposed in turn. Equal and complementary subfunctions, of all outputs, share their circuit, and so do equal ANDs:
the result is a binary decision diagram with complemented edges (Bryant 1986; Brace, Rudell and Bryant 1990) whose nodes
are multiplexers of three ANDs or fewer. It is built from the smallest cofactors up, so it has no dead ANDs.

ABC's ``strash`` makes another circuit of similar size, from the factored sum of minterms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphbench.core.kernels import inner, kernel
from graphbench.core.ragged import offsets
from graphbench.domains.chip_design.aig import Circuits
from graphbench.domains.chip_design.aig_kernels import Ints, Literals, Words, add_and, hash_slots, words_per_output


def circuits_of_tables(num_inputs: Ints, num_outputs: Ints, words: Words) -> Circuits:
    """Return a structurally hashed circuit of every truth table.

    Args:
        num_inputs: int64 ``[S]``.
        num_outputs: int64 ``[S]``.
        words: uint64, the tables as words: function by function, output by output.
    """
    and_ptr, fanins, outputs = _decompose(num_inputs, num_outputs, words)
    return Circuits(num_inputs, and_ptr, fanins, offsets(num_outputs), outputs)


@inner
def _multiplexer(
    x: Any, high: Any, low: Any, n: Any, count: Any, fanins: Literals, keys: Words, places: Ints
) -> tuple[np.int64, np.int64]:
    """Return the literal of ``x ? high : low``, whose low cofactor is made positive, and the new number of ANDs."""
    flip = low & 1
    high, low = high ^ flip, low ^ flip
    if high == low:
        return low ^ flip, count
    if low == 0:
        literal, count = add_and(x, high, n, count, fanins, keys, places)
        return literal ^ flip, count
    if high == 0:
        literal, count = add_and(x ^ 1, low, n, count, fanins, keys, places)
        return literal ^ flip, count
    if high == 1:
        literal, count = add_and(x ^ 1, low ^ 1, n, count, fanins, keys, places)
        return literal ^ 1 ^ flip, count
    left, count = add_and(x, high, n, count, fanins, keys, places)
    right, count = add_and(x ^ 1, low, n, count, fanins, keys, places)
    literal, count = add_and(left ^ 1, right ^ 1, n, count, fanins, keys, places)
    return literal ^ 1 ^ flip, count


@inner
def _decompose_one(
    n: Any, table: Words, outputs: Literals, fanins: Literals, keys: Words, places: Ints, literal: Ints
) -> np.int64:
    """Write the circuit of one table, and return its number of ANDs."""
    words = words_per_output(n)
    count = np.int64(0)
    for j in range(outputs.shape[0]):
        for x in range(np.int64(1) << n):  # cofactors by all inputs: the columns
            literal[x] = np.int64((table[j * words + (x >> 6)] >> np.uint64(x & 63)) & np.uint64(1))
        for i in range(n):
            for x in range(np.int64(1) << (n - 1 - i)):
                literal[x], count = _multiplexer(
                    np.int64(2 * (i + 1)), literal[2 * x + 1], literal[2 * x], n, count, fanins, keys, places
                )
        outputs[j] = literal[0]
    return count


@kernel
def _decompose(num_inputs: Ints, num_outputs: Ints, words: Words) -> tuple[Ints, Literals, Literals]:
    """Return ``and_ptr``, ``fanins`` and ``outputs`` of the circuits of all tables."""
    count = num_inputs.shape[0]
    and_ptr = np.zeros(count + 1, np.int64)
    outputs = np.empty(num_outputs.sum(), np.int32)
    most, largest = np.int64(1), np.int64(0)
    for s in range(count):
        most = max(most, 3 * num_outputs[s] * (np.int64(1) << num_inputs[s]))
        largest = max(largest, num_inputs[s])
    pairs = np.empty((most, 2), np.int32)
    slots = hash_slots(most)
    keys, places = np.zeros(slots, np.uint64), np.empty(slots, np.int64)
    literal = np.empty(np.int64(1) << largest, np.int64)
    fanins = np.empty((1024, 2), np.int32)
    word, output = np.int64(0), np.int64(0)
    for s in range(count):
        n, m = num_inputs[s], num_outputs[s]
        size = m * words_per_output(n)
        slots = hash_slots(3 * m * (np.int64(1) << n))
        table, roots = words[word : word + size], outputs[output : output + m]
        ands = _decompose_one(n, table, roots, pairs, keys[:slots], places, literal)
        keys[:slots] = 0
        first, last = and_ptr[s], and_ptr[s] + ands
        if last > fanins.shape[0]:
            larger = np.empty((2 * last, 2), np.int32)
            larger[:first] = fanins[:first]
            fanins = larger
        fanins[first:last] = pairs[:ands]
        and_ptr[s + 1] = last
        word += size
        output += m
    return and_ptr, fanins[: and_ptr[count]].copy(), outputs
