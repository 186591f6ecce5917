"""Questions about formulas whose answers do not depend on the solver that finds them.

Which clause makes a sequence of clauses unsatisfiable, and which assignment comes first among the best ones: every
correct solver gives the same answers, so the bits of datasets that are made of them depend on no solver's version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import SolverError
from graphbench.domains.sat.cnf import Cnf, first_violated
from graphbench.domains.sat.preprocessing import module_of_python_sat

_SOLVER = "minisat22"  # of those of python-sat, among the fastest on small formulas whose clauses come one by one


@contextmanager
def opened_solver(name: str, **options: Any) -> Iterator[Any]:
    """Open a solver of python-sat.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    solvers = module_of_python_sat("solvers", "the satisfiability of formulas is decided")
    with solvers.Solver(name=name, **options) as solver:
        yield solver


def clauses_until_unsatisfiable(cnf: Cnf) -> int | None:
    """Return the least number k such that the first k clauses cannot be satisfied together; None if all can.

    A clause is only given to the solver together with the clauses before it, and the solver is asked only where the
    last assignment violates a clause.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    literals, ptr = cnf.checked()
    model = np.zeros(cnf.num_variables, np.bool_)
    given = 0
    clauses = list(cnf.clauses())
    with opened_solver(_SOLVER) as solver:
        while True:
            violated = first_violated(literals, ptr, given, model)
            if violated == len(clauses):
                return None
            for clause in clauses[given : violated + 1]:
                solver.add_clause(clause)
            given = violated + 1
            if not solver.solve():
                return given
            _take(solver.get_model(), model)


def assignment_of(found: list[int], num_variables: int) -> NDArray[np.bool_]:
    """Return the model of a solver of python-sat as bool ``[n]``; variables in no clause are false."""
    model = np.zeros(num_variables, np.bool_)
    _take(found, model)
    return model


def _take(found: list[int], model: NDArray[np.bool_]) -> None:
    """Write the assignment that a solver found; variables in no clause keep their values."""
    values = np.asarray(found[: len(model)], np.int64)
    model[: len(values)] = values > 0


def is_satisfiable(cnf: Cnf) -> bool:
    """Return whether some assignment satisfies all clauses.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    with opened_solver(_SOLVER, bootstrap_with=list(cnf.clauses())) as solver:
        return bool(solver.solve())


def first_best_assignment(cnf: Cnf) -> tuple[NDArray[np.bool_], int]:
    """Return the first assignment in lexicographic order that violates no clause, or as few as one; and the number.

    Values are compared from variable 1 on, and false comes before true.

    Args:
        cnf: The formula, whose clauses can be satisfied if one of them is left out.

    Returns:
        bool ``[n]``, the assignment, and the number of clauses that it violates: 0 or 1.

    Raises:
        SolverError: If every assignment violates more than one clause.
        MissingDependency: If python-sat is not installed.
    """
    with opened_solver(_SOLVER, bootstrap_with=list(cnf.clauses())) as solver:
        if solver.solve():
            return _first_model(solver, cnf.num_variables), 0
    with opened_solver(_SOLVER, bootstrap_with=_one_may_be_violated(cnf)) as solver:
        if solver.solve():
            return _first_model(solver, cnf.num_variables), 1
    raise SolverError(
        f"every assignment of the {cnf.num_variables} variables violates two clauses or more; assignments are labelled "
        "for formulas that one clause makes unsatisfiable"
    )


def _one_may_be_violated(cnf: Cnf) -> list[list[int]]:
    """Return clauses that hold if at most one clause of the formula is violated.

    Clause j has a further literal s_j, which excuses it; a counter allows one excuse: with p_j for "one of s_0 to s_j",
    the clauses are s_j -> p_j, p_(j-1) -> p_j, and not both p_(j-1) and s_j (Sinz, 2005).
    """
    n, m = cnf.num_variables, cnf.num_clauses
    rows = [[*clause, n + 1 + j] for j, clause in enumerate(cnf.clauses())]
    for j in range(m):
        excuse, used = n + 1 + j, n + m + 1 + j
        rows.append([-excuse, used])
        if j:
            rows += [[-(used - 1), used], [-(used - 1), -excuse]]
    return rows


def _first_model(solver: Any, num_variables: int) -> NDArray[np.bool_]:
    """Return the first model in lexicographic order of the clauses of a solver that has just found one."""
    model = assignment_of(solver.get_model(), num_variables)
    fixed: list[int] = []
    for variable in range(1, num_variables + 1):
        if model[variable - 1]:
            if solver.solve(assumptions=[*fixed, -variable]):
                _take(solver.get_model(), model)
            else:
                fixed.append(variable)
                continue
        fixed.append(-variable)
    return model
