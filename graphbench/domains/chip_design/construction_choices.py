"""The options while a circuit is built, their features for a model, and their costs, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.core.rng import uniform
from graphbench.domains.chip_design.aig_kernels import Ints, Words
from graphbench.domains.chip_design.construction_kernels import (
    BLOCK,
    BLOCKS,
    CARE,
    HEIGHT,
    INPUTS,
    VARIABLES,
    WORDS,
    Construction,
    F,
    advance,
    choose,
)
from graphbench.domains.chip_design.divisors import NOTHING, covering, find_literal, find_one, literal_word

_NONE = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
CANDIDATES = 24
"""Most selectors to choose from: both literals of up to 9 inputs, and other variables."""
FEATURES = 20
"""Numbers that describe a candidate, besides its bits."""
_PRIOR, _PER_BIT = 1.0, 0.17  # ANDs of a goal that no literal meets, roughly: a constant and a slope per bit


def _log_binomials() -> NDArray[np.float64]:
    logs = np.concatenate(([0.0], np.cumsum(np.log2(np.arange(1, 65)))))
    n, k = np.meshgrid(np.arange(65), np.arange(65), indexing="ij")
    return np.where(k <= n, logs[n] - logs[k] - logs[np.maximum(n - k, 0)], 0.0)


_BITS = _log_binomials()  # information in a word of n bits with k ones


@inner
def ones_of(word: Any) -> np.int64:
    """Return the number of ones of a word."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def estimate(f: Any, care: Any, column: Words, count: Any) -> float:
    """Return an estimate of a goal's cost in ANDs: 0 if a literal meets it, else by the information in its bits."""
    size, ones = ones_of(care), ones_of(f & care)
    if ones == 0 or ones == size or find_literal(f, care, column, count) != NOTHING:
        return 0.0
    return _PRIOR + _PER_BIT * _BITS[size, ones]


@inner
def greedy_choice(circuit: Construction, noise: Any, random: NDArray[np.uint64]) -> np.int64:
    """Return the input that makes the halves of the goal cheapest by :func:`estimate`, the cheaper half first.

    A uniform random number up to ``noise`` is added to the estimate of every input.
    """
    tables, state, goals = circuit.tables, circuit.state, circuit.goals
    column, top = tables[state[BLOCK] % state[WORDS]], state[HEIGHT] - 1
    f, care = goals[top, F], goals[top, CARE]
    least, best = np.inf, np.int64(0)
    for v in range(1, state[INPUTS] + 1):
        inside, outside = care & column[v], care & ~column[v]
        if inside == _NONE or outside == _NONE:
            continue
        a, b = estimate(f, inside, column, state[VARIABLES]), estimate(f, outside, column, state[VARIABLES])
        value = a + b + noise * uniform(random)
        if value < least:
            least, best = value, np.int64(2 * v + (a > b))
    return best


@inner
def candidates(circuit: Construction, literals: NDArray[np.int32]) -> np.int64:
    """Write the selectors to choose from, and return their number.

    They are both literals of every input that splits the goal, and then the other variables whose halves are cheapest
    by :func:`estimate`, as the literal whose half is cheaper.
    """
    tables, state, goals = circuit.tables, circuit.state, circuit.goals
    column, top, n = tables[state[BLOCK] % state[WORDS]], state[HEIGHT] - 1, state[INPUTS]
    f, care = goals[top, F], goals[top, CARE]
    size = np.int64(0)
    for v in range(1, n + 1):
        if care & column[v] != _NONE and care & ~column[v] != _NONE and size + 2 <= literals.shape[0]:
            literals[size], literals[size + 1] = 2 * v, 2 * v + 1
            size += 2
    first = size
    values = np.empty(literals.shape[0])
    for v in range(n + 1, state[VARIABLES]):
        inside, outside = care & column[v], care & ~column[v]
        if inside == _NONE or outside == _NONE:
            continue
        a, b = estimate(f, inside, column, state[VARIABLES]), estimate(f, outside, column, state[VARIABLES])
        position = size
        while position > first and values[position - 1] > a + b:  # insertion into the sorted list of the cheapest
            position -= 1
        if position == literals.shape[0]:
            continue
        size = min(size + 1, np.int64(literals.shape[0]))
        for k in range(size - 1, position, -1):
            values[k], literals[k] = values[k - 1], literals[k - 1]
        values[position], literals[position] = a + b, 2 * v + (a > b)
    return size


