"""The ids of the samples in a batch (split and numbers), so that a score can name the samples it was measured on.

A batch of :meth:`.GraphDataset.batches` has its ids as the attribute ``sample_ids``, beside its fields. A single
``Data`` has them in its number of nodes, a :class:`SampleSize`: PyG keeps this number, sample by sample, when it
collates graphs, so the ids survive PyG's ``DataLoader``, its worker processes and its transforms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ATTRIBUTE = "sample_ids"


class SplitId(NamedTuple):
    """The identity of a split, which does not depend on how its data are loaded.

    Attributes:
        dataset: The card's address, e.g. ``algoreas/mst_easy``.
        version: The card's version.
        data: Fingerprint of the data, which differs between draws, limits of parameters and labels.
        split: Name of the split.
    """

    dataset: str
    version: int
    data: str
    split: str


@dataclass(frozen=True)
class SampleIds:
    """Samples of one split.

    Attributes:
        split: The split.
        numbers: int64 ``[S]``, the numbers of the samples in it, in any order; a sample may occur several times.
    """

    split: SplitId
    numbers: NDArray[np.int64]


class SampleSize(int):
    """The number of nodes of a graph, which also holds the id of the graph: its split and its number.

    Attributes:
        split: The split.
        number: Number of the sample in it.
    """

    split: SplitId
    number: int

    @classmethod
    def of(cls, nodes: int, split: SplitId, number: int) -> SampleSize:
        """Return the number of nodes of a sample."""
        size = cls(nodes)
        size.split, size.number = split, number
        return size


def with_ids(batch: Any, split: SplitId, numbers: NDArray[np.int64] | slice) -> Any:
    """Return the batch itself, after adding the ids of its samples; none of its fields changes.

    Args:
        batch: A PyG ``Batch``, or another batch with ``num_graphs``.
        split: The split.
        numbers: The numbers of the samples in it, in the order of the batch.
    """
    chosen = np.arange(numbers.start, numbers.stop) if isinstance(numbers, slice) else numbers
    batch.__dict__[_ATTRIBUTE] = SampleIds(split, chosen)
    return batch


def ids_of(samples: Any) -> SampleIds | None:
    """Return the ids of the samples that a batch, a ``Data`` or a list of ``Data`` holds.

    Args:
        samples: PyG graphs or another batch; any other object has no ids.

    Returns:
        The ids; None if they are unknown, or if their number differs from the number of graphs.
    """
    if isinstance(samples, (list, tuple)):
        return _of_sizes([_nodes_of(graph) for graph in samples])
    ids = getattr(samples, "__dict__", {}).get(_ATTRIBUTE)
    if ids is None:
        store = getattr(samples, "__dict__", {}).get("_store")
        sizes = getattr(store, "__dict__", {}).get("_num_nodes")
        ids = _of_sizes([_nodes_of(samples)] if sizes is None else sizes)
    graphs = getattr(samples, "num_graphs", 1)
    return ids if ids is not None and len(ids.numbers) == graphs else None


def joined(ids: Iterable[SampleIds | None]) -> tuple[SampleIds, ...]:
    """Return the samples of several batches by split; empty if a batch has no ids."""
    by_split: dict[SplitId, list[NDArray[np.int64]]] = {}
    for part in ids:
        if part is None:
            return ()
        by_split.setdefault(part.split, []).append(part.numbers)
    return tuple(SampleIds(split, np.concatenate(numbers)) for split, numbers in by_split.items())


def _nodes_of(graph: Any) -> Any:
    """Return the number of nodes as a ``Data`` holds it; None where it holds none."""
    store: Any = getattr(graph, "__dict__", {}).get("_store")
    return store.get("num_nodes") if hasattr(store, "get") else None


def _of_sizes(sizes: Any) -> SampleIds | None:
    if not isinstance(sizes, Sequence) or not sizes or not all(isinstance(size, SampleSize) for size in sizes):
        return None
    if any(size.split != sizes[0].split for size in sizes):
        return None
    return SampleIds(sizes[0].split, np.array([size.number for size in sizes], np.int64))
