"""Local worker processes, each monitored for its run time, its memory use and its exit.

Every worker leads one process group, so that it can be ended with all its descendants. Common libraries do not
suffice: loky and ``concurrent.futures`` lose every running job with one worker, and Pebble shares locks between its
workers, which a killed one may leave locked.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from hashlib import sha256
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from uuid import uuid4

from graphbench.core.files import open_no_link, refuse_foreign_links
from graphbench.core.foreign import interrupts_noted
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import (
    POLL_SECONDS,
    THREAD_LIMITS,
    Handle,
    Limits,
    MemoryLimitExceeded,
    Pool,
    TimeLimitExceeded,
    UnusableWorker,
    WorkerFailure,
    WorkerLost,
    is_worker_loss,
)
from graphbench.core.processes.worker import Ready, RemoteTraceback, Reply, Unusable

_GIB = 2**30
_NO_LIMITS = Limits()
_USABLE_SHARE = 0.8  # of the idle time of a process; later a process gets no job, as it may be about to end


class WorkerProcess:
    """One process that runs one job at a time.

    Args:
        function: The function that jobs call, pickled by :func:`~.pool.pickled`.
        limits: Of each job.
        log: File for the output of jobs; None for the output of this process.
        idle_seconds: Idle time after which the process exits; None for never.

    Attributes:
        key: Equal for processes that can replace each other.
    """

    key = ""

    def __init__(
        self,
        function: bytes,
        limits: Limits = _NO_LIMITS,
        log: Path | None = None,
        idle_seconds: float | None = None,
    ) -> None:
        self._limits, self._idle_seconds = limits, idle_seconds
        self._clock: float | None = None  # when the job began; unknown until the process is ready for it
        self._started = 0.0
        self._idle_since = time.monotonic()
        self._busy = self._ready = self._killed = False
        self.pipe, child_pipe = Pipe()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from graphbench.core.processes.worker import serve; "
            f"serve({child_pipe.fileno()}, {os.getpid()}, {idle_seconds})"
        )
        with child_pipe, _opened(log) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **THREAD_LIMITS, "PYTHONUNBUFFERED": "1"},
                pass_fds=[child_pipe.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent, and a job can be killed with its children
            )
        self.name = f"{os.uname().nodename}:{self._process.pid}"
        with suppress(OSError):  # reply() reports a process that is already dead
            self.pipe.send_bytes(function)

    @property
    def is_idle(self) -> bool:
        """Whether a job can be started."""
        if self._busy or self._killed or self._process.poll() is not None:
            return False
        usable = math.inf if self._idle_seconds is None else _USABLE_SHARE * self._idle_seconds
        return time.monotonic() - self._idle_since < usable

    def start(self, arguments: bytes) -> None:
        """Start a job, given the pickled tuple of its arguments."""
        self._busy, self._started = True, time.time()
        self._clock = time.monotonic() if self._ready else None
        with suppress(OSError):
            self.pipe.send_bytes(arguments)

    def reply(self) -> Reply | None:
        """Return the result of the job, or None while it runs; a job that exceeds its limits is ended."""
        has_ended = self._process.poll() is not None  # checked first, so that messages before the exit are read
        try:
            while self.pipe.poll():
                message = _message(self.pipe.recv_bytes())
                if isinstance(message, Unusable):
                    self.kill()
                    return Reply(error=UnusableWorker(message.reason))
                if isinstance(message, Reply):
                    return self._finished(message)
                if isinstance(message, Ready):
                    self._ready, self._clock = True, time.monotonic()
        except (EOFError, ConnectionError):
            return self._failed(WorkerLost)
        return self._failed(WorkerLost) if has_ended else self._check_limits()

    def kill(self) -> None:
        """Kill the process and all its descendants."""
        if self._killed:
            return  # its id may belong to another process by now
        self._killed = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.pipe.close()

    def _finished(self, reply: Reply) -> Reply:
        self._busy, self._idle_since = False, time.monotonic()
        if reply.error is not None and reply.trace:
            reply.error.__cause__ = RemoteTraceback(f"\n{reply.trace}")
        if reply.retires:
            self.kill()
        return reply

    def _check_limits(self) -> Reply | None:
        if self._clock is None or not self._busy:
            return None
        limits = self._limits
        if limits.seconds is not None and time.monotonic() - self._clock > limits.seconds:
            return self._failed(TimeLimitExceeded, f"not done after {limits.seconds:g} s")
        if limits.memory is not None and (used := memory_of(self._process.pid)) > limits.memory * _GIB:
            reason = f"used {used / _GIB:.2f} GiB, {limits.memory:g} GiB are allowed"
            return self._failed(MemoryLimitExceeded, reason)
        return None

    def _failed(self, kind: type[WorkerFailure], reason: str = "") -> Reply:
        """Kill the process, and return the failure; the default reason is its exit code or signal."""
        seconds = 0.0 if self._clock is None else time.monotonic() - self._clock
        self.kill()
        self._busy = False
        reason = reason or _exit_reason(self._process.returncode)
        return Reply(error=kind(reason, self.name, self._started, seconds))


def _message(message: bytes) -> Any:
    """Return a message of the worker; one that cannot be loaded here counts as an error of the job."""
    with interrupts_noted() as interrupts:
        try:
            return pickle.loads(message)
        except BaseException as error:
            if interrupts.received:
                raise
            return Reply(error=error)


def _opened(log: Path | None) -> AbstractContextManager[Any]:
    if log is None:
        return nullcontext()
    refuse_foreign_links(log.parent)
    log.parent.mkdir(parents=True, exist_ok=True)
    return open_no_link(log, "ab")


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"the worker ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = ", perhaps by the system for lack of memory" if name == "SIGKILL" else ""
    return f"the worker was ended by {name}{hint}"


def memory_of(process_id: int) -> int:
    """Return the resident memory of a process and its descendants in bytes, without file-backed pages."""
    import psutil  # type: ignore[import-untyped]

    total = 0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        for part in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory = part.memory_info()
                total += memory.rss - getattr(memory, "shared", 0)
    return total


@contextmanager
def block_sigint() -> Iterator[None]:
    """Delay Ctrl-C while processes are started, so that every started process is registered.

    Started processes inherit the signal mask of this thread. A thread of a library may still receive the signal, and
    Python then calls the handler in this thread; so the handler is replaced, too.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a signal that was blocked calls the handler above
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


