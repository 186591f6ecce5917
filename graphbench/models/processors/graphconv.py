"""GraphConv with mean aggregation: the message-passing baseline for social networks (GraphBench paper, equation 4)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, neighbour_sums
from graphbench.models.layers import Dropout, activation_function
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import LayerStack


class GraphConvLayer(nn.Module):
    """One layer: ``x_v = act(dropout(W_1 x_v + mean over arcs (u, v) of W_2 x_u))``, without norms or residuals.

    Nodes without incoming arcs have a mean of 0. Edges carry no features.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.own = nn.Linear(config.hidden, config.hidden)
        self.others = nn.Linear(config.hidden, config.hidden, bias=False)
        self.dropout = Dropout(config.dropout)
        self.activation = activation_function(config.activation)

    def forward(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return updated nodes [N, d]."""
        result: Tensor = self.activation(self.dropout(self.own(nodes) + self.others(neighbour_means(nodes, layout))))
        return result


def neighbour_means(nodes: Tensor, layout: Layout) -> Tensor:
    """Return the mean over arcs (u, v) of ``nodes[u]`` for every v, [N, d]; 0 without arcs into v."""
    return neighbour_sums(nodes, layout) / layout.in_degrees.clamp(min=1).unsqueeze(1)


@register_processor("graphconv")
class GraphConv(LayerStack):
    """A stack of :class:`GraphConvLayer`."""

    uses_edges = False
    layer: ClassVar[type[nn.Module]] = GraphConvLayer
