"""Features of short runs of complete solvers (python-sat), each run stopped after a number of conflicts.

A limit on conflicts makes a run deterministic, unlike a limit on time. A feature marks runs that decide the formula,
because the other features of such a run may reveal the answer to a benchmark's question.
"""

from __future__ import annotations

import importlib
from typing import Any

from graphbench.core.errors import MissingDependency
from graphbench.domains.sat.feature_tables import Group, Tables, log, ratio

_RUNS = (("minisat22", 500), ("minisat22", 2000), ("cadical195", 500))
_STEPS_PER_PROPAGATION = {"minisat22": 2, "cadical195": 5}  # in proportion to the measured times, like the next two
_STEPS_PER_CONFLICT = 60
_STEPS_PER_LITERAL = 3  # passed to a solver
_COUNTS = ("conflicts", "decisions", "propagations", "restarts")


def _measure(tables: Tables) -> tuple[list[float], int]:
    try:
        solvers = importlib.import_module("pysat.solvers")
    except ImportError as error:
        raise MissingDependency(
            "the feature group 'probes' needs python-sat: pip install 'graphbench[sat]', or leave the group out"
        ) from error
    if (tables.lengths == 0).any():
        return [*([0.0] * (len(_COUNTS) + 2)), 1.0] * len(_RUNS), tables.size
    clauses = list(tables.cnf.clauses())
    values: list[float] = []
    steps = tables.size
    for name, conflicts in _RUNS:
        counts, solved = _run(solvers, name, conflicts, clauses)
        per_conflict = [log(ratio(counts[key], counts["conflicts"])) for key in ("decisions", "propagations")]
        values += [*(log(counts[key]) for key in _COUNTS), *per_conflict, float(solved)]
        steps += _STEPS_PER_PROPAGATION[name] * counts["propagations"] + _STEPS_PER_CONFLICT * counts["conflicts"]
        steps += _STEPS_PER_LITERAL * len(tables.cnf.literals)
    return values, steps


def _run(solvers: Any, name: str, conflicts: int, clauses: list[list[int]]) -> tuple[dict[str, int], bool]:
    """Run a solver with a limit on conflicts; return the counts of the run and whether it decided the formula."""
    with solvers.Solver(name, bootstrap_with=clauses) as solver:
        solver.conf_budget(conflicts)
        answer = solver.solve_limited()
        return {key: int(value) for key, value in solver.accum_stats().items()}, answer is not None


_NAMES = (*(f"log_{count}" for count in _COUNTS), "log_decisions_per_conflict", "log_propagations_per_conflict")

PROBES = Group(
    tuple(
        name
        for solver, conflicts in _RUNS
        for name in (
            *(f"{solver}_{conflicts}_{count}" for count in _NAMES),
            f"solved_by_probe_{solver}_{conflicts}",
        )
    ),
    _measure,
)
