"""Compiled functions on and-inverter graphs that are stored flat.

:mod:`~graphbench.domains.chip_design.aig` has the conventions of literals and truth tables.

A *run* of circuits is five arrays: ``num_inputs`` int64 ``[S]``, ``and_ptr`` int64 ``[S + 1]``, ``fanins`` int32
``[A, 2]``, ``output_ptr`` int64 ``[S + 1]`` and ``outputs`` int32 ``[M]``; circuit ``i`` has the ANDs
``and_ptr[i]:and_ptr[i + 1]`` and the outputs ``output_ptr[i]:output_ptr[i + 1]``. Literals count within the circuit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

Ints = NDArray[np.int64]
Literals = NDArray[np.int32]
Words = NDArray[np.uint64]

_BLOCK = 32  # words of a truth table that are simulated at once, at most
_SPACE = 1 << 24  # words of working space; circuits of more nodes are simulated one word at a time
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)
_PATTERNS = np.array(
    [
        0xAAAAAAAAAAAAAAAA,
        0xCCCCCCCCCCCCCCCC,
        0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00,
        0xFFFF0000FFFF0000,
        0xFFFFFFFF00000000,
    ],
    np.uint64,
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S32 = np.uint64(32)


@inner
def words_per_output(n: Any) -> Any:
    """Return the number of 64-bit words of a truth table of n inputs."""
    return np.int64(1) << max(np.int64(n) - 6, np.int64(0))


@inner
def input_word(i: Any, word: Any) -> np.uint64:
    """Return one word of the truth table of input i."""
    if i < 6:
        return np.uint64(_PATTERNS[i])
    return _ONES if (word >> (i - 6)) & 1 else _NONE


@inner
def simulation_space(nodes: Any) -> Words:
    """Return working space for circuits of ``nodes`` nodes: at most 128 MiB, or one word per node."""
    block = max(np.int64(1), min(np.int64(_BLOCK), np.int64(_SPACE) // nodes))
    return np.empty((nodes, block), np.uint64)


@inner
def simulate_one(
    n: int, fanins: Literals, outputs: Literals, values: Words, table: Words
) -> None:  # one loop over blocks, inputs, ANDs and outputs
    """Write the truth table of one circuit.

    Args:
        n: Number of inputs.
        fanins: int32 ``[ands, 2]``.
        outputs: int32 ``[m]``.
        values: uint64, at least ``[1 + n + ands, 1]``: working space, which holds a block of words per node.
        table: uint64 ``[m * W]``, output by output.
    """
    words = words_per_output(n)
    mask = _ONES if n >= 6 else (np.uint64(1) << np.uint64(1 << n)) - np.uint64(1)
    block = values.shape[1]
    for first in range(0, words, block):
        count = min(block, words - first)
        for w in range(count):
            values[0, w] = _NONE
            for i in range(n):
                values[1 + i, w] = input_word(i, first + w)
        for k in range(fanins.shape[0]):
            a, b = fanins[k, 0], fanins[k, 1]
            flip_a = _ONES if a & 1 else _NONE
            flip_b = _ONES if b & 1 else _NONE
            for w in range(count):
                values[1 + n + k, w] = (values[a >> 1, w] ^ flip_a) & (values[b >> 1, w] ^ flip_b)
        for j in range(outputs.shape[0]):
            flip = _ONES if outputs[j] & 1 else _NONE
            for w in range(count):
                table[j * words + first + w] = (values[outputs[j] >> 1, w] ^ flip) & mask


@kernel
def simulate_run(num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals) -> Words:
    """Return the truth tables of a run of circuits, uint64: circuit by circuit, output by output."""
    total, nodes = np.int64(0), np.int64(1)
    for s in range(num_inputs.shape[0]):
        total += (output_ptr[s + 1] - output_ptr[s]) * words_per_output(num_inputs[s])
        nodes = max(nodes, 1 + num_inputs[s] + and_ptr[s + 1] - and_ptr[s])
    values = simulation_space(nodes)
    tables = np.empty(total, np.uint64)
    at = np.int64(0)
    for s in range(num_inputs.shape[0]):
        n, circuit_outputs = num_inputs[s], outputs[output_ptr[s] : output_ptr[s + 1]]
        size = circuit_outputs.shape[0] * words_per_output(n)
        simulate_one(n, fanins[and_ptr[s] : and_ptr[s + 1]], circuit_outputs, values, tables[at : at + size])
        at += size
    return tables


@kernel
def depths_run(num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals) -> Ints:
    """Return the depth of every circuit of a run, int64 ``[S]``: the most ANDs on a path to an output."""
    most = np.int64(0)
    for s in range(num_inputs.shape[0]):
        most = max(most, 1 + num_inputs[s] + and_ptr[s + 1] - and_ptr[s])
    level = np.zeros(most, np.int64)
    depths = np.zeros(num_inputs.shape[0], np.int64)
    for s in range(num_inputs.shape[0]):
        n, first = num_inputs[s], and_ptr[s]
        level[: 1 + n] = 0
        for k in range(and_ptr[s + 1] - first):
            level[1 + n + k] = 1 + max(level[fanins[first + k, 0] >> 1], level[fanins[first + k, 1] >> 1])
        for o in range(output_ptr[s], output_ptr[s + 1]):
            depths[s] = max(depths[s], level[outputs[o] >> 1])
    return depths


@kernel
def first_wrong_circuit(num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals) -> int:
    """Return the first circuit of a run with an invalid literal; -1 if there is none.

    A literal is invalid if its variable does not exist or, for a fan-in, does not come before the AND. The offsets must
    be valid.
    """
    for s in range(num_inputs.shape[0]):
        limit = 2 * (1 + num_inputs[s] + and_ptr[s + 1] - and_ptr[s])
        if first_wrong_and(num_inputs[s], fanins[and_ptr[s] : and_ptr[s + 1]]) >= 0:
            return s
        for o in range(output_ptr[s], output_ptr[s + 1]):
            if outputs[o] < 0 or outputs[o] >= limit:
                return s
    return -1


@kernel
def first_wrong_and(n: int, fanins: Literals) -> int:
    """Return the first AND with a fan-in that is no literal of a lower variable; -1 if there is none."""
    for k in range(fanins.shape[0]):
        for side in range(2):
            if fanins[k, side] < 0 or fanins[k, side] >= 2 * (1 + n + k):
                return k
    return -1


@inner
def hash_slots(most: Any) -> int:
    """Return the size of a hash table for some number of ANDs, a power of two."""
    size = 16
    while size < 2 * most:
        size *= 2
    return size


@inner
def add_and(
    a: Any, b: Any, n: Any, count: Any, fanins: Literals, keys: Words, places: Ints
) -> tuple[np.int64, np.int64]:
    """Return the literal of ``a & b`` in a structurally hashed circuit, and the new number of its ANDs.

    Args:
        a: A literal.
        b: A literal.
        n: Number of inputs.
        count: Number of ANDs so far.
        fanins: int32, at least ``[count + 1, 2]``; an AND that is added has its larger fan-in first, as in AIGER files.
        keys: uint64, a power of two long: pairs of fan-ins by hash, 0 for free entries.
        places: int64, of the same length: the literals of these pairs.
    """
    low, high = min(np.int64(a), np.int64(b)), max(np.int64(a), np.int64(b))
    if low == 0 or (low ^ 1) == high:
        return np.int64(0), count
    if low == 1 or low == high:
        return high, count
    key = (np.uint64(low) << _S32) | np.uint64(high)
    mask = np.int64(keys.shape[0] - 1)
    slot = np.int64((key * _GOLDEN) >> _S32) & mask
    while keys[slot] != _NONE:
        if keys[slot] == key:
            return places[slot], count
        slot = (slot + 1) & mask
    fanins[count, 0], fanins[count, 1] = high, low
    keys[slot] = key
    places[slot] = 2 * (1 + n + count)
    return places[slot], count + 1


@kernel
def hashed_one(n: int, fanins: Literals, outputs: Literals) -> tuple[Literals, Literals, int, int]:
    """Hash a circuit structurally and remove ANDs that no output needs.

    Returns:
        The fan-ins and outputs of the new circuit, the number of ANDs of the old one that no output needs, and the
        number of ANDs that hashing maps to a constant, a literal or a preceding AND.
    """
    ands = fanins.shape[0]
    literal = np.empty(1 + n + ands, np.int64)
    literal[: 1 + n] = 2 * np.arange(1 + n)
    hashed = np.empty((ands, 2), np.int32)
    slots = hash_slots(ands)
    keys, places = np.zeros(slots, np.uint64), np.empty(slots, np.int64)
    count = np.int64(0)
    duplicates = 0
    for k in range(ands):
        a = literal[fanins[k, 0] >> 1] ^ (fanins[k, 0] & 1)
        b = literal[fanins[k, 1] >> 1] ^ (fanins[k, 1] & 1)
        before = count
        literal[1 + n + k], count = add_and(a, b, n, count, hashed, keys, places)
        duplicates += count == before
    roots = np.empty(outputs.shape[0], np.int32)
    for j in range(outputs.shape[0]):
        roots[j] = literal[outputs[j] >> 1] ^ (outputs[j] & 1)
    kept, roots = _without_dead(n, hashed[:count], roots)
    used = _needed(n, fanins, outputs)
    return kept, roots, ands - used.sum(), duplicates


@inner
def _needed(n: int, fanins: Literals, outputs: Literals) -> NDArray[np.bool_]:
    """Return which ANDs an output needs, bool ``[ands]``."""
    used = np.zeros(1 + n + fanins.shape[0], np.bool_)
    for j in range(outputs.shape[0]):
        used[outputs[j] >> 1] = True
    for k in range(fanins.shape[0] - 1, -1, -1):
        if used[1 + n + k]:
            used[fanins[k, 0] >> 1] = True
            used[fanins[k, 1] >> 1] = True
    return used[1 + n :]


@inner
def _without_dead(n: int, fanins: Literals, outputs: Literals) -> tuple[Literals, Literals]:
    used = _needed(n, fanins, outputs)
    variable = np.empty(1 + n + fanins.shape[0], np.int32)
    variable[: 1 + n] = np.arange(1 + n)
    kept = np.empty((used.sum(), 2), np.int32)
    count = 0
    for k in range(fanins.shape[0]):
        if used[k]:
            for side in range(2):
                kept[count, side] = 2 * variable[fanins[k, side] >> 1] + (fanins[k, side] & 1)
            variable[1 + n + k] = 1 + n + count
            count += 1
    roots = np.empty(outputs.shape[0], np.int32)
    for j in range(outputs.shape[0]):
        roots[j] = 2 * variable[outputs[j] >> 1] + (outputs[j] & 1)
    return kept, roots
