"""PyG batches as dense tensors, grouped by graph size, so that no padding is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.data.batches.trajectory_batch import TrajectoryBatch

EDGES = Feature("edge_index", Stage.INPUT, Location.EDGE, Kind.MASK)
"""The input that says which pairs of nodes are edges; no card can have a feature of that name."""

ABSENT = -2
"""The class, or the node pointed at, of a pair that is no edge: it has no one-hot column."""


@dataclass(frozen=True)
class DenseGroup:
    """The graphs of a PyG batch that have the same number of nodes n.

    Attributes:
        batch: Their inputs, and the input :data:`EDGES`; without hints and outputs. Pairs that are no edges have 0, or
            :data:`ABSENT`.
        graphs: int64 ``[B]``: their numbers in the PyG batch.
        nodes: int64 ``[B, n]``: the numbers of their nodes there.
        columns: int64 ``[E]``: the columns of their edges in ``edge_index``.
        places: int64 ``[3, E]``: the positions of these edges: graph of the group, tail and head within the graph.
    """

    batch: TrajectoryBatch
    graphs: Tensor
    nodes: Tensor
    columns: Tensor
    places: Tensor


def dense_groups(
    batch: Any, features: Sequence[Feature], values: Mapping[str, Tensor], steps: int = 1
) -> list[DenseGroup]:
    """Return the graphs of a PyG batch as groups of equal size, the smallest first.

    Args:
        batch: A PyG ``Batch``. Parallel edges count as one.
        features: The inputs to include; no texts.
        values: Input name -> array of the batch, ``[items]`` or ``[items, width]``.
        steps: The ``lengths`` of the groups.
    """
    ptr: Tensor = batch.ptr
    sizes, (tails, heads) = ptr.diff(), batch.edge_index
    owner = batch.batch[tails]
    groups = []
    for size in sorted(set(sizes.tolist())):
        graphs = (sizes == size).nonzero().squeeze(1)
        nodes = ptr[graphs, None] + torch.arange(size, device=ptr.device)
        rank = torch.full_like(sizes, -1)
        rank[graphs] = torch.arange(len(graphs), device=ptr.device)
        columns = (rank[owner] >= 0).nonzero().squeeze(1)
        first = ptr[owner[columns]]
        places = torch.stack([rank[owner[columns]], tails[columns] - first, heads[columns] - first])
        inputs = {f.name: _dense(f, values[f.name], graphs, nodes, columns, places) for f in features}
        edges = torch.zeros(len(graphs), size, size, device=ptr.device)
        inputs[EDGES.name] = edges.index_put(tuple(places), edges.new_ones(()))
        lengths = torch.full_like(graphs, steps)
        group = TrajectoryBatch(inputs, {}, {}, lengths, size)
        groups.append(DenseGroup(group, graphs, nodes, columns, places))
    return groups


def _dense(feature: Feature, values: Tensor, graphs: Tensor, nodes: Tensor, columns: Tensor, places: Tensor) -> Tensor:
    """Return a feature of a group's graphs as in a ``TrajectoryBatch``."""
    if feature.kind is not Kind.SCALAR or feature.width == 1:
        values = values.reshape(-1)
    if feature.location is Location.GRAPH:
        return values[graphs]
    if feature.location is Location.NODE:
        taken = values[nodes]
        return taken.long().argmax(1) if feature.kind is Kind.MASK_ONE else taken
    blank = 0 if feature.kind in (Kind.SCALAR, Kind.MASK) else ABSENT
    square = values.new_full((*nodes.shape, nodes.shape[1], *values.shape[1:]), blank)
    return square.index_put(tuple(places), values[columns])
