"""Build a split: generate shards on a pool of workers, redraw duplicates, and write one file.

The unit of work is a shard: a number of consecutive samples. Each finished shard is one small file in a hidden build
folder, so a killed build is resumed with the missing shards; a split of one shard is written directly. Workers write
shards to the folder and return only their number of samples. The number of workers, where they run, and the size of the
shards do not change a byte of the result.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Kind, Location
from graphbench.core.arguments import whole_number
from graphbench.core.errors import GenerationError, StoreError
from graphbench.core.files import clear_errors, file_lock, make_work_folder, refuse_link, remove_strays, require_space
from graphbench.core.kernels import announce_compiling, before_compiling
from graphbench.core.plugins import MAIN, plugin_targets
from graphbench.core.processes.pool import Pool
from graphbench.core.progress import Progress, announce, progress_bar
from graphbench.data.arrays.hashing import sample_hashes, samples_hash
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.labelling import LabelTask, label_samples
from graphbench.data.build.workers import require_files, require_one_place, run_jobs, worker_pool
from graphbench.data.components.domain import domain_module
from graphbench.data.store.files import map_arrays
from graphbench.data.store.labels import require_agreement, with_labels
from graphbench.data.store.layout import (
    Manifest,
    about_graphs,
    about_labels,
    dataset_folder,
    file_name,
    find_file,
    label_folder,
    require_data_of,
    work_folder,
)
from graphbench.data.store.shards import (
    SplitTask,
    build_shard,
    is_whole,
    join_shards,
    shard_facts,
    shard_hashes,
    write_split,
)
from graphbench.data.store.split_files import find_labels, split_arrays

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_MAX_ATTEMPTS = 1000
COMPILING = "compiling kernels at the first use on this machine, which takes some seconds once"

Shard = tuple[int, int]
Task = SplitTask | LabelTask


def draw_samples(card: Card, split: str, indices: Sequence[int] | NDArray[np.int64]) -> Samples:
    """Generate samples of a split in memory (first attempts, labels included) and return them."""
    chosen = np.asarray(indices, np.int64)
    return add_labels(card, split, chosen, SplitTask(card, split).draw(chosen, np.zeros_like(chosen)))


def add_labels(
    card: Card, split: str, indices: NDArray[np.int64], graphs: Samples, labellers: Sequence[str] | None = None
) -> Samples:
    """Return graphs with labels.

    Args:
        card: The card.
        split: Name of the split.
        indices: int64 ``[S]``, the positions of the graphs in the split.
        graphs: The graphs, drawn for these positions.
        labellers: Names of the labellers; None for the labellers of the card's task.
    """
    for labeller in card.labellers if labellers is None else labellers:
        graphs = with_labels(card, labeller, graphs, label_samples(card, labeller, split, indices, graphs))
    return graphs


class SplitBuilder:
    """Builds the first ``count`` samples of one split, or their labels, in a dataset folder."""

    def __init__(self, task: Task, count: int, folder: Path, shard_size: int | None = None) -> None:
        self.task, self.card, self.split, self.count, self.folder = task, task.card, task.split, count, folder
        self.parameters = task.parameters
        self.shard_size = shard_size or max(1, min(task.maker.shard_size(self.parameters), count))
        self.stored = task.card.stored_name(task.split)
        self.work = work_folder(folder, self.stored)
        module = domain_module(task.maker.name.partition(".")[0])
        self.only_here = module == MAIN  # workers do not import the script, so they lack its domains
        self.plugins = (*plugin_targets(), *([] if module in (None, MAIN) else [module]))
        if self.only_here and len(self.shards) > 1:
            _LOG.warning(
                "%s is generated in this process alone, as the script's main module registers its domain; register it "
                "in a module that workers can import",
                self.card.address,
            )

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the split's file."""
        return {"id": self.card.id, "version": self.card.version, "split": self.split}

    @property
    def shards(self) -> list[Shard]:
        """First and one-past-last index of every shard."""
        return [(i, min(i + self.shard_size, self.count)) for i in range(0, self.count, self.shard_size)]

    def shard_path(self, first: int, last: int, redraws: Mapping[int, int]) -> Path:
        """Return the file of a shard; its name has a hash of the redrawn samples, so that no stale shard is reused."""
        shard_redraws = sorted((i, a) for i, a in redraws.items() if first <= i < last)
        tag = f"-{hashlib.sha256(repr(shard_redraws).encode()).hexdigest()[:12]}" if shard_redraws else ""
        return self.work / f"{first:09d}-{last:09d}{tag}.h5"

    def build(self, target: Path, pool: Pool | None, progress: bool | None = None) -> dict[str, Any]:
        """Draw all samples, resolve duplicates, and write ``target``; return facts for the manifest."""
        try:
            with before_compiling(partial(announce, f"{self.card.address}: {COMPILING}", progress)):
                return self._build(target, pool, progress)
        except GenerationError as error:
            raise GenerationError(f"{self.card.address} {self.split}: {error}") from error

    def _build(self, target: Path, pool: Pool | None, progress: bool | None) -> dict[str, Any]:
        with clear_errors(self.work, "create"):
            make_work_folder(self.work)
        if len(self.shards) == 1 and not self.task.maker.unique:  # one shard, and no duplicates to redraw
            return self._build_at_once(target, progress)
        self._warm_up(pool)
        label = f"{self.card.address} {self.split}"
        with progress_bar(self.count, label, unit="graphs", enabled=progress) as bar:
            self._run_shards({}, pool, bar)
        redraws = self._resolve_duplicates()
        if redraws:
            with progress_bar(self.count, f"{label} (redraws)", unit="graphs", enabled=progress) as bar:
                self._run_shards(redraws, pool, bar)
        paths = [self.shard_path(*shard, redraws) for shard in self.shards]
        sizes = join_shards(self.task.schema, self.attributes, paths, target)
        return self._facts(target, sizes, len(redraws), [shard_facts(path) for path in paths])

    def _build_at_once(self, target: Path, progress: bool | None) -> dict[str, Any]:
        """Draw all samples in this process and write them directly to ``target``, without shard files."""
        with progress_bar(self.count, f"{self.card.address} {self.split}", unit="graphs", enabled=progress) as bar:
            samples = self.task.draw(np.arange(self.count), np.zeros(self.count, np.int64))
            require_space(self.folder, sum(array.nbytes for array in samples.arrays().values()))
            sizes = write_split(self.task.schema, self.attributes, lambda: [samples], target)
            bar.update(self.count)
        return self._facts(target, sizes, 0, [samples.facts])

    def _facts(
        self, target: Path, sizes: Mapping[str, int], redrawn: int, shards: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        file_facts = {"split": self.stored, **sizes, "redrawn": redrawn, "content": samples_hash(map_arrays(target))}
        return {**_joined_facts(shards), **file_facts}

    def _warm_up(self, pool: Pool | None) -> None:
        """Compile the kernels once, so that workers load them from the cache; estimate the size."""
        if pool is not None and pool.shares_caches:
            jobs = [job for job in self.task.maker.compile_jobs if not job.is_done()]
            if len(jobs) > 1:
                announce_compiling()
            for job in jobs if len(jobs) > 1 else ():
                pool.submit(job.run, self.parameters, name="compiling a kernel")
            while pool.completed():  # failed jobs are ignored: missing kernels are compiled below
                pass
        if self.task.maker.stored_bytes is not None:
            require_space(self.folder, 2 * self.task.maker.stored_bytes(self.parameters) * self.count)
            return
        few = min(self.task.probe, self.count)
        sample = self.task.draw(np.arange(few), np.zeros(few, np.int64))
        if self.task.maker.unique:
            sample_hashes(sample, self.task.schema, self.task.maker.unique_inputs)
        per_graph = sum(array.nbytes for array in sample.arrays().values()) / few + 40
        require_space(self.folder, int(2 * per_graph * self.count))  # shards and the finished file

    def _run_shards(self, redraws: Mapping[int, int], pool: Pool | None, bar: Progress) -> None:
        todo: list[Shard] = []
        for first, last in self.shards:
            if is_whole(self.shard_path(first, last, redraws)):
                bar.update(last - first)
            else:
                todo.append((first, last))

        if pool is not None and len(todo) > 1:
            jobs = {f"samples {first} to {last - 1}": self._arguments((first, last), redraws) for first, last in todo}
            run_jobs(pool, build_shard, jobs, bar.update)
            require_files(self.shard_path(*shard, redraws) for shard in todo)
        else:
            for shard in todo:
                bar.update(build_shard(*self._arguments(shard, redraws)))

    def _arguments(self, shard: Shard, redraws: Mapping[int, int]) -> tuple[Any, ...]:
        first, last = shard
        shard_redraws = {i: a for i, a in redraws.items() if first <= i < last}
        return self.task, first, last, shard_redraws, self.shard_path(first, last, redraws), self.plugins

    def _resolve_duplicates(self) -> dict[int, int]:
        """Return index -> attempt for every sample that must be redrawn, so that all samples differ.

        The rule: sample ``i`` takes the first attempt with a graph that differs from the graphs of all earlier samples.
        The attempt depends on samples 0 .. i alone, so a shorter build is a prefix of a longer one.
        """
        if not self.task.maker.unique:
            return {}
        hashes = np.concatenate([shard_hashes(self.shard_path(*shard, {})) for shard in self.shards])
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
        while queue:  # indices leave the queue in rising order: a sample that loses its graph comes later
            i = heapq.heappop(queue)
            for attempt in range(1, _MAX_ATTEMPTS):
                drawn = self.task.draw(np.array([i]), np.array([attempt]))
                new = sample_hashes(drawn, self.task.schema, self.task.maker.unique_inputs)[0].tobytes()
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


def _joined_facts(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of all shards together: numbers are summed, mappings merged."""
    joined: dict[str, Any] = {}
    for facts in shards:
        for name, value in facts.items():
            if isinstance(value, Mapping):
                joined[name] = {**joined.get(name, {}), **value}
            else:
                joined[name] = joined.get(name, 0) + value
    return joined


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
    """Return the file of a split's graphs; build it, and the labels of the card's task, if they are missing.

    A lock serialises processes that build the same split: the second one uses the file of the first.

    Args:
        card: The dataset.
        split: Name of the split.
        root: Folder of all datasets.
        limit: Build and require only the first ``limit`` samples.
        workers: Processes of the default pool; None for all cores.
        executor: Any ``concurrent.futures`` executor to use instead (its workers must share the file system).
        cluster: A running Dask cluster to use instead: address of its scheduler, scheduler file, or client. A split of
            one shard is drawn in this process in any case.
        progress: Show a progress bar; None for terminals only.
        shard_size: Graphs per unit of work; None lets generator and labeller choose.

    Raises:
        StoreError: If the folder cannot be written or the disk is too small.
        ChecksumMismatch: If a file was changed or damaged since it was built.
        GenerationError: If the generator fails, workers die repeatedly, labels contradict each other, ``limit``,
            ``workers`` or ``shard_size`` is not a whole number from 1 on, or ``cluster`` is combined with ``workers``
            or ``executor``.
        ClusterError: If the cluster cannot be reached or used, or is lost.
        MissingDependency: If ``cluster`` is given and ``distributed`` is not installed.
    """
    full = card.split(split).count
    count = full if limit is None else min(whole_number("limit", limit, 1, error=GenerationError), full)
    if shard_size is not None:
        shard_size = whole_number("shard_size", shard_size, 1, error=GenerationError)
    require_one_place(workers, executor, cluster)
    card = card.model_copy(update={"measured": None})  # sent with every shard
    ensure = partial(_ensure_file, count=count, full=full, pool=partial(worker_pool, workers, executor, cluster))
    folder = dataset_folder(card, root.absolute())  # remote workers have another working directory
    options: dict[str, Any] = {"progress": progress, "shard_size": shard_size}
    path = ensure(SplitTask(card, split), folder=folder, about=about_graphs(card), **options)
    for labeller in card.labellers:
        task = LabelTask(card, labeller, split, path)
        ensure(task, folder=label_folder(card, labeller, folder), about=about_labels(card, labeller), **options)
    if len(card.labellers) > 1:
        _, arrays = split_arrays(card, path, find_labels(card, split, path, count), count)
        of_graphs = [f.name for f in card.label_features if f.location is Location.GRAPH and f.kind is not Kind.TEXT]
        require_agreement(card, split, {name: arrays[name] for name in of_graphs})
    return path


def _ensure_file(
    task: Task,
    *,
    count: int,
    full: int,
    folder: Path,
    about: Mapping[str, Any],
    pool: Callable[[Path], Pool | None],
    progress: bool | None,
    shard_size: int | None,
) -> Path:
    """Return the file with the first ``count`` of ``full`` samples; build it if it is missing."""
    split = task.card.stored_name(task.split)
    require_data_of(task.card, folder, about, of_labels=isinstance(task, LabelTask))
    name = find_file(split, count, folder)
    if name is None:
        with _build_lock(folder, split):
            name = find_file(split, count, folder)
            if name is None:
                name = file_name(split, count, full)
                builder = SplitBuilder(task, count, folder, shard_size)
                workers = None if builder.only_here else pool(builder.work)
                with nullcontext() if workers is None else closing(workers):
                    facts = builder.build(folder / name, workers, progress)
                _record(folder, name, facts, about)
            _remove_leftovers(folder, split, name)
    elif work_folder(folder, split).exists():
        _remove_leftovers_if_idle(folder, split, name)
    Manifest(folder).check(name)
    return folder / name


@contextmanager
def _build_lock(folder: Path, split: str) -> Iterator[None]:
    """Hold the lock of a split's build; the operating system releases it whenever the process dies."""
    from filelock import Timeout

    with clear_errors(folder, "create"):
        lock = file_lock(folder / f".{split}.lock")
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


def _remove_leftovers_if_idle(folder: Path, split: str, name: str) -> None:
    """Remove leftovers of a build that was killed at its end, unless a build is running or the folder is read-only."""
    with suppress(OSError, StoreError), file_lock(folder / f".{split}.lock", timeout=0):
        _remove_leftovers(folder, split, name)


def _remove_leftovers(folder: Path, split: str, name: str) -> None:
    """Remove incomplete files, and the shards that the finished file ``name`` replaces.

    Shards of a larger interrupted build are kept, so that it can be resumed.
    """
    count = Manifest(folder).read()["files"][name]["count"]
    work = work_folder(folder, split)
    with suppress(OSError, StoreError):
        remove_strays(folder, f"{split}.h5")
        remove_strays(folder, f"{split}-first*.h5")
        refuse_link(work)
        remove_strays(work, "*")
        for path in work.glob("*.h5"):
            if int(path.name[10:19]) <= count:
                path.unlink()
        work.rmdir()


def _record(folder: Path, name: str, facts: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    with file_lock(folder / ".manifest.lock"):
        Manifest(folder).add_file(name, facts, about)
