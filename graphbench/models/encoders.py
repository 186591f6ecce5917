"""Encoders: from the input features of a batch to node and edge embeddings.

Every feature has a linear layer, chosen by the feature's type; the embeddings are summed per location (GraphBench
paper, section 3.3.3 and appendix B).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import ConfigError
from graphbench.data.batches.batching import COPIES, facts_of
from graphbench.models.arcs import occurrences
from graphbench.models.graphs import Layout
from graphbench.models.layers import learned_vector
from graphbench.models.transfer import Part, named_by

_TINY = 1e-6
_INVERSE = "inverse"  # key of the encoders of reversed arcs, beside the keys of the locations


class Standardiser(nn.Module):
    """A mean and a standard deviation per column, stored as buffers, so that they are saved with the weights.

    They are 0 and 1 until :meth:`fit` is called.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("std", torch.ones(width))

    @torch.no_grad()
    def fit(self, values: Tensor) -> None:
        """Estimate mean and deviation from ``values`` [items, width]; a constant column keeps deviation 1.

        A column is constant if its deviation is at most 1e-6 times its largest absolute value, and at most 1e-6.
        """
        sample = values.double()
        std = sample.std(dim=0, unbiased=False)
        self.mean.copy_(sample.mean(dim=0))
        largest = sample.abs().amax(dim=0).clamp(max=1.0) if len(sample) else torch.zeros_like(std)
        self.std.copy_(torch.where(std > _TINY * largest, std, torch.ones_like(std)))

    def standardise(self, values: Tensor) -> Tensor:
        """Return ``(values - mean) / std``, [items, width]."""
        return (values - self.mean) / self.std

    def restore(self, values: Tensor) -> Tensor:
        """Return ``values * std + mean``, [items, width], the inverse of :meth:`standardise`."""
        return values * self.std + self.mean


class ScalarEncoder(nn.Module):
    """Standardise, then one linear layer, width -> d."""

    def __init__(self, feature: Feature, hidden: int) -> None:
        super().__init__()
        self.feature = feature
        self.scale = Standardiser(feature.width)
        self.linear = nn.Linear(feature.width, hidden)

    def forward(self, values: Tensor) -> Tensor:
        """Return embeddings [items, d] of ``values`` [items] or [items, width]."""
        rows = as_rows(values.to(self.linear.weight.dtype), self.feature)
        embedded: Tensor = self.linear(self.scale.standardise(rows))
        return embedded


class DegreeEncoder(ScalarEncoder):
    """The embedding of the logarithm of one more than a node's degree.

    With ``both`` of its degrees in a directed graph: the numbers of outgoing and of incoming arcs.
    """

    def __init__(self, hidden: int, *, both: bool = False) -> None:
        width = 2 if both else 1
        super().__init__(Feature("log_degree", Stage.INPUT, Location.NODE, Kind.SCALAR, width=width), hidden)
        self.both = both

    def fit(self, layout: Layout) -> None:
        """Estimate mean and deviation of the values."""
        self.scale.fit(self._values(layout))

    def of(self, layout: Layout) -> Tensor:
        """Return the embeddings of the nodes, [N, d]."""
        embedded: Tensor = self(self._values(layout))
        return embedded

    def _values(self, layout: Layout) -> Tensor:
        degrees = layout.both_degrees if self.both else layout.degrees.unsqueeze(1)
        return torch.log1p(degrees.double())


LOG_SIZE = Feature("log_size", Stage.INPUT, Location.GRAPH, Kind.SCALAR, width=2)
"""The logarithms of one more than a graph's number of nodes and of one more than their mean degree.

Outputs of graphs may read them. The numbers of nodes and of edges of graphs grow together; the mean degree does not.
"""


def log_sizes(layout: Layout) -> Tensor:
    """Return the values of :data:`LOG_SIZE`, float64 [B, 2]; an edge of an undirected graph counts twice."""
    nodes = layout.sizes.double()
    edges = occurrences(layout.graph[layout.edge_index[0]], layout.num_graphs)
    return torch.log1p(torch.stack([nodes, edges / nodes.clamp(min=1)], dim=1))


