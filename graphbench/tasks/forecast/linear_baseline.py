"""Forecasts by linear regression of every channel on itself and its neighbours to the west and the east."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_OFFSETS = (0, 1, -1)  # the point, its neighbour to the west, its neighbour to the east
_NEGLIGIBLE = 1e-10  # of the largest singular value


@dataclass(frozen=True)
class LinearForecast:
    """The anomaly of a channel at a later time, as a linear function of its anomalies now.

    Anomalies are deviations from a climatology. The model reads the anomalies of a point and of its neighbours to the
    west and the east, on the same circle of latitude, so that the advection by the mean wind of the latitude can be
    predicted.

    Attributes:
        coefficients: float64 ``[latitudes, channels, 4]``: of 1, and of the anomalies at the point, to its west, and to
            its east.
    """

    coefficients: Floats

    def later(self, anomalies: NDArray[Any]) -> Floats:
        """Return the anomalies at the later time; float64 ``[times, points, channels]``.

        Args:
            anomalies: ``[times, points, channels]``; point ``longitude * latitudes + latitude``.
        """
        cube = _cube(anomalies, len(self.coefficients))
        forecast = np.broadcast_to(self.coefficients[..., 0], cube.shape).copy()
        for k, offset in enumerate(_OFFSETS, start=1):
            forecast += self.coefficients[..., k] * np.roll(cube, offset, axis=1)
        return forecast.reshape(anomalies.shape)


def fit_linear_forecast(parts: Iterable[tuple[NDArray[Any], NDArray[Any]]], latitudes: int) -> LinearForecast:
    """Return the least-squares fit for every channel and latitude, over all times and longitudes.

    The normal equations are summed part by part. Where they are singular, as for a channel that is constant, the
    solution is the one of least norm in units of each column's root mean square.

    Args:
        parts: Anomalies now and at the later time, both ``[times, points, channels]``, part by part; at least one.
        latitudes: Latitudes of the grid.
    """
    width = 1 + len(_OFFSETS)
    matrix: Floats | None = None
    right: Floats | None = None
    for now, later in parts:
        cube, target = _cube(now, latitudes), _cube(later, latitudes)
        columns = [np.ones((1, 1, 1, 1)), *(np.roll(cube, offset, axis=1) for offset in _OFFSETS)]
        if matrix is None or right is None:
            matrix = np.zeros((latitudes, cube.shape[-1], width, width))
            right = np.zeros((latitudes, cube.shape[-1], width))
        for i, column in enumerate(columns):
            right[..., i] += (column * target).sum(axis=(0, 1))
            for j in range(i, width):
                product = np.broadcast_to(column * columns[j], cube.shape).sum(axis=(0, 1))
                matrix[..., i, j] += product
                matrix[..., j, i] += product if i != j else 0.0
    assert matrix is not None
    assert right is not None
    squares = np.diagonal(matrix, axis1=-2, axis2=-1)
    scale = np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 1.0)
    scaled = matrix * scale[..., :, None] * scale[..., None, :]
    solution = np.linalg.pinv(scaled, rcond=_NEGLIGIBLE, hermitian=True) @ (right * scale)[..., None]
    return LinearForecast(solution[..., 0] * scale)


def _cube(values: NDArray[Any], latitudes: int) -> Floats:
    """Return fields as float64 ``[times, longitudes, latitudes, channels]``."""
    return values.reshape(len(values), -1, latitudes, values.shape[-1]).astype(np.float64)
