"""Kernels of the simulated network: who follows whom, posts, and the engagement of their readers.

Every user has a separate random stream for each purpose, so users may be simulated in any order and in any parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, seed, uniform
from graphbench.domains.social.simulator_tables import QUANTILES

FOLLOW_STREAM, POST_STREAM = 2, 3
QUOTES, REPLIES, REPOSTS = 0, 1, 2
_Floats = NDArray[np.floating[Any]]
_Ints = NDArray[np.int32]
_LAST = np.uint64(0xFFFF)
_SCALE = 1.0 / 65536.0
_S0, _S16, _S32, _S48 = np.uint64(0), np.uint64(16), np.uint64(32), np.uint64(48)


class Circles(NamedTuple):
    """The groups of users among which follows are drawn."""

    circle: _Ints  # int32 [users]; the circles of a community are consecutive
    second: NDArray[np.uint8]  # [users], second community
    per_community: int  # circles of every community
    tickets: _Ints  # users, by circle, each repeated in proportion to popularity
    ticket_ptr: NDArray[np.int64]  # [circles + 1], the tickets of each circle
    shares: tuple[float, float, float]  # of follows within the circle, the community and the second community


class People(NamedTuple):
    """Properties of users, one value per user."""

    join: _Floats  # activity time
    leave: _Floats  # activity time
    rate: _Floats  # posts per unit of activity time
    drift: _Floats  # of the topics of posts, from the main to the second community
    main: NDArray[np.uint8]  # community
    second: NDArray[np.uint8]  # second community
    strangers: _Floats  # probability that a reader of a post is a stranger
    quality: _Floats
    reach: _Floats  # readers of a post of quality 1
    answers: _Floats  # probability to answer a reply
    quoted: _Floats  # factor of the probability of being quoted
    like: _Floats  # probability to like a good post on the best topic
    repost: _Floats  # as are the following fields: probabilities to repost, reply and quote
    reply: _Floats
    quote: _Floats


class Audience(NamedTuple):
    """The users who may see a post."""

    follower_ptr: NDArray[np.int64]  # [users + 1], the followers of each user
    followers: _Ints
    tickets: _Ints  # users, by community, each repeated in proportion to popularity
    ticket_ptr: NDArray[np.int64]  # [communities + 1], the tickets of each community


class Calendar(NamedTuple):
    """Two piecewise linear functions: from activity time to the share of posts so far, and from this share to minutes.

    Each function is two arrays, its corners, which are rising, and its values there.
    """

    times: NDArray[np.float64]
    shares_at: NDArray[np.float64]
    shares: NDArray[np.float64]
    minutes_at: NDArray[np.float64]


class Engagement(NamedTuple):
    """How posts are received."""

    match: _Floats  # [communities, topics], factor of the probabilities of a reader
    luck: _Floats  # quantiles of the quality of a post
    delays: NDArray[np.int64]  # quantiles of the delay of interactions, in minutes
    most_posts: float  # of a user
    most_views: int  # readers of a post
    self_reply: float  # probability to reply to a post of oneself
    self_repost: float
    self_quote: float
    last: int  # last minute of the history


class PostColumns(NamedTuple):
    """Columns of posts, filled by :func:`write_posts`; one row per post."""

    user: _Ints
    time: _Ints
    likes: _Ints
    replies: _Ints
    reposts: _Ints
    topic: NDArray[np.uint8]


class EventColumns(NamedTuple):
    """Columns of interactions, filled by :func:`write_posts`; one row per interaction."""

    kind: NDArray[np.uint8]
    source: _Ints
    target: _Ints
    time: _Ints


class Post(NamedTuple):
    """A post that is shown to readers."""

    author: int
    at: float  # activity time
    minute: int
    topic: int
    views: int  # number of readers


@inner
def stochastic(state: NDArray[np.uint64], value: float) -> int:
    """Round a value at random to a whole number, up with the probability of its fractional part; the mean is exact."""
    whole = int(value)
    return whole + (1 if uniform(state) < value - whole else 0)


@inner
def interpolated(corners: _Floats, values: _Floats, at: float) -> float:
    """Return the value at ``at`` of a piecewise linear function; corners are rising."""
    right = np.searchsorted(corners, at)
    if right == 0:
        return values[0]
    if right >= corners.shape[0]:
        return values[corners.shape[0] - 1]
    low, high = corners[right - 1], corners[right]
    return values[right - 1] + (values[right] - values[right - 1]) * (at - low) / (high - low)


@inner
def _draw_followed(state: NDArray[np.uint64], user: int, circles: Circles) -> int:
    """Draw whom a user follows next: a user of its circle, its communities or all, by popularity; -1 for itself."""
    circle, per_community, shares, ticket_ptr = (
        circles.circle,
        circles.per_community,
        circles.shares,
        circles.ticket_ptr,
    )
    draw = uniform(state)
    first, last = np.int64(0), np.int64(ticket_ptr.shape[0] - 1)
    if draw < shares[0]:
        first, last = np.int64(circle[user]), np.int64(circle[user] + 1)
    elif draw < shares[0] + shares[1]:
        first = np.int64(circle[user] // per_community * per_community)
        last = first + per_community
    elif draw < shares[0] + shares[1] + shares[2]:
        first = np.int64(circles.second[user]) * per_community
        last = first + per_community
    begin, count = ticket_ptr[first], ticket_ptr[last] - ticket_ptr[first]
    if count <= 0:
        return -1
    drawn = circles.tickets[begin + below(state, count)]
    return -1 if drawn == user else int(drawn)


@kernel
def follow(key: np.uint64, follows: _Ints, back: _Floats, circles: Circles) -> tuple[NDArray[np.int64], _Ints]:
    """Draw who follows whom; return the followers of every user, one after the other, and where they begin.

    Args:
        key: Key of the network.
        follows: int32 ``[users]``, how many users each user follows, without following back.
        back: float ``[users]``, probability of following back.
        circles: The groups of users among which follows are drawn.
    """
    users = follows.shape[0]
    ptr = np.zeros(users + 1, np.int64)
    followers = np.empty(0, np.int32)
    for fill in range(2):
        if fill:
            for u in range(users):
                ptr[u + 1] += ptr[u]
            followers = np.empty(ptr[users], np.int32)
            for u in range(users, 0, -1):
                ptr[u] = ptr[u - 1]
            ptr[0] = 0
        for u in range(users):  # drawn twice, first to count, because keeping the pairs would cost more memory
            state = seed(key, u, 0, FOLLOW_STREAM)
            for _ in range(follows[u]):
                v = _draw_followed(state, u, circles)
                returned = uniform(state)
                if v < 0:
                    continue
                if fill:
                    followers[ptr[v + 1]] = u
                ptr[v + 1] += 1
                if returned < back[v]:
                    if fill:
                        followers[ptr[u + 1]] = v
                    ptr[u + 1] += 1
    return ptr, followers


@kernel
def active_posts(join: _Floats, leave: _Floats, rate: _Floats, grid: int) -> NDArray[np.float64]:
    """Return the expected number of posts until each corner of a grid of activity time, float64 ``[grid + 1]``."""
    slope = np.zeros(grid + 2, np.float64)
    for u in range(join.shape[0]):
        first, last = join[u] * grid, leave[u] * grid
        if last <= first:
            continue
        density = rate[u]
        i, j = int(first), int(last)
        if i == j:
            slope[i] += density * (last - first)
            slope[i + 1] -= density * (last - first)
            continue
        slope[i] += density * (i + 1 - first)
        slope[i + 1] += density * (first - i)
        slope[j] -= density * (j + 1 - last)
        slope[j + 1] -= density * (last - j)
    total = np.zeros(grid + 1, np.float64)
    running = 0.0
    for i in range(grid):
        running += slope[i]
        total[i + 1] = total[i] + running
    return total


@inner
def _draw_topic(state: NDArray[np.uint64], main: int, second: int, drift: float, at: float, topics: int) -> int:
    """Return the topic of a post: it drifts from the author's main topic to the second topic, or is any topic."""
    draw = uniform(state)
    if draw < 0.15:
        return below(state, topics)
    return second if draw < 0.15 + 0.85 * (0.2 + drift * at) else main


