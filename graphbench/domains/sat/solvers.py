"""SAT solvers whose effort is counted: the same formula takes the same effort on every machine.

The effort of a run is modelled processor time: the counts of the solver's operations (propagations, clause accesses)
times frozen coefficients, in whole nanoseconds. The coefficients were fitted to processor time once
(docs/domains/sat.md has the residuals) and define the labels. A run is limited by effort, never by a clock.

Solvers of python-sat that count no propagations (MapleCM, MapleSAT) or report no counts (Kissat) are left out; Kissat
is run as the executable of the package ``passagemath-kissat``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError, MissingDependency, SolverError
from graphbench.core.suggestions import closest
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.solver_client import run_job

Status = Literal["sat", "unsat", "unsolved"]
_INSTALL = "pip install 'graphbench[sat]'"
_NANOSECONDS = 1e-9
_FIRST_CONFLICTS = 4000  # the first limit of solvers that can be limited by conflicts only
_MARGIN = 1.15  # the next limit is this factor times the limit that the effort per conflict suggests
_GROWTH = 40
_BUDGETS = {"propagations": "prop", "conflicts": "conf"}


@dataclass(frozen=True)
class SolverRun:
    """The outcome of one run of a solver.

    Attributes:
        status: ``sat``, ``unsat``, or ``unsolved`` if the run needs more effort than it was allowed.
        effort: Modelled processor time in seconds; at least the limit if unsolved. The same on every machine.
        cpu_seconds: Measured processor time in seconds. If the solver was run several times (``limits``), it is the
            time of the last run.
        model: bool ``[n]``, a satisfying assignment, if ``sat``: ``model[v - 1]`` is the value of variable v.
        counts: The solver's counts of its operations.
    """

    status: Status
    effort: float
    cpu_seconds: float
    model: NDArray[np.bool_] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Solver:
    """A solver with deterministic effort.

    Attributes:
        name: Name of the solver.
        package: Distribution that holds it, whose version is the solver's.
        nanoseconds: Coefficients of the modelled time: nanoseconds per count.
        base: Nanoseconds of every run.
        per_literal: Nanoseconds per literal of the formula, for reading it.
        limits: The counts that the solver can limit. A solver that can limit propagations is run once. The effort of
            any other solver is not known in advance, so it is run again with a higher limit of conflicts until the run
            decides the formula or takes all its effort.
    """

    name: str
    package: str
    nanoseconds: Mapping[str, float]
    base: int = 1_000_000
    per_literal: int = 30
    limits: tuple[str, ...] = ("conflicts",)

    def effort(self, counts: Mapping[str, int], num_literals: int) -> float:
        """Return the modelled processor time of a run in seconds, a whole number of nanoseconds."""
        spent = self.base + self.per_literal * num_literals
        spent += sum(int(rate * 1000) * counts.get(name, 0) // 1000 for name, rate in self.nanoseconds.items())
        return spent * _NANOSECONDS

    @property
    def version(self) -> str:
        """The installed version.

        Raises:
            MissingDependency: If the solver is not installed.
        """
        if self.package == _KISSAT:
            return _kissat()[1]
        try:
            return version(self.package)
        except PackageNotFoundError as error:
            raise MissingDependency(f"the solver {self.name} needs {self.package}; {_INSTALL}") from error


@cache
def _kissat() -> tuple[str, str]:
    """Return the path and the version of the Kissat executable.

    Raises:
        MissingDependency: If no executable is installed.
    """
    candidates = []
    with suppress(PackageNotFoundError):
        files = distribution(_KISSAT).files or ()
        candidates = [str(file.locate()) for file in files if file.name == "kissat" and file.parent.name == "bin"]
    for candidate in filter(None, (*candidates, shutil.which("kissat"))):
        completed = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if completed.returncode == 0:
            return candidate, completed.stdout.strip()
    raise MissingDependency(f"the solver kissat needs its executable; {_INSTALL}")


MAX_EFFORT = 10_000_000
"""Largest effort of a run, in modelled seconds."""
_KISSAT, _PYTHON_SAT = "passagemath-kissat", "python-sat"
_BOTH = ("propagations", "conflicts")

SOLVERS: Mapping[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver(
            "kissat",
            _KISSAT,
            {
                "search_ticks": 8.3,
                "probing_ticks": 10.4,
                "kitten_ticks": 20.0,
                "propagations": 65.0,
                "conflicts": 2600.0,
            },
            base=4_000_000,
            per_literal=100,
        ),
        Solver("cadical195", _PYTHON_SAT, {"propagations": 170.0, "conflicts": 3650.0, "decisions": 730.0}),
        Solver("minisat22", _PYTHON_SAT, {"propagations": 119.0, "conflicts": 1230.0}, limits=_BOTH),
        Solver("glucose42", _PYTHON_SAT, {"propagations": 137.0, "conflicts": 6130.0}, limits=_BOTH),
        Solver("ergo", _PYTHON_SAT, {"propagations": 143.0, "conflicts": 944.0}, limits=_BOTH),
        Solver("mergesat3", _PYTHON_SAT, {"propagations": 166.0, "conflicts": 8280.0}, limits=_BOTH),
    )
}


def find_solver(name: str) -> Solver:
    """Return a solver by name.

    Raises:
        ArgumentError: If the name is unknown; the message suggests the nearest name.
    """
    if name not in SOLVERS:
        raise ArgumentError(f"there is no solver {name!r}{closest(name, SOLVERS)} (there are {', '.join(SOLVERS)})")
    return SOLVERS[name]


def run_solver(name: str, cnf: Cnf, effort: float = 10.0, *, memory_mb: int = 4096) -> SolverRun:
    """Run a solver on a formula in a separate process, with a limit on its effort.

    Status and effort are functions of the formula (the order of clauses and literals included), the solver and its
    version. A model is checked. A run that meets a guard (memory, or 20 times its effort in processor time, 100 times
    in wall time) has no result.

    Args:
        name: Name of a solver of :data:`SOLVERS`.
        cnf: The formula.
        effort: Limit of the effort, in modelled seconds, at most `MAX_EFFORT`.
        memory_mb: Guard of memory, in MiB.

    Raises:
        ArgumentError: If the name is unknown, or the effort is not a number above 0 and at most `MAX_EFFORT`.
        MissingDependency: If the solver is not installed.
        SolverError: If the run met a guard, crashed, or gave a wrong model; it can be repeated.
    """
    solver = find_solver(name)
    if isinstance(effort, bool) or not isinstance(effort, int | float) or not 0 < effort <= MAX_EFFORT:
        raise ArgumentError(f"effort is {effort!r}; give modelled seconds, a number above 0, at most {MAX_EFFORT:,}")
    if not isinstance(cnf, Cnf):
        raise ArgumentError(f"the formula is a {type(cnf).__name__}; give a Cnf, e.g. Cnf.from_clauses([[1, -2], [2]])")
    job = {
        "solver": name,
        "executable": _kissat()[0] if solver.package == _KISSAT else "",
        "cpu_seconds": 20 * effort + 30,
        "wall_seconds": 100 * effort + 300,
        "memory_bytes": whole_number("memory_mb", memory_mb, 64, error=ArgumentError) << 20,
    }
    assert solver.version
    limits = _first_limits(solver, effort)
    while True:
        answer, model = run_job(cnf, {**job, **_as_options(solver, limits)})
        spent = solver.effort(answer["counts"], len(cnf.literals))
        done = answer["status"] != "unsolved"
        if done or spent >= effort:
            break
        limits = _next_limits(limits, spent, effort)
    cpu = answer["cpu_seconds"]
    if not done or spent > effort:
        return SolverRun("unsolved", spent, cpu, counts=answer["counts"])
    assignment = _assignment(solver, cnf, model) if answer["status"] == "sat" else None
    return SolverRun(answer["status"], spent, cpu, assignment, answer["counts"])


def _first_limits(solver: Solver, effort: float) -> Mapping[str, int]:
    if solver.limits == ("conflicts",):
        return {"conflicts": _FIRST_CONFLICTS}
    return {name: int(effort / (solver.nanoseconds[name] * _NANOSECONDS)) + 1 for name in solver.limits}


def _next_limits(limits: Mapping[str, int], spent: float, effort: float) -> Mapping[str, int]:
    """Return limits that may suffice, given the effort of the run with the previous limits.

    Every run begins from the start: continuing a run would change the search.
    """
    factor = min(_GROWTH, max(_MARGIN, _MARGIN * effort / spent))
    return {name: int(limit * factor) + 1 for name, limit in limits.items()}


def _as_options(solver: Solver, limits: Mapping[str, int]) -> dict[str, Any]:
    if solver.package == _KISSAT:
        return {"options": ["-s", f"--conflicts={limits['conflicts']}"]}
    return {"budgets": {_BUDGETS[name]: limit for name, limit in limits.items()}}


def _assignment(solver: Solver, cnf: Cnf, literals: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the model as bool ``[n]``, the values of all variables; variables that the model leaves out are false."""
    model = np.zeros(cnf.num_variables + 1, np.bool_)
    model[literals[(literals > 0) & (literals <= cnf.num_variables)]] = True
    if not cnf.is_satisfied_by(model[1:]):
        raise SolverError(f"{solver.name} gave a wrong model of {cnf}; please report it")
    return model[1:]
