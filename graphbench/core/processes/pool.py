"""What a pool of workers is: jobs go in, finished jobs come out in the order of their completion.

Every worker of a pool loads one function, and calls it with the arguments of one job after the other. A job whose
worker dies is started again on another one, up to :data:`MAX_TRIES` times.
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

_LOG = logging.getLogger(__name__)

MAX_TRIES = 3  # of a job whose workers die
HEALTH_SECONDS = 10.0  # without a finished job, after which a pool checks its workers
POLL_SECONDS = 0.2  # between two checks of the limits and the life of a process
THREAD_LIMITS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}


@dataclass(frozen=True)
class Limits:
    """What a job may use: seconds of wall time, and GiB of memory of its process and all processes it started.

    Memory is what is resident and not backed by files: memory-mapped datasets, which workers share, do not count.
    """

    seconds: float | None = None
    memory: float | None = None


class WorkerFailure(Exception):
    """A job that did not end by itself; the message says why.

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
    """The job took longer than its limit, and was ended."""


class MemoryLimitExceeded(WorkerFailure):
    """The job used more memory than its limit, and was ended."""


class UnusableWorker(RuntimeError):
    """A worker cannot load the function of its pool, so no job can run."""


@dataclass(eq=False)
class Handle:
    """A job that was handed to a pool.

    Attributes:
        name: For messages, e.g. ``samples 0 to 19``.
        arguments: Of the pool's function.
        value: What the function returned.
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
        """How often the job was started."""
        return max(1, self.failure_count + (not isinstance(self.error, WorkerLost)))


def pickled(value: Any) -> bytes:
    """Return what workers load, such as the function of a pool; functions of a script or notebook travel as code.

    Raises:
        Exception: Whatever pickling the value raises.
    """
    import cloudpickle

    return bytes(cloudpickle.dumps(value))


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``: the function of pools whose jobs bring their own."""
    return function(*arguments)


def error_line(error: BaseException) -> str:
    """Return the first line of an error: its message, after its class where that says more."""
    text = str(error) if isinstance(error, WorkerFailure) else f"{type(error).__name__}: {error}"
    return text.splitlines()[0]


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worker_loss(error: BaseException) -> bool:
    """Return whether a job failed because its worker died."""
    return isinstance(error, WorkerLost)


class Pool(ABC):
    """Runs jobs on workers; a pool is used by one thread, and closed in the end.

    Attributes:
        shares_caches: Whether the workers run on this machine, and share its cache of compiled kernels.
        advice: What to do where workers keep dying.
    """

    shares_caches = True
    advice = "a worker may have run out of memory: use fewer workers"

    def __init__(self, retries: Callable[[BaseException], bool] = is_worker_loss) -> None:
        """Set up an empty pool.

        Args:
            retries: Whether a job that failed with an error is started again.
        """
        self._retries = retries
        self._queue: deque[Handle] = deque()
        self._failed: list[Handle] = []  # jobs that could not be started
        self._fatal: BaseException | None = None

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many jobs can run at once now."""

    def submit(self, *arguments: Any, name: str) -> Handle:
        """Hand over a job, which starts as soon as there is room for it.

        Args:
            arguments: Of the pool's function.
            name: Of the job, for messages.
        """
        handle = Handle(name, arguments)
        self._queue.append(handle)
        self._start_queued()
        return handle

    def completed(self, seconds: float = math.inf) -> list[Handle]:
        """Wait until jobs have ended, and return them; each job is returned once.

        Args:
            seconds: To wait at most.

        Returns:
            The jobs that ended; none where the time is up or no job is left.

        Raises:
            ClusterError: If the cluster went away or cannot be used.
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
        """Return why a job failed, in the terms of this module where the job itself is not to blame."""
        return error

    @abstractmethod
    def check_health(self) -> None:
        """Check the workers, none of which has finished a job for a while.

        Raises:
            ClusterError: If there is nothing left to wait for.
        """

    @abstractmethod
    def close(self) -> None:
        """Drop the jobs that have not ended, stop those that can be stopped, and release the workers."""

    @abstractmethod
    def _running_count(self) -> int:
        """Return how many jobs are started and not collected."""

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
        """Return the started jobs that ended, with value or error set, at the latest after a time."""

    def _start_queued(self) -> None:
        """Start jobs while there is room."""
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
        """Return the jobs that have ended for good; others are queued again, and what ends the pool is remembered."""
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
    """A pool whose jobs are futures of something that has workers of its own."""

    max_in_flight = 64

    def __init__(self, retries: Callable[[BaseException], bool] = is_worker_loss) -> None:
        super().__init__(retries)
        self._futures: dict[Handle, Any] = {}  # None once the result is read
        self._done: SimpleQueue[Handle] = SimpleQueue()  # waiting for all of thousands at once would take longer

    @abstractmethod
    def _future(self, handle: Handle) -> Any:
        """Hand a job to the workers; return its future."""

    def _running_count(self) -> int:
        return len(self._futures)

    def _has_room(self) -> bool:
        return len(self._futures) < self.max_in_flight

    def _start(self, handle: Handle) -> None:
        self._futures[handle] = future = self._future(handle)
        future.add_done_callback(partial(self._note_end, handle))

    def _note_end(self, handle: Handle, future: Any) -> None:
        """Read the result of a job that ended; called in another thread, as a cluster that hangs may never send it.

        No future outlives this function: a cluster does a finished job again whose worker dies while it is kept.
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
    """Runs jobs on any ``concurrent.futures`` executor, which stays open.

    Args:
        function: From :func:`pickled`.
        executor: The executor.
        retries: As in :class:`Pool`.
    """

    def __init__(
        self, function: bytes, executor: Executor, retries: Callable[[BaseException], bool] = is_worker_loss
    ) -> None:
        super().__init__(retries)
        self._function, self._executor = pickle.loads(function), executor

    @property
    def capacity(self) -> int:
        """How many jobs can be handed to the executor at once; it does not say how many it runs."""
        return self.max_in_flight

    def check_health(self) -> None:
        """Do nothing: an executor does not say how its workers are."""

    def close(self) -> None:
        """Cancel the jobs that have not begun; those running end in their own time."""
        self._queue.clear()
        for future in self._unfinished():
            future.cancel()
        self._futures.clear()

    def _future(self, handle: Handle) -> Any:
        return self._executor.submit(self._function, *handle.arguments)
