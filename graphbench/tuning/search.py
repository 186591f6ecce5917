"""Search algorithms behind one ask-and-tell interface: SMAC, plain Hyperband and random search.

The state of a search is a function of (space, rungs, eta, seed) and of the sequence of ``ask`` and ``tell``. So a
search that repeats the sequence of a journal is in the same state as the one that wrote it.
"""

from __future__ import annotations

import json
import logging
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import ConfigError
from graphbench.tuning.settings import Method
from graphbench.tuning.space import to_plain
from graphbench.tuning.trial import Trial
from graphbench.tuning.trials import Asked

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace
    from smac.runhistory import TrialInfo, TrialValue

_FIRST_COST_OF_FAILURES = 1.0  # before a trial succeeds
_DRAWS = 1000  # repeated samples seen before, after which random search takes the space as exhausted


class Search(ABC):
    """Proposes trials and learns from their results; it numbers trials and configurations in the order of proposals."""

    def __init__(self, space: ConfigurationSpace, seed: int) -> None:
        self._space, self._seed = deepcopy(space), seed
        self._number = 0
        self._configurations: dict[
            str, tuple[int, Mapping[str, Any]]
        ] = {}  # a configuration's text -> its id and values

    def ask(self) -> Asked | None:
        """Return the next trial to start; None if there is none before the next result is told."""
        proposed = self._propose(self._number)
        if proposed is None:
            return None
        config, budget = proposed
        config_id, values = self._configurations.setdefault(
            _text(config), (len(self._configurations), to_plain(config))
        )
        self._number += 1
        return Asked(self._number - 1, config_id, values, budget, self._seed)

    def tell(self, trial: Trial) -> None:
        """Learn the result of a trial, including trials that this search did not propose."""
        return

    def reopen(self, trial: Trial) -> None:
        """Discard the result of a failed trial that is run again."""
        return

    def promotable(self) -> set[int]:
        """Return the ids of configurations that may still be trained with a larger budget."""
        return set()

    def adopt(self, asked: Asked) -> None:
        """Record a trial that another search proposed, so that its numbers are not used twice."""
        self._number = max(self._number, asked.number + 1)
        self._configurations.setdefault(_text(self._configuration(asked.config)), (asked.config_id, asked.config))

    @abstractmethod
    def _propose(self, number: int) -> tuple[Configuration, int] | None:
        """Return configuration and budget of the trial with this number."""

    def _configuration(self, config: Mapping[str, Any]) -> Configuration:
        from ConfigSpace import Configuration

        configuration = Configuration(self._space, values=dict(config))
        return Configuration(
            self._space, vector=configuration.get_array()
        )  # the form, and so the hash, of sampled ones


class RandomSearch(Search):
    """Trains the default, then different random configurations, each once with the largest budget.

    Proposals do not depend on results.
    """

    def __init__(self, space: ConfigurationSpace, rungs: Sequence[int], seed: int) -> None:
        super().__init__(space, seed)
        self._budget = rungs[-1]
        self._space.seed(seed)

    def _propose(self, number: int) -> tuple[Configuration, int] | None:
        config = self._space.get_default_configuration()
        for _ in range(_DRAWS):
            if _text(config) not in self._configurations:
                return config, self._budget
            config = self._space.sample_configuration()
        return None


