"""From scores to solutions, whole batches at a time, in compiled kernels; `decoding` describes the results.

Every graph draws the same random numbers, restart by restart, so its solution does not depend on the graphs beside it.
The first restart adds no noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import seed, uniform

_HALF_STEP = 2.0**-54  # keeps the argument of a logarithm from 0
_IDLE_PASSES = 10

Ints = NDArray[np.int64]
Heads = NDArray[np.int32]
Scores = NDArray[np.float64]


class Noise(NamedTuple):
    """The number of restarts, and the noise of all restarts but the first."""

    restarts: int
    temperature: float
    key: np.uint64


@kernel
def _gumbel(state: NDArray[np.uint64]) -> float:
    return -math.log(-math.log(uniform(state) + _HALF_STEP))


@kernel
def _logistic(state: NDArray[np.uint64]) -> float:
    u = uniform(state) + _HALF_STEP
    return math.log(u / (1.0 - u))


@kernel
def _noisy(scores: Scores, noise: Noise, restart: int, logistic: bool) -> Scores:
    """Return the scores of one graph, ``[n]`` or ``[n, K]``, with the noise of a restart; the first has none."""
    noisy = scores.copy()
    if restart:
        state = seed(noise.key, restart, 0, 0)
        flat = noisy.reshape(-1)
        for i in range(flat.shape[0]):
            flat[i] += noise.temperature * (_logistic(state) if logistic else _gumbel(state))
    return noisy


@kernel
def _falling(values: Scores) -> Ints:
    """Return the positions of the values from the largest to the smallest, equals in the order given."""
    return np.argsort(-values, kind="mergesort")


@kernel
def join_in_order(order: Ints, start: int, first: Ints, node: Heads, member: NDArray[np.int32]) -> int:
    """Let nodes join a set in order where no neighbour has; write ``member`` and return the size."""
    size = 0
    member[:] = -1
    for i in order:
        if member[i] < 0:
            member[i] = 1
            size += 1
            for row in range(first[start + i], first[start + i + 1]):
                member[node[row] - start] = 0
    return size


@kernel
def sets_by_score(ptr: Ints, first: Ints, node: Heads, scores: Scores, noise: Noise) -> NDArray[np.int32]:
    """Return the largest set of the restarts of every graph, int32 ``[N]``."""
    chosen = np.empty(scores.shape[0], np.int32)
    for g in range(ptr.shape[0] - 1):
        start, stop = ptr[g], ptr[g + 1]
        member = np.empty(stop - start, np.int32)
        largest = -1
        for restart in range(noise.restarts):
            noisy = _noisy(scores[start:stop], noise, restart, False)
            size = join_in_order(_falling(noisy), start, first, node, member)
            if size > largest:
                largest = size
                chosen[start:stop] = member
    return chosen


@kernel
def _climb(order: Ints, start: int, first: Ints, node: Heads, side: NDArray[np.int32]) -> None:
    """Move nodes to the other side, in order and again, while one of them cuts more edges there."""
    surplus = np.zeros(side.shape[0], np.int64)  # edges a move would newly cut, minus edges it would uncut
    for i in range(side.shape[0]):
        for row in range(first[start + i], first[start + i + 1]):
            surplus[i] += 1 if side[node[row] - start] == side[i] else -1
    moved = True
    while moved:
        moved = False
        for i in order:
            if surplus[i] > 0:
                moved = True
                side[i] = 1 - side[i]
                surplus[i] = -surplus[i]
                for row in range(first[start + i], first[start + i + 1]):
                    j = node[row] - start
                    surplus[j] += 2 if side[j] == side[i] else -2


@kernel
def _choose_by_expectation(
    order: Ints, start: int, first: Ints, node: Heads, scores: Scores, side: NDArray[np.int32]
) -> None:
    """Give nodes in order the side of the larger expected cut, the others being on side 1 with their probability.

    Nodes that have chosen count as they chose. Where both sides promise the same, the sign of the score decides.
    """
    lean = np.empty(scores.shape[0])  # of a node towards side 0: 1 - 2 p, in the end 1 or -1
    for i in range(scores.shape[0]):
        lean[i] = -math.tanh(scores[i] / 2)
    for i in order:
        gain = 0.0
        for row in range(first[start + i], first[start + i + 1]):
            gain += lean[node[row] - start]
        side[i] = 1 if gain > 0.0 or (gain == 0.0 and scores[i] > 0.0) else 0
        lean[i] = 1.0 - 2.0 * side[i]


@kernel
def _twice_cut(start: int, first: Ints, node: Heads, side: NDArray[np.int32]) -> int:
    count = 0
    for i in range(side.shape[0]):
        for row in range(first[start + i], first[start + i + 1]):
            count += 1 if side[node[row] - start] != side[i] else 0
    return count


@kernel
def cuts_by_score(
    ptr: Ints,
    first: Ints,
    node: Heads,
    scores: Scores,
    noise: Noise,
    conditional: bool,
    local_search: bool,
) -> NDArray[np.int32]:
    """Return the largest cut of the restarts of every graph, int32 ``[N]``."""
    chosen = np.empty(scores.shape[0], np.int32)
    for g in range(ptr.shape[0] - 1):
        start, stop = ptr[g], ptr[g + 1]
        side = np.empty(stop - start, np.int32)
        largest = -1
        for restart in range(noise.restarts):
            noisy = _noisy(scores[start:stop], noise, restart, True)
            for i in range(stop - start):
                side[i] = 1 if noisy[i] > 0.0 else 0
            if conditional:
                _choose_by_expectation(_falling(np.abs(noisy)), start, first, node, noisy, side)
            if local_search:
                _climb(_falling(-np.abs(noisy)), start, first, node, side)
            size = _twice_cut(start, first, node, side)
            if size > largest:
                largest = size
                chosen[start:stop] = side
    return chosen


@kernel
def first_fit(order: Ints, start: int, first: Ints, node: Heads, colour: NDArray[np.int32]) -> int:
    """Give nodes in order the first colour free; write ``colour`` and return the number of colours."""
    seen_by = np.full(order.shape[0] + 1, -1, np.int64)
    count = 0
    colour[:] = -1
    for i in order:
        for row in range(first[start + i], first[start + i + 1]):
            c = colour[node[row] - start]
            if c >= 0:
                seen_by[c] = i
        c = 0
        while seen_by[c] == i:
            c += 1
        colour[i] = c
        count = max(count, c + 1)
    return count


@kernel
def _best_fit(order: Ints, start: int, first: Ints, node: Heads, scores: Scores, colour: NDArray[np.int32]) -> int:
    """Give nodes in order the free colour of their highest score, or where all scored ones are taken, a further one.

    Write ``colour``, numbered without gaps, and return the number of colours.
    """
    n, scored = scores.shape
    seen_by = np.full(scored + n, -1, np.int64)
    number = np.full(scored + n, -1, np.int32)
    count = 0
    colour[:] = -1
    for i in order:
        for row in range(first[start + i], first[start + i + 1]):
            c = colour[node[row] - start]
            if c >= 0:
                seen_by[c] = i
        best = -1
        for c in range(scored):
            if seen_by[c] != i and (best < 0 or scores[i, c] > scores[i, best]):
                best = c
        if best < 0:
            best = scored
            while seen_by[best] == i:
                best += 1
        colour[i] = best
        if number[best] < 0:
            number[best] = count
            count += 1
    for i in range(n):
        colour[i] = number[colour[i]]
    return count


@kernel
def _recolour(start: int, first: Ints, node: Heads, colours: int, colour: NDArray[np.int32]) -> int:
    """Colour anew by first fit, the nodes of the last colour first, while that saves colours; return their number.

    Nodes of one colour stay together or move to earlier ones, so no pass needs more colours (Culberson 1992).
    """
    idle = 0
    while idle < _IDLE_PASSES:
        before = colours
        colours = first_fit(_falling(colour.astype(np.float64)), start, first, node, colour)
        idle = 0 if colours < before else idle + 1
    return colours


@kernel
def _by_confidence(scores: Scores) -> Ints:
    """Return the nodes of ``scores [n, K]`` from the highest softmax probability of their best colour downwards."""
    doubt = np.zeros(scores.shape[0])  # contribution of the other colours to the softmax denominator
    for i in range(scores.shape[0]):
        best = np.argmax(scores[i])
        for c in range(scores.shape[1]):
            if c != best:
                doubt[i] += math.exp(scores[i, c] - scores[i, best])
    return _falling(-doubt)


@kernel
def number_by_first_use(colour: NDArray[np.int32], colours: int) -> None:
    """Renumber colours in place: node 0 has colour 0, the next colour met is 1, and so on."""
    number = np.full(colours, -1, np.int32)
    count = 0
    for i in range(colour.shape[0]):
        if number[colour[i]] < 0:
            number[colour[i]] = count
            count += 1
        colour[i] = number[colour[i]]


@kernel
def colourings_by_score(
    ptr: Ints,
    first: Ints,
    node: Heads,
    scores: Scores,
    of_colours: bool,
    noise: Noise,
    local_search: bool,
) -> NDArray[np.int32]:
    """Return the colouring of fewest colours of every graph, int32 ``[N]``.

    ``of_colours``: whether ``scores [N, K]`` are of a node's colours; else ``[N, 1]``, of the order alone.
    """
    chosen = np.empty(scores.shape[0], np.int32)
    for g in range(ptr.shape[0] - 1):
        start, stop = ptr[g], ptr[g + 1]
        colour = np.empty(stop - start, np.int32)
        fewest = stop - start + 1
        for restart in range(noise.restarts):
            noisy = _noisy(scores[start:stop], noise, restart, False)
            order = _by_confidence(noisy) if of_colours else _falling(noisy[:, 0])
            for fit_best in (True, False):
                if fit_best and not of_colours:
                    continue
                if fit_best:
                    colours = _best_fit(order, start, first, node, noisy, colour)
                else:
                    colours = first_fit(order, start, first, node, colour)
                if local_search:
                    colours = _recolour(start, first, node, colours, colour)
                if colours < fewest:
                    fewest = colours
                    number_by_first_use(colour, colours)
                    chosen[start:stop] = colour
    return chosen
