"""A simulated social network: users who join, write, follow and react, from 17 February 2023 to 18 March 2024.

:func:`simulate` returns tables in the same format as the archive of Bluesky. One simulation gives the posts and
the interactions of all kinds, so that datasets of different kinds and dates are parts of the same history.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.ragged import offsets
from graphbench.data.arrays.seeds import stream_key
from graphbench.domains.social.calibration import Calibration
from graphbench.domains.social.content_kernels import content_rows
from graphbench.domains.social.simulator_kernels import (
    Audience,
    Calendar,
    Circles,
    Engagement,
    EventColumns,
    People,
    PostColumns,
    active_posts,
    follow,
    write_posts,
)
from graphbench.domains.social.simulator_tables import (
    DATES,
    QUANTILES,
    attraction,
    calendar,
    lognormal_quantiles,
    pareto_quantiles,
    period_ends,
    topic_shares,
)
from graphbench.domains.social.tables import KINDS, Contents, Interactions, Posts, end_of_day

VERSION = 2
"""Version of the simulator, increased whenever the same users and seed would give another network."""

_GRID = 4096
_USER_BATCH = 1 << 13
_EVENTS_PER_POST = 9  # room for events; a part with more events is simulated again

Array = NDArray[Any]


@dataclass(frozen=True)
class Network:
    """A simulated history.

    Attributes:
        posts: Posts by user, with their contents.
        topics: uint8 ``[P]``: topic of every post.
        interactions: Kind -> interactions.
        followers: int64 ``[users]``: followers of every user.
    """

    posts: Posts
    topics: NDArray[np.uint8]
    interactions: dict[str, Interactions]
    followers: NDArray[np.int64]


@dataclass(frozen=True)
class _Users:
    """Properties of users, arrays ``[users]``; see :class:`~.calibration.Calibration`."""

    main: NDArray[np.uint8]
    circle: NDArray[np.int32]
    second: NDArray[np.uint8]
    join: NDArray[np.float32]
    leave: NDArray[np.float32]
    rate: NDArray[np.float32]
    drift: NDArray[np.float32]
    popularity: NDArray[np.float32]
    quality: NDArray[np.float32]
    follows: NDArray[np.int32]
    eagerness: NDArray[np.float32]  # [users, 4]: factor of the probabilities to like, repost, reply and quote
    quoted: NDArray[np.float32]  # factor of the probability of being quoted
    style: NDArray[np.float32]  # [users, styles]: influences the contents of the user


def simulate(
    users: int, seed: int = 0, *, width: int = 64, threads: int = 1, calibration: Calibration | None = None
) -> Network:
    """Return the history of a network, a function of its arguments and :data:`VERSION` but not of ``threads``.

    Contents are a stand-in for embeddings of text: a fixed random projection of the topics of a user's posts in a
    period and of the user's style, plus noise.

    Args:
        users: Number of users, of whom some never post.
        seed: Number of the history.
        width: Columns of the contents.
        threads: Number of threads.
        calibration: Parameters of the network; None for the parameters of the datasets.

    Raises:
        ArgumentError: If a number is not whole and positive.
    """
    users, width = whole_number("users", users, 1), whole_number("width", width, 1)
    threads = whole_number("threads", threads, 1)
    settings = Calibration() if calibration is None else calibration
    key, people = _people(users, seed, settings)
    parts, followers = _write(key, people, settings, threads)
    posts, topics, interactions = _joined(parts)
    ends = period_ends()
    rows = content_rows(key, posts.user, posts.time, topics, ends, people.style, settings.topics, width, settings.noise)
    posts = Posts(posts.user, posts.time, posts.likes, posts.replies, posts.reposts, Contents(*rows))
    return Network(posts, topics, interactions, followers)


def arguments_of_network(
    users: int, seed: int, calibration: Calibration
) -> tuple[People, Audience, Calendar, Engagement]:
    """Return the properties of the users of a history, who follows whom, and how posts are received."""
    key, people = _people(users, seed, calibration)
    return _arguments(key, people, calibration)[0]


def _people(users: int, seed: int, calibration: Calibration) -> tuple[np.uint64, _Users]:
    key = stream_key("social.network", VERSION, str(seed))
    return key, _draw_users(np.random.Generator(np.random.Philox(int(key))), users, calibration)


def _draw_users(rng: np.random.Generator, users: int, calibration: Calibration) -> _Users:
    def drawn(quantiles: NDArray[np.float32]) -> NDArray[np.float32]:
        return quantiles[rng.integers(0, QUANTILES, users)]

    def share() -> NDArray[np.float32]:
        return rng.random(users, np.float32)

    bounds = np.cumsum(topic_shares(calibration.topics).astype(np.float64))
    main = np.searchsorted(bounds / bounds[-1], share(), side="right").clip(max=calibration.topics - 1).astype(np.uint8)
    step = np.where(
        share() < 0.5,
        rng.choice(np.array([1, calibration.topics - 1]), users),
        rng.integers(1, calibration.topics, users),
    )
    per_community = calibration.circles(users)
    sub = rng.integers(0, per_community, users)
    circle = (main.astype(np.int32) * per_community + sub).astype(np.int32)
    vigour = lognormal_quantiles(calibration.vigour_sigma)[
        rng.integers(0, QUANTILES, calibration.topics * per_community)
    ][circle]
    second = ((main + step) % calibration.topics).astype(np.uint8)
    join = np.interp(share(), calibration.join_shares, calibration.join_times).astype(np.float32)
    stays, part = share() < calibration.stays, share()
    leave = np.where(stays, np.float32(1), join + (1 - join) * part)
    popularity = np.minimum(drawn(pareto_quantiles(calibration.popularity_exponent)), calibration.most_popular * users)
    quality = drawn(lognormal_quantiles(calibration.quality_sigma))
    reacts = np.stack([share() < part for part in calibration.reacts], axis=1)
    common = drawn(lognormal_quantiles(calibration.eagerness_sigma))
    by_kind = [drawn(lognormal_quantiles(calibration.eagerness_sigma / 2)) for _ in range(4)]
    eagerness = reacts * np.stack([common * kind * vigour for kind in by_kind], axis=1)
    shown = [_standardised(values) for values in (quality, common, popularity, vigour)]
    style = np.stack(shown, axis=1) * np.array(calibration.style, np.float32)
    follows = np.minimum(
        drawn(lognormal_quantiles(calibration.follows_sigma, calibration.follows)), calibration.most_follows
    )
    return _Users(
        main=main,
        circle=circle,
        second=second,
        join=join,
        leave=leave.astype(np.float32),
        rate=drawn(lognormal_quantiles(calibration.rate_sigma, calibration.posts_per_user)),
        drift=share() * np.float32(calibration.drift),
        popularity=popularity.astype(np.float32),
        quality=quality,
        follows=follows.astype(np.int32),
        eagerness=eagerness.astype(np.float32),
        quoted=(share() < calibration.quotable).astype(np.float32),
        style=style,
    )


def _standardised(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the ranks of positive values, from -1 to 1, float32."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), np.float32)
    ranks[order] = np.linspace(-1.0, 1.0, len(values), dtype=np.float32)
    return ranks


def _tickets(people: _Users, circles: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return users by circle, each repeated in proportion to popularity, and the positions where circles begin."""
    order = np.argsort(people.circle, kind="stable").astype(np.int32)
    counts = np.maximum(1, np.rint(people.popularity[order])).astype(np.int64)
    return np.repeat(order, counts), offsets(np.bincount(people.circle[order], counts, circles).astype(np.int64))


