"""Circuits built from the top down, one choice at a time, in compiled code (:mod:`~.construction` explains how).

A circuit under construction is a :class:`Construction`; :class:`~.construction.Constructions` holds many of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.domains.chip_design.aig_kernels import Ints, Literals, Words, input_word
from graphbench.domains.chip_design.divisors import (
    NOTHING,
    find_chain,
    find_exclusive_or,
    find_literal,
    find_multiplexer,
    find_one,
    find_wide_multiplexer,
    literal_word,
)

VARIABLES, HEIGHT, BLOCK, BLOCKS, WORDS, INPUTS, CHOICES = range(7)
"""Places in ``state``: variables so far, height of the stack, block that is built, blocks, words, inputs, choices."""
F, CARE = range(2)
"""Columns of ``goals``: the function of a goal, and the bits where it matters."""
SELECTOR, PHASE, FIRST = range(3)
"""Columns of ``frames``: the literal that was chosen, how far the goal is, and the literal of its first half."""
DEPTH = 66
"""Most goals of a stack: each has fewer bits that matter than the one below it."""
MOST_GATES = 200
"""Most ANDs of a block: at most 63 choices of three ANDs each, and as many halves that are met by a literal."""
_NEW, _FIRST_HALF, _SECOND_HALF = range(3)
_LARGEST, _AFTER_HALF = 4, 2  # most ANDs of an expression of a goal: at its beginning, and once a half of it is met
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)


class Construction(NamedTuple):
    """The arrays of a circuit under construction; a batch of B circuits has a further first axis ``[B]`` everywhere."""

    targets: Words  # uint64 [blocks], the words of the truth table
    tables: Words  # uint64 [W, room], the truth tables of the variables, word by word
    fanins: Literals  # int32 [room, 2], by variable
    state: Ints  # int64 [CHOICES + 1], by the names above
    goals: Words  # uint64 [DEPTH, 2], the stack of goals that are not met
    frames: Ints  # int64 [DEPTH, 3], the progress of each goal of the stack
    results: Ints  # int64 [blocks], the literals of the blocks that are finished


@inner
def circuit_of(batch: Construction, b: Any) -> Construction:
    """Return circuit b of a batch, as views."""
    return Construction(
        batch.targets[b],
        batch.tables[b],
        batch.fanins[b],
        batch.state[b],
        batch.goals[b],
        batch.frames[b],
        batch.results[b],
    )


@inner
def column_mask(n: Any) -> np.uint64:
    """Return the bits of a word that a truth table of n inputs uses."""
    return _ONES if n >= 6 else (np.uint64(1) << np.uint64(np.int64(1) << n)) - np.uint64(1)


@inner
def add_gate(a: Any, b: Any, circuit: Construction) -> np.int64:
    """Return the literal of ``a & b``: of a variable with this truth table or its complement, if there is one."""
    tables, fanins, state = circuit.tables, circuit.fanins, circuit.state
    count = state[VARIABLES]
    flip_a = _ONES if a & 1 else _NONE
    flip_b = _ONES if b & 1 else _NONE
    mask = column_mask(state[INPUTS])
    for w in range(state[WORDS]):
        tables[w, count] = (tables[w, a >> 1] ^ flip_a) & (tables[w, b >> 1] ^ flip_b) & mask
    for v in range(count):
        difference = tables[0, v] ^ tables[0, count]
        if difference != _NONE and difference != mask:
            continue
        same = True
        for w in range(1, state[WORDS]):
            if tables[w, v] ^ tables[w, count] != difference:
                same = False
                break
        if same:
            return np.int64(2 * v + (difference == mask))
    fanins[count, 0], fanins[count, 1] = max(a, b), min(a, b)
    state[VARIABLES] = count + 1
    return np.int64(2 * count)


@inner
def add_multiplexer(s: Any, a: Any, b: Any, circuit: Construction) -> np.int64:
    """Return the literal of ``s ? a : b``."""
    if a == b:
        return np.int64(a)
    left = add_gate(s, a, circuit)
    right = add_gate(s ^ 1, b, circuit)
    return add_gate(left ^ 1, right ^ 1, circuit) ^ 1


@inner
def express(f: Any, care: Any, word: Any, most: Any, circuit: Construction, space: NDArray[np.int64]) -> np.int64:
    """Add at most ``most`` ANDs, 0 to 4, that express a goal, as few as the forms of :mod:`~.divisors` allow.

    Returns:
        The literal of the goal; NOTHING if no form with so few ANDs expresses it, and then nothing is added.
    """
    count, column = circuit.state[VARIABLES], circuit.tables[word]
    literal = find_literal(f, care, column, count)
    if literal != NOTHING or most == 0:
        return literal
    literals = np.empty(4, np.int64)
    flip = find_one(f, care, column, count, space[0], literals)
    if flip != NOTHING:
        return add_gate(literals[0], literals[1], circuit) ^ flip
    chain = np.empty((3, 3), np.int64)
    for length in range(2, min(most, 3) + 1):
        if find_chain(f, care, column, count, length, space, chain):
            literal = add_gate(chain[0, 0], chain[0, 1], circuit) ^ chain[0, 2]
            for k in range(1, length):
                literal = add_gate(chain[k, 0], literal, circuit) ^ chain[k, 2]
            return literal
    if most >= 3 and find_multiplexer(f, care, column, count, literals):
        return add_multiplexer(literals[0], literals[1], literals[2], circuit)
    if most >= 4:
        flip = find_wide_multiplexer(f, care, column, count, space[0], literals)
        if flip != NOTHING:
            literal = add_gate(literals[0], literals[1], circuit) ^ flip
            return add_multiplexer(literals[2], literals[3], literal, circuit)
        flip = find_exclusive_or(f, care, column, count, space[0], literals)
        if flip != NOTHING:
            literal = add_gate(literals[0], literals[1], circuit) ^ flip
            return add_multiplexer(literals[2], literal ^ 1, literal, circuit)
    return np.int64(NOTHING)


@inner
def begin(n: Any, m: Any, circuit: Construction) -> None:
    """Start a circuit of n inputs and m outputs: it has the constant and the inputs."""
    tables, state = circuit.tables, circuit.state
    state[:] = 0
    state[VARIABLES], state[INPUTS] = n + 1, n
    state[WORDS] = np.int64(1) << max(n - 6, 0)
    state[BLOCKS] = m * state[WORDS]
    mask = column_mask(n)
    for w in range(state[WORDS]):
        tables[w, 0] = _NONE
        for i in range(n):
            tables[w, 1 + i] = input_word(i, w) & mask


@inner
def advance(circuit: Construction, space: NDArray[np.int64], floor: Any) -> bool:
    """Build on until a choice is due, and return whether one is.

    It also stops once the stack has come down to the height ``floor``; -1 builds all blocks.
    """
    state, goals, frames = circuit.state, circuit.goals, circuit.frames
    literal = np.int64(NOTHING)
    while True:
        height = state[HEIGHT]
        if height == floor:
            return False
        if height == 0:
            if literal != NOTHING:
                circuit.results[state[BLOCK]] = literal
                state[BLOCK] += 1
                literal = np.int64(NOTHING)
            if state[BLOCK] == state[BLOCKS]:
                return False
            _push(circuit.targets[state[BLOCK]], column_mask(state[INPUTS]), circuit)
            continue
        top, word = height - 1, state[BLOCK] % state[WORDS]
        f, care, phase = goals[top, F], goals[top, CARE], frames[top, PHASE]
        half = literal
        literal = express(f, care, word, _LARGEST if phase == _NEW else _AFTER_HALF, circuit, space)
        if literal != NOTHING:
            state[HEIGHT] -= 1
        elif phase == _NEW:
            return True
        elif phase == _FIRST_HALF:
            frames[top, FIRST], frames[top, PHASE] = half, _SECOND_HALF
            _push(f, care & ~literal_word(frames[top, SELECTOR], circuit.tables[word]), circuit)
        else:
            literal = add_multiplexer(frames[top, SELECTOR], frames[top, FIRST], half, circuit)
            state[HEIGHT] -= 1


@inner
def choose(selector: Any, circuit: Construction) -> None:
    """Split the goal on top of the stack by a literal; the half where the literal is 1 is built first."""
    state, goals, frames = circuit.state, circuit.goals, circuit.frames
    top = state[HEIGHT] - 1
    frames[top, SELECTOR], frames[top, PHASE] = selector, _FIRST_HALF
    inside = literal_word(selector, circuit.tables[state[BLOCK] % state[WORDS]])
    state[CHOICES] += 1
    _push(goals[top, F], goals[top, CARE] & inside, circuit)


@inner
def _push(f: Any, care: Any, circuit: Construction) -> None:
    state, goals, frames = circuit.state, circuit.goals, circuit.frames
    top = state[HEIGHT]
    goals[top, F], goals[top, CARE] = f, care
    frames[top, :] = 0
    state[HEIGHT] += 1


@inner
def finish(circuit: Construction, outputs: Literals) -> None:
    """Join the blocks of every output by multiplexers, and write the literals of the outputs."""
    words = circuit.state[WORDS]
    for j in range(outputs.shape[0]):
        row = circuit.results[j * words : (j + 1) * words]
        size, select = words, np.int64(2 * 7)
        while size > 1:
            size //= 2
            for w in range(size):
                row[w] = add_multiplexer(select, row[2 * w + 1], row[2 * w], circuit)
            select += 2
        outputs[j] = row[0]
