"""Encoders: features of a step, in their dense form, to node, pair and graph vectors.

The sum of one linear map per feature is one linear map of the features side by side. Vectors of pairs are never made:
whoever wants a linear function of them composes it with the encoder (``PairVectors.project``), at the cost of the few
features there are instead of the hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location

POINTERS = (Kind.POINTER, Kind.PERMUTATION)


def dense(feature: Feature, value: Tensor, nodes: int) -> Tensor:
    """Return a feature's values in dense form, float32.

    Args:
        feature: The feature.
        value: ``[..., *items]`` as in a ``TrajectoryBatch``; a mask_one has no axis of items.
        nodes: Number of nodes n.

    Returns:
        Scalars and masks as they are; a mask_one ``[..., n]``, classes ``[..., k]`` and pointers ``[..., n]`` one-hot.
        A masked class is -1 in the last place and 0 elsewhere, as in the reference.
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
        columns: ``[B, n, n, F]``.
        weight: ``[h, F]``.
        bias: ``[h]``.
    """

    def __init__(self, columns: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.columns, self.weight, self.bias = columns, weight, bias

    def project(self, linear: nn.Linear, first: int = 0) -> Tensor:
        """Return ``linear`` of the vectors ``[B, n, n, out]``, using its input columns from ``first`` on."""
        chosen = linear.weight[:, first : first + len(self.bias)]
        bias = chosen @ self.bias
        return F.linear(self.columns, chosen @ self.weight, bias if linear.bias is None else bias + linear.bias)

    def full(self) -> Tensor:
        """Return the vectors themselves ``[B, n, n, h]``."""
        return F.linear(self.columns, self.weight, self.bias)


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
        widths = {location: 0 for location in Location}
        spreads: dict[Location, list[float]] = {location: [] for location in Location}
        for feature in features:
            place, width = _place(feature)
            fan_in = feature.classes if feature.kind is Kind.CATEGORICAL else 1
            small = xavier_on_scalars and feature.kind is Kind.SCALAR
            widths[place] += width
            spreads[place] += [1 / math.sqrt(hidden) if small else 1 / math.sqrt(fan_in)] * width
        self.maps = nn.ModuleDict(
            {location.value: nn.Linear(widths[location], hidden) for location in Location if widths[location]}
        )
        for location in Location:
            if widths[location]:
                linear = self.maps[location.value]
                assert isinstance(linear, nn.Linear)
                nn.init.trunc_normal_(linear.weight, std=1.0, a=-2.0, b=2.0)
                with torch.no_grad():
                    linear.weight *= torch.tensor(spreads[location])
                nn.init.zeros_(linear.bias)

    def columns(self, values: Mapping[str, Tensor]) -> dict[Location, Tensor]:
        """Return the features side by side, by location: ``[B, n, F]``, ``[B, n, n, F]`` and ``[B, F]``.

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
        linear = dict(self.maps.items()).get(location.value)
        assert linear is None or isinstance(linear, nn.Linear)
        return linear


def _place(feature: Feature) -> tuple[Location, int]:
    """Return where a feature is encoded, and in how many columns."""
    if feature.kind in POINTERS and feature.location is Location.NODE:
        return Location.EDGE, 1
    if feature.kind in POINTERS and feature.location is Location.EDGE:
        return Location.EDGE, 2
    return feature.location, feature.classes if feature.kind is Kind.CATEGORICAL else 1


def _columns(feature: Feature, value: Tensor) -> Tensor:
    if feature.kind in POINTERS and feature.location is Location.EDGE:  # [B, i, j, k]: averaged over i, and over j
        return torch.stack([value.mean(1), value.mean(2)], -1)
    return value if feature.kind is Kind.CATEGORICAL else value.unsqueeze(-1)


def adjacency(features: Sequence[Feature], values: Mapping[str, Tensor], nodes: int) -> Tensor | None:
    """Return ``[B, n, n]``, positive where features say that two nodes are neighbours; None where none does.

    Node pointers count in both directions, edge masks as they are.
    """
    total: Tensor | None = None
    for feature in features:
        value = values.get(feature.name)
        if value is None:
            continue
        if feature.kind in POINTERS and feature.location is Location.NODE:
            part = value + value.transpose(1, 2)
        elif feature.kind is Kind.MASK and feature.location is Location.EDGE:
            part = value
        else:
            continue
        total = part if total is None else total + part
    return total
