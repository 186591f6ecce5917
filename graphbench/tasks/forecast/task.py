"""Forecasts: the change of a state within some hours, on a latitude-longitude grid."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.catalog.features import Location
from graphbench.core.errors import ArgumentError, CardError, EvaluationError
from graphbench.core.latitudes import grid_latitudes, latitude_weights
from graphbench.core.validation import StrictModel
from graphbench.data.components.domain import find, only_name
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.groups import QUANTITIES
from graphbench.evaluation.inputs import as_array
from graphbench.tasks.base import BoundModel, FurtherBatches, OptionsType, Task
from graphbench.tasks.files import SAME_LIMIT, most_array_bytes, rows_of_output, write_arrays
from graphbench.tasks.forecast.climatology import Climatology, climatology_of
from graphbench.tasks.forecast.evaluator import OF_CHANNELS, ForecastEvaluator, ForecastFields
from graphbench.tasks.forecast.linear_baseline import fit_linear_forecast
from graphbench.tasks.forecast.rollouts import Rollout, RolloutOptions, Stepper, rollout_starts, rollouts

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)

_STATES_PER_BATCH = 32  # states: 22 MB
_DEVIATION = "deviation_"
_LINEAR = "linear_regression"


class ForecastOptions(StrictModel):
    """Settings of a forecast on a card.

    Attributes:
        latitudes: Latitudes of the grid, whose points are the first nodes of every graph.
        step_hours: Hours between two states of a run.
        diurnal: Whether the climatology has a mean for each of 00, 06, 12 and 18 UTC, beside each month.
        convention: The conventions of the fields, as ``<domain>.<name>``; None for the only ones of the card's domain.
        time: Stored feature of graphs: hours since the epoch of the conventions.
        grid: Mask of the nodes that are grid points, the first ones of every graph; None if all nodes are.
        clock: Feature of graphs that encodes the time as the conventions do; None if there is
            none. Rollouts advance it.
        rollout: Which rollouts are scored; None for none.
    """

    latitudes: int = Field(32, ge=2)
    step_hours: int = Field(6, ge=1)
    diurnal: bool = False
    convention: str | None = None
    time: str = "time"
    grid: str | None = "grid"
    clock: str | None = "clock"
    rollout: RolloutOptions | None = None


class ForecastTask(Task):
    """Predict the changes of a state of the card's series.

    Errors are divided by the standard deviation of the channel's change in training, and weighted by latitude, level
    and variable (GraphBench, section 3.4.1); ``ForecastEvaluator`` computes the scores.

    Attributes:
        climatology: The climatology of the training split; None until :meth:`read_training` was called.
    """

    type: ClassVar[str] = "forecast"
    options_type: ClassVar[OptionsType] = ForecastOptions
    options: ForecastOptions
    samples: ClassVar[str] = "times"
    floor_predictors: ClassVar[str] = (
        "persistence of the state, the training climatology, and linear regression of "
        "every channel on itself and its neighbours"
    )
    solvers_given: ClassVar[str] = "the state of the last step before the target"
    reads_training: ClassVar[bool] = True
    timing: ClassVar[tuple[int, int, int]] = (8, 16, 3)
    endings: ClassVar[tuple[str, ...]] = (".npz", ".npy")
    size_grows_by_factors: ClassVar[bool] = False

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(card, train_options)
        self.climatology: Climatology | None = None
        self._root: str | Path | None = None
        self._may_find_climatology = False
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
        self.convention = find("convention", self.options.convention or only_name("convention", card.domain))
        try:
            self.channel_weights = self.convention.channel_weights(card.channels[self.output])
        except ArgumentError as error:
            raise CardError(f"{where}: channels.{self.output}: {error}") from error
        for key, name, allowed in (
            ("time", self.options.time, card.graph_features),
            ("grid", self.options.grid, card.features),
            ("clock", self.options.clock, card.features),
        ):
            if name is not None and name not in {f.name for f in allowed}:
                raise CardError(f"{where}: task.options.{key} names {name!r}, which is none of the features")
        self.channels = card.channels[self.output]
        self.series, self.lead = card.series, card.series.lead

    @property
    def lead_hours(self) -> int:
        """Hours from a sample to the time that is forecast."""
        return self.lead * self.options.step_hours

    @property
    def size_name(self) -> str:
        """The quantity that differs from split to split."""
        return QUANTITIES["h"]

    @property
    def size_axis(self) -> tuple[str, Any] | None:
        """The noun for hours ahead, and the hours ahead of training."""
        return self.size_name, self.lead_hours

    def sample_size(self, split: str) -> float | None:
        """Return how many hours ahead the samples of a split are forecast."""
        return float(self.lead_hours)

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
        """Compute the climatology and the deviations of changes from the training split, unless they are set."""
        super().read_training(data)
        if self.climatology is None:
            self.climatology = self.climatology_of(data["train"].samples)

    def find_training(self, root: str | Path | None = None) -> None:
        """Let evaluators take the climatology from the training split's files, when they first need it."""
        super().find_training(root)
        self._root, self._may_find_climatology = root, True

    def _found_climatology(self) -> Climatology | None:
        """Return the climatology of the training split's files; None if the split is not on this machine."""
        if self.climatology is None:
            from graphbench.data.batches.dataset import finished_split

            train = finished_split(self.card, "train", self._root)
            self.climatology = None if train is None else self.climatology_of(train.samples)
        return self.climatology

    def climatology_of(self, train: Samples) -> Climatology:
        """Return the climatology of stored states."""
        return climatology_of(self._states(train), self.options.diurnal, self.convention.months)

    def _states(self, samples: Samples) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield times in hours, and states ``[times, points, channels]``, some at once."""
        for first in range(0, len(samples), _STATES_PER_BATCH):
            chosen = np.arange(first, min(first + _STATES_PER_BATCH, len(samples)))
            yield np.asarray(samples.values[self.options.time])[chosen], self._at(samples, chosen)

    def _at(self, samples: Samples, times: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return stored states as values; float32 ``[times, points, channels]``."""
        from graphbench.data.arrays.quantisation import unpack

        rows = samples.values[self.state]
        taken = rows.reshape(len(samples), -1, rows.shape[-1])[times]
        packing = self.card.packed.get(self.state)
        return taken.astype(np.float32) if packing is None else unpack(taken, packing)

    def _pairs(self, samples: Samples) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Yield numbers of states, their changes and the states, some at once."""
        from graphbench.data.batches.series import pairs_of_runs

        starts = pairs_of_runs(np.asarray(samples.values[self.series.run]), self.lead)
        for first in range(0, len(starts), _STATES_PER_BATCH):
            rows = starts[first : first + _STATES_PER_BATCH]
            states = self._at(samples, rows)
            yield rows, self._at(samples, rows + self.lead) - states, states

    # ------------------------------------------------------------------------------------------------ batches, loss

    def normalisation_batches(self, train: Any) -> Iterable[Any]:
        """Return batches of some training samples; states are large, and their statistics converge fast."""
        batches: Iterable[Any] = train.batches(_STATES_PER_BATCH)
        return batches

    def normalisation_batch(self, train: Any) -> Any:
        """Return a batch of training samples in random order, from which models take means, without mesh nodes."""
        from graphbench.data.batches.series import with_stored_rows

        batch = next(iter(train.batches(min(_STATES_PER_BATCH, len(train)), shuffle=True)))
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

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the predicted changes at grid points, ``[times, points, channels]``."""
        return {self.output: self._at_points(outputs[self.output].detach().float(), batch)}

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator; it scores anomaly correlations if the task has the climatology or can compute it.

        The task has the climatology after :meth:`read_training`, and can compute it after :meth:`find_training`.
        """
        id_ = self.card.id
        latitudes = grid_latitudes(self.options.latitudes)
        return ForecastEvaluator(
            ForecastFields(
                self.channels,
                self.output,
                self.state,
                latitudes,
                self.convention,
                self.lead_hours,
                self.options.grid,
            ),
            (self.card.metrics.primary, *self.card.metrics.also),
            climatology=self._found_climatology if self._may_find_climatology else self.climatology,
            remedy=f"generate it (graphbench generate {id_} --splits train), or say where it lies: "
            f"Evaluator('{id_}', root=...)",
            scores=scores,
            expected_graphs=expected_graphs,
        )

    def detailed_scores(self) -> frozenset[str]:
        """Return the names of the scores of single channels, and of the errors of variables over all their levels."""
        variables = {self.convention.variable_and_level(channel)[0] for channel in self.channels}
        of_channels = (f"{name}_{channel}" for name in OF_CHANNELS for channel in self.channels)
        return frozenset(of_channels) | {f"mse_{variable}" for variable in variables}

    def further_batches(self, split: GraphDataset, size: int) -> FurtherBatches:
        """Return the rollouts of a split, where the card names it."""
        options = self.options.rollout
        if options is None or split.split not in options.splits:
            return super().further_batches(split, size)
        samples, numbers = split.samples, split.graph_numbers
        starts = rollout_starts(samples, self.series, options)
        if numbers is not None:
            starts = np.intersect1d(starts, split.flat.starts[numbers])
        if not len(starts):
            logger.warning(
                "%s %s has no run of %d steps, so no rollout is scored; raise limit",
                self.card.address,
                split.split,
                options.steps,
            )
        batches = rollouts(split, starts, options, self.options.time, lambda times: self._at(samples, times), size)
        return FurtherBatches(len(starts), batches)

    def predict(self, model: BoundModel, batch: Any) -> Any:
        """Return the predictions for a batch; for a rollout the forecasts of all its steps."""
        if not isinstance(batch, Rollout):
            return super().predict(model, batch)
        o = self.options
        step = Stepper(self.card, self.output, self.state, o.time, o.clock, self.lead_hours, self.convention.clock)
        return step.changes(partial(super().predict, model), batch)

    def score(self, evaluator: BaseEvaluator, batch: Any, predictions: Any, seconds: float) -> None:
        """Let an evaluator take the predictions of a batch, or of a rollout."""
        if not isinstance(batch, Rollout):
            super().score(evaluator, batch, predictions, seconds)
            return
        assert isinstance(evaluator, ForecastEvaluator)
        begin = as_array(self._at_points(batch.batch[self.state], batch.batch), self.state)
        evaluator.update_rollout(batch.changes, predictions, begin, batch.hours)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of persistence, climatology and linear regression."""
        climatology = self._known_climatology(train)
        names = ["persistence", "climatology", _LINEAR]
        linear = fit_linear_forecast(self._anomalies(train, climatology), self.options.latitudes)
        evaluators: dict[str, Any] = {name: self.evaluator() for name in names}
        hours = np.asarray(samples.values[self.options.time])
        sums = {name: evaluator.start() for name, evaluator in evaluators.items()}
        for rows, change, states in self._pairs(samples):
            begin = hours[rows]
            usual = climatology.at(begin + self.lead_hours)
            guesses = {
                "persistence": np.zeros_like(change),
                "climatology": usual - states,
                _LINEAR: usual + linear.later(states - climatology.at(begin)) - states,
            }
            for name, evaluator in evaluators.items():
                evaluator.add_fields(sums[name], change, guesses[name], states, begin)
        return {name: dict(evaluator.finish(sums[name])) for name, evaluator in evaluators.items()}

    def solvers(self, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the score of the state of the last step before the target, which no forecast over the lead has.

        It is no trivial predictor, but persistence over a shorter lead.
        """
        if self.lead == 1:
            return {}
        evaluator: Any = self.evaluator()
        sums, hours = evaluator.start(), np.asarray(samples.values[self.options.time])
        for rows, change, states in self._pairs(samples):
            guess = self._at(samples, rows + self.lead - 1) - states
            evaluator.add_fields(sums, change, guess, states, hours[rows])
        return {f"persistence_{self.options.step_hours}h": dict(evaluator.finish(sums))}

    def group_floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, dict[str, float]]]:
        """Return lead time -> trivial predictor -> metric -> score, of persistence and climatology.

        A linear regression diverges when it is applied to its forecasts again and again, so it is left out.
        """
        options = self.options.rollout
        if options is None:
            return {}
        climatology = self._known_climatology(train)
        evaluators: dict[str, Any] = {name: self.evaluator() for name in ("persistence", "climatology")}
        hours, ahead = np.asarray(samples.values[self.options.time]), np.arange(1, options.steps + 1)
        for start in rollout_starts(samples, self.series, options):
            begin, first = self._at(samples, start[None]), hours[start, None]
            later = {"climatology": climatology.at(first + self.lead_hours * ahead), "persistence": begin}
            changes = self._at(samples, start + self.lead * ahead) - begin
            for name, evaluator in evaluators.items():
                guess = np.broadcast_to(later[name] - begin, changes.shape)
                evaluator.update_rollout(changes[None], guess[None], begin, first)
        scores = {name: evaluator.groups() for name, evaluator in evaluators.items()}
        groups = scores["persistence"]
        return {group: {name: dict(by_group[group]) for name, by_group in scores.items()} for group in groups}

    def _known_climatology(self, train: Samples) -> Climatology:
        """Return the climatology; it is computed from these training samples if the task does not have it yet."""
        if self.climatology is None:
            self.climatology = self.climatology_of(train)
        return self.climatology

    def _anomalies(self, train: Samples, usual: Climatology) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the deviations of states from a climatology, now and at the later time, some at once."""
        hours = np.asarray(train.values[self.options.time])
        for rows, change, states in self._pairs(train):
            yield states - usual.at(hours[rows]), states + change - usual.at(hours[rows] + self.lead_hours)

    # ------------------------------------------------------------------------------------------------ files

    def describe_rows(self) -> str:
        """Return the form of the array."""
        return f"an array [times, points, {len(self.channels)}] of changes"

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions), from an array ``[times, points, channels]`` or with a row per time and point."""
        array = rows_of_output(read_arrays(path, most_array_bytes(split)), [self.output], path)[self.output]
        wide, times = len(self.channels), len(split)
        if array.shape[-1] != wide or array.size % (times * wide):
            raise EvaluationError(
                f"{path} has the shape {list(array.shape)}, {self.card.address} {split.split} has {times:,} times "
                f"here; write [times, points, {wide}], and {SAME_LIMIT}"
            )
        values, first = array.reshape(times, -1, wide), 0
        for batch in split.batches(_STATES_PER_BATCH):
            yield batch, {self.output: values[first : first + batch.num_graphs]}
            first += batch.num_graphs

    def write_predictions(self, path: Path, predictions: Iterable[Mapping[str, Any]]) -> Path:
        """Write an array ``[times, points, channels]`` named ``y_pred`` to a ``.npz`` file."""
        parts = [np.asarray(batch[self.output]) for batch in predictions]
        return write_arrays(path, {"y_pred": np.concatenate(parts)})
