"""Presolving schedules of selectors: which algorithm runs before a choice is made, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.models.tabular.selectors import Floats

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


def presolved(
    costs: Floats, choices: NDArray[np.int64], overhead: Floats, presolver: int, time: float
) -> tuple[NDArray[np.int64], Floats]:
    """Return the last algorithm that runs on every instance, int64 ``[S]``, and what is paid beside its cost, ``[S]``.

    The presolver runs first. An instance that it solves in its time pays nothing else. For the other instances the
    presolver is suspended, the overhead is paid, and the chosen algorithm runs: the presolver goes on where it stopped,
    and any other algorithm pays the time of presolving, too.

    Args:
        costs: Costs of the algorithms, ``[S, K]``.
        choices: The chosen algorithms, int64 ``[S]``.
        overhead: Cost of making each choice, ``[S]``.
        presolver: Number of the algorithm that runs first.
        time: How long it runs, in the unit of the costs.
    """
    solved = costs[:, presolver] <= time
    algorithms = np.where(solved, presolver, choices)
    spent = np.where(algorithms == presolver, 0.0, time)
    return algorithms, np.where(solved, 0.0, overhead + spent)


def best_schedule(costs: Floats, choices: NDArray[np.int64], overhead: Floats) -> tuple[int, float] | None:
    """Return the presolver and its time with the lowest mean cost, or None if no schedule costs less than the choices.

    Of equal schedules the one with the first algorithm and the shortest time is returned; see :func:`presolved`.

    Args:
        costs: Costs of the algorithms, ``[S, K]``; the highest of all stands for algorithms that failed.
        choices: The chosen algorithms, int64 ``[S]``.
        overhead: Cost of making each choice, ``[S]``.
    """
    rows = np.arange(len(costs))
    best, lowest = None, float((costs[rows, choices] + overhead).mean())
    for presolver in range(costs.shape[1]):
        times = np.unique(costs[:, presolver][costs[:, presolver] < costs.max()])
        if len(times) > _TIMES:
            times = times[np.linspace(0, len(times) - 1, _TIMES).astype(int)]
        for time in times.tolist():
            algorithms, paid = presolved(costs, choices, overhead, presolver, time)
            mean = float((costs[rows, algorithms] + paid).mean())
            if mean < lowest:
                best, lowest = (presolver, time), mean
    return best
