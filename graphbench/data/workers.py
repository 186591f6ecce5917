"""Where shards run: a local pool of processes or any executor, and what happens when a worker dies."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from graphbench.core.errors import GenerationError, GraphBenchError, StoreError

_LOG = logging.getLogger(__name__)
_TRIES = 3  # of a job whose worker dies
_APPEAR_SECONDS = 90.0  # longer than NFS remembers that a file was missing
_LOOK_AFTER = 10.0  # seconds without a finished job, after which a pool is asked whether it still works

Job = tuple[int, int]
_R = TypeVar("_R")


class Pool:
    """Where jobs run, and what is to be known about the place; this one runs them on an executor of the user.

    Attributes:
        here: Whether the workers are on this machine, and share its cache of compiled kernels.
        in_flight: Jobs handed out at a time.
        remedy: What to do where workers keep dying.
    """

    here = True
    in_flight = 64
    remedy = "a worker may have run out of memory: use fewer workers"

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor

    def executor(self) -> Executor:
        """Return a working executor."""
        assert self._executor is not None
        return self._executor

    def losses(self, error: BaseException) -> int:
        """Return how many workers a job has cost that failed with an error that is not its own."""
        return 1

    def judged(self, error: BaseException) -> BaseException:
        """Return the failure of a job, or the :class:`GraphBenchError` behind it after which no other try helps."""
        return error

    def look(self) -> None:
        """Look after the workers, none of which has finished anything for a while.

        Raises:
            GraphBenchError: If there is nothing left to wait for.
        """

    def cancel(self, futures: Collection[Future[Any]]) -> None:
        """Take back jobs that were handed out; those running end in their own time."""
        for future in futures:
            future.cancel()

    def interrupt(self) -> None:
        """Stop the workers, where they are this process's own."""

    def close(self) -> None:
        """Give back what the pool opened."""


class LocalPool(Pool):
    """Processes of this machine, started when first needed; a pool that lost a worker is replaced by a new one."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers

    def executor(self) -> Executor:
        """Return the running pool, or a new one."""
        self._executor = _start_processes(self.workers)
        return self._executor

    def interrupt(self) -> None:
        """End the workers at once."""
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)  # type: ignore[call-arg]


def worker_pool(workers: int | None, executor: Executor | None = None) -> Pool | None:
    """Return where jobs run; None stands for this process.

    The local pool starts its workers afresh (no fork, so no inherited threads or locks); they never import the user's
    script, so no ``if __name__ == "__main__"`` guard is needed. Each uses one thread.

    Args:
        workers: Processes of the local pool; None for all cores, 1 for this process.
        executor: An executor to use instead.

    Raises:
        GenerationError: If ``workers`` is below 1.
    """
    if executor is not None:
        return Pool(executor)
    count = workers if workers is not None else available_cores()
    if count < 1:
        raise GenerationError(f"workers must be at least 1, got {count}")
    return None if count == 1 else LocalPool(count)


def require_one_place(workers: int | None, executor: Executor | None, cluster: object) -> None:
    """Raise a clear error where a cluster and workers of another kind are asked for at once.

    Raises:
        GenerationError: If so.
    """
    if cluster is None or (workers is None and executor is None):
        return
    other = f"workers {workers}" if workers is not None else f"executor {executor!r}"
    raise GenerationError(f"{other} and cluster {cluster!r} exclude each other: a cluster brings its own workers")


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_processes(workers: int) -> Executor:
    from loky import get_reusable_executor

    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    pool: Executor = get_reusable_executor(
        max_workers=workers, timeout=30, env=threads, initializer=_end_with_parent, initargs=(os.getpid(),)
    )
    return pool


@contextmanager
def _deaf_children(pool: Pool) -> Iterator[None]:
    """Let workers that the local pool starts here never see Ctrl-C: it is for this process, which then ends them."""
    main = threading.current_thread() is threading.main_thread()
    if not (isinstance(pool, LocalPool) and main and hasattr(signal, "pthread_sigmask")):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(parent: int) -> None:
    """Let this worker end soon after a parent that was killed, instead of working on for nobody."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_jobs(
    pool: Pool, submit: Callable[[Executor, Job], Future[_R]], jobs: Sequence[Job], done: Callable[[_R], None]
) -> None:
    """Run jobs on an executor; those whose worker died are tried again, on a new pool where it broke.

    Args:
        pool: From :func:`worker_pool`.
        submit: Hands one job to an executor.
        jobs: Ranges of samples, first and one past the last.
        done: Called with the result of every finished job.

    Raises:
        GenerationError: If a job was lost with its worker for the third time.
        GraphBenchError: Whatever a job raises itself: another try would not help.
    """
    losses: Counter[Job] = Counter()
    while jobs:
        lost, waiting, error = _run_until_loss(pool, submit, jobs, done, losses)
        if lost:
            _LOG.warning("%d shards lost (%s), trying again", len(lost), _in_a_line(error))
        jobs = sorted([*lost, *waiting])


