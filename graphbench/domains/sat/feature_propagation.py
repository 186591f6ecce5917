"""Features of unit propagation after random decisions (the probes of depth of Nudelman et al. 2004).

A dive assigns random values to variables in random order, with unit propagation after each decision, until a clause is
violated or all variables have values. The depth of a dive is its number of decisions. Knuth's estimate (1975) of the
size of a search tree is the mean of 2 to the power of the depth over dives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, seed
from graphbench.domains.sat.feature_tables import KEY, Group, Tables, log, names, ratio, statistics, variation

DIVES = 32
DEPTHS = (1, 4, 16, 64)
_CONFLICT, _OPEN, _COMPLETE = 0, 1, 2


@inner
def _propagate(
    relations: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]],
    truth: NDArray[np.int8],
    free: NDArray[np.int64],
    trail: NDArray[np.int32],
    head: int,
    tail: int,
) -> tuple[bool, int, int, int]:
    """Propagate the literals of the trail from ``head`` on.

    ``truth`` is 1 for a true literal and -1 for a false one. ``free`` counts the literals of each clause that are not
    false, or are false but not propagated yet.

    Returns:
        Whether no clause is violated, the new ``head`` and ``tail``, and the number of steps.
    """
    first, clauses, clause_first, members = relations
    consistent = True
    steps = 0
    while head < tail and consistent:
        false = trail[head] ^ 1
        head += 1
        steps += 1 + first[false + 1] - first[false]
        for k in range(first[false], first[false + 1]):
            j = clauses[k]
            free[j] -= 1
            if free[j] > 1 or not consistent:
                continue
            unit = -1
            for at in range(clause_first[j], clause_first[j + 1]):
                steps += 1
                if truth[members[at]] >= 0:
                    unit = members[at]
                    break
            if unit < 0:
                consistent = False
            elif truth[unit] == 0:
                truth[unit], truth[unit ^ 1] = 1, -1
                trail[tail] = unit
                tail += 1
    return consistent, head, tail, steps


@inner
def _undo(
    relations: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]],
    truth: NDArray[np.int8],
    free: NDArray[np.int64],
    trail: NDArray[np.int32],
    start: int,
    head: int,
    tail: int,
) -> None:
    """Take back the assignments of the trail from ``start`` on."""
    first, clauses, _, _ = relations
    for i in range(start, tail):
        truth[trail[i]] = truth[trail[i] ^ 1] = 0
        if i < head:
            for k in range(first[trail[i] ^ 1], first[(trail[i] ^ 1) + 1]):
                free[clauses[k]] += 1


@kernel
def dive(
    first: NDArray[np.int64],
    clauses: NDArray[np.int32],
    clause_first: NDArray[np.int64],
    members: NDArray[np.int32],
    depths: NDArray[np.int64],
    dives: int,
    key: np.uint64,
) -> tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """Propagate the unit clauses, and then dive several times.

    Args:
        first: int64 ``[2n + 1]``, where the clauses of every literal begin in ``clauses``.
        clauses: int32, the clauses of every literal.
        clause_first: int64 ``[m + 1]``, where the literals of every clause begin in ``members``.
        members: int32, the literals of every clause.
        depths: Depths at which assignments by propagation are counted; if a dive ends earlier, they are counted at its
            end.
        dives: Number of dives.
        key: Seed of the dives.

    Returns:
        The status after the unit clauses (0 conflict, 1 open, 2 all variables have values) and the number of variables
        that the unit clauses assign; for every dive, the number of assignments by propagation at every depth, int64
        ``[dives, depths]``, the depth of the dive and its final status (0 or 2), int64 ``[dives]``; and the number of
        steps. Dives take place only if the status after the unit clauses is open.
    """
    relations = (first, clauses, clause_first, members)
    n, m = len(first) // 2, len(clause_first) - 1
    truth, trail = np.zeros(2 * n, np.int8), np.empty(n, np.int32)
    free = clause_first[1:] - clause_first[:-1]
    tail = 0
    consistent = True
    for j in range(m):
        if free[j] == 0:
            consistent = False
        elif free[j] == 1:
            unit = members[clause_first[j]]
            if truth[unit] < 0:
                consistent = False
            elif truth[unit] == 0:
                truth[unit], truth[unit ^ 1] = 1, -1
                trail[tail] = unit
                tail += 1
    head = 0
    steps = m
    if consistent:
        consistent, head, tail, steps = _propagate(relations, truth, free, trail, 0, tail)
    status = (_COMPLETE if tail == n else _OPEN) if consistent else _CONFLICT
    if status != _OPEN:
        dives = 0
    propagated, depth = np.zeros((dives, len(depths)), np.int64), np.zeros(dives, np.int64)
    ends = np.zeros(dives, np.int64)
    order = np.arange(n)
    root = tail
    for d in range(dives):
        state = seed(key, d, 0, 0)
        consistent, reached = True, 0
        for i in range(n):
            at = i + below(state, n - i)
            order[i], order[at] = order[at], order[i]
            code = 2 * order[i] + np.int64(next_u64(state) >> np.uint64(63))
            if truth[code] != 0:
                continue
            truth[code], truth[code ^ 1] = 1, -1
            trail[tail] = code
            consistent, head, tail, took = _propagate(relations, truth, free, trail, tail, tail + 1)
            steps += took
            depth[d] += 1
            while reached < len(depths) and depths[reached] <= depth[d]:
                propagated[d, reached] = tail - root - depth[d]
                reached += 1
            if not consistent or tail == n:
                break
        for at in range(reached, len(depths)):
            propagated[d, at] = tail - root - depth[d]
        ends[d] = _COMPLETE if consistent else _CONFLICT
        _undo(relations, truth, free, trail, root, head, tail)
        head = tail = root
        steps += n
    return status, root, propagated, depth, ends, steps


def _measure(tables: Tables) -> tuple[list[float], int]:
    depths = np.array(DEPTHS, np.int64)
    status, root, propagated, depth, ends, steps = dive(*tables.holders, *tables.members, depths, DIVES, KEY)
    values = [ratio(root, tables.cnf.num_variables)]
    for column in propagated.T:
        values += [log(ratio(int(column.sum()), len(column))), variation(column)]
    shallow = ratio(int(((depth == 1) & (ends == _CONFLICT)).sum()), len(depth))
    values += [*statistics(depth, logs=True)[:4], _log_tree(depth.tolist()), shallow]
    solved = status != _OPEN or bool((ends == _COMPLETE).any())
    return [*values, float(solved)], int(steps) + tables.size


def _log_tree(depth: list[int]) -> float:
    """Return the base-2 logarithm of the mean of 2 ** depth, 0 for an empty list."""
    if not depth:
        return 0.0
    most = max(depth)
    return most + math.log2(math.fsum(2.0 ** max(d - most, -1000) for d in depth) / len(depth))


PROPAGATION = Group(
    (
        "root_assigned_share",
        *(f"{name}_at_depth_{d}" for d in DEPTHS for name in ("log_propagated", "propagated_cv")),
        *names("dive_depth", ("log_mean", "cv", "log_min", "log_max")),
        "log2_tree_size",
        "depth_1_conflict_share",
        "solved_by_probe_propagation",
    ),
    _measure,
)