@inner
def _has_one(f: Any, care: Any, column: Words, count: Any, space: Ints) -> np.int64:
    pair = np.empty(2, np.int64)
    return np.int64(find_one(f, care, column, count, space, pair) != NOTHING)


@inner
def describe(
    circuit: Construction,
    literals: NDArray[np.int32],
    bits: NDArray[np.int8],
    features: NDArray[np.float32],
    space: Ints,
) -> None:
    """Write the features of the candidates that a model reads.

    Args:
        circuit: The circuit, whose goal on top of the stack is due.
        literals: int32 ``[C]``, the candidates, 0 where there are fewer.
        bits: int8 ``[1 + C, 64]``. Row 0 is the goal: 1, or -1 for 0, and 0 where it does not matter; row ``1 + k`` the
            product of the goal's row with candidate k, 1 or -1.
        features: float32 ``[C, FEATURES]``.
        space: Working space, at least ``2 * variables``.
    """
    tables, state, goals = circuit.tables, circuit.state, circuit.goals
    word, top, count = state[BLOCK] % state[WORDS], state[HEIGHT] - 1, state[VARIABLES]
    column = tables[word]
    f, care = goals[top, F], goals[top, CARE]
    one = np.uint64(1)
    for x in range(64):
        bits[0, x] = (1 if (f >> np.uint64(x)) & one else -1) if (care >> np.uint64(x)) & one else 0
    for k in range(literals.shape[0]):
        features[k, :] = 0
        if literals[k] == 0:
            bits[1 + k, :] = 0
            continue
        value = literal_word(literals[k], column)
        for x in range(64):
            bits[1 + k, x] = bits[0, x] if (value >> np.uint64(x)) & one else -bits[0, x]
        candidate_features = features[k]
        candidate_features[0] = literals[k] <= 2 * state[INPUTS] + 1
        for side in range(2):
            half = care & (value if side == 0 else ~value)
            size = ones_of(half)
            candidate_features[1 + side] = size / 64
            candidate_features[3 + side] = abs(ones_of(f & half) / size - 0.5) * 2
            candidate_features[5 + side] = _BITS[size, ones_of(f & half)] / 64
            candidate_features[7 + side] = find_literal(f, half, column, count) != NOTHING
            candidate_features[9 + side] = np.log1p(covering(f, half, column, count, space)) / 4
            candidate_features[11 + side] = np.log1p(covering(~f, half, column, count, space)) / 4
            candidate_features[13 + side] = candidate_features[7 + side] > 0 or _has_one(f, half, column, count, space)
        candidate_features[15] = ones_of(care) / 64
        candidate_features[16] = np.log2(np.float64(count)) / 8
        candidate_features[17] = (state[BLOCKS] - state[BLOCK]) / 16
        candidate_features[18] = top / 16
        candidate_features[19] = state[INPUTS] / 8


@inner
def play_out(
    circuit: Construction,
    space: NDArray[np.int64],
    literals: NDArray[np.int32],
    noise: Any,
    random: NDArray[np.uint64],
    costs: NDArray[np.float32],
) -> None:
    """Write the number of ANDs that meet the goal after every candidate under greedy choices; the circuit is unchanged.

    Args:
        circuit: The circuit, whose goal on top of the stack is due.
        space: Working space.
        literals: int32 ``[C]``, the candidates, 0 where there are fewer.
        noise: Largest number that :func:`greedy_choice` adds to an estimate.
        random: State of the generator of random numbers.
        costs: float32 ``[C]``, to which the numbers of ANDs are added.
    """
    state, goals, frames = circuit.state, circuit.goals, circuit.frames
    before, height = state.copy(), state[HEIGHT]
    goals_before, frames_before = goals[:height].copy(), frames[:height].copy()
    for k in range(literals.shape[0]):
        if literals[k] == 0:
            continue
        choose(literals[k], circuit)
        while advance(circuit, space, height - 1):
            choose(greedy_choice(circuit, noise, random), circuit)
        costs[k] += state[VARIABLES] - before[VARIABLES]
        state[:] = before
        goals[:height], frames[:height] = goals_before, frames_before
