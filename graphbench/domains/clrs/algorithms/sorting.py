"""Sorting (Cormen et al., chapters 2, 6 and 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import keys
from graphbench.domains.clrs.recording import Log, record
from graphbench.kernels import kernel

_INPUTS = "pos:node/scalar, key:node/scalar"
_OUTPUTS = "pred:node/permutation"


@kernel
def write_order(order: NDArray[np.int64], pred: NDArray[np.int32]) -> None:
    """Make ``pred`` point from every node of the list ``order`` to the one before it, from the first to itself."""
    pred[order[0]] = order[0]
    for place in range(1, order.shape[0]):
        pred[order[place]] = order[place - 1]


@algorithm(keys, inputs=_INPUTS, hints="pred_h:node/pointer, i:node/mask_one, j:node/mask_one", outputs=_OUTPUTS)
def insertion_sort(
    log: Log,
    A: NDArray[np.float64],
    pred_h: NDArray[np.int32],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    pred: NDArray[np.int32],
) -> None:
    """Insertion sort (section 2.1): insert each key into the sorted list before it.

    One step per key. ``j`` is the node inserted, ``i`` the one that had its place.
    """
    n = A.shape[0]
    order = np.arange(n)  # the node at every place of the list
    write_order(order, pred_h)
    i[0] = j[0] = 0
    record(log)
    for right in range(1, n):
        node = order[right]
        place = right
        while place > 0 and A[order[place - 1]] > A[node]:
            place -= 1
        i[0], j[0] = order[place], node
        for k in range(right, place, -1):
            order[k] = order[k - 1]
        order[place] = node
        write_order(order, pred_h)
        record(log)
    pred[:] = pred_h
