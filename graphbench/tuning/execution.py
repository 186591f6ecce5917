"""Where trials run: persistent processes of this machine, each watched for its time, its memory and its life.

A trial runs in a process of its own group, so that it can be ended with everything it started. No common library does
all of it: loky and ``concurrent.futures`` lose every running trial with one worker, and Pebble shares locks between its
workers, which one that is killed may leave locked.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from graphbench.core.errors import TuningError
from graphbench.tuning.journal import utc_now
from graphbench.tuning.trials import Status
from graphbench.tuning.worker import Job, Outcome, TrainingMethod, Unusable

logger = logging.getLogger(__name__)

TRIES = 3  # of a trial whose worker dies
LOGS = "logs"
_POLL_SECONDS = 0.2
_GIB = 2**30
_THREADS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}


@dataclass(frozen=True)
class Limits:
    """What a trial may use: seconds of wall time, and GiB of memory of its process and all those it started.

    Memory is what is resident and not backed by files: memory-mapped datasets, which workers share, do not count.
    """

    seconds: float | None = None
    memory: float | None = None


class Execution(Protocol):
    """Runs trials."""

    @property
    def capacity(self) -> int:
        """How many trials can run at once now."""

    def start(self, job: Job) -> None:
        """Start a trial; no more than ``capacity`` at a time."""

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the trials that ended, at the latest after a time; every trial ends exactly once.

        Raises:
            TuningError: If no trial can run any more.
        """

    def close(self) -> None:
        """End all trials that run, and the workers."""


def pickled(method: TrainingMethod) -> bytes:
    """Return a training method for workers; functions of a script or notebook travel with their code.

    Raises:
        TuningError: If it cannot be pickled.
    """
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return bytes(cloudpickle.dumps(method))
    except Exception as error:
        raise TuningError(
            f"the training method {method!r:.100} cannot be sent to a worker: {error}; open files, connections and "
            "datasets inside it, not outside"
        ) from error


class WorkerProcess:
    """One process that runs one trial at a time.

    Args:
        method: From :func:`pickled`.
        log: File that takes what trials print.
        limits: Of each trial.
        idle_seconds: After which the process ends by itself; None to wait for ever.
    """

    def __init__(self, method: bytes, log: Path, limits: Limits, idle_seconds: float | None = None) -> None:
        self._limits = limits
        self._job: Job | None = None
        self._clock: float | None = None  # when the trial began; unknown until the process is ready for it
        self._began = ""
        self._ready = self._killed = False
        self.pipe, theirs = Pipe()
        log.parent.mkdir(parents=True, exist_ok=True)
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from graphbench.tuning.worker import serve; "
            f"serve({theirs.fileno()}, {os.getpid()}, {idle_seconds})"
        )
        with log.open("ab") as output, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **_THREADS, "PYTHONUNBUFFERED": "1"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent, and a trial can be killed with its children
            )
        with suppress(OSError):  # a process that is dead already is noticed by outcome()
            self.pipe.send_bytes(method)

    @property
    def is_idle(self) -> bool:
        """Whether another trial can be started."""
        return self._job is None and self._process.poll() is None

    def start(self, job: Job) -> None:
        """Start a trial."""
        self._job, self._began = job, utc_now()
        self._clock = time.monotonic() if self._ready else None
        with suppress(OSError):
            self.pipe.send(job)

    def outcome(self) -> Outcome | None:
        """Return how the trial ended; None while it runs.

        Raises:
            TuningError: If the process cannot load the training method.
        """
        try:
            while self.pipe.poll():
                message = self.pipe.recv()
                if isinstance(message, Unusable):
                    raise TuningError(f"a worker cannot load the training method: {message.reason}")
                if isinstance(message, Outcome):
                    self._job = None
                    if message.status is Status.OUT_OF_MEMORY:
                        self.kill()  # the next trial gets a process that has all of its memory
                    return message
                self._ready, self._clock = True, time.monotonic()
        except (EOFError, ConnectionError):
            return self._failed(Status.WORKER_DIED, "")
        if self._process.poll() is not None:
            return self._failed(Status.WORKER_DIED, "")
        return self._beyond_limits()

    def kill(self) -> None:
        """End the process and everything it started, at once."""
        if self._killed:
            return  # its number may belong to another process by now
        self._killed = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.pipe.close()

    def _beyond_limits(self) -> Outcome | None:
        if self._clock is None or self._job is None:
            return None
        limits = self._limits
        if limits.seconds is not None and time.monotonic() - self._clock > limits.seconds:
            return self._failed(Status.TIMEOUT, f"not done after {limits.seconds:g} s (trial_limit)")
        if limits.memory is not None and (used := memory_of(self._process.pid)) > limits.memory * _GIB:
            return self._failed(
                Status.OUT_OF_MEMORY, f"used {used / _GIB:.2f} GiB, {limits.memory:g} GiB are allowed (memory_limit)"
            )
        return None

    def _failed(self, status: Status, reason: str) -> Outcome:
        """End the process, and return why."""
        seconds = 0.0 if self._clock is None else time.monotonic() - self._clock
        self.kill()
        self._job = None
        code = self._process.returncode
        return Outcome(status, seconds, self._began or utc_now(), self._name, reason=reason or _death(code))

    @property
    def _name(self) -> str:
        return f"{os.uname().nodename}:{self._process.pid}"


