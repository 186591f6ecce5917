"""Kernels of snapshots: passes over tables that are not sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

_FEW = 24  # up to this many values are sorted by insertion

Integers = NDArray[np.integer[Any]]


@kernel
def count_posts(user: Integers, time: Integers, users: int, times: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the number of posts of every user in ``(t0, t1]`` and in ``(t1, t2]``, int64 ``[users, 2]``."""
    counts = np.zeros((users, 2), np.int64)
    t0, t1, t2 = times
    for i in range(user.shape[0]):
        when = time[i]
        if t0 < when <= t2:
            counts[user[i], np.int64(when > t1)] += 1
    return counts


@inner
def _insert_in_order(values: Integers) -> None:
    """Sort a few values in place, by insertion."""
    for i in range(1, values.shape[0]):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inner
def _median(values: Integers, lower: bool) -> float:
    """Return the median of values, which are sorted in place; 0 if there are none."""
    count = values.shape[0]
    if not count:
        return 0.0
    if count > _FEW:
        values.sort()
    else:
        _insert_in_order(values)
    low, high = values[(count - 1) // 2], values[count // 2]
    return float(low) if lower else (float(low) + float(high)) / 2.0


@kernel
def medians(
    node_of: NDArray[np.int32],
    user: Integers,
    time: Integers,
    columns: tuple[Integers, Integers, Integers],
    ptr: NDArray[np.int64],
    times: tuple[int, int, int],
    lower: bool,
) -> NDArray[np.float64]:
    """Return the medians of every node's posts in ``(t0, t1]`` and in ``(t1, t2]``, float64 ``[2, nodes, 3]``.

    Args:
        node_of: int32 ``[users]``: the node of every user, negative for users who are not nodes.
        user: Integers ``[posts]``, the authors.
        time: Integers ``[posts]``, the times.
        columns: Three counts of the posts, of the same type.
        ptr: int64 ``[2 * nodes + 1]``: running sum of the numbers of posts of the nodes in the first interval, then
            in the second.
        times: ``(t0, t1, t2)``.
        lower: Whether the median of an even number of values is the lower of the two middle values, not their mean.
    """
    nodes, (t0, t1, t2) = ptr.shape[0] // 2, times
    following = ptr[:-1].copy()
    grouped = np.empty((ptr[-1], 3), columns[0].dtype)
    for i in range(user.shape[0]):
        node, when = np.int64(node_of[user[i]]), time[i]
        if node >= 0 and t0 < when <= t2:
            group = node + nodes * np.int64(when > t1)
            row = following[group]
            grouped[row, 0] = columns[0][i]
            grouped[row, 1] = columns[1][i]
            grouped[row, 2] = columns[2][i]
            following[group] = row + 1
    result = np.zeros((2 * nodes, 3), np.float64)
    for group in range(2 * nodes):
        for c in range(3):
            result[group, c] = _median(grouped[ptr[group] : ptr[group + 1], c].copy(), lower)
    return result.reshape(2, nodes, 3)


@kernel
def kept_pairs(
    source: Integers, target: Integers, time: Integers, node_of: NDArray[np.int32], after: int, until: int, loops: bool
) -> NDArray[np.int32]:
    """Return the nodes of the interactions in ``(after, until]`` between two nodes, int32 ``[2, kept]``.

    Args:
        source: Integers ``[interactions]``, the acting users.
        target: Integers ``[interactions]``, the authors of the posts.
        time: Integers ``[interactions]``, the times.
        node_of: int32 ``[users]``: the node of every user, negative for users who are not nodes. Users beyond the
            array are not nodes either.
        after: Begin of the interval, not part of it.
        until: End of the interval.
        loops: Whether users' interactions with themselves are kept.
    """
    nodes, kept, num_users = np.empty((2, source.shape[0]), np.int32), 0, node_of.shape[0]
    for i in range(source.shape[0]):
        if after < time[i] <= until and source[i] < num_users and target[i] < num_users:
            a, b = node_of[source[i]], node_of[target[i]]
            if a >= 0 and b >= 0 and (loops or a != b):
                nodes[0, kept], nodes[1, kept] = a, b
                kept += 1
    return nodes[:, :kept].copy()


@kernel
def each_once(source: NDArray[np.int32], target: NDArray[np.int32], nodes: int) -> NDArray[np.int64]:
    """Return pairs of nodes in rising order, each once; int64 ``[pairs, 2]``."""
    ptr = np.zeros(nodes + 1, np.int64)
    for a in source:
        ptr[a + 1] += 1
    for a in range(nodes):
        ptr[a + 1] += ptr[a]
    following, sorted_, kept = ptr[:-1].copy(), np.empty(source.shape[0], np.int64), 0
    for i in range(source.shape[0]):
        a = source[i]
        sorted_[following[a]] = target[i]
        following[a] += 1
    pairs = np.empty((source.shape[0], 2), np.int64)
    for a in range(nodes):
        neighbours = sorted_[ptr[a] : ptr[a + 1]]
        if neighbours.shape[0] > _FEW:
            neighbours.sort()
        else:
            _insert_in_order(neighbours)
        for i in range(neighbours.shape[0]):
            if i == 0 or neighbours[i] != neighbours[i - 1]:
                pairs[kept, 0], pairs[kept, 1] = a, neighbours[i]
                kept += 1
    return pairs[:kept].copy()


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
