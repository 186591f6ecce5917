"""What the simulated network keeps from models: how much engagement a post of every user is to expect.

A model sees the past engagement of a user through few posts with much luck in them. :func:`expected_engagement` knows
the quality of the user, who follows the user and how readily each follower reacts. A predictor with these numbers gives
a bound on the scores of models (``python -m benchmarks.social_ceiling``); they are never inputs of a dataset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.domains.social.calibration import Calibration
from graphbench.domains.social.simulator import arguments_of_network
from graphbench.domains.social.simulator_kernels import Audience, Calendar, Engagement, People

_USERS = 1 << 16  # whose followers are looked at together


def expected_engagement(
    users: int, seed: int, minute: int, *, calibration: Calibration | None = None
) -> NDArray[np.float64]:
    """Return the expected numbers of likes, replies and reposts of a post of every user, float64 ``[users, 3]``.

    The expectation is over the topic, the readers, their reactions and the luck of a post; the largest number of
    readers of a post is left out.

    Args:
        users: Number of users, as for :func:`~.simulator.simulate`.
        seed: Number of the history.
        minute: Time of the post, in minutes since 1970.
        calibration: Parameters of the network; None for the parameters of the datasets.
    """
    users = whole_number("users", users, 1)
    settings = Calibration() if calibration is None else calibration
    people, audience, calendar, engagement = arguments_of_network(users, seed, settings)
    at = _activity_time(calendar, minute)
    weights = _topic_weights(people, engagement, at)
    active = (people.join <= at) & (at <= people.leave)
    followers = np.diff(audience.follower_ptr)
    strangers = np.where(followers > 0, people.strangers, 1.0)
    views = people.reach * people.quality * engagement.luck.mean(dtype=np.float64)
    expected = np.empty((users, 3))
    for column, chance in enumerate((people.like, people.reply, people.repost)):
        reaction = chance * active
        among_followers = _of_followers(reaction, people, audience, engagement, weights)
        among_strangers = weights @ _of_communities(reaction, people, audience, engagement)
        expected[:, column] = views * ((1 - strangers) * among_followers + strangers * among_strangers)
    return expected + np.array([0.0, engagement.self_reply, engagement.self_repost])


def _activity_time(calendar: Calendar, minute: int) -> float:
    share = np.interp(minute, calendar.minutes_at, calendar.shares)
    return float(np.interp(share, calendar.shares_at, calendar.times))


def _topic_weights(people: People, engagement: Engagement, at: float) -> NDArray[np.float64]:
    """Return the distribution of the topic of a post of every user, float64 ``[users, topics]``."""
    users, topics = len(people.main), engagement.match.shape[1]
    moved = 0.85 * (0.2 + people.drift.astype(np.float64) * at)
    weights = np.full((users, topics), 0.15 / topics)
    np.add.at(weights, (np.arange(users), people.second), moved)
    np.add.at(weights, (np.arange(users), people.main), 0.85 - moved)
    return weights


def _of_followers(
    reaction: NDArray[np.floating],
    people: People,
    audience: Audience,
    engagement: Engagement,
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the probability that a random follower reacts to a post of every user, float64 ``[users]``."""
    match, communities = engagement.match, engagement.match.shape[0]
    chances = []
    for first in range(0, len(weights), _USERS):
        ptr = audience.follower_ptr[first : first + _USERS + 1]
        readers, counts = audience.followers[ptr[0] : ptr[-1]], np.diff(ptr)
        cell = np.repeat(np.arange(len(counts)) * communities, counts) + people.main[readers]
        reacting = np.zeros(len(counts))
        for fit in np.unique(match):  # probabilities end at 1, so each factor has a sum of its own
            likely = np.minimum(reaction[readers] * fit, 1.0)
            total = np.bincount(cell, likely, len(counts) * communities).reshape(-1, communities)
            reacting += (total * (weights[first : first + _USERS] @ (match == fit).T)).sum(1)
        chances.append(reacting / np.maximum(counts, 1))
    return np.concatenate(chances)


def _of_communities(
    reaction: NDArray[np.floating], people: People, audience: Audience, engagement: Engagement
) -> NDArray[np.float64]:
    """Return the probability that a random reader of the community of each topic reacts, float64 ``[topics]``."""
    counts = np.diff(audience.ticket_ptr)
    topic = np.repeat(np.arange(len(counts)), counts)
    fit = engagement.match[people.main[audience.tickets], topic]
    likely = np.minimum(reaction[audience.tickets] * fit, 1.0)
    return np.bincount(topic, likely, len(counts)) / np.maximum(counts, 1)
