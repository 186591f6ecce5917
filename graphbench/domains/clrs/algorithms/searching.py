"""Searching and selection, and the maximum subarray (Cormen et al., chapters 2, 4 and 9)."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.sorting import Parts, partition, write_order
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared, keys
from graphbench.domains.clrs.recording import GraphScalar, Log, NodeMaskOne, NodePointer, record

_INPUTS = "pos:node/scalar, key:node/scalar"


class MinimumHints(NamedTuple):
    """The hints of ``minimum``."""

    pred_h: NodePointer
    min_h: NodeMaskOne
    i: NodeMaskOne


@algorithm(keys, inputs=_INPUTS, hints=MinimumHints, outputs="min:node/mask_one")
def minimum(log: Log, A: NDArray[np.float64], hints: MinimumHints, smallest: NDArray[np.int32]) -> None:
    """Minimum (section 9.1): look at all keys, one step each, and keep the smallest, the first of equal ones."""
    n = A.shape[0]
    write_order(np.arange(n), hints.pred_h)
    for node in range(n):
        hints.i[0] = node
        if A[node] < A[hints.min_h[0]]:
            hints.min_h[0] = node
        record(log)
    smallest[0] = hints.min_h[0]


def target_and_sorted_keys(x: Instances, A: Instances) -> Prepared:
    """Prepare a number ``x`` and a list ``A`` of two keys or more, smallest first."""
    targets = np.array([_number("x", value) for value in x])
    prepared = keys(A)
    arguments = prepared.inputs["key"]
    falls = np.argwhere(np.diff(arguments) < 0)
    if len(falls):
        i, at = falls[0]
        above, below = arguments[i, at : at + 2]
        raise ArgumentError(f"A[{at}] = {above} is above A[{at + 1}] = {below}; give keys in rising order")
    return Prepared((targets, arguments), {**prepared.inputs, "target": targets[:, None]})


def _number(name: str, value: Any) -> float:
    if isinstance(value, float) and isfinite(value):
        return value
    try:
        number = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        number = np.array(np.nan)
    if number.ndim != 0 or not np.isfinite(number):
        raise ArgumentError(f"{name} is {value!r}; give one finite number")
    return float(number)


class BinarySearchHints(NamedTuple):
    """The hints of ``binary_search``."""

    pred_h: NodePointer
    low: NodeMaskOne
    high: NodeMaskOne
    mid: NodeMaskOne


@algorithm(
    target_and_sorted_keys,
    inputs=f"{_INPUTS}, target:graph/scalar",
    hints=BinarySearchHints,
    outputs="return:node/mask_one",
)
def binary_search(
    log: Log, x: float, A: NDArray[np.float64], hints: BinarySearchHints, result: NDArray[np.int32]
) -> None:
    """Binary search (exercise 2.3-5): the first key that is at least ``x``, and the last key where there is none.

    There is one step at the start and one per halving.
    """
    n = A.shape[0]
    write_order(np.arange(n), hints.pred_h)
    hints.high[0] = n - 1
    hints.mid[0] = hints.high[0] // 2
    record(log)
    while hints.low[0] < hints.high[0]:
        if x <= A[hints.mid[0]]:
            hints.high[0] = hints.mid[0]
        else:
            hints.low[0] = hints.mid[0] + 1
        hints.mid[0] = (hints.low[0] + hints.high[0]) // 2
        record(log)
    result[0] = hints.high[0]


class QuickselectHints(NamedTuple):
    """The hints of ``quickselect``."""

    pred_h: NodePointer
    p: NodeMaskOne
    r: NodeMaskOne
    i: NodeMaskOne
    j: NodeMaskOne
    i_rank: GraphScalar
    target: GraphScalar
    pivot: NodeMaskOne


@algorithm(keys, inputs=_INPUTS, hints=QuickselectHints, outputs="median:node/mask_one")
def quickselect(log: Log, A: NDArray[np.float64], hints: QuickselectHints, median: NDArray[np.int32]) -> None:
    """Quickselect (section 9.2): divide the list at a pivot, go on in the part with the median, until it is the pivot.

    The median is the key that has n // 2 before it when sorted. The steps are as in ``partition``; there is none
    before the first. ``target`` is the number of keys of the part before the median, as a share of the list.
    """
    n = A.shape[0]
    parts = Parts(np.arange(n), hints.pred_h, hints.p, hints.r, hints.i, hints.j, hints.i_rank)
    write_order(parts.order, hints.pred_h)
    first, last = 0, n - 1
    middle = -1
    while middle != n // 2:
        hints.target[0] = (n // 2 - first) / n
        hints.pivot[0] = parts.order[last]
        middle = partition(log, A, parts, first, last)
        if middle < n // 2:
            first = middle + 1
        else:
            last = middle - 1
    median[0] = parts.order[middle]


class FindMaximumSubarrayKadaneHints(NamedTuple):
    """The hints of ``find_maximum_subarray_kadane``."""

    pred_h: NodePointer
    best_low: NodeMaskOne
    best_high: NodeMaskOne
    best_sum: GraphScalar
    i: NodeMaskOne
    j: NodeMaskOne
    sum: GraphScalar


@algorithm(keys, inputs=_INPUTS, hints=FindMaximumSubarrayKadaneHints, outputs="start:node/mask_one, end:node/mask_one")
def find_maximum_subarray_kadane(
    log: Log,
    A: NDArray[np.float64],
    hints: FindMaximumSubarrayKadaneHints,
    start: NDArray[np.int32],
    end: NDArray[np.int32],
) -> None:
    """Kadane's algorithm (exercise 4.1-5): the stretch with the largest sum, the first of equal ones.

    There is one step per key ``j``. Either the key extends the best stretch that ends before it and begins at ``i``, or
    the key begins a new stretch.
    """
    n = A.shape[0]
    write_order(np.arange(n), hints.pred_h)
    hints.best_sum[0] = hints.sum[0] = A[0]
    record(log)
    for node in range(1, n):
        hints.j[0] = node
        if hints.sum[0] + A[node] >= A[node]:
            hints.sum[0] += A[node]
        else:
            hints.sum[0] = A[node]
            hints.i[0] = node
        if hints.sum[0] > hints.best_sum[0]:
            hints.best_sum[0] = hints.sum[0]
            hints.best_low[0], hints.best_high[0] = hints.i[0], hints.j[0]
        record(log)
    start[0], end[0] = hints.best_low[0], hints.best_high[0]
