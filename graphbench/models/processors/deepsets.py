"""DeepSets: a dummy baseline that sees each graph as a set of nodes (Zaheer et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, segment_mean
from graphbench.models.layers import Dropout, FeedForward
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State


class DeepSetsLayer(nn.Module):
    """``X = X + dropout((1 + eps) LN(X) + mean of LN(X) over the graph)``, then ``X = X + FFN(LN(X))``.

    The message passing of GIN with the graph's mean in place of the neighbours' sum, hence of GIN's size.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout)

    def forward(self, nodes: Tensor, layout: Layout) -> Tensor:
        """Return updated nodes [N, d]."""
        normed = self.norm(nodes)
        mean = segment_mean(normed, layout.graph, layout.sizes)
        update = (1.0 + self.epsilon) * normed + mean.index_select(0, layout.graph)
        result: Tensor = self.feed_forward(nodes + self.dropout(update))
        return result


@register_processor("deepsets")
class DeepSets(Processor):
    """A stack of :class:`DeepSetsLayer`."""

    uses_edges = False

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.layers = nn.ModuleList(DeepSetsLayer(config) for _ in range(config.layers))

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        nodes = state.nodes
        for layer in self.layers:
            nodes = layer(nodes, state.layout)
        return Processed(nodes)
