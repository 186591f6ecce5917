"""Recurrent message passing between the two sides of a bipartite graph, as in NeuroSAT (Selsam et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.arcs import Arcs, arc_sums
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, segment_sum
from graphbench.models.layers import activation_function
from graphbench.models.lstm import NormalisedLSTMCell
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options


class BipartiteOptions(StrictModel):
    """The settings of ``bipartite`` below ``options`` in a model's configuration.

    The mask ``side`` divides the nodes into a left side (0) and a right side (1). Nodes of the left side may come in
    complementary pairs. There are two ways to represent a pair: as two nodes, joined by an edge that ``links`` marks;
    or as a single node of the graph, where ``polarity`` assigns every edge to one of the two states.

    Attributes:
        side: Name of an input mask of nodes.
        links: Name of an input mask of edges: 1 where an edge joins two complementary nodes of the left side.
        polarity: Name of an input mask of edges: each node of the left side has two states, and an edge joins the first
            one (0) or the second one (1) to a node of the right side.
        message_layers: Hidden layers of the networks that compute messages from states.
        recompute: Whether each round is computed again in the backward pass, which takes time and saves memory: only
            the states of a round are kept.
    """

    side: str
    links: str | None = None
    polarity: str | None = None
    message_layers: int = Field(default=3, ge=0)
    recompute: bool = False

    @model_validator(mode="after")
    def _pairs_in_one_way(self) -> BipartiteOptions:
        if self.links is not None and self.polarity is not None:
            raise ValueError(
                f"links = {self.links!r} and polarity = {self.polarity!r} are two ways to say which states are "
                "complementary; set one of them to null"
            )
        return self


@dataclass(frozen=True, slots=True)
class Sides:
    """The states of a batch of bipartite graphs and the arcs between them.

    Attributes:
        left: int64 [L], the node of each state of the left side.
        right: int64 [R], the node of each state of the right side.
        arcs: Arcs from states of the left side to states of the right side.
        complements: Arcs from each state of the left side to its complement; None without complementary pairs.
    """

    left: Tensor
    right: Tensor
    arcs: Arcs
    complements: Arcs | None


@register_processor("bipartite")
class Bipartite(Processor):
    """Message passing in ``layers`` rounds with shared weights: from the left side to the right, then back.

    A state of the left side also receives the state of its complement. Networks and cells are separate for the two
    sides, and sums of messages are not normalised. Edges that join two nodes of one side carry no messages unless they
    are links. A node that represents a pair returns the mean of its two states, so the output does not depend on their
    order.
    Embeddings of edges are not read.
    """

    uses_edges = False

    @classmethod
    def reads(cls, config: ModelConfig) -> Sequence[Feature]:
        """Return the masks that the options name."""
        options = read_options(BipartiteOptions, config)
        on_edges = [name for name in (options.links, options.polarity) if name is not None]
        side = Feature(options.side, Stage.INPUT, Location.NODE, Kind.MASK)
        return [side, *(Feature(name, Stage.INPUT, Location.EDGE, Kind.MASK) for name in on_edges)]

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the networks of the two sides.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`BipartiteOptions`, or the graphs are directed.
        """
        super().__init__(config, context)
        self.options = read_options(BipartiteOptions, config)
        if context.directed:
            raise ConfigError(
                f"the processor {config.processor!r} is for undirected graphs, and these are directed; choose another"
            )
        width, self.rounds = config.hidden, config.layers
        paired = self.options.links is not None or self.options.polarity is not None
        self.to_right = _message_network(config, self.options.message_layers)
        self.to_left = _message_network(config, self.options.message_layers)
        self.right_update = NormalisedLSTMCell(width, width, config.activation, config.dropout)
        self.left_update = NormalisedLSTMCell((1 + paired) * width, width, config.activation, config.dropout)

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Tensor]:
        """Return the states and arcs of the two sides, see :func:`sides_of`."""
        return facts_of_sides(inputs, layout, self.options)

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        sides = sides_of(self.facts(state))
        left, right = state.nodes.index_select(0, sides.left), state.nodes.index_select(0, sides.right)
        states = (left, torch.zeros_like(left), right, torch.zeros_like(right))
        for _ in range(self.rounds):
            if self.options.recompute and torch.is_grad_enabled():
                states = checkpoint(self._round, sides, *states, use_reentrant=False)
            else:
                states = self._round(sides, *states)
        left, _, right, _ = states
        copies = 1 if self.options.polarity is None else 2
        rows, owners = torch.cat([left / copies, right]), torch.cat([sides.left, sides.right])
        return Processed(segment_sum(rows, owners, state.layout.num_nodes))

    def _round(
        self, sides: Sides, left: Tensor, left_cell: Tensor, right: Tensor, right_cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the states and cells of both sides after one round; sums have the precision of the states."""
        received = [arc_sums(self.to_right(left).to(left.dtype), sides.arcs)]
        right, right_cell = self.right_update(received, right, right_cell)
        received = [arc_sums(self.to_left(right).to(right.dtype), sides.arcs.reversed)]
        if sides.complements is not None:
            received.append(arc_sums(left, sides.complements))
        left, left_cell = self.left_update(received, left, left_cell)
        return left, left_cell, right, right_cell


def facts_of_sides(inputs: Mapping[str, Tensor], layout: Layout, options: BipartiteOptions) -> dict[str, Tensor]:
    """Return the two sides of a batch, divided by the masks that the options name.

    Args:
        inputs: The masks.
        layout: The layout of the batch.
        options: The options.

    Returns:
        ``left`` and ``right`` int64, the node of each state of a side; ``arcs`` int64 [2, A], from states of the left
        side to states of the right side; with complementary pairs ``complements`` int64 [2, C].
    """
    is_right = inputs[options.side].reshape(-1) != 0
    source, target = layout.edge_index
    row = torch.where(is_right, is_right.cumsum(0), (~is_right).cumsum(0)) - 1  # within the node's side
    left, right = (~is_right).nonzero().squeeze(1), is_right.nonzero().squeeze(1)
    starts, facts = row[source], {}
    if options.polarity is not None:
        starts = 2 * starts + (inputs[options.polarity].reshape(-1) != 0)
        left = left.repeat_interleave(2)
        every = torch.arange(left.numel(), device=left.device)
        facts["complements"] = torch.stack([every, every ^ 1])
    elif options.links is not None:
        linked = (inputs[options.links].reshape(-1) != 0) & ~is_right[source] & ~is_right[target]
        facts["complements"] = torch.stack([row[source], row[target]])[:, linked]
    crossing = ~is_right[source] & is_right[target]
    return {"left": left, "right": right, "arcs": torch.stack([starts, row[target]])[:, crossing], **facts}


def sides_of(facts: Mapping[str, Tensor]) -> Sides:
    """Return the two sides of a batch, from :func:`facts_of_sides`."""
    left, right, ends = facts["left"], facts["right"], facts.get("complements")
    complements = None if ends is None else Arcs(ends, left.numel(), left.numel(), symmetric=True)
    return Sides(left, right, Arcs(facts["arcs"], left.numel(), right.numel()), complements)


def _message_network(config: ModelConfig, hidden_layers: int) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(hidden_layers):
        layers += [nn.Linear(config.hidden, config.hidden), activation_function(config.activation)]
    return nn.Sequential(*layers, nn.Linear(config.hidden, config.hidden))
