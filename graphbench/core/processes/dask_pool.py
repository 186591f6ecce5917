"""Jobs on a Dask cluster: in its workers, or in separate processes on their machines where jobs have limits.

Little crosses the network: the pickled function of the pool, the arguments of one job, its value. Files are in a folder
that all machines see under the same path.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from graphbench.core.errors import ClusterError
from graphbench.core.processes.cluster import (
    Requirements,
    Versions,
    ask,
    check_workers,
    connected,
    run_checked,
    shared_folder,
    shipped,
)
from graphbench.core.processes.local import idle_processes
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import (
    POLL_SECONDS,
    FuturePool,
    Handle,
    Limits,
    WorkerLost,
    error_line,
    is_worker_loss,
)

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_IDLE_SECONDS = 60.0  # idle time of a separate process after its last job
_COUNT_SECONDS = 5.0  # between two counts of the workers
_KEPT = "finished work is kept: run the same command again, with this cluster, another one or none"


class DaskPool(FuturePool):
    """Runs jobs on the workers of a running cluster, which share a folder with this machine.

    The connection is made by :meth:`open`, or when the first job is started. Dask itself repeats a job whose worker
    died, as often as the cluster's ``allowed-failures`` allows.

    Args:
        function: From :func:`~.pool.pickled`.
        cluster: Address of the scheduler, its scheduler file, or a client, which is left open.
        folder: Folder that the workers must share with this machine.
        measure: Returns the versions that workers must have, see :class:`~.cluster.Requirements`.
        limits: Of each job, which then runs in a separate process on the worker's machine; None to run it in the
            worker.
        logs: With limits: folder for the output of jobs.
        retries: As in :class:`~.pool.Pool`.
    """

    shares_caches = False
    max_in_flight = 2048  # enough for a thousand cores, and for an adaptive cluster to grow
    advice = "a worker may have run out of memory: give each more, see its log"

    def __init__(
        self,
        function: bytes,
        cluster: str | Client,
        folder: Path,
        measure: Callable[[], Versions],
        *,
        limits: Limits | None = None,
        logs: Path | None = None,
        retries: Callable[[BaseException], bool] = is_worker_loss,
    ) -> None:
        super().__init__(retries)
        self._function, self._cluster, self._limits = function, cluster, limits
        self._folder, self._measure = folder, measure
        self._logs = None if logs is None else logs.absolute()  # workers have another working folder
        self._opened = ExitStack()
        self._client: Any = None  # it has no types
        self._requirements: Requirements | None = None
        self._topic = f"graphbench-jobs-{uuid4().hex[:8]}"
        self._keys: dict[str, Handle] = {}  # of Dask's tasks
        self._starts: Counter[str] = Counter()  # of tasks by key: above 1 after the loss of a worker
        self._capacity, self._counted = 1, 0.0
        self._warned_empty = self._warned_threads = False

    def open(self) -> None:
        """Connect to the cluster, and check its workers.

        Raises:
            ClusterError: If the scheduler cannot be reached, or a worker lacks the folder or has other versions.
            MissingDependency: If Dask is absent.
            StoreError: If the folder cannot be written.
        """
        if self._requirements is not None:
            return
        with ExitStack() as opening:
            self._client = opening.enter_context(connected(self._cluster))
            requirements = opening.enter_context(shared_folder(self._folder, self._measure))
            check_workers(self._client, requirements)
            self._client.subscribe_topic(self._topic, self._note_start)
            self._opened, self._requirements = opening.pop_all(), requirements
        self.check_health()

    @property
    def capacity(self) -> int:
        """Current number of threads of the cluster's workers; at least 1, so that a job waits for the first one."""
        self.open()
        if time.monotonic() - self._counted > _COUNT_SECONDS:
            with suppress(ClusterError):  # completed() raises it
                self.check_health()
        return self._capacity

    def check_health(self) -> None:
        """Count the workers; warn if there are none, or if one runs several jobs in one process.

        Raises:
            ClusterError: If the scheduler is lost.
        """
        client = self._client
        threads = ask(client, client.scheduler.ncores) if client.status == "running" else None
        self._counted = time.monotonic()
        if not isinstance(threads, Mapping):
            raise self._scheduler_lost()
        self._capacity = max(1, sum(threads.values()))
        if not threads and not self._warned_empty:
            _LOG.warning("the Dask cluster at %s has no workers; waiting for some", client.scheduler.address)
        self._warned_empty = not threads
        several = next((worker for worker, number in threads.items() if number > 1), None)
        if several is not None and self._limits is None and not self._warned_threads:
            _LOG.warning("the Dask worker %s has %d threads: one per worker is faster", several, threads[several])
            self._warned_threads = True

    def classify_error(self, error: BaseException) -> BaseException:
        """Return the cause of a failure: an error of the cluster, the loss of a worker, or the error of the job."""
        from distributed import KilledWorker

        if self._client.status != "running":
            return self._scheduler_lost()
        if isinstance(error, KilledWorker):
            count, address = error.allowed_failures + 1, str(error.last_worker.address)
            reason = f"the Dask cluster lost {count} of its workers that ran it, the last one at {address}"
            return WorkerLost(reason, address, time.time(), failure_count=count)
        if isinstance(error, CancelledError):
            return WorkerLost("the Dask cluster cancelled it", started=time.time())
        if isinstance(error, ImportError | AttributeError):
            return ClusterError(
                f"a Dask worker has no graphbench, or another version of it ({error_line(error)}); install the same "
                f"everywhere; {_KEPT}"
            )
        return error

    def close(self) -> None:
        """Cancel all jobs, which kills the separate processes of jobs; close the connection if this pool opened it."""
        self._queue.clear()
        with suppress(Exception):  # the scheduler is lost
            if self._requirements is not None and self._client.status == "running":
                self._client.unsubscribe_topic(self._topic)
                if unfinished := self._unfinished():
                    self._client.cancel(unfinished, force=True)
        self._futures.clear()
        self._keys.clear()
        self._opened.close()
        self._requirements = None

    def _future(self, handle: Handle) -> Any:
        self.open()
        key = f"{handle.name.replace(' ', '-')}-{uuid4().hex}"
        self._keys[key] = handle  # a worker may report the start before the next lines end
        content = pickled(handle.arguments)
        call = (_run, self._topic, self._function, content, self._limits, self._logs)
        job = shipped(run_checked, self._requirements, *call)
        return self._client.submit(pickle.loads, job, key=key, pure=False)  # equal jobs are still different jobs

    def _read(self, handle: Handle, future: Any) -> None:
        super()._read(handle, future)
        self._keys.pop(future.key, None)
        starts = self._starts.pop(future.key, 1)
        if handle.error is None:
            handle.failure_count += max(0, starts - 1)

    def _note_start(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Handle a worker's report that it starts a job; called in another thread."""
        key, worker = event[1]["key"], event[1]["worker"]
        handle = self._keys.get(key)
        if handle is None:
            return
        self._starts[key] += 1
        if self._starts[key] > 1:
            _LOG.warning("%s: its Dask worker was lost; it is started again on %s", handle.name, worker)

    def _scheduler_lost(self) -> ClusterError:
        scheduler = self._client.scheduler
        address = scheduler.address if scheduler is not None else self._cluster
        return ClusterError(f"the Dask scheduler at {address} went away; {_KEPT}")


def _run(topic: str, function: bytes, arguments: bytes, limits: Limits | None, logs: Path | None) -> Any:
    """Run a job on a cluster's worker, and report its start to a topic."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.log_event(topic, {"key": str(key), "worker": worker.address})
    if limits is None:
        return pickle.loads(function)(*pickle.loads(arguments))
    return _run_separately(worker, key, function, arguments, limits, logs)


def _run_separately(worker: Any, key: Any, function: bytes, arguments: bytes, limits: Limits, logs: Path | None) -> Any:
    """Run a job in a separate process on the machine of a cluster's worker.

    The process is killed with the worker, or when the result is no longer needed: the job was cancelled, or its client
    or the scheduler died.

    Raises:
        CancelledError: If the result is no longer needed.
    """
    process = idle_processes.take(function, limits, logs, _IDLE_SECONDS)
    try:
        process.start(arguments)
        while (reply := process.reply()) is None:
            if not _is_needed(worker, key):
                raise CancelledError(f"{key} was cancelled")
            process.pipe.poll(POLL_SECONDS)
    except BaseException:
        process.kill()
        raise
    finally:
        idle_processes.give_back(process)
    if reply.error is not None:
        raise reply.error
    return reply.value


def _is_needed(worker: Any, key: Any) -> bool:
    """Return whether the result of a task is still needed; Dask does not interrupt a task that runs."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled" and worker.status.name in ("running", "paused")
