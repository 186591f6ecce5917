"""A finished trial of a tuning run, as in ``result.json``, and how its cost is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from graphbench.core.errors import TuningError
from graphbench.evaluation.metrics.registry import METRICS


class Status(StrEnum):
    """The outcome of a trial; every value but ``SUCCESS`` is a failure, which has no cost."""

    SUCCESS = "success"
    RAISED = "raised"
    NOT_FINITE = "not_finite"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    WORKER_DIED = "worker_died"


@dataclass(frozen=True)
class Trial:
    """One finished trial: one configuration trained with one budget.

    Attributes:
        number: 0, 1, ... in the order in which trials were proposed.
        config_id: 0, 1, ... in the order in which configurations first appear.
        config: Hyperparameters by name, active ones only; plain JSON values.
        budget: Budget in total for this configuration.
        continued_from: Budget of the checkpoint the trial started from; 0 if it started from scratch.
        seed: Seed of the training method.
        status: How the trial ended.
        cost: Lower is better; None if the trial failed (the search algorithm gets a worst-case cost instead).
        reason: Why it failed: error type, message and the last line of the traceback; empty after success.
        metrics: Further values that the training method reported.
        seconds: Wall time in the worker.
        steps: Budget spent in this trial; for a failed trial, the part up to its last checkpoint.
        started: When it started, ISO 8601, UTC.
        worker: Host and process that ran it.
        tries: How often it was started; above 1 if a worker was lost.
        note: A defect of a trial that succeeded, e.g. a checkpoint that does not exist; else empty.
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
            ValueError: If the trial failed.
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
            TuningError: If keys are missing or unknown, or the status is unknown.
        """
        try:
            metrics = {name: math.nan if value is None else value for name, value in record.get("metrics", {}).items()}
            status = Status(record["status"])
            cost = float(record["cost"]) if status is Status.SUCCESS else None  # older records have a worst-case value
            return cls(**{**record, "status": status, "cost": cost, "metrics": metrics})
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise TuningError(f"not the record of a trial ({error}): {dict(record)}") from error


def incumbent_of(trials: Sequence[Trial]) -> Trial | None:
    """Return the best trial so far.

    The incumbent has the lowest cost among the trials at the largest budget that any successful trial reached. Ties go
    to the earlier trial (by number). None if no trial succeeded.
    """
    successes = [trial for trial in trials if trial.succeeded]
    if not successes:
        return None
    largest = max(trial.budget for trial in successes)
    return min(
        (trial for trial in successes if trial.budget == largest), key=lambda trial: (trial.measured, trial.number)
    )


def cost_of(score: float, metric: str) -> float:
    """Return the cost that is minimised for a score: ``1 - score``, ``-score``, or errors and losses themselves.

    Args:
        score: The score in its natural direction.
        metric: Name of the metric, or ``loss``.
    """
    registered = METRICS.get(metric)
    if registered is None or not registered.higher_is_better:
        return score
    return 1.0 - score if (registered.lowest, registered.highest) == (0, 1) else -score


@dataclass(frozen=True)
class Measure:
    """The display of costs: as scores of the metric of validation, if the method names the metric.

    Attributes:
        metric: The metric of validation, or ``loss``; None for costs of an unknown metric.
    """

    metric: str | None = None

    @property
    def higher_is_better(self) -> bool:
        """Whether larger values of :meth:`score` are better."""
        return self.score(1.0) < self.score(0.0)

    @property
    def name(self) -> str:
        """The name of the value that :meth:`score` returns: ``validation f1``, or ``cost``."""
        return f"validation {self.metric}" if self.metric else "cost"

    @property
    def head(self) -> str:
        """The name with its direction: ``validation f1 ↑``."""
        return f"{self.name} {'↑' if self.higher_is_better else '↓'}"

    def score(self, cost: float) -> float:
        """Return the score, in its natural direction, of a cost."""
        return cost if self.metric is None else cost_of(cost, self.metric)  # cost_of is its inverse

    def text(self, cost: float, named: bool = True) -> str:
        """Return the score of a cost with four digits, after its name or alone."""
        score = self.score(cost)
        number = f"{score:.4f}" if score == 0 or 1e-3 <= abs(score) < 1e4 else f"{score:.4g}"
        return f"{self.name} {number}" if named else number
