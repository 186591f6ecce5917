"""Searching and selection, and the maximum subarray (Cormen et al., chapters 2, 4 and 9)."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.sorting import Parts, partition, write_order
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared, keys
from graphbench.domains.clrs.recording import Log, record

_INPUTS = "pos:node/scalar, key:node/scalar"


@algorithm(
    keys,
    inputs=_INPUTS,
    hints="pred_h:node/pointer, min_h:node/mask_one, i:node/mask_one",
    outputs="min:node/mask_one",
)
def minimum(
    log: Log,
    A: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    min_h: NDArray[np.int32],
    i: NDArray[np.int32],
    smallest: NDArray[np.int32],
) -> None:
    """Minimum (section 9.1): look at all keys, one step each, and keep the smallest, the first of equal ones."""
    n = A.shape[0]
    write_order(np.arange(n), pred_h)
    for node in range(n):
        i[0] = node
        if A[node] < A[min_h[0]]:
            min_h[0] = node
        record(log)
    smallest[0] = min_h[0]


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


@algorithm(
    target_and_sorted_keys,
    inputs=f"{_INPUTS}, target:graph/scalar",
    hints="pred_h:node/pointer, low:node/mask_one, high:node/mask_one, mid:node/mask_one",
    outputs="return:node/mask_one",
)
def binary_search(
    log: Log,
    x: float,
    A: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    mid: NDArray[np.int32],
    found: NDArray[np.int32],
) -> None:
    """Binary search (exercise 2.3-5): the first key that is at least ``x``, and the last key where there is none.

    One step per halving and one before.
    """
    n = A.shape[0]
    write_order(np.arange(n), pred_h)
    high[0] = n - 1
    mid[0] = high[0] // 2
    record(log)
    while low[0] < high[0]:
        if x <= A[mid[0]]:
            high[0] = mid[0]
        else:
            low[0] = mid[0] + 1
        mid[0] = (low[0] + high[0]) // 2
        record(log)
    found[0] = high[0]


@algorithm(
    keys,
    inputs=_INPUTS,
    hints="""pred_h:node/pointer, p:node/mask_one, r:node/mask_one, i:node/mask_one, j:node/mask_one,
        i_rank:graph/scalar, target:graph/scalar, pivot:node/mask_one""",
    outputs="median:node/mask_one",
)
def quickselect(
    log: Log,
    A: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    p: NDArray[np.int32],
    r: NDArray[np.int32],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    i_rank: NDArray[np.float64],
    target: NDArray[np.float64],
    pivot: NDArray[np.int32],
    median: NDArray[np.int32],
) -> None:
    """Quickselect (section 9.2): divide the list at a pivot, go on in the part with the median, until it is the pivot.

    The median is the key that has n // 2 before it when sorted. The steps are as in ``partition``; there is none
    before the first. ``target`` is the number of keys of the part before the median, as a share of the list.
    """
    n = A.shape[0]
    parts = Parts(np.arange(n), pred_h, p, r, i, j, i_rank)
    write_order(parts.order, pred_h)
    first, last = 0, n - 1
    middle = -1
    while middle != n // 2:
        target[0] = (n // 2 - first) / n
        pivot[0] = parts.order[last]
        middle = partition(log, A, parts, first, last)
        if middle < n // 2:
            first = middle + 1
        else:
            last = middle - 1
    median[0] = parts.order[middle]


@algorithm(
    keys,
    inputs=_INPUTS,
    hints="""pred_h:node/pointer, best_low:node/mask_one, best_high:node/mask_one, best_sum:graph/scalar,
        i:node/mask_one, j:node/mask_one, sum:graph/scalar""",
    outputs="start:node/mask_one, end:node/mask_one",
)
def find_maximum_subarray_kadane(
    log: Log,
    A: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    best_low: NDArray[np.int32],
    best_high: NDArray[np.int32],
    best_sum: NDArray[np.float64],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    total: NDArray[np.float64],
    start: NDArray[np.int32],
    end: NDArray[np.int32],
) -> None:
    """Kadane's algorithm (exercise 4.1-5): the stretch of the list with the largest sum, the first found of equal ones.

    One step per key ``j``, which either extends the best stretch that ends before it, from ``i``, or begins one.
    """
    n = A.shape[0]
    write_order(np.arange(n), pred_h)
    best_sum[0] = total[0] = A[0]
    record(log)
    for node in range(1, n):
        j[0] = node
        if total[0] + A[node] >= A[node]:
            total[0] += A[node]
        else:
            total[0] = A[node]
            i[0] = node
        if total[0] > best_sum[0]:
            best_sum[0] = total[0]
            best_low[0], best_high[0] = i[0], j[0]
        record(log)
    start[0], end[0] = best_low[0], best_high[0]
