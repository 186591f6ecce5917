"""Jobs on a Dask cluster: an executor whose workers are checked, and the pool that generation draws shards on."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from graphbench.core.errors import ClusterError
from graphbench.data.cluster import Needs, answer, check_workers, connected, named, run_checked, shared_needs, shipped
from graphbench.data.workers import Pool

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_KEPT = "finished work is kept: run the same command again, with this cluster, another one or none"

_R = TypeVar("_R")


class ClusterExecutor(Executor):
    """Runs jobs on the workers of a cluster that have what is needed."""

    def __init__(self, client: Client, needs: Needs) -> None:
        self._jobs = client.get_executor(pure=False)  # equal jobs are still different jobs
        self._needs = needs

    def submit(self, function: Callable[..., _R], /, *arguments: Any, **options: Any) -> Future[_R]:
        """Hand out ``function(*arguments)``; options are those of ``dask.distributed.Client.submit``."""
        job = shipped(run_checked, self._needs, function, *arguments)
        name = getattr(function, "__name__", "job")
        future: Future[_R] = self._jobs.submit(pickle.loads, job, **{"key": f"{name}-{uuid4()}", **options})
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; wait for those handed out, or take them back."""
        self._jobs.shutdown(wait=wait and not cancel_futures)


class ClusterPool(Pool):
    """The workers of a running cluster, for jobs that share a folder with this machine.

    The connection is made when first needed. Dask itself runs a job again whose worker died, as often as the cluster's
    ``allowed-failures`` says.
    """

    here = False
    in_flight = 2048  # all that a thousand cores can take, and what an adaptive cluster grows by
    remedy = "a worker may have run out of memory: give each more, its log says what happened"

    def __init__(self, cluster: str | Client, folder: Path) -> None:
        super().__init__()
        self._cluster, self._folder = cluster, folder
        self._opened = ExitStack()
        self._client: Client | None = None
        self._needs: Needs | None = None
        self._waits = self._shares = False  # what has been told of the workers

    def executor(self) -> Executor:
        """Return an executor on the cluster, whose workers have been checked."""
        if self._client is None or self._needs is None:
            self._client = self._opened.enter_context(connected(self._cluster))
            self._needs = self._opened.enter_context(shared_needs(self._folder))
            check_workers(self._client, self._needs)
            self.look()
        if self._executor is None:
            self._executor = ClusterExecutor(self._client, self._needs)
        return self._executor

    def losses(self, error: BaseException) -> int:
        """Return how many workers died over a job: more than one where Dask has tried it again itself."""
        return int(getattr(error, "allowed_failures", 0)) + 1

    def judged(self, error: BaseException) -> BaseException:
        """Return the failure of a job, or what is wrong with the cluster."""
        if self._client is not None and self._client.status != "running":
            return self._gone()
        if isinstance(error, ImportError | AttributeError):
            return ClusterError(
                f"a Dask worker has no graphbench, or another version of it ({named(error)}); install the same "
                f"everywhere; {_KEPT}"
            )
        return error

    def look(self) -> None:
        """Tell where there is no worker, or one that draws several shards at once.

        Raises:
            ClusterError: If the scheduler is gone.
        """
        client = self._client
        assert client is not None
        threads = answer(client, client.scheduler.ncores) if client.status == "running" else None
        if not isinstance(threads, Mapping):
            raise self._gone()
        if not threads and not self._waits:
            _LOG.warning("the Dask cluster at %s has no workers; waiting for some", client.scheduler.address)
        self._waits = not threads
        several = next((worker for worker, number in threads.items() if number > 1), None)
        if several is not None and not self._shares:
            _LOG.warning("the Dask worker %s has %d threads: one per worker is faster", several, threads[several])
            self._shares = True

    def cancel(self, futures: Collection[Future[Any]]) -> None:
        """Take back all jobs; those running end in their own time."""
        if self._executor is not None and self._client is not None and self._client.status == "running":
            with suppress(OSError):  # the cluster goes away at this very moment
                self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = None

    def close(self) -> None:
        """Close a connection that was opened here."""
        self._opened.close()

    def _gone(self) -> ClusterError:
        assert self._client is not None
        address = self._client.scheduler.address if self._client.scheduler is not None else self._cluster
        return ClusterError(f"the Dask scheduler at {address} went away; {_KEPT}")
