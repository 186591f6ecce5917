"""Shards, the units of work of a build: consecutive samples that are written to a small file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import GenerationError, GraphBenchError, StoreError
from graphbench.core.files import atomic_path
from graphbench.core.foreign import causes, described
from graphbench.core.plugins import load_targets
from graphbench.core.ragged import pointer_dtype
from graphbench.data.arrays.graph_checks import graph_problem
from graphbench.data.arrays.hashing import sample_hashes, samples_hash
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import POINTER, Texts, stored_arrays, stored_names_of, stored_value
from graphbench.data.arrays.trajectories import PREFIX, Trajectories
from graphbench.data.components.domain import domain_of, fault_of, find
from graphbench.data.components.generators import Generator, Labeller
from graphbench.data.store.casting import compact
from graphbench.data.store.files import ArrayFile, ArraySpec, file_attribute, map_arrays, write_arrays

_HASHES = "hashes"
_CONTENT = "content"  # attribute of a shard file: the hash of its arrays, by which a resumed build checks it
_FACTS = "facts"  # attribute of a shard file: ``Samples.facts`` as JSON
_VALUE = "value."  # prefix of feature arrays in a shard file


@dataclass(frozen=True)
class SplitTask:
    """The description of a generation job of one split that is sent to workers."""

    card: Card
    split: str

    probe: ClassVar[int] = 8  # samples drawn to compile and to estimate the size

    @property
    def schema(self) -> Schema:
        """The schema of the samples that are stored."""
        return self.card.graph_schema

    @property
    def maker(self) -> Generator:
        """The registered generator."""
        return find("generator", self.card.generator)

    @property
    def parameters(self) -> Any:
        """The generator's parameters for this split."""
        return self.maker.parse(self.card, self.split)

    def draw(self, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the samples of the given indices, in the dtypes of the store.

        Raises:
            GenerationError: If the generator fails, or returns graphs or arrays that do not match the card.
        """
        generator = self.maker
        try:
            samples = generator.draw(self.card, self.split, indices, attempts)
        except GraphBenchError:
            raise
        except Exception as error:
            if interrupted(error):
                raise KeyboardInterrupt from error
            if not generator.drawn:
                raise StoreError(_needs_a_source(self.card)) from error
            raise GenerationError(
                f"the generator {generator.name} failed on samples {indices[0]} to "
                f"{indices[-1]} ({described(error)}); {fault_of(generator, error)}"
            ) from error
        if not generator.drawn:
            raise StoreError(_needs_a_source(self.card))
        if not isinstance(samples, Samples):
            raise GenerationError(
                f"the generator {generator.name} returned {type(samples).__name__}, not "
                f"graphbench.data.arrays.samples.Samples; {fault_of(generator)}"
            )
        problem = graph_problem(self.schema, samples, indices)
        if problem:
            raise GenerationError(
                f"the generator {generator.name} returned wrong graphs: {problem}; {fault_of(generator)}"
            )
        return compact(self.schema, samples, generator)


def _needs_a_source(card: Card) -> str:
    """Return the message that a dataset is read from files, and which source reads them."""
    sources = domain_of(card).components("source")
    named = [name for name, source in sources.items() if not source.part_of]
    if not named:
        return f"{card.id} is read from files, but its domain {card.domain} has no source that reads them; register one"
    others = f" (sources: {', '.join(named)})" if len(named) > 1 else ""
    return (
        f"{card.id} is read from files, not generated: give source={named[0]!r} and folder= (--source {named[0]} "
        f"--folder DIR){others}"
    )


def interrupted(error: BaseException | None) -> bool:
    """Return whether an error was caused by Ctrl-C, which a compiled kernel raises as a SystemError."""
    return any(isinstance(cause, KeyboardInterrupt) for cause in causes(error, contexts=True))


class MakerTask(Protocol):
    """The description of a job that is sent to workers: samples of a split, or their labels."""

    @property
    def schema(self) -> Schema:
        """The schema of the samples that are stored."""

    @property
    def maker(self) -> Generator | Labeller:
        """The generator or labeller."""

    def draw(self, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the samples of the given indices, in the dtypes of the store."""


def build_shard(
    task: MakerTask, first: int, last: int, redraws: Mapping[int, int], path: Path, plugins: Sequence[str] = ()
) -> int:
    """Draw samples ``first`` to ``last - 1`` and write them to a shard file; return their number.

    Args:
        task: The split.
        first: Index of the first sample.
        last: One past the last.
        redraws: index -> attempt, for samples that were duplicates at the first draw.
        path: The file to write; if it exists and is intact, nothing is drawn, as a cluster may run a job twice.
        plugins: Plug-ins that the worker must load (:func:`graphbench.core.plugins.load_targets`).
    """
    load_targets(plugins)
    if is_whole(path):
        return last - first
    indices = np.arange(first, last, dtype=np.int64)
    attempts = np.array([redraws.get(int(i), 0) for i in indices], np.int64) if redraws else np.zeros_like(indices)
    samples = task.draw(indices, attempts)
    arrays = {"num_nodes": samples.num_nodes, "num_edges": samples.num_edges, "edges": samples.edges}
    maker = task.maker
    hashes = np.zeros((len(samples), 2), np.uint64)
    if maker.unique:
        hashes = sample_hashes(samples, task.schema, maker.unique_inputs)
    values = {f"{_VALUE}{name}": value for name, value in stored_arrays(samples.values).items()}
    hints = {} if samples.hints is None else samples.hints.arrays()
    arrays |= {**values, **hints, _HASHES: hashes}
    facts = {_FACTS: np.bytes_(json.dumps(samples.facts).encode())} if samples.facts else {}
    write_arrays(path, arrays, {_CONTENT: _content(arrays), **facts})
    return len(samples)


def is_whole(path: Path) -> bool:
    """Return whether a shard file exists and is intact, by its content hash."""
    if not path.is_file():
        return False
    try:
        return bool(file_attribute(path, _CONTENT) == _content(map_arrays(path)))
    except StoreError:
        return False


def _content(arrays: Mapping[str, NDArray[Any]]) -> np.bytes_:
    # Of fixed length: HDF5 keeps other strings in a heap, and reading one from a damaged heap may never end.
    return np.bytes_(samples_hash(arrays))


def read_shard(schema: Schema, path: Path) -> Samples:
    """Return the samples of a shard file, memory-mapped: the file stays open while they are referenced."""
    arrays = map_arrays(path)
    value_arrays = {name.removeprefix(_VALUE): array for name, array in arrays.items() if name.startswith(_VALUE)}
    values = {f.name: stored_value(f, value_arrays) for f in schema.stored_features}
    hints = stored_trajectories(arrays)
    return Samples(arrays["num_nodes"], arrays["num_edges"], arrays["edges"], values, hints)


def shard_hashes(path: Path) -> NDArray[np.uint64]:
    """Return the structure hashes of the samples of a shard file, uint64 ``[S, 2]``, in memory."""
    return np.array(map_arrays(path)[_HASHES])


def shard_facts(path: Path) -> dict[str, Any]:
    """Return the facts of the samples of a shard file."""
    encoded = file_attribute(path, _FACTS)
    return {} if encoded is None else dict(json.loads(bytes(encoded)))


def arrays_of_split(schema: Schema, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a finished split file, memory-mapped.

    Raises:
        StoreError: If the file cannot be read, or an array of the card's is missing.
    """
    arrays = map_arrays(path)
    hints = [f"{PREFIX}step_ptr"] if schema.hints else []
    values = [name for f in schema.stored_features for name in stored_names_of(f)]
    missing = [name for name in ("node_ptr", "edge_ptr", "edges", *values, *hints) if name not in arrays]
    if missing:
        raise StoreError(f"{path} lacks the arrays {', '.join(missing)}; delete it and it will be rebuilt")
    return arrays


def stored_samples(schema: Schema, path: Path) -> Samples:
    """Return all samples of a finished split file, memory-mapped."""
    arrays = arrays_of_split(schema, path)
    nodes, edges = np.diff(arrays["node_ptr"]).astype(np.int64), np.diff(arrays["edge_ptr"]).astype(np.int64)
    values = {f.name: stored_value(f, arrays) for f in schema.stored_features}
    return Samples(nodes, edges, arrays["edges"], values, stored_trajectories(arrays))


def join_shards(schema: Schema, attributes: Mapping[str, Any], paths: Sequence[Path], target: Path) -> dict[str, int]:
    """Write the samples of shard files, in order, to the file of a split; return its sizes.

    Shards are opened one after the other, as there may be more of them than a process may open files.
    """
    return write_split(schema, attributes, lambda: (read_shard(schema, path) for path in paths), target)


def write_split(
    schema: Schema, attributes: Mapping[str, Any], shards: Callable[[], Iterable[Samples]], target: Path
) -> dict[str, int]:
    """Write samples, shard after shard, to the file of a split; return its sizes.

    Args:
        schema: The schema of the samples.
        attributes: Attributes of the file, in addition to the number of samples: id, version and split.
        shards: Returns the shards; it is called twice.
        target: The file.
    """
    rows = dict.fromkeys((Location.NODE, Location.EDGE, Location.GRAPH), 0)
    sizes: Counter[str] = Counter()  # of texts, in bytes
    kinds: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}  # array -> shape of a row, dtype
    parts: list[Trajectories] = []
    for shard in shards():
        rows[Location.NODE] += int(shard.num_nodes.sum())
        rows[Location.EDGE] += int(shard.num_edges.sum())
        rows[Location.GRAPH] += len(shard)
        for name, value in {"edges": shard.edges, **shard.values}.items():
            if isinstance(value, Texts):
                sizes[name] += len(value.content)
            else:
                shape, dtype = kinds.get(name, (value.shape[1:], value.dtype))
                if value.shape[1:] != shape:
                    raise GenerationError(
                        f"{name} has rows of the shape {value.shape[1:]} in some samples and {shape} in others; "
                        "a generator must give the same shape for all samples"
                    )
                kinds[name] = (shape, np.result_type(dtype, value.dtype))
        if shard.hints is not None:
            parts.append(Trajectories.of_arrays({name: np.array(a) for name, a in shard.hints.arrays().items()}))
    count = rows[Location.GRAPH]
    specs = {
        "node_ptr": ArraySpec((count + 1,), pointer_dtype(rows[Location.NODE])),
        "edge_ptr": ArraySpec((count + 1,), pointer_dtype(rows[Location.EDGE])),
        "edges": ArraySpec((rows[Location.EDGE] if schema.lists_edges else 0, 2), kinds["edges"][1]),
    }
    for feature in schema.stored_features:
        name, length = feature.name, rows[feature.location]
        if feature.kind is Kind.TEXT:
            specs[name] = ArraySpec((sizes[name],), np.dtype(np.uint8))
            specs[name + POINTER] = ArraySpec((length + 1,), pointer_dtype(sizes[name]))
        else:
            specs[name] = ArraySpec((length, *kinds[name][0]), kinds[name][1])
    hints = _join_hints(parts)
    specs |= {name: ArraySpec(array.shape, array.dtype) for name, array in hints.items()}
    with atomic_path(target) as aside, ArrayFile(aside, specs, {**attributes, "count": count}) as file:
        _copy(schema, file, shards())
        for name, array in hints.items():
            file.write(name, 0, array)
    return {"count": count, "nodes": rows[Location.NODE], "edges": rows[Location.EDGE]}


def _copy(schema: Schema, file: ArrayFile, shards: Iterable[Samples]) -> None:
    graph = node = edge = 0
    written = {f.name: 0 for f in schema.stored_features if f.kind is Kind.TEXT}  # bytes
    for name in ("node_ptr", "edge_ptr", *(f"{name}{POINTER}" for name in written)):
        file.write(name, 0, np.zeros(1, np.int64))
    for shard in shards:
        file.write("node_ptr", graph + 1, node + shard.node_ptr[1:])
        file.write("edge_ptr", graph + 1, edge + shard.edge_ptr[1:])
        if schema.lists_edges:
            file.write("edges", edge, shard.edges)
        start = {Location.NODE: node, Location.EDGE: edge, Location.GRAPH: graph}
        for feature in schema.stored_features:
            first, value = start[feature.location], shard.values[feature.name]
            if isinstance(value, Texts):
                file.write(feature.name, written[feature.name], value.content)
                file.write(feature.name + POINTER, first + 1, written[feature.name] + value.ptr[1:])
                written[feature.name] += len(value.content)
            else:
                file.write(feature.name, first, value)
        graph += len(shard)
        node += int(shard.node_ptr[-1])
        edge += int(shard.edge_ptr[-1])


def _join_hints(parts: Sequence[Trajectories]) -> dict[str, NDArray[Any]]:
    """Return the hints of all shards as arrays; they are small, so they are joined in memory."""
    arrays = Trajectories.join(parts).arrays() if parts else {}
    return {
        name: array.astype(pointer_dtype(int(array[-1]))) if name.endswith("ptr") else array
        for name, array in arrays.items()
    }


def stored_trajectories(arrays: Mapping[str, NDArray[Any]]) -> Trajectories | None:
    """Return the hints in the arrays of a file, or None."""
    return Trajectories.of_arrays(arrays) if f"{PREFIX}step_ptr" in arrays else None
