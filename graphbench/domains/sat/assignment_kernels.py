"""Compiled searches for assignments that satisfy many clauses, on the formulas of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, seed, uniform

Ints = NDArray[np.int64]
Bits = NDArray[np.int8]


class Clauses(NamedTuple):
    """The clauses of all formulas of a batch, and where variables occur; nodes are numbered through the batch.

    Attributes:
        node_ptr: int64 ``[G + 1]``, first node of each formula.
        clause_ptr: int64 ``[G + 1]``, first clause of each formula.
        ptr: int64 ``[C + 1]``: the literals of clause c are ``variable[ptr[c]:ptr[c + 1]]``.
        variable: int64 ``[L]``, the node of each literal's variable.
        wanted: int8 ``[L]``: the value that makes the literal true, 0 or 1.
        first: int64 ``[N + 1]``: the occurrences of node v are rows ``first[v]`` to ``first[v + 1] - 1``.
        literal: int64 ``[L]``, the position in ``variable`` of each occurrence.
        clause: int64 ``[L]``, the clause of each literal.
    """

    node_ptr: Ints
    clause_ptr: Ints
    ptr: Ints
    variable: Ints
    wanted: Bits
    first: Ints
    literal: Ints
    clause: Ints


@kernel
def by_conditional_expectation(clauses: Clauses) -> Bits:
    """Return assignments, int8 ``[N]``: each variable takes the value of more expected satisfied clauses.

    Variables of many occurrences come first, of equally many the first one; the others count as fair coins (Johnson,
    1974; Erdos and Selfridge, 1973). At least as many clauses hold as a random assignment satisfies on average. Nodes
    that are clauses have 0.
    """
    values = np.zeros(clauses.node_ptr[-1], np.int8)
    weight = np.empty(clauses.clause_ptr[-1], np.float64)  # the chance that a clause is violated
    for c in range(len(weight)):
        weight[c] = 2.0 ** -(clauses.ptr[c + 1] - clauses.ptr[c])
    for g in range(len(clauses.node_ptr) - 1):
        low, high = clauses.node_ptr[g], clauses.node_ptr[g + 1]
        order = np.argsort(-(clauses.first[low + 1 : high + 1] - clauses.first[low:high]), kind="mergesort") + low
        for v in order:
            gain = 0.0
            for row in range(clauses.first[v], clauses.first[v + 1]):
                at = clauses.literal[row]
                gain += weight[clauses.clause[at]] if clauses.wanted[at] else -weight[clauses.clause[at]]
            values[v] = gain > 0
            for row in range(clauses.first[v], clauses.first[v + 1]):
                at = clauses.literal[row]
                weight[clauses.clause[at]] *= 0.0 if clauses.wanted[at] == values[v] else 2.0
    return values


@inner
def _breaks(clauses: Clauses, values: Bits, true: Ints, v: int) -> int:
    """Return how many clauses are violated by flipping variable v that are not violated now."""
    count = 0
    for row in range(clauses.first[v], clauses.first[v + 1]):
        at = clauses.literal[row]
        count += clauses.wanted[at] == values[v] and true[clauses.clause[at]] == 1
    return count


@inner
def _chosen(clauses: Clauses, values: Bits, true: Ints, state: NDArray[np.uint64], c: int, noise: float) -> int:
    """Return the variable of a violated clause that WalkSAT flips."""
    first, length = clauses.ptr[c], clauses.ptr[c + 1] - clauses.ptr[c]
    least, best, ties = 1 << 62, clauses.variable[first], 0
    for k in range(first, first + length):
        broken = _breaks(clauses, values, true, clauses.variable[k])
        if broken < least:
            least, best, ties = broken, clauses.variable[k], 1
        elif broken == least:
            ties += 1
            if below(state, ties) == 0:
                best = clauses.variable[k]
    if least > 0 and uniform(state) < noise:
        return clauses.variable[first + below(state, length)]
    return best


@kernel
def walk(clauses: Clauses, start: Bits, flips: int, noise: float, enough: int, seed_number: np.uint64) -> Bits:
    """Return the best assignments of WalkSAT, int8 ``[N]`` (Selman, Kautz and Cohen, 1994).

    A random violated clause is satisfied by flipping the variable of it that violates the fewest other clauses; where
    every flip violates some, a random variable of the clause is flipped with probability ``noise``. A walk ends after
    ``flips`` flips, or when at most ``enough`` clauses are violated. Every formula has random numbers of its own, by
    its content: a formula is solved alone as in a batch.
    """
    result, values = start.copy(), start.copy()
    true = np.zeros(clauses.clause_ptr[-1], np.int64)
    violated, place = np.empty_like(true), np.full_like(true, -1)
    for g in range(len(clauses.node_ptr) - 1):
        low, high = clauses.node_ptr[g], clauses.node_ptr[g + 1]
        bottom, top = clauses.clause_ptr[g], clauses.clause_ptr[g + 1]
        state = seed(seed_number, _digest(clauses, g), 0, 0)
        count = 0
        for c in range(bottom, top):
            for k in range(clauses.ptr[c], clauses.ptr[c + 1]):
                true[c] += clauses.wanted[k] == values[clauses.variable[k]]
            if true[c] == 0:
                violated[count], place[c] = c, count
                count += 1
        fewest = count
        for _ in range(flips):
            if fewest <= enough:
                break
            v = _chosen(clauses, values, true, state, violated[below(state, count)], noise)
            values[v] = 1 - values[v]
            for row in range(clauses.first[v], clauses.first[v + 1]):
                at = clauses.literal[row]
                c = clauses.clause[at]
                if clauses.wanted[at] == values[v]:
                    true[c] += 1
                    if true[c] == 1:
                        count -= 1
                        last = violated[count]
                        violated[place[c]], place[last], place[c] = last, place[c], -1
                else:
                    true[c] -= 1
                    if true[c] == 0:
                        violated[count], place[c] = c, count
                        count += 1
            if count < fewest:
                fewest = count
                result[low:high] = values[low:high]
    return result


@inner
def _digest(clauses: Clauses, g: int) -> int:
    """Return a hash of the clauses of a formula, in their order (FNV-1a)."""
    mixed = np.uint64(0xCBF29CE484222325)
    for c in range(clauses.clause_ptr[g], clauses.clause_ptr[g + 1]):
        for k in range(clauses.ptr[c], clauses.ptr[c + 1]):
            number = 2 * (clauses.variable[k] - clauses.node_ptr[g]) + clauses.wanted[k]
            mixed = (mixed ^ np.uint64(number)) * np.uint64(0x100000001B3)
        mixed = (mixed ^ np.uint64(0xFFFF)) * np.uint64(0x100000001B3)
    return np.int64(mixed >> np.uint64(1))  # type: ignore[return-value]
