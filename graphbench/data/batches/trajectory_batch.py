"""Batches of trajectories: dense tensors, hints padded over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import GraphBenchError
from graphbench.core.ragged import take_runs
from graphbench.data.arrays.trajectories import HintLayout, Trajectories
from graphbench.data.batches.batching import FlatGraphs, move

if TYPE_CHECKING:
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.sample_ids import SampleIds

Array = NDArray[Any]
_DENSE_STAGES = (Stage.INPUT, Stage.OUTPUT)


@dataclass
class TrajectoryBatch:
    """Trajectories of B graphs of n nodes.

    A node's value has the shape ``[B, n]``, an edge's ``[B, n, n]`` (row u, column v: the pair (u, v)), a graph's
    ``[B]``; a scalar with a width has one more axis; a mask_one is the id of its node, ``[B]``. Scalars are
    floats; masks 0 and 1 and classes numbers, both -1 where masked; pointers are node ids. Integers have the
    small types of the store: cast them on the device.

    Attributes:
        inputs: Input name -> tensor.
        hints: Hint name -> tensor with a leading time axis T; after the end of a sample its last state is repeated.
        outputs: Output name -> tensor.
        lengths: int64 ``[B]``: steps of every sample, at most T.
        num_nodes: Nodes per graph n.
        sample_ids: Numbers of the samples in the split; None if the caller did not give them.
    """

    inputs: dict[str, Tensor]
    hints: dict[str, Tensor]
    outputs: dict[str, Tensor]
    lengths: Tensor
    num_nodes: int
    sample_ids: SampleIds | None = None

    @property
    def num_graphs(self) -> int:
        """Number of graphs B."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """Length T of the time axis."""
        return int(self.lengths.max())

    def to(self, device: torch.device | str) -> TrajectoryBatch:
        """Return the batch on a device."""
        inputs, hints, outputs = (
            {name: move(tensor, device) for name, tensor in part.items()}
            for part in (self.inputs, self.hints, self.outputs)
        )
        return TrajectoryBatch(inputs, hints, outputs, move(self.lengths, device), self.num_nodes, self.sample_ids)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a feature of that name."""
        return any(name in part for part in (self.inputs, self.hints, self.outputs))

    def __getitem__(self, name: str) -> Tensor:
        """Return one feature by name."""
        for part in (self.inputs, self.hints, self.outputs):
            if name in part:
                return part[name]
        names = ", ".join([*self.inputs, *self.hints, *self.outputs])
        raise KeyError(f"the batch has no feature {name!r}; it has {names}")


def make_trajectory_batch(flat: FlatGraphs, graphs: Array | slice) -> TrajectoryBatch:
    """Return the given graphs as one batch.

    Raises:
        GraphBenchError: If their sizes differ.
    """
    chosen = np.arange(graphs.start, graphs.stop) if isinstance(graphs, slice) else np.asarray(graphs, np.int64)
    sizes = np.unique(flat.node_ptr[chosen + 1] - flat.node_ptr[chosen])
    if len(sizes) != 1:
        raise GraphBenchError(
            f"a batch of trajectories needs graphs of one size, got {sizes.tolist()} nodes; "
            "graphbench.tasks.trace.stream.TrajectoryStream draws batches of one size each"
        )
    nodes = int(sizes[0])
    values = {f.name: _dense(flat, f, chosen, nodes) for f in flat.features if f.stage in _DENSE_STAGES}
    assert flat.hints is not None
    return _assemble(flat.features, values, flat.hints.take(chosen), nodes)


def batch_of_samples(samples: Samples, features: Sequence[Feature]) -> TrajectoryBatch:
    """Return newly generated samples of one size as one batch."""
    assert samples.hints is not None
    values = shaped_values(samples, [f for f in features if f.stage in _DENSE_STAGES])
    return _assemble(features, values, samples.hints, int(samples.num_nodes[0]))


def shaped_values(samples: Samples, features: Sequence[Feature]) -> dict[str, Array]:
    """Return inputs and outputs of samples of one size as in a batch: name -> ``[B, ...]``."""
    nodes = int(samples.num_nodes[0])
    return {f.name: _shaped(samples.values[f.name], f, len(samples), nodes) for f in features}


def _assemble(
    features: Sequence[Feature], values: Mapping[str, Array], trajectories: Trajectories, nodes: int
) -> TrajectoryBatch:
    hint_features = select(features, Stage.HINT)
    layout = HintLayout(hint_features, nodes)
    views = layout.views(*trajectories.replay(layout))
    hints = {}
    for feature in hint_features:
        view = views[feature.name]
        single = feature.kind is Kind.MASK_ONE or feature.location is Location.GRAPH
        hints[feature.name] = torch.from_numpy(view[..., 0] if single else view)
    named = {
        stage: {f.name: torch.from_numpy(values[f.name]) for f in select(features, stage)} for stage in _DENSE_STAGES
    }
    lengths = torch.from_numpy(trajectories.lengths)
    return TrajectoryBatch(named[Stage.INPUT], hints, named[Stage.OUTPUT], lengths, nodes)


def _dense(flat: FlatGraphs, feature: Feature, graphs: Array, nodes: int) -> Array:
    values = flat.values[feature.name]
    if feature.location is Location.GRAPH:
        return _shaped(values[graphs], feature, len(graphs), nodes)
    ptr, items = (flat.node_ptr, nodes) if feature.location is Location.NODE else (flat.edge_ptr, nodes * nodes)
    rows = take_runs(values, ptr[graphs], np.arange(len(graphs) + 1) * items)
    return _shaped(rows, feature, len(graphs), nodes)


def _shaped(rows: Array, feature: Feature, count: int, nodes: int) -> Array:
    """Return the rows of a feature as ``[B, ...]``: scalars float32, node ids int64 (a mask_one becomes a node id)."""
    columns = rows.shape[1:]  # of scalars with a width
    if feature.location is Location.NODE:
        rows = rows.reshape(count, nodes, *columns)
    elif feature.location is Location.EDGE:
        rows = rows.reshape(count, nodes, nodes, *columns)
    if feature.kind is Kind.MASK_ONE:
        chosen: Array = rows.argmax(axis=1)
        return chosen
    if feature.kind in (Kind.POINTER, Kind.PERMUTATION):
        return rows.astype(np.int64)  # torch takes uint8 as a mask, not as an index
    return rows.astype(np.float32) if feature.kind is Kind.SCALAR else np.ascontiguousarray(rows)
