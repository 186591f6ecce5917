"""Kernels of snapshots: passes over tables that are not sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

_FEW = 24  # values that are sorted by insertion

Integers = NDArray[np.integer[Any]]


@kernel
def count_posts(user: Integers, time: Integers, users: int, after: int, until: int) -> NDArray[np.int64]:
    """Return the number of posts of every user in ``(after, until]``, int64 ``[users]``."""
    counts = np.zeros(users, np.int64)
    for i in range(user.shape[0]):
        if after < time[i] <= until:
            counts[user[i]] += 1
    return counts


@inner
def _insert_in_order(values: NDArray[np.int64]) -> None:
    """Sort a few values in place, by insertion."""
    for i in range(1, values.shape[0]):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def medians(
    place: NDArray[np.int64],
    user: Integers,
    time: Integers,
    values: Integers,
    ptr: NDArray[np.int64],
    after: int,
    until: int,
    lower: bool,
) -> NDArray[np.float64]:
    """Return the median of the values of every node's posts in ``(after, until]``, float64 ``[nodes]``.

    Args:
        place: int64 ``[users]``: the node of every user, negative for those who are not nodes.
        user: Of the posts.
        time: Of the posts.
        values: Of the posts.
        ptr: int64 ``[nodes + 1]``: running sum of the number of posts of the nodes in the interval.
        after: Begin of the interval, not part of it.
        until: End of the interval.
        lower: Whether the median of an even number of values is the lower of the two in the middle, not their mean.
    """
    nodes = ptr.shape[0] - 1
    following = ptr[:-1].copy()
    grouped = np.empty(ptr[-1], np.int64)
    for i in range(user.shape[0]):
        node = place[user[i]]
        if node >= 0 and after < time[i] <= until:
            grouped[following[node]] = values[i]
            following[node] += 1
    found = np.zeros(nodes, np.float64)
    for node in range(nodes):
        own = grouped[ptr[node] : ptr[node + 1]]
        count = own.shape[0]
        if count > _FEW:
            own.sort()
        else:
            _insert_in_order(own)
        if count:
            high = own[count // 2]
            low = own[(count - 1) // 2]
            found[node] = float(low) if lower else (float(low) + float(high)) / 2.0
    return found


@kernel
def add_rows(
    sums: NDArray[np.float32], counts: NDArray[np.int64], nodes: NDArray[np.int64], vectors: NDArray[np.float32]
) -> None:
    """Add every vector to the sum of its node; negative nodes are left out."""
    width = vectors.shape[1]
    for i in range(nodes.shape[0]):
        node = nodes[i]
        if node >= 0:
            counts[node] += 1
            for j in range(width):
                sums[node, j] += vectors[i, j]
