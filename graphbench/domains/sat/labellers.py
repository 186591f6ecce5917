"""The labellers of SAT: those of solvers, which label a formula with their effort, of features, and of pairs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.core.errors import SolverError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Labeller, Outcome, Recorded
from graphbench.domains.sat.feature_labellers import FEATURE_LABELLERS
from graphbench.domains.sat.formulas import formula_of
from graphbench.domains.sat.pair_labellers import ASSIGNMENT, STATUS
from graphbench.domains.sat.solvers import SOLVERS, find_solver, run_solver

_STATUS = ("sat", "unsat", "unsolved")
_SAT, _UNSAT, UNSOLVED = range(3)
_COLUMNS = ("status", "nanoseconds", "cpu_microseconds")
_PENALTY = 10
_HASH = re.compile("[0-9a-f]{32}")


class SolverEffort(StrictModel):
    """The limits of a solver's run on a formula.

    Attributes:
        cutoff: Limit of the effort, in modelled seconds.
        solver_version: Version of the solver.
    """

    cutoff: Annotated[float, Field(gt=0, le=100_000)]
    solver_version: str


def _key(graph: Samples) -> str:
    return formula_of(graph).gbdhash


def _measure(solver: str, effort: SolverEffort, number: int, graph: Samples) -> Outcome:
    """Run the solver; the number of the graph has no effect, because solvers draw no random numbers.

    Raises:
        SolverError: If another version of the solver is installed, or the run has no result.
        MissingDependency: If the solver is not installed.
    """
    installed = find_solver(solver).version
    if installed != effort.solver_version:
        raise SolverError(
            f"the labels are of {solver} {effort.solver_version}, but {installed} is installed; install that version "
            f"of {find_solver(solver).package}, or use formulas whose labels are in a table"
        )
    run = run_solver(solver, formula_of(graph), effort.cutoff)
    nanoseconds = round(min(run.effort, effort.cutoff) * 1e9)
    return dict(zip(_COLUMNS, (_STATUS.index(run.status), nanoseconds, round(run.cpu_seconds * 1e6)), strict=True))


def _label(solver: str, effort: SolverEffort, outcome: Outcome) -> Mapping[str, Any]:
    """Return the status, the effort in modelled seconds, its PAR10, and the logarithm of PAR10 to base 10."""
    unsolved = outcome["status"] == UNSOLVED
    seconds = effort.cutoff if unsolved else outcome["nanoseconds"] * 1e-9
    penalised = _PENALTY * seconds if unsolved else seconds
    return {
        f"{solver}_status": outcome["status"],
        f"{solver}_seconds": seconds,
        f"{solver}_par10": penalised,
        f"{solver}_log_par10": math.log10(penalised),
    }


def _problem(effort: SolverEffort, key: str, outcome: Outcome) -> str | None:
    """Return the reason why a recorded outcome is impossible; None if it is possible."""
    cutoff = round(effort.cutoff * 1e9)
    if not _HASH.fullmatch(key):
        return f"the key is {key!r}, no hash of a formula (32 hexadecimal digits)"
    if outcome["status"] not in range(len(_STATUS)):
        return f"status is {outcome['status']}; it is 0 (sat), 1 (unsat) or 2 (unsolved)"
    if not 0 < outcome["nanoseconds"] <= cutoff:
        return f"nanoseconds is {outcome['nanoseconds']}; with this cutoff it is from 1 to {cutoff}"
    if outcome["status"] == UNSOLVED and outcome["nanoseconds"] != cutoff:
        return f"the run is unsolved after {outcome['nanoseconds']} ns, before the cutoff of {cutoff} ns"
    return f"cpu_microseconds is {outcome['cpu_microseconds']}" if outcome["cpu_microseconds"] < 0 else None


def _cpu_seconds(outcome: Outcome) -> float:
    return outcome["cpu_microseconds"] * 1e-6


def _refuse(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
    raise AssertionError("the outcomes of solvers are recorded")


def _check(solver: str, graph: Samples, values: Mapping[str, Any]) -> list[str]:
    """Return the contradictions within a label; the models themselves are checked right after a solver's run."""
    status, seconds, par10 = (values[f"{solver}_{name}"] for name in ("status", "seconds", "par10"))
    if status not in range(len(_STATUS)) or not 0 < seconds < math.inf:
        return [f"the label of {solver} has status {status} and {seconds} seconds"]
    factor = _PENALTY if status == UNSOLVED else 1
    if not math.isclose(par10, factor * seconds, rel_tol=1e-5):
        return [f"PAR10 of {solver} is {par10}, but its status is {_STATUS[status]} after {seconds} seconds"]
    if not math.isclose(values[f"{solver}_log_par10"], math.log10(par10), abs_tol=1e-4):
        return [f"log PAR10 of {solver} is {values[f'{solver}_log_par10']}, but PAR10 is {par10}"]
    return []


def _agreement(values: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the formulas that one solver found satisfiable and another unsatisfiable."""
    statuses = {solver: np.asarray(values[f"{solver}_status"]) for solver in SOLVERS if f"{solver}_status" in values}
    table = np.stack(list(statuses.values()))
    both = np.flatnonzero((table == _SAT).any(axis=0) & (table == _UNSAT).any(axis=0))
    return [
        f"formula {i}: {', '.join(f'{solver} says {_STATUS[int(codes[i])]}' for solver, codes in statuses.items())}"
        for i in both.tolist()
    ]


def _statistics(solver: str, samples: Samples) -> dict[str, NDArray[np.float64]]:
    succeeded = samples.values[f"{solver}_failed"] == 0
    nothing = np.full(len(samples), math.nan)
    status = samples.values[f"{solver}_status"]
    return {
        f"{solver}_solved": np.where(succeeded, status != UNSOLVED, nothing),
        f"{solver}_sat": np.where(succeeded, status == _SAT, nothing),
        f"{solver}_seconds": np.where(succeeded, samples.values[f"{solver}_seconds"], nothing),
    }


def _baselines(samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _shard_size(effort: SolverEffort) -> int:
    return max(1, round(60 / effort.cutoff))


def _solver_labeller(solver: str) -> Labeller:
    return Labeller(
        name=f"sat.{solver}",
        version=1,
        effort=SolverEffort,
        label=_refuse,
        check=partial(_check, solver),
        failed=f"{solver}_failed",
        statistics=partial(_statistics, solver),
        baselines=_baselines,
        shard_size=_shard_size,
        recorded=Recorded(_COLUMNS, _key, partial(_measure, solver), partial(_label, solver), _cpu_seconds, _problem),
        agreement=_agreement,
    )


LABELLERS: Mapping[str, Labeller] = {
    **{solver: _solver_labeller(solver) for solver in SOLVERS},
    **FEATURE_LABELLERS,
    "status": STATUS,
    "assignment": ASSIGNMENT,
}
