"""Snapshots of a social network: interactions and texts until a time, and the engagement that followed.

Source: GraphBench (Stoll et al., 2025), sections 3.1.1 and A.1. Details that the paper leaves open follow release 0.2.0
of its authors' public package, and are stated below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError
from graphbench.domains.social.snapshot_kernels import (
    add_rows,
    each_once,
    engagement,
    kept_pairs,
    order_by,
    renumbered,
    rising,
)
from graphbench.domains.social.tables import COUNTS, KINDS, Contents, Interactions, Posts

Median = Literal["mean", "lower"]
_ROW_BATCH, _PAIR_BATCH = 1 << 16, 1 << 23
_LARGEST_TABLE = 1 << 26  # users with numbers below this are looked up in a table


@dataclass(frozen=True)
class Snapshot:
    """The graph of an interval ``(t0, t1]``, and the engagement in ``(t1, t2]``.

    Attributes:
        users: int64 ``[n]``: the users, in rising order; node ``i`` is ``users[i]``.
        edges: int64 ``[E, 2]``: arcs of nodes, from the user who quoted, replied or reposted to the author of the post;
            sorted, each listed once.
        content: float32 ``[n, d]``: mean of the user's content in ``(t0, t1]`` over periods; zeros without any.
        posts: int64 ``[n]``: number of posts in ``(t0, t1]``, at least 1.
        past: float32 ``[n, 3]``: log(1 + lower median) of the likes, replies and reposts of these posts.
        targets: float32 ``[n, 3]``: the same for the posts in ``(t1, t2]``.
    """

    users: NDArray[np.int64]
    edges: NDArray[np.int64]
    content: NDArray[np.float32]
    posts: NDArray[np.int64]
    past: NDArray[np.float32]
    targets: NDArray[np.float32]


def snapshot(
    posts: Posts,
    interactions: Mapping[str, Interactions],
    t0: int,
    t1: int,
    t2: int,
    kind: str,
    *,
    median: Median = "lower",
    loops: bool = True,
) -> Snapshot:
    """Return the graph of the interactions in ``(t0, t1]`` with the engagement in ``(t1, t2]`` as targets.

    Nodes are the users who posted in both intervals and have an edge. An edge is a pair with at least one interaction
    of the kind in ``(t0, t1]``. Users who interacted with themselves have a loop, as in the published graphs, and a
    loop counts as an edge.

    Nothing after ``t1`` enters ``content``, ``posts`` and ``past``, nor the edges between two nodes; the events in
    ``(t1, t2]`` determine the targets and, through the authors of posts, the set of nodes. Nothing after ``t2`` has any
    influence. Counts of posts, past ones included, are from the day on which the posts were collected.

    Args:
        posts: The posts; ``content`` has no columns if they have no contents.
        interactions: Kind -> the interactions.
        t0: Begin, in minutes since 1970; not part of the interval.
        t1: End of the inputs.
        t2: End of the targets.
        kind: ``quotes``, ``replies`` or ``reposts``.
        median: Definition of the median of an even number of counts: the ``lower`` one of the two middle ones, as in
            all datasets and as published, or their ``mean``.
        loops: Whether users' interactions with themselves are edges.

    Raises:
        ArgumentError: If the times are not in order, the kind or ``median`` is unknown, a user or a count is
            negative, or there is no node.
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind={kind!r} is unknown; use one of {', '.join(KINDS)}")
    if kind not in interactions:
        raise ArgumentError(f"interactions lacks {kind!r}; it has {', '.join(interactions) or 'none'}")
    contents = () if posts.contents is None else (posts.contents,)
    result = snapshot_of_parts((posts,), (interactions[kind],), contents, (t0, t1, t2), median=median, loops=loops)
    if result is None:
        raise ArgumentError(
            f"no user who posted in both intervals has an edge of {kind} ({len(posts):,} posts, "
            f"{len(interactions[kind]):,} interactions); give more users or other times"
        )
    return result


def snapshot_of_parts(
    posts: Iterable[Posts],
    interactions: Iterable[Interactions],
    contents: Iterable[Contents],
    times: tuple[int, int, int],
    *,
    median: Median = "lower",
    loops: bool = True,
) -> Snapshot | None:
    """Return a snapshot of tables in parts, with one part of each table in memory at a time; see `snapshot`.

    Args:
        posts: Parts of the posts; all posts of a user are in one part.
        interactions: Parts of the interactions of one kind.
        contents: Parts of the contents.
        times: ``(t0, t1, t2)``.
        median: As for `snapshot`.
        loops: As for `snapshot`.

    Returns:
        The snapshot, or None if no user who posted in both intervals has an edge.

    Raises:
        ArgumentError: As for `snapshot`; also if a user has posts in two parts.
    """
    t0, t1, t2 = (whole_number(name, time) for name, time in zip(("t0", "t1", "t2"), times, strict=True))
    times = t0, t1, t2
    if not t0 < t1 < t2:
        raise ArgumentError(f"the times {t0}, {t1}, {t2} are not in order; give t0 < t1 < t2, in minutes")
    if median not in ("mean", "lower"):
        raise ArgumentError(f"median={median!r} is unknown; use 'mean' or 'lower'")
    kept = _joined([_engagement(part, times, median) for part in posts])
    pairs = _pairs(interactions, _Places(kept.users), t0, t1, loops)
    nodes, edges = renumbered(pairs, len(kept.users))
    if not len(nodes):
        return None
    users = kept.users[nodes]
    past, targets = np.ascontiguousarray(np.log1p(kept.medians[nodes]).astype(np.float32).transpose(1, 0, 2))
    return Snapshot(
        users=users,
        edges=edges,
        content=_mean_content(contents, _Places(users), len(users), t0, t1),
        posts=kept.posts[nodes],
        past=past,
        targets=targets,
    )


