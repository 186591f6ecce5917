"""GAT: attention over neighbours and edges (Velickovic et al., 2018), in the variant of CLUTRR's paper."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, add_rows
from graphbench.models.layers import Dropout
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options


class GATOptions(StrictModel):
    """The settings of a GAT below ``options`` in a model's configuration.

    Attributes:
        rounds: Number of times that the same stack of layers is applied.
        edge_width: Width of the edges' vectors; None for the width of the nodes.
        negative_slope: Slope of the LeakyReLU below 0.
    """

    rounds: int = Field(default=1, ge=1)
    edge_width: int | None = Field(default=None, ge=1)
    negative_slope: float = Field(default=0.2, ge=0.0)


class GATLayer(nn.Module):
    """One layer: ``x_v = P sum over u of a_uv [W x_u, e_uv]``, the mean of the heads, with a bias.

    ``a_uv`` is the softmax of ``LeakyReLU(a . [W x_v, W x_u, e_uv])`` over the arcs into v and a loop at v with an edge
    vector of zeros. Without the edges in the sum, the layer is PyG's ``GATConv(edge_dim=...)`` with
    averaged heads; CLUTRR's paper attends over the concatenation of node and edge (appendix 1.1).
    """

    def __init__(self, width: int, edge_width: int, heads: int, negative_slope: float) -> None:
        super().__init__()
        self.heads, self.negative_slope = heads, negative_slope
        self.values = nn.Linear(width, heads * width, bias=False)
        self.target_score = nn.Parameter(torch.empty(heads, width))
        self.source_score = nn.Parameter(torch.empty(heads, width))
        self.edge_score = nn.Parameter(torch.empty(heads, edge_width))
        self.output = nn.Linear(width + edge_width, width)
        for weight in (self.values.weight, self.target_score, self.source_score, self.edge_score):
            nn.init.xavier_uniform_(weight)

    def forward(self, nodes: Tensor, edges: Tensor, layout: Layout) -> Tensor:
        """Return updated nodes [N, d] from ``nodes`` [N, d] and ``edges`` [E, edge_width]."""
        source, target = layout.edge_index
        values = self.values(nodes).view(nodes.shape[0], self.heads, -1)
        towards, away = (values * self.target_score).sum(-1), (values * self.source_score).sum(-1)
        arcs = towards.index_select(0, target) + away.index_select(0, source) + edges @ self.edge_score.t()
        on_arcs, on_loops = softmax_with_loops(self._scores(arcs), self._scores(towards + away), target)
        messages = torch.einsum("eh,ehd->ed", on_arcs, values.index_select(0, source))
        messages = torch.cat([messages, on_arcs.sum(1, keepdim=True) * edges], dim=1)
        loop_messages = F.pad(torch.einsum("nh,nhd->nd", on_loops, values), (0, edges.shape[1]))
        gathered = add_rows(loop_messages, target, messages)
        result: Tensor = self.output(gathered / self.heads)
        return result

    def _scores(self, raw: Tensor) -> Tensor:
        return F.leaky_relu(raw.float(), self.negative_slope)


def softmax_with_loops(arcs: Tensor, loops: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the softmax of scores over the arcs into each node and the node's loop, per head.

    Args:
        arcs: [E, heads], scores of arcs.
        loops: [N, heads], scores of loops.
        target: int64 [E], the node at which each arc points.

    Returns:
        Weights [E, heads] and [N, heads].
    """
    index = target.unsqueeze(1).expand_as(arcs)
    highest = loops.detach().scatter_reduce(0, index, arcs.detach(), "amax")
    on_arcs, on_loops = (arcs - highest.index_select(0, target)).exp(), (loops - highest).exp()
    total = on_loops.index_add(0, target, on_arcs)
    return on_arcs / total.index_select(0, target), on_loops / total


@register_processor("gat")
class GAT(Processor):
    """One stack of ``layers`` layers, applied ``options.rounds`` times: dropout before, an ELU between layers.

    All layers but the last have ``config.heads`` heads; the last has one. There are neither residuals nor
    normalisations. Widths and rounds are given in the paper (appendix 2.2); the rest follows its authors' baselines.
    """

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create ``config.layers`` layers.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`GATOptions`.
        """
        super().__init__(config, context)
        options = read_options(GATOptions, config)
        width = options.edge_width or config.hidden
        self.rounds = options.rounds
        self.edges = nn.Linear(config.hidden, width, bias=False)
        heads = [config.heads] * (config.layers - 1) + [1]
        self.layers = nn.ModuleList(GATLayer(config.hidden, width, count, options.negative_slope) for count in heads)
        self.dropout = Dropout(config.dropout)

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        nodes = state.nodes
        assert state.edges is not None
        edges = self.edges(state.edges).expand(state.layout.edge_index.shape[1], -1)
        for _ in range(self.rounds):
            for number, layer in enumerate(self.layers):
                if number:
                    nodes = F.elu(nodes)
                nodes = layer(self.dropout(nodes), edges, state.layout)
        return Processed(nodes)
