"""Run functions in forked processes, a few at a time: a fork has all imports of its parent at no cost.

Each process is bound to one core. What it starts counts the cores it may use, and so starts no workers of its own,
which would import everything again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

CAN_FORK = sys.platform == "linux"  # elsewhere the libraries that are loaded do not survive it


@dataclass
class Job:
    """A function of no arguments that writes files, and how long it may take.

    Attributes:
        name: What messages call it.
        function: Called in a process of its own; what it returns is lost.
        seconds: It is stopped after so long.
        error: The traceback of the failure, "" after success.
        cpu: CPU seconds that it and its children took.
    """

    name: str
    function: Callable[[], None]
    seconds: float = 600.0
    error: str = ""
    cpu: float = field(default=0.0)


@dataclass
class _Running:
    job: Job
    process: BaseProcess
    reader: Connection
    until: float
    core: int


def run_jobs(jobs: Sequence[Job], workers: int | None = None) -> None:
    """Run all jobs, each in a fork of this process, and set their ``error`` and ``cpu``; start them in their order.

    Args:
        jobs: What to run.
        workers: Processes at a time; as many as there are cores when None.
    """
    cores = sorted(os.sched_getaffinity(0))[:workers]
    waiting, running = list(reversed(jobs)), list[_Running]()
    while waiting or running:
        for core in set(cores) - {one.core for one in running}:
            if waiting:
                running.append(_start(waiting.pop(), core))
        wait([one.reader for one in running], timeout=0.5)
        for one in list(running):
            if one.reader.poll() or not one.process.is_alive() or time.monotonic() > one.until:
                _finish(one)
                running.remove(one)


def _start(job: Job, core: int) -> _Running:
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(job, writer, core), daemon=False)
    sys.stdout.flush()
    sys.stderr.flush()
    process.start()
    writer.close()
    return _Running(job, process, reader, time.monotonic() + job.seconds, core)


def _run(job: Job, writer: Connection, core: int) -> None:
    """Call the function of a job and report how it ended; the process then ends without handlers of its parent."""
    error = ""
    os.sched_setaffinity(0, {core})
    try:
        job.function()
    except BaseException:
        error = traceback.format_exc()
    times = os.times()
    writer.send((error, times.user + times.system + times.children_user + times.children_system))
    writer.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _finish(one: _Running) -> None:
    try:
        one.job.error, one.job.cpu = one.reader.recv() if one.reader.poll() else _silent(one)
    except EOFError:
        one.job.error, one.job.cpu = _silent(one)
    if one.process.is_alive():
        one.process.join(1.0)
    if one.process.is_alive():
        one.process.kill()
    one.process.join()
    one.reader.close()


def _silent(one: _Running) -> tuple[str, float]:
    if time.monotonic() > one.until and one.process.is_alive():
        return f"{one.job.name} takes longer than {one.job.seconds:g} s", one.job.seconds
    one.process.join(5.0)  # the pipe is closed a moment before the process has ended
    return f"the process of {one.job.name} ended with exit code {one.process.exitcode}", 0.0
