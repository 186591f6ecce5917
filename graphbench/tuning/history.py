"""The history of a tuning run, read from its ``result.json``; tables and figures of the report are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from graphbench.core.errors import TuningError
from graphbench.core.files import read_json
from graphbench.training.fidelity import Fidelity, recorded_fidelity
from graphbench.tuning.parameters import Parameter, read_parameters
from graphbench.tuning.trial import Measure, Trial, incumbent_of

RESULT = "result.json"
SCHEMA = 1
DEFAULT_ID = 0  # of the default configuration, which every search tries first


@dataclass(frozen=True, slots=True)
class Rung:
    """The trials at one budget.

    Attributes:
        budget: Budget of a configuration in total.
        trials: Number of trials that ended.
        failed: Number of failed trials.
        steps: Budget spent.
        saved: Budget saved by continuing from smaller budgets.
        seconds: Total time of the trials.
        best: Lowest cost; None if no trial succeeded.
        median: Median cost of the successful trials.
    """

    budget: int
    trials: int
    failed: int
    steps: int
    saved: int
    seconds: float
    best: float | None
    median: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of a trial, and the state of the run at that time.

    Attributes:
        trial: The trial.
        steps: Budget spent in all trials that had ended.
        seconds: Time in which at least one trial was running.
        incumbent: The best trial so far; None before the first success.
    """

    trial: Trial
    steps: int
    seconds: float
    incumbent: Trial | None


@dataclass(frozen=True)
class History:
    """A tuning run as recorded in its ``result.json``.

    Attributes:
        result: The content of the file.
        trials: All finished trials, in the order of the file.
        parameters: The search space.
    """

    result: Mapping[str, Any]
    trials: tuple[Trial, ...] = field(init=False)
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        schema = self.result.get("schema") if isinstance(self.result, Mapping) else None
        if schema != SCHEMA:
            raise TuningError(f"the result has schema {schema!r}, expected {SCHEMA}; update graphbench to read it")
        missing = [key for key in ("space", "trials", "what") if key not in self.result]
        if missing:
            raise TuningError(f"the result has no {', '.join(missing)}; expected the content of a run's result.json")
        trials = tuple(Trial.from_json(record) for record in self.result["trials"])
        object.__setattr__(self, "trials", trials)
        parameters = read_parameters(self.result["space"], [trial.config for trial in trials])
        object.__setattr__(self, "parameters", parameters)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The tuned model or method, its data and the settings of the search, as recorded."""
        identity: Mapping[str, Any] = self.result["what"]
        return identity

    @cached_property
    def measure(self) -> Measure:
        """How costs are shown."""
        metric = self.identity.get("metric")
        return Measure(None if metric is None else str(metric))

    @property
    def fidelity(self) -> Fidelity:
        """The unit that budgets count."""
        return recorded_fidelity(self.identity)

    @cached_property
    def successes(self) -> tuple[Trial, ...]:
        """The trials that succeeded."""
        return tuple(trial for trial in self.trials if trial.succeeded)

    @cached_property
    def failures(self) -> tuple[Trial, ...]:
        """The trials that failed."""
        return tuple(trial for trial in self.trials if not trial.succeeded)

    @cached_property
    def incumbent(self) -> Trial | None:
        """The best trial; None if none succeeded."""
        return incumbent_of(self.trials)

    @property
    def budgets(self) -> list[int]:
        """The budgets of trials, rising."""
        return sorted({trial.budget for trial in self.trials})

    @property
    def default_trials(self) -> list[Trial]:
        """The successful trials of the default configuration, by rising budget."""
        return [trial for trial in self._of_default() if trial.succeeded]

    @property
    def default_failures(self) -> list[Trial]:
        """The failed trials of the default configuration, by rising budget."""
        return [trial for trial in self._of_default() if not trial.succeeded]

    def _of_default(self) -> list[Trial]:
        trials = [trial for trial in self.trials if trial.config_id == DEFAULT_ID]
        return sorted(trials, key=lambda trial: trial.budget)

    def rungs(self) -> list[Rung]:
        """Return the trials at each budget, the smallest budget first."""
        return rungs_of(self.trials)

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """The ends of all trials, in chronological order."""
        ended = sorted(self.trials, key=lambda trial: (_start(trial) + trial.seconds, trial.number))
        periods = _busy_periods(ended)
        moments: list[Moment] = []
        steps, best = 0, None
        for trial in ended:
            steps += trial.steps
            best = incumbent_of([trial] if best is None else [best, trial])
            moments.append(Moment(trial, steps, _busy_until(periods, _start(trial) + trial.seconds), best))
        return tuple(moments)

    def ranking(self, most: int) -> list[Trial]:
        """Return the last trials of the ``most`` best configurations: larger budgets first, by cost at each budget."""
        ranked = sorted(self.furthest(), key=lambda trial: (-trial.budget, trial.measured, trial.number))
        return ranked[:most]

    def furthest(self) -> list[Trial]:
        """Return the successful trial with the largest budget of each configuration."""
        last_trials: dict[int, Trial] = {}
        for trial in sorted(self.successes, key=lambda trial: (trial.budget, -trial.measured)):
            last_trials[trial.config_id] = trial
        return list(last_trials.values())


def read_history(folder: Path) -> History:
    """Return the history in the ``result.json`` of a run's folder.

    Raises:
        TuningError: If the file is missing or malformed.
    """
    return History(read_json(folder / RESULT, TuningError, "run the search again, which writes it"))


def busy_seconds(trials: Sequence[Trial]) -> float:
    """Return how long at least one of the trials was running, in seconds."""
    return sum(end - start for start, end in _busy_periods(trials))


def rungs_of(trials: Sequence[Trial]) -> list[Rung]:
    """Return the trials at each budget, the smallest budget first."""
    budgets = sorted({trial.budget for trial in trials})
    return [_rung(budget, [trial for trial in trials if trial.budget == budget]) for budget in budgets]


def _rung(budget: int, trials: Sequence[Trial]) -> Rung:
    costs = [trial.measured for trial in trials if trial.succeeded]
    return Rung(
        budget=budget,
        trials=len(trials),
        failed=len(trials) - len(costs),
        steps=sum(trial.steps for trial in trials),
        saved=sum(trial.continued_from for trial in trials),
        seconds=sum(trial.seconds for trial in trials),
        best=min(costs, default=None),
        median=median(costs) if costs else None,
    )


def _start(trial: Trial) -> float:
    """Return the start of a trial in seconds since 1970; 0 if it is not recorded."""
    return datetime.fromisoformat(trial.started).timestamp() if trial.started else 0.0


def _busy_periods(trials: Sequence[Trial]) -> list[tuple[float, float]]:
    """Return start and end of every uninterrupted period in which trials were running, in chronological order."""
    periods: list[tuple[float, float]] = []
    for start, end in sorted((_start(trial), _start(trial) + trial.seconds) for trial in trials):
        if periods and start <= periods[-1][1]:
            periods[-1] = (periods[-1][0], max(end, periods[-1][1]))
        else:
            periods.append((start, end))
    return periods


def _busy_until(periods: Sequence[tuple[float, float]], until: float) -> float:
    return sum(min(end, until) - start for start, end in periods if start < until)