@inner
def _draw_reader(state: NDArray[np.uint64], author: int, topic: int, strangers: float, audience: Audience) -> int:
    """Draw who sees a post next: a follower of its author, or someone of the topic's community; -1 for nobody."""
    follower_ptr, followers, tickets, ticket_ptr = audience
    degree = follower_ptr[author + 1] - follower_ptr[author]
    if degree > 0 and uniform(state) >= strangers:
        return int(followers[follower_ptr[author] + below(state, degree)])
    count = ticket_ptr[topic + 1] - ticket_ptr[topic]
    return int(tickets[ticket_ptr[topic] + below(state, count)]) if count > 0 else -1


@inner
def _happens(bits: np.uint64, shift: np.uint64, probability: float) -> bool:
    """Return whether an event of a given probability happens, decided by 16 random bits from ``shift`` on."""
    return float((bits >> shift) & _LAST) * _SCALE < probability


@inner
def _record(events: EventColumns, row: int, kind: int, source: int, target: int, when: int) -> int:
    """Write an interaction to a row if there is room; return the next row."""
    if row < events.kind.shape[0]:
        events.kind[row], events.source[row], events.target[row], events.time[row] = kind, source, target, when
    return row + 1


@inner
def _show(
    state: NDArray[np.uint64],
    post: Post,
    people: People,
    audience: Audience,
    engagement: Engagement,
    events: EventColumns,
    happened: int,
) -> tuple[int, int, int, int]:
    """Show a post to its readers and its author; return likes, replies, reposts, and the number of interactions.

    ``happened`` is the number of interactions so far; the interactions with the post are the following rows of
    ``events``.
    """
    u, last = post.author, engagement.last
    likes = replies = reposts = 0
    for view in range(post.views + 1):
        f = u if view == post.views else _draw_reader(state, u, post.topic, people.strangers[u], audience)
        if f < 0 or post.at < people.join[f] or post.at > people.leave[f]:
            continue
        bits = next_u64(state)
        fit = engagement.match[people.main[f], post.topic]
        by_self = f == u
        likes += (not by_self) and _happens(bits, _S0, people.like[f] * fit)
        does_repost = _happens(bits, _S16, engagement.self_repost if by_self else people.repost[f] * fit)
        does_reply = _happens(bits, _S32, engagement.self_reply if by_self else people.reply[f] * fit)
        quotes_another = people.quote[f] * people.quoted[u] * fit
        does_quote = _happens(bits, _S48, engagement.self_quote if by_self else quotes_another)
        if not (does_repost or does_reply or does_quote):
            continue
        reposts += does_repost
        replies += does_reply
        when = min(post.minute + engagement.delays[below(state, QUANTILES)], last)
        for kind, does in ((REPOSTS, does_repost), (REPLIES, does_reply), (QUOTES, does_quote)):
            if does:
                happened = _record(events, happened, kind, f, u, when)
        if does_reply and not by_self and uniform(state) < people.answers[u] and when < last:
            happened = _record(events, happened, REPLIES, u, f, when + 1)
    return likes, replies, reposts, happened


