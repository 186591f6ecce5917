"""An atmosphere that is simulated by ``jcm`` 3.0 (SPEEDY physics on a spectral dynamical core), sampled every 6 hours.

A run begins with an isothermal atmosphere at rest with a random perturbation of its temperature, and spins up before
its first state. The states have the format of WeatherBench 2: eleven variables, 13 pressure levels, an equiangular
grid.

Unlike the real atmosphere it has eight layers, so the 13 levels hold less information than their number suggests;
insolation is a daily mean, so there is no diurnal cycle; sea surface temperature, sea ice, snow and soil follow the
climatology.

XLA, which compiles the model, would use whatever the processor has. Here XLA, and oneDNN, which multiplies its larger
matrices, are limited to AVX2, so that the bits are the same on all processors of the architecture x86-64 that have
AVX2.

jcm comes with the extra ``graphbench[weather]``.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, resources
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GenerationError, MissingDependency
from graphbench.core.latitudes import grid_latitudes
from graphbench.core.processor import processor_fact
from graphbench.domains.weather.channels import CHANNELS, LEVELS
from graphbench.domains.weather.elementary import exp, portable_algebra
from graphbench.domains.weather.grids import grid_longitudes, regrid
from graphbench.domains.weather.vertical import (
    DRY_AIR,
    geopotential_to_levels,
    sea_level_pressure,
    temperature_to_levels,
    to_levels,
)

States = NDArray[np.float32]

STEP_HOURS = 6
CHUNK_DAYS = 5  # days simulated at once; programs are compiled for the length of a chunk
_TIME_STEP = 1800.0  # seconds
_LAYERS = 8
_NOISE = 3.0  # K, standard deviation of the perturbation of the first temperature, before spectral truncation
_MEAN_SURFACE_PRESSURE = 98_550.0  # Pa, of the real atmosphere (Trenberth and Smith, 2005)
_WATER = 1000.0  # kg m**-3
_RAIN = "accumulated_rain"
_XLA_FLAGS = (
    "--xla_cpu_max_isa=AVX2",
    "--xla_cpu_experimental_ynn_fusion_type=",  # a library of matrix products that chooses code by the processor
    "--xla_cpu_use_onednn=false",
    "--xla_cpu_multi_thread_eigen=false",
)
_ONEDNN_LIMIT = "ONEDNN_MAX_CPU_ISA"  # environment variable: the newest instructions that oneDNN uses


@dataclass(frozen=True)
class Run:
    """One run of the model.

    Attributes:
        truncation: Largest total wavenumber: 21, 31 or 42.
        seed: Seed of the perturbation of the first state.
        start: Date of the first sampled state, as ``YYYY-MM-DD``.
        spin_up: Days before the first sampled state, a multiple of 5.
    """

    truncation: int
    seed: int
    start: str
    spin_up: int


def simulate(run: Run, count: int, latitudes: int = 32, longitudes: int = 64) -> States:
    """Return the first states of a run, 6 hours apart; a pure function.

    Args:
        run: The run.
        count: Number of states; the first state is at 00 UTC of the start.
        latitudes: Latitudes of the equiangular grid.
        longitudes: Longitudes of the grid.

    Returns:
        float32 ``[count, longitudes * latitudes, 83]``: the channels of :data:`~.channels.CHANNELS` in their units;
        grid point ``longitude * latitudes + latitude``, latitudes ascending.

    Raises:
        MissingDependency: If jcm is not installed.
        GenerationError: If the simulation becomes unstable.
    """
    sampled = np.empty((count, longitudes * latitudes, len(CHANNELS)), np.float32)
    done = 0
    for states in _chunks(run, (longitudes, latitudes)):
        few = min(len(states), count - done)
        sampled[done : done + few] = states[:few]
        done += few
        if done == count:
            break
    return sampled


def environment() -> dict[str, str]:
    """Return the versions of the simulator and the machine, on which the bits of simulated states depend."""
    machine = "x86-64 with AVX2" if _make_portable() else f"{platform.machine()} {_processor()}".strip()
    versions = {"machine": machine}
    for name in ("jcm", "dinosaur", "jax", "jaxlib"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


@lru_cache(maxsize=1)
def _make_portable() -> bool:
    """Have XLA compile the code that all processors with AVX2 share; return whether it does.

    XLA reads its flags once, when jax is first used, and the oneDNN in XLA its limit once, at the first product
    (:func:`_limit_products`). Where a program has used jax before without both, or the processor lacks AVX2, bits
    depend on the processor.
    """
    if not {"avx2", "fma"} <= {*processor_fact("flags").split()}:
        return False
    flags = os.environ.get("XLA_FLAGS", "").split()
    if "jax" in sys.modules:
        return {*_XLA_FLAGS} <= {*flags} and os.environ.get(_ONEDNN_LIMIT) == "AVX2"
    names = {flag.partition("=")[0] for flag in _XLA_FLAGS}
    others = [flag for flag in flags if flag.partition("=")[0] not in names]
    os.environ["XLA_FLAGS"] = " ".join([*others, *_XLA_FLAGS])
    return True


@lru_cache(maxsize=1)
def _limit_products() -> None:
    """Have the oneDNN in XLA read its limit now, at a first product; that in torch reads the variable as before."""
    import jax

    before = os.environ.get(_ONEDNN_LIMIT)
    os.environ[_ONEDNN_LIMIT] = "AVX2"
    try:
        matrix = np.ones((128, 128), np.float32)
        jax.jit(jax.numpy.matmul)(matrix, matrix).block_until_ready()
    finally:
        if before is None:
            del os.environ[_ONEDNN_LIMIT]
        else:
            os.environ[_ONEDNN_LIMIT] = before


def _processor() -> str:
    """Return the name of the processor, if the system tells it."""
    return processor_fact("model name") or platform.processor()


def _chunks(run: Run, shape: tuple[int, int]) -> Iterator[States]:
    """Yield the states of a run from its start on, one chunk at a time."""
    setup = _setup(run.truncation)
    from jcm.date import to_datetime

    model = setup.model
    begin = np.datetime64(run.start, "D") - np.timedelta64(run.spin_up, "D")
    model.start_time = to_datetime(str(begin), name="start")
    with portable_algebra():
        model.bootstrap_state(_first_state(setup, run.seed))
    last_rain = None
    for chunk in range(10**6):
        with portable_algebra():  # matrices of the dynamics are inverted when the model is compiled
            saved = model.resume(forcing=setup.forcing, save_interval=STEP_HOURS / 24, total_time=float(CHUNK_DAYS))
        rain = np.asarray(saved.physics[_RAIN], np.float64)
        sampled = chunk * CHUNK_DAYS >= run.spin_up
        if sampled or (chunk + 1) * CHUNK_DAYS >= run.spin_up:
            states = _states(setup, saved, rain, last_rain, shape)
            if not np.isfinite(states).all():
                raise GenerationError(f"the simulation {run} is unstable: it has values that are not finite")
            yield states if sampled else states[-1:]
        last_rain = rain[-1]


def _setup(truncation: int) -> Any:
    """Return the model of a resolution, with its forcing; it is compiled once per process.

    Raises:
        MissingDependency: If jcm is not installed.
    """
    portable = _make_portable()
    try:
        import_module("jcm.model")
    except ImportError as error:
        raise MissingDependency(
            f"simulated weather needs jcm ({error}); install it: pip install 'graphbench[weather]', or take reanalysis "
            "with source='official'"
        ) from error
    if portable:
        _limit_products()
    return _cached_setup(truncation)


@lru_cache(maxsize=2)
def _cached_setup(truncation: int) -> Any:
    import warnings

    from jcm.dycore.dinosaur.dycore import DinosaurDycore
    from jcm.forcing import ForcingData
    from jcm.model import Model
    from jcm.physics.speedy.speedy_coords import get_speedy_coords
    from jcm.physics.speedy.speedy_terms import speedy_physics
    from jcm.terrain import TerrainData

    files = resources.files("jcm.data.bc.t30.clim")
    with warnings.catch_warnings(), portable_algebra():
        warnings.simplefilter("ignore", FutureWarning)  # xarray warns about arguments of jcm
        coords = get_speedy_coords(layers=_LAYERS, spectral_truncation=truncation)
        terrain = TerrainData.from_file(str(files / "terrain.nc"), coords)
        forcing = ForcingData.from_file(str(files / "forcing.nc"), coords)
        dycore = DinosaurDycore(coords=coords, terrain=terrain, dt_seconds=_TIME_STEP, compute_omega=True)
        physics = speedy_physics(diagnose_omega=True) + _rain_gauge()
        model = Model(dycore=dycore, time_step=_TIME_STEP / 60, physics=physics)
    return SimpleNamespace(model=model, forcing=forcing, terrain=terrain, coords=coords)


def _rain_gauge() -> Any:
    """Return a term of the model's physics that adds up precipitation, in kg m**-2."""
    import jax.numpy as jnp
    from jcm.physics.physics_term import PhysicsTerm
    from jcm.physics_interface import PhysicsTendency

    class RainGauge(PhysicsTerm):  # type: ignore[misc]
        """Adds up convective and large-scale precipitation."""

        name = "rain_gauge"
        category = "diagnostics"
        provides = (_RAIN,)

        def __call__(self, state: Any, diagnostics: Any, forcing: Any, terrain: Any) -> Any:
            """Return no tendency, and the diagnostics with the sum."""
            rate = (diagnostics["_convection"].precnv + diagnostics["_condensation"].precls) / 1000  # from g
            before = diagnostics.get(_RAIN, jnp.zeros_like(rate))
            return PhysicsTendency.zeros(state.temperature.shape), {**diagnostics, _RAIN: before + rate * _TIME_STEP}

    return RainGauge()


