"""Rollouts: a model that forecasts one step is applied to its forecasts, again and again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.core.validation import StrictModel
from graphbench.evaluation.inputs import as_array

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.catalog.series import SeriesSpec
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset

_MAX_ROLLOUTS = 4  # rollouts: each holds the later states of all its steps, 14 MB


class RolloutOptions(StrictModel):
    """Which rollouts are scored.

    Attributes:
        splits: The splits on which rollouts are scored.
        steps: Steps of a rollout; the score of every step follows the score of the split, as ``<split>_h<hours>``.
        every: Rollouts begin at the first state of every run, and then at every state of this number.
    """

    splits: tuple[str, ...] = ("test",)
    steps: int = Field(20, ge=2)
    every: int = Field(20, ge=1)


@dataclass(frozen=True)
class Rollout:
    """Forecasts over several steps.

    Attributes:
        batch: The samples that the forecasts begin with.
        changes: float32 ``[times, steps, points, channels]``: how the states after every step differ from these.
        hours: int64 ``[times]``, the times at which the forecasts begin.
    """

    batch: Any
    changes: NDArray[np.float32]
    hours: NDArray[np.int64]

    @property
    def num_graphs(self) -> int:
        """Number of forecasts."""
        return len(self.changes)


def rollout_starts(samples: Samples, series: SeriesSpec, options: RolloutOptions) -> NDArray[np.int64]:
    """Return the numbers of the states at which rollouts begin; int64, ascending.

    Args:
        samples: The states of a split.
        series: The card's series.
        options: How long rollouts are, and how often they begin.
    """
    from graphbench.data.batches.series import pairs_of_runs

    runs = np.asarray(samples.values[series.run])
    begins = np.flatnonzero(np.append(True, runs[1:] != runs[:-1]))
    long = pairs_of_runs(runs, series.lead * options.steps)
    within = long - begins[np.searchsorted(begins, long, side="right") - 1]
    chosen: NDArray[np.int64] = long[within % options.every == 0]
    return chosen


def rollouts(
    split: GraphDataset,
    starts: NDArray[np.int64],
    options: RolloutOptions,
    time: str,
    states_at: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    size: int,
) -> Iterator[Rollout]:
    """Yield the rollouts of a split, some at once.

    Args:
        split: The split.
        starts: From :func:`rollout_starts`: states of selected samples.
        options: How long rollouts are.
        time: The stored feature of graphs that holds the hours.
        states_at: Returns the states of some times; float32 ``[times, points, channels]``.
        size: Most rollouts at once.
    """
    lead = split.flat.lead
    hours = np.asarray(split.flat.values[time])
    for first in range(0, len(starts), min(size, _MAX_ROLLOUTS)):
        chosen = starts[first : first + min(size, _MAX_ROLLOUTS)]
        begin = states_at(chosen)[:, None]
        ahead = chosen[:, None] + lead * np.arange(1, options.steps + 1)
        later = states_at(ahead.reshape(-1)).reshape(*ahead.shape, *begin.shape[2:])
        batch = split.make_batch(np.searchsorted(split.flat.starts, chosen))
        yield Rollout(batch, later - begin, hours[chosen].astype(np.int64))


@dataclass(frozen=True)
class Stepper:
    """How a state follows from a forecast: the content of a batch after one step.

    Attributes:
        card: The card, of a forecast task.
        output: The output, the change of the state.
        state: The feature that is the state.
        time: The feature of graphs that holds the hours.
        clock: The feature of graphs that encodes the hours; None if there is none.
        hours: Hours of a step.
        encode: ``hours -> float32 [times, features]``, the values of :attr:`clock`.
    """

    card: Card
    output: str
    state: str
    time: str
    clock: str | None
    hours: int
    encode: Callable[[NDArray[np.int64]], NDArray[np.float32]]

    def changes(self, predict: Callable[[Any], Any], rollout: Rollout) -> NDArray[np.float32]:
        """Return the forecasts of all steps, as changes since the begin; ``[times, steps, points, channels]``.

        Args:
            predict: Returns the predictions of a batch: an array ``[times, points, channels]`` or with a row per time
                and point, or a mapping with it.
            rollout: Where the forecasts begin.
        """
        forecasts = np.empty_like(rollout.changes)
        batch, total = rollout.batch, np.zeros_like(rollout.changes[:, 0])
        for step in range(forecasts.shape[1]):
            answer = predict(batch)
            change = as_array(answer[self.output] if isinstance(answer, Mapping) else answer, "y_pred")
            with np.errstate(over="ignore", invalid="ignore"):  # the evaluator leaves out values that are not finite
                total = total + change.reshape(total.shape)
            forecasts[:, step] = total
            if step + 1 < forecasts.shape[1]:
                batch = self._after(rollout.batch, total, rollout.hours + (step + 1) * self.hours)
        return forecasts

    def _after(self, begin: Any, total: NDArray[np.float32], hours: NDArray[np.int64]) -> Any:
        """Return the batch of later states; it shares the tensors of the first one that are the same in both."""
        import torch

        from graphbench.data.batches.batching import standard_fields

        batch = copy.copy(begin)
        times, points, channels = total.shape
        state: Tensor = begin[self.state].reshape(times, -1, channels).clone()
        state[:, :points] += torch.from_numpy(total).to(state)
        unknown = torch.full_like(begin[self.output], torch.nan)  # the change of the later state is not computed here
        changed = {
            self.output: unknown,
            self.state: state.flatten(0, 1),
            self.time: torch.from_numpy(hours.astype(np.float32)),
        }
        if self.clock is not None:
            changed[self.clock] = torch.from_numpy(self.encode(hours))
        fields = {f.name: begin[f.name] for f in self.card.features} | changed
        for name, value in {**changed, **standard_fields(fields, self.card.features)}.items():
            batch[name] = value
        return batch
