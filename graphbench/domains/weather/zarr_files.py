"""States in zarr stores of WeatherBench 2's layout: read and checked, and written.

A store has the arrays of WeatherBench 2's ``...-6h-64x32_equiangular_conservative.zarr``: variables with the dimensions
``time, level, longitude, latitude``, or without ``level`` at the surface, and the coordinates. Stores that this package
writes have one array more, ``run``: the run of every time. The package zarr comes with ``graphbench[weather]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import damage_named
from graphbench.core.errors import MissingDependency, StoreError
from graphbench.core.latitudes import grid_latitudes
from graphbench.core.suggestions import closest
from graphbench.domains.weather.channels import ATMOSPHERE, CHANNELS, LEVELS, SURFACE, is_surface
from graphbench.domains.weather.chunk_files import bytes_of_chunk, chunk_places, require_chunks
from graphbench.domains.weather.grids import grid_longitudes
from graphbench.domains.weather.places import Place, has_file
from graphbench.domains.weather.times import EPOCH, dates

STEP_HOURS = 6
_DIMENSIONS = ("time", "level", "longitude", "latitude")
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_HOURS = {"hours": 1.0, "hour": 1.0, "days": 24.0, "day": 24.0, "minutes": 1 / 60, "seconds": 1 / 3600}
_CHUNK = 100  # times per chunk of written stores
_MAX_POINTS = 100_000  # points of a horizontal axis, or levels; a grid of a hundredth of a degree has 36,000 points
_MAX_TIMES = 10_000_000  # a thousand years of hours
_MAX_CHUNK_BYTES = 1 << 30  # a chunk is unpacked whole
_MARKERS = (".zgroup", ".zmetadata", "zarr.json")
_N = TypeVar("_N", bound=np.generic)


@dataclass(frozen=True)
class WeatherStore:
    """An open store.

    Attributes:
        path: The store's folder, or its address.
        arrays: Variable -> array of zarr.
        hours: int64 ``[T]``, the times in hours since 1959-01-01 00 UTC.
        runs: int64 ``[T]``: consecutive times with the same number are 6 hours apart.
        levels: int64 ``[13]``, the positions of the 13 levels among the store's levels.
        orders: Variable -> the axes of its array in the order of ``time, (level,) longitude, latitude``.
    """

    path: Place
    arrays: dict[str, Any]
    hours: NDArray[np.int64]
    runs: NDArray[np.int64]
    levels: NDArray[np.int64]
    orders: dict[str, tuple[int, ...]]

    def read(self, first: int, last: int) -> NDArray[np.float32]:
        """Return the states of times ``first`` to ``last - 1``; float32 ``[times, points, 83]``.

        Raises:
            StoreError: If a chunk cannot be read, or a value is not finite; the message names variable and time.
        """
        count = last - first
        points = self.grid["latitudes"] * self.grid["longitudes"]
        states = np.empty((count, points, len(CHANNELS)), np.float32)
        column = 0
        for variable in (*SURFACE, *ATMOSPHERE):
            values = self._values(variable, first, last)
            wide = values.shape[1]
            states[..., column : column + wide] = np.moveaxis(values, 1, -1).reshape(count, -1, wide)
            column += wide
        return states

    @property
    def grid(self) -> dict[str, int]:
        """The numbers of ``latitudes`` and ``longitudes``."""
        return {f"{name}s": int(self.arrays[name].shape[0]) for name in ("latitude", "longitude")}

    def _values(self, variable: str, first: int, last: int) -> NDArray[np.float32]:
        """Return ``[times, levels, longitudes, latitudes]``, with one level at the surface."""
        array, axis = self.arrays[variable], self.orders[variable][0]
        places = chunk_places(array)
        places[axis] = range(first // array.chunks[axis], -(-last // array.chunks[axis]))
        require_chunks(self.path, variable, array, places, f" from {dates(self.hours[first])} on")
        try:
            order = self.orders[variable]
            selection: list[Any] = [slice(None)] * len(order)
            selection[order[0]] = slice(first, last)
            values = np.transpose(np.asarray(self.arrays[variable][tuple(selection)], np.float32), order)
        except Exception as error:  # zarr, its codecs and the file system raise errors of many kinds
            raise StoreError(
                f"cannot read {variable} of {self.path} from {dates(self.hours[first])} on "
                f"({type(error).__name__}: {error!s:.120}); a file of a chunk is damaged, copy the store again"
            ) from error
        values = values[:, None] if is_surface(variable) else values[:, self.levels]
        self._require_values(variable, values, first)
        return values

    def _require_values(self, variable: str, values: NDArray[np.float32], first: int) -> None:
        """Refuse values that are not finite, and constant fields, which come from missing chunks.

        Only precipitation may be 0 everywhere.
        """
        wrong = np.argwhere(~np.isfinite(values))
        still = np.argwhere(values.min(axis=(2, 3)) == values.max(axis=(2, 3)))
        if not len(wrong) and (variable == "total_precipitation_6hr" or not len(still)):
            return
        position = tuple(wrong[0].tolist()) if len(wrong) else (*still[0].tolist(), 0, 0)
        where = "" if is_surface(variable) else f" at {LEVELS[position[1]]} hPa"
        spread = "" if len(wrong) else " everywhere"
        raise StoreError(
            f"{variable} of {self.path} is {values[position]}{spread} at {dates(self.hours[first + position[0]])}"
            f"{where}; a chunk is missing, or the variable is not defined at that time"
        )


def is_store(path: Place) -> bool:
    """Return whether a folder or an address is a zarr store."""
    return any(has_file(path, marker) for marker in _MARKERS)


def open_store(path: Place) -> WeatherStore:
    """Return a store after checking its variables, dimensions, coordinates, units and calendar.

    Raises:
        MissingDependency: If zarr is not installed.
        StoreError: If a check fails; the message describes the fault.
    """
    zarr = _zarr()
    if not is_store(path):
        raise StoreError(f"{path} is no zarr store; give the folder that has {' or '.join(_MARKERS)}")
    try:
        group = zarr.open_group(str(path), mode="r")
        arrays = dict(group.arrays())
    except Exception as error:
        raise StoreError(
            f"cannot open {path} ({type(error).__name__}: {error!s:.120}); copy the store again"
        ) from error
    wanted = (*_DIMENSIONS, *SURFACE, *ATMOSPHERE)
    for name in wanted:
        if name not in arrays:
            raise StoreError(f"{path} has no {name!r}{closest(name, arrays)}; it has {', '.join(sorted(arrays))}")
    for name, array in arrays.items():
        if name in wanted or name == "run":
            _require_plain(path, name, array)
    _require_coordinates(path, arrays)
    orders = {name: _axes(path, name, arrays[name]) for name in (*SURFACE, *ATMOSPHERE)}
    for name, units in {**SURFACE, **ATMOSPHERE}.items():
        stored = arrays[name].attrs.get("units", units)
        if _plain(stored) != _plain(units):
            raise StoreError(f"{name} of {path} is in {stored!r}, not in {units!r}; convert it first")
    _require_grid(path, "latitude", _coordinate(path, "latitude", arrays, np.float64), grid_latitudes)
    _require_grid(path, "longitude", _coordinate(path, "longitude", arrays, np.float64), grid_longitudes)
    hours = _hours(path, arrays)
    stored = _coordinate(path, "level", arrays, np.float64)
    missing = [level for level in LEVELS if level not in stored]
    if missing:
        raise StoreError(f"{path} lacks the levels {missing} hPa; it has {stored.tolist()}")
    levels = np.array([int(np.flatnonzero(stored == level)[0]) for level in LEVELS])
    return WeatherStore(path, arrays, hours, _runs(path, hours, arrays), levels, orders)


def write_store(path: Path, states: Any, hours: NDArray[np.int64], runs: NDArray[np.int64], latitudes: int) -> None:
    """Write states as a store of zarr format 2 with consolidated metadata.

    Args:
        path: The new folder.
        states: ``(first, last) -> float32 [times, points, 83]``.
        hours: int64 ``[T]``, hours since 1959-01-01 00 UTC.
        runs: int64 ``[T]``, the run of every time.
        latitudes: Latitudes of the grid.

    Raises:
        MissingDependency: If zarr is not installed.
    """
    zarr = _zarr()
    longitudes = states(0, 1).shape[1] // latitudes
    group = zarr.open_group(str(path), mode="w", zarr_format=2)

    def add(name: str, values: NDArray[Any], dimensions: tuple[str, ...], **attributes: str) -> None:
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=values.shape)
        array[:] = values
        array.attrs.update({"_ARRAY_DIMENSIONS": list(dimensions), **attributes})

    since = f"hours since {str(EPOCH).replace('T', ' ')}:00:00"
    add("time", hours, ("time",), units=since, calendar="proleptic_gregorian", long_name="time")
    add("level", np.array(LEVELS, np.int64), ("level",), units="hPa", long_name="pressure")
    add("longitude", grid_longitudes(longitudes), ("longitude",), units="degrees_east", long_name="longitude")
    add("latitude", grid_latitudes(latitudes), ("latitude",), units="degrees_north", long_name="latitude")
    add("run", runs, ("time",), long_name="number of the simulated run")
    for variable, units in {**SURFACE, **ATMOSPHERE}.items():
        inner = (longitudes, latitudes) if is_surface(variable) else (len(LEVELS), longitudes, latitudes)
        dimensions = [d for d in _DIMENSIONS if d != "level" or not is_surface(variable)]
        array = group.create_array(
            variable,
            shape=(len(hours), *inner),
            dtype=np.float32,
            chunks=(min(_CHUNK, len(hours)), *inner),
            fill_value=np.nan,
        )
        array.attrs.update({"_ARRAY_DIMENSIONS": dimensions, "units": units, "long_name": variable.replace("_", " ")})
    for first in range(0, len(hours), _CHUNK):
        last, column = min(first + _CHUNK, len(hours)), 0
        part = states(first, last)
        for variable in (*SURFACE, *ATMOSPHERE):
            wide = 1 if is_surface(variable) else len(LEVELS)
            values = np.moveaxis(part[..., column : column + wide], -1, 1)
            group[variable][first:last] = values.reshape(last - first, *group[variable].shape[1:])
            column += wide
    zarr.consolidate_metadata(str(path), zarr_format=2)


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise MissingDependency(
            f"stores of weather need zarr ({error}); install it: pip install 'graphbench[weather]'"
        ) from error
    return zarr


def _require_plain(path: Place, name: str, array: Any) -> None:
    """Refuse an array that is not numeric or has chunks that take too much memory.

    Raises:
        StoreError: If the array is refused; the message gives the reason.
    """
    if array.dtype.kind not in "iuf" or array.dtype.hasobject:
        raise StoreError(f"{name} of {path} is of the type {array.dtype}; numbers are read")
    if (size := bytes_of_chunk(array)) > _MAX_CHUNK_BYTES:
        raise StoreError(
            f"{name} of {path} has chunks of {size:,} bytes, {array.chunks}; at most {_MAX_CHUNK_BYTES:,} are read: "
            "write the store with smaller chunks"
        )


def _require_coordinates(path: Place, arrays: dict[str, Any]) -> None:
    """Refuse coordinates that are not one-dimensional, or far longer than any real record.

    Raises:
        StoreError: If a coordinate is refused; the message gives its shape and the limit.
    """
    for name in (*_DIMENSIONS, *(("run",) if "run" in arrays else ())):
        shape = tuple(int(n) for n in arrays[name].shape)
        limit = _MAX_TIMES if name in ("time", "run") else _MAX_POINTS
        if len(shape) != 1 or shape[0] > limit:
            raise StoreError(
                f"the coordinate {name!r} of {path} has the shape {list(shape)}; expected is a list of at most "
                f"{limit:,} numbers: the store is damaged, copy it again"
            )
    for name in (*SURFACE, *ATMOSPHERE):
        shape, order = arrays[name].shape, _axes(path, name, arrays[name])
        names = [d for d in _DIMENSIONS if d != "level" or not is_surface(name)]
        for dimension, axis in zip(names, order, strict=True):
            if len(shape) != len(names) or shape[axis] != arrays[dimension].shape[0]:
                raise StoreError(
                    f"{name} of {path} has the shape {list(shape)}, and {dimension!r} has "
                    f"{arrays[dimension].shape[0]:,} values; the store is damaged, copy it again"
                )


def _coordinate(path: Place, name: str, arrays: dict[str, Any], dtype: type[_N]) -> NDArray[_N]:
    """Return the values of a coordinate.

    Raises:
        StoreError: If the values cannot be read.
    """
    require_chunks(path, name, arrays[name], chunk_places(arrays[name]))
    with damage_named(f"{name} of {path}", remedy="copy the store again"):
        return np.asarray(arrays[name][:], dtype)


def _axes(path: Place, name: str, array: Any) -> tuple[int, ...]:
    """Return the axes of an array in the order of the dimensions."""
    dimensions = array.attrs.get("_ARRAY_DIMENSIONS") or getattr(array.metadata, "dimension_names", None) or ()
    wanted = [d for d in _DIMENSIONS if d != "level" or not is_surface(name)]
    if sorted(map(str, dimensions)) != sorted(wanted):
        raise StoreError(f"{name} of {path} has the dimensions {list(dimensions)}; expected are {wanted}")
    return tuple(list(dimensions).index(d) for d in wanted)


def _plain(units: str) -> str:
    """Return units in one spelling: ``m/s``, ``m s-1`` and ``m s**-1`` are the same."""
    words = str(units).replace("**", "").replace("^", "").replace("/s", " s-1").replace("/kg", " kg-1")
    return {"kelvin": "K", "pa": "Pa"}.get(words.lower().strip(), " ".join(words.split()))


def _require_grid(path: Place, name: str, centres: NDArray[np.float64], expected: Any) -> None:
    if len(centres) < 2 or not np.allclose(centres, expected(len(centres)), atol=1e-3):
        raise StoreError(
            f"the {name}s of {path} are {centres[:2].tolist()} to {centres[-1:].tolist()}; expected are cell centres "
            f"of an equiangular grid, {expected(max(len(centres), 2))[:2].tolist()}, ..., ascending"
        )


def _hours(path: Place, arrays: dict[str, Any]) -> NDArray[np.int64]:
    """Return times in hours since 1959-01-01 00 UTC.

    Raises:
        StoreError: If the units or the calendar are unknown, or a time is not a whole hour.
    """
    time = arrays["time"]
    units, calendar = str(time.attrs.get("units", "")), str(time.attrs.get("calendar", "standard"))
    if calendar not in _CALENDARS:
        raise StoreError(f"the times of {path} are of the calendar {calendar!r}; it must be one of {_CALENDARS}")
    unit, _, begin = units.partition(" since ")
    try:
        start = np.datetime64(begin.strip().removesuffix("Z").replace(" ", "T"), "s")
        scale = _HOURS[unit.strip()]
    except (KeyError, ValueError):
        raise StoreError(
            f"the times of {path} are in {units!r}; expected are hours (or days, minutes, seconds) since a date"
        ) from None
    values = (
        _coordinate(path, "time", arrays, np.float64) * scale
        + (start - EPOCH.astype("datetime64[s]")).astype(np.float64) / 3600
    )
    hours = np.rint(values)
    if not len(values) or not np.isfinite(values).all() or np.abs(values - hours).max() > 1e-3:
        raise StoreError(f"the times of {path} are no whole hours, or there are none")
    return hours.astype(np.int64)


def _runs(path: Place, hours: NDArray[np.int64], arrays: dict[str, Any]) -> NDArray[np.int64]:
    """Return the run of every time; a run ends where the next time is not 6 hours later.

    Raises:
        StoreError: If no two times are 6 hours apart.
    """
    steps = np.diff(hours)
    if len(steps) and not (steps == STEP_HOURS).any():
        raise StoreError(
            f"the times of {path} are {steps[0]} hours apart; take a store with steps of {STEP_HOURS} hours"
        )
    ends = steps != STEP_HOURS
    if "run" in arrays:
        ends |= np.diff(_coordinate(path, "run", arrays, np.int64)) != 0
    return np.concatenate([[0], np.cumsum(ends)]).astype(np.int64)
