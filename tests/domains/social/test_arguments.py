"""Arguments of the functions of social networks and weather that make no sense are refused in one line."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.domains.social import simulate, snapshot
from graphbench.domains.weather import latitude_weights, loss_weights
from graphbench.tasks.forecast import weather_scores


@pytest.mark.parametrize("users", [0, -3, 2.5, "100", None, True])
def test_users_are_a_positive_number(users):
    with pytest.raises(ArgumentError, match="users"):
        simulate(users)


def test_widths_and_threads_are_positive():
    with pytest.raises(ArgumentError, match="width"):
        simulate(500, width=0)
    with pytest.raises(ArgumentError, match="threads"):
        simulate(500, threads=0)


def test_times_are_minutes():
    network = simulate(500)
    days = [date(2023, 2, 17), date(2023, 12, 11), date(2024, 1, 22)]
    with pytest.raises(ArgumentError, match="t0"):
        snapshot(network.posts, network.interactions, *days, "replies")


def test_weights_of_weather():
    with pytest.raises(ArgumentError, match="latitudes must be"):
        latitude_weights([np.nan, 0, 1])
    with pytest.raises(ArgumentError, match=r"weights\['foo'\] is 3"):
        loss_weights(weights={"foo": 3})
    with pytest.raises(ArgumentError, match=r"weights\['temperature'\] is -3"):
        loss_weights(weights={"temperature": -3})
    with pytest.raises(ArgumentError, match="variables is empty"):
        loss_weights(variables=[])


def test_fields_without_a_grid_need_latitudes():
    fields = np.zeros((2, 2047, 83))
    with pytest.raises(EvaluationError, match=r"2047 points.*32 latitudes"):
        weather_scores(fields, fields)
