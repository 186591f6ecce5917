"""Encoders, which map the features of a step in dense form to node, pair and graph vectors.

The sum of one linear map per feature is one linear map of the concatenated features. Vectors of pairs are never
computed: a linear function of these vectors is composed with the encoder (``PairVectors.project``), so that its cost
grows with the few features instead of the hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.models.trajectory.layers import thin_linear, truncated_normal_


def dense(feature: Feature, value: Tensor, nodes: int) -> Tensor:
    """Return a feature's values in dense form, float32.

    Args:
        feature: The feature.
        value: ``[..., *items]`` as in a ``TrajectoryBatch``; a mask_one has no axis of items.
        nodes: Number of nodes n.

    Returns:
        Scalars and masks unchanged; a mask_one ``[..., n]``, classes ``[..., k]`` and pointers ``[..., n]`` one-hot.
        A masked class is -1 in the last column and 0 elsewhere, as in the reference. The class of a pair that is not an
        edge (``graphbench.data.batches.dense_view.ABSENT``) is 0 everywhere.
    """
    if feature.kind in (Kind.SCALAR, Kind.MASK):
        return value.float()
    width = feature.classes if feature.kind is Kind.CATEGORICAL else nodes
    one_hot = (value.long().unsqueeze(-1) == torch.arange(width, device=value.device)).float()
    if feature.kind is Kind.CATEGORICAL:
        one_hot[..., -1] -= (value == -1).float()
    return one_hot


class PairVectors:
    """Vectors of all pairs of nodes, as a linear function of few columns.

    Attributes:
        columns: ``[B, n, n, F]``; row u, column v is the pair (u, v).
        weight: ``[h, F]``.
        bias: ``[h]``.
    """

    def __init__(self, columns: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.columns, self.weight, self.bias = columns, weight, bias

    def project(self, linear: nn.Linear) -> Tensor:
        """Return ``linear`` of the vectors, ``[B, n, n, out]``; only the first h of its input columns are used."""
        pair_weight = linear.weight[:, : len(self.bias)]
        return thin_linear(self.columns, self.weight.t() @ pair_weight.t(), pair_weight @ self.bias + linear.bias)

    def loops(self) -> PairVectors:
        """Return the vectors of the pairs (v, v), with columns ``[B, n, F]``."""
        return PairVectors(self.columns.diagonal(dim1=1, dim2=2).transpose(1, 2), self.weight, self.bias)

    def at(self, graphs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the vectors ``[P, h]`` of pairs, given by graph, row and column, each int64 ``[P]``."""
        return thin_linear(self.columns[graphs, rows, columns], self.weight.t().contiguous(), self.bias)

    def full(self) -> Tensor:
        """Return the vectors of all pairs ``[B, n, n, h]``."""
        return thin_linear(self.columns, self.weight.t().contiguous(), self.bias)


class Encoder(nn.Module):
    """One linear map per location, for the features of one stage.

    Args:
        features: The features.
        hidden: Width h.
        xavier_on_scalars: Whether the weights of scalars start smaller.
    """

    def __init__(self, features: Sequence[Feature], hidden: int, *, xavier_on_scalars: bool = False) -> None:
        super().__init__()
        self.features = tuple(features)
        deviations: dict[Location, list[float]] = {}
        for feature in features:
            location_of_feature, width = _encoded_at(feature)
            inputs = feature.classes if feature.kind is Kind.CATEGORICAL else 1
            if xavier_on_scalars and feature.kind is Kind.SCALAR:
                inputs = hidden
            deviations.setdefault(location_of_feature, []).extend([1 / math.sqrt(inputs)] * width)
        self.maps = nn.ModuleDict()
        for location in Location:
            if location in deviations:
                linear = nn.Linear(len(deviations[location]), hidden)
                truncated_normal_(linear.weight, torch.tensor(deviations[location]))
                nn.init.zeros_(linear.bias)
                self.maps[location.value] = linear

    def columns(self, values: Mapping[str, Tensor]) -> dict[Location, Tensor]:
        """Return the concatenated features by location: ``[B, n, F]``, ``[B, n, n, F]`` and ``[B, F]``.

        Args:
            values: Feature name -> dense form, without a time axis.
        """
        parts_by_location: dict[Location, list[Tensor]] = {}
        for feature in self.features:
            location, _ = _encoded_at(feature)
            parts_by_location.setdefault(location, []).append(_columns(feature, values[feature.name]))
        return {location: torch.cat(parts, -1) for location, parts in parts_by_location.items()}

    def linear(self, location: Location) -> nn.Linear | None:
        """Return the linear map of a location, or None if no feature lies there."""
        if location.value not in self.maps:
            return None
        linear = self.maps[location.value]
        assert isinstance(linear, nn.Linear)
        return linear


def _encoded_at(feature: Feature) -> tuple[Location, int]:
    """Return the location at which a feature is encoded, and its number of columns."""
    if feature.is_pointer and feature.location is Location.NODE:
        return Location.EDGE, 1
    if feature.is_pointer and feature.location is Location.EDGE:
        return Location.EDGE, 2
    return feature.location, feature.classes if feature.kind is Kind.CATEGORICAL else feature.width


def _columns(feature: Feature, value: Tensor) -> Tensor:
    if feature.is_pointer and feature.location is Location.EDGE:  # [B, i, j, k]: averaged over i, and over j
        return torch.stack([value.mean(1), value.mean(2)], -1)
    return value if feature.kind is Kind.CATEGORICAL or feature.width > 1 else value.unsqueeze(-1)


def adjacency(features: Sequence[Feature], values: Mapping[str, Tensor]) -> Tensor | None:
    """Return whether two nodes are neighbours by the features, symmetric bool ``[B, n, n]``, or None.

    Two nodes are neighbours if the node pointers (or probabilities of pointing) of both directions add up to more than
    a half, or if the edge masks of both directions add up to more than 0. A predicted mask is a probability, so its sum
    is always above 0. Both rules follow the reference.
    """
    total: Tensor | None = None
    for feature in features:
        if feature.is_pointer and feature.location is Location.NODE:
            least = 0.5
        elif feature.kind is Kind.MASK and feature.location is Location.EDGE:
            least = 0.0
        else:
            continue
        value = values[feature.name]
        part = value + value.transpose(1, 2) > least
        total = part if total is None else total | part
    return total
