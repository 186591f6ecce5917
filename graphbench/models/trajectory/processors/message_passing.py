"""Message passing: MPNN (Gilmer et al., 2017), PGN (Velickovic et al., 2020), Deep Sets, Triplet-GMPNN.

A message is a two-layer network of the sum of linear maps of sender, receiver, pair and graph; a node takes the
maximum over its senders. The outputs of the linear maps are summed, so no concatenation of width 4h is needed.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.fused import is_compiled
from graphbench.models.processor_registry import register_processor
from graphbench.models.semirings import MOST_NODES
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.fused import PairSum, received
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
        heard = self.aggregate(step)
        (nodes,) = step.project(self.of_nodes)
        new: Tensor = self.norm(torch.relu(nodes + self.of_messages(heard)))
        return new if self.gate is None else self.gate(step, heard, new)  # type: ignore[no-any-return]

    def aggregate(self, step: Step) -> Tensor:
        """Return the maximum of every node's messages ``[B, n, h]``."""
        sent, taken = step.project(self.sender, self.receiver)
        taken = taken + self.graph(step.graph).unsqueeze(1)
        if is_compiled(self.config.hidden, sent, taken) and sent.shape[1] <= MOST_NODES:
            pair = step.pairs.composed(self.pair)
            total = PairSum(step.pairs.columns, pair.weight, sent, taken + pair.bias)
            return received(total, self.inner, self.outer, step.neighbours if self.neighbours_only else None)
        messages = self.network((step.pairs.project(self.pair) + sent.unsqueeze(2)).add_(taken.unsqueeze(1)))
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

    def messages(self, step: Step) -> Tensor:
        """Return the messages of the pairs, ``[B, n, n, h]``."""
        triplets = self.triplets(step)
        return torch.relu(thin_linear(triplets, self.widen.weight.t().contiguous(), self.widen.bias))

    def triplets(self, step: Step) -> Tensor:
        """Return the maximum of a triple's features over i for every pair (j, k), ``[B, n, n, narrow]``.

        A triple's features are the sum of terms of i, j, k, (i, j), (i, k), (j, k) and the graph. Terms without i
        leave the maximum, so only two terms are added per triple.
        """
        first, second, third = step.project(*self.corners)  # type: ignore[arg-type]
        side_ij, side_ik, side_jk = (step.pairs.project(side) for side in self.sides)  # type: ignore[arg-type]
        outside: Tensor = side_jk + second.unsqueeze(2) + (third + self.of_graph(step.graph).unsqueeze(1)).unsqueeze(1)
        return outside + max_plus(first.unsqueeze(2) + side_ij, side_ik)


@register_processor("deepsets", consumes="dense")
class DeepSets(MessagePassing):
    """Deep Sets (Zaheer et al., 2017): nodes send messages to themselves alone, along the pairs' diagonal."""

    def aggregate(self, step: Step) -> Tensor:
        """Return every node's message to itself ``[B, n, h]``."""
        sent, taken = step.project(self.sender, self.receiver)
        total = sent + taken + step.pairs.loops().project(self.pair)
        return self.network(total + self.graph(step.graph).unsqueeze(1))
