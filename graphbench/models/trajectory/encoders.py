"""Encoders: features of a step, in their dense form, to node, pair and graph vectors.

The sum of one linear map per feature is one linear map of the concatenated features. Vectors of pairs are never made:
a linear function of them is composed with the encoder (``PairVectors.project``), at the cost of the few features there
are instead of the hidden width.
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
        Scalars and masks as they are; a mask_one ``[..., n]``, classes ``[..., k]`` and pointers ``[..., n]`` one-hot.
        A masked class is -1 in the last place and 0 elsewhere, as in the reference; that of a pair that is no edge
        (``graphbench.data.batches.dense_view.ABSENT``) is 0 everywhere.
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
        known = linear.weight[:, : len(self.bias)]
        return thin_linear(self.columns, self.weight.t() @ known.t(), known @ self.bias + linear.bias)

    def loops(self) -> PairVectors:
        """Return the vectors of the pairs (v, v) alone, of columns ``[B, n, F]``."""
        return PairVectors(self.columns.diagonal(dim1=1, dim2=2).transpose(1, 2), self.weight, self.bias)

    def at(self, graphs: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the vectors of some pairs ``[P, h]``: of the rows and columns of graphs, each int64 ``[P]``."""
        return thin_linear(self.columns[graphs, rows, columns], self.weight.t().contiguous(), self.bias)

    def full(self) -> Tensor:
        """Return the vectors themselves ``[B, n, n, h]``."""
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
            place, width = _place(feature)
            inputs = feature.classes if feature.kind is Kind.CATEGORICAL else 1
            if xavier_on_scalars and feature.kind is Kind.SCALAR:
                inputs = hidden
            deviations.setdefault(place, []).extend([1 / math.sqrt(inputs)] * width)
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
        found: dict[Location, list[Tensor]] = {}
        for feature in self.features:
            place, _ = _place(feature)
            found.setdefault(place, []).append(_columns(feature, values[feature.name]))
        return {place: torch.cat(parts, -1) for place, parts in found.items()}

    def linear(self, location: Location) -> nn.Linear | None:
        """Return the map of a location, or None where no feature lies there."""
        if location.value not in self.maps:
            return None
        linear = self.maps[location.value]
        assert isinstance(linear, nn.Linear)
        return linear


def _place(feature: Feature) -> tuple[Location, int]:
    """Return where a feature is encoded, and in how many columns."""
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
    """Return bool ``[B, n, n]``, symmetric: which nodes features say to be neighbours; None where none does.

    Node pointers (or probabilities of pointing) count in both directions where they add up to more than a half; edge
    masks where their two directions add up to more than 0, which a predicted mask, a probability, always does: both
    as in the reference.
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
