"""Attention: GAT (Velickovic et al., 2018), GATv2 (Brody et al., 2022) and the suite's graph transformer.

Row u of the pairs is here the receiver of what its neighbours send: node u looks along its own pairs (u, v).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.layers import cut_normal_, linear
from graphbench.models.trajectory.processors.base import NEVER, Processor, Step

_SLOPE = 0.01


class GAT(Processor):
    """Attention over neighbours, whose logits are sums of linear maps of receiver, sender, pair and graph."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden, width = config.hidden, self.logit_width(config)
        self.value, self.skip = linear(2 * hidden, hidden), linear(2 * hidden, hidden)
        self.receiver, self.sender = linear(2 * hidden, width), linear(2 * hidden, width)
        self.pair, self.graph = linear(hidden, width), linear(hidden, width)

    @staticmethod
    def logit_width(config: TrajectoryModelConfig) -> int:
        """Return the width of the sums from which logits are made."""
        return config.heads

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one round of attention, ``[B, n, h]``."""
        total = step.pairs.project(self.pair) + self.sender(step.nodes).unsqueeze(1)
        total.add_((self.receiver(step.nodes) + self.graph(step.graph).unsqueeze(1)).unsqueeze(2))
        logits = self.logits(F.leaky_relu_(total, _SLOPE)).masked_fill(~step.neighbours.unsqueeze(-1), NEVER)
        values = self.value(step.nodes).unflatten(-1, (self.config.heads, -1))
        read = torch.einsum("bijh,bjhd->bihd", logits.softmax(2).to(values.dtype), values).flatten(-2)
        new: Tensor = self.norm(torch.relu(read + self.skip(step.nodes)))
        return new

    def logits(self, total: Tensor) -> Tensor:
        """Return the logits ``[B, n, n, heads]`` of the sums."""
        return total


class GATv2(GAT):
    """GAT whose logits are networks of the sums, so that receivers may rank their senders differently."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        width = config.hidden // config.heads
        self.rank = nn.Parameter(torch.empty(config.heads, width))
        cut_normal_(self.rank, 1 / math.sqrt(width))

    @staticmethod
    def logit_width(config: TrajectoryModelConfig) -> int:
        """Return the width of the sums from which logits are made."""
        return config.hidden

    def logits(self, total: Tensor) -> Tensor:
        """Return the logits ``[B, n, n, heads]`` of the sums."""
        return torch.einsum("bijhd,hd->bijh", total.view(*total.shape[:3], *self.rank.shape), self.rank)


class GraphTransformer(Processor):
    """One layer of a transformer over all nodes, the pairs as a bias of the attention, in pre-norm form."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.embed = linear(2 * hidden, hidden)
        self.graph = linear(hidden, hidden)
        self.bias = linear(hidden, config.heads)
        self.first_norm, self.second_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.projections = linear(hidden, 3 * hidden)
        self.mix = linear(hidden, hidden)
        self.network = nn.Sequential(linear(hidden, 2 * hidden), nn.GELU(), linear(2 * hidden, hidden))

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one layer, ``[B, n, h]``."""
        nodes = self.embed(step.nodes) + self.graph(step.graph).unsqueeze(1)
        query, key, value = (
            part.unflatten(-1, (self.config.heads, -1)).transpose(1, 2)
            for part in self.projections(self.first_norm(nodes)).chunk(3, -1)
        )
        bias = step.pairs.project(self.bias).permute(0, 3, 1, 2)  # [B, heads, receiver, sender]
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        nodes = nodes + self.mix(attended.transpose(1, 2).flatten(-2))
        new: Tensor = self.norm(nodes + self.network(self.second_norm(nodes)))
        return new
