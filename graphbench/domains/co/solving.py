"""The solvers, checks and trivial baselines of each problem of the domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphbench.data.components.generators import CompileJob
from graphbench.domains.co.baselines import (
    greedy_colouring,
    greedy_cut,
    greedy_independent_set,
    random_colouring,
    random_cut,
    random_independent_set,
)
from graphbench.domains.co.checkers import (
    Checker,
    check_clique,
    check_colouring,
    check_cut,
    check_independent_set,
    check_vertex_cover,
)
from graphbench.domains.co.clique import CliqueEffort, find_clique
from graphbench.domains.co.colouring import ColouringEffort, find_colouring
from graphbench.domains.co.compiling import CLIQUE_JOBS, COLOURING_JOBS, CUT_JOBS, SET_JOBS
from graphbench.domains.co.independent_set import IndependentSetEffort, find_independent_set
from graphbench.domains.co.max_cut import MaxCutEffort, find_cut
from graphbench.domains.co.reductions_to_sets import (
    find_vertex_cover,
    greedy_clique,
    greedy_vertex_cover,
    random_clique,
    random_vertex_cover,
)
from graphbench.domains.co.solvers import Effort, Label


@dataclass(frozen=True)
class Solver:
    """The solver of one problem, its check and its trivial baselines.

    Attributes:
        solve: ``(num_nodes, edges, effort, seed) -> Label``, the canonical solver.
        effort: Pydantic model of its effort; called without arguments, the default.
        check: ``(num_nodes, edges, label) -> problems``, independent of the solver.
        greedy: ``(num_nodes, edges) -> Label``.
        random: ``(num_nodes, edges, seed) -> Label``.
        compile_jobs: Independent parts of its kernels.
    """

    solve: Callable[..., Label]
    effort: type[Effort]
    check: Checker
    greedy: Callable[..., Label]
    random: Callable[..., Label]
    compile_jobs: tuple[CompileJob, ...]


SOLVERS: Mapping[str, Solver] = {
    "mis": Solver(
        find_independent_set,
        IndependentSetEffort,
        check_independent_set,
        greedy_independent_set,
        random_independent_set,
        SET_JOBS,
    ),
    "max_cut": Solver(find_cut, MaxCutEffort, check_cut, greedy_cut, random_cut, CUT_JOBS),
    "coloring": Solver(
        find_colouring, ColouringEffort, check_colouring, greedy_colouring, random_colouring, COLOURING_JOBS
    ),
    "vertex_cover": Solver(
        find_vertex_cover, IndependentSetEffort, check_vertex_cover, greedy_vertex_cover, random_vertex_cover, SET_JOBS
    ),
    "max_clique": Solver(find_clique, CliqueEffort, check_clique, greedy_clique, random_clique, CLIQUE_JOBS),
}
"""Name of the problem in the domain -> its solver."""
