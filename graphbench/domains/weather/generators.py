"""The generator of simulated weather: independent runs of the model, their states one after the other.

Every card has a generator, so reanalysis has one, too; it refuses to draw.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from graphbench.core.errors import StoreError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import label_number
from graphbench.data.components.generators import Generator
from graphbench.domains.weather.checks import check_states, describe_states
from graphbench.domains.weather.simulation import CHUNK_DAYS, STEP_HOURS, Run, environment, simulate
from graphbench.domains.weather.times import clock, hours_since_epoch

_PER_DAY = 24 // STEP_HOURS
_KEPT_RUNS = 2
_CHANNELS = 83


class SimulationParameters(StrictModel):
    """The states of a split: the states of runs 0, 1, 2, ..., one run after the other.

    Attributes:
        truncation: Largest total wavenumber of the model: 21, 31 or 42.
        days: Number of days of a run, with four states each.
        spin_up: Number of simulated days before the first state of a run.
        first: First day of the states of run 0.
        stride: Days from the beginning of a run to the beginning of the next run.
        latitudes: Latitudes of the grid.
        longitudes: Longitudes of the grid.
    """

    truncation: Literal[21, 31, 42]
    days: Annotated[int, Field(ge=1, le=3660)]
    spin_up: Annotated[int, Field(ge=CHUNK_DAYS, le=3650, multiple_of=CHUNK_DAYS)] = 120
    first: datetime.date
    stride: Annotated[int, Field(ge=0, le=3660)] = 0
    latitudes: Annotated[int, Field(ge=2, le=128)] = 32
    longitudes: Annotated[int, Field(ge=2, le=256)] = 64

    @property
    def per_run(self) -> int:
        """Number of states per run."""
        return self.days * _PER_DAY

    def begin(self, run: int) -> np.datetime64:
        """Return the day on which the states of a run begin."""
        return np.datetime64(self.first, "D") + np.timedelta64(run * self.stride, "D")


_KEPT: dict[
    tuple[Run, int, int], NDArray[np.float32]
] = {}  # the most recently simulated states, because simulating again takes minutes


def _states(run: Run, count: int, parameters: SimulationParameters) -> NDArray[np.float32]:
    """Return at least the first ``count`` states of a run; the states of the last few runs are kept in memory."""
    key = run, parameters.latitudes, parameters.longitudes
    states = _KEPT.pop(key, None)
    if states is None or len(states) < count:
        whole = (
            1 + -(-(count - 1) // (CHUNK_DAYS * _PER_DAY)) * CHUNK_DAYS * _PER_DAY
        )  # rounds up to the end of a chunk
        states = simulate(run, whole, parameters.latitudes, parameters.longitudes)
    _KEPT[key] = states
    while len(_KEPT) > _KEPT_RUNS:
        del _KEPT[next(iter(_KEPT))]
    return states


def _generate(
    parameters: SimulationParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    points = parameters.latitudes * parameters.longitudes
    runs, steps = np.divmod(indices, parameters.per_run)
    states = np.empty((len(indices), points, _CHANNELS), np.float32)
    for run in np.unique(runs).tolist():
        in_run = runs == run
        model_run = Run(parameters.truncation, label_number(key, run), str(parameters.begin(run)), parameters.spin_up)
        states[in_run] = _states(model_run, int(steps[in_run].max()) + 1, parameters)[steps[in_run]]
    begins = hours_since_epoch([parameters.begin(run) for run in runs.tolist()])
    samples = states_as_samples(states, begins + STEP_HOURS * steps, runs)
    return replace(samples, facts={"environment": environment()})


def states_as_samples(states: NDArray[np.float32], hours: NDArray[np.int64], runs: NDArray[np.int64]) -> Samples:
    """Return states as samples without edges, with the stored features of weather cards.

    Args:
        states: float32 ``[S, points, 83]``.
        hours: int64 ``[S]``, hours since 1959-01-01 00 UTC.
        runs: int64 ``[S]``, the run of each state.
    """
    count, points, channels = states.shape
    return Samples(
        np.full(count, points, np.int64),
        np.zeros(count, np.int64),
        np.empty((0, 2), np.int64),
        {
            "state": states.reshape(count * points, channels),
            "clock": clock(hours),
            "time": hours.astype(np.float32),  # exact up to the year 3800
            "run": runs.astype(np.float32),
        },
    )


class YearParameters(StrictModel):
    """The years of a split of reanalysis.

    Attributes:
        begin: First day.
        end: Last day.
    """

    begin: datetime.date
    end: datetime.date


def refuse_generation(
    parameters: BaseModel, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Refuse to generate states that can only be read from files.

    Raises:
        StoreError: Always.
    """
    raise StoreError(
        "reanalysis is read from files: give --source official --folder DIR (source='official', folder=...), the "
        "folder of WeatherBench 2's 1959-2023_01_10-6h-64x32_equiangular_conservative.zarr; the dataset that can be "
        "generated is weather/sim_64x32"
    )


def _stored_bytes(parameters: SimulationParameters) -> int:
    return 2 * _CHANNELS * parameters.latitudes * parameters.longitudes


GENERATORS: Mapping[str, Generator] = {
    "simulation": Generator(
        name="weather.simulation",
        version=1,
        parameters=SimulationParameters,
        generate=_generate,
        check=lambda parameters, samples: check_states(samples, parameters.latitudes),
        statistics=lambda parameters, samples: describe_states(samples, parameters.latitudes),
        shard_size=lambda parameters: parameters.per_run,
        stored_bytes=_stored_bytes,
        unique=False,
        unique_inputs=True,
        environment=environment,
    ),
    "reanalysis": Generator(
        name="weather.reanalysis",
        version=1,
        parameters=YearParameters,
        generate=refuse_generation,
        drawn=False,
        check=None,
        statistics=lambda parameters, samples: {},
        shard_size=lambda parameters: 1,
        unique=False,
    ),
}
