"""A processor whose states are the ordered pairs of the nodes of a graph, combined in semirings.

A graph of n nodes has n^2 states. A layer combines the pairs (u, w) and (w, v) over all nodes w in the semirings
(max, min) and (max, +), once (``triangle``) or along walks of any length (``closure``), which no number of layers of
message passing does on graphs of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.noise import GraphNoise
from graphbench.models.pair_layout import PairLayout
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, every_edge, read_options
from graphbench.models.processors.recurrence import repeated_states, share_of_steps, supervised_states
from graphbench.models.semirings import mean_products, semiring_closure, semiring_product

MOST_CHANNELS = 4096
LAYER_OF_PAIRS = "layer of pairs"  # name of the part that models of graphs and of trajectories have in common
Pool = Literal["mean", "max", "edges"]
_MATRICES = 6  # arrays of the model's width that a layer holds for every pair


class PairOptions(StrictModel):
    """The settings of ``pairs`` below ``options`` in a model's configuration.

    Attributes:
        closure: Channels that are closed under walks.
        triangle: Channels of one product of pairs.
        means: Channels of one mean of products of pairs, such as the share of the nodes that are neighbours of both.
        minima: Share of the channels of ``closure`` and ``triangle`` in the semiring (max, min); the others are in
            (max, +).
        pools: How the pairs that end at a node are pooled for the pairs of this node: their ``mean``, their ``max``, or
            the sum over the edges among them (``edges``), which grows with the degree and not with the graph.
        node_pools: How the pairs that end at a node are pooled for the output of this node.
        noise: Random numbers that the states of every edge receive, which tell its walks from others.
        order: Whether the states see which of their nodes has the smaller number.
        supervised: Earlier states whose decodings share the loss in training, evenly spaced over the layers or steps.
        recurrent: Whether one layer is applied as often as a graph's size asks for, in place of ``layers`` layers.
    """

    closure: int = Field(default=16, ge=0, le=MOST_CHANNELS)
    triangle: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    means: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    minima: float = Field(default=0.5, ge=0.0, le=1.0)
    pools: tuple[Pool, ...] = ()
    node_pools: tuple[Pool, ...] = ("mean", "max")
    noise: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    order: bool = False
    supervised: int = Field(default=0, ge=0)
    recurrent: bool = False


class PairLayer(nn.Module):
    """The update of all pairs: a network of the pair, its reverse, closures, products and pools."""

    def __init__(self, width: int, options: PairOptions, *, recall: bool = False) -> None:
        super().__init__()
        self.closure, self.triangle, self.means = options.closure, options.triangle, options.means
        self.pools = options.pools
        self.closure_minima = round(options.minima * options.closure)
        self.triangle_minima = round(options.minima * options.triangle)
        self.hidden = 2 * width
        self.parts = options.closure + 2 * options.triangle + 2 * options.means
        columns = self.parts + self.hidden
        self.direct = nn.Linear(width * (2 if recall else 1), columns)
        self.reverse = nn.Linear(width, columns, bias=False)
        combined = options.closure + options.triangle + options.means
        self.combined = nn.Linear(combined, self.hidden, bias=False) if combined else None
        pooled = width * len(options.pools)
        self.tails = nn.Linear(pooled, self.hidden, bias=False) if pooled else None
        self.heads = nn.Linear(pooled, self.hidden, bias=False) if pooled else None
        self.out = nn.Linear(self.hidden, width * (2 if recall else 1))

    def forward(
        self, pairs: Tensor, layout: PairLayout, start: Tensor | None = None, arcs: Tensor | None = None
    ) -> Tensor:
        """Return the updated pairs, [P, h].

        Args:
            pairs: [P, h].
            layout: The pairs.
            start: [P, h], the first states, which recurrent layers read again.
            arcs: int64 [A], the rows of the pairs that are arcs; None if the options name no pool ``edges``.
        """
        seen = layout.with_reverse(pairs)
        seen = seen if start is None else torch.cat([seen, start], dim=1)
        parts, weight = self.parts, self._joined_weight(start is not None)
        hidden = torch.addmm(self.direct.bias[parts:], seen, weight[parts:].t())
        if self.combined is not None:
            rows = torch.addmm(self.direct.bias[:parts].unsqueeze(1), weight[:parts], seen.t())
            hidden = _plus_product(hidden, self._combined(rows, layout), self.combined.weight)
        if self.tails is not None and self.heads is not None:
            pooled = _pooled(pairs, layout, arcs, self.pools)
            hidden = layout.with_ends(hidden, self.tails(pooled), self.heads(pooled))
        hidden = torch.relu_(hidden)
        if start is None:
            return _plus_product(pairs + self.out.bias, hidden, self.out.weight)
        value, gate = self.out(hidden).to(pairs.dtype).chunk(2, dim=1)  # autocast returns bfloat16
        return torch.lerp(pairs, value, torch.sigmoid(gate))

    def _joined_weight(self, recall: bool) -> Tensor:
        """Return the weights of a pair, its reverse and, with ``recall``, its first state beside each other."""
        parts = [self.direct.weight, self.reverse.weight]
        if recall:
            pair, first = self.direct.weight.chunk(2, dim=1)
            parts = [pair, self.reverse.weight, first]
        return torch.cat(parts, dim=1)

    def _combined(self, rows: Tensor, layout: PairLayout) -> Tensor:
        """Return the closures, products and means [P, closure + triangle + means] of ``rows`` [parts, P].

        The rows, one per channel, are the arrays that the semirings' compiled kernels read, so nothing is transposed.
        """
        closed, left, right, first, second = torch.split(rows, [self.closure, *[self.triangle] * 2, *[self.means] * 2])
        combined = []
        if self.closure:
            steps = torch.cat([closed[: self.closure_minima], -F.softplus(closed[self.closure_minima :])])
            combined.append(semiring_closure(steps.t(), layout, self.closure_minima).t())
        if self.triangle:
            combined.append(semiring_product(left.t(), right.t(), layout, self.triangle_minima).t())
        if self.means:
            combined.append(mean_products(first, second, layout))
        return (combined[0] if len(combined) == 1 else torch.cat(combined)).t()


def _plus_product(total: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
    """Return ``total + rows weight^T``, written to ``total`` unless autocast changes the precision of factors.

    Args:
        total: float [P, d]; no other operation's gradient needs its values.
        rows: float [P, k].
        weight: float32 [d, k].
    """
    if total.dtype == rows.dtype == weight.dtype and not torch.is_autocast_enabled(total.device.type):
        return total.addmm_(rows, weight.t())
    return total + F.linear(rows, weight)


def _pooled(pairs: Tensor, layout: PairLayout, arcs: Tensor | None, kinds: Sequence[Pool]) -> Tensor:
    """Return the pools of the pairs [P, d] that end at every node, side by side, [N, kinds * d]."""
    pools = []
    for kind in kinds:
        if kind == "edges":
            assert arcs is not None
            pools.append(layout.summed(pairs, arcs))
        else:
            pools.append(layout.pooled(pairs, kind))
    return torch.cat(pools, dim=1)


def _require_layers(config: ModelConfig, options: PairOptions) -> None:
    """Raise an error for settings of layers that would not be read.

    Raises:
        ConfigError: If a recurrent processor has several layers, or more states share the loss than there are.
    """
    if options.recurrent and config.layers != 1:
        raise ConfigError(
            f"model.layers is {config.layers}, but with model.options.recurrent one layer is repeated as often as a "
            "graph's size asks for; set model.layers to 1"
        )
    if not options.recurrent and options.supervised > config.layers:
        raise ConfigError(
            f"model.options.supervised is {options.supervised}, but there are {config.layers} earlier states; set it "
            f"to {config.layers} at most, or raise model.layers"
        )


@register_processor("pairs")
class PairProcessor(Processor):
    """States of all ordered pairs of nodes of a graph, see :class:`PairOptions`."""

    supports_edge_tokens = True

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.options = read_options(PairOptions, config)
        _require_layers(config, self.options)
        width = config.hidden
        self.kinds = nn.Parameter(torch.randn(3, width) * 0.1)  # of pairs without an edge, arcs, and loops
        self.tails, self.heads, self.loops = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.order = nn.Parameter(torch.zeros(2, width)) if self.options.order else None
        self.noise = nn.Linear(self.options.noise, width, bias=False) if self.options.noise else None
        self.draws_noise = self.noise is not None
        self.start = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        recurrent = self.options.recurrent
        layers = 1 if recurrent else config.layers
        self.layers = nn.ModuleList(PairLayer(width, self.options, recall=recurrent) for _ in range(layers))
        self.of_nodes = nn.Linear((1 + len(self.options.node_pools)) * width, width)
        self.of_edges = nn.Linear(2 * width if context.directed else width, width) if context.edge_tokens else None

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return the random numbers of every edge, float32 [M, k]; the two directions of an edge share them."""
        if not self.draws_noise:
            return {}
        return {"noise": noise.of_edges(self.options.noise)}

    def cores(self) -> Mapping[str, nn.Module]:
        """Return the layer of pairs, if one is repeated."""
        return {LAYER_OF_PAIRS: self.layers[0]} if self.options.recurrent else {}

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pairs of each graph, times the arrays that a layer holds at once."""
        return _MATRICES * nodes**2

    def forward(self, state: State) -> Processed:
        """Return the processed nodes, and the processed edges where they are tokens."""
        layout = PairLayout.of(state.layout)
        arcs = layout.rows_of(state.layout.edge_index, state.layout)
        pairs = self._first(state, layout, arcs)
        states = (self._repeated if self.options.recurrent else self._once)(pairs, layout, arcs)
        last, *earlier = [Processed(self._nodes(state, x, layout, arcs), self._edges(state, x, layout)) for x in states]
        return replace(last, earlier=tuple(earlier))

    def _once(self, pairs: Tensor, layout: PairLayout, arcs: Tensor) -> list[Tensor]:
        """Return the states after all layers, and the earlier states that share the loss."""
        states = [pairs]
        for layer in self.layers:
            pairs = layer(pairs, layout, arcs=arcs)
            states = [*states, pairs] if self.training else [pairs]
        return self._supervised(states)

    def _repeated(self, pairs: Tensor, layout: PairLayout, arcs: Tensor) -> list[Tensor]:
        """Return the states after as many steps as the size of each graph asks for, and earlier states likewise."""
        (layer,), start, steps = self.layers, pairs, self._steps(layout.counts)
        stops = None if len(set(steps.tolist())) == 1 else layout.of_graphs(steps).unsqueeze(1)
        states = repeated_states(
            lambda states: layer(states, layout, start, arcs),
            start,
            int(steps.max(initial=0)),
            stops,
            keep=self.training,
        )
        return self._supervised(states)

    def _supervised(self, states: list[Tensor]) -> list[Tensor]:
        """Return the last state, and in training as many earlier ones as the options ask for."""
        return supervised_states(states, self.options.supervised if self.training else 0)

    def _steps(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the steps of graphs, int64 [B]: 2 log2 n when scoring; a random share of at least half in training."""
        steps = np.maximum(2, np.ceil(2 * np.log2(np.maximum(nodes, 2))))
        share = share_of_steps(0.5, training=self.training)
        counts: NDArray[np.int64] = np.ceil(steps * share).astype(np.int64)
        return counts

    def _first(self, state: State, layout: PairLayout, arcs: Tensor) -> Tensor:
        """Return the first states, [P, h]."""
        assert state.edges is not None
        nodes = state.nodes
        pairs = layout.with_ends(self.kinds[0], self.tails(nodes), self.heads(nodes))
        edges = every_edge(state.edges, state.layout) + (self.kinds[1] - self.kinds[0])
        if self.noise is not None:
            edges = edges + self.noise(state.layout.both_directions(self.facts(state)["noise"]))
        pairs = pairs.index_add_(0, arcs, edges.expand(len(arcs), -1).to(pairs.dtype))
        pairs = pairs.index_add_(0, layout.loops, (self.loops(nodes) + self.kinds[2] - self.kinds[0]).to(pairs.dtype))
        if self.order is not None:
            pairs = pairs + torch.where((layout.tails < layout.heads).unsqueeze(1), self.order[0], self.order[1])
        first: Tensor = pairs + self.start(pairs)
        return first

    def _nodes(self, state: State, pairs: Tensor, layout: PairLayout, arcs: Tensor) -> Tensor:
        read = [pairs.index_select(0, layout.loops)]
        if self.options.node_pools:
            read.append(_pooled(pairs, layout, arcs, self.options.node_pools))
        nodes: Tensor = state.nodes + self.of_nodes(torch.cat(read, dim=1))
        return nodes

    def _edges(self, state: State, pairs: Tensor, layout: PairLayout) -> Tensor | None:
        if self.of_edges is None or state.edge_tokens is None:
            return None
        read = layout.of_edges(pairs, state.layout)
        if read.shape[1] < self.of_edges.in_features:  # an undirected graph; other tasks have directed ones
            read = torch.cat([read, read], dim=1)
        edges: Tensor = state.edge_tokens + self.of_edges(read)
        return edges
