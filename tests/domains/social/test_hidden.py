"""The expected engagement of simulated users, against the engagement of many simulated posts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphbench.domains.social import hidden, simulate
from graphbench.domains.social.calibration import Calibration
from graphbench.domains.social.hidden import expected_engagement
from graphbench.domains.social.tables import COUNTS

USERS = 1500
STEADY = replace(  # nobody joins or leaves, and topics do not drift, so that all posts of a user are alike
    Calibration(), join_shares=(0.0, 1.0), join_times=(0.0, 1e-6), stays=1.0, drift=0.0, luck_sigma=0.5,
    posts_per_user=400.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def history():
    return simulate(USERS, 3, width=8, calibration=STEADY)


def test_means_of_many_posts_are_the_expected_numbers(history, monkeypatch):
    posts = history.posts
    expected = expected_engagement(USERS, 3, int(np.median(posts.time)), calibration=STEADY)
    counts = np.bincount(posts.user, minlength=USERS)
    for column, name in enumerate(COUNTS):
        sums = np.bincount(posts.user, getattr(posts, name), USERS)
        assert sums.sum() == pytest.approx((expected[:, column] * counts).sum(), rel=0.02), name
        many = counts > 300
        means = sums[many] / counts[many]
        assert np.corrcoef(means, expected[many, column])[0, 1] > 0.99, name
    monkeypatch.setattr(hidden, "_USERS", 130)
    parts = expected_engagement(USERS, 3, int(np.median(posts.time)), calibration=STEADY)
    np.testing.assert_allclose(parts, expected, rtol=1e-12)


def test_users_who_have_left_react_no_more():
    leaving = replace(STEADY, stays=0.0)
    early, late = (expected_engagement(USERS, 3, minute, calibration=leaving) for minute in (27_960_000, 28_500_000))
    assert late[:, 0].sum() < 0.5 * early[:, 0].sum()
