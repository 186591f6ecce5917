"""Encoders, which map the features of a step in dense form to node, pair and graph vectors.

The sum of one linear map per feature is one linear map of the concatenated features. Vectors of nodes and pairs are
seldom computed: a linear function of these vectors is composed with the encoder (``NodeVectors.project``,
``PairVectors.project``), so that its cost grows with the few features instead of the hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
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


class Composition(NamedTuple):
    """Several linear maps side by side, composed with an encoder: ``columns @ weight + states @ rest + bias``.

    Attributes:
        weight: ``[F, out]``, for the columns of the encoder.
        bias: ``[out]``.
        rest: ``[r, out]``, for the inputs after the first h, which the encoder does not make.
        widths: The outputs of each map.
    """

    weight: Tensor
    bias: Tensor
    rest: Tensor
    widths: tuple[int, ...]


Compositions = dict[tuple[int, ...], Composition]
"""Compositions that steps have in common, by the addresses of their modules; a model makes them once for a batch."""


class Encoded:
    """Vectors as a linear function of few columns.

    Attributes:
        columns: ``[..., F]``.
        weight: ``[h, F]``.
        bias: ``[h]``.
        made: The compositions that earlier steps have made; None where every step makes its own.
    """

    def __init__(self, columns: Tensor, weight: Tensor, bias: Tensor, made: Compositions | None = None) -> None:
        self.columns, self.weight, self.bias, self.made = columns, weight, bias, made

    def composed(self, *linears: nn.Linear) -> Composition:
        """Return linear maps whose first h inputs are these vectors, composed with the encoder."""
        key = (id(self.weight), *map(id, linears))
        if self.made is not None and key in self.made:
            return self.made[key]
        width = len(self.bias)
        weight, bias = (torch.cat([getattr(linear, name) for linear in linears]) for name in ("weight", "bias"))
        first, rest = weight[:, :width], weight[:, width:].t()
        widths = tuple(linear.out_features for linear in linears)
        composition = Composition(self.weight.t() @ first.t(), first @ self.bias + bias, rest, widths)
        if self.made is not None:
            self.made[key] = composition
        return composition


class NodeVectors(Encoded):
    """Encoded nodes beside states of nodes, ``[B, n, h + r]``.

    Args:
        columns: ``[B, n, F]``.
        weight: ``[h, F]``.
        bias: ``[h]``.
        states: ``[B, n, r]``.
        made: See :class:`Encoded`.
    """

    def __init__(
        self, columns: Tensor, weight: Tensor, bias: Tensor, states: Tensor, made: Compositions | None = None
    ) -> None:
        super().__init__(columns, weight, bias, made)
        self.states = states

    def project(self, *linears: nn.Linear) -> tuple[Tensor, ...]:
        """Return each of the linear maps of the vectors, ``[B, n, out]``."""
        composition = self.composed(*linears)
        encoded = thin_linear(self.columns, composition.weight, composition.bias)
        total = encoded + F.linear(self.states, composition.rest.t())
        return torch.split(total, list(composition.widths), -1)

    def full(self) -> Tensor:
        """Return the vectors ``[B, n, h + r]``."""
        encoded = thin_linear(self.columns, self.weight.t().contiguous(), self.bias)
        return torch.cat([encoded, self.states.to(encoded.dtype)], -1)

    def beside(self, states: Tensor) -> NodeVectors:
        """Return these vectors with further states ``[B, n, s]`` behind the ones that they have."""
        return NodeVectors(self.columns, self.weight, self.bias, torch.cat([self.states, states], -1), self.made)


class PairVectors(Encoded):
    """Vectors of all pairs of nodes, as a linear function of few columns.

    Attributes:
        columns: ``[B, n, n, F]``; row u, column v is the pair (u, v).
        weight: ``[h, F]``.
        bias: ``[h]``.
    """

    def project(self, linear: nn.Linear) -> Tensor:
        """Return ``linear`` of the vectors, ``[B, n, n, out]``; only the first h of its input columns are used."""
        composition = self.composed(linear)
        return thin_linear(self.columns, composition.weight, composition.bias)

    def loops(self) -> PairVectors:
        """Return the vectors of the pairs (v, v), with columns ``[B, n, F]``."""
        return PairVectors(self.columns.diagonal(dim1=1, dim2=2).transpose(1, 2), self.weight, self.bias, self.made)

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
