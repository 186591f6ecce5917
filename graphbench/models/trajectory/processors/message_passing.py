"""Message passing: MPNN (Gilmer et al., 2017), PGN (Velickovic et al., 2020), Deep Sets, Triplet-GMPNN.

A message is a two-layer network of the sum of linear maps of sender, receiver, pair and graph; a node takes the
maximum over its senders. The outputs of the linear maps are summed, so no concatenation of width 4h is needed.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.processor_registry import register_processor
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import PairVectors
from graphbench.models.trajectory.layers import linear, thin_linear
from graphbench.models.trajectory.processors.base import MASKED, DenseProcessor, Gate, Step
from graphbench.models.trajectory.processors.maxima import max_over_senders, max_plus

_GATED = ("gmpnn", "triplet_gmpnn")
_NEIGHBOURS_ONLY = ("pgn",)


@register_processor("mpnn", consumes="dense")
@register_processor("pgn", consumes="dense")
@register_processor("gmpnn", consumes="dense")
class MessagePassing(DenseProcessor):
    """MPNN: all pairs of nodes send messages; PGN: only neighbours do; GMPNN: MPNN with a gate."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.sender, self.receiver = linear(2 * hidden, hidden), linear(2 * hidden, hidden)
        self.pair, self.graph = linear(hidden, hidden), linear(hidden, hidden)
        self.inner, self.outer = linear(hidden, hidden), linear(hidden, hidden)
        self.of_nodes, self.of_messages = linear(2 * hidden, hidden), linear(hidden, hidden)
        self.gate = Gate(hidden) if config.processor in _GATED else None
        self.neighbours_only = config.processor in _NEIGHBOURS_ONLY

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one round of messages, ``[B, n, h]``."""
        received = self.aggregate(step)
        new: Tensor = self.norm(torch.relu(self.of_nodes(step.nodes) + self.of_messages(received)))
        return new if self.gate is None else self.gate(step.nodes, received, new)  # type: ignore[no-any-return]

    def aggregate(self, step: Step) -> Tensor:
        """Return the maximum of every node's messages ``[B, n, h]``."""
        total = step.pairs.project(self.pair) + self.sender(step.nodes).unsqueeze(2)  # [B, sender, receiver, h]
        total.add_((self.receiver(step.nodes) + self.graph(step.graph).unsqueeze(1)).unsqueeze(1))
        messages = self.network(total)
        if self.neighbours_only:
            messages = messages.masked_fill(~step.neighbours.unsqueeze(-1), MASKED)
        return max_over_senders(messages)

    def network(self, total: Tensor) -> Tensor:
        """Return the messages ``[..., h]`` computed from the sums ``total``, which are overwritten."""
        rows = total.relu_().flatten(0, -2)  # the inner layer's output is not a view, so it may also be overwritten
        messages: Tensor = self.outer(self.inner(rows).relu_())
        return messages.view(total.shape)


@register_processor("triplet_mpnn", consumes="dense")
@register_processor("triplet_gmpnn", consumes="dense")
class TripletMessagePassing(MessagePassing):
    """MPNN in which pairs also exchange messages, over all triples of nodes (Dudzik and Velickovic, 2022)."""

    makes_messages: ClassVar[bool] = True

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden, narrow = config.hidden, config.nb_triplet_features
        self.corners = nn.ModuleList(linear(2 * hidden, narrow) for _ in range(3))
        self.sides = nn.ModuleList(linear(hidden, narrow) for _ in range(3))
        self.of_graph = linear(hidden, narrow)
        self.widen = linear(narrow, hidden)

    def messages(self, nodes: Tensor, pairs: PairVectors, graph: Tensor) -> Tensor:
        """Return the messages of the pairs, ``[B, n, n, h]``."""
        triplets = self.triplets(nodes, pairs, graph)
        return torch.relu(thin_linear(triplets, self.widen.weight.t().contiguous(), self.widen.bias))

    def triplets(self, nodes: Tensor, pairs: PairVectors, graph: Tensor) -> Tensor:
        """Return the maximum of a triple's features over i for every pair (j, k), ``[B, n, n, narrow]``.

        A triple's features are the sum of terms of i, j, k, (i, j), (i, k), (j, k) and the graph. Terms without i
        leave the maximum, so only two terms are added per triple.
        """
        first, second, third = (corner(nodes) for corner in self.corners)
        side_ij, side_ik, side_jk = (pairs.project(side) for side in self.sides)  # type: ignore[arg-type]
        outside: Tensor = side_jk + second.unsqueeze(2) + (third + self.of_graph(graph).unsqueeze(1)).unsqueeze(1)
        return outside + max_plus(first.unsqueeze(2) + side_ij, side_ik)


@register_processor("deepsets", consumes="dense")
class DeepSets(MessagePassing):
    """Deep Sets (Zaheer et al., 2017): nodes send messages to themselves alone, along the pairs' diagonal."""

    def aggregate(self, step: Step) -> Tensor:
        """Return every node's message to itself ``[B, n, h]``."""
        total = self.sender(step.nodes) + self.receiver(step.nodes) + step.pairs.loops().project(self.pair)
        return self.network(total + self.graph(step.graph).unsqueeze(1))
