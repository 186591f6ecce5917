"""SMAC's multi-fidelity search as it is used here: Hyperband on whole budgets.

This module differs from SMAC 2.4.1 as follows (the changes that need private members of SMAC are in
``smac_internals``):

* Rungs are integers. SMAC takes the floor of a quotient of logarithms, which loses the smallest
  rung of e.g. 1 to 243 (``log 243 / log 3`` is 4.99...), and its budgets are fractions.
* A rung promotes its best configurations. Among configurations of equal cost, it promotes the ones that were better on
  the rung below. SMAC breaks ties by crowding distance, which for one objective may drop the second best. Failed
  configurations are never promoted.
* Promoted configurations come before new ones, so that with several workers a bracket is finished before the next ones
  use up the trials, and a rung that waits for results never ends the search.
* The surrogate is trained on the largest budget with more observations than hyperparameters (SMAC: with one), and again
  when that budget changes even where the number of observations does not.
* The default configuration is the first trial, and climbs to the largest budget at any cost (unless it fails), so
  that the result can be no worse than the default at the same budget. SMAC can add the default configuration to its
  initial design, as the last one.
* The first configurations are sampled from a separate random stream. SMAC's initial design and its later random samples
  share a stream.
* Local search starts in an order that does not depend on Python's random hashes of strings.
* SMAC does not know the number of trials, so that the number cannot change the proposed configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import HyperbandFacade, MultiFidelityFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.model.random_forest.random_forest import RandomForest
from smac.runhistory import StatusType, TrialInfo
from smac.runhistory.dataclasses import TrialKey

from graphbench.tuning.budgets import bracket_sizes
from graphbench.tuning.smac_internals import InitialDesign, Maximizer, Selector, StepwiseHyperband

_UNLIMITED = 2**31 - 1  # trials, as far as SMAC knows
_DRAWS = 256  # repeated draws of configurations seen before, after which a space counts as used up
_RETRAIN_AFTER = 3
_TREES = 10
_CANDIDATES = 5_000
_LEAVES = 2**12


def smac_facade(
    space: ConfigurationSpace, rungs: Sequence[int], eta: int, seed: int, modelled: bool, folder: str
) -> AbstractFacade:
    """Return SMAC's ask-and-tell interface.

    Args:
        space: The search space; SMAC samples from it, so it must be a copy of the user's.
        rungs: Budgets, rising by factors of ``eta``.
        eta: One configuration of ``eta`` is promoted.
        seed: Seed of everything random.
        modelled: Whether a random forest chooses new configurations; otherwise they are drawn at random.
        folder: Receives the files that SMAC writes, which are not used.
    """
    scenario = Scenario(
        space,
        name="tuning",
        output_directory=folder,  # type: ignore[arg-type]
        deterministic=True,
        n_trials=_UNLIMITED,
        min_budget=rungs[0],
        max_budget=rungs[-1],
        seed=seed,
    )
    intensifier = RungHyperband(scenario, rungs, eta)
    facade = MultiFidelityFacade if modelled else HyperbandFacade
    return facade(
        scenario,
        None,
        model=_forest(scenario) if modelled else None,
        acquisition_maximizer=Maximizer(space, challengers=_CANDIDATES, seed=seed) if modelled else None,
        initial_design=DefaultFirst(scenario, max(intensifier.first_rung, len(space) + 1)),
        config_selector=Selector(
            scenario, retrain_after=_RETRAIN_AFTER, max_new_config_tries=_DRAWS, min_trials=len(space) + 1
        ),
        intensifier=intensifier,
        logging_level=False,
        overwrite=True,
    )


def same_form(config: Configuration) -> Configuration:
    """Return a configuration in the form of sampled configurations.

    Equal configurations of ConfigSpace may have different hashes, because Python's numbers and NumPy's numbers do.
    """
    return Configuration(config.config_space, vector=config.get_array())


class DefaultFirst(InitialDesign):
    """The default configuration, then different random ones."""

    def select_configurations(self) -> list[Configuration]:
        """Return the first configurations to train; fewer where the space holds fewer."""
        space = deepcopy(self.space)
        space.seed(int(np.random.SeedSequence((self.design_seed, 1)).generate_state(1)[0]))
        chosen = {same_form(self.space.get_default_configuration()): None}
        for _ in range(_DRAWS + self.count):
            if len(chosen) >= self.count:
                break
            chosen[Configuration(self.space, vector=space.sample_configuration().get_array())] = None
        for config in chosen:
            config.origin = "Initial design"
        return list(chosen)


@dataclass(eq=False)
class _Group:
    """Configurations that compete on a rung of a bracket.

    Attributes:
        configs: The configurations, in the order in which they start.
        places: Number of configurations that are still to be added.
        started: How many configurations have started.
        running: Indices of the started configurations without a result.
        costs: Index of a configuration -> cost; None where the trial failed.
    """

    bracket: int
    stage: int
    configs: list[Configuration]
    places: int = 0
    started: int = 0
    running: set[int] = field(default_factory=set)
    costs: dict[int, float | None] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether all configurations were added and have results."""
        return self.places == 0 and len(self.costs) == len(self.configs)

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key: promoted configurations come before new ones, large budgets before small ones."""
        return self.stage == 0, -self.bracket - self.stage


class RungHyperband(StepwiseHyperband):
    """Hyperband on whole budgets; ``next`` raises ``StopIteration`` while there is nothing to start.

    There may be more to start after another result, if configurations of an unfinished rung wait for it.

    Attributes:
        has_started: Whether it was asked for a trial.
    """

    def __init__(self, scenario: Scenario, rungs: Sequence[int], eta: int) -> None:
        self._rungs = [float(rung) for rung in rungs]  # SMAC keeps budgets as floats
        self._sizes = bracket_sizes(len(rungs), eta)
        self._default = scenario.configspace.get_default_configuration()
        self._groups: list[_Group] = []
        self._filling: _Group | None = None
        self.has_started = self._used_up = False
        super().__init__(scenario, len(rungs), eta)

    @property
    def first_rung(self) -> int:
        """Configurations on the first rung of the first bracket."""
        return self._sizes[0][0]

    def __iter__(self) -> Iterator[TrialInfo]:
        """Return the iterator itself; SMAC asks it for one trial at a time."""
        self.__post_init__()
        return self

    def __next__(self) -> TrialInfo:
        """Return the next trial to start.

        Raises:
            StopIteration: If there is none before another result arrives.
        """
        if not self.has_started:
            self.has_started = True
            self._adopt_earlier_results()
        while True:
            self._promote()
            waiting = [group for group in self._groups if group.started < len(group.configs)]
            if waiting:
                return self._start(min(waiting, key=lambda group: group.rank))
            if not self._draw() and not self._promote():
                raise StopIteration

    def reopen(self, info: TrialInfo) -> None:
        """Wait again for the result of a trial if its rung is not finished."""
        for group in self._groups:
            for index in list(group.costs):
                if group.configs[index] == info.config and self._budget(group) == info.budget:
                    del group.costs[index]
                    group.running.add(index)

    @property
    def open_configs(self) -> list[Configuration]:
        """Configurations that wait, run, or may yet be promoted."""
        return [config for group in self._groups for config in group.configs]

    def _adopt_earlier_results(self) -> None:
        """Put configurations with a result from before the first proposal on the first rung, as whole groups."""
        tried = self.runhistory.get_configs()
        configs = [config for config in tried if self._value(config, self._rungs[0]) is not None]
        size = self.first_rung
        for start in range(0, len(configs) - size + 1, size):
            self._groups.append(_Group(0, 0, configs[start : start + size]))

    def _start(self, group: _Group) -> TrialInfo:
        group.running.add(group.started)
        group.started += 1
        return TrialInfo(group.configs[group.started - 1], seed=self.trial_seed, budget=self._budget(group))

    def _promote(self) -> bool:
        """Move the best configurations of finished rungs one rung up, and forget the groups of finished brackets.

        Returns:
            Whether anything changed.
        """
        changed = False
        groups = list(self._groups)
        for group in groups:
            self._read_results(group)
            last = group.stage == len(self._sizes[group.bracket]) - 1
            if group.is_finished if not last else group.places == 0 and group.started == len(group.configs):
                self._groups.remove(group)
                changed = True
                best = [] if last else self._best(group)
                if best:
                    groups.append(_Group(group.bracket, group.stage + 1, best))
                    self._groups.append(groups[-1])
        return changed

    def _read_results(self, group: _Group) -> None:
        """Read new results, including results of trials that another search ran."""
        while group.started < len(group.configs) and self._value_in(group, group.started) is not None:
            group.running.add(group.started)
            group.started += 1
        for index in sorted(group.running):
            value = self._value_in(group, index)
            if value is not None and value.status != StatusType.RUNNING:
                group.running.discard(index)
                group.costs[index] = float(value.cost) if value.status == StatusType.SUCCESS else None

    def _best(self, group: _Group) -> list[Configuration]:
        """Return the configurations to promote: the best and the default, without failed ones.

        Ties go to the configuration that was better on the rung below.
        """
        ranked = sorted((cost, index) for index, cost in group.costs.items() if cost is not None)
        configs = [group.configs[index] for _, index in ranked]
        count = self._sizes[group.bracket][group.stage + 1]
        return configs[:count] + [config for config in configs[count:] if config == self._default]

    def _draw(self) -> bool:
        """Put a new configuration on the first rung that is being filled; return False if there is none left.

        The configuration is chosen only when it can start, so that the surrogate knows all results so far.
        """
        if self._used_up:
            return False
        if self._filling is None or self._filling.places == 0:
            bracket = self.next_bracket()
            self._filling = _Group(bracket, 0, [], places=self._sizes[bracket][0])
            self._groups.append(self._filling)
        config = self._new_config()
        if config is None:
            self._used_up = True
            self._filling.places = 0
            return False
        self._filling.configs.append(config)
        self._filling.places -= 1
        return True

    def _new_config(self) -> Configuration | None:
        for _ in range(_DRAWS):
            try:
                config = next(self.config_generator)
            except (StopIteration, ConfigurationSpaceExhaustedException):
                return None
            if not self.runhistory.has_config(config):
                return config
        return None

    def _budget(self, group: _Group) -> float:
        return self._rungs[group.bracket + group.stage]

    def _value_in(self, group: _Group, index: int) -> Any:
        return self._value(group.configs[index], self._budget(group))

    def _value(self, config: Configuration, budget: float) -> Any:
        """Return SMAC's record of a trial; None if it was not started."""
        if not self.runhistory.has_config(config):
            return None
        return self.runhistory.get(TrialKey(self.runhistory.get_config_id(config), None, self.trial_seed, budget))


def _forest(scenario: Scenario) -> RandomForest:
    """Return SMAC's forest for hyperparameters, in one thread, which is faster for trees this small.

    SMAC allows 2**20 leaves, for which scikit-learn reserves 150 MB per tree before the first split.
    """
    return RandomForest(
        scenario.configspace,
        log_y=True,
        n_trees=_TREES,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_leaf_nodes=_LEAVES,
        seed=scenario.seed,
        n_jobs=1,
    )
