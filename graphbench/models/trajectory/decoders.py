"""Decoders: node, pair and graph vectors of a step to raw values of a feature, and raw values to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.errors import ConfigError
from graphbench.models.trajectory.encoders import POINTERS, PairVectors
from graphbench.models.trajectory.sinkhorn import log_sinkhorn


@dataclass
class Decodable:
    """What decoders read after a step.

    Attributes:
        nodes: ``[B, n, 3h]``: encoded, before and after the processor.
        pairs: The encoded pairs.
        messages: ``[B, n, n, h]`` from a processor that makes vectors of pairs, or None.
        graph: ``[B, h]``, the encoded graph.
    """

    nodes: Tensor
    pairs: PairVectors
    messages: Tensor | None
    graph: Tensor

    def where(self, updated: Tensor, before: Decodable) -> Decodable:
        """Return this state for the samples ``updated [B]``, and the one before for the others."""

        def pick(now: Tensor, then: Tensor) -> Tensor:
            return torch.where(updated.view(-1, *[1] * (now.dim() - 1)), now, then)

        messages = None
        if self.messages is not None and before.messages is not None:
            messages = pick(self.messages, before.messages)
        pairs = PairVectors(pick(self.pairs.columns, before.pairs.columns), self.pairs.weight, self.pairs.bias)
        return Decodable(pick(self.nodes, before.nodes), pairs, messages, pick(self.graph, before.graph))


class FeatureDecoder(nn.Module):
    """Raw values of one feature.

    ======================  ========================================================================================
    node                    a linear map of the node
    node pointer            linear of max(W1 h_i, W2 h_j + W3 e_ji)
    edge                    the sum of linear maps of both nodes and the pair
    edge pointer            linear of max(W1 h_i + W2 h_j + W3 e_ij, W4 h_k)
    graph                   linear maps of the maximum over the nodes and of the graph, summed
    ======================  ========================================================================================

    Args:
        feature: What is decoded.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
    """

    def __init__(self, feature: Feature, hidden: int, *, messages: bool) -> None:
        super().__init__()
        if feature.location is Location.GRAPH and feature.kind in (*POINTERS, Kind.MASK_ONE):
            raise ConfigError(f"output {feature.name!r}: there is no decoder for a {feature.type_name} of the graph")
        self.feature = feature
        wide = 2 * hidden if messages else hidden
        pointer = feature.kind in POINTERS
        out = hidden if pointer else feature.classes if feature.kind is Kind.CATEGORICAL else 1
        self.first = nn.Linear(3 * hidden, out)
        self.second: nn.Linear | None = None
        self.pair: nn.Linear | None = None
        self.third: nn.Linear | None = None
        if feature.location is Location.GRAPH:
            self.second = nn.Linear(hidden, out)
        elif feature.location is Location.EDGE or pointer:
            self.second, self.pair = nn.Linear(3 * hidden, out), nn.Linear(wide, out)
        if pointer and feature.location is Location.EDGE:
            self.third = nn.Linear(3 * hidden, out)
        self.last = nn.Linear(hidden, 1) if pointer else None

    def forward(self, state: Decodable) -> Tensor:
        """Return raw values: ``[B, items]``, with a last axis of classes or of nodes pointed at."""
        location, pointer = self.feature.location, self.last is not None
        if location is Location.GRAPH:
            assert self.second is not None
            raw = self.first(state.nodes.max(1).values) + self.second(state.graph)
        elif location is Location.EDGE:
            assert self.second is not None
            raw = self.first(state.nodes).unsqueeze(2) + self.second(state.nodes).unsqueeze(1) + self._pairs(state)
        else:
            raw = self.first(state.nodes)
        if pointer:
            assert self.last is not None and self.second is not None
            if location is Location.EDGE:
                assert self.third is not None
                targets = self.third(state.nodes)[:, None, None]
                return self.last(torch.maximum(raw.unsqueeze(3), targets)).squeeze(-1)  # type: ignore[no-any-return]
            targets = self.second(state.nodes).unsqueeze(1) + self._pairs(state).transpose(1, 2)
            return self.last(torch.maximum(raw.unsqueeze(2), targets)).squeeze(-1)  # type: ignore[no-any-return]
        return raw if self.feature.kind is Kind.CATEGORICAL else raw.squeeze(-1)  # type: ignore[no-any-return]

    def _pairs(self, state: Decodable) -> Tensor:
        assert self.pair is not None
        found = state.pairs.project(self.pair)
        if state.messages is not None:
            found = found + F.linear(state.messages, self.pair.weight[:, len(state.pairs.bias) :])
        return found


class Decoders(nn.Module):
    """The decoders of several features; a permutation has a second one for the first node.

    Args:
        features: What is decoded.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
        permutations: Whether permutations are decoded as such; else as pointers.
    """

    def __init__(self, features: Sequence[Feature], hidden: int, *, messages: bool, permutations: bool = False) -> None:
        super().__init__()
        self.features = tuple(features)
        self.permutations = permutations
        self.decoders = nn.ModuleDict({f.name: FeatureDecoder(f, hidden, messages=messages) for f in features})
        if permutations:
            for feature in features:
                if feature.kind is Kind.PERMUTATION:
                    head = head_of(feature)
                    self.decoders[head.name] = FeatureDecoder(head, hidden, messages=messages)

    def forward(self, state: Decodable) -> dict[str, Tensor]:
        """Return feature name -> raw values; of permutations the logarithms of a doubly stochastic matrix."""
        raw = {name: decoder(state).float() for name, decoder in self.decoders.items()}
        for feature in self.features:
            if self.permutations and feature.kind is Kind.PERMUTATION:
                raw[feature.name] = log_sinkhorn(raw[feature.name], steps=10, noise=self.training)
        return raw


def head_of(feature: Feature) -> Feature:
    """Return the feature that marks the first node of a permutation."""
    return Feature(f"{feature.name}_mask", feature.stage, feature.location, Kind.MASK_ONE)


def soften(feature: Feature, raw: Tensor, hard: bool) -> Tensor:
    """Return raw values in the dense form in which they are fed back: probabilities, or one-hot if ``hard``."""
    if feature.kind is Kind.SCALAR:
        return raw
    if feature.kind is Kind.MASK:
        return (raw > 0).float() if hard else raw.sigmoid()
    if hard:
        return F.one_hot(raw.argmax(-1), raw.shape[-1]).float()
    return raw.softmax(-1)


def decided(feature: Feature, raw: Tensor) -> Tensor:
    """Return raw values as predictions: masks as probabilities, otherwise class numbers and node ids."""
    if feature.kind is Kind.SCALAR:
        return raw
    return raw.sigmoid() if feature.kind is Kind.MASK else raw.argmax(-1)


def decided_order(raw: Tensor, head: Tensor) -> Tensor:
    """Return pointers ``[B, n]`` from a permutation's logarithms and the raw values of its first node."""
    sharp = log_sinkhorn(raw, steps=25, noise=False, cyclic=False).argmax(-1)
    first = head.argmax(-1, keepdim=True)
    return sharp.scatter(1, first, first)
