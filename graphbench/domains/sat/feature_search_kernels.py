"""Two compiled local searches with a limited number of flips: WalkSAT/SKC and a greedy descent with breakout weights.

Both return one row of numbers per run, in the order of `COLUMNS`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, seed

COLUMNS = ("initial", "best", "best_flip", "first_minimum", "first_minimum_flip", "final", "flips")
"""Numbers of violated clauses at the start, at the best point, at the first local minimum and at the end; numbers of
flips until the best point, until the first local minimum, and in all."""

_INITIAL, _BEST, _BEST_FLIP, _MINIMUM, _MINIMUM_FLIP, _FINAL, _FLIPS = range(7)
_TOP = np.uint64(63)
_DRAWS = 8
_FLIP_STEPS = 3  # a step of a flip in `breakout` takes about three times as long as a step that raises a weight


@inner
def _random_values(state: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    values = np.empty(n, np.bool_)
    for v in range(n):
        values[v] = (next_u64(state) >> _TOP) == 0
    return values


@inner
def _count_true(
    values: NDArray[np.bool_], clause_first: NDArray[np.int64], members: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the number of true literals of each clause and the exclusive or of their codes, int32 ``[m]`` each."""
    m = len(clause_first) - 1
    count, mixed = np.zeros(m, np.int32), np.zeros(m, np.int32)
    for j in range(m):
        for k in range(clause_first[j], clause_first[j + 1]):
            if values[members[k] >> 1] == ((members[k] & 1) == 0):
                count[j] += 1
                mixed[j] ^= members[k]
    return count, mixed


@inner
def _add(item: int, items: NDArray[np.int32], position: NDArray[np.int32], size: int) -> int:
    """Add an item to a list unless the list holds it; return the new size.

    ``position`` int32 holds the position of every item in the list, -1 for items that are not in it.
    """
    if position[item] < 0:
        items[size], position[item] = item, size
        return size + 1
    return size


@inner
def _remove(item: int, items: NDArray[np.int32], position: NDArray[np.int32], size: int) -> int:
    """Remove an item from a list as in `_add`, if the list holds it; return the new size."""
    slot = position[item]
    if slot < 0:
        return size
    items[slot] = items[size - 1]
    position[items[slot]] = slot
    position[item] = -1
    return size - 1


@inner
def _record(row: NDArray[np.int64], violated: int, flip: int, before: int) -> None:
    """Record the number of violated clauses after a flip, and the first flip that does not lower this number."""
    if violated < row[_BEST]:
        row[_BEST], row[_BEST_FLIP] = violated, flip
    if row[_MINIMUM_FLIP] < 0 and violated >= before:
        row[_MINIMUM], row[_MINIMUM_FLIP] = before, flip - 1


@inner
def _finish(row: NDArray[np.int64], violated: int, flips: int) -> None:
    row[_FINAL], row[_FLIPS] = violated, flips
    if row[_MINIMUM_FLIP] < 0:
        row[_MINIMUM], row[_MINIMUM_FLIP] = violated, flips


@inner
def _pick(state: NDArray[np.uint64], clause: NDArray[np.int32], breaks: NDArray[np.int32]) -> int:
    """Choose the variable of a violated clause that is flipped.

    The chosen variable violates the fewest satisfied clauses when it is flipped. If every flip violates some clause, a
    random variable of the clause is chosen instead with probability 1/2.
    """
    least, ties, chosen = 1 << 30, 0, clause[0] >> 1
    for code in clause:
        count = breaks[code >> 1]
        if count < least:
            least, ties, chosen = count, 1, code >> 1
        elif count == least:
            ties += 1
            if below(state, ties) == 0:
                chosen = code >> 1
    if least > 0 and (next_u64(state) >> _TOP) == 0:
        chosen = clause[below(state, len(clause))] >> 1
    return chosen


@kernel
def walksat(
    first: NDArray[np.int64],
    clauses: NDArray[np.int32],
    clause_first: NDArray[np.int64],
    members: NDArray[np.int32],
    runs: int,
    limit: int,
    key: np.uint64,
) -> tuple[NDArray[np.int64], int]:
    """Run WalkSAT/SKC (Selman, Kautz and Cohen 1994) with noise 1/2.

    Args:
        first: int64 ``[2n + 1]``, where the clauses of every literal begin in ``clauses``.
        clauses: int32, the clauses of every literal.
        clause_first: int64 ``[m + 1]``, where the literals of every clause begin in ``members``.
        members: int32, the literals of every clause. No clause may be empty.
        runs: Number of runs.
        limit: Largest number of flips of a run.
        key: Seed of the runs.

    Returns:
        int64 ``[runs, 7]``, a row of `COLUMNS` per run, and the number of steps.
    """
    n, m = len(first) // 2, len(clause_first) - 1
    rows = np.zeros((runs, 7), np.int64)
    steps = 0
    for r in range(runs):
        state = seed(key, r, 0, 1)
        values = _random_values(state, n)
        count, mixed = _count_true(values, clause_first, members)
        violated, position, breaks = np.empty(m, np.int32), np.full(m, -1, np.int32), np.zeros(n, np.int32)
        size = 0
        for j in range(m):
            if count[j] == 0:
                size = _add(j, violated, position, size)
            elif count[j] == 1:
                breaks[mixed[j] >> 1] += 1
        rows[r, _INITIAL] = rows[r, _BEST] = size
        rows[r, _MINIMUM_FLIP] = -1
        flips = 0
        while flips < limit and size > 0:
            before = size
            j = violated[below(state, size)]
            v = _pick(state, members[clause_first[j] : clause_first[j + 1]], breaks)
            false = 2 * v + (0 if values[v] else 1)
            values[v] = not values[v]
            for k in range(first[false], first[false + 1]):
                j = clauses[k]
                count[j] -= 1
                mixed[j] ^= false
                if count[j] == 0:
                    size = _add(j, violated, position, size)
                    breaks[v] -= 1
                elif count[j] == 1:
                    breaks[mixed[j] >> 1] += 1
            for k in range(first[false ^ 1], first[(false ^ 1) + 1]):
                j = clauses[k]
                if count[j] == 0:
                    size = _remove(j, violated, position, size)
                    breaks[v] += 1
                elif count[j] == 1:
                    breaks[mixed[j] >> 1] -= 1
                count[j] += 1
                mixed[j] ^= false ^ 1
            flips += 1
            steps += 2 + first[2 * v + 2] - first[2 * v]
            _record(rows[r], size, flips, before)
        _finish(rows[r], size, flips)
        steps += len(members) + n + m
    return rows, steps