def _first_state(setup: Any, seed: int) -> Any:
    """Return an atmosphere at rest with the mass of the real one, and a random perturbation of its temperature."""
    import jax.numpy as jnp
    from jcm.constants import p0

    horizontal = setup.coords.horizontal
    state = setup.model.initial_state(random_seed=0)
    surface = np.asarray(horizontal.to_nodal(state.log_surface_pressure), np.float64)
    weights = [math.cos(latitude) for latitude in np.asarray(horizontal.latitudes, np.float64).tolist()]
    mean = float(p0) * np.average(exp(surface[0]).mean(axis=0), weights=weights)
    surface += math.log(_MEAN_SURFACE_PRESSURE / mean)
    random = np.random.Generator(np.random.Philox(key=seed))
    noise = _NOISE * random.standard_normal((_LAYERS, *horizontal.nodal_shape))
    state.log_surface_pressure = horizontal.to_modal(jnp.asarray(surface, jnp.float32))
    state.temperature_variation = state.temperature_variation + horizontal.to_modal(jnp.asarray(noise, jnp.float32))
    return state


def _surface_geopotential(dynamics: Any, sigma: float) -> NDArray[np.float64]:
    """Return the geopotential of the surface in the dynamics, which is smoother than the terrain.

    It is the geopotential of the lowest layer minus the thickness of moist air down to the surface. With the
    geopotential of the terrain, mean sea level pressure would be wrong by up to 150 hPa in mountains.
    """
    lowest = (dynamics.geopotential, dynamics.temperature, dynamics.specific_humidity)
    geopotential, temperature, humidity = (np.asarray(field, np.float64)[:, -1] for field in lowest)
    return geopotential - DRY_AIR * temperature * (1 + 0.61 * humidity) * math.log(1 / sigma)


