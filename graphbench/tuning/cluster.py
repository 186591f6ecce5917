"""Trials on a Dask cluster: every thread of its workers runs one trial at a time, in a process that it watches.

What crosses the network is small: the pickled training method, one job, one outcome. Checkpoints lie in the run's
output folder, which all machines must see under the same path.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from graphbench.core.errors import ClusterError, GraphBenchError
from graphbench.data.cluster import PACKAGE, check_workers, connected, run_checked, shared_needs, shipped
from graphbench.tuning.execution import LOGS, TRIES, Limits, WorkerProcess
from graphbench.tuning.journal import utc_now
from graphbench.tuning.trials import Status
from graphbench.tuning.worker import Job, Outcome

logger = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0  # that a process on a cluster's worker outlives its last trial
_POLL_SECONDS = 0.2
_COUNT_SECONDS = 5.0  # between two looks at the size of the cluster
_LOST = "finished trials are kept: run the same command again when the cluster is back"

_idle: defaultdict[str, list[WorkerProcess]] = defaultdict(list)  # on a cluster's worker: processes by training method
_idle_lock = threading.Lock()


class ClusterExecution:
    """Runs trials on a Dask cluster.

    Args:
        method: From :func:`~.execution.pickled`.
        cluster: Address of the scheduler, its scheduler file, or a client, which is left open.
        limits: Of each trial.
        output: Folder of the run, which all workers share with this machine.

    Raises:
        ClusterError: If the scheduler cannot be reached, or a worker lacks the folder or the packages of this machine.
        MissingDependency: If Dask is absent.
    """

    def __init__(self, method: bytes, cluster: Any, limits: Limits, output: Path) -> None:
        self._method, self._limits, self._output = method, limits, output.absolute()
        with ExitStack() as opening:
            self._client: Any = opening.enter_context(connected(cluster))  # it has no types
            self._needs = opening.enter_context(shared_needs(output, PACKAGE))
            check_workers(self._client, self._needs)
            self._opened = opening.pop_all()
        self._jobs: dict[str, tuple[Job, Any]] = {}
        self._starts: Counter[str] = Counter()  # of trials that run, by key: above 1 where a worker was lost
        self._topic = f"graphbench-trials-{uuid4().hex[:8]}"
        self._waits = False  # for the first worker, which was told
        self._client.subscribe_topic(self._topic, self._note_start)
        self._done: SimpleQueue[str] = SimpleQueue()
        self._capacity, self._counted = 1, -_COUNT_SECONDS

    @property
    def capacity(self) -> int:
        """Threads of the cluster's workers now; at least 1, so that a trial waits for the first one."""
        if time.monotonic() - self._counted > _COUNT_SECONDS and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._look(self._client.nthreads())
            self._counted = time.monotonic()
        return self._capacity

    def _look(self, threads: Mapping[str, int]) -> None:
        """Count the threads of the cluster's workers, and tell once where there are none."""
        self._capacity = max(1, sum(threads.values()))
        if not threads and not self._waits:
            address = self._client.scheduler.address
            logger.warning("the Dask cluster at %s has no workers; waiting for some", address)
        self._waits = not threads

    def _note_start(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Take the news of a worker that it starts a trial; called in another thread."""
        key, worker = event[1]["key"], event[1]["worker"]
        if key not in self._jobs:
            return
        self._starts[key] += 1
        if self._starts[key] > 1:
            number = self._jobs[key][0].number
            logger.warning("trial %d: its Dask worker was lost; it is started again on %s", number, worker)

    def start(self, job: Job) -> None:
        """Submit a trial; Dask gives it to another worker where one is lost."""
        key = f"trial-{job.number}-{uuid4().hex[:8]}"
        arguments = (self._method, job, self._limits, self._output, self._topic)
        call = shipped(run_checked, self._needs, run_on_cluster, *arguments)
        self._jobs[key] = (job, None)  # its start may be told before the next line ends
        future = self._client.submit(pickle.loads, call, key=key, pure=False)
        self._jobs[key] = (job, future)
        future.add_done_callback(lambda done: self._done.put(done.key))

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the trials that ended, at the latest after a time.

        Raises:
            ClusterError: If the scheduler went away, or the workers cannot run trials.
        """
        ended: list[tuple[Job, Outcome]] = []
        with suppress(Empty):
            key = self._done.get(timeout=seconds)
            while True:
                job, future = self._jobs[key]
                try:
                    outcome = _outcome(future)
                    lost = max(0, self._starts.pop(key, 1) - 1) if outcome.status is not Status.WORKER_DIED else 0
                    ended.append((job, replace(outcome, tries=outcome.tries + lost)))
                except ClusterError:
                    if not ended:
                        raise
                    self._done.put(key)  # first hand out what did end
                    return ended
                del self._jobs[key]
                key = self._done.get_nowait()
        return ended

    def close(self) -> None:
        """Cancel all trials, which ends their processes; close the client where it is ours."""
        with suppress(Exception):  # of a scheduler that is gone
            if self._client.status == "running":
                self._client.unsubscribe_topic(self._topic)
                if self._jobs:
                    self._client.cancel([future for _, future in self._jobs.values()], force=True)
        self._jobs.clear()
        self._opened.close()


def run_on_cluster(method: bytes, job: Job, limits: Limits, output: Path, topic: str) -> Outcome:
    """Run one trial in a process beside a cluster's worker; called on that worker, which tells its start to a topic.

    The process ends with the worker, and when nobody wants the result any more: because it was cancelled, or its
    client or the scheduler died.

    Raises:
        CancelledError: If nobody wants the result.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.log_event(topic, {"key": str(key), "worker": worker.address})
    kind = sha256(method).hexdigest() + repr(limits)
    tries, outcome = 0, None
    while outcome is None or (outcome.status is Status.WORKER_DIED and tries < TRIES):
        process = _take_process(kind, method, limits, output / LOGS / f"worker-{uuid4().hex[:8]}.log")
        outcome = _watched(process, job, lambda: _is_wanted(worker, key))
        if process.is_idle:
            with _idle_lock:
                _idle[kind].append(process)
        tries += 1
    return replace(outcome, tries=tries)


def _watched(process: WorkerProcess, job: Job, is_wanted: Callable[[], bool]) -> Outcome:
    process.start(job)
    try:
        while (outcome := process.outcome()) is None:
            if not is_wanted():
                raise CancelledError(f"trial {job.number} was cancelled")
            process.pipe.poll(_POLL_SECONDS)
    except BaseException:
        process.kill()
        raise
    return outcome


def _is_wanted(worker: Any, key: Any) -> bool:
    """Return whether the task is still to be done; Dask does not interrupt one that runs."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled" and worker.status.name in ("running", "paused")


def _take_process(kind: str, method: bytes, limits: Limits, log: Path) -> WorkerProcess:
    """Return an idle process that has loaded the method, or a new one."""
    with _idle_lock:
        while _idle[kind]:
            process = _idle[kind].pop()
            if process.is_idle:
                return process
            process.kill()
    return WorkerProcess(method, log, limits, _IDLE_SECONDS)


def _outcome(future: Any) -> Outcome:
    from distributed import KilledWorker

    try:
        found: Outcome = future.result()
        return found
    except KilledWorker as error:
        return Outcome(
            Status.WORKER_DIED,
            seconds=0.0,
            started=utc_now(),
            worker=str(error.last_worker.address),
            reason="the cluster lost every worker that ran it",
            tries=error.allowed_failures + 1,
        )
    except CancelledError as error:
        raise ClusterError(f"the Dask scheduler went away; {_LOST}") from error
    except GraphBenchError:
        raise
    except Exception as error:
        raise ClusterError(
            f"the cluster's workers cannot run trials ({type(error).__name__}: {error}); install the same packages on "
            "all machines"
        ) from error
