"""Sorting (Cormen et al., chapters 2, 6 and 7)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import keys
from graphbench.domains.clrs.recording import Ints, Log, NodeMaskOne, NodePointer, record

_INPUTS = "pos:node/scalar, key:node/scalar"
_OUTPUTS = "pred:node/permutation"
BUILD, EXTRACT, REPAIR = range(3)  # phases of heapsort


@kernel
def write_order(order: NDArray[np.int64], pred: NDArray[np.int32]) -> None:
    """Make ``pred`` point from every node of the list ``order`` to the one before it, from the first to itself."""
    pred[order[0]] = order[0]
    for position in range(1, order.shape[0]):
        pred[order[position]] = order[position - 1]


@inner
def swap(order: NDArray[np.int64], pred: NDArray[np.int32], a: int, b: int) -> None:
    """Exchange the nodes at two places of a list, and keep ``pred`` pointing to the nodes before."""
    order[a], order[b] = order[b], order[a]
    for position in (a, a + 1, b, b + 1):
        if position < order.shape[0]:
            pred[order[position]] = order[max(position - 1, 0)]


class ExchangeHints(NamedTuple):
    """The hints of ``insertion_sort`` and ``bubble_sort``."""

    pred_h: NodePointer
    i: NodeMaskOne
    j: NodeMaskOne


@algorithm(keys, inputs=_INPUTS, hints=ExchangeHints, outputs=_OUTPUTS)
def insertion_sort(log: Log, A: NDArray[np.float64], hints: ExchangeHints, pred: NDArray[np.int32]) -> None:
    """Insertion sort (section 2.1): insert each key into the sorted list before it.

    One step per key. ``j`` is the node inserted, ``i`` the one that had its place.
    """
    n = A.shape[0]
    order = np.arange(n)  # the node at every place of the list
    write_order(order, hints.pred_h)
    hints.i[0] = hints.j[0] = 0
    record(log)
    for right in range(1, n):
        node = order[right]
        position = right
        while position > 0 and A[order[position - 1]] > A[node]:
            position -= 1
        hints.i[0], hints.j[0] = order[position], node
        for k in range(right, position, -1):
            order[k] = order[k - 1]
        order[position] = node
        write_order(order, hints.pred_h)
        record(log)
    pred[:] = hints.pred_h


@algorithm(keys, inputs=_INPUTS, hints=ExchangeHints, outputs=_OUTPUTS)
def bubble_sort(log: Log, A: NDArray[np.float64], hints: ExchangeHints, pred: NDArray[np.int32]) -> None:
    """Bubble sort (problem 2-2): let the smallest key that is left rise from the end of the list, again and again.

    One step per comparison of neighbours. ``j`` is the node then at the right of the two places, ``i`` the one at the
    place that the smallest key will have.
    """
    n = A.shape[0]
    order = np.arange(n)
    write_order(order, hints.pred_h)
    record(log)
    for left in range(n - 1):
        for position in range(n - 1, left, -1):
            if A[order[position]] < A[order[position - 1]]:
                swap(order, hints.pred_h, position - 1, position)
            hints.i[0], hints.j[0] = order[left], order[position]
            record(log)
    pred[:] = hints.pred_h


class Heap(NamedTuple):
    """A list whose first nodes are a heap, and the hints that show it."""

    order: NDArray[np.int64]  # [n] the node at every place
    pred_h: NDArray[np.int32]  # [n]
    parent: NDArray[np.int32]  # [n]
    i: NDArray[np.int32]  # [1], as are the following fields
    j: NDArray[np.int32]
    largest: NDArray[np.int32]
    heap_size: NDArray[np.int32]


@inner
def show_heap(heap: Heap, size: int) -> None:
    """Show the heap of the first ``size`` nodes: their parents (other nodes point to themselves), and the last node."""
    order, parent = heap.order, heap.parent
    for position in range(order.shape[0]):
        parent[order[position]] = order[(position - 1) // 2 if 0 < position < size else position]
    heap.heap_size[0] = order[size - 1]


@inner
def largest_of_family(A: NDArray[np.float64], order: NDArray[np.int64], size: int, parent: int) -> int:
    """Return the place of the largest key among a place of a heap and its children, the first of equal ones."""
    largest = parent
    for child in (2 * parent + 1, 2 * parent + 2):
        if child < size and A[order[child]] > A[order[largest]]:
            largest = child
    return largest


@inner
def sink(log: Log, A: NDArray[np.float64], heap: Heap, size: int, top: int, turn: int) -> None:
    """Let the key at place ``top`` sink until no child is larger (MAX-HEAPIFY): one step per place it comes to.

    ``j`` is the node then at that place, after the exchange, ``largest`` the one at the place where the largest key of
    the family was, and ``i`` the one at place ``turn``.
    """
    position = top
    while True:
        below = largest_of_family(A, heap.order, size, position)
        if below != position:
            swap(heap.order, heap.pred_h, position, below)
            show_heap(heap, size)
        heap.i[0], heap.j[0], heap.largest[0] = heap.order[turn], heap.order[position], heap.order[below]
        record(log)
        if below == position:
            return
        position = below


class HeapsortHints(NamedTuple):
    """The hints of ``heapsort``."""

    pred_h: NodePointer
    parent: NodePointer
    i: NodeMaskOne
    j: NodeMaskOne
    largest: NodeMaskOne
    heap_size: NodeMaskOne
    phase: Annotated[Ints, "graph/categorical(3)"]


@algorithm(keys, inputs=_INPUTS, hints=HeapsortHints, outputs=_OUTPUTS)
def heapsort(log: Log, A: NDArray[np.float64], hints: HeapsortHints, pred: NDArray[np.int32]) -> None:
    """Heapsort (section 6.4): build a heap, then move its largest key behind it and repair it, until it is empty.

    ``sink`` records the steps; building the heap calls ``sink`` at every place, the leaves included. Every key that is
    moved behind the heap has a further step, in which ``largest`` has no meaning and is node 0. ``heap_size`` is the
    last node of the heap.
    """
    n = A.shape[0]
    heap = Heap(np.arange(n), hints.pred_h, hints.parent, hints.i, hints.j, hints.largest, hints.heap_size)
    write_order(heap.order, hints.pred_h)
    show_heap(heap, n)
    hints.i[0] = hints.j[0] = hints.largest[0] = n - 1
    hints.phase[0] = BUILD
    record(log)
    for position in range(n - 1, -1, -1):
        sink(log, A, heap, n, position, position)
    for last in range(n - 1, 0, -1):
        swap(heap.order, hints.pred_h, 0, last)
        show_heap(heap, last)
        hints.i[0], hints.j[0], hints.largest[0] = heap.order[0], heap.order[last], 0
        hints.phase[0] = EXTRACT
        record(log)
        hints.phase[0] = REPAIR
        sink(log, A, heap, last, 0, last)
    pred[:] = hints.pred_h


class Parts(NamedTuple):
    """A list under partition, and the hints that show it."""

    order: NDArray[np.int64]  # [n] the node at every place
    pred_h: NDArray[np.int32]  # [n]
    p: NDArray[np.int32]  # [1], as are the following fields
    r: NDArray[np.int32]
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    i_rank: NDArray[np.float64]


@inner
def show_places(parts: Parts, p: int, r: int, i: int, j: int) -> None:
    """Set the hints to the nodes at four places."""
    order = parts.order
    parts.p[0], parts.r[0], parts.i[0], parts.j[0] = order[p], order[r], order[i], order[j]


@inner
def partition(log: Log, A: NDArray[np.float64], parts: Parts, first: int, last: int) -> int:
    """Move the keys that are at most the one at place ``last``, the pivot, before all others (section 7.1).

    One step per place, the pivot's last. The hints are the nodes at places, after the exchange: ``p`` the first, ``r``
    the last, ``j`` the place at work, ``i`` the one after the keys that are at most the pivot. ``i_rank`` is the place
    of ``i`` as a share of the list; in the last step it is counted from ``first``.

    Returns:
        The place of the pivot.
    """
    order, n = parts.order, A.shape[0]
    pivot = A[order[last]]
    end = first  # of the keys that are at most the pivot
    for position in range(first, last):
        if A[order[position]] <= pivot:
            swap(order, parts.pred_h, end, position)
            end += 1
        show_places(parts, first, last, end, position)
        parts.i_rank[0] = end / n
        record(log)
    swap(order, parts.pred_h, end, last)
    show_places(parts, first, last, end, last)
    parts.i_rank[0] = (end - first) / n
    record(log)
    return end


class QuicksortHints(NamedTuple):
    """The hints of ``quicksort``."""

    pred_h: NodePointer
    p: NodeMaskOne
    r: NodeMaskOne
    i: NodeMaskOne
    j: NodeMaskOne


@algorithm(keys, inputs=_INPUTS, hints=QuicksortHints, outputs=_OUTPUTS)
def quicksort(log: Log, A: NDArray[np.float64], hints: QuicksortHints, pred: NDArray[np.int32]) -> None:
    """Quicksort (section 7.1): divide the list at a pivot, then do the same left and right of it.

    The steps are the same as in ``partition``; there is none before the first and none for a part of a single key.
    """
    n = A.shape[0]
    parts = Parts(np.arange(n), hints.pred_h, hints.p, hints.r, hints.i, hints.j, np.zeros(1))  # ranks are no hint here
    write_order(parts.order, hints.pred_h)
    waiting = [(0, n - 1)]  # parts to divide, the leftmost on top
    while waiting:
        first, last = waiting.pop()
        if first < last:
            middle = partition(log, A, parts, first, last)
            waiting.append((middle + 1, last))
            waiting.append((first, middle - 1))
    pred[:] = hints.pred_h