def _arguments(
    key: np.uint64, people: _Users, calibration: Calibration
) -> tuple[tuple[People, Audience, Calendar, Engagement], NDArray[np.int64]]:
    """Return arguments of :func:`~.simulator_kernels.write_posts`, and the number of followers of every user."""
    users = len(people.main)
    per_community = calibration.circles(users)
    tickets, ticket_ptr = _tickets(people, calibration.topics * per_community)
    back = np.asarray(calibration.follow_back / (1.0 + people.popularity / 10.0), np.float32)
    circles = Circles(people.circle, people.second, per_community, tickets, ticket_ptr, calibration.follows_within)
    ptr, followers = follow(key, people.follows, back, circles)
    degree = np.diff(ptr)
    reach = np.asarray(calibration.reach * degree**calibration.reach_exponent, np.float32)
    expected = active_posts(people.join, people.leave, people.rate, _GRID)
    shares = np.round(expected / max(expected[-1], 1e-9), 9)
    rates = np.array(calibration.rates) * people.eagerness
    like, repost, reply, quote = (np.ascontiguousarray(rates[:, i], np.float32) for i in range(4))
    properties = People(
        join=people.join,
        leave=people.leave,
        rate=people.rate,
        drift=people.drift,
        main=people.main,
        second=people.second,
        strangers=np.full(users, calibration.strangers, np.float32),
        quality=people.quality,
        reach=reach,
        answers=np.full(users, calibration.answers, np.float32),
        quoted=people.quoted,
        like=like,
        repost=repost,
        reply=reply,
        quote=quote,
    )
    audience = Audience(ptr, followers, tickets, ticket_ptr[::per_community].copy())
    engagement = Engagement(
        match=attraction(calibration.topics, *calibration.attraction),
        luck=lognormal_quantiles(calibration.luck_sigma),
        delays=calibration.delays(),
        most_posts=float(calibration.most_posts),
        most_views=int(calibration.most_readers),
        self_reply=calibration.threads,
        self_repost=calibration.own_reposts,
        self_quote=calibration.own_quotes,
        last=end_of_day(DATES[-1]),
    )
    times = Calendar(np.linspace(0.0, 1.0, _GRID + 1), shares, *calendar())
    arguments = properties, audience, times, engagement
    return arguments, degree


