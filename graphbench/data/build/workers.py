"""The workers that draw shards: this process, a local pool, an executor or a Dask cluster."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.resources import data_folders, datasets_dir
from graphbench.core.arguments import whole_number
from graphbench.core.errors import GenerationError, GraphBenchError, StoreError
from graphbench.core.files import await_files
from graphbench.core.foreign import described
from graphbench.core.plugins import load_targets, plugin_targets
from graphbench.core.processes.cluster import Versions
from graphbench.core.processes.dask_pool import DaskPool
from graphbench.core.processes.local import LocalPool
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import (
    ExecutorPool,
    Handle,
    Pool,
    UnusableWorker,
    available_cores,
    call,
    error_line,
)

if TYPE_CHECKING:
    from distributed import Client

_APPEAR_SECONDS = 90.0  # longer than NFS caches that a file is missing
_IDLE_SECONDS = 30.0  # for which local workers wait for the next split
_LIBRARIES = ("distributed", "numpy", "numba", "h5py")
_PACKAGE = Path(__file__).resolve().parents[1]
SAMPLES = ("core", "catalog", "data", "domains")  # parts of the package that samples depend on
EVERYTHING = (".",)
_TABLES = "*.yaml"


def require_one_place(workers: int | None, executor: Executor | None, cluster: object) -> None:
    """Refuse a cluster together with local workers or an executor.

    Raises:
        GenerationError: If both are given.
    """
    if cluster is None or (workers is None and executor is None):
        return
    other = f"workers {workers}" if workers is not None else f"executor {executor!r}"
    raise GenerationError(f"{other} and cluster {cluster!r} exclude each other: the cluster brings the workers")


def worker_count(workers: int | None) -> int:
    """Return the number of processes that draw shards.

    Raises:
        GenerationError: If ``workers`` is not a whole number from 1 on.
    """
    return available_cores() if workers is None else whole_number("workers", workers, 1, error=GenerationError)


def worker_pool(
    workers: int | None, executor: Executor | None, cluster: str | Client | None, folder: Path
) -> Pool | None:
    """Return the pool that draws shards; None stands for this process.

    Args:
        workers: Processes of a local pool; None for all cores, 1 for this process.
        executor: An executor to use instead.
        cluster: A running Dask cluster to use instead.
        folder: Where shards are written; shared with the workers of a cluster.

    Raises:
        GenerationError: If ``workers`` is below 1.
    """
    function = pickled(call)
    if cluster is not None:
        return DaskPool(function, cluster, folder, version_measure(SAMPLES), retries=_may_be_retried)
    if executor is not None:
        return ExecutorPool(function, executor, _may_be_retried)
    count = worker_count(workers)
    if count == 1:
        return None
    return LocalPool(function, count, idle_seconds=_IDLE_SECONDS, retries=_may_be_retried)


def _may_be_retried(error: BaseException) -> bool:
    """Return whether another try of a shard may succeed; errors of this package are final."""
    return isinstance(error, Exception) and not isinstance(error, GraphBenchError)


def run_jobs(
    pool: Pool, function: Callable[..., Any], jobs: Mapping[str, tuple[Any, ...]], done: Callable[[Any], object]
) -> None:
    """Run jobs on a pool.

    Raises:
        GenerationError: If a job was lost with its worker for the third time.
        GraphBenchError: If a job raises one, as another try would not succeed.
    """
    for name, arguments in jobs.items():
        pool.submit(function, *arguments, name=name)
    try:
        while ended := pool.completed():
            for handle in ended:
                _raise_failure(handle, pool)
                done(handle.value)
    except UnusableWorker as error:
        raise GenerationError(f"the workers cannot draw samples: {error}") from error


def _raise_failure(handle: Handle, pool: Pool) -> None:
    """Raise a clear error if a job failed."""
    error = handle.error
    if error is None:
        return
    if isinstance(error, GraphBenchError | KeyboardInterrupt):
        raise error
    if not isinstance(error, Exception):  # SystemExit, or an error class of the generator, must not end this process
        raise GenerationError(f"{handle.name} failed: {described(error)}") from error
    raise GenerationError(
        f"{handle.name} failed {handle.failure_count} times ({error_line(error)}); {pool.advice}. "
        "Finished shards are kept, run the same command again"
    ) from error


def require_files(paths: Iterable[Path]) -> None:
    """Wait until files that workers wrote are visible here, as a network file system may delay them.

    Raises:
        StoreError: If some do not become visible.
    """
    paths = list(paths)
    missing = await_files(paths, _APPEAR_SECONDS)
    if missing:
        raise StoreError(
            f"{len(missing)} of {len(paths)} files that workers wrote are not visible here after "
            f"{_APPEAR_SECONDS:.0f} s, e.g. {missing[0]}; workers and this machine must share the folder. Run the same "
            "command again to continue"
        )


def version_measure(parts: tuple[str, ...]) -> Callable[[], Versions]:
    """Return :func:`versions_here` for some parts of this package and the plug-ins of this process."""
    return partial(versions_here, parts, tuple(plugin_targets()))


@lru_cache(maxsize=8)
def versions_here(parts: tuple[str, ...], plugins: tuple[str, ...] = ()) -> Versions:
    """Return name and version of Python, this package, plug-ins and the libraries that results may depend on.

    The version of the package ends in a hash of its sources and tables at the time of the first call. The version of a
    plug-in is a hash of its folders of datasets.

    Args:
        parts: Parts of this package with sources that enter the hash: :data:`SAMPLES` or :data:`EVERYTHING`.
        plugins: Targets of the plug-ins, which are loaded where they are not yet.
    """
    load_targets(plugins)
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in ("graphbench", *_LIBRARIES):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    sources = [(_PACKAGE / part, "*.py") for part in parts]
    versions["graphbench"] += f", sources {_files_hash([*sources, (datasets_dir(), _TABLES)])}"
    names = plugin_targets()
    for target in sorted(set(plugins) & set(names)):
        tables = [(folder.path, _TABLES) for folder in data_folders("datasets") if folder.owner == names[target]]
        versions[f"plug-in {target}"] = f"datasets {_files_hash(tables)}"
    return tuple(versions.items())


def _files_hash(places: Iterable[tuple[Path, str]]) -> str:
    """Return a hash of the files below some folders, given with the pattern of their names."""
    digest = hashlib.sha256()
    for folder, pattern in places:
        for path in sorted(folder.rglob(pattern)):
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:8]
