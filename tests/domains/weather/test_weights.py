"""Weights of latitudes and channels against the formulas written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError
from graphbench.domains.weather import CHANNELS, LEVELS, grid_latitudes, latitude_weights, loss_weights
from graphbench.domains.weather.channels import channel_names
from graphbench.domains.weather.weights import channel_weights


def test_channels_of_the_paper():
    assert len(CHANNELS) == 83
    assert CHANNELS[:5] == (
        "2m_temperature",
        "10m_u_component_of_wind",
        "10m_v_component_of_wind",
        "mean_sea_level_pressure",
        "total_precipitation_6hr",
    )
    assert CHANNELS[5] == "temperature_50"
    assert CHANNELS[-1] == "vertical_velocity_1000"
    assert channel_names((500, 850), ("geopotential", "2m_temperature")) == (
        "geopotential_500",
        "geopotential_850",
        "2m_temperature",
    )


def test_cosine_weights():
    latitudes = grid_latitudes(32)
    assert latitudes[0] == -87.1875
    cosines = [math.cos(math.radians(latitude)) for latitude in latitudes]
    expected = [c / (sum(cosines) / 32) for c in cosines]
    np.testing.assert_allclose(latitude_weights(latitudes), expected)


def test_area_weights_are_areas_of_zones():
    latitudes = [-80.0, -10.0, 0.0, 30.0, 75.0]
    bounds = [-90.0, -45.0, -5.0, 15.0, 52.5, 90.0]
    areas = [math.sin(math.radians(b)) - math.sin(math.radians(a)) for a, b in itertools.pairwise(bounds)]
    np.testing.assert_allclose(latitude_weights(latitudes, kind="area"), [5 * a / sum(areas) for a in areas])


def test_loss_weights_of_section_3_4():
    found = dict(zip(CHANNELS, loss_weights(), strict=True))
    mean = sum(LEVELS) / 13
    assert found["2m_temperature"] == 1
    assert found["mean_sea_level_pressure"] == 0.1
    assert found["geopotential_500"] == pytest.approx(500 / mean)
    assert found["vertical_velocity_50"] == pytest.approx(50 / mean)
    of_temperature = [found[f"temperature_{level}"] for level in LEVELS]
    assert sum(of_temperature) == pytest.approx(13)  # the weights of levels have mean 1


def test_loss_weights_of_chosen_variables():
    found = loss_weights([500, 1000], ["temperature", "2m_temperature"], {"temperature": 2.0})
    np.testing.assert_allclose(found, [2 * 500 / 750, 2 * 1000 / 750, 1])


def test_weights_by_names_of_channels():
    np.testing.assert_allclose(channel_weights(CHANNELS), loss_weights())
    np.testing.assert_allclose(channel_weights(CHANNELS[::-1]), loss_weights()[::-1])
    np.testing.assert_allclose(channel_weights(["temperature_500", "temperature_1000"]), [2 / 3, 4 / 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: latitude_weights([0.0, -1.0]), "ascend"),
        (lambda: latitude_weights([0.0, 95.0]), "ascend"),
        (lambda: latitude_weights([0.0, 1.0], kind="cosine"), "'cos' or 'area'"),
        (lambda: loss_weights([500, -1]), "positive"),
        (lambda: loss_weights([500], ["temprature"]), "temperature"),
        (lambda: channel_weights(["temperature"]), "unknown channel 'temperature'"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