class SmacSearch(Search):
    """Hyperband over the rungs, its configurations chosen by SMAC's random forest or at random.

    Args:
        space: The search space.
        rungs: Budgets, rising.
        eta: One configuration of ``eta`` is promoted.
        seed: Seed of the search; every trial gets the same seed.
        modelled: Whether the random forest chooses configurations; otherwise they are drawn at random.
        worst_cost: Cost of failed trials; None for the largest cost so far, 1.0 before any.

    Raises:
        ConfigError: If SMAC cannot search the space.
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        rungs: Sequence[int],
        eta: int,
        seed: int,
        modelled: bool,
        worst_cost: float | None = None,
    ) -> None:
        super().__init__(space, seed)
        with _quiet(), TemporaryDirectory(prefix="graphbench-smac-") as folder:
            from graphbench.tuning.halving import RungHyperband, smac_facade

            try:
                self._smac = smac_facade(self._space, rungs, eta, seed % 2**32, modelled, folder)
            except ValueError as error:
                raise ConfigError(f"SMAC cannot search this space: {error}; change it, or use method=random") from None
        assert isinstance(self._smac.intensifier, RungHyperband)
        self._hyperband = self._smac.intensifier
        self._asked: dict[int, TrialInfo] = {}
        self._failed: dict[int, tuple[TrialInfo, float]] = {}  # trial number -> trial and its first cost
        self._least = -math.inf if worst_cost is None else worst_cost
        self._worst = -math.inf

    def tell(self, trial: Trial) -> None:
        """Learn the result of a trial.

        The cost of a failure is never below the cost of a success: it rises with the largest cost so far.
        """
        info = self._asked.pop(trial.number, None) or self._foreign(trial)
        cost = trial.measured if trial.succeeded else self._cost_of_failures
        with _quiet():
            self._smac.tell(info, _value(cost, trial.succeeded), save=False)
        if not trial.succeeded:
            self._failed[trial.number] = (info, cost)
        elif cost > self._worst:
            self._worst = cost
            for failed, least in self._failed.values():
                self._raise_cost(failed, max(least, cost))

    def reopen(self, trial: Trial) -> None:
        """Wait again for the result of a failed trial; configurations promoted without it stay promoted."""
        info, _ = self._failed.pop(trial.number)
        self._smac.runhistory.add_running_trial(info)
        self._hyperband.reopen(info)
        self._asked[trial.number] = info

    def promotable(self) -> set[int]:
        """Return the ids of all configurations that are on unfinished rungs, or that may still be put on a rung."""
        if not self._hyperband.has_started:
            return {config_id for config_id, _ in self._configurations.values()}
        texts = [_text(config) for config in self._hyperband.open_configs]
        return {self._configurations[text][0] for text in texts if text in self._configurations}

    def _propose(self, number: int) -> tuple[Configuration, int] | None:
        with _quiet():
            try:
                info = self._smac.ask()
            except StopIteration:
                return None
        self._asked[number] = info
        return info.config, round(info.budget or 0)

    @property
    def _cost_of_failures(self) -> float:
        cost = max(self._least, self._worst)
        return cost if math.isfinite(cost) else _FIRST_COST_OF_FAILURES

    def _raise_cost(self, failed: TrialInfo, cost: float) -> None:
        value = _value(cost, succeeded=False)
        self._smac.runhistory.add(
            failed.config, value.cost, status=value.status, seed=failed.seed, budget=failed.budget, force_update=True
        )

    def _foreign(self, trial: Trial) -> TrialInfo:
        from smac.runhistory import TrialInfo

        config = self._configuration(trial.config)
        return TrialInfo(config, seed=self._hyperband.trial_seed, budget=float(trial.budget))


def make_search(
    method: Method,
    space: ConfigurationSpace,
    rungs: Sequence[int],
    eta: int,
    seed: int,
    worst_cost: float | None = None,
) -> Search:
    """Return a new search.

    Args:
        method: ``smac`` (Hyperband with SMAC's model), ``hyperband`` (without) or ``random`` (at the largest budget).
        space: The search space; it is copied.
        rungs: Budgets, rising.
        eta: One configuration of ``eta`` is promoted.
        seed: Seed of the search; every trial gets the same seed.
        worst_cost: Smallest cost of failed trials; None for the largest cost so far, 1.0 before any. It is never below
            the cost of a success.
    """
    if method == "random":
        return RandomSearch(space, rungs, seed)
    return SmacSearch(space, rungs, eta, seed, method == "smac", worst_cost)


def _text(config: Configuration) -> str:
    return json.dumps(to_plain(config), sort_keys=True)


def _value(cost: float, succeeded: bool) -> TrialValue:
    from smac.runhistory import StatusType, TrialValue

    return TrialValue(cost=cost, status=StatusType.SUCCESS if succeeded else StatusType.CRASHED)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the log messages and warnings of SMAC."""
    logger = logging.getLogger("smac")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
