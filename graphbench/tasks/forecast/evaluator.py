"""The evaluator of forecasts: of changes of fields on a latitude-longitude grid."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.casting import overflowing
from graphbench.core.errors import EvaluationError
from graphbench.data.components.field_conventions import FieldConvention
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.inputs import Table, as_array, refuse_large
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.score import Score
from graphbench.tasks.forecast.climatology import Climatology
from graphbench.tasks.forecast.metrics import WeatherSums

logger = logging.getLogger(__name__)

HEADLINES = (500, 700, 850)
"""Levels in hPa whose scores are listed: the levels of table 19 and of WeatherBench 2."""

LEADING = ("_geopotential_500", "_temperature_850", "_2m_temperature", "_mean_sea_level_pressure")
"""Ends of the names of the scores that every lead time has, beside the scores of whole variables."""

_SCORES = frozenset({"mse", "relative_mse", "acc"})

OF_CHANNELS = ("mse", "rmse", "bias", "acc")
"""The scores of single channels, named ``<score>_<channel>``."""


@dataclass(frozen=True, eq=False)
class ForecastFields:
    """The fields that a forecast predicts, and where and when.

    Attributes:
        channels: Names of the channels.
        output: Name of the output that is scored.
        state: Name of the feature whose change the output is.
        latitudes: Latitudes of the grid in degrees, ascending, float64.
        convention: The conventions of the fields.
        lead_hours: Hours from a sample to the time that is forecast.
        grid: Mask of the nodes of samples that are grid points, the first ones of every graph; None if all nodes are.
    """

    channels: tuple[str, ...]
    output: str
    state: str
    latitudes: NDArray[np.float64]
    convention: FieldConvention
    lead_hours: int
    grid: str | None = None


class ForecastEvaluator(BaseEvaluator):
    """Scores predicted changes of weather states; returned by ``Evaluator("weather/sim_64x32")``.

    Arguments of :meth:`evaluate` and :meth:`update`:

    - ``y_true``: the samples, a PyG ``Batch`` or ``Data``, or a list of ``Data``; or the changes themselves,
      ``[times, points, channels]``, without anomaly correlations.
    - ``y_pred``: the predicted changes at grid points, ``[times, points, channels]`` or ``[times * points, channels]``.

    The score has ``mse_<variable>``, the mean squared error over all times, points and levels of each variable,
    without weights; ``mse``, their sum over the variables; ``relative_mse`` and ``acc`` where asked for; and for every
    channel of the surface, 500, 700 and 850 hPa ``mse_<channel>``, ``rmse_<channel>``, ``bias_<channel>`` and
    ``acc_<channel>``; the last three are weighted by area (WeatherBench 2).

    That ``mse`` is the sum follows from GraphBench's table 19. Its row "All variables" of GT is 179,629. The errors of
    the five surface variables add up to 102,569.8, and the errors of the six others, each over all levels, to 77,058.2:
    together 179,627.9, and the difference comes from rounded numbers. The mean over the 83 channels would be 13,305.
    Geopotential and pressure rule the sum, as their units make their numbers large.

    Args:
        fields: The forecast fields.
        metrics: Names of the metrics, the primary one first: ``mse``, ``relative_mse``, ``acc``.
        climatology: The climatology of the training split, for the anomaly correlation, or a function that returns the
            climatology when it is first needed; without a climatology the metric is left out.
        remedy: Advice, in words, for a reader who lacks the climatology.
        scores: As for all evaluators; it has no meaning here.
        expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of samples.

    Attributes:
        sums: The running sums, which have the scores of all channels.

    Raises:
        EvaluationError: If a metric is not one of these.
    """

    def __init__(
        self,
        fields: ForecastFields,
        metrics: Sequence[str],
        *,
        climatology: Climatology | Callable[[], Climatology | None] | None = None,
        remedy: str = "give a climatology",
        scores: str | None = None,
        expected_graphs: int | None = None,
    ) -> None:
        super().__init__(scores, expected_graphs)
        unknown = [name for name in metrics if name not in _SCORES]
        if unknown:
            raise EvaluationError(f"forecasts have no metric {unknown[0]!r}; use some of {', '.join(sorted(_SCORES))}")
        self.metrics = tuple(METRICS[name] for name in metrics)
        self.fields, self.remedy, self._climatology = fields, remedy, climatology
        self.reset()

    def __repr__(self) -> str:
        """Return the output and the metrics."""
        return f"ForecastEvaluator({self.fields.output}; {', '.join(m.name for m in self.metrics)})"

    @property
    def sums(self) -> WeatherSums:
        """The running sums."""
        sums: WeatherSums = self._sums
        return sums

    @property
    def climatology(self) -> Climatology | None:
        """The climatology of the training split; None if none was given and the function for it returns none."""
        if callable(self._climatology):
            self._climatology = self._climatology()
        return self._climatology

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self._ahead: dict[int, WeatherSums] = {}
        self._last: float = math.inf  # steps with finite forecasts

    def update_rollout(
        self, changes: NDArray[Any], predicted: NDArray[Any], states: NDArray[Any], hours: NDArray[Any]
    ) -> None:
        """Take forecasts of several steps, whose scores :meth:`groups` returns for every lead time.

        Steps from which on a forecast is not finite are left out, with a warning.

        Args:
            changes: ``[times, steps, points, channels]``, how the states after each step differ from the first ones.
            predicted: The forecasts of these, of the same shape.
            states: ``[times, points, channels]``, the states that the forecasts began with.
            hours: ``[times]``, their times in hours.
        """
        finite = np.isfinite(predicted).all(axis=(0, 2, 3))
        steps = changes.shape[1] if finite.all() else int(np.argmin(finite))
        if steps < changes.shape[1]:
            logger.warning(
                "rollouts are not finite from %d hours on; these have no score", (steps + 1) * self.fields.lead_hours
            )
            self._last = min(self._last, steps)
        for step in range(steps):
            ahead = (step + 1) * self.fields.lead_hours
            sums = self._ahead.setdefault(ahead, self.start())
            self.add_fields(sums, changes[:, step], predicted[:, step], states, hours, ahead)

    def groups(self) -> dict[str, Score]:
        """Return the scores of rollouts by lead time, as ``h<hours>``, ascending."""
        lead_times = [ahead for ahead in sorted(self._ahead) if ahead <= self._last * self.fields.lead_hours]
        scores = {}
        for ahead in lead_times:
            sums = self._ahead[ahead]
            leading = {name: value for name, value in self._listed(sums).items() if name.endswith(LEADING)}
            scores[f"h{ahead}"] = self._score(sums, leading)
        return scores

    def start(self) -> WeatherSums:
        """Return the sums of no forecast."""
        return WeatherSums(len(self.fields.channels), self.fields.latitudes)

    def add(self, sums: WeatherSums, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add forecasts to the sums; where it raises, the sums stay as they were."""
        if batch is not None:
            raise EvaluationError("batch is given, but forecasts have a row per time and point; leave batch out")
        if isinstance(y_pred, Mapping):
            if self.fields.output not in y_pred:
                raise EvaluationError(f"y_pred lacks {self.fields.output!r}; it has {', '.join(map(str, y_pred))}")
            y_pred = y_pred[self.fields.output]
        states, hours = None, None
        if is_graphs(y_true):
            graphs = one_batch(y_true)
            times = int(getattr(graphs, "num_graphs", 1) or 1)
            change, states = (self._at_points(graphs, name, times) for name in (self.fields.output, self.fields.state))
            hours = as_array(graphs["time"], "time")
        else:
            change = as_array(y_true, "y_true")
        self.add_fields(sums, change, as_array(y_pred, "y_pred"), states, hours)

    def _at_points(self, graphs: Any, name: str, times: int) -> NDArray[Any]:
        """Return the rows of grid points of a field of graphs; ``[times, points, channels]``."""
        values = as_array(graphs[name], name)
        nodes = len(values) // times
        points = (
            nodes
            if self.fields.grid is None
            else int(as_array(graphs[self.fields.grid], self.fields.grid)[:nodes].sum())
        )
        return values.reshape(times, nodes, -1)[:, :points]

    def add_fields(
        self,
        sums: WeatherSums,
        change: NDArray[Any],
        predicted: NDArray[Any],
        states: NDArray[Any] | None,
        hours: NDArray[Any] | None,
        ahead: int | None = None,
    ) -> None:
        """Add forecasts that are given as arrays.

        Args:
            sums: The sums to add to.
            change: ``[times, points, channels]``.
            predicted: As many values, ``[times, points, channels]`` or ``[times * points, channels]``.
            states: ``[times, points, channels]``, the states that the forecasts began with.
            hours: ``[times]``, their times in hours since 1959-01-01 00 UTC.
            ahead: Hours ahead; None for the lead time of the task.

        Raises:
            EvaluationError: If shapes do not fit or a value is not finite.
        """
        wide = len(self.fields.channels)
        if change.ndim != 3 or change.shape[-1] != wide or change.shape[1] % len(self.fields.latitudes):
            raise EvaluationError(
                f"the targets have the shape {list(change.shape)}; give [times, points, {wide}] for a grid of "
                f"{len(self.fields.latitudes)} latitudes"
            )
        if predicted.size != change.size or predicted.shape[-1] != wide:
            raise EvaluationError(
                f"y_pred has the shape {list(predicted.shape)}; give {list(change.shape)}: one row per time and grid "
                "point, without the nodes of the mesh"
            )
        predicted = predicted.reshape(change.shape)
        wrong = np.argwhere(~np.isfinite(predicted))
        if len(wrong):
            t, p, c = wrong[0].tolist()
            raise EvaluationError(
                f"y_pred is {predicted[t, p, c]} at time {t} of this update, point {p}, channel "
                f"{self.fields.channels[c]}; predictions must be finite"
            )
        overflow = np.argwhere(overflowing(predicted, change.dtype))
        if len(overflow):
            t, p, c = overflow[0].tolist()
            raise EvaluationError(
                f"y_pred is {predicted[t, p, c]} at time {t} of this update, point {p}, channel "
                f"{self.fields.channels[c]}; it overflows {change.dtype}, the type of the targets: check the model "
                "for divergence"
            )
        for name, values in (("the targets", change), ("y_pred", predicted)):
            rows = values.reshape(-1, wide)
            refuse_large(Table(name, rows))
        if states is None or hours is None or self.climatology is None:
            sums.add(change, predicted, change=change)
            return
        later = states.astype(np.float64)
        sums.add(
            later + change,
            later + predicted,
            self.climatology.at(hours + (ahead or self.fields.lead_hours)),
            change,
        )

    def primary_sums(self, sums: WeatherSums) -> Mapping[str, Any]:
        """Return the sums behind the primary metric, where it follows from squared errors alone."""
        return {"": sums} if self.primary_name == "mse" else {}

    def primary_value(self, parts: Mapping[str, Any]) -> float:
        """Return the sum over variables of their mean squared errors."""
        return sum(self._of_variables(parts[""]).values())

    def finish(self, sums: WeatherSums) -> Score:
        """Return the score of sums to which forecasts were added."""
        self.check_graphs(sums.times)
        if not sums.times:
            raise EvaluationError("no forecasts were given, so there is nothing to score")
        return self._score(sums, self._listed(sums))

    def _score(self, sums: WeatherSums, listed: Mapping[str, float]) -> Score:
        """Return the scores of sums by metric and by variable, and the listed scores of single channels."""
        of_variables = self._of_variables(sums)
        total = sum(of_variables.values())
        values, undefined = self.values(lambda m: total if m.name == "mse" else m.value(sums))
        if "acc" in undefined:
            undefined["acc"] = self._without_anomalies()
        values |= {f"mse_{variable}": mse for variable, mse in of_variables.items()} | dict(listed)
        return Score(
            values,
            self.primary_name,
            items=sums.times * sums.points * len(self.fields.channels),
            graphs=sums.times,
            undefined=undefined,
        )

    def _without_anomalies(self) -> str:
        """Return the reason why there is no anomaly correlation, with its remedy."""
        if self.climatology is None:
            return f"its climatology is unknown, as the training split is not on this machine; {self.remedy}"
        return "no anomaly can be computed: pass samples, update(batch, predictions), which hold states and times"

    def _of_variables(self, sums: WeatherSums) -> dict[str, float]:
        """Return variable -> mean squared error over all its levels."""
        errors: dict[str, list[float]] = {}
        for channel, mse in zip(self.fields.channels, sums.mse.tolist(), strict=True):
            errors.setdefault(self.fields.convention.variable_and_level(channel)[0], []).append(mse)
        return {variable: float(np.mean(levels)) for variable, levels in errors.items()}

    def _listed(self, sums: WeatherSums) -> dict[str, float]:
        """Return the scores of the headline channels by name."""
        scores: dict[str, float] = {}
        columns = {name: getattr(sums, name) for name in OF_CHANNELS}
        for c, channel in enumerate(self.fields.channels):
            level = self.fields.convention.variable_and_level(channel)[1]
            if level is None or level in HEADLINES:
                scores |= {f"{name}_{channel}": float(score[c]) for name, score in columns.items()}
        return {name: value for name, value in scores.items() if np.isfinite(value)}
