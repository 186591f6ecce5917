"""Kernels of snapshots: passes over tables that are not sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

_FEW = 24  # up to this many values are sorted by insertion
_CLASSES = 16  # of counts of likes, replies and reposts: 0, 1, ... 14, and larger ones

Integers = NDArray[np.integer[Any]]


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


@inner
def _class_of(count: np.integer[Any]) -> np.uint64:
    """Return a count, or ``_CLASSES - 1`` for larger counts."""
    return np.uint64(count if count < _CLASSES - 1 else _CLASSES - 1)


@inner
def _chosen(values: Integers, time: Integers, after: int, until: int, count: int) -> Integers:
    """Return the values at times in ``(after, until]``; ``count`` is their number."""
    chosen, i = np.empty(count, values.dtype), 0
    for j in range(values.shape[0]):
        if after < time[j] <= until:
            chosen[i] = values[j]
            i += 1
    return chosen


@inner
def _median_of_small(counts: NDArray[np.int32], first: int, total: int, lower: bool) -> float:
    """Return the median of counted values 0, 1, ...; -1 if larger values decide.

    Args:
        counts: int32: ``counts[first + value]`` is how often a value below ``_CLASSES - 1`` occurs.
        first: Position of the value 0.
        total: Number of all values, at least 1.
        lower: As for :func:`engagement`.
    """
    low_rank, high_rank, below, low = (total - 1) // 2, total // 2, 0, -1
    for value in range(_CLASSES - 1):
        below += counts[np.uint64(first + value)]
        if low < 0 and below > low_rank:
            low = value
            if lower:
                return float(low)
        if below > high_rank:
            return (float(low) + float(value)) / 2.0
    return -1.0


@kernel
def rising(values: Integers) -> bool:
    """Return whether no value is below its predecessor."""
    falls = 0
    for i in range(1, values.shape[0]):
        falls += values[i] < values[i - 1]
    return falls == 0


@kernel
def order_by(values: Integers, size: int) -> NDArray[np.int64]:
    """Return the positions of values in rising order, equal values in their order; values are in ``[0, size)``."""
    ptr = np.zeros(size + 1, np.int64)
    for value in values:
        ptr[np.int64(value) + 1] += 1
    for group in range(size):
        ptr[group + 1] += ptr[group]
    order = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        index = np.int64(values[i])
        order[ptr[index]] = i
        ptr[index] += 1
    return order


@kernel
def engagement(
    user: Integers,
    time: Integers,
    columns: tuple[Integers, Integers, Integers],
    times: tuple[int, int, int],
    lower: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the users with posts in ``(t0, t1]`` and in ``(t1, t2]``, and the medians of these posts' counts.

    Args:
        user: Integers ``[posts]``, the authors, rising.
        time: Integers ``[posts]``, the times.
        columns: Three counts of the posts, of the same type, from 0 on.
        times: ``(t0, t1, t2)``.
        lower: Whether the median of an even number of values is the lower of the two middle values, not their mean.

    Returns:
        The users, int64 ``[n]``, rising; their numbers of posts in the first interval, int64 ``[n]``; and the medians
        in both intervals, float64 ``[n, 2, 3]``.
    """
    total, runs = user.shape[0], 0
    for i in range(total):
        runs += i == 0 or user[i] != user[i - 1]
    users, posts = np.empty(runs, np.int64), np.empty(runs, np.int64)
    medians = np.empty((runs, 2, 3), np.float64)
    counts = np.zeros(4 * 3 * _CLASSES, np.int32)  # of the values of a user's posts, by interval and column
    likes, replies, reposts = columns
    t0, t1, t2 = times
    kept = first = 0
    while first < total:
        end, author = first, user[first]
        while end < total and user[end] == author:
            when = time[end]
            interval = np.uint64(when > t0) + np.uint64(when > t1) + np.uint64(when > t2)
            row = interval * np.uint64(3 * _CLASSES)
            counts[row + _class_of(likes[end])] += 1
            counts[row + np.uint64(_CLASSES) + _class_of(replies[end])] += 1
            counts[row + np.uint64(2 * _CLASSES) + _class_of(reposts[end])] += 1
            end += 1
        earlier = later = 0
        for i in range(_CLASSES):
            earlier += counts[3 * _CLASSES + i]
            later += counts[6 * _CLASSES + i]
        if earlier and later:
            users[kept], posts[kept] = author, earlier
            for part in range(2):
                after, until, size = (t0, t1, earlier) if part == 0 else (t1, t2, later)
                for c in range(3):
                    median = _median_of_small(counts, (3 * part + 3 + c) * _CLASSES, size, lower)
                    if median < 0:
                        values = _chosen(columns[c][first:end], time[first:end], after, until, size)
                        median = _median(values, lower)
                    medians[kept, part, c] = median
            kept += 1
        for i in range(counts.shape[0]):
            counts[i] = 0
        first = end
    return users[:kept], posts[:kept], medians[:kept]


