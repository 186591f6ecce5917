"""A split as a PyTorch Geometric dataset, backed by memory-mapped arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Batch, Data, InMemoryDataset

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Kind
from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError, GraphBenchError
from graphbench.core.files import default_root
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import stored_value
from graphbench.data.batches.batching import BatchPlan, FlatGraphs, empty_batch
from graphbench.data.batches.layouts import layout_of
from graphbench.data.batches.pair_fields import check_pairs
from graphbench.data.batches.sample_ids import SampleSize, SplitId, with_ids
from graphbench.data.components.domain import find, representation_of
from graphbench.data.store.content import objects_hash, represented_hash, selection_hash
from graphbench.data.store.labels import is_unlabelled
from graphbench.data.store.layout import data_fingerprint, dataset_folder, find_file, label_folder
from graphbench.data.store.shards import stored_trajectories
from graphbench.data.store.split_files import (
    check_files,
    find_labels,
    first_numbers,
    hash_of_first,
    split_arrays,
    warn_unlabelled,
)

torch.serialization.add_safe_globals([SampleSize, SplitId])  # fields of a graph load with ``weights_only=True``

Transform = Callable[[Data], Data]
Filter = Callable[[Data], bool]


class GraphDataset(InMemoryDataset):  # type: ignore[misc]
    """One split of a dataset.

    ``dataset[i]`` is a ``torch_geometric.data.Data`` with ``edge_index`` int64 ``[2, E]`` (both directions of
    undirected edges, as neighbouring columns), one field per feature of the card, and PyG's ``x``, ``edge_attr`` and
    ``y`` made from them. PyG's ``DataLoader`` and transforms work as on any PyG dataset; :meth:`batches` is the fast
    path. ``torch_geometric.utils.to_networkx(dataset[i], to_undirected=True)`` is a graph of NetworkX, with the
    features named as ``node_attrs`` (without ``to_undirected`` where the card's graphs are directed).

    Args:
        card: The dataset's card.
        split: Name of the split.
        path: File of the split, from ``graphbench.data.build.generation.ensure_split``. Labels of the card's task are
            read from the subfolder that is named after them.
        limit: Use only the first ``limit`` graphs.
        transform: Applied to every ``Data`` when it is accessed.
        pre_transform: Applied once to every ``Data``, at construction; the results are kept in memory.
        pre_filter: Keeps the graphs for which it returns True (decided on ``Data`` before ``pre_transform``).

    Attributes:
        card: The dataset's card.
        split: Name of the split.
        path: The file of its graphs.
        label_paths: The files of the task's labels, one per labeller; empty if the generator gives all features.
    """

    def __init__(
        self,
        card: Card,
        split: str,
        path: Path,
        *,
        limit: int | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
        pre_filter: Filter | None = None,
    ) -> None:
        super().__init__(None, transform)
        self.card, self.split, self.path = card, split, path
        self._limit = None if limit is None else whole_number("limit", limit, 1)
        self.label_paths = find_labels(card, split, path, self._limit)
        self._indices: Sequence[int] | None = None
        self._open()
        self._kept: list[Data] | None = None
        if pre_filter is not None:
            self._indices = [i for i in range(len(self)) if pre_filter(self.get(i))]
        if pre_transform is not None:
            self._kept = [pre_transform(self.get(i)) for i in self.indices()]
            self._indices = None
        warn_unlabelled(self.card, split, self.label_paths, self.failed_graphs)

    def _open(self) -> None:
        self._stored_count, arrays = split_arrays(self.card, self.path, self.label_paths, self._limit)
        schema = self.card.stored_schema
        self._stored = FlatGraphs(
            arrays["node_ptr"][: self._stored_count + 1],
            arrays["edge_ptr"][: self._stored_count + 1],
            arrays["edges"],
            {f.name: stored_value(f, arrays) for f in schema.stored_features},
            schema,
            stored_trajectories(arrays),
        )
        self._layout = layout_of(self.card, self._stored, self._stored_count, f"{self.card.address} {self.split}")
        self._count = len(self._layout)

    @property
    def flat(self) -> Any:
        """The arrays of the samples: ``FlatGraphs``, or ``SeriesGraphs`` for a card with a series."""
        return self._layout.flat

    @property
    def failed_graphs(self) -> NDArray[np.int64]:
        """Numbers of the selected graphs without a label, because a labeller failed on them; int64, usually empty."""
        if not self.card.labellers:
            return np.empty(0, np.int64)
        numbers = np.flatnonzero(is_unlabelled(self.card, self.flat.values)[: self._count]).astype(np.int64)
        return numbers if self._indices is None else np.intersect1d(numbers, np.asarray(self._indices, np.int64))

    def require_labels(self) -> None:
        """Refuse a split with unlabelled graphs among the selected ones; called by tasks that learn from labels.

        Raises:
            GraphBenchError: If a selected graph has no label; the message names the graphs and says how to omit them.
        """
        failed = self.failed_graphs
        if len(failed):
            masks = [find("labeller", name).failed for name in self.card.labellers]
            labelled = " and ".join(f"data.{mask}.item() == 0" for mask in masks)
            raise GraphBenchError(
                f"{len(failed)} graphs of {self.card.address} {self.split} have no label to predict, as the labeller "
                f"failed on them: {first_numbers(failed)}; leave the split out, or these graphs with "
                f"Loader(..., pre_filter=lambda data: {labelled})"
            )

    @property
    def data_fingerprint(self) -> str:
        """Identifier of the data, which changes with parameters, generator, labels and draw."""
        return data_fingerprint(self.card, self.path.parent)

    # Pickling (spawned DataLoader workers) sends the path, not the arrays.
    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_layout")
        state.pop("_stored")
        state.pop("_collated", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __copy__(self) -> GraphDataset:
        """Return a second dataset that shares the mapped arrays, as selections need."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def len(self) -> int:
        """Return the number of graphs before any ``dataset[indices]`` selection."""
        kept = self.__dict__.get("_kept")
        return len(kept) if kept is not None else self._count

    def get(self, idx: int) -> Data:
        """Return graph ``idx`` of the file as a ``Data`` object (a copy)."""
        if self.__dict__.get("_kept") is not None:
            kept: Data = self._kept[idx].clone()  # type: ignore[index]
            if isinstance(nodes := kept.to_dict().get("num_nodes"), SampleSize):
                kept.num_nodes = SampleSize.of(nodes, self.split_id, idx)
            return kept
        data = self._layout.item(idx)
        data.num_nodes = SampleSize.of(data.num_nodes, self.split_id, idx)
        return data

    def __getitems__(self, chosen: list[int]) -> list[Data]:
        """Return the graphs that PyTorch's loaders collate.

        Raises:
            GraphBenchError: For several trajectories: they differ in length, and PyG would join hints along time.
        """
        if self.card.hints and len(chosen) > 1:
            raise GraphBenchError(
                f"{len(chosen)} trajectories of {self.card.address} cannot be collated by PyG, as they differ in "
                "length; use batches(...), or a DataLoader with batch_size=1"
            )
        return [self[i] for i in chosen]

    @property
    def graph_numbers(self) -> NDArray[np.int64] | None:
        """Numbers of the selected graphs in the file, int64; None when all are selected in order."""
        return None if self._indices is None else np.asarray(self._indices, np.int64)

    @property
    def stored_graphs(self) -> int:
        """How many graphs of the file the selected samples are made of: one per sample, except in a series."""
        if self._kept is not None:
            return len(self)
        numbers = self.graph_numbers
        return self._stored_count if numbers is None else int(self._layout.stored_behind(numbers))

    @property
    def is_changed(self) -> bool:
        """Whether a ``transform`` or ``pre_transform`` may have changed the stored samples."""
        return self.transform is not None or self._kept is not None

    def batches(
        self,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        *,
        epoch: int = 0,
        drop_last: bool = False,
        device: torch.device | str | None = None,
        start: int = 0,
        share: tuple[int, int] = (0, 1),
    ) -> BatchPlan:
        """Return a sized iterable of PyG ``Batch`` objects, each made by one gather per array.

        With a ``transform`` or ``pre_transform`` every graph is a Python object and batches are collated by PyG:
        correct, but as slow as PyG's loader.

        Every batch may be changed by its caller. A batch on the CPU of all stored graphs in their order is kept in
        memory from its second request on (at most 1 GB); PyTorch copies a tensor of it when somebody writes into the
        tensor, or calls its ``numpy()`` or ``data_ptr()``.

        Args:
            batch_size: Graphs per batch.
            shuffle: Use a random order, a function of (seed, epoch) alone.
            seed: Seed of the order.
            epoch: Number of the epoch.
            drop_last: Leave out a last, smaller batch.
            device: Device of the tensors; None for the CPU.
            start: Skip the first ``start`` batches (to resume an epoch).
            share: ``(rank, world)``: take every ``world``-th graph of each batch, from the ``rank``-th on.

        Raises:
            ArgumentError: If a number is not whole, ``batch_size`` is below 1, ``start``, ``seed`` or ``epoch`` below
                0, or ``share`` is not a rank below its world.
        """
        batch_size = whole_number("batch_size", batch_size, 1)
        seed, epoch, start = (
            whole_number(name, value, 0) for name, value in (("seed", seed), ("epoch", epoch), ("start", start))
        )
        try:
            rank, world = (whole_number("share", number, 0) for number in share)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"share must be (rank, world), two whole numbers, got {share!r}") from error
        if rank >= world:
            raise ArgumentError(f"share must be (rank, world) with 0 <= rank < world, got {share}")
        return BatchPlan(self, batch_size, shuffle, seed, epoch, drop_last, device, start, (rank, world))

    @property
    def split_id(self) -> SplitId:
        """The identity of the split: dataset, version, data fingerprint and name."""
        cached = self.__dict__.get("_split_id")
        if cached is None or cached[0] is not self.card:
            identity = SplitId(self.card.address, self.card.version, self.data_fingerprint, self.split)
            cached = self.__dict__["_split_id"] = (self.card, identity)
        return cached[1]  # type: ignore[no-any-return]

    def make_batch(self, graphs: NDArray[np.int64] | slice, device: torch.device | str | None = None) -> Any:
        """Return the given graphs of the file as one PyG ``Batch``, or as a ``TrajectoryBatch`` where there are hints.

        The batch has the numbers of the graphs as ``sample_ids``, see ``graphbench.data.batches.sample_ids``.

        Raises:
            GraphBenchError: If trajectories are asked for that a ``transform`` or ``pre_transform`` may have changed.
        """
        return with_ids(self._batch_of(graphs, device), self.split_id, graphs)

    def _batch_of(self, graphs: NDArray[np.int64] | slice, device: torch.device | str | None) -> Any:
        if not self.is_changed:
            return self._layout.batch(graphs, device)
        if self.flat.hints is not None:
            raise GraphBenchError(
                "batches of trajectories are read from the file, so transforms do not apply; "
                "load without transform and pre_transform, or use PyG's DataLoader with batch_size=1"
            )
        numbers = range(graphs.start, graphs.stop) if isinstance(graphs, slice) else graphs.tolist()
        items = [self.get(i) for i in numbers or (0,)]
        sizes = [int(item.num_nodes) for item in items]
        if self.transform is not None:
            items = [self.transform(item) for item in items]
        if self.card.links is not None:
            check_pairs(items, sizes)
        batch = Batch.from_data_list(items) if numbers else empty_batch(items[0])
        return batch if device is None else batch.to(device)

    @property
    def samples(self) -> Samples:
        """The stored graphs of the file, up to the limit and before any selection, as flat arrays with their labels."""
        return self._stored.samples.part(self.card.stored_schema, 0, self._stored_count)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the selected graphs, independent of the file that contains them and of its format; computed once.

        For a whole file it is recorded in the manifest. The first graphs of a longer file have the hash of a file of
        that size. Selections and filters enter with the numbers of their graphs, results of ``pre_transform`` with
        their tensors. ``transform`` does not enter. Each call compares the files with their checksums again if they
        were touched since the last comparison.

        Raises:
            ChecksumMismatch: If a file was changed or damaged since it was built.
            StoreError: If a file is not recorded in its manifest.
            GraphBenchError: If ``pre_transform`` left fields that cannot be hashed.
        """
        check_files((self.path, *self.label_paths))
        cached = self.__dict__.get("_hashed")
        if cached is None or cached[0] is not self._indices or cached[1] is not self._kept:
            cached = self.__dict__["_hashed"] = (self._indices, self._kept, self._content())
        return str(cached[2])

    def _content(self) -> str:
        if self._kept is not None:
            return objects_hash(self._kept[i] for i in self.indices())
        numbers = self.graph_numbers
        count = self._count if numbers is None else int(numbers.max(initial=-1)) + 1
        behind = self._stored_count if numbers is None else self._layout.states_behind(count)
        first = hash_of_first(self.card, self.path, self.label_paths, behind) if count else ""
        representation = representation_of(self.card)
        if representation is not None:
            first = represented_hash(first, representation.name, representation.version)
        if self.card.links is not None:
            first = represented_hash(first, "links", self.card.links.mark)
        if numbers is None or np.array_equal(numbers, np.arange(count)):
            return first
        return selection_hash(first, numbers)

    @property
    def _data(self) -> Data | None:
        """All selected graphs collated into one ``Data``, as PyG's properties expect; made on first use."""
        if "_layout" not in self.__dict__:
            return None
        if "_collated" not in self.__dict__:
            self.__dict__["_collated"] = self.collate([self.get(i) for i in self.indices()])
        return self.__dict__["_collated"][0]  # type: ignore[no-any-return]

    @_data.setter
    def _data(self, value: object) -> None:
        if value is not None:
            raise AttributeError("the arrays of a GraphDataset are fixed; use transform or pre_transform")

    @property
    def num_classes(self) -> int:
        """Number of classes of the label, from its type; if the type has no classes, PyG counts the distinct values."""
        outputs = self.card.outputs
        if self._kept is None and self.transform is None and len(outputs) == 1:
            if outputs[0].kind in (Kind.MASK, Kind.MASK_ONE):
                return 2
            if outputs[0].kind is Kind.CATEGORICAL:
                return outputs[0].classes
        return int(super().num_classes)

    def copy(self, idx: slice | Sequence[int] | torch.Tensor | NDArray[Any] | None = None) -> GraphDataset:
        """Return a dataset that holds the chosen graphs, or all, in memory."""
        chosen = self if idx is None else self.index_select(idx)
        twin = copy.copy(chosen)
        twin._kept = [chosen.get(i) for i in chosen.indices()]
        twin._indices = None
        twin.__dict__.pop("_collated", None)
        return twin

    def to(self, device: int | str) -> GraphDataset:
        """Refuse, as the arrays stay on disk.

        Raises:
            GraphBenchError: Always; move batches instead.
        """
        raise GraphBenchError(
            f"a GraphDataset stays on disk and cannot move to {device!r}; use batches(..., device={device!r})"
        )

    def __getattr__(self, key: str) -> Any:
        """Return a field of all selected graphs, stacked as in one batch: ``dataset.y``, ``dataset.edge_index``."""
        names = {"x", "y", "edge_index", "edge_attr", *(f.name for f in self.__dict__["card"].features)}
        if key in names and len(self):
            plain = copy.copy(self)
            plain.transform = None
            numbers = plain.graph_numbers
            batch = plain.make_batch(slice(0, len(self)) if numbers is None else numbers)
            if key in batch:
                return batch[key]
        raise AttributeError(f"GraphDataset has no attribute {key!r}")

    def index_select(self, idx: slice | Sequence[int] | torch.Tensor | NDArray[Any]) -> GraphDataset:
        """Return a representation of the chosen graphs.

        Args:
            idx: Numbers of graphs, a slice, or one truth value per graph.

        Raises:
            IndexError: If there are more or fewer truth values than graphs, or truth values among numbers.
        """
        idx = _checked_index(idx, len(self))
        chosen: GraphDataset = super().index_select(idx)
        chosen.__dict__.pop("_collated", None)
        return chosen

    def __repr__(self) -> str:
        """Return e.g. ``GraphDataset(algoreas/mst_easy, split=train, graphs=1000000)``."""
        return f"GraphDataset({self.card.address}, split={self.split}, graphs={len(self)})"


