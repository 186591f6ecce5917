"""Where shards run: a local pool of processes or any executor, and what happens when a worker dies."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from graphbench.errors import GenerationError, GraphBenchError

_LOG = logging.getLogger(__name__)
_TRIES = 3  # of a job whose worker dies
_IN_FLIGHT = 64  # jobs handed to an executor at a time

Pool = Callable[[], Executor]
Job = tuple[int, int]
_R = TypeVar("_R")


def worker_pool(workers: int | None, executor: Executor | None = None) -> Pool | None:
    """Return a function that gives a working executor, or None where the work runs in this process.

    The local pool starts its workers afresh (no fork, so no inherited threads or locks); they never import the user's
    script, so no ``if __name__ == "__main__"`` guard is needed. Each uses one thread. A pool that lost a worker is
    replaced by a new one.

    Args:
        workers: Processes of the local pool; None for all cores, 1 for this process.
        executor: An executor to use instead.

    Raises:
        GenerationError: If ``workers`` is below 1.
    """
    if executor is not None:
        return lambda: executor
    count = workers if workers is not None else available_cores()
    if count < 1:
        raise GenerationError(f"workers must be at least 1, got {count}")
    return None if count == 1 else partial(_local_pool, count)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _local_pool(workers: int) -> Executor:
    from loky import get_reusable_executor

    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    pool: Executor = get_reusable_executor(
        max_workers=workers, timeout=30, env=threads, initializer=_end_with_parent, initargs=(os.getpid(),)
    )
    return pool


def _is_local(executor: Executor) -> bool:
    return type(executor).__module__.startswith("loky.")


@contextmanager
def _deaf_children(executor: Executor) -> Iterator[None]:
    """Let workers that the local pool starts here never see Ctrl-C: it is for this process, which then ends them."""
    main = threading.current_thread() is threading.main_thread()
    if not (_is_local(executor) and main and hasattr(signal, "pthread_sigmask")):
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
        lost, waiting, error = _run_until_loss(pool(), submit, jobs, done)
        losses.update(lost)
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        worst = max(lost, key=lambda job: losses[job], default=(0, 0))
        if losses[worst] >= _TRIES:
            raise GenerationError(
                f"samples {worst[0]} to {worst[1] - 1} failed {_TRIES} times ({reason}); "
                "a worker may have run out of memory: use fewer workers. Finished shards are kept, run the same "
                "command again"
            ) from error
        if lost:
            _LOG.warning("%d shards lost (%s), trying again", len(lost), reason)
        jobs = sorted([*lost, *waiting])


def _run_until_loss(
    executor: Executor, submit: Callable[[Executor, Job], Future[_R]], jobs: Sequence[Job], done: Callable[[_R], None]
) -> tuple[list[Job], list[Job], BaseException | None]:
    """Run jobs until all are done or one is lost with its worker.

    Returns:
        Jobs lost, jobs not handed out, and the last failure.
    """
    waiting = list(reversed(jobs))
    pending: dict[Future[_R], Job] = {}
    lost: list[Job] = []
    failure: BaseException | None = None
    try:
        while pending or (waiting and failure is None):
            while waiting and failure is None and len(pending) < _IN_FLIGHT:
                job = waiting.pop()
                try:
                    with _deaf_children(executor):
                        pending[submit(executor, job)] = job
                except RuntimeError as error:  # a broken or closed executor
                    failure = error
                    lost.append(job)
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                job = pending.pop(future)
                trouble = CancelledError("cancelled") if future.cancelled() else future.exception()
                if trouble is None:
                    done(future.result())
                elif isinstance(trouble, GraphBenchError) or not isinstance(trouble, Exception):
                    raise trouble
                else:
                    failure = trouble
                    lost.append(job)
    except KeyboardInterrupt:
        if _is_local(executor):
            executor.shutdown(kill_workers=True)  # type: ignore[call-arg]
        raise
    finally:
        for future in pending:
            future.cancel()
    return lost, waiting, failure
