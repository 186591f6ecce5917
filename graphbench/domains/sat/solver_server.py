"""The process that runs solvers: it forks one child per run and guards its memory, processor time and wall time.

It is started as a script and holds nothing but python-sat, so a fork takes a millisecond and no lock of another thread
can be held in the child. A job is a line of JSON followed by the formula: for an executable a DIMACS file, else the
literals (int32) and the clause lengths (int32). An answer is a line of JSON followed by the model. The process ends
when its input ends, and ends a running solver then, too.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from array import array
from contextlib import suppress
from typing import Any, BinaryIO

_LITERAL = "i"
_STATUS = {True: "sat", False: "unsat", None: "unsolved"}
_EXIT_STATUS = {10: "sat", 20: "unsat", 0: "unsolved"}
_BLOCK = 1 << 20


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until the input ends."""
    with suppress(ImportError):
        importlib.import_module("pysat.solvers")
    while line := jobs.readline():
        job = json.loads(line)
        data = jobs.read(job["bytes"])
        answer, model = _answer(job, data, jobs.fileno())
        answers.write(json.dumps({**answer, "bytes": len(model)}).encode() + b"\n" + model)
        answers.flush()


def _answer(job: dict[str, Any], data: bytes, job_pipe: int) -> tuple[dict[str, Any], bytes]:
    """Run one job in a new child process; return the answer and the model, or ``{"error": reason}`` and no model."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_and_exit(job, data, reading, writing)
    os.close(writing)
    received, problem = _receive(reading, job_pipe, job["wall_seconds"])
    os.close(reading)
    if problem:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if problem == _GONE:
        sys.exit(0)
    if problem:
        return {"error": problem}, b""
    if os.WIFSIGNALED(status):
        return {"error": _describe(os.WTERMSIG(status), usage.ru_utime + usage.ru_stime, job)}, b""
    line, _, model = received.partition(b"\n")
    if not line:
        return {"error": f"the solver ended with exit status {os.waitstatus_to_exitcode(status)} and no answer"}, b""
    return json.loads(line), model


_GONE = "the process that asked has ended"


def _receive(reading: int, job_pipe: int, seconds: float) -> tuple[bytes, str]:
    """Return the child's output, and the reason why the child must be killed; the reason is empty if it has ended."""
    parts: list[bytes] = []
    deadline = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([reading, job_pipe], [], [], max(0.0, deadline - time.monotonic()))
        if reading in ready:
            part = os.read(reading, _BLOCK)
            if not part:
                return b"".join(parts), ""
            parts.append(part)
        elif job_pipe in ready:
            return b"", _GONE
        else:
            return b"", f"the solver exceeded the guard of {seconds:g} s of wall time"


def _describe(number: int, spent: float, job: dict[str, Any]) -> str:
    if number in (signal.SIGXCPU, signal.SIGKILL) and spent >= 0.7 * job["cpu_seconds"]:
        return f"the solver exceeded the guard of {job['cpu_seconds']:g} s of processor time"
    return f"the solver was ended by {signal.Signals(number).name} after {spent:.1f} s of processor time"


def _limit(what: int, soft: int, hard: int) -> None:
    """Limit a resource of this child, at most to the hard limit that it inherited from a shell or batch system."""
    inherited = resource.getrlimit(what)[1]
    most = hard if inherited == resource.RLIM_INFINITY else min(hard, inherited)
    resource.setrlimit(what, (min(soft, most), most))


def _run_and_exit(job: dict[str, Any], data: bytes, reading: int, writing: int) -> None:
    """Run the solver in this child, write the answer, and end the child."""
    code = 1
    try:
        gc.disable()  # garbage collection among the clauses would take longer than creating them
        os.setpgid(0, 0)
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        seconds = int(job["cpu_seconds"]) + 1
        _limit(resource.RLIMIT_CPU, seconds, seconds + 5)
        _limit(resource.RLIMIT_AS, job["memory_bytes"], job["memory_bytes"])
        _limit(resource.RLIMIT_CORE, 0, 0)
        try:
            answer, model = (_run_executable if job["executable"] else _run_library)(job, data)
        except MemoryError:
            answer, model = {"error": f"the solver exceeded the guard of {job['memory_bytes'] >> 20} MiB of memory"}, []
        with os.fdopen(writing, "wb") as out:
            out.write(json.dumps(answer).encode() + b"\n" + array(_LITERAL, model).tobytes())
        code = 0
    finally:
        os._exit(code)


def _clauses(data: bytes, count: int) -> list[list[int]]:
    numbers = array(_LITERAL)
    numbers.frombytes(data)
    values = numbers.tolist()
    ends = list(itertools.accumulate(values[len(values) - count :], initial=0))
    return [values[first:last] for first, last in itertools.pairwise(ends)]


def _run_library(job: dict[str, Any], data: bytes) -> tuple[dict[str, Any], list[int]]:
    """Run a solver of python-sat."""
    clauses = _clauses(data, job["num_clauses"])
    solvers = importlib.import_module("pysat.solvers")
    began = time.process_time()
    if any(not clause for clause in clauses):  # python-sat ignores empty clauses
        return {"status": "unsat", "counts": {}, "cpu_seconds": time.process_time() - began}, []
    with solvers.Solver(name=job["solver"], bootstrap_with=clauses) as solver:
        for kind, value in job["budgets"].items():
            getattr(solver, f"{kind}_budget")(value)
        status = _STATUS[solver.solve_limited()]
        model = solver.get_model() if status == "sat" else []
        counts = solver.accum_stats() or {}
    return {"status": status, "counts": counts, "cpu_seconds": time.process_time() - began}, model


def _run_executable(job: dict[str, Any], data: bytes) -> tuple[dict[str, Any], list[int]]:
    """Run a solver that reads DIMACS and prints statistics and model, as Kissat does."""
    with tempfile.TemporaryFile() as formula, tempfile.TemporaryFile() as printed:
        formula.write(data)
        formula.flush()
        os.lseek(formula.fileno(), 0, os.SEEK_SET)
        child = os.fork()
        if child == 0:
            os.dup2(formula.fileno(), 0)
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            os.execv(job["executable"], [job["executable"], *job["options"]])
        _, status, usage = os.wait4(child, 0)
        printed.seek(0)
        text = printed.read().decode("ascii", "replace")
    if os.WIFSIGNALED(status):
        os.kill(
            os.getpid(), os.WTERMSIG(status)
        )  # ends this process by the same signal: both processes have the same guards
    code = os.waitstatus_to_exitcode(status)
    if code not in _EXIT_STATUS:
        return {"error": f"{job['executable']} ended with exit status {code}: {text.strip()[-200:]}"}, []
    counts, model = _parse(text)
    answer = {"status": _EXIT_STATUS[code], "counts": counts, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    return answer, model


def _parse(text: str) -> tuple[dict[str, int], list[int]]:
    """Return the counts (lines ``c name: 12 ...``) and the model (lines ``v 1 -2 0``)."""
    counts: dict[str, int] = {}
    model: list[int] = []
    for line in text.splitlines():
        if line.startswith("v "):
            model += [int(word) for word in line[2:].split() if word != "0"]
        elif line.startswith("c "):
            name, colon, rest = line[2:].partition(":")
            words = rest.split()
            if colon and words and words[0].isdigit() and name.strip().isidentifier():
                counts[name.strip()] = int(words[0])
    return counts, model


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
