"""Attention: GAT (Velickovic et al., 2018), GATv2 (Brody et al., 2022), memory networks (Sukhbaatar et al., 2015).

Here row u of the pairs is the receiver of its neighbours' messages: node u reads the pairs (u, v).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.processor_registry import register_processor
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.layers import linear, truncated_normal_
from graphbench.models.trajectory.processors.base import MASKED, DenseProcessor, Step

_NEGATIVE_SLOPE = 0.01


@register_processor("gat", consumes="dense")
class GAT(DenseProcessor):
    """Attention over neighbours; the logits are sums of linear maps of receiver, sender, pair and graph."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden, width = config.hidden, self.logit_width(config)
        self.value, self.skip = linear(2 * hidden, hidden), linear(2 * hidden, hidden)
        self.receiver, self.sender = linear(2 * hidden, width), linear(2 * hidden, width)
        self.pair, self.graph = linear(hidden, width), linear(hidden, width)

    @staticmethod
    def logit_width(config: TrajectoryModelConfig) -> int:
        """Return the width of the sums from which logits are computed."""
        return config.heads

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one round of attention, ``[B, n, h]``."""
        sender, receiver, value, skip = step.project(self.sender, self.receiver, self.value, self.skip)
        total = step.pairs.project(self.pair) + sender.unsqueeze(1)
        total.add_((receiver + self.graph(step.graph).unsqueeze(1)).unsqueeze(2))
        logits = self.logits(F.leaky_relu_(total, _NEGATIVE_SLOPE)).masked_fill(~step.neighbours.unsqueeze(-1), MASKED)
        values = value.view(*value.shape[:-1], self.config.heads, -1)
        read = torch.einsum("bijh,bjhd->bihd", logits.softmax(2).to(values.dtype), values).flatten(-2)
        new: Tensor = self.norm(torch.relu(read + skip))
        return new

    def logits(self, total: Tensor) -> Tensor:
        """Return the logits ``[B, n, n, heads]`` of the sums."""
        return total


@register_processor("gatv2", consumes="dense")
class GATv2(GAT):
    """GAT with logits that are networks of the sums, so that receivers may rank their senders differently."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        width = config.hidden // config.heads
        self.rank = nn.Parameter(torch.empty(config.heads, width))
        truncated_normal_(self.rank, 1 / math.sqrt(width))

    @staticmethod
    def logit_width(config: TrajectoryModelConfig) -> int:
        """Return the width of the sums from which logits are computed."""
        return config.hidden

    def logits(self, total: Tensor) -> Tensor:
        """Return the logits ``[B, n, n, heads]`` of the sums."""
        return torch.einsum("bijhd,hd->bijh", total.view(*total.shape[:3], *self.rank.shape), self.rank)


@register_processor("memnet", consumes="dense")
class MemoryNetwork(DenseProcessor):
    """Memory network with one hop per step: a node's query is matched with its pairs' keys, and their contents added.

    As in the benchmark's paper, section 4.1, the memory of a node consists of its pairs, 0 where there is no neighbour,
    and the state before the step is not read.
    """

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.query, self.graph = linear(hidden, hidden), linear(hidden, hidden)
        self.key, self.content = linear(hidden, hidden), linear(hidden, hidden)
        self.keep, self.last = linear(hidden, hidden), linear(hidden, hidden)

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one read of the memory, ``[B, n, h]``."""
        query = self.query(step.nodes[..., : self.config.hidden]) + self.graph(step.graph).unsqueeze(1)
        present = step.neighbours.to(query.dtype)
        matches = torch.einsum("bijd,bid->bij", step.pairs.project(self.key), query) * present
        weights = matches.softmax(2).to(query.dtype) * present
        read = torch.einsum("bij,bijd->bid", weights, step.pairs.project(self.content))
        new: Tensor = self.norm(self.last(torch.relu(read + self.keep(query))))
        return new