class IdleProcesses:
    """Idle processes, kept for the next pool with the same function; they exit after their idle time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[str, list[WorkerProcess]] = defaultdict(list)  # by their keys

    def take(self, function: bytes, limits: Limits, logs: Path | None, idle_seconds: float) -> WorkerProcess:
        """Return an idle process that has loaded the function, or a new one."""
        key = _process_key(function, limits, logs)
        with self._lock:
            self._remove_ended()
            process = self._idle[key].pop() if key in self._idle else None
        if process is None:
            log = None if logs is None else logs / f"worker-{uuid4().hex[:8]}.log"
            process = WorkerProcess(function, limits, log, idle_seconds)
            process.key = key
        return process

    def give_back(self, process: WorkerProcess) -> None:
        """Keep a process from :meth:`take` if it is idle, else kill it."""
        with self._lock:
            self._idle[process.key].append(process)
            self._remove_ended()

    def _remove_ended(self) -> None:
        for key, processes in list(self._idle.items()):
            for process in processes:
                if not process.is_idle:
                    process.kill()
            self._idle[key] = [process for process in processes if process.is_idle]
            if not self._idle[key]:
                del self._idle[key]


def _process_key(function: bytes, limits: Limits, logs: Path | None) -> str:
    """Return a key that is equal for interchangeable processes; it covers the state inherited from this process."""
    inherited = (os.getpid(), sys.path, sorted(os.environ.items()))
    digest = sha256(function)
    digest.update(repr((limits, logs, inherited)).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


idle_processes = IdleProcesses()


class LocalPool(Pool):
    """Runs jobs in processes of this machine, which are started on demand.

    The processes are new interpreters (no fork, so no inherited threads or locks); they never import the user's script,
    so no ``if __name__ == "__main__"`` guard is needed. Each uses one thread. The death of one affects no other job.

    Args:
        function: From :func:`~.pool.pickled`.
        workers: Number of processes.
        limits: Of each job.
        logs: Folder for the output of jobs; None for the output of this process.
        idle_seconds: How long the processes wait for another pool with the same function after this one is closed;
            None to end them at once.
        retries: As in :class:`~.pool.Pool`.
    """

    def __init__(
        self,
        function: bytes,
        workers: int,
        *,
        limits: Limits = _NO_LIMITS,
        logs: Path | None = None,
        idle_seconds: float | None = None,
        retries: Callable[[BaseException], bool] = is_worker_loss,
    ) -> None:
        super().__init__(retries)
        self._function, self._count, self._limits, self._logs = function, workers, limits, logs
        self._idle_seconds = idle_seconds
        self._processes: dict[int, WorkerProcess] = {}  # by the number of the worker, 0 to workers - 1
        self._jobs: dict[int, Handle] = {}  # the running jobs, by the number of the worker
        self._checked = 0.0  # time of the last check of limits and exits

    @property
    def capacity(self) -> int:
        """The number of processes."""
        return self._count

    def check_health(self) -> None:
        """Do nothing: the processes are monitored while jobs are collected."""

    def close(self) -> None:
        """Kill the processes that run jobs, and, without ``idle_seconds``, the idle ones too."""
        self._queue.clear()
        self._jobs.clear()
        for process in self._processes.values():
            self._release(process)
        self._processes.clear()

    def _running_count(self) -> int:
        return len(self._jobs)

    def _has_room(self) -> bool:
        return len(self._jobs) < self._count

    def _start(self, handle: Handle) -> None:
        arguments = pickled(handle.arguments)
        place = next(place for place in range(self._count) if place not in self._jobs)
        with block_sigint():
            process = self._processes.get(place)
            if process is None or not process.is_idle:
                if process is not None:
                    self._release(process)
                self._processes[place] = process = self._new_process(place)
        self._jobs[place] = handle
        process.start(arguments)

    def _new_process(self, place: int) -> WorkerProcess:
        if self._idle_seconds is not None:
            return idle_processes.take(self._function, self._limits, self._logs, self._idle_seconds)
        log = None if self._logs is None else self._logs / f"worker-{place}.log"
        return WorkerProcess(self._function, self._limits, log)

    def _release(self, process: WorkerProcess) -> None:
        if self._idle_seconds is None:
            process.kill()
        else:
            idle_processes.give_back(process)

    def _collect(self, seconds: float) -> list[Handle]:
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            pipes = {self._processes[place].pipe: place for place in self._jobs}
            places = [pipes[pipe] for pipe in wait(list(pipes), timeout=min(left, POLL_SECONDS))]  # type: ignore[index]
            if time.monotonic() - self._checked >= POLL_SECONDS:
                places, self._checked = list(self._jobs), time.monotonic()
            ended = [handle for place in places if (handle := self._ended(place)) is not None]
            if ended or left == 0:
                return ended

    def _ended(self, place: int) -> Handle | None:
        """Return the job of the worker with a number if the job has ended."""
        reply = self._processes[place].reply()
        if reply is None:
            return None
        handle = self._jobs.pop(place)
        handle.value, handle.error = reply.value, reply.error
        return handle
