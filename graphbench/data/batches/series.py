"""Samples that are times of a series: states stored once, one graph for all, and targets some steps later.

A file of a series holds one state per time, as one contiguous array. A sample is a state and the change to a
later state of the same run. All samples have the same graph, so the parts of a batch that come from it (edges, fixed
features, offsets) are the same for every batch of a size; they are made once per size and device, and batches share
them. Do not write into these tensors.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import ArgumentError, CardError
from graphbench.data.arrays.graph_checks import graph_problem
from graphbench.data.arrays.quantisation import columns
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.batching import FlatGraphs, as_tensors, move, share, standard_fields
from graphbench.data.components.domain import find, topology_of
from graphbench.data.store.casting import compact

_SIZES = 4  # shared tensors are kept for this many batch sizes (and devices)

Chosen = NDArray[np.int64] | slice


class SeriesGraphs:
    """The samples of a file of states, with the interface of ``FlatGraphs``.

    Args:
        card: A card with a series.
        stored: The states of the file.
        count: Number of states to use, from the first on.
        name: Address and split of the dataset, for messages.

    Attributes:
        starts: int64 ``[samples]``, the position of every sample's state; the later state is ``lead`` states further.
        lead: Number of states from a sample's state to its later state.

    Raises:
        ArgumentError: If no run has more than ``lead`` states.
    """

    hints = None

    def __init__(self, card: Card, stored: FlatGraphs, count: int, name: str) -> None:
        assert card.series is not None
        self.stored, self.schema, self._series = stored, card.sample_schema, card.series
        self.lead = card.series.lead
        runs = np.asarray(stored.values[card.series.run][:count])
        self.starts = pairs_of_runs(runs, self.lead)
        if not len(self.starts):
            raise ArgumentError(
                f"{name} has {count} times, and none of them has another one {self.lead} steps later in its run; take "
                f"more than {self.lead} with limit"
            )
        self.graph: Samples = build_topology(card)
        self.values: Mapping[str, Any] = stored.values
        self.rows = int(stored.node_ptr[1])  # nodes with stored values
        self._location = {f.name: f.location for f in stored.schema.stored_features}
        self._shared: OrderedDict[tuple[int, str], dict[str, Any]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.starts)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of samples, in the order of the card."""
        return self.schema.features

    @property
    def nodes(self) -> int:
        """Number of nodes of the graph."""
        return int(self.graph.num_nodes[0])

    @cached_property
    def node_ptr(self) -> NDArray[np.int64]:
        """int64 ``[samples + 1]``, as if every sample had a separate graph."""
        return np.arange(len(self) + 1) * self.nodes

    @cached_property
    def edge_ptr(self) -> NDArray[np.int64]:
        """int64 ``[samples + 1]``, as if every sample had a separate graph."""
        return np.arange(len(self) + 1) * int(self.graph.num_edges[0])

    def stored_behind(self, numbers: NDArray[np.int64]) -> int:
        """Return how many of the stored states some samples are made of."""
        starts = self.starts[numbers]
        return len(np.union1d(starts, starts + self.lead))

    def states_behind(self, count: int) -> int:
        """Return how many states, from the first on, the first samples are made of."""
        return int(self.starts[count - 1]) + self.lead + 1 if count else 0

    def gather(self, graphs: Chosen) -> dict[str, Any]:
        """Return the fields of samples as newly allocated NumPy arrays; see ``FlatGraphs.gather``."""
        tensors = {name: value.clone() for name, value in self._tensors(graphs, torch.device("cpu")).items()}
        return {name: value.numpy() for name, value in tensors.items()}

    def tensors(
        self, graphs: Chosen, device: torch.device | str | None
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return the fields of samples on a device, and the offsets of nodes and edges on the CPU."""
        fields = self._tensors(graphs, torch.device("cpu" if device is None else device))
        offsets = self._shared_fields(len(fields["ptr"]) - 1, torch.device("cpu"))
        fields.pop("edge_ptr")
        return fields, offsets["ptr"], offsets["edge_ptr"]

    def _tensors(self, graphs: Chosen, device: torch.device) -> dict[str, Any]:
        starts = self.starts[graphs]
        fields = dict(self._shared_fields(len(starts), device))
        stored = {f.name: self._stored_rows(f.name, starts, device) for f in self.features if f.name in self.values}
        for feature in self.features:
            if feature.name in stored:
                fields[feature.name] = self._field(feature, feature.name, stored[feature.name])
            elif feature.name in self._series.changes:
                source = self._series.changes[feature.name]
                later = self._stored_rows(source, starts + self.lead, device)
                fields[feature.name] = self._field(feature, source, later, stored[source])
        return fields

    def _stored_rows(self, name: str, times: NDArray[np.int64], device: torch.device) -> torch.Tensor:
        """Return the rows of a feature at some times, in their stored dtype; ``[times, rows of a time, ...]``."""
        values = self.values[name]
        per_time = self.rows if self._location[name] is Location.NODE else 1
        taken = values.reshape(-1, per_time, *values.shape[1:])[times]
        return move(torch.from_numpy(np.ascontiguousarray(taken)), device)

    def _field(
        self, feature: Feature, source: str, rows: torch.Tensor, before: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return stored rows as the values of a feature at all nodes, or their changes since earlier ones.

        Nodes without stored values have the value that is stored as 0, the offset of a packed feature; their change
        is 0.
        """
        places = self.nodes if feature.location is Location.NODE else rows.shape[1]
        dtype = torch.float32 if rows.is_floating_point() else torch.int64
        whole = rows.new_empty((len(rows), places, *rows.shape[2:]), dtype=dtype)
        stored = whole[:, : rows.shape[1]]
        whole[:, rows.shape[1] :] = 0
        stored.copy_(rows)
        if before is not None:
            stored.sub_(before)
        if source in self.schema.packed:
            offset, scale = (torch.from_numpy(c.astype(np.float32)) for c in columns(self.schema.packed[source]))
            stored.mul_(scale.to(whole.device))
            if before is None:
                whole.add_(offset.to(whole.device))
        return whole.flatten(0, 1)

    def _shared_fields(self, count: int, device: torch.device) -> dict[str, Any]:
        """Return the fields of a batch of a size that follow from the graph alone."""
        key = count, str(device)
        if key not in self._shared:
            edges = int(self.graph.num_edges[0])
            copies = FlatGraphs(
                np.arange(2) * self.nodes,
                np.arange(2) * edges,
                self.graph.edges,
                self.graph.values,
                Schema(tuple(f for f in self.features if f.name in self._series.fixed), directed=True),
            )
            tensors = as_tensors(copies.gather(np.zeros(count, np.int64)))
            tensors |= standard_fields(tensors, tuple(f for f in copies.features if f.location is Location.EDGE))
            self._shared[key] = {name: share(move(value, device), count) for name, value in tensors.items()}
            if len(self._shared) > _SIZES:
                self._shared.popitem(last=False)
        self._shared.move_to_end(key)
        return self._shared[key]


def with_stored_rows(card: Card, samples: Any, batch: Any) -> Any:
    """Return a batch in which node features have rows only for nodes with stored values, as statistics need them.

    The other nodes of a series have a constant, which is not a value of the feature.

    Args:
        card: The card of the samples.
        samples: The dataset that made the batch.
        batch: The batch; it stays as it is.

    Returns:
        A copy in which stored features of nodes and their changes have ``[samples * rows, ...]``; the batch itself for
        a card without a series, and where a transform has given graphs another number of nodes.
    """
    flat = getattr(samples, "flat", None)
    if card.series is None or not isinstance(flat, SeriesGraphs) or batch.num_nodes != flat.nodes * batch.num_graphs:
        return batch
    selected = copy(batch)
    for feature in card.features:
        if feature.location is Location.NODE and feature.name not in card.series.fixed:
            values = batch[feature.name]
            stored_rows = values.reshape(batch.num_graphs, flat.nodes, *values.shape[1:])[:, : flat.rows]
            selected[feature.name] = stored_rows.flatten(0, 1)
    return selected


def build_topology(card: Card) -> Samples:
    """Return the graph that all samples of a card with a series share, checked against the card.

    Raises:
        CardError: If a parameter is unknown or out of range, or the graph does not fit the card.
    """
    assert card.series is not None
    built = topology_of(card)
    fixed = tuple(f for f in card.features if f.name in card.series.fixed)
    schema = Schema(fixed, card.directed)
    problem = "" if {f.name for f in fixed} == set(built.values) else f"it gives {', '.join(sorted(built.values))}"
    problem = problem or ("" if len(built) == 1 else f"it gives {len(built)} graphs") or graph_problem(schema, built)
    if problem:
        name = card.series.topology
        raise CardError(f"{card.path} ({card.id}): the topology {name} does not fit the card: {problem}")
    return compact(schema, built, find("generator", card.generator))


def pairs_of_runs(runs: NDArray[Any], lead: int) -> NDArray[np.int64]:
    """Return the positions in a series after which the same run has at least ``lead`` more steps; int64, ascending."""
    changes = np.flatnonzero(runs[1:] != runs[:-1]) + 1
    ends = np.append(changes, len(runs))
    last = ends[np.searchsorted(ends, np.arange(len(runs)), side="right")] if len(runs) else ends[:0]
    return np.flatnonzero(np.arange(len(runs)) + lead < last).astype(np.int64)
