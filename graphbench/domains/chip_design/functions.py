"""Random Boolean functions: uniform bits, few ones, and arithmetic functions, in compiled code.

Every function has a separate random generator, seeded from (key, index, attempt).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, permutation, seed, uniform
from graphbench.domains.chip_design.aig_kernels import Ints, Words, words_per_output

FAMILIES = ("adder", "comparator", "multiplexer", "parity", "majority", "squarer", "cascade")
_ADDER, _COMPARATOR, _MULTIPLEXER, _PARITY, _MAJORITY, _SQUARER, _CASCADE = range(7)
_STREAM = 0
_TABLES = 12  # look-up tables of a cascade, at most
_ONE = np.uint64(1)


@kernel
def draw_uniform(key: np.uint64, indices: Ints, attempts: Ints, num_inputs: Ints, num_outputs: Ints) -> Words:
    """Return tables of uniform bits as words, function by function, output by output.

    Args:
        key: Key of the split.
        indices: int64 ``[S]``, positions in the split.
        attempts: int64 ``[S]``.
        num_inputs: int64 ``[S]``.
        num_outputs: int64 ``[S]``.
    """
    words = _room(num_inputs, num_outputs)
    at = 0
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], _STREAM)
        mask = _mask(num_inputs[s])
        for _ in range(num_outputs[s] * words_per_output(num_inputs[s])):
            words[at] = next_u64(state) & mask
            at += 1
    return words


@kernel
def draw_biased(
    key: np.uint64, indices: Ints, attempts: Ints, num_inputs: Ints, num_outputs: Ints, low: float, high: float
) -> Words:
    """Return tables whose bits are 1 with a probability that is drawn for every function from ``low`` to ``high``."""
    words = _room(num_inputs, num_outputs)
    first = 0
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], _STREAM)
        share = low + (high - low) * uniform(state)
        size = words_per_output(num_inputs[s])
        for _ in range(num_outputs[s]):
            for x in range(np.int64(1) << num_inputs[s]):
                if uniform(state) < share:
                    words[first + (x >> 6)] |= _ONE << np.uint64(x & 63)
            first += size
    return words


@kernel
def draw_arithmetic(
    key: np.uint64, indices: Ints, attempts: Ints, num_inputs: Ints, num_outputs: Ints, families: Ints
) -> tuple[Words, Ints]:
    """Return tables of arithmetic functions, and the family of each, by its place in :data:`FAMILIES`.

    A function is drawn from a family and has some of its outputs; then the inputs are permuted, and inputs and outputs
    inverted at random, so that a family holds many functions. Inputs that a family cannot use in pairs are a carry
    (adders, comparators) or further data (multiplexers).

    Args:
        key: Key of the split.
        indices: int64 ``[S]``, positions in the split.
        attempts: int64 ``[S]``.
        num_inputs: int64 ``[S]``, at least 3.
        num_outputs: int64 ``[S]``.
        families: int64, the families, in equal shares.
    """
    words = _room(num_inputs, num_outputs)
    chosen = np.empty(indices.shape[0], np.int64)
    first = 0
    for s in range(indices.shape[0]):
        n, m = num_inputs[s], num_outputs[s]
        state = seed(key, indices[s], attempts[s], _STREAM)
        family = families[below(state, families.shape[0])]
        chosen[s] = family
        order = permutation(state, n)
        flips = below(state, np.int64(1) << n)
        parts = _draw_parts(state, family, n, m)
        size = words_per_output(n)
        for j in range(m):
            flip = below(state, 2)
            for x in range(np.int64(1) << n):
                y = np.int64(0)
                for i in range(n):
                    y |= ((x ^ flips) >> order[i] & 1) << i
                if _value(family, n, y, parts, j) ^ flip:
                    words[first + (x >> 6)] |= _ONE << np.uint64(x & 63)
            first += size
    return words, chosen


@inner
def _room(num_inputs: Ints, num_outputs: Ints) -> Words:
    total = np.int64(0)
    for s in range(num_inputs.shape[0]):
        total += num_outputs[s] * words_per_output(num_inputs[s])
    return np.zeros(total, np.uint64)


@inner
def _mask(n: Any) -> np.uint64:
    if n >= 6:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (_ONE << np.uint64(np.int64(1) << n)) - _ONE


@inner
def select_bits(n: Any) -> np.int64:
    """Return the number of inputs by which a multiplexer of n inputs selects, s with ``s + 2^s <= n``."""
    bits = np.int64(1)
    while bits + 1 + (np.int64(1) << (bits + 1)) <= n:
        bits += 1
    return bits


@inner
def _draw_parts(state: NDArray[np.uint64], family: Any, n: Any, m: Any) -> NDArray[np.int64]:
    """Return the parts of a function of a family, int64 ``[max(m, 12), 4]``.

    Row j has, in its first column, the output of an adder, a comparator, a multiplexer or a squarer that is chosen for
    output j, or the set of inputs of a parity or a majority. Row k of a cascade has the three inputs of look-up table k
    and its eight bits; its outputs are the last look-up tables.
    """
    parts = np.zeros((max(m, _TABLES), 4), np.int64)
    if family == _CASCADE:
        for k in range(_TABLES):
            sources = permutation(state, n + k)
            parts[k, :3] = sources[:3]
            if k:  # the table before is an input: the tables form a chain
                parts[k, 0] = n + k - 1
                if sources[1] == n + k - 1 or sources[2] == n + k - 1:
                    parts[k, 1 if sources[1] == n + k - 1 else 2] = sources[0]
            parts[k, 3] = below(state, 256)
        return parts
    if family in (_PARITY, _MAJORITY):
        for j in range(m):
            size = 3 + below(state, n - 2)
            if family == _MAJORITY and size % 2 == 0:
                size -= 1
            for i in permutation(state, n)[:size]:
                parts[j, 0] |= np.int64(1) << i
        return parts
    half = n // 2
    if family == _ADDER:
        count = half + 1
    elif family == _COMPARATOR:
        count = np.int64(3)
    elif family == _MULTIPLEXER:
        count = n - select_bits(n)
    else:
        count = 2 * n - 2
    outputs = permutation(state, count)
    for j in range(m):
        parts[j, 0] = outputs[j % count]
    return parts


@inner
def _value(family: Any, n: Any, y: Any, parts: NDArray[np.int64], j: Any) -> np.int64:
    """Return output j of a function of a family at the assignment y."""
    half = n // 2
    a, b = y & ((np.int64(1) << half) - 1), (y >> half) & ((np.int64(1) << half) - 1)
    carry = y >> (2 * half)  # 0 if the number of inputs is even
    part = parts[j, 0]
    if family == _ADDER:
        return ((a + b + carry) >> part) & 1
    if family == _COMPARATOR:
        b += carry
        return np.int64((a < b and part == 0) or (a == b and part == 1) or (a > b and part == 2))
    if family == _MULTIPLEXER:
        bits = select_bits(n)
        return (y >> (bits + ((y & ((np.int64(1) << bits) - 1)) + part) % (n - bits))) & 1
    if family == _SQUARER:  # bit 1 of a square is 0, and bit 0 equals bit 0 of the number
        return (y * y >> (part + 2)) & 1
    if family == _CASCADE:
        return _cascade(n, y, parts, j)
    ones, size = np.int64(0), np.int64(0)
    for i in range(n):
        ones += (y & part) >> i & 1
        size += part >> i & 1
    return ones & 1 if family == _PARITY else np.int64(2 * ones > size)


@inner
def _cascade(n: Any, y: Any, parts: NDArray[np.int64], j: Any) -> np.int64:
    """Return the value of the last look-up table but j; there are half as many again as inputs, at most 12."""
    signals = np.int64(y)
    tables = min(np.int64(_TABLES), n + n // 2)
    for k in range(tables - j):
        index = (signals >> parts[k, 0] & 1) | (signals >> parts[k, 1] & 1) << 1 | (signals >> parts[k, 2] & 1) << 2
        signals |= (parts[k, 3] >> index & 1) << (n + k)
    return signals >> (n + tables - j - 1) & 1
