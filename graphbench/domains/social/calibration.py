"""The constants of the simulated network, chosen so that its snapshots resemble the published ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.social.simulator_tables import normal_quantiles


@dataclass(frozen=True)
class Calibration:
    """The parameters of a simulated network.

    Activity time runs from 0 to 1; posts are spread over it so that their shares before the dates of the snapshots
    match the paper.

    Attributes:
        topics: Number of topics; each is the main one of a community.
        most_circles: Most circles of a community; its users mostly follow each other.
        circle_users: Mean number of users of a circle of the smallest communities' size; circles of small networks are
            fewer, not smaller.
        join_shares: Shares of the users who have joined by ``join_times``.
        join_times: Activity times.
        stays: Share of users who stay until the end; others leave at a uniform time after they joined.
        posts_per_user: Mean number of posts in a unit of activity time.
        rate_sigma: Deviation of the logarithm of that number.
        most_posts: Most posts of a user.
        drift: Largest share of the posts that move from the main to the second topic.
        popularity_exponent: Of the Pareto distribution by which users are followed.
        most_popular: Largest popularity, as a share of the users.
        quality_sigma: Deviation of the logarithm of the quality of authors.
        luck_sigma: Deviation of the logarithm of a post's quality relative to the quality of its author.
        follows: Mean number of users whom a user follows.
        follows_sigma: Deviation of its logarithm.
        most_follows: Most users whom a user follows.
        follows_within: Shares of follows within the user's circle, the user's community and the second community.
        follow_back: Probability that an unpopular user follows back.
        reach: Readers of a post of an author with one follower.
        reach_exponent: The number of readers grows with this power of the number of followers.
        most_readers: Most readers of a post.
        strangers: Share of readers who do not follow the author.
        reacts: Shares of users who ever like, repost, reply to and quote posts.
        eagerness_sigma: Deviation of the logarithm of how readily users react.
        vigour_sigma: Deviation of the logarithm of how readily the users of a circle react.
        attraction: Factors of reactions to posts on the community's topic, a neighbouring topic and any other topic.
        rates: Probabilities to like, repost, reply to and quote a post on the community's topic.
        quotable: Share of authors who are ever quoted by others.
        answers: Probability that an author answers a reply.
        threads: Probability that an author replies to one of their posts.
        own_reposts: Probability that an author reposts one of their posts.
        own_quotes: Probability that an author quotes one of their posts.
        delay: Median number of minutes between a post and an interaction.
        delay_sigma: Deviation of its logarithm.
        style: How much of the ranks of a user's quality, eagerness and popularity, and of the vigour of its circle
            shows in contents, relative to the topics, which have weight 1.
        noise: Deviation of the noise of users and of the noise of periods in contents.
    """

    topics: int = 32
    most_circles: int = 16
    circle_users: int = 200
    join_shares: tuple[float, ...] = (0.0, 0.45, 0.75, 0.815, 0.86, 0.965, 1.0)
    join_times: tuple[float, ...] = (0.0, 0.02, 0.45, 0.65, 0.75, 0.8, 1.0)
    stays: float = 0.72
    posts_per_user: float = 45.0
    rate_sigma: float = 1.35
    most_posts: float = 2000.0
    drift: float = 0.5
    popularity_exponent: float = 1.3
    most_popular: float = 0.02
    quality_sigma: float = 0.8
    luck_sigma: float = 1.1
    follows: float = 160.0
    follows_sigma: float = 1.1
    most_follows: float = 3000.0
    follows_within: tuple[float, float, float] = (0.35, 0.2, 0.2)
    follow_back: float = 0.35
    reach: float = 1.0
    reach_exponent: float = 0.7
    most_readers: float = 4000.0
    strangers: float = 0.2
    reacts: tuple[float, float, float, float] = (0.95, 0.85, 0.85, 0.24)
    eagerness_sigma: float = 0.6
    vigour_sigma: float = 0.6
    attraction: tuple[float, float, float] = (1.0, 0.5, 0.2)
    rates: tuple[float, float, float, float] = (0.4, 0.215, 0.096, 0.485)
    quotable: float = 0.5
    answers: float = 0.3
    threads: float = 0.05
    own_reposts: float = 0.005
    own_quotes: float = 0.001
    delay: float = 90.0
    delay_sigma: float = 1.8
    style: tuple[float, float, float, float] = (0.08, 0.05, 0.05, 0.1)
    noise: tuple[float, float] = (0.6, 0.6)

    def circles(self, users: int) -> int:
        """Return the number of circles of every community in a network of some users."""
        return max(1, min(self.most_circles, users // (self.topics * self.circle_users)))

    def delays(self) -> NDArray[np.int64]:
        """Return the quantiles of delays in minutes, int64 ``[4096]``, at most two weeks."""
        minutes = np.rint(self.delay * np.exp(self.delay_sigma * normal_quantiles()))
        return np.minimum(minutes, 14 * 1440).astype(np.int64)
