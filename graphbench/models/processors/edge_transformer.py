"""Edge transformer: triangular attention between the ordered pairs of nodes of a graph (Bergen et al., NeurIPS 2021).

The state of a pair (u, v) attends over the nodes w: the weight of w depends on the pairs (u, w) and (w, v), and so does
the value. A layer takes n^3 weights and values for n nodes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.data.batches.batching import move
from graphbench.models.config import ModelConfig
from graphbench.models.layers import Dropout, activation_function
from graphbench.models.pair_layout import PairLayout
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, every_edge, read_options


class EdgeTransformerOptions(StrictModel):
    """The settings of an edge transformer below ``options`` in a model's configuration.

    Attributes:
        shared: Whether all layers have the same weights, as in the paper.
        expansion: Width of the inner layer of the feed-forward networks, in widths of the model.
    """

    shared: bool = True
    expansion: int = Field(default=2, ge=1, le=64)


class TriangularAttention(nn.Module):
    """``W sum over w of a_uwv (V1 x_uw * V2 x_wv)``, with ``a_uwv = softmax over w of <Q x_uw, K x_wv> / sqrt(c)``.

    Every head has c of the model's channels; ``*`` is the product channel by channel.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.read = nn.Linear(width, 4 * width)
        self.out = nn.Linear(width, width)

    def forward(self, pairs: Tensor, layout: PairLayout) -> Tensor:
        """Return the attended values of all pairs, [P, d], of ``pairs`` [P, d]."""
        squares = self.read(to_squares(pairs, layout)).unflatten(3, (4, self.heads, -1))
        query, key, first, second = squares.unbind(3)  # [B, n, n, heads, c]
        scores = torch.einsum("buwhc,bwvhc->bhuwv", query, key) * query.shape[4] ** -0.5
        sizes = move(torch.from_numpy(layout.counts), pairs.device)
        absent = torch.arange(layout.most_nodes, device=pairs.device) >= sizes.unsqueeze(1)
        weights = torch.softmax(scores.float().masked_fill(absent[:, None, None, :, None], -torch.inf), dim=3)
        values = torch.einsum("bhuwv,buwhc,bwvhc->buvhc", weights.to(first.dtype), first, second)
        result: Tensor = self.out(from_squares(values.flatten(3), layout))
        return result


class EdgeTransformerLayer(nn.Module):
    """``x += attention(LN x)``, then ``x += network(LN x)``, with dropout on both branches."""

    def __init__(self, config: ModelConfig, options: EdgeTransformerOptions) -> None:
        super().__init__()
        width, inner = config.hidden, options.expansion * config.hidden
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = TriangularAttention(width, config.heads)
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation = activation_function(config.activation)
        self.dropout = Dropout(config.dropout)

    def forward(self, pairs: Tensor, layout: PairLayout) -> Tensor:
        """Return the updated pairs, [P, d]."""
        pairs = pairs + self.dropout(self.attention(self.before_attention(pairs), layout))
        network = self.outer(self.activation(self.inner(self.before_network(pairs))))
        result: Tensor = pairs + self.dropout(network)
        return result


@register_processor("edge_transformer")
class EdgeTransformer(Processor):
    """``layers`` layers of triangular attention, see :class:`EdgeTransformerOptions`; ``heads`` divide ``hidden``.

    The first state of a pair is made from its two nodes and its arcs. A node reads its own pair and the mean and the
    maximum of the pairs that end at it; an edge token reads the pairs of both directions of its edge.
    """

    supports_edge_tokens = True

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the layers.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`EdgeTransformerOptions`, or heads do not divide the
                width.
        """
        super().__init__(config, context)
        options = read_options(EdgeTransformerOptions, config)
        width = config.hidden
        if width % config.heads:
            raise ConfigError(
                f"model.heads is {config.heads} and does not divide model.hidden, {width}; change one of them"
            )
        self.kinds = nn.Parameter(torch.randn(3, width) * 0.1)  # of pairs without an arc, arcs, and loops
        self.tails, self.heads = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.repeats = config.layers if options.shared else 1
        count = 1 if options.shared else config.layers
        self.layers = nn.ModuleList(EdgeTransformerLayer(config, options) for _ in range(count))
        self.norm = nn.LayerNorm(width)
        self.of_nodes = nn.Linear(3 * width, width)
        self.of_edges = nn.Linear(2 * width if context.directed else width, width) if context.edge_tokens else None

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of the attention of each graph."""
        return nodes**3

    def forward(self, state: State) -> Processed:
        """Return the processed nodes, and the processed edges where they are tokens."""
        layout = PairLayout.of(state.layout)
        pairs = self._first(state, layout)
        for _ in range(self.repeats):
            for layer in self.layers:
                pairs = layer(pairs, layout)
        pairs = self.norm(pairs)
        read = [pairs.index_select(0, layout.loops), layout.pooled(pairs, "mean"), layout.pooled(pairs, "max")]
        return Processed(state.nodes + self.of_nodes(torch.cat(read, dim=1)), self._edges(state, pairs, layout))

    def _first(self, state: State, layout: PairLayout) -> Tensor:
        """Return the first states, [P, d]: of the two nodes, the kind of the pair, and the sum of its arcs."""
        assert state.edges is not None
        arcs = layout.rows_of(state.layout.edge_index, state.layout)
        nodes = state.nodes
        pairs = layout.with_ends(self.kinds[0], self.tails(nodes), self.heads(nodes))
        edges = every_edge(state.edges, state.layout) + (self.kinds[1] - self.kinds[0])
        pairs = pairs.index_add(0, arcs, edges.expand(len(arcs), -1).to(pairs.dtype))
        loops = (self.kinds[2] - self.kinds[0]).expand(len(layout.loops), -1)
        first: Tensor = pairs.index_add(0, layout.loops, loops.to(pairs.dtype))
        return first

    def _edges(self, state: State, pairs: Tensor, layout: PairLayout) -> Tensor | None:
        if self.of_edges is None or state.edge_tokens is None:
            return None
        edges: Tensor = state.edge_tokens + self.of_edges(layout.of_edges(pairs, state.layout))
        return edges


def to_squares(values: Tensor, layout: PairLayout) -> Tensor:
    """Return ``values`` [P, d] as [B, n, n, d], where n is the largest graph's number of nodes; padded with zeros."""
    n = layout.most_nodes
    if layout.same_size is not None:
        return values.view(-1, n, n, values.shape[1])
    places = _places(layout)
    padded = values.new_zeros(len(layout.counts) * n * n, values.shape[1]).index_copy(0, places, values)
    return padded.view(-1, n, n, values.shape[1])


def from_squares(squares: Tensor, layout: PairLayout) -> Tensor:
    """Return ``squares`` [B, n, n, d] as [P, d], without the padding."""
    rows = squares.reshape(-1, squares.shape[3])
    return rows if layout.same_size is not None else rows.index_select(0, _places(layout))


def _places(layout: PairLayout) -> Tensor:
    """Return the place int64 [P] of every pair among the padded pairs of all graphs."""
    n = layout.most_nodes
    graphs = layout.of_graphs(np.arange(len(layout.counts)) * n * n)
    tails = torch.div(layout.first_of_row - layout.first_of_graph, layout.sizes, rounding_mode="floor")
    return graphs + tails * n + layout.columns
