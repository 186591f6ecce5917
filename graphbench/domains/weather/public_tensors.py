"""The file of states of the public package by GraphBench's authors, read without unpickling.

Release 0.2.0 reads ``weather_64.pt``, which it names ``weather_dataset.pt``: a dictionary with ``grid_features`` of
shape ``[93544, 2048, 83]``, the states of WeatherBench 2 from 1959-01-01 00 UTC to 2023-01-10 18 UTC in steps of six
hours. Points are in the order of this package, ``longitude * 32 + latitude``; channels are in another order. A separate
pickled file holds the times. It is not read, so a file with another number of states is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import StoreError
from graphbench.data.sources.torch_files import read_torch_file
from graphbench.domains.weather.channels import CHANNELS, channel_names
from graphbench.domains.weather.checks import range_of
from graphbench.domains.weather.times import dates

NAMES = ("weather_64.pt", "weather_dataset.pt")
"""Names of the file."""

TIMES = 93_544
VARIABLES = (
    *("2m_temperature", "mean_sea_level_pressure", "10m_v_component_of_wind", "10m_u_component_of_wind"),
    *("total_precipitation_6hr", "temperature", "geopotential", "u_component_of_wind", "v_component_of_wind"),
    *("vertical_velocity", "specific_humidity"),
)
"""The variables in the file's order."""

_KEY = "grid_features"
_GRID = {"latitudes": 32, "longitudes": 64}
_STEP_HOURS = 6


@dataclass(frozen=True)
class PublicTensors:
    """An open file; its states are read in the same way as the states of a ``WeatherStore``.

    Attributes:
        path: The file.
        states: float ``[T, 2048, 83]``, mapped from the file.
        columns: int64 ``[83]``, the column in the file of every channel of this package.
    """

    path: Path
    states: NDArray[Any]
    columns: NDArray[np.int64]

    @property
    def hours(self) -> NDArray[np.int64]:
        """The times in hours since 1959-01-01 00 UTC; int64 ``[T]``."""
        return _STEP_HOURS * np.arange(len(self.states))

    @property
    def runs(self) -> NDArray[np.int64]:
        """The run of every time; all are the same run; int64 ``[T]``."""
        return np.zeros(len(self.states), np.int64)

    @property
    def grid(self) -> dict[str, int]:
        """The numbers of ``latitudes`` and ``longitudes``."""
        return dict(_GRID)

    def read(self, first: int, last: int) -> NDArray[np.float32]:
        """Return the states of times ``first`` to ``last - 1``; float32 ``[times, points, 83]``.

        Raises:
            StoreError: If a value is not finite or outside the range of its variable; the message names the channel.
        """
        states = np.asarray(self.states[first:last], np.float32)[..., self.columns]
        for c, channel in enumerate(CHANNELS):
            low, high = range_of(channel)
            wrong = np.argwhere(~((states[..., c] >= low) & (states[..., c] <= high)))
            if len(wrong):
                time, point = wrong[0].tolist()
                raise StoreError(
                    f"{channel} of {self.path} is {states[time, point, c]:g} at {dates(self.hours[first + time])}, "
                    f"outside {low:g} to {high:g}; the file is damaged, or its channels differ from release 0.2.0"
                )
        return states


def open_tensors(path: Path, times: int = TIMES) -> PublicTensors:
    """Return an open file.

    Args:
        path: The file.
        times: Required number of states.

    Raises:
        StoreError: If the file cannot be read, or does not hold these states.
    """
    content = read_torch_file(path, mapped=True)
    states = content.get(_KEY) if isinstance(content, dict) else None
    wanted = [times, _GRID["latitudes"] * _GRID["longitudes"], len(CHANNELS)]
    if not isinstance(states, np.ndarray) or list(states.shape) != wanted:
        contents = f"{_KEY} of the shape {list(states.shape)}" if isinstance(states, np.ndarray) else f"no {_KEY}"
        raise StoreError(
            f"{path} has {contents}; expected are {wanted}, all six-hourly states of 1959-01-01 to 2023-01-10"
        )
    order = channel_names(variables=VARIABLES)
    return PublicTensors(path, states, np.array([order.index(channel) for channel in CHANNELS]))