@kernel
def write_posts(
    key: np.uint64,
    users: tuple[int, int],
    people: People,
    audience: Audience,
    calendar: Calendar,
    engagement: Engagement,
    posts: PostColumns,
    events: EventColumns,
) -> tuple[int, int]:
    """Simulate the posts of some users and the engagement with them; return the numbers of posts and interactions.

    A post is shown to followers of its author, drawn at random, and to a few others of the community of its topic. Each
    reader who is active at the time likes, reposts, replies to and quotes it with probabilities that depend on the
    topic, on the reader and on the quality of the post. Arrays that are too small are filled to their
    end; the returned numbers tell the required sizes.

    Args:
        key: Key of the network.
        users: First user and one past the last.
        people: Properties of all users.
        audience: Followers of all users, and users by community.
        calendar: The times of posts.
        engagement: How posts are received.
        posts: Filled.
        events: Filled.
    """
    topics, room = engagement.match.shape[1], posts.user.shape[0]
    written = happened = 0
    for u in range(users[0], users[1]):
        state = seed(key, u, 0, POST_STREAM)
        active = people.leave[u] - people.join[u]
        for _ in range(stochastic(state, min(people.rate[u] * active, engagement.most_posts))):
            at = people.join[u] + active * uniform(state)
            share = interpolated(calendar.times, calendar.shares_at, at)
            minute = int(interpolated(calendar.shares, calendar.minutes_at, share))
            topic = _draw_topic(state, people.main[u], people.second[u], people.drift[u], at, topics)
            good = people.quality[u] * engagement.luck[below(state, QUANTILES)]
            views = min(stochastic(state, people.reach[u] * good), engagement.most_views)
            post = Post(u, at, minute, topic, views)
            likes, replies, reposts, happened = _show(state, post, people, audience, engagement, events, happened)
            if written < room:
                posts.user[written], posts.time[written], posts.likes[written] = u, minute, likes
                posts.replies[written], posts.reposts[written], posts.topic[written] = replies, reposts, topic
            written += 1
    return written, happened
