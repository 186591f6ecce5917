"""Running sums of weather forecasts."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.errors import EvaluationError
from graphbench.core.latitudes import latitude_weights
from graphbench.evaluation.metrics.bootstrap import Floats, Tally, tallied
from graphbench.evaluation.metrics.registry import NO_FEATURE, Metric

_ROUNDING = 1e-12  # square of the relative error of sums of float32


class WeatherSums:
    """Running sums of forecasts, from which scores follow for every channel.

    Args:
        channels: Number of channels.
        latitudes: Latitudes of the grid in degrees, ascending; point ``longitude * latitudes + latitude`` of a field
            has the latitude of that number.

    Attributes:
        times: Number of forecasts.
    """

    tally: Tally | None = None

    def __init__(self, channels: int = 1, latitudes: ArrayLike = (-45.0, 45.0)) -> None:
        self.weights = latitude_weights(latitudes, kind="area")
        self.times = 0
        self.points = 0
        self._squares, self._weighted_squares, self._errors, self._changes = (np.zeros(channels) for _ in range(4))
        self._correlations, self._correlated = np.zeros(channels), np.zeros(channels, np.int64)

    def add(
        self,
        truth: NDArray[Any],
        forecast: NDArray[Any],
        climatology: NDArray[Any] | None = None,
        change: NDArray[Any] | None = None,
    ) -> None:
        """Add forecasts.

        Args:
            truth: ``[times, points, channels]``.
            forecast: ``[times, points, channels]``.
            climatology: ``[times, points, channels]``, the climatology of the same times, or None.
            change: ``[times, points, channels]``, how the truth differs from the state that the forecast began with:
                the error of persistence.
        """
        shape = len(truth), -1, len(self.weights), truth.shape[-1]
        actual, predicted = truth.reshape(shape).astype(np.float64), forecast.reshape(shape).astype(np.float64)
        error = predicted - actual
        squares = np.einsum("tolc,tolc->lc", error, error)
        self._squares += squares.sum(axis=0)
        self._weighted_squares += self.weights @ squares
        self._errors += np.einsum("tolc,l->c", error, self.weights)
        if change is not None:
            self._changes += np.einsum("tpc,tpc->c", change, change, dtype=np.float64)
        self.times += len(truth)
        self.points = actual.shape[1] * actual.shape[2]
        if climatology is not None:
            self._correlate(predicted, actual, climatology.reshape(shape))
        tallied(self, error)

    def shares(self, error: NDArray[Any]) -> Floats | None:
        """Return the contribution of each forecast to the squared errors and to the number of forecasts."""
        squares = np.einsum("tolc,tolc->tc", error, error)
        return np.concatenate([squares, np.ones((len(error), 1))], axis=1)

    def like(self, totals: Floats) -> Self:
        """Return the sums of forecasts with other squared errors; only :attr:`mse` follows from them."""
        sums = copy(self)
        sums._squares, sums.times = totals[:-1], totals[-1]
        return sums

    def _correlate(self, predicted: Floats, actual: Floats, usual: NDArray[Any]) -> None:
        """Add the correlations of anomalies; fields without an anomaly beyond rounding have none."""
        first, second = predicted - usual, actual - usual

        def product(a: Floats, b: Floats) -> Floats:
            return np.asarray(np.einsum("tolc,tolc,l->tc", a, b, self.weights))

        squares = product(first, first), product(second, second)
        defined = (squares[0] > _ROUNDING * product(predicted, predicted)) & (
            squares[1] > _ROUNDING * product(actual, actual)
        )
        scale = squares[0] * squares[1]
        correlation = product(first, second) / np.sqrt(np.where(defined, scale, 1.0))
        self._correlations += np.where(defined, correlation, 0.0).sum(axis=0)
        self._correlated += defined.sum(axis=0)

    @property
    def mse(self) -> Floats:
        """Mean squared error of every channel, without weights."""
        return self._squares / (self.times * self.points)

    @property
    def relative_mse(self) -> Floats:
        """Mean squared error of every channel over the mean squared error of persistence; nan where nothing changes."""
        return np.where(self._changes > 0, self._squares / np.where(self._changes > 0, self._changes, 1.0), np.nan)

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


def mean_relative_mse(sums: WeatherSums) -> float:
    """Return the mean over channels of the relative squared error.

    Raises:
        EvaluationError: If no channel changes.
    """
    return _mean("relative_mse", sums.relative_mse, "no channel changes from the state to the truth")


def mean_acc(sums: WeatherSums) -> float:
    """Return the mean over channels of the anomaly correlation.

    Raises:
        EvaluationError: If there are no anomalies, or the climatology is unknown.
    """
    return _mean("acc", sums.acc, "there is no climatology of the training split, or no anomaly")


def _mean(name: str, values: Floats, why: str) -> float:
    finite = values[~np.isnan(values)]
    if not len(finite):
        raise EvaluationError(f"{name} is undefined: {why}")
    return float(finite.mean())


_METRICS = (
    Metric(
        "relative_mse", False, 0, math.inf,
        "Mean over channels of the mean squared error, divided by the error of persistence, whose score is 1.",
        NO_FEATURE, WeatherSums, mean_relative_mse, squared=True,
    ),
    Metric(
        "acc", True, -1, 1,
        "Mean over channels of the anomaly correlation: of forecast and truth minus the climatology of training, "
        "weighted by area, averaged over times.",
        NO_FEATURE, WeatherSums, mean_acc,
    ),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}
"""Name -> metric of this kind of task."""
