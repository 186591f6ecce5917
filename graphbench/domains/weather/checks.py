"""Checks of states by physical laws that link their variables, and statistics of the climate."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.latitudes import grid_latitudes, latitude_weights
from graphbench.data.arrays.samples import Samples
from graphbench.domains.weather.channels import CHANNELS
from graphbench.domains.weather.times import clock
from graphbench.domains.weather.vertical import DRY_AIR

Floats = NDArray[np.float64]

_RANGES = {  # of every value, wide enough for the real atmosphere
    "2m_temperature": (170.0, 340.0),
    "10m_u_component_of_wind": (-80.0, 80.0),
    "10m_v_component_of_wind": (-80.0, 80.0),
    "mean_sea_level_pressure": (8.5e4, 1.1e5),
    "total_precipitation_6hr": (-1e-6, 0.5),
    "temperature": (150.0, 340.0),
    "u_component_of_wind": (-200.0, 200.0),
    "v_component_of_wind": (-200.0, 200.0),
    "geopotential": (-1.5e4, 2.3e5),
    "specific_humidity": (-1e-4, 0.04),
    "vertical_velocity": (-20.0, 20.0),
}
_LAYER = (300, 400, 500)  # hPa; above the ground everywhere but on the highest mountains
_HYDROSTATIC = 0.02  # part of a layer's thickness by which it may differ


def range_of(channel: str) -> tuple[float, float]:
    """Return the smallest and the largest possible value of a channel."""
    return _RANGES[channel if channel in _RANGES else channel.rpartition("_")[0]]


def check_states(samples: Samples, latitudes: int) -> list[str]:
    """Return the problems of states, by checks of ranges, hydrostatic balance of heights and temperatures, and clocks.

    The thickness of the layer from 500 to 300 hPa is integrated from temperature and humidity, and compared with the
    difference of geopotentials.

    Args:
        samples: The states, not quantised.
        latitudes: Number of latitudes of the grid.
    """
    states = _cubes(samples, latitudes).reshape(len(samples), -1, len(CHANNELS)).astype(np.float64)
    problems = []
    for c, name in enumerate(CHANNELS):
        low, high = range_of(name)
        values = states[..., c]
        if not np.isfinite(values).all() or values.min() < low or values.max() > high:
            problems.append(f"{name} has values from {values.min():g} to {values.max():g}, outside {low:g} to {high:g}")
    thickness = _channel(states, "geopotential_300") - _channel(states, "geopotential_500")
    expected = np.zeros_like(thickness)
    for above, below in pairwise(_LAYER):
        virtual = [
            _channel(states, f"temperature_{level}") * (1 + 0.61 * _channel(states, f"specific_humidity_{level}"))
            for level in (above, below)
        ]
        expected += DRY_AIR * (virtual[0] + virtual[1]) / 2 * np.log(below / above)
    worst = float(np.abs(thickness / expected - 1).max())
    if worst > _HYDROSTATIC:
        problems.append(f"the layer from 500 to 300 hPa is off hydrostatic balance by {worst:.1%} of its thickness")
    if np.abs(samples.values["clock"] - clock(samples.values["time"])).max() > 1e-5:
        problems.append("clock does not belong to time")
    return problems


def describe_states(samples: Samples, latitudes: int) -> dict[str, Floats]:
    """Return statistics of the climate, one per state: global means, the jets, and temperature from equator to poles.

    Args:
        samples: The states, not quantised.
        latitudes: Number of latitudes of the grid.
    """
    cubes = _cubes(samples, latitudes)
    north = grid_latitudes(latitudes)
    weights = latitude_weights(north, kind="area")
    zonal = cubes.mean(axis=1, dtype=np.float64)  # [times, latitudes, channels]

    def mean(name: str) -> Floats:
        return _channel(zonal, name) @ weights / len(weights)

    jet, warmth = _channel(zonal, "u_component_of_wind_250"), _channel(zonal, "temperature_850")
    tropics, poles = np.abs(north) < 15, np.abs(north) > 70
    return {
        "t2m": mean("2m_temperature"),
        "msl": mean("mean_sea_level_pressure"),
        "rain_mm_per_day": 4000 * mean("total_precipitation_6hr"),
        "z500": mean("geopotential_500"),
        "jet_north": jet[:, north > 0].max(axis=1),
        "jet_south": jet[:, north < 0].max(axis=1),
        "t850_contrast": warmth[:, tropics].mean(axis=1) - warmth[:, poles].mean(axis=1),
    }


def _cubes(samples: Samples, latitudes: int) -> NDArray[Any]:
    """Return the states as ``[times, longitudes, latitudes, 83]``."""
    values = np.asarray(samples.values["state"])
    return values.reshape(len(samples), -1, latitudes, len(CHANNELS))


def _channel(states: NDArray[Any], name: str) -> NDArray[Any]:
    return states[..., CHANNELS.index(name)]
