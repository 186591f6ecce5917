"""Kernels of the simulated network: who follows whom, posts, and the engagement of their readers.

Every user has a separate random stream for each purpose, so users may be simulated in any order and in any parts.
"""

from __future__ import annotations

from typing import Any

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
def _draw_followed(
    state: NDArray[np.uint64],
    user: int,
    circle: NDArray[np.int32],
    second: NDArray[np.uint8],
    per_community: int,
    tickets: _Ints,
    ticket_ptr: NDArray[np.int64],
    shares: tuple[float, float, float],
) -> int:
    """Return whom a user follows next: a user of its circle, its communities or all, by popularity; -1 for itself."""
    draw = uniform(state)
    first, last = np.int64(0), np.int64(ticket_ptr.shape[0] - 1)
    if draw < shares[0]:
        first, last = np.int64(circle[user]), np.int64(circle[user] + 1)
    elif draw < shares[0] + shares[1]:
        first = np.int64(circle[user] // per_community * per_community)
        last = first + per_community
    elif draw < shares[0] + shares[1] + shares[2]:
        first = np.int64(second[user]) * per_community
        last = first + per_community
    begin, count = ticket_ptr[first], ticket_ptr[last] - ticket_ptr[first]
    if count <= 0:
        return -1
    drawn = tickets[begin + below(state, count)]
    return -1 if drawn == user else int(drawn)


@kernel
def follow(
    key: np.uint64,
    follows: _Ints,
    circle: NDArray[np.int32],
    second: NDArray[np.uint8],
    per_community: int,
    back: _Floats,
    tickets: _Ints,
    ticket_ptr: NDArray[np.int64],
    shares: tuple[float, float, float],
) -> tuple[NDArray[np.int64], _Ints]:
    """Draw who follows whom; return the followers of every user, one after the other, and where they begin.

    Args:
        key: Key of the network.
        follows: int32 ``[users]``, how many users each user follows, without following back.
        circle: int32 ``[users]``; the circles of a community are consecutive.
        second: uint8 ``[users]``, second community.
        per_community: Circles of every community.
        back: float ``[users]``, probability of following back.
        tickets: int32: users, by circle, each repeated in proportion to popularity.
        ticket_ptr: int64 ``[circles + 1]``, the tickets of each circle.
        shares: Shares of follows within the circle, the community and the second community.
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
                v = _draw_followed(state, u, circle, second, per_community, tickets, ticket_ptr, shares)
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
def _draw_reader(
    state: NDArray[np.uint64],
    author: int,
    topic: int,
    strangers: float,
    graph: tuple[NDArray[np.int64], _Ints, _Ints, NDArray[np.int64]],
) -> int:
    """Return who sees a post next: a follower of its author, or someone of the topic's community; -1 for nobody."""
    follower_ptr, followers, tickets, ticket_ptr = graph
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
def _record(
    events: tuple[NDArray[np.uint8], _Ints, _Ints, _Ints], row: int, kind: int, source: int, target: int, when: int
) -> int:
    """Write an interaction to a row if there is room; return the next row."""
    if row < events[0].shape[0]:
        events[0][row], events[1][row], events[2][row], events[3][row] = kind, source, target, when
    return row + 1


@inner
def _show(
    state: NDArray[np.uint64],
    seen: tuple[int, float, int, int, int],
    times: tuple[_Floats, _Floats, _Floats, _Floats],
    tastes: tuple[NDArray[np.uint8], NDArray[np.uint8], _Floats],
    author: tuple[_Floats, _Floats, _Floats, _Floats],
    graph: tuple[NDArray[np.int64], _Ints, _Ints, NDArray[np.int64]],
    reader: tuple[_Floats, _Floats, _Floats, _Floats],
    match: _Floats,
    delays: NDArray[np.int64],
    settings: NDArray[np.float64],
    events: tuple[NDArray[np.uint8], _Ints, _Ints, _Ints],
    happened: int,
) -> tuple[int, int, int, int]:
    """Show a post to its readers and its author; return likes, replies, reposts, and the number of interactions.

    ``seen`` is author, activity time, minute and topic of the post, and the number of readers; the other arguments are
    as for :func:`write_posts`.
    """
    u, at, minute, topic, views = seen
    join, leave = times[0], times[1]
    main, strangers, answers, quoted = tastes[0], tastes[2], author[2], author[3]
    like, repost, reply, quote = reader
    last = int(settings[5])
    likes = replies = reposts = 0
    for view in range(views + 1):
        f = u if view == views else _draw_reader(state, u, topic, strangers[u], graph)
        if f < 0 or at < join[f] or at > leave[f]:
            continue
        bits = next_u64(state)
        fit = match[main[f], topic]
        by_self = f == u
        likes += (not by_self) and _happens(bits, _S0, like[f] * fit)
        does_repost = _happens(bits, _S16, settings[3] if by_self else repost[f] * fit)
        does_reply = _happens(bits, _S32, settings[2] if by_self else reply[f] * fit)
        does_quote = _happens(bits, _S48, settings[4] if by_self else quote[f] * quoted[u] * fit)
        if not (does_repost or does_reply or does_quote):
            continue
        reposts += does_repost
        replies += does_reply
        when = min(minute + delays[below(state, QUANTILES)], last)
        for kind, does in ((REPOSTS, does_repost), (REPLIES, does_reply), (QUOTES, does_quote)):
            if does:
                happened = _record(events, happened, kind, f, u, when)
        if does_reply and not by_self and uniform(state) < answers[u] and when < last:
            happened = _record(events, happened, REPLIES, u, f, when + 1)
    return likes, replies, reposts, happened


@kernel
def write_posts(
    key: np.uint64,
    users: tuple[int, int],
    times: tuple[_Floats, _Floats, _Floats, _Floats],
    tastes: tuple[NDArray[np.uint8], NDArray[np.uint8], _Floats],
    author: tuple[_Floats, _Floats, _Floats, _Floats],
    graph: tuple[NDArray[np.int64], _Ints, _Ints, NDArray[np.int64]],
    reader: tuple[_Floats, _Floats, _Floats, _Floats],
    match: _Floats,
    corners: tuple[_Floats, _Floats, _Floats, _Floats],
    luck: tuple[_Floats, NDArray[np.int64]],
    settings: NDArray[np.float64],
    posts: tuple[_Ints, _Ints, _Ints, _Ints, _Ints, NDArray[np.uint8]],
    events: tuple[NDArray[np.uint8], _Ints, _Ints, _Ints],
) -> tuple[int, int]:
    """Simulate the posts of some users and the engagement with them; return the numbers of posts and interactions.

    A post is shown to followers of its author, drawn at random, and to a few others of the community of its topic. Each
    reader who is active at the time likes, reposts, replies to and quotes it with probabilities that depend on the
    topic, on the reader and on the quality of the post. Arrays that are too small are filled to their
    end; the returned numbers tell the required sizes.

    Args:
        key: Key of the network.
        users: First user and one past the last.
        times: Join and leave in activity time, posts per unit of it, drift; floats ``[users]``.
        tastes: Community and second community, uint8 ``[users]``; likelihood of meeting strangers, float ``[users]``.
        author: Quality, reach per unit of quality, probability to answer replies, and factor of being quoted, floats
            ``[users]``.
        graph: Starts of followers, followers, tickets, and starts of the tickets of every community.
        reader: Probabilities to like, repost, reply and quote a good post on the best topic, floats ``[users]``.
        match: float ``[communities, topics]``, factor of these probabilities.
        corners: Activity time and share of posts; share of posts and minutes: two piecewise linear functions.
        luck: Quantiles of the quality of a post, and of the delay of interactions in minutes.
        settings: Most posts of a user, most readers of a post, probabilities of replies, reposts and quotes of
            oneself, last minute.
        posts: User, time, likes, replies, reposts, topic: filled.
        events: Kind, source, target and time of interactions: filled.
    """
    join, leave, rate, drift = times
    main, second = tastes[0], tastes[1]
    quality, reach = author[0], author[1]
    shares_of_activity, shares, share_corners, minutes = corners
    quantiles, delays = luck
    most_posts, most_views = settings[0], int(settings[1])
    topics, room = match.shape[1], posts[0].shape[0]
    written = happened = 0
    for u in range(users[0], users[1]):
        state = seed(key, u, 0, POST_STREAM)
        active = leave[u] - join[u]
        for _ in range(stochastic(state, min(rate[u] * active, most_posts))):
            at = join[u] + active * uniform(state)
            share = interpolated(shares_of_activity, shares, at)
            minute = int(interpolated(share_corners, minutes, share))
            topic = _draw_topic(state, main[u], second[u], drift[u], at, topics)
            good = quality[u] * quantiles[below(state, QUANTILES)]
            views = min(stochastic(state, reach[u] * good), most_views)
            seen = u, at, minute, topic, views
            likes, replies, reposts, happened = _show(
                state, seen, times, tastes, author, graph, reader, match, delays, settings, events, happened
            )
            if written < room:
                posts[0][written], posts[1][written], posts[2][written] = u, minute, likes
                posts[3][written], posts[4][written], posts[5][written] = replies, reposts, topic
            written += 1
    return written, happened
