"""Attention: GAT (Velickovic et al., 2018), GATv2 (Brody et al., 2022) and the suite's graph transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.processors.base import NEVER, Processor, Step

_SLOPE = 0.2


class GAT(Processor):
    """Attention over neighbours, whose logits are sums of linear maps of sender, receiver, pair and graph."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden, heads = config.hidden, config.heads
        self.value, self.skip = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.sender, self.receiver = nn.Linear(2 * hidden, heads), nn.Linear(2 * hidden, heads)
        self.pair, self.graph = nn.Linear(hidden, heads), nn.Linear(hidden, heads)

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one round of attention."""
        logits = F.leaky_relu(
            self.sender(step.nodes).unsqueeze(2)
            + self.receiver(step.nodes).unsqueeze(1)
            + step.pairs.project(self.pair)
            + self.graph(step.graph)[:, None, None],
            _SLOPE,
        )
        return torch.relu(self.attended(step, logits) + self.skip(step.nodes)), None

    def attended(self, step: Step, logits: Tensor) -> Tensor:
        """Return the values of every node's neighbours, averaged; ``logits`` are ``[B, sender, receiver, heads]``."""
        weights = logits.masked_fill(~step.neighbours.unsqueeze(-1), NEVER).softmax(1)
        values = self.value(step.nodes).unflatten(-1, (self.config.heads, -1))
        return torch.einsum("bijh,bihd->bjhd", weights, values).flatten(-2)


class GATv2(GAT):
    """GAT whose logits are networks of the sums, so that receivers may rank their senders differently."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.sender, self.receiver = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.pair, self.graph = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.rank = nn.Parameter(torch.empty(config.heads, hidden // config.heads))
        nn.init.xavier_uniform_(self.rank)

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one round of attention."""
        total = step.pairs.project(self.pair) + self.sender(step.nodes).unsqueeze(2)
        total = total + (self.receiver(step.nodes) + self.graph(step.graph).unsqueeze(1)).unsqueeze(1)
        logits = (F.leaky_relu(total, _SLOPE).view(*total.shape[:3], *self.rank.shape) * self.rank).sum(-1)
        return torch.relu(self.attended(step, logits) + self.skip(step.nodes)), None


class GraphTransformer(Processor):
    """One layer of a transformer over all nodes, the pairs as a bias of the attention, in pre-norm form."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.embed = nn.Linear(2 * hidden, hidden)
        self.graph = nn.Linear(hidden, hidden)
        self.bias = nn.Linear(hidden, config.heads)
        self.first_norm, self.second_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.projections = nn.Linear(hidden, 3 * hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.network = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden))

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one layer."""
        nodes = self.embed(step.nodes) + self.graph(step.graph).unsqueeze(1)
        heads = self.config.heads
        query, key, value = (
            part.unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in self.projections(self.first_norm(nodes)).chunk(3, -1)
        )
        bias = step.pairs.project(self.bias).permute(0, 3, 2, 1)  # [B, heads, receiver, sender]
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        nodes = nodes + self.mix(attended.transpose(1, 2).flatten(-2))
        return nodes + self.network(self.second_norm(nodes)), None
