"""Circuits built from the top down, one choice at a time, compiled (:mod:`~.construction`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.chip_design.aig_kernels import Ints, Literals, Words, input_word
from graphbench.domains.chip_design.divisors import (
    NOTHING,
    find_chain,
    find_literal,
    find_multiplexer,
    find_one,
    find_two_pairs,
    literal_word,
)

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)
DEPTH = 66
FULL, HALF, WHOLE = range(3)
F, CARE = range(2)
SELECTOR, PHASE, FIRST = range(3)
VARIABLES, HEIGHT, BLOCK, BLOCKS, WORDS, INPUTS, SPLITS, EFFORT = range(8)


def _log_binomials() -> NDArray[np.float64]:
    table = np.zeros((65, 65))
    logs = np.concatenate(([0.0], np.cumsum(np.log2(np.arange(1, 65)))))
    for n in range(65):
        for k in range(n + 1):
            table[n, k] = logs[n] - logs[k] - logs[n - k]
    return table


_BITS = _log_binomials()


@inner
def ones_of(x: Any) -> np.int64:
    """Return the number of ones of a word."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def add_gate(a: Any, b: Any, tables: Words, fanins: Literals, state: Ints) -> np.int64:
    """Return the literal of ``a & b``: that of a variable with this truth table or its complement, if there is one."""
    count, words = state[VARIABLES], state[WORDS]
    flip_a = _ONES if a & 1 else _NONE
    flip_b = _ONES if b & 1 else _NONE
    u, v = a >> 1, b >> 1
    mask = column_mask(state[INPUTS])
    for w in range(words):
        tables[w, count] = (tables[w, u] ^ flip_a) & (tables[w, v] ^ flip_b) & mask
    for k in range(count):
        first = tables[0, k] ^ tables[0, count]
        if first != _NONE and first != mask:
            continue
        same = True
        for w in range(1, words):
            if tables[w, k] ^ tables[w, count] != first:
                same = False
                break
        if same:
            return np.int64(2 * k + (1 if first == mask else 0))
    fanins[count, 0], fanins[count, 1] = max(a, b), min(a, b)
    state[VARIABLES] = count + 1
    return np.int64(2 * count)


@inner
def column_mask(n: Any) -> np.uint64:
    """Return the bits of a word that a truth table of n inputs uses."""
    return _ONES if n >= 6 else (np.uint64(1) << np.uint64(1 << n)) - np.uint64(1)


@inner
def add_mux(s: Any, a: Any, b: Any, tables: Words, fanins: Literals, state: Ints) -> np.int64:
    """Return the literal of ``s ? a : b``."""
    if a == b:
        return np.int64(a)
    left = add_gate(s, a, tables, fanins, state)
    right = add_gate(s ^ 1, b, tables, fanins, state)
    return add_gate(left ^ 1, right ^ 1, tables, fanins, state) ^ 1


@inner
def express(
    f: Any, care: Any, column: Words, most: Any, tables: Words, fanins: Literals, state: Ints, space: Any, pairs: Any
) -> np.int64:
    count = state[VARIABLES]
    found = find_literal(f, care, column, count)
    if found != NOTHING or most == 0:
        return found
    chain = np.empty((3, 3), np.int64)
    kind = find_one(f, care, column, count, space[0], chain[0])
    if kind != NOTHING:
        return add_gate(chain[0, 0], chain[0, 1], tables, fanins, state) ^ kind
    for length in range(2, most + 1):
        if find_chain(f, care, column, count, length, space, chain):
            literal = add_gate(chain[0, 0], chain[0, 1], tables, fanins, state) ^ chain[0, 2]
            for k in range(1, length):
                literal = add_gate(chain[k, 0], literal, tables, fanins, state) ^ chain[k, 2]
            return literal
    if most >= 3:
        four = np.empty(4, np.int64)
        if find_multiplexer(f, care, column, count, four):
            return add_mux(four[0], four[1], four[2], tables, fanins, state)
        if pairs.shape[0] > 0:
            kind = find_two_pairs(f, care, column, count, pairs.shape[0], pairs, four)
            if kind != NOTHING:
                left = add_gate(four[0] ^ 1, four[1] ^ 1, tables, fanins, state) ^ 1
                right = add_gate(four[2] ^ 1, four[3] ^ 1, tables, fanins, state) ^ 1
                return add_gate(left, right, tables, fanins, state) ^ kind
    return np.int64(NOTHING)


@inner
def estimate(f: Any, care: Any, column: Words, count: Any) -> float:
    size = ones_of(care)
    ones = ones_of(f & care)
    if ones == 0 or ones == size:
        return 0.0
    if find_literal(f, care, column, count) != NOTHING:
        return 0.0
    return 1.0 + _BITS[size, ones] / 6.0


