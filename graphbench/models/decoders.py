"""Decoders: from processed embeddings to the raw value of every output feature."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ConfigError
from graphbench.models.demands import require_values
from graphbench.models.encoders import Standardiser, as_rows, feature_values
from graphbench.models.graphs import Layout, segment_mean, segment_sum
from graphbench.models.layers import FullPrecisionLinear, activation_function


class Head(nn.Module):
    """``W2 LN(act(W1 x))``, d -> d -> outputs (paper, appendix B, Decoder), with biases; ``W2`` in float32.

    Without the normalisation, outputs can grow with the rows: the value of a flow grows with the graph.
    """

    def __init__(self, hidden: int, outputs: int, activation: str, *, norm: bool = True) -> None:
        super().__init__()
        self.inner = nn.Linear(hidden, hidden)
        self.activation = activation_function(activation)
        self.norm: nn.Module = nn.LayerNorm(hidden) if norm else nn.Identity()
        self.outer = FullPrecisionLinear(hidden, outputs)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs, float32 [rows, outputs], of ``rows`` [rows, d]."""
        result: Tensor = self.outer(self.norm(self.activation(self.inner(rows))))
        return result


class ClassMeans(nn.Module):
    """The nodes of a graph as one row: ``sum over the classes c of W_c (mean of the nodes of class c)``.

    A class without nodes adds nothing. The only node of a class, such as a port, is read as it is, in graphs of any
    size.
    """

    def __init__(self, feature: Feature, hidden: int) -> None:
        """Create the maps of the classes of ``feature``, a categorical input of nodes."""
        super().__init__()
        self.feature, self.classes = feature, feature.classes
        self.maps = nn.Linear(self.classes * hidden, hidden, bias=False)

    def forward(self, nodes: Tensor, kinds: Tensor, layout: Layout) -> Tensor:
        """Return rows [B, d] of the nodes [N, d], whose classes are ``kinds``, an integer type [N] or [N, 1]."""
        place = layout.graph * self.classes + kinds.reshape(-1).long()
        count = layout.num_graphs * self.classes
        sizes = segment_sum(torch.ones_like(place), place, count)
        rows: Tensor = self.maps(segment_mean(nodes, place, sizes).view(layout.num_graphs, -1))
        return rows


class Decoder(nn.Module):
    """The raw value of one output feature, computed from one row per item.

    Masks have one logit per item and categorical features one logit per class. Scalars are the value itself: the
    decoder works with standardised values (see :class:`Standardiser`) and returns them in the target's unit. A mask_one
    over nodes and a graph's pointer have one logit per node; a node's pointer has one logit per node of its graph.

    ``summed``: the value of a graph is the sum of the values of its nodes, so it can grow with the graph. Scalars are
    then standardised per node: the statistics are computed for the target divided by the graph's number of nodes.
    """

    def __init__(
        self, feature: Feature, hidden: int, activation: str, *, summed: bool = False, norm: bool = True
    ) -> None:
        """Create the decoder of ``feature``.

        Raises:
            ConfigError: If the feature's type cannot be predicted at its location.
        """
        super().__init__()
        check_output(feature)
        self.feature = feature
        self.summed = summed
        self.width = feature.width
        self.scale = Standardiser(feature.width) if feature.kind is Kind.SCALAR else None
        self.pairwise = feature.is_pointer and feature.location is Location.NODE
        self.head = Head(hidden, hidden if self.pairwise else (feature.classes or self.width), activation, norm=norm)
        self.keys = FullPrecisionLinear(hidden, hidden, bias=False) if self.pairwise else None
        self.reads_nodes = feature.location is Location.NODE or feature.is_pointer

    def forward(self, rows: Tensor, layout: Layout) -> Tensor:
        """Return the raw values of ``rows`` [items, d], or [N, d] if they are summed.

        Returns:
            float32 [items] or [items, k]; pointers of nodes [N, nodes of the largest graph].
        """
        raw: Tensor = self.head(rows)
        if self.keys is not None:
            return self._pair_logits(raw, self.keys(rows), layout)
        if self.scale is not None:
            raw = self.scale.restore(raw)
        if self.summed:
            raw = segment_sum(raw, layout.graph, layout.num_graphs)
        return raw if self.feature.kind is Kind.CATEGORICAL or self.width > 1 else raw.squeeze(1)

    def fit_normalisation(self, batch: Data) -> None:
        """Estimate mean and standard deviation of a scalar target from ``batch``, a sample of training data."""
        if self.scale is not None:
            targets = as_rows(feature_values(batch, self.feature), self.feature)
            self.scale.fit(targets / batch.ptr.diff().unsqueeze(1) if self.summed else targets)

    def _pair_logits(self, queries: Tensor, keys: Tensor, layout: Layout) -> Tensor:
        """Return ``<query of v, key of w>`` for the nodes w of v's graph, [N, largest graph], -inf beyond its size."""
        sizes = layout.sizes
        slots = torch.arange(layout.extent.most_nodes, device=sizes.device)
        members = (layout.ptr[:-1, None] + slots).clamp(max=layout.num_nodes - 1)
        logits: Tensor = torch.einsum("nd,nkd->nk", queries, keys[members[layout.graph]]) * queries.shape[1] ** -0.5
        beyond = slots >= sizes[layout.graph].unsqueeze(1)
        return logits.masked_fill(beyond, -torch.inf)