def _death(code: int) -> str:
    if code >= 0:
        return f"the worker ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = ", perhaps by the system for lack of memory" if name == "SIGKILL" else ""
    return f"the worker was ended by {name}{hint}"


def memory_of(process_id: int) -> int:
    """Return the bytes that a process and its descendants hold, without pages that files back."""
    import psutil  # type: ignore[import-untyped]

    total = 0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        for part in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory = part.memory_info()
                total += memory.rss - getattr(memory, "shared", 0)
    return total


class LocalExecution:
    """Runs trials in processes of this machine.

    Args:
        method: From :func:`pickled`.
        workers: Processes; they are started when first needed.
        limits: Of each trial.
        output: Folder of the run; takes what trials print.
    """

    def __init__(self, method: bytes, workers: int, limits: Limits, output: Path) -> None:
        self.capacity = workers
        self._method, self._limits, self._logs = method, limits, output / LOGS
        self._workers: dict[int, WorkerProcess] = {}
        self._jobs: dict[int, tuple[Job, int]] = {}  # place -> trial and tries

    def start(self, job: Job) -> None:
        """Start a trial on a free worker."""
        place = next(place for place in range(self.capacity) if place not in self._jobs)
        self._start(place, job, 1)

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the trials that ended, at the latest after a time."""
        deadline = time.monotonic() + seconds
        while not (ended := self._ended()):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            pipes: Sequence[Connection] = [self._workers[place].pipe for place in self._jobs]
            wait(pipes, timeout=min(left, _POLL_SECONDS))
        return ended

    def close(self) -> None:
        """End all workers, whatever they do."""
        for worker in self._workers.values():
            worker.kill()
        self._workers.clear()
        self._jobs.clear()

    def _start(self, place: int, job: Job, tries: int) -> None:
        worker = self._workers.get(place)
        if worker is None or not worker.is_idle:
            if worker is not None:
                worker.kill()
            worker = WorkerProcess(self._method, self._logs / f"worker-{place}.log", self._limits)
            self._workers[place] = worker
        self._jobs[place] = (job, tries)
        worker.start(job)

    def _ended(self) -> list[tuple[Job, Outcome]]:
        ended = []
        for place, (job, tries) in list(self._jobs.items()):
            outcome = self._workers[place].outcome()
            if outcome is None:
                continue
            if outcome.status is Status.WORKER_DIED and tries < TRIES:
                logger.warning("trial %d: %s; it is started again", job.number, outcome.reason)
                self._start(place, job, tries + 1)
                continue
            del self._jobs[place]
            ended.append((job, replace(outcome, tries=tries)))
        return ended


def make_execution(method: TrainingMethod, workers: int, cluster: Any, limits: Limits, output: Path) -> Execution:
    """Return where trials run: the workers of a Dask cluster where one is given, else processes of this machine.

    Args:
        method: The training method.
        workers: Processes of this machine.
        cluster: Address of a Dask scheduler, or a ``dask.distributed.Client``; None for this machine.
        limits: Of each trial.
        output: Folder of the run; workers on other machines must see it under the same path.

    Raises:
        TuningError: If the method cannot be pickled, or the cluster cannot be reached.
        MissingDependency: If a cluster is given and Dask is absent.
    """
    if cluster is None:
        return LocalExecution(pickled(method), workers, limits, output)
    from graphbench.tuning.cluster import ClusterExecution

    return ClusterExecution(pickled(method), cluster, limits, output)
