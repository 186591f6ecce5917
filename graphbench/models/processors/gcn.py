"""GCN and GAT in the frame of GIN: only the aggregation of the layers differs (GraphBench paper, table 6)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, neighbour_sums
from graphbench.models.layers import Dropout, FeedForward
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import LayerStack
from graphbench.models.processors.gat import GATLayer

_NEGATIVE_SLOPE = 0.2


class GCNLayer(nn.Module):
    """One layer: ``X = X + dropout(W A LN(X))``, then ``X = X + FFN(LN(X))``.

    A is the adjacency matrix with loops, each entry divided by the square root of the product of both degrees (Kipf and
    Welling, 2017; degrees count the loop). Edges carry no features.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.weight = nn.Linear(config.hidden, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout)

    def forward(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return updated nodes [N, d]."""
        values = self.weight(self.norm(nodes))
        result: Tensor = self.feed_forward(nodes + self.dropout(normalised_sums(values, layout)))
        return result


def normalised_sums(nodes: Tensor, layout: Layout) -> Tensor:
    """Return the sum over the arcs (u, v) into v and its loop of ``nodes[u] / sqrt(d_u d_v)``, [N, d].

    Args:
        nodes: [N, d].
        layout: The batch's layout; ``d_v`` is one more than the number of arcs into v.
    """
    shares = (1 + layout.in_degrees).to(nodes.dtype).rsqrt().unsqueeze(1)
    scaled = nodes * shares
    return (scaled + neighbour_sums(scaled, layout)) * shares


class ResidualGATLayer(nn.Module):
    """One layer: ``X = X + dropout(GAT(LN(X)))``, then ``X = X + FFN(LN(X))``; see :class:`~.gat.GATLayer`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.attention = GATLayer(config.hidden, config.hidden, config.heads, _NEGATIVE_SLOPE)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout)

    def forward(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return updated nodes [N, d]."""
        assert edges is not None
        arcs = edges.expand(layout.edge_index.shape[1], -1)
        update = self.attention(self.norm(nodes), arcs, layout)
        result: Tensor = self.feed_forward(nodes + self.dropout(update.to(nodes.dtype)))
        return result


@register_processor("gcn")
class GCN(LayerStack):
    """A stack of :class:`GCNLayer`."""

    uses_edges = False
    layer: ClassVar[type[nn.Module]] = GCNLayer


@register_processor("gat_residual")
class ResidualGAT(GCN):
    """A stack of :class:`ResidualGATLayer`."""

    uses_edges = True
    layer = ResidualGATLayer
