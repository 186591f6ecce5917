"""The interface of a pool of workers: jobs are submitted, and returned in the order of their completion.

Every worker of a pool loads one function, and calls it with the arguments of one job after the other. A job whose
worker dies is started up to :data:`MAX_TRIES` times.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from graphbench.core.errors import ClusterError, GraphBenchError
from graphbench.core.foreign import first_line, text_of

_LOG = logging.getLogger(__name__)

MAX_TRIES = 3  # of a job whose workers die
HEALTH_SECONDS = 10.0  # without a finished job, after which a pool checks its workers
POLL_SECONDS = 0.2  # between two checks of the limits and the life of a process
THREAD_LIMITS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}


@dataclass(frozen=True)
class Limits:
    """Limits of a job: seconds of wall time, and GiB of memory of its process and all its descendants.

    Only resident memory that is not backed by files counts; memory-mapped datasets, which workers share, do not.
    """

    seconds: float | None = None
    memory: float | None = None


class WorkerFailure(Exception):
    """A job that was ended before it finished; the message gives the reason.

    Attributes:
        worker: Host and process id of the worker, or its address on a cluster.
        started: When the job started, in seconds since 1970.
        seconds: How long it ran.
        failure_count: How many workers died over the job.
    """

    def __init__(
        self, reason: str, worker: str = "", started: float = 0.0, seconds: float = 0.0, failure_count: int = 1
    ) -> None:
        super().__init__(reason, worker, started, seconds, failure_count)
        self.worker, self.started, self.seconds, self.failure_count = worker, started, seconds, failure_count

    def __str__(self) -> str:
        """Return the reason."""
        return str(self.args[0])


class WorkerLost(WorkerFailure):
    """The worker died."""


class TimeLimitExceeded(WorkerFailure):
    """The job exceeded its time limit and was ended."""


class MemoryLimitExceeded(WorkerFailure):
    """The job exceeded its memory limit and was ended."""


class UnusableWorker(RuntimeError):
    """A worker cannot load the pool's function, so no job can run."""


@dataclass(eq=False)
class Handle:
    """A job that was submitted to a pool.

    Attributes:
        name: For messages, e.g. ``samples 0 to 19``.
        arguments: Of the pool's function.
        value: The value that the function returned.
        error: Why the job failed, or None.
        failure_count: How many workers died over it, or how often it failed with an error that is tried again.
    """

    name: str
    arguments: tuple[Any, ...]
    value: Any = None
    error: BaseException | None = None
    failure_count: int = 0

    @property
    def tries(self) -> int:
        """Number of times the job was started."""
        return max(1, self.failure_count + (not isinstance(self.error, WorkerLost)))


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``: the function of a pool whose jobs name their functions."""
    return function(*arguments)


def error_line(error: BaseException) -> str:
    """Return the first line of an error: its message, preceded by its class unless it is a :class:`WorkerFailure`."""
    return text_of(error).partition("\n")[0] if isinstance(error, WorkerFailure) else first_line(error)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worker_loss(error: BaseException) -> bool:
    """Return whether a job failed because its worker died."""
    return isinstance(error, WorkerLost)


class Pool(ABC):
    """Runs jobs on workers. A pool is used by one thread, which must close it.

    Attributes:
        shares_caches: Whether the workers run on this machine and share its cache of compiled kernels.
        advice: Remedy for workers that keep dying, for messages.
    """

    shares_caches = True
    advice = "a worker may have run out of memory: use fewer workers"

    def __init__(self, retries: Callable[[BaseException], bool] = is_worker_loss) -> None:
        """Create a pool without jobs.

        Args:
            retries: Returns whether a job that failed with an error is started again.
        """
        self._retries = retries
        self._queue: deque[Handle] = deque()
        self._failed: list[Handle] = []  # jobs that could not be started
        self._fatal: BaseException | None = None

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Number of jobs that can currently run at once."""

    def submit(self, *arguments: Any, name: str) -> Handle:
        """Submit a job, which starts as soon as a worker is free."""
        handle = Handle(name, arguments)
        self._queue.append(handle)
        self._start_queued()
        return handle

    def completed(self, seconds: float = math.inf) -> list[Handle]:
        """Wait until jobs have ended, and return them; each job is returned once.

        Returns:
            The jobs that ended; empty after ``seconds``, or if no job is left.

        Raises:
            ClusterError: If the cluster was lost or cannot be used.
            UnusableWorker: If the workers cannot load the pool's function.
        """
        deadline, checked = time.monotonic() + seconds, time.monotonic()
        while self._fatal is None and (self._queue or self._failed or self._running_count()):
            self._start_queued()
            failed, self._failed = self._failed, []
            patience = max(0.0, min(deadline, checked + HEALTH_SECONDS) - time.monotonic())
            if ended := self._settled(failed or self._collect(patience)):
                return ended
            if time.monotonic() >= deadline:
                return []
            if time.monotonic() - checked >= HEALTH_SECONDS:
                self.check_health()
                checked = time.monotonic()
        if self._fatal is not None:
            raise self._fatal
        return []

    def classify_error(self, error: BaseException) -> BaseException:
        """Return the cause of a failure: a class of this module if a worker or the cluster failed, else the error."""
        return error

    @abstractmethod
    def check_health(self) -> None:
        """Check the workers after :data:`HEALTH_SECONDS` without a finished job.

        Raises:
            ClusterError: If the jobs can no longer finish.
        """

    @abstractmethod
    def close(self) -> None:
        """Discard unfinished jobs, stop running ones where possible, and release the workers."""

    @abstractmethod
    def _running_count(self) -> int:
        """Return the number of jobs that are started and not collected."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Return whether another job can be started."""

    @abstractmethod
    def _start(self, handle: Handle) -> None:
        """Start a job.

        Raises:
            RuntimeError: If the workers take no jobs.
        """

    @abstractmethod
    def _collect(self, seconds: float) -> list[Handle]:
        """Return the started jobs that ended, with value or error set; wait at most ``seconds`` for the first one."""

    def _start_queued(self) -> None:
        """Start queued jobs while workers are free."""
        while self._queue and not self._failed and self._has_room():
            handle = self._queue.popleft()
            try:
                self._start(handle)
            except RuntimeError as error:  # the executor is broken or closed
                if isinstance(error, GraphBenchError):
                    raise
                handle.error = error
                self._failed.append(handle)

    def _settled(self, handles: Iterable[Handle]) -> list[Handle]:
        """Return the jobs that have ended for good; queue others again, and remember an error that ends the pool."""
        ended: list[Handle] = []
        lost: list[Handle] = []
        reason = ""
        for handle in handles:
            if handle.error is not None:
                handle.error = self.classify_error(handle.error)
            if isinstance(handle.error, ClusterError | UnusableWorker):
                self._fatal = handle.error
            elif handle.error is not None and self._may_start_again(handle, handle.error):
                lost.append(handle)
                reason, handle.error = error_line(handle.error), None
            else:
                ended.append(handle)
        if len(lost) == 1:
            _LOG.warning("%s: %s; it is started again", lost[0].name, reason)
        elif lost:
            _LOG.warning("%d jobs, the last one %s: %s; they are started again", len(lost), lost[-1].name, reason)
        self._queue.extendleft(reversed(lost))
        return ended

    def _may_start_again(self, handle: Handle, error: BaseException) -> bool:
        """Count the failure of a job; return whether another try may help."""
        if not self._retries(error):
            return False
        handle.failure_count += getattr(error, "failure_count", 1)
        return handle.failure_count < MAX_TRIES


