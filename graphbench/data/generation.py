"""Build a split: shards on any executor, duplicates redrawn, one finished file.

The unit of work is a shard: a run of consecutive samples. Each finished shard is one small file in a hidden build
folder, so a build that was killed continues with the shards that are missing. Neither the number of workers nor the
size of the shards changes a byte of the result.
"""

from __future__ import annotations

import heapq
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.data.hashing import samples_hash, structure_hashes
from graphbench.data.samples import Generator, Samples, find_generator
from graphbench.data.seeds import stream_key
from graphbench.data.store import (
    ArrayFile,
    ArraySpec,
    Manifest,
    atomic_path,
    clear_errors,
    map_arrays,
    require_space,
    smallest_integer,
    write_arrays,
)
from graphbench.errors import GenerationError, GraphBenchError, StoreError
from graphbench.progress import progress_bar

_LOG = logging.getLogger(__name__)
_HASHES = "hashes"
_VALUE = "value."  # prefix of feature arrays in a shard file
_MAX_ATTEMPTS = 1000
_RETRIES = 3

Array = NDArray[Any]


@dataclass(frozen=True)
class SplitTask:
    """What a worker needs to draw samples of one split; small, and the same in every process."""

    card: Card
    split: str

    @property
    def generator(self) -> Generator:
        """The registered generator."""
        return find_generator(self.card.generator)

    def draw(self, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the samples of the given indices, in the dtypes of the store."""
        generator = self.generator
        key = stream_key(self.card.id, self.card.version, self.split)
        samples = generator.generate(generator.parse(self.card, self.split), key, indices, attempts)
        return compact(self.card, samples)


def draw_samples(card: Card, split: str, indices: Sequence[int] | NDArray[np.int64]) -> Samples:
    """Return samples of a split drawn afresh from the card (first attempts), without touching the disk."""
    chosen = np.asarray(indices, np.int64)
    return SplitTask(card, split).draw(chosen, np.zeros_like(chosen))


def compact(card: Card, samples: Samples) -> Samples:
    """Return the samples with every array in its storage dtype, checked against the card.

    Scalars are float32, masks uint8, class numbers, pointers and node ids the smallest safe integer.
    """
    names = {f.name for f in card.features}
    if set(samples.values) != names:
        raise GenerationError(f"{card.generator} returned {sorted(samples.values)}, the card has {sorted(names)}")
    largest = int(samples.num_nodes.max(initial=1)) - 1
    rows = {
        Location.NODE: int(samples.num_nodes.sum()),
        Location.EDGE: int(samples.num_edges.sum()),
        Location.GRAPH: len(samples),
    }
    values = {}
    for feature in card.features:
        value = np.asarray(samples.values[feature.name])
        if len(value) != rows[feature.location]:
            raise GenerationError(f"{card.generator}: {feature.name} has {len(value)} rows, not {rows[feature.location]}")
        values[feature.name] = np.ascontiguousarray(value.astype(_dtype(feature, largest), copy=False))
    edges = np.ascontiguousarray(samples.edges.astype(smallest_integer(largest), copy=False))
    return Samples(samples.num_nodes, samples.num_edges, edges, values)


def _dtype(feature: Feature, largest_id: int) -> np.dtype[Any]:
    if feature.kind is Kind.SCALAR:
        return np.dtype(np.float32)
    if feature.kind in (Kind.MASK, Kind.MASK_ONE):
        return np.dtype(np.uint8)
    if feature.kind is Kind.CATEGORICAL:
        return smallest_integer(feature.classes - 1)
    return smallest_integer(largest_id)


# --------------------------------------------------------------------------------------------------------------------
# One shard


def build_shard(task: SplitTask, first: int, last: int, redraws: Mapping[int, int], path: Path) -> int:
    """Draw samples ``first`` to ``last - 1`` and write them to a shard file; return their number.

    Args:
        task: The split.
        first: Index of the first sample.
        last: One past the last.
        redraws: index -> attempt, for samples whose first draw was a duplicate.
        path: The file to write.
    """
    indices = np.arange(first, last, dtype=np.int64)
    attempts = np.array([redraws.get(int(i), 0) for i in indices], np.int64) if redraws else np.zeros_like(indices)
    samples = task.draw(indices, attempts)
    arrays = {"num_nodes": samples.num_nodes, "num_edges": samples.num_edges, "edges": samples.edges}
    hashes = structure_hashes(samples) if task.generator.unique else np.zeros((len(samples), 2), np.uint64)
    values = {f"{_VALUE}{name}": value for name, value in samples.values.items()}
    write_arrays(path, {**arrays, **values, _HASHES: hashes})
    return len(samples)


def _read_shard(path: Path) -> tuple[Samples, NDArray[np.uint64]]:
    arrays = map_arrays(path)
    values = {name.removeprefix(_VALUE): array for name, array in arrays.items() if name.startswith(_VALUE)}
    return Samples(arrays["num_nodes"], arrays["num_edges"], arrays["edges"], values), arrays[_HASHES]


# --------------------------------------------------------------------------------------------------------------------
# A whole split


@contextmanager
def default_executor(workers: int | None) -> Iterator[Executor | None]:
    """Yield a local process pool, or None for one worker (the work then runs in this process).

    Workers are started afresh (no fork, so no inherited threads or locks) and never import the user's script, so no
    ``if __name__ == "__main__"`` guard is needed. Each uses one thread.
    """
    count = workers if workers is not None else available_cores()
    if count < 1:
        raise GenerationError(f"workers must be at least 1, got {count}")
    if count == 1:
        yield None
        return
    from loky import get_reusable_executor

    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    yield get_reusable_executor(max_workers=count, timeout=30, env=threads)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SplitBuilder:
    """Builds the first ``count`` samples of one split in a dataset folder."""

    def __init__(self, card: Card, split: str, count: int, folder: Path, shard_size: int | None = None) -> None:
        self.task = SplitTask(card, split)
        self.card, self.split, self.count, self.folder = card, split, count, folder
        generator = self.task.generator
        self.parameters = generator.parse(card, split)
        self.shard_size = shard_size or max(1, min(generator.shard_size(self.parameters), count))
        self.work = folder / f".build-{split}"

    @property
    def shards(self) -> list[tuple[int, int]]:
        """First and one-past-last index of every shard."""
        return [(i, min(i + self.shard_size, self.count)) for i in range(0, self.count, self.shard_size)]

    def shard_path(self, first: int, last: int, redraws: Mapping[int, int]) -> Path:
        """Return the file of a shard; its name tells which samples were redrawn, so no stale shard is ever reused."""
        mine = sorted((i, a) for i, a in redraws.items() if first <= i < last)
        tag = "" if not mine else f"-{hash_text(repr(mine))}"
        return self.work / f"{first:09d}-{last:09d}{tag}.h5"

    def build(self, target: Path, executor: Executor | None, progress: bool | None = None) -> dict[str, Any]:
        """Draw all samples, resolve duplicates, and write ``target``; return facts for the manifest."""
        with clear_errors(self.work, "create"):
            self.work.mkdir(parents=True, exist_ok=True)
        self._warm_up()
        label = f"{self.card.id} {self.split}"
        with progress_bar(self.count, label, unit="graph", enabled=progress) as bar:
            self._run_shards({}, executor, bar)
        redraws = self._resolve_duplicates()
        if redraws:
            with progress_bar(self.count, f"{label} (redraws)", unit="graph", enabled=progress) as bar:
                self._run_shards(redraws, executor, bar)
        facts = self._assemble(target, redraws)
        shutil.rmtree(self.work, ignore_errors=True)
        return facts

    def _warm_up(self) -> None:
        """Compile the kernels once, in this process, so that workers load them from the cache; estimate the size."""
        probe = self.task.draw(np.zeros(1, np.int64), np.zeros(1, np.int64))
        structure_hashes(probe)
        sample = self.task.draw(np.arange(min(8, self.count)), np.zeros(min(8, self.count), np.int64))
        per_graph = sum(a.nbytes for a in (sample.edges, *sample.values.values())) / len(sample) + 40
        require_space(self.folder, int(2 * per_graph * self.count))  # shards and the finished file

    def _run_shards(self, redraws: Mapping[int, int], executor: Executor | None, bar: Any) -> None:
        todo: list[tuple[int, int]] = []
        for first, last in self.shards:
            if self._usable(self.shard_path(first, last, redraws)):
                bar.update(last - first)
            else:
                todo.append((first, last))
        if executor is None:
            for first, last in todo:
                bar.update(self._run_here(first, last, redraws))
        else:
            self._run_on(executor, todo, redraws, bar)

    def _usable(self, path: Path) -> bool:
        if not path.is_file():
            return False
        try:
            map_arrays(path)
        except StoreError:
            path.unlink(missing_ok=True)
            return False
        return True

    def _arguments(self, first: int, last: int, redraws: Mapping[int, int]) -> tuple[Any, ...]:
        mine = {i: a for i, a in redraws.items() if first <= i < last}
        return self.task, first, last, mine, self.shard_path(first, last, redraws)

    def _run_here(self, first: int, last: int, redraws: Mapping[int, int]) -> int:
        return build_shard(*self._arguments(first, last, redraws))

    def _run_on(
        self, executor: Executor, todo: Sequence[tuple[int, int]], redraws: Mapping[int, int], bar: Any
    ) -> None:
        """Run shards on an executor, a few in flight per worker; a shard whose worker died is tried again."""
        tries = dict.fromkeys(todo, 0)
        queue = list(reversed(todo))
        pending: dict[Future[int], tuple[int, int]] = {}
        try:
            while queue or pending:
                while queue and len(pending) < 64:
                    shard = queue.pop()
                    pending[executor.submit(build_shard, *self._arguments(*shard, redraws))] = shard
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    shard = pending.pop(future)
                    error = future.exception()
                    if error is None:
                        bar.update(future.result())
                        continue
                    if isinstance(error, (GraphBenchError, ValueError, TypeError, KeyboardInterrupt)):
                        raise error
                    tries[shard] += 1
                    if tries[shard] >= _RETRIES:
                        raise GenerationError(
                            f"{self.card.id} {self.split}: samples {shard[0]} to {shard[1] - 1} failed {_RETRIES} times "
                            f"({type(error).__name__}: {error}); finished shards are kept, run the same command again"
                        ) from error
                    _LOG.warning("shard %s failed (%s), trying again", shard, error)
                    bar.update(self._run_here(*shard, redraws))
        finally:
            for future in pending:
                future.cancel()

    def _resolve_duplicates(self) -> dict[int, int]:
        """Return index -> attempt for every sample that must be redrawn, so that all samples differ.

        The rule: sample ``i`` takes the first attempt whose graph differs from the graphs of all samples before it.
        It depends on samples 0 .. i alone, so a shorter build is a prefix of a longer one.
        """
        if not self.task.generator.unique:
            return {}
        hashes = np.concatenate([_read_shard(self.shard_path(*s, {}))[1] for s in self.shards])
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
        while queue:
            i = heapq.heappop(queue)
            for attempt in range(redraws.get(i, 0) + 1, _MAX_ATTEMPTS):
                new = structure_hashes(self.task.draw(np.array([i]), np.array([attempt])))[0].tobytes()
                holder = owner.get(new)
                if holder is None or holder > i:
                    owner[new], redraws[i] = i, attempt
                    if holder is not None:
                        heapq.heappush(queue, holder)
                    break
            else:
                raise GenerationError(
                    f"{self.card.id} {self.split}: sample {i} repeats an earlier graph in {_MAX_ATTEMPTS} draws; "
                    f"the parameters allow too few different graphs for {self.count} samples"
                )
        return redraws

    def _assemble(self, target: Path, redraws: Mapping[int, int]) -> dict[str, Any]:
        """Copy the shards into one file, in order."""
        paths = [self.shard_path(*shard, redraws) for shard in self.shards]
        shards = [_read_shard(path)[0] for path in paths]
        nodes = sum(int(s.num_nodes.sum()) for s in shards)
        edges = sum(int(s.num_edges.sum()) for s in shards)
        rows = {Location.NODE: nodes, Location.EDGE: edges, Location.GRAPH: self.count}
        first = shards[0]
        id_dtype = np.result_type(*(s.edges.dtype for s in shards))
        specs = {
            "node_ptr": ArraySpec((self.count + 1,), _pointer_dtype(nodes)),
            "edge_ptr": ArraySpec((self.count + 1,), _pointer_dtype(edges)),
            "edges": ArraySpec((edges, 2), id_dtype),
        }
        for feature in self.card.features:
            array = first.values[feature.name]
            dtype = np.result_type(*(s.values[feature.name].dtype for s in shards))
            specs[feature.name] = ArraySpec((rows[feature.location], *array.shape[1:]), dtype)
        attributes = {"id": self.card.id, "version": self.card.version, "split": self.split, "count": self.count}
        with atomic_path(target) as aside:
            file = ArrayFile(aside, specs, attributes)
            try:
                self._copy(file, shards)
            finally:
                file.close()
        arrays = map_arrays(target)
        return {
            "split": self.split,
            "count": self.count,
            "nodes": nodes,
            "edges": edges,
            "redrawn": len(redraws),
            "content": samples_hash(arrays),
        }

    def _copy(self, file: ArrayFile, shards: Sequence[Samples]) -> None:
        graph = node = edge = 0
        for shard in shards:
            file.write("node_ptr", graph + 1, node + shard.node_ptr[1:])
            file.write("edge_ptr", graph + 1, edge + shard.edge_ptr[1:])
            file.write("edges", edge, shard.edges)
            start = {Location.NODE: node, Location.EDGE: edge, Location.GRAPH: graph}
            for feature in self.card.features:
                file.write(feature.name, start[feature.location], shard.values[feature.name])
            graph += len(shard)
            node += int(shard.node_ptr[-1])
            edge += int(shard.edge_ptr[-1])


def _pointer_dtype(largest: int) -> np.dtype[Any]:
    return np.dtype(np.int32) if largest <= np.iinfo(np.int32).max else np.dtype(np.int64)


def hash_text(text: str) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of a text."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --------------------------------------------------------------------------------------------------------------------
# The folder of a dataset


def dataset_folder(card: Card, root: Path) -> Path:
    """Return ``<root>/<domain>/<name>/v<version>-<fingerprint>``."""
    fingerprint = card.fingerprint(find_generator(card.generator).version)
    return root / card.domain / card.id.split("/", 1)[1] / f"v{card.version}-{fingerprint}"


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
        if facts["split"] == split and facts["count"] >= count and (folder / name).is_file()
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
        progress: Show a progress bar; None for terminals only.
        shard_size: Graphs per unit of work; None lets the generator choose.

    Raises:
        StoreError: If the folder cannot be written or the disk is too small.
        GenerationError: If a shard keeps failing.
    """
    from filelock import FileLock

    full = card.split(split).count
    count = full if limit is None else min(limit, full)
    if count < 1:
        raise GenerationError(f"limit must be at least 1, got {limit}")
    folder = dataset_folder(card, root)
    found = find_file(card, split, count, folder)
    if found is None:
        with _build_lock(folder, split):
            found = find_file(card, split, count, folder)
            if found is None:
                found = file_name(split, count, full)
                builder = SplitBuilder(card, split, count, folder, shard_size)
                with nullcontext(executor) if executor is not None else default_executor(workers) as pool:
                    facts = builder.build(folder / found, pool, progress)
                _record(card, folder, found, facts)
    Manifest(folder).check(found)
    return folder / found


@contextmanager
def _build_lock(folder: Path, split: str) -> Iterator[None]:
    """Hold the lock of a split's build; the system frees it when the process dies, however it dies."""
    from filelock import FileLock

    with clear_errors(folder, "create"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{split}.lock")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _record(card: Card, folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    from filelock import FileLock

    generator = find_generator(card.generator)
    about = {
        "id": card.id,
        "version": card.version,
        "fingerprint": card.fingerprint(generator.version),
        "generator": {"name": generator.name, "version": generator.version},
        "card": card.model_dump(mode="json", exclude={"measured"}),
        "libraries": library_versions(),
    }
    with FileLock(folder / ".manifest.lock"):
        Manifest(folder).add_file(name, facts, about)


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that generation uses."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("graphbench", "numpy", "numba", "h5py"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found