def _run_until_loss(
    pool: Pool,
    submit: Callable[[Executor, Job], Future[_R]],
    jobs: Sequence[Job],
    done: Callable[[_R], None],
    losses: Counter[Job],
) -> tuple[list[Job], list[Job], BaseException | None]:
    """Run jobs until all are done or one is lost with its worker; the losses of every job are counted.

    Returns:
        Jobs lost, jobs not handed out, and the last failure.
    """
    executor = pool.executor()
    waiting = list(reversed(jobs))
    pending: dict[Future[_R], Job] = {}
    ended: SimpleQueue[Future[_R]] = SimpleQueue()  # to wait for all of thousands at once would take longer
    lost: list[Job] = []
    failure: BaseException | None = None
    try:
        while pending or (waiting and failure is None):
            while waiting and failure is None and len(pending) < pool.in_flight:
                job = waiting.pop()
                try:
                    with _deaf_children(pool):
                        future = submit(executor, job)
                    pending[future] = job
                    future.add_done_callback(ended.put)
                except RuntimeError as error:  # a broken or closed executor
                    failure = _counted(error, job, losses, pool)
                    lost.append(job)
            for job, trouble in _finished(pool, pending, ended, done):
                failure = _counted(trouble, job, losses, pool)
                lost.append(job)
    except KeyboardInterrupt:
        pool.interrupt()
        raise
    finally:
        if pending:
            pool.cancel(pending)
    return lost, waiting, failure


def _finished(
    pool: Pool, pending: dict[Future[_R], Job], ended: SimpleQueue[Future[_R]], done: Callable[[_R], None]
) -> list[tuple[Job, BaseException]]:
    """Wait for a job to end, take all ended ones from those pending, and return those that failed, with their failure.

    No future outlives this function: a cluster does a finished job again whose worker dies while its future is kept.
    """
    failed: list[tuple[Job, BaseException]] = []
    if not pending:
        return failed
    try:
        finished = [ended.get(timeout=_LOOK_AFTER)]
    except Empty:
        pool.look()
        return failed
    finished += [ended.get_nowait() for _ in range(ended.qsize())]
    while finished:
        future = finished.pop()
        job = pending.pop(future)
        trouble = CancelledError("cancelled") if future.cancelled() else future.exception()
        if trouble is None:
            done(future.result())
        else:
            failed.append((job, trouble))
    return failed


def _counted(trouble: BaseException, job: Job, losses: Counter[Job], pool: Pool) -> BaseException:
    """Count a job that was lost with its worker and return why; raise what another try would not help."""
    trouble = pool.judged(trouble)
    if isinstance(trouble, GraphBenchError) or not isinstance(trouble, Exception):
        raise trouble
    losses[job] += pool.losses(trouble)
    if losses[job] >= _TRIES:
        raise GenerationError(
            f"samples {job[0]} to {job[1] - 1} failed {losses[job]} times ({_in_a_line(trouble)}); {pool.remedy}. "
            "Finished shards are kept, run the same command again"
        ) from trouble
    return trouble


def _in_a_line(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def await_files(paths: Sequence[Path]) -> None:
    """Wait until files that other machines wrote are seen here: a network file system may show them later.

    Raises:
        StoreError: If some do not appear.
    """
    deadline = time.monotonic() + _APPEAR_SECONDS
    missing = [path for path in paths if not path.is_file()]
    while missing and time.monotonic() < deadline:
        time.sleep(_APPEAR_SECONDS / 100)
        with suppress(OSError):
            list(missing[0].parent.iterdir())  # asks the server again what the folder holds
        missing = [path for path in missing if not path.is_file()]
    if missing:
        raise StoreError(
            f"{len(missing)} of {len(paths)} files that workers wrote are not seen here after {_APPEAR_SECONDS:.0f} s, "
            f"e.g. {missing[0]}; workers and this machine must share the folder. Run the same command again to continue"
        )
