"""What a training method returns and what a finished trial is: the words all of tuning shares."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from graphbench.core.errors import TuningError


class Status(StrEnum):
    """How a trial ended; every value but ``SUCCESS`` is a failure, which has no cost."""

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

    Raises:
        TypeError: If a field has another type; the message names it.
    """

    cost: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: Any = None
    checkpoint: Path | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        metrics = {} if self.metrics is None else self.metrics
        if not isinstance(metrics, Mapping):
            raise TypeError(f"metrics: expected a mapping from names to numbers, got {metrics!r:.100}")
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint: expected a path or None, got {self.checkpoint!r:.100}")
        if self.steps is not None and (isinstance(self.steps, bool) or not hasattr(self.steps, "__index__")):
            raise TypeError(f"steps: expected a whole number or None, got {self.steps!r:.100}")
        values = {
            "cost": _number(self.cost, "cost"),
            "metrics": {str(name): _number(value, f"metrics[{name!r}]") for name, value in metrics.items()},
            "checkpoint": None if self.checkpoint is None else Path(self.checkpoint),
            "steps": None if self.steps is None else int(self.steps),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, returned: Any) -> TrialResult:
        """Return what a training method returned: a number, or a mapping or an object with a cost and more.

        Raises:
            TypeError: If it is none of these, or a field has another type; the message names it.
        """
        if isinstance(returned, TrialResult):
            return returned
        names = [item.name for item in fields(cls)]
        if isinstance(returned, Mapping):
            unknown = [key for key in returned if key not in names]
            if unknown or "cost" not in returned:
                fault = f"unknown key {unknown[0]!r}" if unknown else "the key 'cost' is missing"
                raise TypeError(f"the mapping that the training method returned: {fault} (keys: {', '.join(names)})")
            return cls(**returned)
        if hasattr(returned, "cost"):
            return cls(**{name: getattr(returned, name) for name in names if hasattr(returned, name)})
        if not _is_number(returned):
            raise TypeError(
                "a training method returns a number, or a mapping or an object with a cost; it returned "
                f"{returned!r:.100}"
            )
        return cls(returned)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, also of NumPy or PyTorch; text is none."""
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def _number(value: Any, name: str) -> float:
    try:
        if _is_number(value):
            return float(value)
    except (TypeError, ValueError, RuntimeError):  # of arrays and tensors with several values
        pass
    raise TypeError(f"{name}: expected a number, got {value!r:.100}")


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
        cost: Lower is better; None where the trial failed (the search is told of a worst-case cost instead).
        reason: Why it failed: error type, message and the last line of the traceback; empty after success.
        metrics: What the training method reported besides the cost.
        seconds: Wall time in the worker.
        steps: Optimizer steps done in this trial; of one that failed those known to be done.
        started: When it started, ISO 8601, UTC.
        worker: Who ran it.
        tries: How often it was started; above 1 where a worker was lost.
        note: What is wrong with a trial that succeeded, such as a checkpoint that does not exist; else empty.
    """

    number: int
    config_id: int
    config: Mapping[str, Any]
    budget: int
    continued_from: int
    seed: int
    status: Status
    cost: float | None
    seconds: float
    steps: int
    started: str
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    worker: str = ""
    tries: int = 1
    note: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the cost was measured."""
        return self.status is Status.SUCCESS

    @property
    def measured(self) -> float:
        """The cost of a trial that succeeded.

        Raises:
            ValueError: If it failed.
        """
        if self.cost is None:
            raise ValueError(f"trial {self.number} failed and has no cost")
        return self.cost

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
            status = Status(record["status"])
            cost = float(record["cost"]) if status is Status.SUCCESS else None  # older records have a worst-case value
            return cls(**{**record, "status": status, "cost": cost, "metrics": metrics})
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
    return min(
        (trial for trial in successes if trial.budget == largest), key=lambda trial: (trial.measured, trial.number)
    )
