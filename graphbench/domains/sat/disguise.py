"""Random renaming of variables and random order of clauses, so that the numbers in a formula carry no information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, permutation


@kernel
def disguise(
    state: NDArray[np.uint64], num_variables: int, literals: NDArray[np.int32], ptr: NDArray[np.int64], flip: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Rename the variables of a formula and reorder its clauses, both uniformly at random.

    Renaming changes neither the satisfiability of the formula nor its graphs, up to isomorphism. With ``flip``, each
    variable is also replaced by its negation with probability 1/2. This suits formulas in which a variable and its
    negation play the same role (a node of a random circuit). It would hide structure where the sign has a meaning (a
    pigeon sits in a hole).

    Args:
        state: State of the random generator; it is advanced.
        num_variables: Number n of variables.
        literals: int32 ``[L]``, the literals of the clauses.
        ptr: int64 ``[m + 1]``, where the clauses begin.
        flip: Whether variables are replaced by their negations at random.

    Returns:
        The literals, sorted by variable within every clause, the starts of the clauses, and ``names`` int32
        ``[n + 1]``: variable v has become the literal ``names[v]`` (negative if it was negated).
    """
    order = permutation(state, num_variables)
    names = np.zeros(num_variables + 1, np.int32)
    for v in range(num_variables):
        negated = flip and (next_u64(state) >> np.uint64(63)) == np.uint64(1)
        names[v + 1] = -(order[v] + 1) if negated else order[v] + 1
    codes = np.empty(2 * num_variables + 1, np.int32)  # code of a literal: twice its variable, plus 1 if negative
    for v in range(1, num_variables + 1):
        literal_code = 2 * abs(names[v]) + (1 if names[v] < 0 else 0)
        codes[num_variables + v], codes[num_variables - v] = literal_code, literal_code ^ 1
    places = permutation(state, len(ptr) - 1)
    renamed, starts = np.empty(len(literals), np.int32), np.zeros(len(ptr), np.int64)
    at = 0
    for j in range(len(places)):
        first, length = ptr[places[j]], ptr[places[j] + 1] - ptr[places[j]]
        if length == 3:  # most clauses: the same insertion as below, without loops
            a, b = codes[num_variables + literals[first]], codes[num_variables + literals[first + 1]]
            c = codes[num_variables + literals[first + 2]]
            a, b = min(a, b), max(a, b)
            b, c = min(b, c), max(b, c)
            renamed[at], renamed[at + 1], renamed[at + 2] = min(a, b), max(a, b), c
        else:
            for i in range(length):  # insertion, which has no branches to mispredict
                code = codes[num_variables + literals[first + i]]
                for k in range(at, at + i):
                    other = renamed[k]
                    renamed[k] = min(other, code)
                    code = max(other, code)
                renamed[at + i] = code
        at += length
        starts[j + 1] = at
    for i in range(len(renamed)):
        half = renamed[i] >> 1
        renamed[i] = -half if renamed[i] & 1 else half
    return renamed, starts, names


@kernel
def disguise_rows(
    state: NDArray[np.uint64], num_variables: int, clauses: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Do what `disguise` does without ``flip`` for clauses of at most four literals; the result is the same.

    Rows of one length are renamed and sorted without branches, and they are shuffled themselves. Reading clauses of
    different lengths in random order takes three times as long.

    Args:
        state: State of the random generator; it is advanced.
        num_variables: Number n of variables.
        clauses: int32 ``[m, 4]``, the literals of every clause, followed by zeros. The array is overwritten.

    Returns:
        As `disguise`.
    """
    order, names = permutation(state, num_variables), np.zeros(num_variables + 1, np.int32)
    codes = np.empty(2 * num_variables + 1, np.int32)  # of a literal as in `disguise`; the code of 0 is the largest
    absent = 2 * num_variables + 2
    codes[num_variables] = absent
    for v in range(1, num_variables + 1):
        names[v] = order[v - 1] + 1
        codes[num_variables + v], codes[num_variables - v] = 2 * names[v], 2 * names[v] + 1
    size = _renamed_rows(clauses, codes, absent)
    for i in range(len(clauses) - 1, 0, -1):
        j = below(state, i + 1)
        for k in range(4):
            clauses[i, k], clauses[j, k] = clauses[j, k], clauses[i, k]
    literals, starts = np.empty(size + 3, np.int32), np.empty(len(clauses) + 1, np.int64)
    at = starts[0] = 0
    for j in range(len(clauses)):
        first = at
        for k in range(4):
            half = clauses[j, k] >> 1
            literals[first + k] = -half if clauses[j, k] & 1 else half
            at += int(clauses[j, k] != absent)
        starts[j + 1] = at
    return literals[:size], starts, names


@inner
def _renamed_rows(clauses: NDArray[np.int32], codes: NDArray[np.int32], absent: int) -> int:
    """Rename and sort the literals of every row of `disguise_rows` in place; return the number of literals."""
    n, size = len(codes) // 2, 0
    for j in range(len(clauses)):
        a, b = codes[n + clauses[j, 0]], codes[n + clauses[j, 1]]
        c, d = codes[n + clauses[j, 2]], codes[n + clauses[j, 3]]
        a, b, c, d = min(a, b), max(a, b), min(c, d), max(c, d)
        a, c, b, d = min(a, c), max(a, c), min(b, d), max(b, d)
        b, c = min(b, c), max(b, c)
        clauses[j, 0], clauses[j, 1], clauses[j, 2], clauses[j, 3] = a, b, c, d
        size += int(a != absent) + int(b != absent) + int(c != absent) + int(d != absent)
    return size


def renamed_model(names: NDArray[np.int32], model: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return an assignment of the original variables as an assignment of the renamed ones, bool ``[n]``."""
    result = np.empty_like(model)
    result[np.abs(names[1:]) - 1] = model ^ (names[1:] < 0)
    return result