@dataclass(frozen=True)
class _Engagement:
    """Users who posted in both intervals, and the engagement with their posts.

    Attributes:
        users: int64 ``[n]``, rising.
        posts: int64 ``[n]``, numbers of posts in the first interval.
        medians: float64 ``[n, 2, 3]``, medians of likes, replies and reposts in the two intervals.
    """

    users: NDArray[np.int64]
    posts: NDArray[np.int64]
    medians: NDArray[np.float64]


def _engagement(posts: Posts, times: tuple[int, int, int], median: Median) -> _Engagement:
    for name in ("user", *COUNTS):
        _check_sign(f"posts.{name}", getattr(posts, name))
    posts.__post_init__()  # its columns may have been replaced since
    kind = np.result_type(posts.likes, posts.replies, posts.reposts)
    user, time = posts.user, posts.time
    likes, replies, reposts = (getattr(posts, name).astype(kind, copy=False) for name in COUNTS)
    if not rising(user):
        order = _order(user)
        user, time, likes, replies, reposts = (column[order] for column in (user, time, likes, replies, reposts))
    return _Engagement(*engagement(user, time, (likes, replies, reposts), times, median == "lower"))


def _order(user: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions of users in rising order."""
    largest = int(user.max(initial=-1))
    if largest >= _LARGEST_TABLE or largest > 4 * len(user) + _ROW_BATCH:
        return np.argsort(user, kind="stable")
    return order_by(user, largest + 1)


def _joined(parts: list[_Engagement]) -> _Engagement:
    if len(parts) == 1:
        return parts[0]
    users = np.concatenate([np.empty(0, np.int64), *(part.users for part in parts)])
    order = np.argsort(users)
    users = users[order]
    twice = np.flatnonzero(users[1:] == users[:-1])
    if len(twice):
        raise ArgumentError(f"user {users[twice[0]]} has posts in two parts; give all posts of a user in one part")
    if not parts:
        return _Engagement(users, users, np.empty((0, 2, 3), np.float64))
    posts, medians = (np.concatenate([getattr(part, name) for part in parts]) for name in ("posts", "medians"))
    return _Engagement(users, posts[order], medians[order])


class _Places:
    """The position of every user in a list of users.

    Args:
        users: int64, rising.
    """

    def __init__(self, users: NDArray[np.int64]) -> None:
        self._users = users
        self._table: NDArray[np.int32] | None = None
        largest = int(users.max(initial=-1))
        if largest < _LARGEST_TABLE:
            self._table = np.full(largest + 2, -1, np.int32)
            self._table[users] = np.arange(len(users))

    def __len__(self) -> int:
        """Return the number of users."""
        return len(self._users)

    def pairs(
        self, rows: Interactions, part: slice, after: int, until: int, loops: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the positions of both users of interactions in an interval, if both are listed, int32 ``[kept]``."""
        source, target, time = rows.source[part], rows.target[part], rows.time[part]
        if self._table is not None:
            return kept_pairs(source, target, time, self._table, after, until, loops)
        nodes = np.stack([self.of(source), self.of(target)])
        kept = (nodes >= 0).all(axis=0) & (time > after) & (time <= until)
        source_nodes, target_nodes = nodes[:, kept if loops else kept & (nodes[0] != nodes[1])].astype(np.int32)
        return source_nodes, target_nodes

    def of(self, users: NDArray[Any]) -> NDArray[np.int64]:
        """Return the position of each user, int64; -1 for users who are not listed."""
        if self._table is not None:
            return self._table[np.minimum(users, len(self._table) - 1)].astype(np.int64)
        position = np.searchsorted(self._users, users)
        is_there = self._users[np.minimum(position, len(self._users) - 1)] == users
        return np.where(is_there, position, -1)


def _pairs(parts: Iterable[Interactions], places: _Places, after: int, until: int, loops: bool) -> NDArray[np.int32]:
    """Return the pairs of kept users who interacted in an interval, rising, each once; int32 ``[2, pairs]``."""
    users = len(places)
    batches = [np.empty((2, 0), np.int32)]
    for part in parts:
        _check_sign("interactions.source", part.source)
        _check_sign("interactions.target", part.target)
        for first in range(0, len(part), _PAIR_BATCH):
            rows = slice(first, first + _PAIR_BATCH)
            source, target = places.pairs(part, rows, after, until, loops)
            batches.append(each_once(source, target, users))
    if len(batches) <= 2:
        return batches[-1]
    source, target = np.concatenate(batches, axis=1)
    return each_once(source, target, users)


def _check_sign(name: str, column: NDArray[Any]) -> None:
    if column.min(initial=0) < 0:
        raise ArgumentError(f"{name} has {column.min()} in row {int(column.argmin())}; give numbers from 0 on")


def _mean_content(
    parts: Iterable[Contents], places: _Places, nodes: int, after: int, until: int
) -> NDArray[np.float32]:
    sums, counts = np.zeros((nodes, 0), np.float32), np.zeros(nodes, np.int64)
    for part in parts:
        if not sums.shape[1]:
            sums = np.zeros((nodes, part.vectors.shape[1]), np.float32)
        for first in range(0, len(part.user), _ROW_BATCH):
            rows = slice(first, first + _ROW_BATCH)
            is_known = (part.time[rows] > after) & (part.time[rows] <= until)
            owner = places.of(part.user[rows][is_known])
            add_rows(sums, counts, owner, np.ascontiguousarray(part.vectors[rows][is_known], np.float32))
    return np.asarray(sums / np.maximum(counts, 1)[:, None].astype(np.float32), np.float32)
