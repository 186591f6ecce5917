"""Scores of weather forecasts: unweighted mean squared errors, and those of WeatherBench 2.

Rasp et al., *WeatherBench 2: A benchmark for the next generation of data-driven global weather models* (2024),
section 4: root mean squared error, bias and anomaly correlation are weighted by the area of grid cells; squared errors
are averaged over time before the root is taken; correlations are averaged over time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.errors import EvaluationError
from graphbench.domains.weather.channels import ATMOSPHERE, LEVELS, SURFACE, is_surface
from graphbench.domains.weather.grids import grid_latitudes
from graphbench.domains.weather.weights import latitude_weights

Floats = NDArray[np.float64]
Fields = Mapping[str, ArrayLike] | ArrayLike
_LATITUDES = 32


class WeatherSums:
    """Running sums of forecasts, from which scores follow for every channel.

    Args:
        channels: Number of channels.
        latitudes: Latitudes of the grid in degrees, ascending; point ``longitude * latitudes + latitude`` of a field
            has the latitude of that number.

    Attributes:
        times: Number of forecasts.
    """

    def __init__(self, channels: int, latitudes: ArrayLike) -> None:
        self.weights = latitude_weights(latitudes, kind="area")
        self.times = 0
        self.points = 0
        self._squares, self._weighted_squares, self._errors = (np.zeros(channels) for _ in range(3))
        self._correlations, self._correlated = np.zeros(channels), np.zeros(channels, np.int64)

    def add(self, truth: NDArray[Any], forecast: NDArray[Any], climatology: NDArray[Any] | None = None) -> None:
        """Add forecasts.

        Args:
            truth: ``[times, points, channels]``.
            forecast: ``[times, points, channels]``.
            climatology: ``[times, points, channels]``, the climatology of the same times, or None.
        """
        shape = len(truth), -1, len(self.weights), truth.shape[-1]
        actual, predicted = truth.reshape(shape).astype(np.float64), forecast.reshape(shape).astype(np.float64)
        error = predicted - actual
        squares = np.einsum("tolc,tolc->lc", error, error)
        self._squares += squares.sum(axis=0)
        self._weighted_squares += self.weights @ squares
        self._errors += np.einsum("tolc,l->c", error, self.weights)
        self.times += len(truth)
        self.points = actual.shape[1] * actual.shape[2]
        if climatology is not None:
            self._correlate(predicted, actual, climatology.reshape(shape))

    def _correlate(self, predicted: Floats, actual: Floats, usual: NDArray[Any]) -> None:
        """Add the correlations of anomalies; fields without an anomaly have none."""
        first, second = predicted - usual, actual - usual

        def product(a: Floats, b: Floats) -> Floats:
            return np.asarray(np.einsum("tolc,tolc,l->tc", a, b, self.weights))

        scale = product(first, first) * product(second, second)
        defined = scale > 0
        correlation = product(first, second) / np.sqrt(np.where(defined, scale, 1.0))
        self._correlations += np.where(defined, correlation, 0.0).sum(axis=0)
        self._correlated += defined.sum(axis=0)

    @property
    def mse(self) -> Floats:
        """Mean squared error of every channel, without weights."""
        return self._squares / (self.times * self.points)

    @property
    def rmse(self) -> Floats:
        """Root mean squared error of every channel, weighted by area."""
        return np.sqrt(self._weighted_squares / (self.times * self.points))

    @property
    def bias(self) -> Floats:
        """Mean of forecast minus truth of every channel, weighted by area."""
        return self._errors / (self.times * self.points)

    @property
    def acc(self) -> Floats:
        """Mean anomaly correlation of every channel, weighted by area; nan where no time has one."""
        return np.where(self._correlated > 0, self._correlations / np.maximum(self._correlated, 1), np.nan)


def weather_scores(
    truth: Fields, forecast: Fields, climatology: Fields | None = None, *, latitudes: ArrayLike | None = None
) -> dict[str, dict[str, Any]]:
    """Return the scores of weather forecasts per variable and level.

    Fields are a mapping ``variable -> [times, longitudes, latitudes]``, or ``[times, levels, longitudes, latitudes]``
    for variables on levels, as in WeatherBench 2; or one array ``[times, points, 83]`` with the channels of
    ``graphbench.domains.weather.CHANNELS`` and point ``longitude * latitudes + latitude``.

    Args:
        truth: What came.
        forecast: What was forecast for the same times.
        climatology: The climatology of the same times, for the anomaly correlation.
        latitudes: Latitudes of the grid in degrees, ascending; None for an equiangular grid, of 32 latitudes where
            fields are one array.

    Returns:
        metric -> variable -> score, float64 ``[levels]`` for variables on levels and a number for others. Metrics are
        ``mse`` (unweighted; GraphBench, table 19), ``rmse`` and ``bias`` (weighted by area), and with a climatology
        ``acc``, the anomaly correlation (nan where a field has no anomaly).

    Raises:
        EvaluationError: If shapes differ, a variable is missing, or a value is not finite; the message says where.
    """
    given = {"truth": truth, "forecast": forecast} | ({} if climatology is None else {"climatology": climatology})
    split = {name: _by_variable(name, fields) for name, fields in given.items()}
    known = split["truth"]
    for name, fields in split.items():
        for variable, values in known.items():
            if variable not in fields:
                raise EvaluationError(f"the {name} lacks {variable!r}; it has {', '.join(fields)}")
            if fields[variable].shape != values.shape:
                raise EvaluationError(
                    f"{variable} has the shape {list(fields[variable].shape)} in the {name} and {list(values.shape)} "
                    "in the truth"
                )
            _require_finite(f"{variable} of the {name}", fields[variable])
    found: dict[str, dict[str, Any]] = {}
    for variable, values in known.items():
        rows = _latitudes(variable, values, latitudes, isinstance(truth, Mapping))
        sums = WeatherSums(values.shape[-1], rows)
        sums.add(
            values, split["forecast"][variable], split["climatology"][variable] if climatology is not None else None
        )
        scores = {"mse": sums.mse, "rmse": sums.rmse, "bias": sums.bias}
        scores |= {} if climatology is None else {"acc": sums.acc}
        for metric, score in scores.items():
            found.setdefault(metric, {})[variable] = float(score[0]) if is_surface(variable) else score
    return found


def _by_variable(name: str, fields: Fields) -> dict[str, Floats]:
    """Return variable -> ``[times, points, levels]``, or ``[times, longitudes, latitudes, levels]`` of a mapping."""
    if isinstance(fields, Mapping):
        if not fields:
            raise EvaluationError(f"the {name} has no variables")
        return {variable: _with_levels_last(name, variable, np.asarray(own)) for variable, own in fields.items()}
    values = np.asarray(fields)
    count = len(SURFACE) + len(ATMOSPHERE) * len(LEVELS)
    if values.ndim != 3 or values.shape[-1] != count or not values.size:
        raise EvaluationError(f"the {name} has the shape {list(values.shape)}; give [times, points, {count}]")
    found, first = {}, 0
    for variable in (*SURFACE, *ATMOSPHERE):
        wide = 1 if is_surface(variable) else len(LEVELS)
        found[variable] = values[..., first : first + wide]
        first += wide
    return found


def _with_levels_last(name: str, variable: str, values: Floats) -> Floats:
    dimensions = ["times", "longitudes", "latitudes"] if is_surface(variable) else [*_DIMENSIONS]
    if values.ndim != len(dimensions) or not values.size:
        raise EvaluationError(
            f"{variable} of the {name} has the shape {list(values.shape)}; give [{', '.join(dimensions)}]"
        )
    return values[..., None] if is_surface(variable) else np.moveaxis(values, 1, -1)


_DIMENSIONS = ("times", "levels", "longitudes", "latitudes")


def _latitudes(variable: str, values: Floats, latitudes: ArrayLike | None, has_grid: bool) -> Floats:
    if latitudes is None:
        return grid_latitudes(values.shape[2] if has_grid else _LATITUDES)
    rows = np.asarray(latitudes, np.float64)
    fits = values.shape[2] == len(rows) if has_grid else values.shape[1] % len(rows) == 0
    if not fits:
        raise EvaluationError(
            f"{variable} has the shape {list(values.shape)}, which does not fit {len(rows)} latitudes"
        )
    return rows


def _require_finite(what: str, values: NDArray[Any]) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise EvaluationError(f"{what} is {values[place]} at time {place[0]}; scores need finite numbers")
