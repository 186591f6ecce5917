"""What a training method returns and what a finished trial is: the words all of tuning shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from graphbench.errors import TuningError


class Status(StrEnum):
    """How a trial ended; every value but ``SUCCESS`` is a failure, whose cost is a worst-case value."""

    SUCCESS = "success"
    RAISED = "raised"
    NOT_FINITE = "not_finite"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    WORKER_DIED = "worker_died"


@dataclass(frozen=True)
class TrialResult:
    """What a training method may return instead of a bare cost.

    Attributes:
        cost: Lower is better.
        metrics: Anything else worth keeping, by name.
        model: A trained model; it never leaves the process it was trained in.
        checkpoint: File or folder that a larger budget of the same configuration continues from.
        steps: Optimizer steps really done in this call (the budget less what was continued); None for the whole budget.
    """

    cost: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: Any = None
    checkpoint: Path | None = None
    steps: int | None = None


@dataclass(frozen=True)
class Trial:
    """One finished trial: one configuration trained to one budget.

    Attributes:
        number: 0, 1, ... in the order the search asked for trials.
        config_id: 0, 1, ... in the order configurations first appear.
        config: Hyperparameters by name, active ones only; plain JSON values.
        budget: Optimizer steps in total for this configuration.
        continued_from: Budget of the checkpoint the trial started from; 0 where it started from scratch.
        seed: What the training method was given.
        status: How the trial ended.
        cost: What the search was told; a worst-case value where the trial failed.
        reason: Why it failed: error type, message and the last line of the traceback; empty after success.
        metrics: What the training method reported besides the cost.
        seconds: Wall time in the worker.
        steps: Optimizer steps done in this trial.
        started: When it started, ISO 8601, UTC.
        worker: Who ran it.
        tries: How often it was started; above 1 where a worker was lost.
    """

    number: int
    config_id: int
    config: Mapping[str, Any]
    budget: int
    continued_from: int
    seed: int
    status: Status
    cost: float
    seconds: float
    steps: int
    started: str
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    worker: str = ""
    tries: int = 1

    @property
    def succeeded(self) -> bool:
        """Whether the cost was measured."""
        return self.status is Status.SUCCESS

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain JSON values, one key per attribute; a metric that is not finite becomes null."""
        metrics = {name: value if math.isfinite(value) else None for name, value in self.metrics.items()}
        return asdict(self) | {"status": str(self.status), "config": dict(self.config), "metrics": metrics}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Trial:
        """Return the trial that :meth:`to_json` wrote.

        Raises:
            TuningError: If keys are missing or unknown, or the status is none of ours.
        """
        try:
            metrics = {name: math.nan if value is None else value for name, value in record.get("metrics", {}).items()}
            return cls(**{**record, "status": Status(record["status"]), "metrics": metrics})
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise TuningError(f"not the record of a trial ({error}): {dict(record)}") from error


@dataclass(frozen=True)
class Asked:
    """A trial the search asked for and that now waits or runs; the attributes are those of :class:`Trial`."""

    number: int
    config_id: int
    config: Mapping[str, Any]
    budget: int
    seed: int


class Observer(Protocol):
    """Who is told how a run goes on; its methods are called in the process that tunes and must be quick."""

    def on_start(self, settings: Mapping[str, Any], trials: Sequence[Trial]) -> None:
        """Take the settings of the run (as in ``settings.json``) and the trials that earlier runs finished."""

    def on_asked(self, asked: Asked) -> None:
        """Take a trial that starts now (again, where an interruption or a lost worker cut it short)."""

    def on_finished(self, trial: Trial) -> None:
        """Take a trial that ended, well or not."""

    def on_end(self) -> None:
        """Know that no further call follows; also called after an interruption or an error."""


def incumbent_of(trials: Sequence[Trial]) -> Trial | None:
    """Return the best trial so far.

    It has the lowest cost among the trials at the largest budget that any successful trial reached; of equal ones the
    earlier (by number). None where no trial succeeded.
    """
    successes = [trial for trial in trials if trial.succeeded]
    if not successes:
        return None
    largest = max(trial.budget for trial in successes)
    return min((trial for trial in successes if trial.budget == largest), key=lambda trial: (trial.cost, trial.number))
