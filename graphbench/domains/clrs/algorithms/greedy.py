"""Greedy algorithms (Cormen et al., chapter 16)."""

from __future__ import annotations

from typing import NamedTuple

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
from graphbench.domains.clrs.recording import GraphScalar, Log, NodeMask, NodeMaskOne, NodePointer, record


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


class ActivitySelectorHints(NamedTuple):
    """The hints of ``activity_selector``."""

    pred_h: NodePointer
    selected_h: NodeMask
    m: NodeMaskOne
    k: NodeMaskOne


@algorithm(
    activities,
    inputs="pos:node/scalar, s:node/scalar, f:node/scalar",
    hints=ActivitySelectorHints,
    outputs="selected:node/mask",
)
def activity_selector(
    log: Log, s: NDArray[np.float64], f: NDArray[np.float64], hints: ActivitySelectorHints, selected: NDArray[np.int32]
) -> None:
    """Activity selection (section 16.1): take every activity that starts after the last chosen activity has finished.

    There is one step at the start and one per activity ``m``, in the order of finish times. ``k`` is the activity that
    was taken last.
    """
    write_order(np.arange(s.shape[0]), hints.pred_h)
    record(log)
    none_yet = True
    for activity in np.argsort(f, kind="mergesort"):
        hints.m[0] = activity
        if none_yet or s[activity] >= f[hints.k[0]]:
            hints.selected_h[activity] = 1
            hints.k[0] = activity
            none_yet = False
        record(log)
    selected[:] = hints.selected_h


def tasks(d: Instances, w: Instances) -> Prepared:
    """Prepare the deadlines ``d``, whole numbers from 1 to n, and the weights ``w`` of n >= 2 tasks."""
    deadlines, weights = vector("d", d, 2), vector("w", w, 2)
    same_length("d", deadlines, "w", weights)
    whole = integers("d", deadlines, 1, deadlines.shape[1])
    return Prepared((whole, weights), {"pos": positions(*weights.shape), "d": deadlines, "w": weights})


class TaskSchedulingHints(NamedTuple):
    """The hints of ``task_scheduling``."""

    pred_h: NodePointer
    selected_h: NodeMask
    i: NodeMaskOne
    t: GraphScalar


@algorithm(
    tasks,
    inputs="pos:node/scalar, d:node/scalar, w:node/scalar",
    hints=TaskSchedulingHints,
    outputs="selected:node/mask",
)
def task_scheduling(
    log: Log, d: NDArray[np.int64], w: NDArray[np.float64], hints: TaskSchedulingHints, selected: NDArray[np.int32]
) -> None:
    """Task scheduling (section 16.5): take the tasks by weight, and keep each one whose deadline is not yet reached.

    There is one step at the start and one per task ``i``, the heaviest first. Every task that is kept takes one unit of
    the time ``t``. Unlike the textbook, the benchmark does not move tasks that it has already kept, so the total weight
    of the tasks that are kept need not be the largest.
    """
    write_order(np.arange(w.shape[0]), hints.pred_h)
    record(log)
    for task in np.argsort(-w, kind="mergesort"):
        hints.i[0] = task
        if hints.t[0] < d[task]:
            hints.selected_h[task] = 1
            hints.t[0] += 1
        record(log)
    selected[:] = hints.selected_h
