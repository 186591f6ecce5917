"""Build a split: shards on any executor, duplicates redrawn, one finished file.

The unit of work is a shard: a run of consecutive samples. Each finished shard is one small file in a hidden build
folder, so a build that was killed continues with the shards that are missing; a split of one shard is written at once.
Workers write shards to the folder and send back their number of samples alone. Neither the number of workers, nor where
they run, nor the size of the shards changes a byte of the result.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.data.hashing import sample_hashes, samples_hash
from graphbench.data.samples import Samples, find_generator
from graphbench.data.shards import SplitTask, build_shard, is_whole, join_shards, read_shard, write_split
from graphbench.data.store import Manifest, clear_errors, map_arrays, remove_strays, require_space
from graphbench.data.workers import Pool, await_files, require_one_place, run_jobs, worker_pool
from graphbench.errors import GenerationError
from graphbench.progress import Progress, progress_bar

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_MAX_ATTEMPTS = 1000

Shard = tuple[int, int]


def draw_samples(card: Card, split: str, indices: Sequence[int] | NDArray[np.int64]) -> Samples:
    """Return samples of a split drawn afresh from the card (first attempts), without touching the disk."""
    chosen = np.asarray(indices, np.int64)
    return SplitTask(card, split).draw(chosen, np.zeros_like(chosen))


class SplitBuilder:
    """Builds the first ``count`` samples of one split in a dataset folder."""

    def __init__(self, card: Card, split: str, count: int, folder: Path, shard_size: int | None = None) -> None:
        self.task = SplitTask(card.model_copy(update={"measured": None}), split)  # it travels with every shard
        self.card, self.split, self.count, self.folder = card, split, count, folder
        generator = self.task.generator
        self.parameters = generator.parse(card, split)
        self.shard_size = shard_size or max(1, min(generator.shard_size(self.parameters), count))
        self.work = work_folder(folder, split)

    @property
    def shards(self) -> list[Shard]:
        """First and one-past-last index of every shard."""
        return [(i, min(i + self.shard_size, self.count)) for i in range(0, self.count, self.shard_size)]

    def shard_path(self, first: int, last: int, redraws: Mapping[int, int]) -> Path:
        """Return the file of a shard; its name tells which samples were redrawn, so no stale shard is ever reused."""
        mine = sorted((i, a) for i, a in redraws.items() if first <= i < last)
        tag = "" if not mine else f"-{_short_hash(repr(mine))}"
        return self.work / f"{first:09d}-{last:09d}{tag}.h5"

    def build(self, target: Path, pool: Pool | None, progress: bool | None = None) -> dict[str, Any]:
        """Draw all samples, resolve duplicates, and write ``target``; return facts for the manifest."""
        try:
            return self._build(target, pool, progress)
        except GenerationError as error:
            raise GenerationError(f"{self.card.id} {self.split}: {error}") from error

    def _build(self, target: Path, pool: Pool | None, progress: bool | None) -> dict[str, Any]:
        with clear_errors(self.work, "create"):
            self.work.mkdir(parents=True, exist_ok=True)
        if len(self.shards) == 1 and not self.task.generator.unique:  # no work to share, nothing to draw again
            return self._build_at_once(target, progress)
        self._warm_up(pool)
        label = f"{self.card.id} {self.split}"
        with progress_bar(self.count, label, unit="graph", enabled=progress) as bar:
            self._run_shards({}, pool, bar)
        redraws = self._resolve_duplicates()
        if redraws:
            with progress_bar(self.count, f"{label} (redraws)", unit="graph", enabled=progress) as bar:
                self._run_shards(redraws, pool, bar)
        paths = [self.shard_path(*shard, redraws) for shard in self.shards]
        return self._facts(target, join_shards(self.card, self.split, paths, target), len(redraws))

    def _build_at_once(self, target: Path, progress: bool | None) -> dict[str, Any]:
        """Draw all samples in this process and write them straight to ``target``, without files of shards."""
        with progress_bar(self.count, f"{self.card.id} {self.split}", unit="graph", enabled=progress) as bar:
            samples = self.task.draw(np.arange(self.count), np.zeros(self.count, np.int64))
            require_space(self.folder, sum(array.nbytes for array in samples.arrays().values()))
            sizes = write_split(self.card, self.split, [samples], target)
            bar.update(self.count)
        return self._facts(target, sizes, redrawn=0)

    def _facts(self, target: Path, sizes: Mapping[str, int], redrawn: int) -> dict[str, Any]:
        return {"split": self.split, **sizes, "redrawn": redrawn, "content": samples_hash(map_arrays(target))}

    def _warm_up(self, pool: Pool | None) -> None:
        """Compile the kernels once, so that workers load them from the cache; estimate the size."""
        shared = pool is not None and pool.here
        jobs = [job for job in self.task.generator.compile_jobs if not job.is_done()] if shared else []
        if pool is not None and len(jobs) > 1:
            with suppress(RuntimeError):  # a broken pool costs time only: what is missing is compiled below
                executor = pool.executor()
                wait([executor.submit(job.run, self.parameters) for job in jobs])
        few = min(8, self.count)
        sample = self.task.draw(np.arange(few), np.zeros(few, np.int64))
        sample_hashes(sample, self.card)
        per_graph = sum(array.nbytes for array in sample.arrays().values()) / few + 40
        require_space(self.folder, int(2 * per_graph * self.count))  # shards and the finished file

    def _run_shards(self, redraws: Mapping[int, int], pool: Pool | None, bar: Progress) -> None:
        todo: list[Shard] = []
        for first, last in self.shards:
            if is_whole(self.shard_path(first, last, redraws)):
                bar.update(last - first)
            else:
                todo.append((first, last))

        def submit(executor: Executor, shard: Shard) -> Future[int]:
            return executor.submit(build_shard, *self._arguments(shard, redraws))

        if pool is not None and len(todo) > 1:
            run_jobs(pool, submit, todo, bar.update)
            await_files([self.shard_path(*shard, redraws) for shard in todo])
        else:
            for shard in todo:
                bar.update(build_shard(*self._arguments(shard, redraws)))

    def _arguments(self, shard: Shard, redraws: Mapping[int, int]) -> tuple[Any, ...]:
        first, last = shard
        mine = {i: a for i, a in redraws.items() if first <= i < last}
        return self.task, first, last, mine, self.shard_path(first, last, redraws)

    def _resolve_duplicates(self) -> dict[int, int]:
        """Return index -> attempt for every sample that must be redrawn, so that all samples differ.

        The rule: sample ``i`` takes the first attempt whose graph differs from the graphs of all samples before it.
        It depends on samples 0 .. i alone, so a shorter build is a prefix of a longer one.
        """
        if not self.task.generator.unique:
            return {}
        hashes = np.concatenate([read_shard(self.task.card, self.shard_path(*s, {}))[1] for s in self.shards])
        order = np.lexsort((np.arange(len(hashes)), hashes[:, 1], hashes[:, 0]))
        ordered = hashes[order]
        repeats = order[1:][(ordered[1:] == ordered[:-1]).all(axis=1)]
        if not len(repeats):
            return {}
        owner: dict[bytes, int] = {}
        for i in order[::-1]:  # the smallest index of equal hashes is written last and stays
            owner[hashes[i].tobytes()] = int(i)
        redraws: dict[int, int] = {}
        queue = [int(i) for i in repeats]
        heapq.heapify(queue)
        while queue:  # indices leave the queue in rising order: whoever is pushed out comes later
            i = heapq.heappop(queue)
            for attempt in range(1, _MAX_ATTEMPTS):
                new = sample_hashes(self.task.draw(np.array([i]), np.array([attempt])), self.card)[0].tobytes()
                holder = owner.get(new)
                if holder is None or holder > i:
                    owner[new], redraws[i] = i, attempt
                    if holder is not None:
                        heapq.heappush(queue, holder)
                    break
            else:
                raise GenerationError(
                    f"sample {i} repeats an earlier graph in {_MAX_ATTEMPTS} draws; "
                    f"the parameters allow too few different graphs for {self.count} samples: lower count, or draw "
                    "larger graphs"
                )
        return redraws


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --------------------------------------------------------------------------------------------------------------------
# The folder of a dataset


def dataset_folder(card: Card, root: Path) -> Path:
    """Return ``<root>/<domain>/<name>/v<version>-<fingerprint>``, where the fingerprint tells draws apart."""
    fingerprint = card.fingerprint(find_generator(card.generator).version)
    return root / card.domain / card.id.split("/", 1)[1] / f"v{card.version}-{fingerprint}"


def work_folder(folder: Path, split: str) -> Path:
    """Return the folder that holds the shards of an unfinished build."""
    return folder / f".build-{split}"


def file_name(split: str, count: int, full: int) -> str:
    """Return the file name of a split, complete or its first ``count`` samples."""
    return f"{split}.h5" if count == full else f"{split}-first{count}.h5"


def find_file(card: Card, split: str, count: int, folder: Path) -> str | None:
    """Return the smallest finished file that holds at least ``count`` samples of a split, or None."""
    manifest = Manifest(folder)
    if not manifest.path.is_file():
        return None
    finished = [
        (facts["count"], name)
        for name, facts in manifest.read()["files"].items()
        if facts.get("split") == split and facts["count"] >= count and (folder / name).is_file()
    ]
    return min(finished)[1] if finished else None


def ensure_split(
    card: Card,
    split: str,
    root: Path,
    limit: int | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    cluster: str | Client | None = None,
    progress: bool | None = None,
    shard_size: int | None = None,
) -> Path:
    """Return the file of a split, building it first where it is missing.

    Two processes that ask for the same dataset at once take turns: the second finds the first one's copy.

    Args:
        card: The dataset.
        split: Name of the split.
        root: Folder of all datasets.
        limit: Build and require the first ``limit`` samples only.
        workers: Processes of the default pool; None for all cores.
        executor: Any ``concurrent.futures`` executor to use instead (its workers must share the file system).
        cluster: A running Dask cluster to use instead: address of its scheduler, scheduler file, or client. A split of
            one shard is drawn here all the same.
        progress: Show a progress bar; None for terminals only.
        shard_size: Graphs per unit of work; None lets the generator choose.

    Raises:
        StoreError: If the folder cannot be written or the disk is too small.
        ChecksumMismatch: If a file was changed or damaged since it was built.
        GenerationError: If the generator fails, workers keep dying, or ``cluster`` does not stand alone.
        ClusterError: If the cluster cannot be reached or used, or goes away.
        MissingDependency: If ``cluster`` is given and ``distributed`` is not installed.
    """
    full = card.split(split).count
    count = full if limit is None else min(limit, full)
    if count < 1:
        raise GenerationError(f"limit must be at least 1, got {limit}")
    require_one_place(workers, executor, cluster)
    folder = dataset_folder(card, root.absolute())  # workers elsewhere have another working folder
    found = find_file(card, split, count, folder)
    if found is None:
        with _build_lock(folder, split):
            found = find_file(card, split, count, folder)
            if found is None:
                found = file_name(split, count, full)
                builder = SplitBuilder(card, split, count, folder, shard_size)
                with _pool(workers, executor, cluster, builder.work) as pool:
                    facts = builder.build(folder / found, pool, progress)
                _record(card, folder, found, facts)
            _remove_leftovers(folder, split, found)
    elif work_folder(folder, split).exists():
        _tidy(folder, split, found)
    Manifest(folder).check(found)
    return folder / found


def _pool(
    workers: int | None, executor: Executor | None, cluster: str | Client | None, work: Path
) -> AbstractContextManager[Pool | None]:
    """Return where the shards are drawn; leaving the block closes what was opened for them."""
    if cluster is not None:
        from graphbench.data.cluster_jobs import ClusterPool

        return closing(ClusterPool(cluster, work))
    pool = worker_pool(workers, executor)
    return nullcontext() if pool is None else closing(pool)


@contextmanager
def _build_lock(folder: Path, split: str) -> Iterator[None]:
    """Hold the lock of a split's build; the system frees it when the process dies, however it dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / f".{split}.lock")
    with clear_errors(folder, "create"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _LOG.warning("another process builds %s in %s; waiting for it", split, folder)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _tidy(folder: Path, split: str, found: str) -> None:
    """Remove what a build left that was killed at its very end, unless a build is running or the folder read-only."""
    from filelock import FileLock

    with suppress(OSError), FileLock(folder / f".{split}.lock", timeout=0):
        _remove_leftovers(folder, split, found)


def _remove_leftovers(folder: Path, split: str, found: str) -> None:
    """Remove half-written files, and the shards that the finished file ``found`` makes useless.

    Shards of a larger build that was interrupted stay, for that build to continue.
    """
    finished = Manifest(folder).read()["files"][found]["count"]
    work = work_folder(folder, split)
    with suppress(OSError):
        remove_strays(folder, f"{split}.h5")
        remove_strays(folder, f"{split}-first*.h5")
        remove_strays(work, "*")
        for path in work.glob("*.h5"):
            if int(path.name[10:19]) <= finished:
                path.unlink()
        work.rmdir()


def _record(card: Card, folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    from filelock import FileLock

    generator = find_generator(card.generator)
    about = {
        "id": card.id,
        "version": card.version,
        "fingerprint": card.fingerprint(generator.version),
        **({"data_seed": card.data_seed} if card.data_seed else {}),
        "generator": {"name": generator.name, "version": generator.version},
        "card": card.model_dump(mode="json", exclude={"measured"}),
        "libraries": library_versions(),
    }
    with FileLock(folder / ".manifest.lock"):
        Manifest(folder).add_file(name, facts, about)


@lru_cache(maxsize=1)
def library_versions() -> Mapping[str, str]:
    """Return the versions of the libraries that generation uses."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("graphbench", "numpy", "numba", "h5py"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
