"""The layouts of the samples of a split: how batches and single samples are made of its arrays.

There are five layouts: stored graphs, graph representations that are derived from stored graphs, trajectories with
hints over time, times of a series, and graphs with hidden links. A
:class:`~graphbench.data.batches.dataset.GraphDataset` has one of them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data as Data  # domains name the type without importing torch

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature
from graphbench.catalog.links import PAIRS, QUERIES
from graphbench.catalog.schema import Schema
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.batching import FlatGraphs, as_tensors, make_batch, standard_fields
from graphbench.data.batches.kept_batch import KeptBatch
from graphbench.data.batches.links import LinkGraphs
from graphbench.data.batches.pair_fields import PairOffsets
from graphbench.data.batches.series import SeriesGraphs
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, make_trajectory_batch
from graphbench.data.components.domain import representation_of
from graphbench.data.components.representations import Representation, represented

Chosen = NDArray[np.int64] | slice
"""Numbers of samples, or a slice of consecutive ones."""


class SampleLayout(Protocol):
    """The samples of a split.

    Attributes:
        schema: The schema of a sample.
        flat: The arrays of the samples; of derived graphs the arrays of the stored graphs.
    """

    schema: Schema
    flat: Any

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def batch(self, samples: Chosen, device: torch.device | str | None = None) -> Any:
        """Return samples as one batch on a device (None: the CPU)."""
        ...

    def item(self, index: int) -> Data:
        """Return one sample as a ``Data`` object (a copy)."""
        ...

    def stored_behind(self, samples: NDArray[np.int64]) -> int:
        """Return the number of stored graphs that some samples are made of."""
        ...

    def states_behind(self, count: int) -> int:
        """Return the number of stored graphs, from the first on, that the first ``count`` samples are made of."""
        ...


class GraphLayout:
    """Samples that are stored graphs.

    Args:
        schema: The schema of a sample.
        flat: The stored graphs, or the samples of a series.
    """

    def __init__(self, schema: Schema, flat: Any) -> None:
        self.schema, self.flat = schema, flat
        self._whole = KeptBatch()

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.flat)

    def batch(self, samples: Chosen, device: torch.device | str | None = None) -> Any:
        """Return samples as one PyG ``Batch``; see :func:`~graphbench.data.batches.batching.make_batch`.

        The batch of all stored graphs in their order, on the CPU, is kept after its second request, see
        :class:`~graphbench.data.batches.kept_batch.KeptBatch`.
        """
        is_on_cpu = device is None or torch.device(device).type == "cpu"
        if is_on_cpu and isinstance(self.flat, FlatGraphs) and _are_all(samples, len(self)):
            return self._whole.copy(lambda: make_batch(self.flat, samples, device))
        return make_batch(self.flat, samples, device)

    def item(self, index: int) -> Data:
        """Return one sample as a ``Data`` object (a copy)."""
        return data_of(as_tensors(self.flat.gather(slice(index, index + 1))), self.schema)

    def stored_behind(self, samples: NDArray[np.int64]) -> int:
        """Return the number of stored graphs that some samples are made of: one for each."""
        return len(samples)

    def states_behind(self, count: int) -> int:
        """Return the number of stored graphs that the first ``count`` samples are made of: equal to ``count``."""
        return count


class RepresentationLayout(GraphLayout):
    """Samples that are derived from stored graphs when they are needed.

    Args:
        card: The card with the representation.
        representation: The representation.
        stored: The stored graphs.
    """

    def __init__(self, card: Card, representation: Representation, stored: FlatGraphs) -> None:
        super().__init__(card.sample_schema, stored)
        self._card, self._representation = card, representation

    def batch(self, samples: Chosen, device: torch.device | str | None = None) -> Any:
        """Return samples as one PyG ``Batch``."""
        derived = self._derived(samples)
        return make_batch(derived, slice(0, len(derived)), device)

    def item(self, index: int) -> Data:
        """Return one sample as a ``Data`` object."""
        return data_of(as_tensors(self._derived(slice(index, index + 1)).gather(slice(0, 1))), self.schema)

    def _derived(self, chosen: Chosen) -> FlatGraphs:
        samples = represented(self._card, self._representation, self.flat.samples, chosen)
        return FlatGraphs(samples.node_ptr, samples.edge_ptr, samples.edges, samples.values, self.schema)


class TrajectoryLayout(GraphLayout):
    """Samples with hints over time, whose batches are dense."""

    def batch(self, samples: Chosen, device: torch.device | str | None = None) -> TrajectoryBatch:
        """Return samples of one size as a :class:`~graphbench.data.batches.trajectory_batch.TrajectoryBatch`."""
        batch = make_trajectory_batch(self.flat, samples)
        return batch if device is None else batch.to(device)

    def item(self, index: int) -> Data:
        """Return one sample as a ``Data`` object, whose hints have their values at every step: ``[T, ...]``."""
        one = slice(index, index + 1)
        hints = {name: hint[:, 0] for name, hint in make_trajectory_batch(self.flat, one).hints.items()}
        return data_of(as_tensors(self.flat.gather(one)), self.schema, hints)


class SeriesLayout(GraphLayout):
    """Samples that are times of a series, see :class:`~graphbench.data.batches.series.SeriesGraphs`."""

    flat: SeriesGraphs

    def stored_behind(self, samples: NDArray[np.int64]) -> int:
        """Return the number of stored states that some samples are made of."""
        return self.flat.stored_behind(samples)

    def states_behind(self, count: int) -> int:
        """Return the number of states, from the first on, that the first samples are made of."""
        return self.flat.states_behind(count)


class LinkLayout(GraphLayout):
    """Samples with candidate pairs of nodes, see :class:`~graphbench.data.batches.links.LinkGraphs`."""

    flat: LinkGraphs

    def batch(self, samples: Chosen, device: torch.device | str | None = None) -> Any:
        """Return samples as one PyG ``Batch`` with ``pair_index`` and ``query_batch``."""
        batch = make_batch(self.flat, samples, device)
        PairOffsets.of(self.flat.candidates(samples)).set(batch, self.flat.output)
        return batch

    def item(self, index: int) -> Data:
        """Return one sample as a ``Data`` object with ``pair_index`` and ``query_batch``."""
        fields = as_tensors(self.flat.gather(slice(index, index + 1)))
        data = data_of(fields, self.schema)
        data[PAIRS], data[QUERIES] = fields[PAIRS], fields[QUERIES]
        return data


def _are_all(samples: Chosen, count: int) -> bool:
    """Return whether samples are all of ``count`` samples, in their order."""
    if isinstance(samples, slice):
        return (samples.start, samples.stop) == (0, count)
    return len(samples) == count and bool((samples == np.arange(count)).all())


def layout_of(card: Card, stored: FlatGraphs, count: int, name: str) -> SampleLayout:
    """Return the layout of the samples of a card.

    Args:
        card: The card.
        stored: The stored graphs, up to the limit.
        count: Number of stored graphs.
        name: Address and split of the dataset, for messages.

    Raises:
        ArgumentError: If a series has too few states for one sample.
        CardError: If the card's representation or topology does not exist.
    """
    if card.series is not None:
        return SeriesLayout(card.sample_schema, SeriesGraphs(card, stored, count, name))
    if card.links is not None:
        return LinkLayout(card.sample_schema, LinkGraphs(card, stored))
    representation = representation_of(card)
    if representation is not None:
        return RepresentationLayout(card, representation, stored)
    kind = GraphLayout if stored.hints is None else TrajectoryLayout
    return kind(card.sample_schema, stored)


def data_of(fields: dict[str, Any], schema: Schema, hints: dict[str, torch.Tensor] | None = None) -> Data:
    """Return the fields of a batch of one sample as a ``Data`` object.

    Args:
        fields: The fields, tensors or lists of texts.
        schema: The schema of the sample.
        hints: Its hints.

    Returns:
        ``Data`` with ``edge_index``, ``num_nodes``, one field per feature, and PyG's ``x``, ``edge_attr`` and ``y``.
    """
    data = Data(edge_index=fields["edge_index"], num_nodes=int(fields["ptr"][1]))
    for feature in schema.stored_features:
        data[feature.name] = _of_one_sample(fields[feature.name])
    for name, hint in (hints or {}).items():
        data[name] = hint
    for name, value in standard_fields(fields, schema.features).items():
        data[name] = _of_one_sample(value)
    return data


def graph_data(samples: Samples, features: tuple[Feature, ...], *, directed: bool) -> Data:
    """Return the first graph of samples outside of any dataset, with the fields that a dataset gives its graphs.

    Args:
        samples: One graph.
        features: The features of its values.
        directed: Whether an edge is an arc; both directions of other edges are listed.

    Returns:
        ``Data`` with ``edge_index``, one field per feature, and ``x`` and ``edge_attr`` made of the inputs.
    """
    schema = Schema(features, directed)
    flat = FlatGraphs(samples.node_ptr, samples.edge_ptr, np.asarray(samples.edges), samples.values, schema)
    return data_of(as_tensors(flat.gather(slice(0, 1))), schema)


def _of_one_sample(value: Any) -> Any:
    """Return the field of one sample; a text field is the string, or the list of strings, of this sample."""
    return value[0] if isinstance(value, list) else value
