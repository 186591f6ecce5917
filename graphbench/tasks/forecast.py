"""Forecasts: the change of a state within some hours, on a latitude-longitude grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphbench.catalog.features import Location
from graphbench.core.errors import ArgumentError, CardError, EvaluationError
from graphbench.core.validation import explain
from graphbench.domains.weather.grids import grid_latitudes
from graphbench.domains.weather.weights import channel_weights, latitude_weights
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.climatology import Climatology, climatology_of
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.forecasts import ForecastEvaluator
from graphbench.evaluation.linear_forecasts import fit_linear_forecast
from graphbench.tasks.base import Task
from graphbench.tasks.files import SAME_LIMIT, rows_of_output, write_arrays

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.data.dataset import GraphDataset
    from graphbench.data.samples import Samples
    from graphbench.loader import Splits

_AT_ONCE = 32  # states: 22 MB
_DEVIATION = "deviation_"
_LINEAR = "linear_regression"


class ForecastOptions(BaseModel):
    """Settings of a forecast on a card.

    Attributes:
        latitudes: Latitudes of the grid, whose points are the first nodes of every graph.
        step_hours: Hours between two states of a run.
        diurnal: Whether the climatology has a mean for each of 00, 06, 12 and 18 UTC, beside each month.
        time: Stored feature of graphs: hours since 1959-01-01 00 UTC.
        grid: Mask of the nodes that are grid points, the first ones of every graph; None if all nodes are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    latitudes: int = Field(32, ge=2)
    step_hours: int = Field(6, ge=1)
    diurnal: bool = False
    time: str = "time"
    grid: str | None = "grid"


