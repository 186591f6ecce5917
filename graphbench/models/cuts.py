"""The readout of the smallest cut: a bound on the flow between two nodes that no learned weight can make wrong.

Potentials p of the nodes, 1 at the source and 0 at the sink, bound the maximum flow by the sum over the arcs of
``capacity * max(0, p_u - p_v)`` (the linear program that is dual to maximum flow). The sum is the mean, over thresholds
t uniform in (0, 1), of the capacity out of the nodes with p >= t, so one of these sets has a cut that is no larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, node_marks, select
from graphbench.core.errors import ConfigError
from graphbench.models.decoders import Head
from graphbench.models.encoders import feature_values
from graphbench.models.graphs import Layout, segment_sum

CUTS = 64
"""Potentials of every node."""


class CutDecoder(nn.Module):
    """The capacity of the smallest cut that the potentials of the nodes describe, for an output of graphs.

    In training the output is the smallest of the bounds of all potentials. When it is scored, the nodes of every graph
    are taken into the cut in the order of their potentials, and the output is the smallest of all these cuts; the first
    one separates the source from all other nodes, and the last one all other nodes from the sink. In both cases the
    gradient is the gradient of the bound.
    """

    def __init__(
        self, feature: Feature, features: Sequence[Feature], hidden: int, activation: str, *, norm: bool
    ) -> None:
        """Create the decoder of an output.

        Args:
            feature: The output.
            features: The features of the task.
            hidden: Width of the states.
            activation: Activation of the network that reads them.
            norm: Whether a layer normalisation stands before its last layer.

        Raises:
            ConfigError: If the output is not one number per graph, or the inputs do not say what a cut is.
        """
        super().__init__()
        self.feature = feature
        self.capacity, self.source, self.sink = _inputs_of_cuts(feature, features)
        self.head = Head(hidden, CUTS, activation, norm=norm)

    def forward(self, nodes: Tensor, batch: Data, layout: Layout) -> Tensor:
        """Return the capacities of cuts, float32 [B], from the states [N, d] of the nodes."""
        source, sink = (feature_values(batch, mark).reshape(-1, 1) > 0 for mark in (self.source, self.sink))
        capacity = feature_values(batch, self.capacity).reshape(-1)
        potentials = self.head(nodes).sigmoid()
        potentials = potentials.masked_fill(source, 1.0).masked_fill(sink, 0.0)
        if self.training:
            return _smallest_bound(potentials, capacity, layout)
        order = potentials.double().masked_fill(source, 2.0).masked_fill(sink, -1.0)
        cuts = [_smallest_cut(one, capacity.double(), layout) for one in order.unbind(1)]
        smallest = torch.stack(cuts).amin(0).float()
        if torch.is_grad_enabled():
            bound = _smallest_bound(potentials, capacity, layout)
            smallest = smallest + (bound - bound.detach())
        return smallest


def _smallest_bound(potentials: Tensor, capacity: Tensor, layout: Layout) -> Tensor:
    """Return the smallest of the bounds that the columns of potentials [N, K] give, float32 [B]."""
    tails, heads = layout.edge_index
    falls = (potentials.index_select(0, tails) - potentials.index_select(0, heads)).relu()
    return segment_sum(falls * capacity.float().unsqueeze(1), layout.graph[tails], layout.num_graphs).amin(1)


def _smallest_cut(order: Tensor, capacity: Tensor, layout: Layout) -> Tensor:
    """Return the smallest capacity [B] out of the nodes of every graph with values of at least a threshold.

    Args:
        order: The values [N], largest at the source and smallest at the sink.
        capacity: Capacities [E] of the arcs.
        layout: The graphs.
    """
    tails, heads = layout.edge_index
    chosen = order.argsort(descending=True, stable=True)
    chosen = chosen[layout.graph[chosen].argsort(stable=True)]
    places = torch.empty_like(chosen)
    places[chosen] = torch.arange(len(chosen), device=chosen.device)
    begin, end = places[tails], places[heads]
    out = capacity.where(begin < end, 0.0)  # of arcs that begin in a set while their ends are outside it
    change = order.new_zeros(len(order)).index_add(0, begin, out).index_add(0, end, -out)
    values = order[chosen]
    last = torch.ones_like(values, dtype=torch.bool)  # nodes with equal values are taken together, and never all nodes
    last[:-1] = (values[1:] != values[:-1]) & (layout.graph[1:] == layout.graph[:-1])
    last[-1] = False
    cuts = change.cumsum(0).masked_fill(~last, torch.inf)
    smallest = order.new_full((layout.num_graphs,), torch.inf)
    return smallest.scatter_reduce(0, layout.graph, cuts, "amin")


def _inputs_of_cuts(feature: Feature, features: Sequence[Feature]) -> tuple[Feature, Feature, Feature]:
    """Return the inputs that are the capacity, the source and the sink.

    Raises:
        ConfigError: If the output is not one number per graph, or there are other inputs of these types.
    """
    if feature.location is not Location.GRAPH or feature.kind is not Kind.SCALAR or feature.width != 1:
        raise ConfigError(
            f"readout 'cut' gives one number per graph, and {feature.name!r} is {feature.type_name} at the "
            f"{feature.location}; use another readout"
        )
    marks = node_marks(features)
    capacities = [f for f in select(features, Stage.INPUT, Location.EDGE) if f.kind is Kind.SCALAR and f.width == 1]
    if len(marks) != 2 or len(capacities) != 1:
        raise ConfigError(
            f"readout 'cut' needs two inputs of the type mask_one at nodes, the source first, and one scalar at edges; "
            f"there are {len(marks)} and {len(capacities)}; use another readout"
        )
    return capacities[0], marks[0], marks[1]