@kernel
def kept_pairs(
    source: Integers, target: Integers, time: Integers, node_of: NDArray[np.int32], after: int, until: int, loops: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the two nodes of the interactions in ``(after, until]`` between two nodes, both int32 ``[kept]``.

    Args:
        source: Integers ``[interactions]``, the acting users.
        target: Integers ``[interactions]``, the authors of the posts.
        time: Integers ``[interactions]``, the times.
        node_of: int32 ``[users]``, at least one: the node of every user, negative for users who are not nodes. Users
            beyond the array are not nodes either.
        after: Begin of the interval, not part of it.
        until: End of the interval.
        loops: Whether users' interactions with themselves are kept.
    """
    first, second = np.empty(source.shape[0] + 1, np.int32), np.empty(source.shape[0] + 1, np.int32)
    kept, last = np.uint64(0), np.uint64(node_of.shape[0] - 1)  # indices without a sign need no test for negative ones
    for i in range(source.shape[0]):  # without branches: which interactions are kept is as good as random
        u, v, when = np.uint64(source[i]), np.uint64(target[i]), time[i]
        a, b = node_of[min(u, last)], node_of[min(v, last)]
        first[kept], second[kept] = a, b
        is_kept = (when > after) & (when <= until) & (u <= last) & (v <= last) & ((a | b) >= 0)
        kept += np.uint64(is_kept & (loops | (a != b)))
    return first[:kept], second[:kept]


@kernel
def each_once(source: NDArray[np.int32], target: NDArray[np.int32], nodes: int) -> NDArray[np.int32]:
    """Return pairs of nodes in rising order, each once; int32 ``[2, pairs]``.

    The pairs are placed by target, and then by source, so the targets of a source arrive in rising order. There are
    fewer than 2**31 pairs.
    """
    one, count = np.uint64(1), source.shape[0]
    by_target, ptr = np.zeros(nodes + 1, np.int32), np.zeros(nodes + 1, np.int32)
    for i in range(count):
        ptr[np.uint64(source[i]) + one] += 1
        by_target[np.uint64(target[i]) + one] += 1
    for a in range(nodes):
        ptr[a + 1] += ptr[a]
        by_target[a + 1] += by_target[a]
    sources, following = np.empty(count, np.int32), by_target[:-1].copy()
    for i in range(count):
        target_node = np.uint64(target[i])
        position = following[target_node]
        sources[np.uint64(position)] = source[i]
        following[target_node] = position + 1
    targets, following, latest = np.empty(count, np.int32), ptr[:-1].copy(), np.full(nodes, -1, np.int32)
    for b in range(nodes):
        for i in range(by_target[b], by_target[b + 1]):
            source_node = np.uint64(sources[i])
            position = following[source_node]
            targets[np.uint64(position)] = b  # of a repeated pair the next target of the source takes this position
            following[source_node] = position + np.int32(latest[source_node] != b)
            latest[source_node] = b
    pairs, kept = np.empty((2, count), np.int32), 0
    for a in range(nodes):
        for i in range(ptr[a], following[a]):
            pairs[0, kept], pairs[1, kept] = a, targets[i]
            kept += 1
    return pairs[:, :kept]


@kernel
def renumbered(pairs: NDArray[np.int32], nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes that have a pair, int64, rising, and the pairs with numbers of these nodes, int64 ``[E, 2]``."""
    number = np.full(nodes, -1, np.int64)
    for i in range(pairs.shape[1]):
        number[pairs[0, i]] = number[pairs[1, i]] = 0
    kept, count = np.empty(nodes, np.int64), 0
    for node in range(nodes):
        if number[node] == 0:
            number[node], kept[count] = count, node
            count += 1
    edges = np.empty((pairs.shape[1], 2), np.int64)
    for i in range(pairs.shape[1]):
        edges[i, 0], edges[i, 1] = number[pairs[0, i]], number[pairs[1, i]]
    return kept[:count].copy(), edges


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