class PairDecoder(nn.Module):
    """The logit of a link for candidate pairs of nodes: the dot product of two vectors of the nodes, over sqrt(d).

    The nodes of an undirected graph have one vector each, so that the two directions of a pair have the same logit.
    A small network on scores of the pairs adds to the logit, if there are any.
    """

    def __init__(
        self, feature: Feature, hidden: int, activation: str, *, directed: bool, norm: bool = True, scores: int = 0
    ) -> None:
        """Create the decoder; ``scores`` is the number of scores that every pair has."""
        super().__init__()
        self.feature = feature
        self.sources = Head(hidden, hidden, activation, norm=norm)
        self.targets = Head(hidden, hidden, activation, norm=norm) if directed else None
        self.scale = Standardiser(scores) if scores else None
        self.scored: nn.Module | None = None
        if scores:
            outer = FullPrecisionLinear(hidden, 1, bias=False)
            self.scored = nn.Sequential(nn.Linear(scores, hidden), activation_function(activation), outer)

    def forward(self, nodes: Tensor, pairs: Tensor, scores: Tensor | None = None) -> Tensor:
        """Return the logits, float32 [P], of candidate pairs int64 [2, P].

        Args:
            nodes: States of the nodes [N, d].
            pairs: Sources and targets.
            scores: float32 [P, scores], if the decoder reads scores.
        """
        sources = self.sources(nodes)
        targets = sources if self.targets is None else self.targets(nodes)
        products = (sources.index_select(0, pairs[0]) * targets.index_select(0, pairs[1])).sum(1)
        logits: Tensor = products * nodes.shape[1] ** -0.5
        if self.scale is not None and self.scored is not None and scores is not None:
            logits = logits + self.scored(self.scale.standardise(scores)).squeeze(1)
        return logits


class EdgeReadout(nn.Module):
    """One row per edge, from node and edge embeddings: ``h_u + h_v + e_uv``, or ``A h_u + B h_v + e_uv`` for arcs.

    An undirected edge is read once, so the rows of its two directions cannot differ.
    """

    def __init__(self, hidden: int, directed: bool) -> None:
        super().__init__()
        self.tail = nn.Linear(hidden, hidden, bias=False) if directed else nn.Identity()
        self.head = nn.Linear(hidden, hidden, bias=False) if directed else nn.Identity()

    def forward(self, nodes: Tensor, edges: Tensor, layout: Layout) -> Tensor:
        """Return rows [M, d]; ``edges`` is [E, d] or [1, d]."""
        tails, heads = layout.edges
        embedded = edges if edges.shape[0] == 1 else layout.once_per_edge(edges)
        rows: Tensor = self.tail(nodes).index_select(0, tails) + self.head(nodes).index_select(0, heads) + embedded
        return rows


def check_output(feature: Feature) -> None:
    """Raise an error for an output that no decoder of graphs predicts.

    Raises:
        ConfigError: If the feature's type cannot be predicted at the feature's location.
    """
    require_values((feature,))
    on_edges = feature.location is Location.EDGE and (feature.is_pointer or feature.kind is Kind.MASK_ONE)
    on_graph = feature.location is Location.GRAPH and feature.kind in (Kind.MASK_ONE, Kind.PERMUTATION)
    if on_edges or on_graph:
        raise ConfigError(
            f"output feature {feature.name!r} is a {feature.type_name} at {feature.location} level, "
            "which has no decoder; use mask, scalar or categorical there"
        )
