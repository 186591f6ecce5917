"""The problems of the domain: how each is solved, checked, and beaten least."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphbench.domains.co.baselines import (
    greedy_colouring,
    greedy_cut,
    greedy_independent_set,
    random_colouring,
    random_cut,
    random_independent_set,
)
from graphbench.domains.co.checkers import Checker, check_colouring, check_cut, check_independent_set
from graphbench.domains.co.colouring import ColouringEffort, find_colouring
from graphbench.domains.co.independent_set import IndependentSetEffort, find_independent_set
from graphbench.domains.co.max_cut import MaxCutEffort, find_cut
from graphbench.domains.co.solvers import Effort, Label


@dataclass(frozen=True)
class Task:
    """One problem.

    Attributes:
        solve: ``(num_nodes, edges, effort, seed) -> Label``, the canonical solver.
        effort: Pydantic model of its effort; called without arguments, the default.
        check: ``(num_nodes, edges, label) -> problems``, independent of the solver.
        greedy: ``(num_nodes, edges) -> Label``.
        random: ``(num_nodes, edges, seed) -> Label``.
        maximise: Whether larger values are better.
    """

    solve: Callable[..., Label]
    effort: type[Effort]
    check: Checker
    greedy: Callable[..., Label]
    random: Callable[..., Label]
    maximise: bool


TASKS: Mapping[str, Task] = {
    "mis": Task(
        find_independent_set,
        IndependentSetEffort,
        check_independent_set,
        greedy_independent_set,
        random_independent_set,
        maximise=True,
    ),
    "max_cut": Task(find_cut, MaxCutEffort, check_cut, greedy_cut, random_cut, maximise=True),
    "coloring": Task(
        find_colouring, ColouringEffort, check_colouring, greedy_colouring, random_colouring, maximise=False
    ),
}
