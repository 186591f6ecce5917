"""Random renaming of variables and random order of clauses, so that the numbers in a formula carry no information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import next_u64, permutation


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


def renamed_model(names: NDArray[np.int32], model: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return an assignment of the original variables as an assignment of the renamed ones, bool ``[n]``."""
    result = np.empty_like(model)
    result[np.abs(names[1:]) - 1] = model ^ (names[1:] < 0)
    return result