class FuturePool(Pool):
    """A pool whose jobs are futures of an executor or a cluster."""

    max_in_flight = 64

    def __init__(self, retries: Callable[[BaseException], bool] = is_worker_loss) -> None:
        super().__init__(retries)
        self._futures: dict[Handle, Any] = {}  # None once the result is read
        self._done: SimpleQueue[Handle] = SimpleQueue()  # faster than waiting for thousands of futures at once

    @abstractmethod
    def _future(self, handle: Handle) -> Any:
        """Submit a job to the executor or cluster; return its future."""

    def _running_count(self) -> int:
        return len(self._futures)

    def _has_room(self) -> bool:
        return len(self._futures) < self.max_in_flight

    def _start(self, handle: Handle) -> None:
        self._futures[handle] = future = self._future(handle)
        future.add_done_callback(partial(self._note_end, handle))

    def _note_end(self, handle: Handle, future: Any) -> None:
        """Read the result of a job that ended; called in another thread, as a cluster that hangs may never send it.

        No future outlives this function: while a future is kept, a cluster repeats a finished job whose worker dies.
        """
        self._read(handle, future)
        if handle in self._futures:  # the pool is not closed
            self._futures[handle] = None
        self._done.put(handle)

    def _collect(self, seconds: float) -> list[Handle]:
        try:
            ended = [self._done.get(timeout=seconds)]
        except Empty:
            return []
        ended += [self._done.get_nowait() for _ in range(self._done.qsize())]
        return [handle for handle in ended if self._futures.pop(handle, self) is not self]

    def _unfinished(self) -> list[Any]:
        """Return the futures of the jobs that have not ended."""
        return [future for future in self._futures.values() if future is not None]

    def _read(self, handle: Handle, future: Any) -> None:
        """Set the value or the error of a job that ended."""
        try:
            handle.value = future.result()
        except BaseException as error:
            handle.error = error


class ExecutorPool(FuturePool):
    """Runs jobs on any ``concurrent.futures`` executor, which stays open."""

    def __init__(
        self, function: bytes, executor: Executor, retries: Callable[[BaseException], bool] = is_worker_loss
    ) -> None:
        super().__init__(retries)
        self._function, self._executor = pickle.loads(function), executor

    @property
    def capacity(self) -> int:
        """Number of jobs that are submitted to the executor at once; it does not reveal how many it runs."""
        return self.max_in_flight

    def check_health(self) -> None:
        """Do nothing: an executor does not report the state of its workers."""

    def close(self) -> None:
        """Cancel the jobs that have not started; running ones are not interrupted."""
        self._queue.clear()
        for future in self._unfinished():
            future.cancel()
        self._futures.clear()

    def _future(self, handle: Handle) -> Any:
        return self._executor.submit(self._function, *handle.arguments)
