"""Portfolios of algorithms: the best sets of every size, and the size beyond which more algorithms help little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import EvaluationError
from graphbench.tasks.select.evaluator import checked_costs

Floats = NDArray[np.float64]
BEAM = 500


@dataclass(frozen=True)
class Portfolio:
    """A set of algorithms.

    Attributes:
        algorithms: Its members, in the order of the table of costs.
        cost: Mean cost of its virtual best algorithm, in the unit of the costs.
        exact: Whether no set of this size has a lower cost: the search has seen all of them.
    """

    algorithms: tuple[str, ...]
    cost: float
    exact: bool


def best_portfolios(costs: Any, algorithms: Sequence[str], *, beam: int = BEAM) -> tuple[Portfolio, ...]:
    """Return the best portfolio of every size, by beam search (GraphBench, section 3.3.1).

    A portfolio is scored by the mean cost of its virtual best algorithm, the cheapest member on each instance. The
    search extends the ``beam`` best distinct sets of a size by every other algorithm. It is exhaustive as long as a
    beam holds all sets of a size, with the default for up to 11 algorithms. Of sets with equal costs the one whose
    names come first in the alphabet is the best; the order of the columns does not matter.

    Args:
        costs: Cost of each of K algorithms on each of S instances, positive, penalties included; ``[S, K]``.
        algorithms: The K names.
        beam: Number of sets of a size that are extended, from 1 on.

    Returns:
        K portfolios, of the sizes 1 to K.

    Raises:
        EvaluationError: If costs are not positive and finite, or there is not one distinct name for every column.
        ArgumentError: If ``beam`` is no whole number from 1 on.

    Example:
        >>> for best in best_portfolios([[1.0, 9.0, 4.0], [9.0, 1.0, 4.0]], ["a", "b", "c"]):
        ...     print(best.cost, *best.algorithms)
        4.0 c
        1.0 a b
        1.0 a b c
    """
    beam = whole_number("beam", beam, 1)
    table = checked_costs(costs, "costs")
    count = table.shape[1]
    if len(algorithms) != count or len(set(algorithms)) != count:
        raise EvaluationError(f"there are {count} columns of costs and the names {list(algorithms)}; give one for each")
    order = sorted(range(count), key=lambda k: algorithms[k])  # column -> by name, so that ties depend on names alone
    table = np.asfortranarray(table[:, order])
    names = [algorithms[k] for k in order]
    kept: list[tuple[int, ...]] = [()]
    exhaustive, portfolios = True, []
    for _ in range(count):
        ranked = _ranked(table, kept)
        cost, best = ranked[0]
        members = {names[k] for k in best}
        portfolios.append(Portfolio(tuple(name for name in algorithms if name in members), cost, exhaustive))
        exhaustive = exhaustive and len(ranked) <= beam
        kept = [members for _, members in ranked[:beam]]
    return tuple(portfolios)


def _ranked(table: Floats, sets: Iterable[tuple[int, ...]]) -> list[tuple[float, tuple[int, ...]]]:
    """Return cost and columns of every set with one column more, the best first."""
    costs: dict[tuple[int, ...], float] = {}
    for members in sets:
        lowest = table[:, list(members)].min(axis=1) if members else np.full(len(table), np.inf)
        for k in range(table.shape[1]):
            larger = tuple(sorted((*members, k)))
            if k not in members and larger not in costs:
                costs[larger] = float(np.minimum(lowest, table[:, k]).mean())
    return sorted((cost, members) for members, cost in costs.items())


def knee(values: Sequence[float], sensitivity: float = 1.0) -> int | None:
    """Return the position of the knee of a falling curve by Kneedle; None if it has none.

    Satopaa et al., "Finding a 'Kneedle' in a haystack: detecting knee points in system behavior", 2011, for a convex,
    falling curve at equal distances, without smoothing. Position and value are scaled to [0, 1]; the difference is the
    turned value minus the position. A local maximum of the difference is the knee if the difference falls below the
    maximum minus ``sensitivity`` times the distance of two positions before it rises again.

    Args:
        values: The curve, such as the cost of the best portfolio of 1, 2, ... algorithms.
        sensitivity: How many positions without progress make a knee, from 0 on; 1 is the value of the paper.

    Raises:
        EvaluationError: If a value is not finite, or ``sensitivity`` is negative.

    Example:
        >>> knee([100, 60, 12, 10, 9, 8.5])
        2
    """
    y = np.asarray(values, np.float64)
    if y.ndim != 1 or not np.isfinite(y).all() or not sensitivity >= 0:
        raise EvaluationError(
            f"the curve {values!r:.100} or the sensitivity {sensitivity!r} is not finite, or negative"
        )
    if len(y) < 3 or y[0] == y.min():
        return None
    x = np.arange(len(y)) / (len(y) - 1)
    difference = (y.max() - y) / (y.max() - y.min()) - x
    for top in range(1, len(y) - 1):
        if not difference[top - 1] < difference[top] >= difference[top + 1]:
            continue
        threshold = difference[top] - sensitivity * x[1]
        for after in range(top + 1, len(y)):
            if difference[after] < threshold:
                return top
            if difference[after] > difference[after - 1]:
                break
    return None