@inner
def start_one(n: Any, m: Any, table: Words, tables: Words, state: Ints) -> None:
    """Begin a circuit."""
    words = np.int64(1) << max(n - 6, 0)
    state[:] = 0
    state[VARIABLES] = n + 1
    state[BLOCKS] = m * words
    state[WORDS] = words
    state[INPUTS] = n
    mask = column_mask(n)
    for w in range(words):
        tables[w, 0] = _NONE
        for i in range(n):
            tables[w, 1 + i] = input_word(i, w) & mask


@inner
def advance(
    table: Words, tables: Words, fanins: Literals, state: Ints, goals: Words, frames: Ints, results: Ints, space: Any, pairs: Any
) -> bool:
    """Build on until a selector has to be chosen, and return whether one has."""
    words = state[WORDS]
    done = np.int64(NOTHING)
    while True:
        if state[HEIGHT] == 0:
            if done != NOTHING:
                results[state[BLOCK]] = done
                state[BLOCK] += 1
                done = np.int64(NOTHING)
            if state[BLOCK] == state[BLOCKS]:
                return False
            frames[0, :] = 0
            goals[0, F], goals[0, CARE] = table[state[BLOCK]], column_mask(state[INPUTS])
            state[HEIGHT] = 1
        top = state[HEIGHT] - 1
        f, care = goals[top, F], goals[top, CARE]
        column = tables[state[BLOCK] % words]
        if frames[top, PHASE] == FULL and done == NOTHING:
            done = express(f, care, column, 3, tables, fanins, state, space, pairs)
            if done == NOTHING:
                return True
            state[HEIGHT] -= 1
            continue
        # a child has been finished
        s = frames[top, SELECTOR]
        if frames[top, PHASE] == HALF:
            frames[top, FIRST] = done
            done = express(f, care, column, 2, tables, fanins, state, space, pairs)
            if done != NOTHING:
                state[HEIGHT] -= 1
                continue
            frames[top, PHASE] = WHOLE
            goals[top + 1, F], goals[top + 1, CARE] = f, care & ~literal_word(s, column)
            frames[top + 1, :] = 0
            state[HEIGHT] += 1
            continue
        second = done
        done = express(f, care, column, 2, tables, fanins, state, space, pairs)
        if done == NOTHING:
            done = add_mux(s, frames[top, FIRST], second, tables, fanins, state)
        state[HEIGHT] -= 1


@inner
def choose(s: Any, column: Words, state: Ints, goals: Words, frames: Ints) -> None:
    top = state[HEIGHT] - 1
    frames[top, SELECTOR] = s
    frames[top, PHASE] = HALF
    goals[top + 1, F] = goals[top, F]
    goals[top + 1, CARE] = goals[top, CARE] & literal_word(s, column)
    frames[top + 1, :] = 0
    state[HEIGHT] += 1


@inner
def finish(tables: Words, fanins: Literals, state: Ints, results: Ints, outputs: Literals) -> None:
    words, n = state[WORDS], state[INPUTS]
    for j in range(outputs.shape[0]):
        size = words
        first = j * words
        i = 6
        while size > 1:
            size //= 2
            for w in range(size):
                results[first + w] = add_mux(
                    np.int64(2 * (i + 1)), results[first + 2 * w + 1], results[first + 2 * w], tables, fanins, state
                )
            i += 1
        outputs[j] = results[first]


@kernel
def greedy(n: Any, m: Any, table: Words, seed: Any, noise: Any, effort: Any, inputs_only: Any) -> Any:
    np.random.seed(seed)
    words = np.int64(1) << max(n - 6, 0)
    cap = 200 * m * words + 50
    tables = np.empty((words, cap), np.uint64)
    fanins = np.zeros((cap, 2), np.int32)
    state = np.zeros(8, np.int64)
    goals = np.zeros((DEPTH, 2), np.uint64)
    frames = np.zeros((DEPTH, 3), np.int64)
    results = np.zeros(m * words, np.int64)
    outputs = np.zeros(m, np.int32)
    space = np.empty((3, 2 * cap), np.int64)
    pairs = np.empty((effort, 2), np.int64)
    start_one(n, m, table, tables, state)
    choices = 0
    while advance(table, tables, fanins, state, goals, frames, results, space, pairs):
        column = tables[state[BLOCK] % words]
        top = state[HEIGHT] - 1
        f, care = goals[top, F], goals[top, CARE]
        best, chosen = 1e9, 0
        last = n + 1 if inputs_only else state[VARIABLES]
        for v in range(1, last):
            inside, outside = care & column[v], care & ~column[v]
            if inside == _NONE or outside == _NONE:
                continue
            a = estimate(f, inside, column, state[VARIABLES])
            b = estimate(f, outside, column, state[VARIABLES])
            value = a + b + noise * np.random.random()
            if value < best:
                best = value
                chosen = 2 * v + (a > b)  # the easier (smaller) child first
        choices += 1
        choose(np.int64(chosen), column, state, goals, frames)
    finish(tables, fanins, state, results, outputs)
    return fanins[n + 1 : state[VARIABLES]].copy(), outputs, choices