class ForecastTask(Task):
    """Predict the changes of a state of the card's series.

    Errors are divided by the standard deviation of the channel's change in training, and weighted by latitude, level
    and variable (GraphBench, section 3.4.1); scores are those of ``ForecastEvaluator``.

    Attributes:
        climatology: That of the training split; None until :meth:`read_training` was called.
    """

    type: ClassVar[str] = "forecast"
    samples: ClassVar[str] = "times"
    floor_predictors: ClassVar[str] = (
        "persistence of the state, of the state 6 hours later, the training climatology, and linear regression of "
        "every channel on itself and its neighbours"
    )
    reads_training: ClassVar[bool] = True
    timing: ClassVar[tuple[int, int, int]] = (8, 16, 3)
    endings: ClassVar[tuple[str, ...]] = (".npz", ".npy")

    def __init__(self, card: Any, **settings: Any) -> None:
        super().__init__(card, **settings)
        self.climatology: Climatology | None = None
        self._weights: Any = None
        self._points: int | None = None

    def check_card(self) -> None:
        """Refuse a card without a series of one output, whose channels have names.

        Raises:
            CardError: With the reason.
        """
        super().check_card()
        card, where = self.card, f"{self.card.path} ({self.card.address})"
        if card.series is None or len(card.outputs) != 1 or card.outputs[0].location is not Location.NODE:
            raise CardError(f"{where}: a forecast task needs series, with the change of a feature of nodes as output")
        self.output = card.outputs[0].name
        self.state = card.series.changes[self.output]
        if self.output not in card.channels:
            raise CardError(f"{where}: a forecast task needs names of the channels of {self.output}; write channels")
        try:
            self.options = ForecastOptions.model_validate(card.task.options)
            self.channel_weights = channel_weights(card.channels[self.output])
        except ValidationError as error:
            raise CardError(f"{where}: task.options: {explain(error, ForecastOptions)}") from error
        except ArgumentError as error:
            raise CardError(f"{where}: channels.{self.output}: {error}") from error
        for key, name, known in (
            ("time", self.options.time, card.stored.stored_features),
            ("grid", self.options.grid, card.features),
        ):
            if name is not None and name not in {f.name for f in known}:
                raise CardError(f"{where}: task.options.{key} names {name!r}, which is none of the features")
        self.channels = card.channels[self.output]
        self.lead = card.series.lead

    @property
    def lead_hours(self) -> int:
        """Hours from a sample to the time that is forecast."""
        return self.lead * self.options.step_hours

    # ------------------------------------------------------------------------------------------------ training split

    def training_facts(self, train: GraphDataset) -> dict[str, float]:
        """Return the standard deviation of every channel's change, ``deviation_<channel>``, over all grid points."""
        squares, sums, count = np.zeros(len(self.channels)), np.zeros(len(self.channels)), 0
        for _, change, _ in self._pairs(train.samples):
            squares += np.einsum("tpc,tpc->c", change, change, dtype=np.float64)
            sums += change.sum(axis=(0, 1), dtype=np.float64)
            count += change.shape[0] * change.shape[1]
        deviations = np.sqrt(np.maximum(squares / count - (sums / count) ** 2, 0))
        if not deviations.all():
            still = self.channels[int(np.argmin(deviations))]
            raise CardError(f"{self.card.address}: {still} never changes in the training split; take a longer one")
        return {f"{_DEVIATION}{name}": float(d) for name, d in zip(self.channels, deviations, strict=True)}

    def read_training(self, data: Splits) -> None:
        """Compute the climatology and the deviations of changes from the training split, unless they are known."""
        super().read_training(data)
        if self.climatology is None:
            self.climatology = self.climatology_of(data["train"].samples)

    def climatology_of(self, train: Samples) -> Climatology:
        """Return the climatology of stored states."""
        return climatology_of(self._states(train), self.options.diurnal)

    def _states(self, samples: Samples) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield times in hours, and states ``[times, points, channels]``, some at once."""
        for first in range(0, len(samples), _AT_ONCE):
            chosen = np.arange(first, min(first + _AT_ONCE, len(samples)))
            yield np.asarray(samples.values[self.options.time])[chosen], self._at(samples, chosen)

    def _at(self, samples: Samples, times: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return stored states as values; float32 ``[times, points, channels]``."""
        from graphbench.data.packing import unpack

        rows = samples.values[self.state]
        taken = rows.reshape(len(samples), -1, rows.shape[-1])[times]
        packing = self.card.packed.get(self.state)
        return taken.astype(np.float32) if packing is None else unpack(taken, packing)

    def _pairs(self, samples: Samples) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Yield numbers of states, their changes and the states, some at once."""
        from graphbench.data.series import pairs_of_runs

        assert self.card.series is not None
        starts = pairs_of_runs(np.asarray(samples.values[self.card.series.run]), self.lead)
        for first in range(0, len(starts), _AT_ONCE):
            own = starts[first : first + _AT_ONCE]
            states = self._at(samples, own)
            yield own, self._at(samples, own + self.lead) - states, states

    # ------------------------------------------------------------------------------------------------ batches, loss

    def normalisation_batches(self, train: Any) -> Iterable[Any]:
        """Return batches of some training samples; states are large, and their statistics converge fast."""
        found: Iterable[Any] = train.batches(_AT_ONCE)
        return found

    def normalisation_batch(self, train: Any) -> Any:
        """Return a batch of training samples in random order, from which models take means, without mesh nodes."""
        from graphbench.data.series import with_stored_rows

        batch = next(iter(train.batches(min(_AT_ONCE, len(train)), shuffle=True)))
        return with_stored_rows(self.card, train, batch)

    def losses(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the weighted mean of squared errors at grid points, in units of the deviations of training changes."""
        predicted, target = (
            self._at_points(values.float(), batch) for values in (outputs[self.output], batch[self.output])
        )
        rows, columns = self._loss_weights(predicted)
        error = (predicted - target) ** 2
        return {self.output: (error.mean(0) * rows[:, None] * columns).mean()}

    def _loss_weights(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights of grid points ``[points]`` and of channels ``[channels]``, on a tensor's device."""
        import torch

        if self._weights is None or self._weights[0].device != like.device:
            if not self.facts:
                raise CardError(
                    f"{self.card.address}: the deviations of changes are unknown; call Task.read_training(data) first"
                )
            deviations = np.array([self.facts[f"{_DEVIATION}{name}"] for name in self.channels])
            latitudes = latitude_weights(grid_latitudes(self.options.latitudes))
            rows = np.tile(latitudes, int(like.shape[1]) // len(latitudes))
            pair = rows, self.channel_weights / deviations**2
            self._weights = tuple(torch.from_numpy(w.astype(np.float32)).to(like.device) for w in pair)
        return self._weights  # type: ignore[no-any-return]

    def _at_points(self, values: Tensor, batch: Any) -> Tensor:
        """Return the rows of grid points, the first nodes of every graph; ``[times, points, channels]``."""
        times = int(batch.num_graphs)
        if self._points is None:
            nodes = int(batch.num_nodes) // times
            grid = self.options.grid
            self._points = nodes if grid is None else int(batch[grid][:nodes].sum())
        return values.reshape(times, -1, values.shape[-1])[:, : self._points]

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of times behind the loss."""
        return {self.output: float(batch.num_graphs)}

    # ------------------------------------------------------------------------------------------------ scores

    def predict(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the predicted changes at grid points, ``[times, points, channels]``."""
        return {self.output: self._at_points(outputs[self.output].detach().float(), batch)}

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator; it scores anomaly correlations once :meth:`read_training` was called."""
        return ForecastEvaluator(
            self.channels,
            self.output,
            self.state,
            grid_latitudes(self.options.latitudes),
            (self.card.metrics.primary, *self.card.metrics.also),
            grid=self.options.grid,
            lead_hours=self.lead_hours,
            climatology=self.climatology,
            scores=scores,
            expected_graphs=expected_graphs,
        )

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of persistence over the lead and over its last step, climatology and linear regression."""
        if self.climatology is None:
            self.climatology = self.climatology_of(train)
        step = self.options.step_hours
        names = ["persistence", *([f"persistence_{step}h"] if self.lead > 1 else []), "climatology", _LINEAR]
        linear = fit_linear_forecast(self._anomalies(train, self.climatology), self.options.latitudes)
        evaluators: dict[str, Any] = {name: self.evaluator() for name in names}
        hours = np.asarray(samples.values[self.options.time])
        found = {name: evaluator.start() for name, evaluator in evaluators.items()}
        for own, change, states in self._pairs(samples):
            begin = hours[own]
            usual = self.climatology.at(begin + self.lead_hours)
            guesses = {
                "persistence": np.zeros_like(change),
                f"persistence_{step}h": self._at(samples, own + self.lead - 1) - states,
                "climatology": usual - states,
                _LINEAR: usual + linear.later(states - self.climatology.at(begin)) - states,
            }
            for name, evaluator in evaluators.items():
                evaluator.add_fields(found[name], change, guesses[name], states, begin)
        return {name: dict(evaluator.finish(found[name])) for name, evaluator in evaluators.items()}

    def _anomalies(self, train: Samples, usual: Climatology) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the deviations of states from a climatology, now and at the later time, some at once."""
        hours = np.asarray(train.values[self.options.time])
        for own, change, states in self._pairs(train):
            yield states - usual.at(hours[own]), states + change - usual.at(hours[own] + self.lead_hours)

    # ------------------------------------------------------------------------------------------------ files

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions), from an array ``[times, points, channels]`` or with a row per time and point."""
        array = rows_of_output(read_arrays(path), [self.output], path)[self.output]
        wide, times = len(self.channels), len(split)
        if array.shape[-1] != wide or array.size % (times * wide):
            raise EvaluationError(
                f"{path} has the shape {list(array.shape)}, {self.card.address} {split.split} has {times:,} times "
                f"here; write [times, points, {wide}], and {SAME_LIMIT}"
            )
        values, first = array.reshape(times, -1, wide), 0
        for batch in split.batches(_AT_ONCE):
            yield batch, {self.output: values[first : first + batch.num_graphs]}
            first += batch.num_graphs

    def write_predictions(self, path: Path, predictions: Iterable[Mapping[str, Any]]) -> Path:
        """Write an array ``[times, points, channels]`` named ``y_pred`` to a ``.npz`` file."""
        parts = [np.asarray(batch[self.output]) for batch in predictions]
        return write_arrays(path, {"y_pred": np.concatenate(parts)})
