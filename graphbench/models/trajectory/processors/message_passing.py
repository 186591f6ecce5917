"""Message passing: MPNN (Gilmer et al., 2017), PGN (Velickovic et al., 2020), Deep Sets, GIN, Triplet-GMPNN.

A message is a two-layer network of the sum of linear maps of sender, receiver, pair and graph; a node takes the
maximum over its senders. The linear maps are summed as they are, so nothing of the width 4h is ever put together.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.processors.base import NEVER, Gate, Processor, Step

_GATED = ("gmpnn", "triplet_gmpnn")
_NEIGHBOURS_ONLY = ("pgn",)


class MessagePassing(Processor):
    """MPNN: all pairs of nodes send messages; PGN: neighbours alone; GMPNN: MPNN with a gate."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.sender, self.receiver = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.pair, self.graph = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.network = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.of_nodes, self.of_messages = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, hidden)
        self.gate = Gate(hidden) if config.processor in _GATED else None
        self.neighbours_only = config.processor in _NEIGHBOURS_ONLY

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one round of messages."""
        received = self.aggregate(step)
        new = torch.relu(self.of_nodes(step.nodes) + self.of_messages(received))
        return new if self.gate is None else self.gate(step, received, new), None

    def aggregate(self, step: Step) -> Tensor:
        """Return the maximum of every node's messages ``[B, n, h]``."""
        total = step.pairs.project(self.pair)
        total = total + self.sender(step.nodes).unsqueeze(2)
        total = total + (self.receiver(step.nodes) + self.graph(step.graph).unsqueeze(1)).unsqueeze(1)
        messages: Tensor = self.network(total)
        if self.neighbours_only:
            messages = messages.masked_fill(~step.neighbours.unsqueeze(-1), NEVER)
        received: Tensor = messages.amax(1)
        return received


class TripletMessagePassing(MessagePassing):
    """MPNN whose pairs exchange messages too, over all triples of nodes (Dudzik and Velickovic, 2022)."""

    makes_messages: ClassVar[bool] = True

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden, narrow = config.hidden, config.nb_triplet_features
        self.corners = nn.ModuleList(nn.Linear(2 * hidden, narrow) for _ in range(3))
        self.sides = nn.ModuleList(nn.Linear(hidden, narrow) for _ in range(3))
        self.of_graph = nn.Linear(hidden, narrow)
        self.widen = nn.Linear(narrow, hidden)

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one round of messages, and the messages of the pairs."""
        nodes, _ = super().update(step)
        return nodes, torch.relu(self.widen(self.triplets(step)))

    def triplets(self, step: Step) -> Tensor:
        """Return for every pair (j, k) the maximum over i of the triple's features, ``[B, n, n, narrow]``.

        A triple's features are the sum of terms of i, j, k, (i, j), (i, k), (j, k) and the graph. Terms without i
        leave the maximum, so only two terms are added per triple.
        """
        first, second, third = (corner(step.nodes) for corner in self.corners)
        side_ij, side_ik, side_jk = (step.pairs.project(side) for side in self.sides)  # type: ignore[arg-type]
        outside: Tensor = second.unsqueeze(2) + third.unsqueeze(1) + side_jk + self.of_graph(step.graph)[:, None, None]
        return outside + max_plus(first.unsqueeze(2) + side_ij, side_ik)


def max_plus(left: Tensor, right: Tensor) -> Tensor:
    """Return ``max over i of left[b, i, j] + right[b, i, k]`` for all pairs (j, k), ``[B, n, n, f]``.

    Args:
        left: ``[B, n, n, f]``.
        right: ``[B, n, n, f]``.
    """
    found: Tensor = _MaxPlus.apply(left, right)  # type: ignore[no-untyped-call]
    return found


class _MaxPlus(torch.autograd.Function):
    """The product of matrices in which sums are maxima and products are sums.

    The backward pass sends the gradient to the two terms of the largest sum alone, so the triples are never kept.
    """

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, left: Tensor, right: Tensor) -> Tensor:
        best = left[:, 0].unsqueeze(2) + right[:, 0].unsqueeze(1)
        chosen = torch.zeros_like(best, dtype=torch.int16)
        for i in range(1, left.shape[1]):
            candidate = left[:, i].unsqueeze(2) + right[:, i].unsqueeze(1)
            better = candidate > best
            best = torch.where(better, candidate, best)
            chosen.masked_fill_(better, i)
        ctx.save_for_backward(chosen)
        return best

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (chosen,) = ctx.saved_tensors  # type: ignore[attr-defined]
        (gradient,) = gradients
        left, right = torch.zeros_like(gradient), torch.zeros_like(gradient)
        for i in range(gradient.shape[1]):
            mine = gradient * (chosen == i)
            left[:, i], right[:, i] = mine.sum(2), mine.sum(1)
        return left, right


class DeepSets(MessagePassing):
    """Deep Sets (Zaheer et al., 2017): a node hears itself alone, so only the diagonal of the pairs is computed."""

    def aggregate(self, step: Step) -> Tensor:
        """Return every node's message to itself ``[B, n, h]``."""
        loops = step.pairs.project(self.pair).diagonal(dim1=1, dim2=2).transpose(1, 2)
        total = self.sender(step.nodes) + self.receiver(step.nodes) + loops + self.graph(step.graph).unsqueeze(1)
        messages: Tensor = self.network(total)
        return messages


class GIN(Processor):
    """The suite's GIN with edge features (Xu et al., 2019; Hu et al., 2020), on neighbours, as dense sums."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.embed = nn.Linear(2 * hidden, hidden)
        self.graph = nn.Linear(hidden, hidden)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.network = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden))

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one sum over neighbours."""
        nodes = self.embed(step.nodes) + self.graph(step.graph).unsqueeze(1)
        messages = torch.relu(nodes.unsqueeze(2) + step.pairs.full())
        received = (messages * step.neighbours.unsqueeze(-1)).sum(1)
        return self.network((1 + self.epsilon) * nodes + received), None
