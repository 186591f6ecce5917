"""Latitudes of equiangular grids of the globe, and the weights of their cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError

Floats = NDArray[np.float64]


def grid_latitudes(count: int) -> Floats:
    """Return the latitudes of cell centres of an equiangular grid in degrees, ascending; float64 ``[count]``."""
    step = 180.0 / whole_number("count", count, 2)
    return -90.0 + step * (np.arange(count, dtype=np.float64) + 0.5)


def latitude_bounds(latitudes: ArrayLike) -> Floats:
    """Return the bounds of latitude cells: the poles, and the midpoints between neighbours; float64 ``[n + 1]``.

    Args:
        latitudes: Latitudes in degrees, ascending.

    Raises:
        ArgumentError: If they do not ascend within -90 to 90.
    """
    centres = np.asarray(latitudes, np.float64)
    if centres.ndim != 1 or len(centres) < 2 or not (np.diff(centres) > 0).all() or np.abs(centres).max() > 90:
        raise ArgumentError(
            f"latitudes must be at least two numbers that ascend within -90 to 90 degrees, got {centres!r:.120}"
        )
    return np.concatenate([[-90.0], (centres[:-1] + centres[1:]) / 2, [90.0]])


def latitude_weights(latitudes: ArrayLike, kind: str = "cos") -> Floats:
    """Return the weights of latitudes, with mean 1; float64 ``[latitudes]``.

    Args:
        latitudes: Latitudes in degrees, ascending.
        kind: ``cos``, the cosine of the latitude (GraphBench, section 3.4.1), or ``area``, the sine of the cell's upper
            bound minus the sine of its lower bound (WeatherBench 2).

    Raises:
        ArgumentError: If ``kind`` is neither, or the latitudes do not ascend within -90 to 90.
    """
    bounds = np.sin(np.deg2rad(latitude_bounds(latitudes)))
    if kind == "area":
        weights = np.diff(bounds)
    elif kind == "cos":
        weights = np.cos(np.deg2rad(np.asarray(latitudes, np.float64)))
    else:
        raise ArgumentError(f"kind must be 'cos' or 'area', got {kind!r}")
    return weights / weights.mean()
