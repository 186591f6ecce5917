"""Snapshots of a social network: who interacted until a time, what they wrote, and the engagement that followed.

Source: GraphBench (Stoll et al., 2025), sections 3.1.1 and A.1. What the paper leaves open follows the public package
of its authors, release 0.2.0, and is said below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.data.runs import offsets
from graphbench.domains.social.snapshot_kernels import add_rows, count_posts, medians, pairs_between
from graphbench.domains.social.tables import COUNTS, KINDS, Contents, Interactions, Posts

Median = Literal["mean", "lower"]
_ROWS_AT_ONCE = 1 << 16
_DENSE = 4  # user numbers up to this many times the number of rows are used as they are


@dataclass(frozen=True)
class Snapshot:
    """The graph of an interval ``(t0, t1]``, and the engagement in ``(t1, t2]``.

    Attributes:
        users: int64 ``[n]``: the users, in rising order; node ``i`` is ``users[i]``.
        edges: int64 ``[E, 2]``: arcs of nodes, from who quoted, replied or reposted to whose post it was; sorted, each
            listed once.
        content: float32 ``[n, d]``: mean of the user's content in ``(t0, t1]`` over periods; zeros without any.
        posts: int64 ``[n]``: number of posts in ``(t0, t1]``, at least 1.
        past: float32 ``[n, 3]``: log(1 + median) of the likes, replies and reposts of these posts.
        targets: float32 ``[n, 3]``: the same of the posts in ``(t1, t2]``.
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
    median: Median = "mean",
    loops: bool = True,
) -> Snapshot:
    """Return the graph of the interactions in ``(t0, t1]`` with the engagement in ``(t1, t2]`` as targets.

    Nodes are the users who posted in both intervals and have an edge. An edge is a pair with at least one interaction
    of the kind in ``(t0, t1]``. Users who interacted with themselves have a loop, as in the published graphs, and a
    loop counts as an edge.

    Nothing after ``t1`` enters ``content``, ``posts`` and ``past``, nor the edges between two nodes; what happens in
    ``(t1, t2]`` decides the targets and, by who posts, which users are nodes. Nothing after ``t2`` has any influence.
    Counts of posts are those of the day on which they were collected, for past posts as for others.

    Args:
        posts: The posts; ``content`` has no columns if they have no contents.
        interactions: Kind -> the interactions.
        t0: Begin, in minutes since 1970; not part of the interval.
        t1: End of what models see.
        t2: End of what is predicted.
        kind: ``quotes``, ``replies`` or ``reposts``.
        median: Of an even number of counts: ``mean`` of the two in the middle, or the ``lower`` one, as published.
        loops: Whether users' interactions with themselves are edges.

    Raises:
        ArgumentError: If the times are not in order, the kind or ``median`` is unknown, a user is negative or a count
            is, or there is no node.
    """
    _check(posts, interactions, t0, t1, t2, kind, median)
    numbers, posts, own = _dense_numbers(posts, interactions[kind])
    size = int(posts.user.max(initial=-1)) + 1
    earlier, later = (count_posts(posts.user, posts.time, size, *span) for span in ((t0, t1), (t1, t2)))
    kept = np.where((earlier > 0) & (later > 0), 0, -1)
    pairs = np.unique(pairs_between(own.source, own.target, own.time, kept, t0, t1, loops))
    source, target = np.divmod(pairs, max(size, 1))
    has_edge = np.zeros(size, bool)
    has_edge[source] = has_edge[target] = True
    users = np.flatnonzero(has_edge)
    if not len(users):
        raise ArgumentError(
            f"no user who posted in both intervals has an edge of {kind} ({len(posts):,} posts, {len(own):,} "
            "interactions); give more users or other times"
        )
    place = np.full(size, -1, np.int64)
    place[users] = np.arange(len(users))
    return Snapshot(
        users=users if numbers is None else numbers[users],
        edges=np.stack([place[source], place[target]], axis=1),
        content=_mean_content(posts.contents, place, len(users), t0, t1),
        posts=earlier[users],
        past=_log_medians(posts, place, earlier[users], t0, t1, median),
        targets=_log_medians(posts, place, later[users], t1, t2, median),
    )


def _check(
    posts: Posts, interactions: Mapping[str, Interactions], t0: int, t1: int, t2: int, kind: str, median: str
) -> None:
    if kind not in KINDS:
        raise ArgumentError(f"kind={kind!r} is unknown; use one of {', '.join(KINDS)}")
    if kind not in interactions:
        raise ArgumentError(f"interactions lacks {kind!r}; it has {', '.join(interactions) or 'none'}")
    if not t0 < t1 < t2:
        raise ArgumentError(f"the times {t0}, {t1}, {t2} are not in order; give t0 < t1 < t2, in minutes")
    if median not in ("mean", "lower"):
        raise ArgumentError(f"median={median!r} is unknown; use 'mean' or 'lower'")
    own = interactions[kind]
    columns: dict[str, NDArray[Any]] = {f"posts.{name}": getattr(posts, name) for name in ("user", *COUNTS)}
    columns |= {f"interactions.{name}": getattr(own, name) for name in ("source", "target")}
    for name, column in columns.items():
        if column.min(initial=0) < 0:
            raise ArgumentError(f"{name} has {column.min()} in row {int(column.argmin())}; give numbers from 0 on")


def _dense_numbers(posts: Posts, own: Interactions) -> tuple[NDArray[np.int64] | None, Posts, Interactions]:
    """Return the tables with users numbered by their rank among those who post, if their numbers are sparse.

    Also returns the user of every rank, rising, or None if the numbers stay as they are.
    """
    if posts.user.max(initial=0) <= _DENSE * len(posts) + _ROWS_AT_ONCE:
        return None, posts, own
    known = np.unique(posts.user).astype(np.int64)

    def rank(users: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        ranks = np.searchsorted(known, users)
        return ranks, known[np.minimum(ranks, len(known) - 1)] == users

    contents = posts.contents
    if contents is not None:
        ranks, is_known = rank(contents.user)
        contents = Contents(ranks[is_known], contents.time[is_known], contents.vectors[is_known])
    (source, from_known), (target, to_known) = rank(own.source), rank(own.target)
    both = from_known & to_known
    ranked = replace(posts, user=rank(posts.user)[0], contents=contents)
    return known, ranked, Interactions(source[both], target[both], own.time[both])


def _log_medians(
    posts: Posts, place: NDArray[np.int64], counts: NDArray[np.int64], after: int, until: int, median: Median
) -> NDArray[np.float32]:
    ptr, lower = offsets(counts), median == "lower"
    columns = [
        medians(place, posts.user, posts.time, getattr(posts, name), ptr, after, until, lower) for name in COUNTS
    ]
    return np.log1p(np.stack(columns, axis=1)).astype(np.float32)


def _mean_content(
    contents: Contents | None, place: NDArray[np.int64], nodes: int, after: int, until: int
) -> NDArray[np.float32]:
    if contents is None:
        return np.zeros((nodes, 0), np.float32)
    sums = np.zeros((nodes, contents.vectors.shape[1]), np.float32)
    counts = np.zeros(nodes, np.int64)
    for first in range(0, len(contents.user), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        user, time = contents.user[rows].astype(np.int64), contents.time[rows]
        is_known = (user < len(place)) & (after < time) & (time <= until)
        owner = np.where(is_known, place[np.where(is_known, user, 0)], -1)
        add_rows(sums, counts, owner, np.ascontiguousarray(contents.vectors[rows], np.float32))
    return np.asarray(sums / np.maximum(counts, 1)[:, None], np.float32)
