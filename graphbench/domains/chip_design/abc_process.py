"""ABC run on many truth tables in one process, with guards of time and memory.

Starting a process takes longer than optimising a small circuit, so hundreds of tables share one process. ABC reads a
table from a PLA file with the rows of its on-set, as the authors of GraphBench did, or from an AIGER file with a
circuit that computes the table. ABC writes its circuit as an AIGER file.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphbench.core.errors import CircuitError
from graphbench.core.processes.limits import allowed_limits
from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.truth_tables import Bits, num_inputs

_START_SECONDS = 30.0
_WALL_FACTOR, _WALL_SECONDS = 20.0, 120.0
_CONTEXT = 200


@dataclass(frozen=True)
class Guards:
    """The limits of an ABC process before it is ended.

    Attributes:
        seconds: Processor time per circuit, in seconds, in addition to 30 s per process.
        memory_mb: Memory of the process, in MiB.
    """

    seconds: float = 20.0
    memory_mb: int = 4096


@dataclass(frozen=True, eq=False)
class Job:
    """A truth table for ABC.

    Attributes:
        table: The table.
        start: A circuit that computes it, from which ABC starts; None to start from the table.
    """

    table: Bits
    start: Aig | None = None


def run_together(executable: str, commands: str, jobs: Sequence[Job], guards: Guards) -> list[Aig | str]:
    """Run commands of ABC on truth tables, in as few processes as possible.

    If a process ends early, the table that it was working on runs alone, and the remaining tables run in another
    process. So a table at which ABC crashes or meets a guard does not affect the circuits of the other tables.

    Returns:
        One circuit per table, or a text with the reason why the table has no circuit.
    """
    results: list[Aig | str] = [""] * len(jobs)
    waiting = [list(range(len(jobs)))] if len(jobs) else []
    while waiting:
        batch = waiting.pop()
        circuits, reason = _run_once(executable, commands, [jobs[i] for i in batch], guards)
        for i, circuit in zip(batch, circuits, strict=False):
            results[i] = circuit
        rest = batch[len(circuits) :]
        if len(batch) == 1 and rest:
            results[rest[0]] = reason
        elif rest:
            waiting += [rest[1:], rest[:1]] if len(rest) > 1 else [rest[:1]]
    return results


def _run_once(executable: str, commands: str, jobs: Sequence[Job], guards: Guards) -> tuple[list[Aig], str]:
    """Run one process; return the circuits of the first jobs, and the reason why the other jobs have none."""
    with tempfile.TemporaryDirectory(prefix="graphbench-abc-") as name:
        folder = Path(name)
        lines = []
        for i, job in enumerate(jobs):
            kind, content = ("pla", pla_bytes(job.table)) if job.start is None else ("aiger", job.start.to_aiger())
            (folder / f"{i}.{kind}").write_bytes(content)
            lines.append(f"read_{kind} {i}.{kind}; {commands}; write_aiger {i}.aig\n")
        (folder / "script").write_text("".join(lines))
        code, printed = _run_process([executable, "-s", "-f", "script"], folder, len(jobs), guards)
        circuits: list[Aig] = []
        for i, job in enumerate(jobs):
            try:
                circuit = Aig.from_aiger(folder / f"{i}.aig")
            except CircuitError:  # absent, or cut short as the process was ended
                break
            if (circuit.num_inputs, circuit.num_outputs) != (num_inputs(job.table), len(job.table)):
                break
            circuits.append(circuit)
        return circuits, _reason(code, printed, guards)


def pla_bytes(table: Bits) -> bytes:
    """Return a truth table as a PLA file with one row per assignment at which an output is 1.

    If no output is ever 1, all rows are written, because ABC reads no function from a file without rows.
    """
    n, m = num_inputs(table), len(table)
    columns = np.arange(table.shape[1])
    if table.any():
        columns = columns[table.any(axis=0)]
    rows = np.full((len(columns), n + m + 2), ord("0"), np.uint8)
    rows[:, :n] += (columns[:, None] >> np.arange(n) & 1).astype(np.uint8)
    rows[:, n] = ord(" ")
    rows[:, n + 1 : n + 1 + m] += table[:, columns].T.astype(np.uint8)
    rows[:, -1] = ord("\n")
    return f".i {n}\n.o {m}\n.p {len(rows)}\n".encode() + rows.tobytes() + b".e\n"


def _run_process(words: list[str], folder: Path, count: int, guards: Guards) -> tuple[int, str]:
    """Return the exit status, negative for a signal, and the end of the output; it runs in a new session."""
    seconds = int(_START_SECONDS + guards.seconds * count) + 1
    with (folder / "printed").open("wb") as printed:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder)},
        )
        try:
            with suppress(ProcessLookupError, AttributeError):  # prlimit is a call of Linux
                size = guards.memory_mb << 20
                for what, soft, hard in (
                    (resource.RLIMIT_CPU, seconds, seconds + 5),
                    (resource.RLIMIT_AS, size, size),
                    (resource.RLIMIT_CORE, 0, 0),
                ):
                    resource.prlimit(process.pid, what, allowed_limits(what, soft, hard))
            code = process.wait(_WALL_FACTOR * seconds + _WALL_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGXCPU
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    with (folder / "printed").open("rb") as printed_file:
        printed_file.seek(0, os.SEEK_END)
        printed_file.seek(max(0, printed_file.tell() - _CONTEXT))
        return code, printed_file.read().decode("utf-8", "replace")


def _reason(code: int, printed: str, guards: Guards) -> str:
    said = " ".join(printed.split())
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"ABC exceeded the guard of {guards.seconds:g} s of processor time"
    if code < 0:
        name = signal.Signals(-code).name
        return f"ABC was ended by {name}, perhaps at the guard of {guards.memory_mb} MiB of memory; it printed {said!r}"
    return f"ABC ended with exit status {code} and wrote no circuit; it printed {said!r}"
