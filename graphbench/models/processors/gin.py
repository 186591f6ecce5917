"""GIN: message passing with edge features (GINE; Hu et al., 2020), GraphBench paper, appendix B.2."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.config import ModelConfig
from graphbench.models.fused import is_compiled, relu_messages
from graphbench.models.graphs import Layout, neighbour_sums
from graphbench.models.layers import Dropout, FeedForward
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import LayerStack, every_edge


class GINLayer(nn.Module):
    """One layer: ``X = X + dropout(GINE(LN(X)))``, then ``X = X + FFN(LN(X))``.

    GINE sends ``ReLU(h_u + e_uv)`` along each arc (u, v) and adds ``(1 + eps) h_v``, with ``eps`` learned from 0. The
    paper is ambiguous in two points. Equation 3 shows no residual around the message passing, but the text and the
    implementation that the paper cites have a residual, as does this layer. The GINE equation writes ``h_v`` in the
    message; this layer follows GINE's definition, ``h_u``. The network after the sum is the dropout layer alone ("N
    determined by a dropout layer"), so a layer holds 2 d^2 weights.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout)

    def forward(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return updated nodes [N, d]."""
        normed = self.norm(nodes)
        update = (1.0 + self.epsilon) * normed + self.aggregate(normed, edges, layout)
        result: Tensor = self.feed_forward(nodes + self.dropout(update))
        return result

    def aggregate(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return the aggregated messages of every node, [N, d]."""
        assert edges is not None
        return neighbour_sum(nodes, edges, layout)


def neighbour_sum(nodes: Tensor, edges: Tensor, layout: Layout) -> Tensor:
    """Return ``sum over arcs (u, v) of ReLU(nodes[u] + edges[uv])`` for every v, [N, d].

    Args:
        nodes: [N, d].
        edges: [E, d]; [E / B, d] for B copies of one graph; or [1, d], the same for all edges: then ReLU is applied
            once per node instead of once per arc.
        layout: The batch's layout.
    """
    if edges.shape[0] == 1:
        return neighbour_sums(torch.relu(nodes + edges), layout)
    if is_compiled(nodes.shape[1], nodes, edges):
        return relu_messages(nodes, edges, layout.edge_index)
    source, target = layout.edge_index
    edges = every_edge(edges, layout)
    messages = torch.relu(nodes.index_select(0, source) + edges)
    return torch.zeros_like(nodes, dtype=messages.dtype).index_add(0, target, messages)


@register_processor("gin")
class GIN(LayerStack):
    """A stack of :class:`GINLayer`."""

    layer: ClassVar[type[GINLayer]] = GINLayer
    reads_shared_edges = True
