"""Results of training methods, trials that were proposed, and observers of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from graphbench.tuning.trial import Trial


@dataclass(frozen=True)
class TrialResult:
    """The result that a training method may return instead of a bare cost.

    Attributes:
        cost: Lower is better.
        metrics: Further values to record, by name.
        model: A trained model; it stays in the process that trained it.
        checkpoint: File or folder that a larger budget of the same configuration continues from.
        steps: Budget really spent in this call, e.g. the optimizer steps after the checkpoint; None for the whole
            budget.

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
        """Return the result that a training method returned as a number, or as a mapping or an object with a cost.

        Raises:
            TypeError: If the returned value has none of these forms, or a field has another type; the message names
                it.
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
    """Return whether a value is a number, also of NumPy or PyTorch, and not text."""
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def _number(value: Any, name: str) -> float:
    try:
        if _is_number(value):
            return float(value)
    except (TypeError, ValueError, RuntimeError):  # of arrays and tensors with several values
        pass
    raise TypeError(f"{name}: expected a number, got {value!r:.100}")


@dataclass(frozen=True)
class Asked:
    """A trial that the search proposed and that waits or runs; the attributes have the meaning as in :class:`Trial`."""

    number: int
    config_id: int
    config: Mapping[str, Any]
    budget: int
    seed: int


class Observer(Protocol):
    """Follows the progress of a run; its methods are called in the process of the search and must be quick."""

    def on_start(self, settings: Mapping[str, Any], trials: Sequence[Trial]) -> None:
        """Receive the settings of the run (as in ``settings.json``) and the trials that earlier starts finished."""

    def on_asked(self, asked: Asked) -> None:
        """Receive a trial that starts now (again, after an interruption or the loss of a worker)."""

    def on_finished(self, trial: Trial) -> None:
        """Receive a trial that succeeded or failed."""

    def on_end(self) -> None:
        """Release resources: no further call follows; also called after an interruption or an error."""
