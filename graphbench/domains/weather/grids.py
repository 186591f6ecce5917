"""Equiangular latitude-longitude grids, and conservative regridding between grids with separable cells.

Cells are products of an interval of longitudes and an interval of latitudes, so the area of overlap of two cells is the
product of an overlap of longitudes and an overlap of sines of latitudes. Regridding is therefore two small sums of
products, one per axis, whose terms are added in the order of the source, so that bits do not depend on the processor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError
from graphbench.core.kernels import kernel
from graphbench.core.latitudes import latitude_bounds
from graphbench.domains.weather.elementary import sine_of_degrees

Floats = NDArray[np.float64]
_FULL = 360.0


def grid_longitudes(count: int) -> Floats:
    """Return the longitudes of cell centres of an equiangular grid in degrees, from 0; float64 ``[count]``."""
    return _FULL / whole_number("count", count, 2) * np.arange(count, dtype=np.float64)


def latitude_overlap(source: ArrayLike, target: ArrayLike) -> Floats:
    """Return the weights with which source rows enter target rows; float64 ``[target, source]``, rows sum to 1.

    The weight is the share of the target cell's area (difference of sines) that the source cell covers.

    Args:
        source: Latitudes of the source in degrees, ascending.
        target: Latitudes of the target in degrees, ascending.
    """
    a, b = (sine_of_degrees(latitude_bounds(centres)) for centres in (source, target))
    shared = np.minimum(b[1:, None], a[None, 1:]) - np.maximum(b[:-1, None], a[None, :-1])
    return np.clip(shared, 0.0, None) / (b[1:] - b[:-1])[:, None]


def longitude_overlap(source: ArrayLike, target: ArrayLike) -> Floats:
    """Return the weights with which source columns enter target columns; float64 ``[target, source]``, rows sum to 1.

    Args:
        source: Longitudes of the source in degrees, evenly spaced around the globe.
        target: Longitudes of the target in degrees, evenly spaced around the globe.

    Raises:
        ArgumentError: If longitudes are not evenly spaced around the globe.
    """
    a, b = _even("source", source), _even("target", target)
    half_a, half_b = _FULL / len(a) / 2, _FULL / len(b) / 2
    offset = (b[:, None] - a[None, :] + _FULL / 2) % _FULL - _FULL / 2  # of the centres, from -180 to 180
    shared = np.zeros_like(offset)
    for turn in (-_FULL, 0.0, _FULL):
        centre = offset + turn
        shared += np.clip(np.minimum(centre + half_b, half_a) - np.maximum(centre - half_b, -half_a), 0.0, None)
    return shared / (2 * half_b)


def _even(name: str, longitudes: ArrayLike) -> Floats:
    centres = np.asarray(longitudes, np.float64)
    if centres.ndim != 1 or len(centres) < 2 or not np.allclose(np.diff(centres), _FULL / len(centres), atol=1e-3):
        raise ArgumentError(
            f"the longitudes of the {name} must be spaced evenly around the globe, got {centres!r:.120}"
        )
    return centres


def regrid(
    fields: ArrayLike,
    source: tuple[ArrayLike, ArrayLike],
    target: tuple[ArrayLike, ArrayLike],
) -> Floats:
    """Return fields on another grid by first-order conservative regridding: area-weighted means are kept.

    Args:
        fields: ``[..., longitudes, latitudes]`` on the source grid.
        source: Longitudes and latitudes of the source in degrees; latitudes ascend.
        target: Longitudes and latitudes of the target.

    Returns:
        float64 ``[..., longitudes, latitudes]`` on the target grid.

    Raises:
        ArgumentError: If the fields do not have the shape of the source grid, or a grid is not as described.
    """
    values = np.asarray(fields, np.float64)
    east, north = longitude_overlap(source[0], target[0]), latitude_overlap(source[1], target[1])
    if values.shape[-2:] != (east.shape[1], north.shape[1]):
        raise ArgumentError(
            f"the fields end in the shape {list(values.shape[-2:])}, the source grid has {east.shape[1]} longitudes "
            f"and {north.shape[1]} latitudes"
        )
    flat = np.ascontiguousarray(values.reshape(-1, *values.shape[-2:]))
    result = np.empty((len(flat), len(east), len(north)))
    _regrid(flat, east, north, result)
    return result.reshape(*values.shape[:-2], len(east), len(north))


@kernel
def _regrid(fields: Floats, east: Floats, north: Floats, result: Floats) -> None:
    """Add up source columns, then source rows, by their weights; cells without overlap are left out."""
    columns = np.empty((east.shape[0], north.shape[1]))
    for f in range(fields.shape[0]):
        columns[:] = 0.0
        for x in range(east.shape[0]):
            for a in range(east.shape[1]):
                if east[x, a] != 0.0:
                    for b in range(north.shape[1]):
                        columns[x, b] += east[x, a] * fields[f, a, b]
        for x in range(east.shape[0]):
            for y in range(north.shape[0]):
                total = 0.0
                for b in range(north.shape[1]):
                    if north[y, b] != 0.0:
                        total += north[y, b] * columns[x, b]
                result[f, x, y] = total