class GraphSize(nn.Module):
    """Adds the size of a graph to its pooled nodes.

    The pooled nodes are normalised before: what they have in common may be many times as large as an embedding.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.encoder = ScalarEncoder(LOG_SIZE, hidden)

    def fit(self, layout: Layout) -> None:
        """Estimate mean and deviation of the sizes."""
        self.encoder.scale.fit(log_sizes(layout))

    def forward(self, pooled: Tensor, layout: Layout) -> Tensor:
        """Return rows [B, d] for the pooled nodes [B, d]."""
        rows: Tensor = self.norm(pooled) + self.encoder(log_sizes(layout))
        return rows


class ClassEncoder(nn.Module):
    """One vector per class; a mask has two classes."""

    def __init__(self, feature: Feature, hidden: int) -> None:
        super().__init__()
        self.feature = feature
        self.embedding = nn.Embedding(feature.classes or 2, hidden)
        nn.init.normal_(self.embedding.weight, std=0.5)  # the scale of a standardised scalar's embedding

    def forward(self, values: Tensor) -> Tensor:
        """Return embeddings [items, d] of class numbers ``values`` [items], any integer or bool dtype."""
        embedded: Tensor = self.embedding(as_rows(values, self.feature).squeeze(1).long())
        return embedded


class InputEncoder(nn.Module):
    """The sum of the features' embeddings per location; graph-level features are added to every node of their graph.

    A learned vector replaces the embeddings of a location without input features. Texts are left out.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        hidden: int,
        *,
        edges: bool = True,
        inverse: bool = False,
        fixed: Sequence[str] = (),
    ) -> None:
        """Create one encoder per input feature.

        Args:
            features: The input features.
            hidden: Embedding width ``d``.
            edges: Whether anything reads edge embeddings; otherwise none are made.
            inverse: Whether every arc is also added in reverse, which takes one more encoder per edge feature.
            fixed: Names of features with class vectors that are not trained.

        Raises:
            ConfigError: If a feature's type cannot be encoded.
        """
        super().__init__()
        self.encoders = nn.ModuleDict()
        for location in Location:
            wanted = [f for f in features if f.location is location and (edges or location is not Location.EDGE)]
            self.encoders[location.value] = _encoders(wanted, hidden)
        self.inverse = edges and inverse
        backwards = [f for f in features if f.location is Location.EDGE and self.inverse]
        self.encoders[_INVERSE] = _encoders(backwards, hidden)
        for encoder in self.modules():
            if isinstance(encoder, ClassEncoder) and encoder.feature.name in fixed:
                encoder.embedding.requires_grad_(False)
        self.no_node_feature = None if len(self._at(Location.NODE)) else learned_vector(hidden)
        self.no_edge_feature = None if len(self._at(Location.EDGE)) or not edges else learned_vector(hidden)
        self.no_inverse_feature = None if self.no_edge_feature is None or not inverse else learned_vector(hidden)

    def forward(self, batch: Data, layout: Layout, *, copies: int = 1) -> tuple[Tensor, Tensor | None]:
        """Return node embeddings [N, d] and edge embeddings [E, d].

        Without edge features the edge embeddings are one row [1, d], the same for every edge; None if nothing reads
        them. With inverse arcs they are [2E, d], every arc followed by its inverse. For ``copies`` of one graph they
        are [E / copies, d], the edges of the first.
        """
        nodes = self._embed(batch, Location.NODE, layout.num_nodes)
        if nodes is None:
            assert self.no_node_feature is not None
            nodes = self.no_node_feature.expand(layout.num_nodes, -1)
        graphs = self._embed(batch, Location.GRAPH, layout.num_graphs)
        if graphs is not None:
            nodes = nodes + graphs[layout.graph]
        edges = self._embed(batch, Location.EDGE, layout.edge_index.shape[1], copies)
        edges = self.no_edge_feature if edges is None else edges
        return nodes, edges if edges is None or not self.inverse else self._both_ways(edges, batch, layout)

    def fit_normalisation(self, batch: Data) -> None:
        """Standardise every scalar input by its mean and standard deviation in ``batch``, a sample of training data."""
        for encoder in self.modules():
            if isinstance(encoder, ScalarEncoder):
                values = feature_values(batch, encoder.feature)
                encoder.scale.fit(as_rows(values, encoder.feature))

    def parts(self) -> list[Part]:
        """Return the encoder of every feature."""
        parts = []
        for location in self.encoders:
            what = "inverse encoder" if location == _INVERSE else "encoder"
            for encoder in self._at(location):
                assert isinstance(encoder, ScalarEncoder | ClassEncoder)
                parts.append(Part("encoders", named_by([encoder.feature], what), encoder))
        for name in ("no_node_feature", "no_edge_feature", "no_inverse_feature"):
            vector = getattr(self, name)
            if vector is not None:
                parts.append(Part("encoders", f"vector {name}", nn.ParameterDict({name: vector})))
        return parts

    def _both_ways(self, edges: Tensor, batch: Data, layout: Layout) -> Tensor:
        backwards = self._embed(batch, _INVERSE, layout.edge_index.shape[1])
        backwards = self.no_inverse_feature if backwards is None else backwards
        assert backwards is not None
        count = layout.edge_index.shape[1]
        both = torch.stack([edges.expand(count, -1), backwards.expand(count, -1)], dim=1)
        return both.flatten(0, 1)

    def _at(self, location: str) -> nn.ModuleList:
        encoders = self.encoders[location]
        assert isinstance(encoders, nn.ModuleList)
        return encoders

    def shared_edges(self, batch: Data, layout: Layout) -> int:
        """Return the number of copies of one graph, with equal features of edges, that a batch consists of; else 1."""
        encoders = [e for e in self._at(Location.EDGE) if isinstance(e, ScalarEncoder | ClassEncoder)]
        read = [encoder.feature for encoder in encoders]
        tensors = [layout.edge_index, *(feature_values(batch, feature) for feature in read)]
        copies = {(facts_of(tensor) or {}).get(COPIES, 1) for tensor in tensors}
        return copies.pop() if read and len(copies) == 1 else 1

    def _embed(self, batch: Data, location: str, items: int, copies: int = 1) -> Tensor | None:
        """Return the embeddings of a location, of the first of ``copies`` equal parts of its values."""
        total: Tensor | None = None
        for encoder in self._at(location):
            assert isinstance(encoder, ScalarEncoder | ClassEncoder)
            values = feature_values(batch, encoder.feature)
            _require_items(values, encoder.feature, items)
            part = encoder(values if copies == 1 else values[: len(values) // copies])
            total = part if total is None else total + part
        return total


def feature_values(batch: Data, feature: Feature) -> Tensor:
    """Return a feature's array from a batch.

    Raises:
        ConfigError: If the batch does not carry the feature.
    """
    if feature.name not in batch:
        raise ConfigError(
            f"the batch has no {feature.location} feature {feature.name!r}; "
            "build the model with the features of the data"
        )
    values: Tensor = batch[feature.name]
    return values


def _require_items(values: Tensor, feature: Feature, items: int) -> None:
    """Raise an error unless a feature has a row per node, graph or column of ``edge_index``."""
    if values.shape[:1] != (items,):
        of = "column of edge_index" if feature.location is Location.EDGE else str(feature.location)
        raise ConfigError(
            f"the {feature.location} feature {feature.name!r} has the shape {list(values.shape)}, and the batch has "
            f"{items:,} of its {feature.location}s; give one row per {of}"
        )


def as_rows(values: Tensor, feature: Feature) -> Tensor:
    """Return ``values`` [items] or [items, width] of a feature as [items, width].

    Raises:
        ConfigError: If the array has another shape.
    """
    rows = values.unsqueeze(1) if values.dim() == 1 else values
    if rows.dim() != 2 or rows.shape[1] != feature.width:
        raise ConfigError(
            f"feature {feature.name!r} has shape {list(values.shape)}, the model expects {feature.width} value(s) per "
            f"item; a scalar of k values is of the type scalar(k)"
        )
    return rows


def _encoders(features: Sequence[Feature], hidden: int) -> nn.ModuleList:
    return nn.ModuleList(_encoder(f, hidden) for f in features if f.kind is not Kind.TEXT)


def _encoder(feature: Feature, hidden: int) -> nn.Module:
    if feature.kind is Kind.SCALAR:
        return ScalarEncoder(feature, hidden)
    if feature.kind in (Kind.CATEGORICAL, Kind.MASK, Kind.MASK_ONE):
        return ClassEncoder(feature, hidden)
    raise ConfigError(
        f"input feature {feature.name!r} is a {feature.type_name}, which these encoders cannot embed; "
        "store it as an edge mask or as a node mask_one"
    )
