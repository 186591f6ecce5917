"""Epistemic models: beliefs about relations, composed along the shortest walks between two marked nodes.

After the epistemic graph networks of Khalid and Schockaert (ICLR 2025): states are distributions over latent relations,
messages are bilinear compositions with a learned tensor, evidence of several routes is combined by a minimum or a
product, passes start at both ends, and an answer is scored by the distance to learned prototypes. Here a state may also
say that a relation is unknown, which is where every composition begins that was not learned; routes are shortest
walks; and states of all pairs on these walks, combined by votes, are offered beside the two passes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.models.base import TaskFeatures, TaskModel, graphs_at_once
from graphbench.models.encoders import feature_values
from graphbench.models.epistemic.beliefs import Composition, combined, scores, unknown_beliefs
from graphbench.models.epistemic.config import EpistemicModelConfig
from graphbench.models.epistemic.walks import Walks, shortest_walks
from graphbench.models.graphs import Layout

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_WALKS = "epistemic_walks_"  # prefix of the attributes of a prepared batch
_SPREAD = 2.0  # deviation of the logits of a relation in the beginning


class EpistemicModel(TaskModel):
    """A model for one dataset: ``model(batch)`` returns the logits of the classes of the output."""

    def __init__(self, config: EpistemicModelConfig, task: TaskFeatures) -> None:
        """Create the model.

        Raises:
            ConfigError: If the graphs are undirected, the inputs that the configuration names are missing, the output
                is no class of graphs, or the classes do not fit ``config.tied``.
        """
        super().__init__()
        self.config = config
        if not task.directed:
            raise ConfigError("an epistemic model follows arcs, and the graphs are undirected; take another kind")
        self.relation = _input(task, config.relation, "relation", Location.EDGE, Kind.CATEGORICAL)
        self.source = _input(task, config.source, "source", Location.NODE, Kind.MASK_ONE)
        self.target = _input(task, config.target, "target", Location.NODE, Kind.MASK_ONE)
        self.output = _output(task)
        relations, answers = self.relation.classes or 0, self.output.classes or 0
        if config.tied and answers > relations:
            raise ConfigError(
                f"model.tied is set, but {self.output.name!r} has {answers} classes and {config.relation!r} has "
                f"{relations}; set model.tied to false"
            )
        shape = (config.facets, config.symbols)
        self.relations = nn.Parameter(torch.randn(relations, *shape) * _SPREAD / config.gain)
        self.answers = None if config.tied else nn.Parameter(torch.randn(answers, *shape) * _SPREAD / config.gain)
        self.composition = Composition(config)

    def forward(self, batch: Data, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the logits of the output, float32 [B, classes].

        Args:
            batch: A PyG ``Batch`` with ``edge_index`` and the three inputs of the configuration.
            task_id: Not read: the model has one task.
        """
        relation = feature_values(batch, self.relation).reshape(-1).long()
        walks = self._walks(batch)
        with torch.autocast(relation.device.type, enabled=False):
            beliefs = self._beliefs(relation, walks)
            vectors = self.relations[: self.output.classes] if self.answers is None else self.answers
            return {self.output.name: scores(beliefs, torch.softmax(self.config.gain * vectors, dim=2))}

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """Return a copy of the batch with the compositions along its walks, which are found on the CPU."""
        if batch.edge_index.device.type != "cpu" or f"{_WALKS}arcs" in batch:
            return batch
        prepared = copy.copy(batch)
        for name, value in self._found(batch).items():
            prepared[_WALKS + name] = value
        return prepared

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of graphs whose compositions fit the memory budget."""
        return graphs_at_once(dataset, self._rows)

    def _rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of ``symbols`` numbers that the compositions of pairs of one distance take in each graph."""
        return nodes**2 * self.config.facets

    def _walks(self, batch: Data) -> dict[str, Any]:
        if f"{_WALKS}arcs" not in batch:
            return self._found(batch)
        return {field.name: batch[_WALKS + field.name] for field in fields(Walks)}

    def _found(self, batch: Data) -> dict[str, Any]:
        """Return the attributes of :class:`Walks` for a batch, arrays as tensors on the device of the batch."""
        layout, device = Layout.of(batch, directed=True), batch.edge_index.device
        marked = [_marked(batch, feature, layout) for feature in (self.source, self.target)]
        arcs, ptr = layout.edge_index.cpu().numpy(), layout.ptr.cpu().numpy()
        walks = shortest_walks(arcs, ptr, *marked, ends=self.config.passes == "ends")
        values = {field.name: getattr(walks, field.name) for field in fields(Walks)}
        return {n: torch.from_numpy(v).to(device) if isinstance(v, np.ndarray) else v for n, v in values.items()}

    def _beliefs(self, relation: Tensor, walks: Mapping[str, Any]) -> Tensor:
        """Return the belief about the target as seen from the source, float [B, facets, symbols + 1]."""
        table, pooling = self.composition.table(), self.config.pooling
        vectors = nn.functional.pad(torch.softmax(self.config.gain * self.relations, dim=2), (0, 1))
        steps = vectors.index_select(0, relation.index_select(0, walks["arcs"]))
        states = combined(steps, walks["arc_pairs"], walks["pairs"][0], pooling)
        parts = [walks[name].split(walks["compositions"]) for name in ("left", "right", "composed")]
        for pairs, left, right, place in list(zip(walks["pairs"], *parts, strict=True))[1:]:
            made = self.composition(states.index_select(0, left), states.index_select(0, right), table)
            states = torch.cat([states, combined(made, place, pairs, pooling)])
        states = torch.cat([states, unknown_beliefs(1, states)])  # the last one, for graphs without a walk
        return states.index_select(0, walks["answers"].remainder(len(states)))


def _marked(batch: Data, feature: Feature, layout: Layout) -> NDArray[np.int64]:
    """Return the marked node of every graph, int64 [B], counted through the batch.

    Raises:
        ArgumentError: If a graph has no marked node, or several.
    """
    nodes = feature_values(batch, feature).reshape(-1).bool().nonzero().reshape(-1)
    graphs = layout.graph.index_select(0, nodes)
    if not torch.equal(graphs, torch.arange(layout.num_graphs, device=graphs.device)):
        raise ArgumentError(
            f"{feature.name!r} marks {len(nodes)} nodes in {layout.num_graphs} graphs; mark one in each"
        )
    marked: NDArray[np.int64] = nodes.cpu().numpy()
    return marked


def _input(task: TaskFeatures, name: str, key: str, location: Location, kind: Kind) -> Feature:
    inputs = select(task.features, Stage.INPUT, location)
    fitting = [feature for feature in inputs if feature.kind is kind]
    for feature in fitting:
        if feature.name == name:
            return feature
    names = ", ".join(f.name for f in fitting) or "none"
    raise ConfigError(f"model.{key} is {name!r}, but the {kind} inputs at {location} level are: {names}; name one")


def _output(task: TaskFeatures) -> Feature:
    outputs = select(task.features, Stage.OUTPUT)
    if len(outputs) == 1 and outputs[0].kind is Kind.CATEGORICAL and outputs[0].location is Location.GRAPH:
        return outputs[0]
    names = ", ".join(f"{f.name} ({f.location} {f.type_name})" for f in outputs) or "none"
    raise ConfigError(f"an epistemic model predicts one class of graphs; the outputs of the data are: {names}")
