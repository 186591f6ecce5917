"""Logic synthesis with ABC: circuits of truth tables, as small as a script of ABC makes them.

The executable ``yosys-abc`` of the package ``pyosys`` is used; ``GRAPHBENCH_ABC`` names another. Names of scripts are
taken from the file ``abc.rc`` in ABC's sources; their commands are written out here, because installed versions
come without this file and ignore unknown names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError, CircuitError, MissingDependency, SolverError
from graphbench.core.suggestions import closest
from graphbench.domains.chip_design.abc_process import Guards, Job, run_together
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.truth_tables import Bits, tables_as_bits, to_words

SETTING = "GRAPHBENCH_ABC"
"""Environment variable that names another executable of ABC."""
BATCH = 256
"""Tables per process of ABC."""
_PACKAGE, _INSTALL = "pyosys", "pip install 'graphbench[chip]'"

_RESYN = "balance; rewrite; rewrite -z; balance; rewrite -z; balance"
_RESYN2 = "balance; rewrite; refactor; balance; rewrite; rewrite -z; balance; refactor -z; rewrite -z; balance"
_COMPRESS2 = (
    "balance -l; rewrite -l; refactor -l; balance -l; rewrite -l; rewrite -z -l; balance -l; refactor -z -l; "
    "rewrite -z -l; balance -l"
)
_RESYN2RS = (
    "balance; resub -K 6; rewrite; resub -K 6 -N 2; refactor; resub -K 8; balance; resub -K 8 -N 2; rewrite; "
    "resub -K 10; rewrite -z; resub -K 10 -N 2; balance; resub -K 12; refactor -z; resub -K 12 -N 2; rewrite -z; "
    "balance"
)

SCRIPTS: Mapping[str, str] = {
    "strash": "strash",
    "resyn": f"strash; {_RESYN}",
    "resyn2": f"strash; {_RESYN2}",
    "compress2": f"strash; {_COMPRESS2}",
    "resyn2rs": f"strash; {_RESYN2RS}",
    "dc2": "strash; dc2",
    "reference": f"strash; {_RESYN2}; {_RESYN2}; dc2; {_RESYN2RS}; {_RESYN2}",
    "deepsyn": "strash; &get; &deepsyn -I 1 -J 3; &put",
}
"""Scripts by name: the baselines of table 5 of GraphBench, the one of its reference circuits (section 3.2.1), and
``deepsyn``, a search that ends after three rounds without a smaller circuit."""


@dataclass(frozen=True)
class Abc:
    """An executable of ABC.

    Attributes:
        executable: Its path.
        tool: Its name and version, on which circuits depend: the version of the package ``pyosys``, or the file's name
            and the first digits of the SHA-256 of its content.
    """

    executable: str
    tool: str


def find_abc() -> Abc:
    """Return the executable of ABC that is used.

    Raises:
        MissingDependency: If ABC is not installed, or ``GRAPHBENCH_ABC`` names no executable.
    """
    return _find_abc(os.environ.get(SETTING) or None)


@cache
def _find_abc(named: str | None) -> Abc:
    if named is not None:
        path = shutil.which(named)
        if path is None:
            raise MissingDependency(
                f"{SETTING} is {named!r}, which is no executable; name one of ABC, or unset it and use {_INSTALL}"
            )
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
        return Abc(str(Path(path).resolve()), f"{Path(path).name} {digest}")
    with suppress(PackageNotFoundError):
        installed = distribution(_PACKAGE)
        for name in ("yosys-abc", "yosys-abc.exe"):
            path = shutil.which(str(installed.locate_file(f"{_PACKAGE}/{name}")))
            if path is not None:
                return Abc(str(Path(path).resolve()), f"{_PACKAGE} {installed.version}")
    raise MissingDependency(
        f"circuits are synthesised by ABC, which is not installed; {_INSTALL}, or name an executable of ABC with the "
        f"environment variable {SETTING}"
    )


def commands_of(script: str) -> str:
    """Return the commands of a script of :data:`SCRIPTS`.

    Raises:
        ArgumentError: If no script has this name; the message suggests the nearest name.
    """
    if script not in SCRIPTS:
        raise ArgumentError(f"there is no script {script!r}{closest(script, SCRIPTS)} (there are {', '.join(SCRIPTS)})")
    return SCRIPTS[script]


def synthesise(
    tables: Sequence[Any], script: str = "reference", *, seconds: float = 20.0, memory_mb: int = 4096
) -> list[Aig]:
    """Return circuits that compute truth tables, made by a script of ABC; each is checked by simulation.

    A circuit is a function of its table, the script and the version of ABC alone.

    Args:
        tables: Truth tables, arrays of 0 and 1 ``[m, 2^n]`` or ``[2^n]`` (:mod:`~.truth_tables` has their order).
        script: Name of a script of :data:`SCRIPTS`.
        seconds: Guard of processor time per circuit, in seconds, plus 30 s of the process; it ends a script that
            does not end.
        memory_mb: Guard of the memory of ABC, in MiB.

    Raises:
        CircuitError: If a table is malformed.
        ArgumentError: If there is no such script, or a guard is out of range.
        MissingDependency: If ABC is not installed.
        SolverError: If ABC met a guard, crashed or gave a wrong circuit.
    """
    jobs = [Job(table) for table in tables_as_bits(tables)]
    return _without_reasons("table", _run_jobs(jobs, script, seconds, memory_mb))


def optimise(
    circuits: Sequence[Aig], script: str = "reference", *, seconds: float = 20.0, memory_mb: int = 4096
) -> list[Aig]:
    """Return circuits that a script of ABC makes from given circuits; each is checked to compute the same function.

    Args:
        circuits: The circuits, of at most 20 inputs.
        script: Name of a script of :data:`SCRIPTS`.
        seconds: Guard of processor time per circuit, in seconds.
        memory_mb: Guard of the memory of ABC, in MiB.

    Raises:
        CircuitError: If a circuit has more inputs.
        ArgumentError: If there is no such script, a guard is out of range, or an item is no circuit.
        MissingDependency: If ABC is not installed.
        SolverError: If ABC met a guard, crashed or gave a wrong circuit.
    """
    if isinstance(circuits, Aig) or not all(isinstance(circuit, Aig) for circuit in circuits):
        raise ArgumentError("circuits holds something else than objects Aig; give a list of them")
    jobs = [Job(circuit.simulate(), circuit) for circuit in circuits]
    return _without_reasons("circuit", _run_jobs(jobs, script, seconds, memory_mb))


def _without_reasons(description: str, results: Sequence[Aig | str]) -> list[Aig]:
    for i, circuit in enumerate(results):
        if isinstance(circuit, str):
            raise SolverError(f"{description} {i} of {len(results)}: {circuit}")
    return [circuit for circuit in results if isinstance(circuit, Aig)]


def try_synthesise(
    tables: Sequence[Bits], script: str, *, seconds: float = 20.0, memory_mb: int = 4096
) -> list[Aig | str]:
    """Return circuits as :func:`synthesise` does, and for a table without a circuit the reason."""
    return _run_jobs([Job(table) for table in tables], script, seconds, memory_mb)


def _run_jobs(jobs: Sequence[Job], script: str, seconds: float, memory_mb: int) -> list[Aig | str]:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e6:
        raise ArgumentError(f"seconds is {seconds!r}; give a number above 0")
    for number, job in enumerate(jobs):
        if not len(job.table) or job.table.shape[1] < 2:
            raise CircuitError(f"function {number} has no input or no output; ABC takes functions with both")
    guards = Guards(float(seconds), whole_number("memory_mb", memory_mb, 256, error=ArgumentError))
    commands, abc = commands_of(script), find_abc()
    results: list[Aig | str] = []
    for first in range(0, len(jobs), BATCH):
        chosen = jobs[first : first + BATCH]
        circuits = run_together(abc.executable, commands, chosen, guards)
        results += _without_wrong(abc, chosen, circuits)
    return results


def _without_wrong(abc: Abc, jobs: Sequence[Job], circuits: Sequence[Aig | str]) -> list[Aig | str]:
    """Replace circuits that do not compute their table by a reason; all are simulated together."""
    run = Circuits.of([circuit for circuit in circuits if isinstance(circuit, Aig)])
    words, ptr = run.simulate(), iter(run.word_ptr.tolist())
    checked: list[Aig | str] = []
    first = next(ptr)
    for job, circuit in zip(jobs, circuits, strict=True):
        right = True
        if isinstance(circuit, Aig):
            last = next(ptr)
            right = np.array_equal(words[first:last], to_words(job.table).ravel())
            first = last
        checked.append(circuit if right else f"{abc.tool} gave a circuit that does not compute the table")
    return checked
