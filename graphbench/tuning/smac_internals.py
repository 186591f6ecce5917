"""Everything of SMAC that is used here and is not its public interface: each member with the reason why it is needed.

No other file may use a member of SMAC that begins with an underscore. ``tests/tuning/test_smac_internals.py`` lists
them all, and compares the list with this file and with the installed version of SMAC.
"""

from __future__ import annotations

from typing import Any

from ConfigSpace import Configuration, ConfigurationSpace
from smac import Scenario
from smac.acquisition.maximizer.local_and_random_search import LocalAndSortedRandomSearch
from smac.acquisition.maximizer.local_search import LocalSearch
from smac.initial_design import AbstractInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.main.config_selector import ConfigSelector


class InitialDesign(AbstractInitialDesign):  # type: ignore[misc]
    """An initial design; a subclass chooses its configurations.

    SMAC's ``select_configurations`` adds the default configuration last. A subclass overrides the whole method, so that
    the default is the first trial. ``_select_configurations`` is abstract in SMAC and must exist.
    """

    def __init__(self, scenario: Scenario, count: int) -> None:
        super().__init__(scenario, n_configs=count, max_ratio=1.0)

    @property
    def space(self) -> ConfigurationSpace:
        """The search space; SMAC has no public name for it."""
        return self._configspace

    @property
    def design_seed(self) -> int:
        """The seed of the design; SMAC has no public name for it."""
        return int(self._seed)

    @property
    def count(self) -> int:
        """The number of configurations after SMAC's limits are applied; SMAC has no public name for it."""
        return int(self._n_configs)

    def _select_configurations(self) -> list[Configuration]:
        return list(self.select_configurations())


class StepwiseHyperband(Hyperband):  # type: ignore[misc]
    """Hyperband that a subclass steps through, with a given seed and number of brackets.

    SMAC makes a list of seeds per trial (``_tf_seeds``) and computes its number of brackets (``_s_max``) from a
    quotient of logarithms; the rounding error of the quotient loses a budget. SMAC sets both attributes in
    ``__post_init__`` before its iterator starts, so this class replaces them after that call.
    """

    def __init__(self, scenario: Scenario, brackets: int, eta: int) -> None:
        self._brackets = brackets
        super().__init__(scenario, eta=eta, n_seeds=1, instance_seed_order=None)

    def __post_init__(self) -> None:
        """Set the seed of all trials, and how many brackets follow one another."""
        self._tf_seeds = [self._seed]
        super().__post_init__()
        self._s_max = self._brackets - 1

    @property
    def trial_seed(self) -> int:
        """The seed of trials in SMAC's records; SMAC has no public name for it."""
        return int(self._seed)

    def next_bracket(self) -> int:
        """Return the bracket that a new configuration belongs to; SMAC has no public name for it."""
        return int(self._get_next_bracket())


class Selector(ConfigSelector):  # type: ignore[misc]
    """Trains the surrogate again even if only the budget that it considers has changed.

    SMAC trains it only when the number of observations (``_previous_entries``) has changed; -1 equals no number.
    """

    def _collect_data(self) -> tuple[Any, Any, Any]:
        before = self._considered_budgets
        data: tuple[Any, Any, Any] = super()._collect_data()
        if self._considered_budgets != before:
            self._previous_entries = -1
        return data


class _SortedLocalSearch(LocalSearch):  # type: ignore[misc]
    """Starts in an order that is the same in every process; SMAC takes the order of a set of configurations."""

    def _get_init_points_from_previous_configs(self, *args: Any, **options: Any) -> list[Configuration]:
        return sorted(super()._get_init_points_from_previous_configs(*args, **options), key=str)


class Maximizer(LocalAndSortedRandomSearch):  # type: ignore[misc]
    """Searches for the next configuration; SMAC has no public way to set the local search (``_local_search``)."""

    def __init__(self, space: ConfigurationSpace, challengers: int, seed: int) -> None:
        super().__init__(space, challengers=challengers, local_search_iterations=10, seed=seed)
        self._local_search = _SortedLocalSearch(space, seed=seed)
