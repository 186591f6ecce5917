"""Message passing: MPNN (Gilmer et al., 2017), PGN (Velickovic et al., 2020), Deep Sets, GIN, Triplet-GMPNN.

A message is a two-layer network of the sum of linear maps of sender, receiver, pair and graph; a node takes the
maximum over its senders. The linear maps are summed as they are, so nothing of the width 4h is ever put together.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import PairVectors
from graphbench.models.trajectory.layers import linear, thin_linear
from graphbench.models.trajectory.processors.base import NEVER, Gate, Processor, Step
from graphbench.models.trajectory.processors.maxima import max_over_senders, max_plus

_GATED = ("gmpnn", "triplet_gmpnn")
_NEIGHBOURS_ONLY = ("pgn",)


class MessagePassing(Processor):
    """MPNN: all pairs of nodes send messages; PGN: neighbours alone; GMPNN: MPNN with a gate."""

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
            messages = messages.masked_fill(~step.neighbours.unsqueeze(-1), NEVER)
        return max_over_senders(messages)

    def network(self, total: Tensor) -> Tensor:
        """Return the messages ``[..., h]`` of the sums of all that they depend on, which are overwritten."""
        rows = total.relu_().flatten(0, -2)  # an inner activation of rows is no view, so it too may be overwritten
        messages: Tensor = self.outer(self.inner(rows).relu_())
        return messages.view(total.shape)


class TripletMessagePassing(MessagePassing):
    """MPNN whose pairs exchange messages too, over all triples of nodes (Dudzik and Velickovic, 2022)."""

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
        """Return for every pair (j, k) the maximum over i of the triple's features, ``[B, n, n, narrow]``.

        A triple's features are the sum of terms of i, j, k, (i, j), (i, k), (j, k) and the graph. Terms without i
        leave the maximum, so only two terms are added per triple.
        """
        first, second, third = (corner(nodes) for corner in self.corners)
        side_ij, side_ik, side_jk = (pairs.project(side) for side in self.sides)  # type: ignore[arg-type]
        outside: Tensor = side_jk + second.unsqueeze(2) + (third + self.of_graph(graph).unsqueeze(1)).unsqueeze(1)
        return outside + max_plus(first.unsqueeze(2) + side_ij, side_ik)


class DeepSets(MessagePassing):
    """Deep Sets (Zaheer et al., 2017): a node hears itself alone, so only the diagonal of the pairs is computed."""

    def aggregate(self, step: Step) -> Tensor:
        """Return every node's message to itself ``[B, n, h]``."""
        total = self.sender(step.nodes) + self.receiver(step.nodes) + step.pairs.loops().project(self.pair)
        return self.network(total + self.graph(step.graph).unsqueeze(1))


class GIN(Processor):
    """The suite's GIN with edge features (Xu et al., 2019; Hu et al., 2020), on neighbours, as dense sums."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.embed = linear(2 * hidden, hidden)
        self.graph = linear(hidden, hidden)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.network = nn.Sequential(linear(hidden, 2 * hidden), nn.ReLU(), linear(2 * hidden, hidden))

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one sum over neighbours, ``[B, n, h]``."""
        nodes = self.embed(step.nodes) + self.graph(step.graph).unsqueeze(1)
        messages = (step.pairs.full() + nodes.unsqueeze(2)).relu_()
        received = (messages * step.neighbours.unsqueeze(-1)).sum(1)
        new: Tensor = self.norm(self.network((1 + self.epsilon) * nodes + received))
        return new
