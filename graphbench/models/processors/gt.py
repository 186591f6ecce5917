"""GT: a graph transformer with biased attention over nodes, or nodes and edges (GraphBench paper, appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphbench.models.arcs import occurrences
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.layers import Dropout, FeedForward, StochasticDepth, learned_vector
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.attention import (
    ArcBias,
    Attention,
    AttentionBias,
    RelationBias,
    attention_function,
)
from graphbench.models.processors.base import Context, Processed, Processor, State

_ALIGNED = 8  # tokens; fused kernels of GPUs copy a bias whose rows have another length
_PAIRS_PER_ROW = 32


class GTLayer(nn.Module):
    """One layer: ``X = X + drop(Attention(LN(X)) W_O)``, then ``X = X + drop(FFN(LN(X)))``; 6 d^2 weights.

    Layer normalisations have no learned scales. Choices that the paper leaves open: attention scores are scaled by
    ``(d / heads)^-1/2`` per head (the paper's equation writes ``d^-1/2`` for one head of width d), both branches are
    residual, and the paper's "MLP after attention" is the second line of equation 3.
    """

    def __init__(self, config: ModelConfig, stochastic_depth: float) -> None:
        """Create a layer; in training, a graph skips each branch with probability ``stochastic_depth``."""
        super().__init__()
        self.heads = config.heads
        self.norm = nn.LayerNorm(config.hidden, elementwise_affine=False)
        self.queries_keys_values = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.output = nn.Linear(config.hidden, config.hidden, bias=False)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout, affine=False)
        self.skip = StochasticDepth(stochastic_depth)

    def forward(self, tokens: Tensor, attend: Attention) -> Tensor:
        """Return updated tokens [B, L, d]."""
        graphs, length, width = tokens.shape
        split = self.queries_keys_values(self.norm(tokens)).view(graphs, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        attended = attend(queries, keys, values).transpose(1, 2).reshape(graphs, length, width)
        tokens = tokens + self.skip(self.dropout(self.output(attended)))
        result: Tensor = tokens + self.skip(self.feed_forward.branch(tokens))
        return result


@dataclass(frozen=True, slots=True)
class _Positions:
    """Positions of nodes and edges among the tokens of a padded batch: graph token first, then nodes, then edges."""

    lengths: Tensor  # int64 [B]
    size: int
    nodes: Tensor  # int64 [N], position within the graph's tokens
    edges: Tensor | None  # int64 [M]
    edge_graph: Tensor | None  # int64 [M]


@register_processor("gt")
class GT(Processor):
    """A stack of :class:`GTLayer` over the nodes, or over the nodes and edges of a graph.

    Node tokens: the bias of a pair of nodes is a linear function of the embedding of the arc between them, and 0
    without an arc. Edge tokens (paper, section 3.3.3, edge transform): the tokens are the pairs (v, v) and the edges,
    each undirected edge once; two tokens are adjacent if they share an endpoint. The bias is a learned number per head
    for "same token" and for "shared endpoint". Either bias is one tensor, shared by all layers. A graph-level readout
    adds a learned token with separate biases to itself, to other tokens and from other tokens.
    """

    supports_edge_tokens = True
    supports_graph_token = True

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.mode = config.attention
        self.layers = nn.ModuleList(
            GTLayer(config, config.stochastic_depth * (i + 1) / config.layers) for i in range(config.layers)
        )
        self.arc_bias = None if context.edge_tokens else nn.Linear(config.hidden, config.heads)
        self.relation_bias = nn.Parameter(torch.zeros(2, config.heads)) if context.edge_tokens else None
        self.graph_token = learned_vector(config.hidden) if context.graph_token else None
        self.graph_token_bias = nn.Parameter(torch.zeros(3, config.heads)) if context.graph_token else None

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[Any]:
        """Return a 32nd of the pairs of tokens: a pair holds one number per head, not a vector."""
        tokens = nodes + edges if self.relation_bias is not None else nodes + 1
        return tokens**2 / _PAIRS_PER_ROW

    def forward(self, state: State) -> Processed:
        """Return the processed nodes, edge tokens and graph token."""
        positions = _positions(state.layout, state.edge_tokens is not None, self.graph_token is not None)
        attend = attention_function(self.mode, self._bias(state, positions))
        tokens = self._padded(state, positions)
        for layer in self.layers:
            tokens = layer(tokens, attend)
        graph = tokens[:, 0] if self.graph_token is not None else None
        nodes = tokens[state.layout.graph, positions.nodes]
        edges = None if positions.edges is None else tokens[positions.edge_graph, positions.edges]
        return Processed(nodes, edges, graph)

    def _padded(self, state: State, positions: _Positions) -> Tensor:
        """Return all tokens as [B, L, d], zero on padding."""
        graph, position, rows = state.layout.graph, positions.nodes, state.nodes
        if state.edge_tokens is not None and positions.edges is not None and positions.edge_graph is not None:
            graph = torch.cat([graph, positions.edge_graph])
            position = torch.cat([position, positions.edges])
            rows = torch.cat([rows, state.edge_tokens])
        flat = rows.new_zeros(positions.lengths.numel() * positions.size, rows.shape[1])
        tokens = flat.index_copy(0, graph * positions.size + position, rows).view(-1, positions.size, rows.shape[1])
        if self.graph_token is not None:
            token = self.graph_token.to(tokens.dtype).expand(tokens.shape[0], 1, -1)
            tokens = torch.cat([token, tokens[:, 1:]], dim=1)
        return tokens

    def _bias(self, state: State, positions: _Positions) -> AttentionBias:
        layout = state.layout
        if self.relation_bias is not None:
            ends = _endpoints(layout, positions, self.graph_token is not None)
            return RelationBias(self.relation_bias, ends, positions.lengths, self.graph_token_bias)
        assert self.arc_bias is not None and state.edges is not None
        tail, head = layout.edge_index
        values = self.arc_bias(state.edges).expand(tail.numel(), -1)
        arcs = torch.stack([layout.graph[head], positions.nodes[head], positions.nodes[tail]])
        return ArcBias(values, arcs, positions.lengths, positions.size, self.graph_token_bias)


def _positions(layout: Layout, edge_tokens: bool, graph_token: bool) -> _Positions:
    offset = 1 if graph_token else 0
    everything = torch.arange(layout.num_nodes, device=layout.graph.device)
    nodes = everything - layout.ptr[layout.graph] + offset
    lengths = layout.sizes + offset
    edges = edge_graph = None
    if edge_tokens:
        edge_graph = layout.graph[layout.edges[0]]
        counts = occurrences(edge_graph, layout.num_graphs)
        first = counts.cumsum(0) - counts
        rank = torch.arange(edge_graph.numel(), device=edge_graph.device) - first[edge_graph]
        edges = rank + lengths[edge_graph]
        lengths = lengths + counts
    size = offset + (layout.most_items if edge_tokens else layout.extent.most_nodes)
    if layout.graph.device.type != "cpu":
        size += -size % _ALIGNED
    return _Positions(lengths, size, nodes, edges, edge_graph)


def _endpoints(layout: Layout, positions: _Positions, graph_token: bool) -> Tensor:
    """Return every token's endpoints int64 [B, L, 2], numbered through the batch; -1 for graph token and padding."""
    assert positions.edges is not None and positions.edge_graph is not None
    ends = layout.graph.new_full((positions.lengths.numel(), positions.size, 2), -1)
    everything = torch.arange(layout.num_nodes, device=ends.device)
    ends[layout.graph, positions.nodes] = everything.unsqueeze(1).expand(-1, 2)
    ends[positions.edge_graph, positions.edges] = layout.edges.t()
    return ends
