"""Scores of weather forecasts: unweighted mean squared errors, and the scores of WeatherBench 2.

Rasp et al., *WeatherBench 2: A benchmark for the next generation of data-driven global weather models* (2024),
section 4: root mean squared error, bias and anomaly correlation are weighted by the area of grid cells; squared errors
are averaged over time before the root is taken; correlations are averaged over time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.core.latitudes import grid_latitudes
from graphbench.core.suggestions import closest
from graphbench.data.components.domain import find
from graphbench.tasks.forecast.metrics import WeatherSums

Floats = NDArray[np.float64]
Fields = Mapping[str, ArrayLike] | ArrayLike
_LATITUDES = 32
_CONVENTION = "weather.weatherbench"


def weather_scores(
    truth: Fields, forecast: Fields, climatology: Fields | None = None, *, latitudes: ArrayLike | None = None
) -> dict[str, dict[str, Any]]:
    """Return the scores of weather forecasts per variable and level.

    Fields are a mapping ``variable -> [times, longitudes, latitudes]``, or ``[times, levels, longitudes, latitudes]``
    for variables on levels, as in WeatherBench 2; or one array ``[times, points, 83]`` with the channels of
    ``graphbench.domains.weather.CHANNELS`` and point ``longitude * latitudes + latitude``.

    Args:
        truth: The observed fields.
        forecast: The forecast fields for the same times.
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
    inputs = {"truth": truth, "forecast": forecast} | ({} if climatology is None else {"climatology": climatology})
    split = {name: _by_variable(name, fields) for name, fields in inputs.items()}
    true_fields = split["truth"]
    for name, fields in split.items():
        for variable, values in true_fields.items():
            if variable not in fields:
                raise EvaluationError(f"the {name} lacks {variable!r}; it has {', '.join(fields)}")
            if fields[variable].shape != values.shape:
                raise EvaluationError(
                    f"{variable} has the shape {list(fields[variable].shape)} in the {name} and {list(values.shape)} "
                    "in the truth"
                )
            _require_finite(f"{variable} of the {name}", fields[variable])
    by_metric: dict[str, dict[str, Any]] = {}
    for variable, values in true_fields.items():
        rows = _latitudes(variable, values, latitudes, isinstance(truth, Mapping))
        sums = WeatherSums(values.shape[-1], rows)
        sums.add(
            values, split["forecast"][variable], split["climatology"][variable] if climatology is not None else None
        )
        scores = {"mse": sums.mse, "rmse": sums.rmse, "bias": sums.bias}
        scores |= {} if climatology is None else {"acc": sums.acc}
        for metric, score in scores.items():
            by_metric.setdefault(metric, {})[variable] = float(score[0]) if _is_single(variable) else score
    return by_metric


def _by_variable(name: str, fields: Fields) -> dict[str, Floats]:
    """Return variable -> ``[times, points, levels]``, or ``[times, longitudes, latitudes, levels]`` of a mapping."""
    if isinstance(fields, Mapping):
        if not fields:
            raise EvaluationError(f"the {name} has no variables")
        return {variable: _with_levels_last(name, variable, np.asarray(levels)) for variable, levels in fields.items()}
    values = np.asarray(fields)
    widths = {variable: len(levels) or 1 for variable, levels in find("convention", _CONVENTION).levels.items()}
    count = sum(widths.values())
    if values.ndim != 3 or values.shape[-1] != count or not values.size:
        raise EvaluationError(f"the {name} has the shape {list(values.shape)}; give [times, points, {count}]")
    variables, first = {}, 0
    for variable, wide in widths.items():
        variables[variable] = values[..., first : first + wide]
        first += wide
    return variables


def _is_single(variable: str) -> bool:
    """Return whether a variable has one channel, and no levels.

    Raises:
        ArgumentError: If the variable is unknown; the message suggests the nearest name.
    """
    levels = find("convention", _CONVENTION).levels
    if variable not in levels:
        raise ArgumentError(f"unknown variable {variable!r}{closest(variable, levels)} (there are {', '.join(levels)})")
    return not levels[variable]


def _with_levels_last(name: str, variable: str, values: Floats) -> Floats:
    dimensions = ["times", "longitudes", "latitudes"] if _is_single(variable) else [*_DIMENSIONS]
    if values.ndim != len(dimensions) or not values.size:
        raise EvaluationError(
            f"{variable} of the {name} has the shape {list(values.shape)}; give [{', '.join(dimensions)}]"
        )
    return values[..., None] if _is_single(variable) else np.moveaxis(values, 1, -1)


_DIMENSIONS = ("times", "levels", "longitudes", "latitudes")


def _latitudes(variable: str, values: Floats, latitudes: ArrayLike | None, has_grid: bool) -> Floats:
    if latitudes is None and (has_grid or values.shape[1] % _LATITUDES == 0):
        return grid_latitudes(values.shape[2] if has_grid else _LATITUDES)
    if latitudes is None:
        raise EvaluationError(
            f"the fields have {values.shape[1]} points, which is no grid of {_LATITUDES} latitudes; give latitudes"
        )
    rows = np.asarray(latitudes, np.float64)
    fits = values.shape[2] == len(rows) if has_grid else values.shape[1] % len(rows) == 0
    if not fits:
        raise EvaluationError(
            f"{variable} has the shape {list(values.shape)}, which does not fit {len(rows)} latitudes"
        )
    return rows


def _require_finite(name: str, values: NDArray[Any]) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        index = tuple(wrong[0].tolist())
        raise EvaluationError(f"{name} is {values[index]} at time {index[0]}; scores need finite numbers")
