"""The budgets of a search, and how many trials each of them gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphbench.core.errors import ConfigError


def ladder(min_budget: int, max_budget: int, eta: int) -> list[int]:
    """Return the budgets of trials, rising to ``max_budget`` by factors of ``eta``, in whole numbers.

    As in SMAC's successive halving and Hyperband, the budgets are the largest budget divided by powers of ``eta``, down
    to the last quotient that is no smaller than ``min_budget``. The budgets are rounded to the nearest whole number
    here. SMAC computes the last power from a quotient of logarithms and loses the smallest budget of e.g. 1 to 243 to a
    rounding error; this function keeps the smallest budget.

    Args:
        min_budget: Smallest budget that is allowed; the smallest budget of the ladder is less than ``eta`` times as
            large.
        max_budget: Largest budget.
        eta: Ratio of neighbouring budgets.

    Raises:
        ConfigError: If a budget is below 1, the largest is below the smallest, or eta is below 2.
    """
    if min_budget < 1 or max_budget < min_budget or eta < 2:
        raise ConfigError(
            f"no budgets lead from {min_budget} to {max_budget} by factors of {eta}; "
            "give 1 <= min_budget <= max_budget and eta >= 2"
        )
    budgets, divisor = [max_budget], eta
    while min_budget * divisor <= max_budget:
        budgets.append((2 * max_budget + divisor) // (2 * divisor))
        divisor *= eta
    return budgets[::-1]


def budgets_of(identity: Mapping[str, Any]) -> list[int]:
    """Return the rising budgets of a run from the identity in its records; a missing budget counts as 1."""
    return ladder(identity.get("min_budget", 1), identity.get("max_budget", 1), identity.get("eta", 3))


def bracket_sizes(rungs: int, eta: int) -> list[list[int]]:
    """Return how many configurations each bracket trains on each of its rungs.

    Source: Li et al., Hyperband, JMLR 18 (2018), algorithm 1, in integers.

    Args:
        rungs: Number of budgets; bracket ``i`` starts on rung ``i``.
        eta: One configuration of ``eta`` is promoted.
    """
    sizes = []
    for rounds in range(rungs, 0, -1):
        first = -(-rungs * eta ** (rounds - 1) // rounds)
        sizes.append([first // eta**done for done in range(rounds)])
    return sizes


def trials_until_largest(rungs: int, eta: int) -> int:
    """Return how many trials Hyperband needs until the first one reaches the largest budget, if none fails.

    Args:
        rungs: Number of budgets.
        eta: One configuration of ``eta`` is promoted.
    """
    return sum(bracket_sizes(rungs, eta)[0][:-1]) + 1
