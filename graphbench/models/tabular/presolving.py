"""Presolving schedules of selectors: which algorithm runs before a choice is made, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FOLDS = 5
_TIMES = 64  # candidate times of an algorithm


def paid_costs(overhead: Any, ignored: Sequence[str]) -> float | tuple[str, ...]:
    """Return the cost of making a choice: a number, or the names of the fields of graphs whose sum it is.

    Args:
        overhead: The option ``overhead`` of a ``select`` task: a number, the name of a field, or input -> name.
        ignored: Inputs that the selector does not read, and does not pay for.
    """
    if isinstance(overhead, Mapping):
        return tuple(field for name, field in overhead.items() if name not in ignored)
    return (overhead,) if isinstance(overhead, str) else float(overhead)


def held_out_choices(
    rows: int, choose: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]], seed: int
) -> NDArray[np.int64]:
    """Return a choice for every row by a selector that was fitted without the row, int64 ``[T]``.

    Args:
        rows: Number of rows T, at least :data:`FOLDS`.
        choose: ``(rows to fit on, rows to choose for) -> choices``.
        seed: Seed of the division into :data:`FOLDS` parts of equal size.
    """
    part = np.random.default_rng(seed).permutation(rows) % FOLDS
    choices = np.empty(rows, np.int64)
    for number in range(FOLDS):
        held_out = np.flatnonzero(part == number)
        choices[held_out] = choose(np.flatnonzero(part != number), held_out)
    return choices


def best_schedule(costs: Floats, choices: NDArray[np.int64], overhead: Floats) -> tuple[int, float] | None:
    """Return the algorithm and the time that make choices cheapest, or None if no presolving is cheaper than any.

    An instance that the presolver solves in its time costs what the presolver takes. Any other instance costs the
    overhead and the chosen algorithm, and the time of presolving unless the presolver was chosen, which goes on where
    it stopped. Of equal schedules the one with the first algorithm and the shortest time is returned.

    Args:
        costs: Costs of the algorithms, ``[S, K]``; the highest of all stands for algorithms that failed.
        choices: The chosen algorithms, int64 ``[S]``.
        overhead: Cost of making each choice, ``[S]``.
    """
    after = overhead + costs[np.arange(len(costs)), choices]
    best, lowest = None, float(after.mean())
    for presolver in range(costs.shape[1]):
        of_presolver = costs[:, presolver]
        times = np.unique(of_presolver[of_presolver < costs.max()])
        if len(times) > _TIMES:
            times = times[np.linspace(0, len(times) - 1, _TIMES).astype(int)]
        for time in times.tolist():
            unsolved = after + np.where(choices == presolver, 0.0, time)
            mean = float(np.where(of_presolver <= time, of_presolver, unsolved).mean())
            if mean < lowest:
                best, lowest = (presolver, time), mean
    return best
