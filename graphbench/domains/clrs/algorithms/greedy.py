"""Greedy algorithms (Cormen et al., chapter 16)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.sorting import write_order
from graphbench.domains.clrs.arguments import (
    ArgumentError,
    Instances,
    Prepared,
    integers,
    positions,
    same_length,
    vector,
)
from graphbench.domains.clrs.recording import Log, record


def activities(s: Instances, f: Instances) -> Prepared:
    """Prepare the start times ``s`` and finish times ``f`` of two activities or more."""
    starts, ends = vector("s", s, 2), vector("f", f, 2)
    same_length("s", starts, "f", ends)
    if (starts > ends).any():
        i, at = np.argwhere(starts > ends)[0]
        raise ArgumentError(
            f"s[{at}] = {starts[i, at]} is after f[{at}] = {ends[i, at]}; activities end after they start"
        )
    return Prepared((starts, ends), {"pos": positions(*starts.shape), "s": starts, "f": ends})


@algorithm(
    activities,
    inputs="pos:node/scalar, s:node/scalar, f:node/scalar",
    hints="pred_h:node/pointer, selected_h:node/mask, m:node/mask_one, k:node/mask_one",
    outputs="selected:node/mask",
)
def activity_selector(
    log: Log,
    s: NDArray[np.float64],
    f: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    selected_h: NDArray[np.int32],
    m: NDArray[np.int32],
    k: NDArray[np.int32],
    selected: NDArray[np.int32],
) -> None:
    """Activity selection (section 16.1): take every activity that starts when the last one taken is over.

    One step per activity ``m``, the earliest to finish first, and one before. ``k`` is the last one taken.
    """
    write_order(np.arange(s.shape[0]), pred_h)
    record(log)
    none_yet = True
    for activity in np.argsort(f, kind="mergesort"):
        m[0] = activity
        if none_yet or s[activity] >= f[k[0]]:
            selected_h[activity] = 1
            k[0] = activity
            none_yet = False
        record(log)
    selected[:] = selected_h


def tasks(d: Instances, w: Instances) -> Prepared:
    """Prepare the deadlines ``d``, whole numbers from 1 to n, and the weights ``w`` of n >= 2 tasks."""
    deadlines, weights = vector("d", d, 2), vector("w", w, 2)
    same_length("d", deadlines, "w", weights)
    whole = integers("d", deadlines, 1, deadlines.shape[1])
    return Prepared((whole, weights), {"pos": positions(*weights.shape), "d": deadlines, "w": weights})


@algorithm(
    tasks,
    inputs="pos:node/scalar, d:node/scalar, w:node/scalar",
    hints="pred_h:node/pointer, selected_h:node/mask, i:node/mask_one, t:graph/scalar",
    outputs="selected:node/mask",
)
def task_scheduling(
    log: Log,
    d: NDArray[np.int64],
    w: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    selected_h: NDArray[np.int32],
    i: NDArray[np.int32],
    t: NDArray[np.float64],
    selected: NDArray[np.int32],
) -> None:
    """Task scheduling (section 16.5): take the tasks by weight, and keep each one whose deadline is not yet reached.

    One step per task ``i``, the heaviest first, and one before. Every task kept takes one unit of the time ``t``. The
    benchmark does not move tasks already kept, as the textbook does, so the weight kept need not be the largest.
    """
    write_order(np.arange(w.shape[0]), pred_h)
    record(log)
    for task in np.argsort(-w, kind="mergesort"):
        i[0] = task
        if t[0] < d[task]:
            selected_h[task] = 1
            t[0] += 1
        record(log)
    selected[:] = selected_h