@kernel
def breakout(
    first: NDArray[np.int64],
    clauses: NDArray[np.int32],
    clause_first: NDArray[np.int64],
    members: NDArray[np.int32],
    runs: int,
    limit: int,
    key: np.uint64,
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Run a greedy descent (GSAT, Selman et al. 1992) with breakout weights (Morris 1993) against local minima.

    A variable is good if flipping it lowers the total weight of violated clauses. A flip draws 8 random good variables
    and takes the best of them. If no variable is good, the weight of every violated clause grows by 1, which counts as
    a flip; the first time that this happens is the first local minimum. All steps are in one function because calls
    with arrays inside its loops would double the time.

    Args:
        first: int64 ``[2n + 1]``, as for `walksat`.
        clauses: int32, the clauses of every literal.
        clause_first: int64 ``[m + 1]``, where the literals of every clause begin.
        members: int32, the literals of every clause. No clause may be empty.
        runs: Number of runs.
        limit: Largest number of flips of a run.
        key: Seed of the runs.

    Returns:
        int64 ``[runs, 7]``, a row of `COLUMNS` per run; int32 ``[runs, limit]``, the flipped variables, -1 where the
        weights grew and after the end of a run; and the number of steps.
    """
    n, m = len(first) // 2, len(clause_first) - 1
    rows, flipped = np.zeros((runs, 7), np.int64), np.full((runs, limit), -1, np.int32)
    steps = 0
    for r in range(runs):
        state = seed(key, r, 0, 2)
        values = _random_values(state, n)
        count, mixed = _count_true(values, clause_first, members)
        violated, position, weight = np.empty(m, np.int32), np.full(m, -1, np.int32), np.ones(m, np.int64)
        score, good, good_position = np.zeros(n, np.int64), np.empty(n, np.int32), np.full(n, -1, np.int32)
        size = num_good = 0
        for j in range(m):
            if count[j] == 0:
                size = _add(j, violated, position, size)
                for k in range(clause_first[j], clause_first[j + 1]):
                    score[members[k] >> 1] += 1
            elif count[j] == 1:
                score[mixed[j] >> 1] -= 1
        for v in range(n):
            if score[v] > 0:
                num_good = _add(v, good, good_position, num_good)
        row = rows[r]
        row[_INITIAL] = row[_BEST] = size
        row[_MINIMUM_FLIP] = -1
        flips = 0
        while flips < limit and size > 0:
            flips += 1
            if num_good == 0:
                if row[_MINIMUM_FLIP] < 0:
                    row[_MINIMUM], row[_MINIMUM_FLIP] = size, flips - 1
                for i in range(size):
                    j = violated[i]
                    weight[j] += 1
                    steps += 1 + clause_first[j + 1] - clause_first[j]
                    for k in range(clause_first[j], clause_first[j + 1]):
                        u = members[k] >> 1
                        score[u] += 1
                        if score[u] > 0:
                            num_good = _add(u, good, good_position, num_good)
                continue
            v = good[below(state, num_good)]
            for _ in range(_DRAWS - 1):
                u = good[below(state, num_good)]
                v = u if score[u] > score[v] else v
            false = 2 * v + (0 if values[v] else 1)
            values[v] = not values[v]
            flipped[r, flips - 1] = v
            steps += _FLIP_STEPS * _DRAWS
            for side in range(2):
                code = false ^ side
                for k in range(first[code], first[code + 1]):
                    j = clauses[k]
                    old = count[j]
                    count[j] += 1 if side else -1
                    mixed[j] ^= code
                    steps += _FLIP_STEPS
                    if old + side == 1:  # the clause becomes violated (side 0) or stops being violated (side 1)
                        change = -weight[j] if side else weight[j]
                        size = _remove(j, violated, position, size) if side else _add(j, violated, position, size)
                        score[v] += change
                        steps += _FLIP_STEPS * (clause_first[j + 1] - clause_first[j])
                        for at in range(clause_first[j], clause_first[j + 1]):
                            u = members[at] >> 1
                            score[u] += change
                            if score[u] > 0:
                                num_good = _add(u, good, good_position, num_good)
                            else:
                                num_good = _remove(u, good, good_position, num_good)
                    elif old + side == 2:  # a single other literal is true (side 0), or was true until now (side 1)
                        u = (mixed[j] ^ code if side else mixed[j]) >> 1
                        score[u] += weight[j] if side else -weight[j]
                        if score[u] > 0:
                            num_good = _add(u, good, good_position, num_good)
                        else:
                            num_good = _remove(u, good, good_position, num_good)
            if size < row[_BEST]:
                row[_BEST], row[_BEST_FLIP] = size, flips
        _finish(row, size, flips)
        steps += 2 * len(members) + 2 * n + m
    return rows, flipped, steps
