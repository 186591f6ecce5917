"""What recorded states say: their checks, times, and the laws that link their variables."""

from __future__ import annotations

import numpy as np
import pytest

import graphbench
from graphbench.data.build.generation import draw_samples
from graphbench.domains.weather import CHANNELS
from graphbench.domains.weather.checks import check_states, describe_states
from graphbench.domains.weather.generators import states_as_samples
from graphbench.domains.weather.times import clock, dates, hours_since_epoch, months


@pytest.fixture
def samples(recorded):
    states, hours = recorded
    return states_as_samples(states.copy(), hours, np.zeros(len(hours), np.int64))


def channel(samples, name):
    return samples.values["state"][:, CHANNELS.index(name)]


def test_recorded_states_pass_their_check(samples):
    assert check_states(samples, 16) == []


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("temperature_400", 8.0, "hydrostatic balance"),
        ("geopotential_500", 1500.0, "hydrostatic balance"),
        ("2m_temperature", 100.0, "2m_temperature has values"),
        ("total_precipitation_6hr", -0.1, "total_precipitation_6hr has values"),
        ("mean_sea_level_pressure", np.nan, "mean_sea_level_pressure has values"),
    ],
)
def test_spoiled_states_are_found(samples, name, change, message):
    channel(samples, name)[...] += change
    (problem,) = [text for text in check_states(samples, 16) if message in text]
    assert problem


def test_a_clock_that_does_not_belong_to_the_time_is_found(samples):
    samples.values["time"][3] += 24 * 90
    assert check_states(samples, 16) == ["clock does not belong to time"]


def test_statistics_by_loops(samples):
    found = describe_states(samples, 16)
    cube = channel(samples, "2m_temperature").reshape(17, 32, 16).astype(float)
    bounds = np.deg2rad(np.linspace(-90, 90, 17))
    for t in (0, 16):
        total = sum(cube[t, :, j].mean() * (np.sin(bounds[j + 1]) - np.sin(bounds[j])) for j in range(16)) / 2
        assert found["t2m"][t] == pytest.approx(total)
        wind = channel(samples, "u_component_of_wind_250").reshape(17, 32, 16)[t].mean(axis=0)
        assert found["jet_north"][t] == pytest.approx(wind[8:].max(), rel=1e-6)
    assert 2 < found["rain_mm_per_day"].mean() < 3.5  # the real atmosphere has 2.7
    assert 25 < found["jet_south"].mean() < 45
    assert 9.9e4 < found["msl"].mean() < 1.03e5


def test_times():
    hours = hours_since_epoch(np.array(["1959-01-01T00", "2001-01-01T06", "2000-07-02T12"], "datetime64[h]"))
    assert hours[0] == 0
    assert hours[1] == (42 * 365 + 11) * 24 + 6  # 42 years with 11 leap days, 1960 to 2000, to the end of 2000
    assert dates(hours)[1] == np.datetime64("2001-01-01T06")
    assert months(hours).tolist() == [0, 0, 6]
    found = clock(hours)
    np.testing.assert_allclose(found[0], [0, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(found[1, 2:], [1, 0], atol=1e-6)  # 06 UTC
    np.testing.assert_allclose(found[2], [0, -1, 0, -1], atol=0.02)  # half a year, noon


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_recorded_states_are_those_of_the_card(recorded):
    pytest.importorskip("jcm")
    from graphbench.domains.weather import grid_latitudes, grid_longitudes, regrid

    states, hours = recorded
    card = graphbench.card("weather/sim_t21")
    drawn = draw_samples(card.graphs, "train", np.arange(2))
    from graphbench.data.arrays.quantisation import unpacked

    cube = np.moveaxis(unpacked(card.graph_schema, drawn).values["state"].reshape(2, 64, 32, 83), -1, 1)
    coarse = regrid(cube, (grid_longitudes(64), grid_latitudes(32)), (grid_longitudes(32), grid_latitudes(16)))
    expected = np.moveaxis(coarse.reshape(2, 83, -1), 1, 2)
    scale = np.array(card.packed["state"].scale)
    assert np.abs((states[:2] - expected) / scale).max() < 0.02
    np.testing.assert_array_equal(drawn.values["time"], hours[:2])
