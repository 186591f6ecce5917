"""From flat arrays to batches: one gather per array, no Python object per graph."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.catalog.schema import Schema
from graphbench.core.ragged import offsets
from graphbench.data.arrays.quantisation import unpack
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts, take_rows
from graphbench.data.arrays.trajectories import Trajectories

Array = NDArray[Any]
_SHARED = "_graphbench_shared"  # attribute of a tensor
_INTEGER_KINDS = (Kind.MASK, Kind.MASK_ONE, Kind.CATEGORICAL, Kind.POINTER, Kind.PERMUTATION)


@dataclass(frozen=True)
class FlatGraphs:
    """The arrays of a split, as they are stored.

    Attributes:
        node_ptr: ``[G + 1]``, first node row of every graph.
        edge_ptr: ``[G + 1]``, first stored edge row of every graph.
        edges: ``[E, 2]``, node ids local to the graph.
        values: feature name -> array, or texts, with one row per node, stored edge or graph, as in
            :class:`~graphbench.data.arrays.samples.Samples`.
        schema: The schema of the arrays: the features in the order of the card, and whether a stored edge is an arc.
            Batches hold both directions of an edge that is no arc.
        hints: The hints over time; None where there are none.
    """

    node_ptr: Array
    edge_ptr: Array
    edges: Array
    values: Mapping[str, Any]
    schema: Schema
    hints: Trajectories | None = None

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in the order of the card."""
        return self.schema.features

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.node_ptr) - 1

    @cached_property
    def samples(self) -> Samples:
        """The graphs in the form that the functions of domains take; hints are left out."""
        nodes, edges = self.node_ptr.astype(np.int64), self.edge_ptr.astype(np.int64)
        return Samples(nodes[1:] - nodes[:-1], edges[1:] - edges[:-1], self.edges, self.values)

    def gather(self, graphs: NDArray[np.int64] | slice) -> dict[str, Any]:
        """Return the fields of a batch of graphs as NumPy arrays.

        Args:
            graphs: Graph numbers, or a slice of consecutive ones (faster: no index is built).

        Returns:
            ``edge_index`` int64 ``[2, E]``, ``batch`` int64 ``[N]``, ``ptr`` int64 ``[B + 1]``, ``edge_ptr`` int64
            ``[B + 1]`` (columns of ``edge_index``), and one array per feature, ``[items]``, or ``[items, d]`` for
            ``scalar(d)``; of texts a list of strings, of texts at nodes one list per graph.
        """
        whole = isinstance(graphs, slice)
        following = slice(graphs.start + 1, graphs.stop + 1) if isinstance(graphs, slice) else graphs + 1
        first_node, first_edge = self.node_ptr[graphs], self.edge_ptr[graphs]
        nodes = (self.node_ptr[following] - first_node).astype(np.int64)
        edges = (self.edge_ptr[following] - first_edge).astype(np.int64)
        ptr, edge_ptr = offsets(nodes), offsets(edges)

        def rows(array: Any, location: Location) -> Any:
            if location is Location.GRAPH:
                return array[graphs]
            first, to = (first_node, ptr) if location is Location.NODE else (first_edge, edge_ptr)
            if whole:
                return array[int(first[0]) : int(first[0]) + int(to[-1])]
            return take_rows(array, first, to)

        local = _all_pairs(nodes) if self.schema.complete else rows(self.edges, Location.EDGE)
        start = np.repeat(ptr[:-1], edges) if len(nodes) > 1 else np.zeros(1, np.int64)
        copies = 1 if self.schema.directed else 2
        fields: dict[str, Any] = {
            "edge_index": _edge_index(local, start, self.schema.directed),
            "batch": np.repeat(np.arange(len(nodes)), nodes),
            "ptr": ptr,
            "edge_ptr": edge_ptr * copies,
        }
        for feature in self.features:
            if feature.stage is Stage.HINT:
                continue
            taken = rows(self.values[feature.name], feature.location)
            if isinstance(taken, Texts):
                fields[feature.name] = _strings(taken, None if feature.location is Location.GRAPH else ptr)
            else:
                fields[feature.name] = self._field(feature, taken)
        return fields

    def tensors(
        self, graphs: NDArray[np.int64] | slice, device: torch.device | str | None
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return the fields of a batch on a device, and the offsets of nodes and edges on the CPU."""
        return on_device_with_offsets(self.gather(graphs), device)

    def _field(self, feature: Feature, rows: Array) -> Array:
        dtype = np.int64 if feature.kind in _INTEGER_KINDS else np.float32
        is_packed = feature.name in self.schema.packed
        if is_packed:
            rows = unpack(rows, self.schema.packed[feature.name])
        if feature.location is not Location.EDGE or self.schema.directed:
            return rows.astype(dtype, copy=not is_packed)
        row_shape = feature.row_shape
        if rows.ndim == 2 + len(row_shape):  # one value per direction
            return rows.astype(dtype).reshape(-1, *row_shape)
        return np.repeat(rows.astype(dtype), 2, axis=0)


def _strings(texts: Texts, ptr: NDArray[np.int64] | None) -> list[Any]:
    strings = texts.strings()
    if ptr is None:
        return strings
    return [strings[a:b] for a, b in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)]


def on_device_with_offsets(
    gathered: Mapping[str, Any], device: torch.device | str | None
) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
    """Return gathered fields as tensors on a device (None: the CPU), and offsets of nodes and edges on the CPU."""
    fields = as_tensors(gathered)
    ptr, edge_ptr = fields["ptr"], fields.pop("edge_ptr")
    if device is not None:
        fields = {n: move(v, device) if isinstance(v, torch.Tensor) else v for n, v in fields.items()}
    return fields, ptr, edge_ptr


def as_tensors(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return gathered fields with every array as a tensor; lists of strings stay."""
    return {name: value if isinstance(value, list) else torch.from_numpy(value) for name, value in fields.items()}


def _all_pairs(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64 ``[sum of n * n, 2]``: all pairs of every graph, row after row."""
    pairs = [np.stack(np.divmod(np.arange(n * n), n), axis=1) for n in nodes.tolist()]
    return np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)


def _edge_index(local: Array, start: NDArray[np.int64], directed: bool) -> NDArray[np.int64]:
    """Return int64 ``[2, E]``; the two directions of an undirected edge are neighbouring columns.

    Args:
        local: ``[edges, 2]``, nodes of the edges.
        start: int64 ``[edges]`` or ``[1]``, the number of node 0 of the edges' graphs.
        directed: Whether an edge is an arc.
    """
    if directed:
        index = np.empty((2, len(local)), np.int64)
        np.add(local[:, 0], start, out=index[0])
        np.add(local[:, 1], start, out=index[1])
        return index
    both = np.empty((2, len(local), 2), np.int64)
    np.add(local[:, 0], start, out=both[0, :, 0])
    np.add(local[:, 1], start, out=both[0, :, 1])
    both[1, :, 0] = both[0, :, 1]
    both[1, :, 1] = both[0, :, 0]
    return both.reshape(2, -1)


def standard_fields(fields: Mapping[str, Any], features: tuple[Feature, ...]) -> dict[str, Any]:
    """Return PyG's ``x``, ``edge_attr`` and ``y`` built from the named fields; a field without values is left out.

    ``x`` and ``edge_attr`` are float32 ``[items, columns]``: masks have one column, scalars as many as their width,
    and class numbers are one-hot. ``y`` holds the first output and the outputs at the same location:
    ``[items]`` for one output, ``[items, d]`` if this output is a ``scalar(d)``, and ``[items, K]`` for several
    outputs, with their columns concatenated in the card's order. If the first output is a text, ``y`` is its texts.
    Where ``fields`` has ``edge_attr`` already, it is not built again.
    """
    standard: dict[str, Any] = {}
    for name, location in (("x", Location.NODE), ("edge_attr", Location.EDGE)):
        if name in fields:
            standard[name] = fields[name]
            continue
        inputs = select(features, Stage.INPUT, location)
        columns = [_columns(fields[f.name], f) for f in inputs if f.kind is not Kind.TEXT]
        if columns:
            standard[name] = columns[0] if len(columns) == 1 else torch.cat(columns, dim=1)
    outputs = select(features, Stage.OUTPUT)
    if not outputs:  # graphs without labels
        return standard
    if outputs[0].kind is Kind.TEXT:
        return {**standard, "y": fields[outputs[0].name]}
    same_items = [f for f in outputs if f.location is outputs[0].location and f.kind is not Kind.TEXT]
    columns = [fields[f.name] for f in same_items]
    standard["y"] = (
        columns[0] if len(columns) == 1 else torch.cat([v if v.dim() > 1 else v[:, None] for v in columns], 1)
    )
    return standard


def _columns(values: torch.Tensor, feature: Feature) -> torch.Tensor:
    if feature.kind is Kind.CATEGORICAL:
        return torch.nn.functional.one_hot(values, feature.classes).float()
    return values.float().view(len(values), values.shape[1:].numel())


_BATCH_CLASS: type[Batch] = type(Batch(_base_cls=Data))  # PyG creates this class, slowly, for every Batch()


class Graphs(Protocol):
    """Graphs that can be batched: ``FlatGraphs``, or graphs that are derived from stored graphs."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """Their features."""

    def tensors(
        self, graphs: NDArray[np.int64] | slice, device: torch.device | str | None
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return the fields of a batch on a device, and the offsets of nodes and edges on the CPU."""


def make_batch(flat: Graphs, graphs: NDArray[np.int64] | slice, device: torch.device | str | None = None) -> Batch:
    """Return a PyG ``Batch`` of the given graphs."""
    fields, ptr, edge_ptr = flat.tensors(graphs, device)
    fields.update(standard_fields(fields, flat.features))
    batch = object.__new__(_BATCH_CLASS)
    Data.__init__(batch)
    batch._store._mapping.update(fields)
    batch._store._mapping["num_nodes"] = len(fields["batch"])
    batch._num_graphs = len(edge_ptr) - 1
    _set_slices(batch, fields, ptr, edge_ptr, flat.features)
    return batch


def empty_batch(example: Data) -> Batch:
    """Return a PyG ``Batch`` of no graphs, with the fields of an example."""
    batch = Batch.from_data_list([example])
    for name in list(batch.keys()):
        value = batch[name]
        if isinstance(value, torch.Tensor):
            batch[name] = value.narrow(example.__cat_dim__(name, value) or 0, 0, 0)
        elif isinstance(value, list):
            batch[name] = []
    batch.num_nodes, batch.ptr, batch._num_graphs = 0, torch.zeros(1, dtype=torch.long), 0
    return batch


def _set_slices(
    batch: Batch,
    fields: Mapping[str, Any],
    ptr: torch.Tensor,
    edge_ptr: torch.Tensor,
    features: tuple[Feature, ...],
) -> None:
    """Fill the tables with which PyG separates a batch (``batch[i]``, ``to_data_list``)."""
    count = len(edge_ptr) - 1
    graph_ptr = torch.arange(count + 1)
    by_location = {Location.NODE: ptr, Location.EDGE: edge_ptr, Location.GRAPH: graph_ptr}
    outputs = select(features, Stage.OUTPUT)
    # slices of pairs follow from the candidates, see ``PairOffsets.set``
    slices = {
        f.name: graph_ptr if f.kind is Kind.TEXT else by_location[f.location]
        for f in features
        if f.location is not Location.PAIR
    }
    slices |= {"x": ptr, "edge_index": edge_ptr, "edge_attr": edge_ptr}
    if outputs and outputs[0].name in slices:
        slices["y"] = slices[outputs[0].name]
    names = [name for name in fields if name in slices]
    zero = torch.zeros(count, dtype=torch.long)
    batch._slice_dict = {name: slices[name] for name in names}
    batch._inc_dict = {name: ptr[:-1] if name == "edge_index" else zero for name in names}
    batch._store.__dict__["_num_nodes"] = (ptr[1:] - ptr[:-1]).tolist()


def on_device(batch: Any, device: torch.device | str) -> Any:
    """Return a batch on a device; the given batch stays where it is, and copies to a GPU are asynchronous.

    Args:
        batch: A PyG ``Data`` or ``Batch``, or another batch with a method ``to``.
        device: The device.
    """
    target = torch.device(device)
    if target.type != "cuda" or not isinstance(batch, Data):
        return batch.to(target)
    return copy.copy(batch).apply(lambda tensor: move(tensor, target))


def move(tensor: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """Return a tensor on a device; the copy from the CPU to a GPU is asynchronous.

    A tensor that batches share (:func:`share`) is copied to each device once.
    """
    target = torch.device(device)
    if target.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(target)
    kept = facts_of(tensor)
    if kept is None:
        return _pinned(tensor).to(target, non_blocking=True)
    if target not in kept:
        kept[target] = share(_pinned(tensor).to(target, non_blocking=True), kept[COPIES])
    copied: torch.Tensor = kept[target]
    return copied


def _pinned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in pinned memory, which cannot hold a tensor that repeats its numbers (``expand``) as it is."""
    return tensor.contiguous().pin_memory()


COPIES = "copies"
"""Key among the facts about a shared tensor: of how many equal parts, one for each graph, it consists."""


def share(tensor: torch.Tensor, copies: int = 1) -> torch.Tensor:
    """Mark a tensor as part of many batches, so that copies and derived facts are made once; return the tensor.

    Nobody may write into such a tensor.

    Args:
        tensor: The tensor.
        copies: The number of graphs of the batches, if they are copies of one graph.
    """
    setattr(tensor, _SHARED, {COPIES: copies})
    return tensor


def facts_of(tensor: torch.Tensor) -> dict[Any, Any] | None:
    """Return the dictionary in which facts about a shared tensor are kept; None for a tensor of one batch."""
    kept: dict[Any, Any] | None = getattr(tensor, _SHARED, None)
    return kept


class Batchable(Protocol):
    """A dataset that can be batched."""

    @property
    def graph_numbers(self) -> NDArray[np.int64] | None:
        """Numbers of the chosen graphs in the split; None for all of them."""

    def __len__(self) -> int:
        """Return the number of graphs."""

    def make_batch(self, numbers: NDArray[np.int64] | slice, device: torch.device | str | None) -> Batch:
        """Return the batch of some graphs of the split."""


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """A sized, repeatable iterable of batches; :meth:`.GraphDataset.batches` explains the attributes."""

    dataset: Batchable
    batch_size: int
    shuffle: bool
    seed: int
    epoch: int
    drop_last: bool
    device: torch.device | str | None
    start: int
    share: tuple[int, int]

    @property
    def _total(self) -> int:
        """Number of batches of an epoch."""
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __len__(self) -> int:
        """Return the number of batches that iteration yields."""
        return max(0, self._total - self.start)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        rank, world = self.share
        numbers = self.dataset.graph_numbers
        order = None
        if self.shuffle:
            generator = np.random.Generator(np.random.Philox(key=self.seed, counter=self.epoch << 128))
            order = generator.permutation(len(self.dataset))
        for b in range(self.start, self._total):
            first, last = b * self.batch_size, min((b + 1) * self.batch_size, len(self.dataset))
            chosen: NDArray[np.int64] | slice
            if order is None and numbers is None and world == 1:
                chosen = slice(first, last)
            else:
                chosen = np.arange(first, last) if order is None else order[first:last]
                chosen = chosen[rank::world]
                if numbers is not None:
                    chosen = numbers[chosen]
            yield self.dataset.make_batch(chosen, self.device)
