"""Interaction networks in stages, each along one class of arcs: for example grid to mesh, within the mesh, and back.

GraphCast (Lam et al., 2023) has these three stages: arcs from the grid to the mesh encode, arcs of the mesh process,
and arcs from the mesh to the grid decode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.fused import is_compiled, sums_at_ends
from graphbench.models.graphs import Layout
from graphbench.models.layers import Dropout, activation_function
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options


class StagedOptions(StrictModel):
    """The settings of ``staged`` below ``options`` in a model's configuration.

    Attributes:
        by: Name of a categorical input of edges.
        classes: Number of classes of the input.
        stages: The class of the arcs of every layer, in the order of the layers; as many as ``model.layers``.
    """

    by: str
    classes: int = Field(ge=1, le=64)
    stages: tuple[int, ...] = Field(min_length=1, max_length=256)

    @model_validator(mode="after")
    def _check_stages(self) -> StagedOptions:
        wrong = [number for number in self.stages if not 0 <= number < self.classes]
        if wrong:
            raise ValueError(f"stages names the class {wrong[0]}; there are {self.classes}, numbered from 0")
        return self


class InteractionLayer(nn.Module):
    """One round of an interaction network (Battaglia et al., 2016) with residual connections.

    ``m_uv = LN(W act(A e_uv + B x_u + C x_v))``, ``e_uv = e_uv + m_uv``, and for the nodes with incoming arcs ``x_v =
    x_v + LN(V act(D x_v + E sum over (u, v) of m_uv))``, with dropout on the update of the nodes. The maps of senders
    and receivers are computed once per node, not once per arc.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden
        self.edge, self.sender, self.receiver = (nn.Linear(width, width, bias=i == 0) for i in range(3))
        self.message = nn.Sequential(
            activation_function(config.activation), nn.Linear(width, width), nn.LayerNorm(width)
        )
        self.own, self.received = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.update = nn.Sequential(
            activation_function(config.activation), nn.Linear(width, width), nn.LayerNorm(width)
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, nodes: Tensor, edges: Tensor, arcs: Tensor, receivers: Tensor) -> tuple[Tensor, Tensor]:
        """Return updated nodes [N, d] and edges [A, d].

        Args:
            nodes: [N, d].
            edges: [A, d], of the arcs.
            arcs: int64 [2, A].
            receivers: int64, the nodes with incoming arcs, each once.
        """
        messages = self.message(_sums_at_ends(self.edge(edges), self.sender(nodes), self.receiver(nodes), arcs))
        target = arcs[1]
        sums = torch.zeros_like(nodes, dtype=messages.dtype).index_add(0, target, messages).index_select(0, receivers)
        update = self.update(self.own(nodes.index_select(0, receivers)) + self.received(sums))
        return nodes.index_add(0, receivers, self.dropout(update).to(nodes.dtype)), edges + messages


def _sums_at_ends(edges: Tensor, sent: Tensor, taken: Tensor, arcs: Tensor) -> Tensor:
    """Return ``edges[a] + sent[u] + taken[v]`` for every arc a = (u, v), [A, d]."""
    if is_compiled(edges.shape[1], edges, sent, taken):
        return sums_at_ends(edges, sent, taken, arcs)
    source, target = arcs
    return edges + sent.index_select(0, source) + taken.index_select(0, target)


def _read_stages(config: ModelConfig) -> StagedOptions:
    """Return the options of a configuration.

    Raises:
        ConfigError: If ``config.options`` do not fit :class:`StagedOptions`, or name another number of stages than
            ``config.layers``.
    """
    options = read_options(StagedOptions, config)
    count = len(options.stages)
    if count != config.layers:
        raise ConfigError(
            f"model.layers is {config.layers}, but model.options.stages has {count} stages; 'staged' has one layer "
            f"per stage: set model.layers to {count}, or list {config.layers} stages"
        )
    return options


@register_processor("staged")
class Staged(Processor):
    """One :class:`InteractionLayer` for every stage of ``options.stages``."""

    @classmethod
    def reads(cls, config: ModelConfig) -> list[Feature]:
        """Return the categorical input that the options name."""
        options = _read_stages(config)
        return [Feature(options.by, Stage.INPUT, Location.EDGE, Kind.CATEGORICAL, options.classes)]

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create one layer per stage.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`StagedOptions`, or name another number of stages than
                ``config.layers``.
        """
        super().__init__(config, context)
        self.options = _read_stages(config)
        self.layers = nn.ModuleList(InteractionLayer(config) for _ in self.options.stages)

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return the arcs of every class in use: their numbers int64 [A], ends int64 [2, A], and receiving nodes."""
        kinds, facts = inputs[self.options.by].reshape(-1), dict[str, Any]()
        for number in sorted(set(self.options.stages)):
            members = torch.nonzero(kinds == number).squeeze(1)
            ends = layout.edge_index.index_select(1, members)
            facts |= {f"numbers{number}": members, f"ends{number}": ends, f"receivers{number}": torch.unique(ends[1])}
        return facts

    def forward(self, state: State) -> Processed:
        """Return the processed nodes; edges keep the updates of earlier stages of their class."""
        assert state.edges is not None
        facts, edges = self.facts(state), {}
        embedded = state.edges.expand(state.layout.edge_index.shape[1], -1)
        for number in sorted(set(self.options.stages)):
            edges[number] = embedded.index_select(0, facts[f"numbers{number}"])
        nodes = state.nodes
        for number, layer in zip(self.options.stages, self.layers, strict=True):
            stage = (edges[number], facts[f"ends{number}"], facts[f"receivers{number}"])
            nodes, edges[number] = layer(nodes, *stage)
        return Processed(nodes)
