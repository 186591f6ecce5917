"""Scores of weather forecasts against plain loops over cells."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphbench.core.errors import EvaluationError
from graphbench.domains.weather import CHANNELS, LEVELS
from graphbench.tasks.forecast import weather_scores
from graphbench.tasks.forecast.weatherbench import WeatherSums

LATITUDES = [-67.5, -22.5, 22.5, 67.5]


def _fields(seed, times=3, longitudes=6):
    random = np.random.default_rng(seed)
    return {
        "2m_temperature": random.normal(280, 10, (times, longitudes, 4)),
        "temperature": random.normal(250, 5, (times, 2, longitudes, 4)),
    }


def _areas():
    return [math.sin(math.radians(x + 22.5)) - math.sin(math.radians(x - 22.5)) for x in LATITUDES]


def _by_loops(truth, forecast, usual):
    """Return mse, rmse, bias and acc of fields [times, longitudes, latitudes]."""
    areas = _areas()
    squares, weighted, bias, total, acc = [], 0.0, 0.0, 0.0, []
    for t in range(len(truth)):
        ab = aa = bb = 0.0
        for i in range(truth.shape[1]):
            for j in range(4):
                error = forecast[t, i, j] - truth[t, i, j]
                squares.append(error**2)
                weighted += areas[j] * error**2
                bias += areas[j] * error
                total += areas[j]
                a, b = forecast[t, i, j] - usual[t, i, j], truth[t, i, j] - usual[t, i, j]
                ab, aa, bb = ab + areas[j] * a * b, aa + areas[j] * a * a, bb + areas[j] * b * b
        acc.append(ab / math.sqrt(aa * bb))
    return sum(squares) / len(squares), math.sqrt(weighted / total), bias / total, sum(acc) / len(acc)


def test_scores_by_loops():
    truth, forecast, usual = _fields(0), _fields(1), _fields(2)
    found = weather_scores(truth, forecast, usual, latitudes=LATITUDES)
    assert list(found) == ["mse", "rmse", "bias", "acc"]
    expected = _by_loops(truth["2m_temperature"], forecast["2m_temperature"], usual["2m_temperature"])
    for metric, value in zip(found, expected, strict=True):
        assert found[metric]["2m_temperature"] == pytest.approx(value)
    for level in range(2):
        own = [fields["temperature"][:, level] for fields in (truth, forecast, usual)]
        for metric, value in zip(found, _by_loops(*own), strict=True):
            assert found[metric]["temperature"][level] == pytest.approx(value)


def test_without_latitudes_the_grid_is_equiangular():
    truth, forecast = _fields(0), _fields(1)
    found, expected = weather_scores(truth, forecast), weather_scores(truth, forecast, latitudes=LATITUDES)
    np.testing.assert_allclose(found["rmse"]["temperature"], expected["rmse"]["temperature"])


def test_states_as_one_array():
    random = np.random.default_rng(3)
    truth, forecast, usual = random.standard_normal((3, 2, 4 * 32, 83))
    found = weather_scores(truth, forecast, usual)
    fields = {}
    for name, array in (("truth", truth), ("forecast", forecast), ("usual", usual)):
        cube = array.reshape(2, 4, 32, 83)
        column = {channel: cube[..., c] for c, channel in enumerate(CHANNELS)}
        fields[name] = {
            "2m_temperature": column["2m_temperature"],
            "vertical_velocity": np.stack([column[f"vertical_velocity_{level}"] for level in LEVELS], axis=1),
        }
    same = weather_scores(fields["truth"], fields["forecast"], fields["usual"])
    for metric in ("mse", "rmse", "bias", "acc"):
        assert found[metric]["2m_temperature"] == pytest.approx(same[metric]["2m_temperature"])
        np.testing.assert_allclose(found[metric]["vertical_velocity"], same[metric]["vertical_velocity"])


def test_sums_do_not_depend_on_how_times_are_split():
    truth, forecast, usual = np.random.default_rng(4).standard_normal((3, 5, 24, 2))
    whole, parts = WeatherSums(2, LATITUDES), WeatherSums(2, LATITUDES)
    whole.add(truth, forecast, usual)
    parts.add(truth[:2], forecast[:2], usual[:2])
    parts.add(truth[2:], forecast[2:], usual[2:])
    for name in ("mse", "rmse", "bias", "acc"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))


def test_a_perfect_forecast_and_the_climatology():
    truth, usual = _fields(0), _fields(2)
    perfect = weather_scores(truth, truth, usual)
    assert perfect["rmse"]["2m_temperature"] == 0
    assert perfect["acc"]["2m_temperature"] == pytest.approx(1)
    assert math.isnan(weather_scores(truth, usual, usual)["acc"]["2m_temperature"])  # it has no anomaly


def test_wrong_fields_are_refused():
    truth, broken = _fields(0), _fields(1)
    broken["temperature"][1, 0, 2, 3] = np.nan
    with pytest.raises(EvaluationError, match=r"temperature.*nan at time 1"):
        weather_scores(truth, broken)
    with pytest.raises(EvaluationError, match="the forecast lacks 'temperature'"):
        weather_scores(truth, {"2m_temperature": truth["2m_temperature"]})
    with pytest.raises(EvaluationError, match=r"the shape \[2, 6, 4, 1\] in the forecast"):
        weather_scores(truth, {**truth, "2m_temperature": truth["2m_temperature"][:2]})
    with pytest.raises(EvaluationError, match=r"give \[times, points, 83\]"):
        weather_scores(np.zeros((2, 128, 80)), np.zeros((2, 128, 80)))
    with pytest.raises(EvaluationError, match="does not fit 5 latitudes"):
        weather_scores(truth, truth, latitudes=[-60, -30, 0, 30, 60])