def finished_split(card: Card, split: str, root: str | Path | None = None) -> GraphDataset | None:
    """Return a whole split with the labels of the card's task; None if a file of it is not on this machine.

    Args:
        card: The card.
        split: Name of the split.
        root: Folder of the datasets; None for the default one.

    Raises:
        StoreError: If a file was made by other code or cannot be read.
    """
    data_root = default_root() if root is None else Path(root).expanduser()
    count = card.split(split).count
    folder = dataset_folder(card, data_root)
    stored = card.stored_name(split)
    name = find_file(stored, count, folder)
    if name is None or not all(
        find_file(stored, count, label_folder(card, labeller, folder)) for labeller in card.labellers
    ):
        return None
    return GraphDataset(card, split, folder / name)


def _checked_index(chosen: Any, count: int) -> Any:
    """Return a selection of graphs, after checking that boolean ones have one value per graph."""
    if isinstance(chosen, torch.Tensor | np.ndarray):
        is_mask = chosen.dtype in (torch.bool, np.dtype(bool))
        length = len(chosen.reshape(-1))
    else:
        truths = [isinstance(i, bool | np.bool_) for i in chosen] if isinstance(chosen, list | tuple) else []
        is_mask, length = any(truths), len(truths)
        if is_mask and not all(truths):
            raise IndexError("a selection mixes truth values and numbers; give one or the other")
    if is_mask and length != count:
        raise IndexError(f"{length} truth values cannot select from {count} graphs; give one per graph, or numbers")
    return torch.as_tensor(chosen, dtype=torch.bool) if is_mask else chosen
