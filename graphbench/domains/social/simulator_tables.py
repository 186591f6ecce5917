"""Tables of the simulator: quantiles of distributions, the calendar, and how topics attract communities.

All tables are rounded to float32, so they do not depend on the last bit of the platform's mathematical functions.
"""

from __future__ import annotations

from datetime import date
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.social.tables import end_of_day

QUANTILES = 4096
START = date(2023, 2, 17)
DATES = (date(2023, 12, 11), date(2024, 1, 22), date(2024, 2, 20), date(2024, 3, 18))
SHARES = (0.0, 0.55, 0.70, 0.85, 1.0)
"""Shares of the posts until the start and the four dates (GraphBench, section 3.1.1)."""
_GROWTH = 1.8  # posts until a time before the first date grow with this power of the time
_BEFORE_FIRST = 64  # corners of the calendar before the first date

Floats = NDArray[np.float32]


def normal_quantiles() -> NDArray[np.float64]:
    """Return the middle quantiles of the standard normal distribution, float64 ``[4096]``."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse((i + 0.5) / QUANTILES) for i in range(QUANTILES)])


def lognormal_quantiles(sigma: float, mean: float = 1.0) -> Floats:
    """Return the quantiles of a log-normal distribution with a mean, float32 ``[4096]``."""
    values = np.exp(sigma * normal_quantiles())
    return np.asarray(values * (mean / values.mean()), np.float32)


def pareto_quantiles(exponent: float) -> Floats:
    """Return the quantiles of a Pareto distribution with minimum 1, float32 ``[4096]``."""
    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return np.asarray((1.0 - shares) ** (-1.0 / exponent), np.float32)


def calendar() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return shares of posts and the minutes by which they have been written: corners of a piecewise linear function.

    The shares of the four intervals are from the paper. Before the first date, posts grow with a power of time.
    """
    first, dates = end_of_day(START) - 1440, [end_of_day(day) for day in DATES]
    part = np.arange(_BEFORE_FIRST) / _BEFORE_FIRST
    shares = np.concatenate([SHARES[1] * part**_GROWTH, SHARES[1:]])
    minutes = np.concatenate([first + (dates[0] - first) * part, dates])
    return np.round(shares, 9), np.round(minutes)


def period_ends() -> NDArray[np.int64]:
    """Return the last minutes of the periods of contents, int64: calendar months, cut at the four dates.

    A month that contains a date is two periods, so that no content before a date contains a post after it.
    """
    start, end = np.datetime64(START, "M") + 1, np.datetime64(DATES[-1], "M")
    months = np.arange(start, end + 1).astype("datetime64[D]") - np.timedelta64(1, "D")
    ends = [end_of_day(day) for day in (*months.astype(object).tolist(), *DATES)]
    return np.unique(np.array(ends, np.int64))


def topic_shares(topics: int) -> Floats:
    """Return the share of users with each main topic, float32 ``[topics]``: it decreases as the root of the rank."""
    weights = 1.0 / np.sqrt(np.arange(topics) + 1.0)
    return np.asarray(weights / weights.sum(), np.float32)


def attraction(topics: int, same: float, near: float, far: float) -> Floats:
    """Return how much users of a community like posts of a topic, float32 ``[topics, topics]``.

    Topics lie on a ring: ``same`` holds for the community's topic, ``near`` for its two neighbours and ``far`` for
    all others.
    """
    distance = np.abs(np.subtract.outer(np.arange(topics), np.arange(topics)))
    distance = np.minimum(distance, topics - distance)
    return np.where(distance == 0, same, np.where(distance == 1, near, far)).astype(np.float32)
