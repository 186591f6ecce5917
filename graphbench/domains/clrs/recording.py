"""How a compiled algorithm records its hints.

All hints of an algorithm live in two vectors, one of integers and one of floats; the algorithm works on views of them.
``record`` closes a step: it compares the vectors with their last recorded state and appends the cells that changed.
So a trajectory is a list of changes, which is what is stored: most steps of most algorithms change a handful of cells,
whatever the size of the state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.kernels import kernel

Lists = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
STEPS, INTS, FLOATS = range(3)  # places in Log.used
_BLOCK = 128


class Log(NamedTuple):
    """State and record of one run of an algorithm.

    The lists have a fixed capacity; beyond it, ``record`` counts on without writing, so the caller learns the capacity
    that a second run needs.
    """

    ints: NDArray[np.int32]  # [K] current values of the integer hints
    floats: NDArray[np.float64]  # [F] current values of the float hints
    last_ints: NDArray[np.int32]  # [K] as last recorded
    last_floats: NDArray[np.float64]  # [F]
    int_counts: NDArray[np.int32]  # [steps] changed cells per step
    int_cells: NDArray[np.int32]  # which cells changed, step after step
    int_values: NDArray[np.int32]  # to what
    float_counts: NDArray[np.int32]
    float_cells: NDArray[np.int32]
    float_values: NDArray[np.float64]
    used: NDArray[np.int64]  # [3] steps, integer changes and float changes recorded so far


def new_lists(steps: int, int_changes: int, float_changes: int) -> Lists:
    """Return empty lists of changes of the given capacities: counts, cells and values of integers, then of floats."""
    return (
        np.zeros(steps, np.int32),
        np.zeros(int_changes, np.int32),
        np.zeros(int_changes, np.int32),
        np.zeros(steps, np.int32),
        np.zeros(float_changes, np.int32),
        np.zeros(float_changes),
    )


def new_log(ints: int, floats: int, lists: Lists, used: NDArray[np.int64]) -> Log:
    """Return a log with a state of the given numbers of cells, that appends to the lists.

    Args:
        ints: Cells of integer hints.
        floats: Cells of float hints.
        lists: From ``new_lists``.
        used: int64 ``[3]``: how much of them is in use; shared by all logs of the same lists.
    """
    return Log(np.zeros(ints, np.int32), np.zeros(floats), np.zeros(ints, np.int32), np.zeros(floats), *lists, used)


@kernel
def clear(log: Log) -> None:
    """Set all cells to 0, for another run."""
    log.ints[:] = 0
    log.floats[:] = 0
    log.last_ints[:] = 0
    log.last_floats[:] = 0


@kernel
def record(log: Log) -> None:
    """Close a step: append what changed since the step before (since zeros, for the first)."""
    step = log.used[STEPS]
    log.used[STEPS] = step + 1
    first = log.used[INTS]
    at = first
    for start in range(0, log.ints.shape[0], _BLOCK):
        now, before = log.ints[start : start + _BLOCK], log.last_ints[start : start + _BLOCK]
        difference = np.int32(0)
        for i in range(now.shape[0]):  # a plain loop over a block of its own is vectorised
            difference |= now[i] ^ before[i]
        if difference == 0:
            continue
        for i in range(now.shape[0]):
            if now[i] != before[i]:
                before[i] = now[i]
                if at < log.int_cells.shape[0]:
                    log.int_cells[at], log.int_values[at] = start + i, now[i]
                at += 1
    log.used[INTS] = at
    changed = at - first
    first = log.used[FLOATS]
    at = first
    for cell in range(log.floats.shape[0]):
        number = log.floats[cell]
        if number != log.last_floats[cell]:
            log.last_floats[cell] = number
            if at < log.float_cells.shape[0]:
                log.float_cells[at], log.float_values[at] = cell, number
            at += 1
    log.used[FLOATS] = at
    if step < log.int_counts.shape[0]:
        log.int_counts[step] = changed
        log.float_counts[step] = at - first