_Parts = list[tuple[list[Array], list[list[Array]]]]
"""For each part of the users: columns of posts, and columns of interactions by kind."""


def _write(key: np.uint64, people: _Users, calibration: Calibration, threads: int) -> tuple[_Parts, NDArray[np.int64]]:
    """Return posts and interactions by parts, and the number of followers of every user."""
    arguments, degree = _arguments(key, people, calibration)
    most = np.ceil(np.minimum(people.rate * (people.leave - people.join), calibration.most_posts)).astype(np.int64)
    write: Any = write_posts

    def part(first: int) -> tuple[list[Array], list[list[Array]]]:
        last = min(first + _USER_BATCH, len(most))
        room = int(most[first:last].sum())
        posts: list[Array] = [np.empty(room, kind) for kind in (*[np.int32] * 5, np.uint8)]
        events_room = _EVENTS_PER_POST * room
        while True:
            events: list[Array] = [np.empty(events_room, kind) for kind in (np.uint8, *[np.int32] * 3)]
            written, happened = write(key, (first, last), *arguments, PostColumns(*posts), EventColumns(*events))
            if happened <= events_room:
                break
            events_room = happened
        of, *rows = (column[:happened] for column in events)
        by_kind = [[column[of == number] for column in rows] for number in range(len(KINDS))]
        return [column[:written].copy() for column in posts], by_kind

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(part, range(0, len(most), _USER_BATCH))), degree


def _joined(parts: _Parts) -> tuple[Posts, NDArray[np.uint8], dict[str, Interactions]]:
    """Return posts, their topics, and interactions; the parts are emptied to save memory."""
    interactions = {}
    for number, kind in enumerate(KINDS):
        source, target, time = (np.concatenate([events[number][i] for _, events in parts]) for i in range(3))
        interactions[kind] = Interactions(source, target, time)
        for _, events in parts:
            events[number].clear()
    user, time, likes, replies, reposts, topics = (np.concatenate([posts[i] for posts, _ in parts]) for i in range(6))
    parts.clear()
    return Posts(user, time, likes, replies, reposts), topics, interactions