def _states(
    setup: Any, saved: Any, rain: NDArray[np.float64], last_rain: NDArray[np.float64] | None, shape: tuple[int, int]
) -> States:
    """Return the states of a chunk on the target grid; float32 ``[times, points, 83]``."""
    from jcm.constants import p0

    dynamics, surface = saved.dynamics, saved.physics["_surface_flux"]
    sigma = np.asarray(setup.coords.vertical.centers, np.float64)
    times, grid = rain.shape[0], rain.shape[1:]

    def layers(field: Any) -> NDArray[np.float64]:
        return np.asarray(field, np.float64).reshape(times, _LAYERS, -1)

    pressure_at_surface = float(p0) * np.asarray(dynamics.normalized_surface_pressure, np.float64)
    pressure = sigma[None, :, None] * pressure_at_surface.reshape(times, 1, -1)
    temperature, wanted = layers(dynamics.temperature), 100.0 * np.asarray(LEVELS)
    before = np.concatenate([np.zeros((1, *grid)) if last_rain is None else last_rain[None], rain[:-1]])
    sea_level = sea_level_pressure(
        pressure_at_surface,
        _surface_geopotential(dynamics, sigma[-1]),
        np.asarray(dynamics.temperature)[:, -1],
        sigma[-1],
    )
    at_surface = [surface.t0, surface.u0, surface.v0, sea_level, np.maximum(rain - before, 0.0) / _WATER]
    on_levels = [
        temperature_to_levels(temperature, pressure, wanted),
        to_levels(layers(dynamics.u_wind), pressure, wanted),
        to_levels(layers(dynamics.v_wind), pressure, wanted),
        geopotential_to_levels(layers(dynamics.geopotential), temperature, pressure, wanted),
        np.maximum(to_levels(layers(dynamics.specific_humidity), pressure, wanted), 0.0),
        to_levels(layers(saved.physics["omega"]), pressure, wanted),
    ]
    fields = [np.asarray(field, np.float64)[:, None] for field in at_surface]
    fields += [field.reshape(times, len(LEVELS), *grid) for field in on_levels]
    stacked = np.concatenate(fields, axis=1)
    horizontal = setup.coords.horizontal
    source = np.rad2deg(np.asarray(horizontal.longitudes)), np.rad2deg(np.asarray(horizontal.latitudes))
    on_grid = regrid(stacked, source, (grid_longitudes(shape[0]), grid_latitudes(shape[1])))
    return np.ascontiguousarray(np.moveaxis(on_grid.reshape(times, len(CHANNELS), -1), 1, 2), np.float32)
