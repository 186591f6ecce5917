"""Trials run on a pool of processes of this machine, or on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from graphbench.core.errors import GraphBenchError, TuningError
from graphbench.core.foreign import class_name, described, text_of
from graphbench.core.plugins import plugin_targets
from graphbench.core.processes.dask_pool import DaskPool
from graphbench.core.processes.local import LocalPool
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import (
    Handle,
    Limits,
    MemoryLimitExceeded,
    Pool,
    TimeLimitExceeded,
    UnusableWorker,
    WorkerFailure,
    WorkerLost,
    error_line,
)
from graphbench.data.build.workers import EVERYTHING, version_measure
from graphbench.tuning.trial import Status
from graphbench.tuning.worker import Job, Outcome, TrainingMethod, run_job

LOGS = "logs"
_STATUS = {
    WorkerLost: Status.WORKER_DIED,
    TimeLimitExceeded: Status.TIMEOUT,
    MemoryLimitExceeded: Status.OUT_OF_MEMORY,
}
_SETTINGS = {Status.TIMEOUT: " (trial_limit)", Status.OUT_OF_MEMORY: " (memory_limit)"}


class Execution:
    """Runs trials on a pool of workers.

    Args:
        pool: Its function takes a :class:`~.worker.Job` and returns an :class:`~.worker.Outcome`.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def capacity(self) -> int:
        """How many trials can run at once now."""
        return self._pool.capacity

    def start(self, job: Job) -> None:
        """Start a trial, no more than ``capacity`` at a time; it is started again if its worker dies."""
        self._pool.submit(job, name=f"trial {job.number}")

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the trials that ended, after waiting at most ``seconds`` for one; each trial is returned exactly once.

        Raises:
            ClusterError: If the scheduler went away, or the workers cannot run trials.
            TuningError: If the workers cannot load the training method.
        """
        try:
            return [(handle.arguments[0], _outcome(handle)) for handle in self._pool.completed(seconds)]
        except UnusableWorker as error:
            raise TuningError(f"a worker cannot load the training method: {error}") from error

    def close(self) -> None:
        """End all trials, and the workers."""
        self._pool.close()


def _outcome(handle: Handle) -> Outcome:
    """Return how a trial ended.

    Raises:
        TuningError: If the worker failed for a reason other than the trial.
    """
    error = handle.error
    if error is None:
        outcome: Outcome = handle.value
        return replace(outcome, tries=handle.tries)
    if isinstance(error, WorkerFailure):
        status = _STATUS[type(error)]
        return Outcome(
            status,
            seconds=error.seconds,
            started=datetime.fromtimestamp(error.started, UTC).isoformat(timespec="seconds"),
            worker=error.worker,
            reason=f"{error}{_SETTINGS.get(status, '')}",
            tries=handle.tries,
        )
    if isinstance(error, GraphBenchError):
        raise error
    raise TuningError(
        f"the workers cannot run trials ({error_line(error)}); install the same packages on all machines"
    ) from error


def trial_function(method: TrainingMethod) -> bytes:
    """Return the function of a pool that runs a training method; functions of a script or notebook travel as code.

    Raises:
        TuningError: If the method cannot be pickled.
    """
    try:
        return pickled(partial(run_job, method, plugins=tuple(plugin_targets())))
    except Exception as error:
        name = text_of(getattr(method, "__qualname__", class_name(method)))
        raise TuningError(
            f"the training method {name} cannot be sent to a worker: {described(error)}; open files, connections and "
            "datasets inside it, not outside"
        ) from error


def make_execution(method: TrainingMethod, workers: int, cluster: Any, limits: Limits, output: Path) -> Execution:
    """Return the execution of trials: on a Dask cluster if one is given, else on processes of this machine.

    Args:
        method: The training method.
        workers: Processes of this machine.
        cluster: Address of a Dask scheduler, or a ``dask.distributed.Client``; None for this machine.
        limits: Time and memory limits of each trial.
        output: Folder of the run, which receives the output of trials; workers on other machines must see the folder
            under the same path.

    Raises:
        TuningError: If the method cannot be pickled.
        ClusterError: If the scheduler cannot be reached, or a worker does not have the folder or the same packages.
        MissingDependency: If a cluster is given and Dask is absent.
    """
    function = trial_function(method)
    if cluster is None:
        return Execution(LocalPool(function, workers, limits=limits, logs=output / LOGS))
    pool = DaskPool(function, cluster, output, version_measure(EVERYTHING), limits=limits, logs=output / LOGS)
    pool.open()
    return Execution(pool)
