"""Decoders: node, pair and graph vectors of a step to raw values of a feature, and raw values to predictions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ConfigError
from graphbench.models.base import module_key
from graphbench.models.layers import full_precision
from graphbench.models.trajectory.encoders import PairVectors
from graphbench.models.trajectory.layers import cells_at_once, linear
from graphbench.models.trajectory.processors.base import DenseProcessor
from graphbench.models.trajectory.sinkhorn import log_sinkhorn


class DecoderInput:
    """The vectors that decoders read after a step.

    Attributes:
        nodes: ``[B, n, 3h]``: encoded nodes, states before and states after the processor.
        pairs: The encoded pairs.
        graph: ``[B, h]``, the encoded graph.
        processor: The processor, for its messages.
    """

    def __init__(self, nodes: Tensor, pairs: PairVectors, graph: Tensor, processor: DenseProcessor) -> None:
        self.nodes, self.pairs, self.graph, self.processor = nodes, pairs, graph, processor
        self._messages: Tensor | None = None

    @property
    def messages(self) -> Tensor:
        """``[B, n, n, h]`` from a processor that makes vectors of pairs, computed on first access."""
        if self._messages is None:
            read = self.nodes[..., : 2 * self.nodes.shape[-1] // 3]
            self._messages = self.processor.messages(read, self.pairs, self.graph)
        return self._messages

    def where(self, updated: Tensor, before: DecoderInput) -> DecoderInput:
        """Return this state for the samples with ``updated [B]``, and the previous state for the others."""

        def pick(now: Tensor, then: Tensor) -> Tensor:
            return torch.where(updated.view(-1, *[1] * (now.dim() - 1)), now, then)

        pairs = PairVectors(pick(self.pairs.columns, before.pairs.columns), self.pairs.weight, self.pairs.bias)
        return DecoderInput(pick(self.nodes, before.nodes), pairs, pick(self.graph, before.graph), self.processor)


class FeatureDecoder(nn.Module):
    """The decoder of one feature to raw values, float32.

    ======================  ========================================================================================
    node                    a linear map of the node
    node pointer            linear of max(W1 h_i, W2 h_j + W3 e_ji)
    edge                    the sum of linear maps of both nodes and the pair
    edge pointer            linear of max(W1 h_i + W2 h_j + W3 e_ij, W4 h_k)
    graph                   linear maps of the maximum over the nodes and of the graph, summed
    ======================  ========================================================================================

    Args:
        feature: The decoded feature.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
    """

    def __init__(self, feature: Feature, hidden: int, *, messages: bool) -> None:
        super().__init__()
        if feature.location is Location.GRAPH and (feature.is_pointer or feature.kind is Kind.MASK_ONE):
            raise ConfigError(f"output {feature.name!r}: there is no decoder for a {feature.type_name} of the graph")
        self.feature, self.reads_messages = feature, messages
        wide = 2 * hidden if messages else hidden
        pointer = feature.is_pointer
        out = hidden if pointer else feature.classes if feature.kind is Kind.CATEGORICAL else feature.width
        self.first = linear(3 * hidden, out)
        self.second: nn.Linear | None = None
        self.pair: nn.Linear | None = None
        self.third: nn.Linear | None = None
        if feature.location is Location.GRAPH:
            self.second = linear(hidden, out)
        elif feature.location is Location.EDGE or pointer:
            self.second, self.pair = linear(3 * hidden, out), linear(wide, out)
        if pointer and feature.location is Location.EDGE:
            self.third = linear(3 * hidden, out)
        self.last = linear(hidden, 1) if pointer else None

    def forward(self, state: DecoderInput) -> Tensor:
        """Return raw values: ``[B, items]``, with a last axis of classes or of nodes pointed at."""
        if self.last is not None:
            return self._edge_pointers(state) if self.third is not None else self._node_pointers(state)
        if self.second is None:
            raw = self.first(state.nodes)
        elif self.pair is None:
            raw = self.first(state.nodes.amax(1)) + self.second(state.graph.to(self.second.weight.dtype))
        else:
            raw = self._pairs(state)
        several = self.feature.kind is Kind.CATEGORICAL or self.feature.width > 1
        return raw if several else raw.squeeze(-1)  # type: ignore[no-any-return]

    def _pairs(self, state: DecoderInput) -> Tensor:
        """Return the sum of linear maps of row, column and pair, ``[B, n, n, out]``."""
        assert self.second is not None
        return self._plus_pairs(state, self.first(state.nodes).unsqueeze(2)).add_(self.second(state.nodes).unsqueeze(1))

    def _node_pointers(self, state: DecoderInput) -> Tensor:
        assert self.second is not None and self.last is not None
        sources = self.first(state.nodes)
        # max(a, b) = a + relu(b - a), and the linear map of a is one of nodes alone. Rows are the nodes pointed at.
        excess = self._plus_pairs(state, self.second(state.nodes).unsqueeze(2)).add_((-sources).unsqueeze(1)).relu_()
        excess_scores = torch.matmul(excess, self.last.weight[0])
        return self.last(sources) + excess_scores.transpose(1, 2)  # type: ignore[no-any-return]

    def _edge_pointers(self, state: DecoderInput) -> Tensor:
        assert self.third is not None and self.last is not None
        sources, targets = self._pairs(state), self.third(state.nodes)
        return self.last(sources) + excess_over(sources, targets, self.last.weight[0])  # type: ignore[no-any-return]

    def _plus_pairs(self, state: DecoderInput, other: Tensor) -> Tensor:
        """Return ``other`` plus a linear map of the pairs, in newly allocated memory."""
        assert self.pair is not None
        total = state.pairs.project(self.pair) + other
        if self.reads_messages:
            total.add_(F.linear(state.messages.to(total.dtype), self.pair.weight[:, len(state.pairs.bias) :]))
        return total


def excess_over(sources: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
    """Return ``relu(targets[b, k] - sources[b, i, j]) @ weight`` for all (i, j, k), ``[B, n, n, n]``.

    Vectors of triples are computed for a few rows i at a time, and computed again in the backward pass.

    Args:
        sources: ``[B, n, n, h]``.
        targets: ``[B, n, h]``.
        weight: ``[h]``.
    """

    def rows(pairs: Tensor, others: Tensor, weight: Tensor) -> Tensor:
        return torch.matmul((others.unsqueeze(1) - pairs.unsqueeze(2)).relu_(), weight)

    nodes, hidden = targets.shape[1:]
    chunk = max(1, cells_at_once(targets.device) // (nodes * nodes * hidden))
    pieces = zip(
        torch.split(sources.flatten(0, 1), chunk),
        torch.split(targets.unsqueeze(1).expand_as(sources).flatten(0, 1), chunk),
        strict=True,
    )
    if torch.is_grad_enabled() and (sources.requires_grad or targets.requires_grad):
        parts = [checkpoint(rows, *piece, weight, use_reentrant=False, preserve_rng_state=False) for piece in pieces]
    else:
        parts = [rows(*piece, weight) for piece in pieces]
    return torch.cat(parts).view(*sources.shape[:3], -1)


class Decoders(nn.Module):
    """The decoders of several features; a permutation has a second decoder for the first node.

    Args:
        features: The decoded features.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
        permutations: Whether permutations are decoded as such; else as pointers.
    """

    def __init__(self, features: Sequence[Feature], hidden: int, *, messages: bool, permutations: bool = False) -> None:
        super().__init__()
        self.features = tuple(features)
        self.permutations = permutations
        heads = [head_of(f) for f in features if permutations and f.kind is Kind.PERMUTATION]
        self.decoded = (*self.features, *heads)
        self.decoders = nn.ModuleDict(
            {module_key(f.name): FeatureDecoder(f, hidden, messages=messages) for f in self.decoded}
        )
        self.read_messages = messages and any(d.pair is not None for d in self.decoders.values())

    def forward(self, state: DecoderInput) -> dict[str, Tensor]:
        """Return feature name -> raw values; for permutations, the logarithms of a doubly stochastic matrix."""
        if self.read_messages:
            state.messages  # noqa: B018  computed here, in the precision of the processor
        with full_precision(state.nodes.device):
            raw = {f.name: self.decoders[module_key(f.name)](state) for f in self.decoded}
        for feature in self.features:
            if self.permutations and feature.kind is Kind.PERMUTATION:
                raw[feature.name] = log_sinkhorn(raw[feature.name], steps=10, noise=self.training)
        return raw


def head_of(feature: Feature) -> Feature:
    """Return the feature that marks the first node of a permutation."""
    return Feature(f"{feature.name}_mask", feature.stage, feature.location, Kind.MASK_ONE)


def soften(feature: Feature, raw: Tensor, hard: bool) -> Tensor:
    """Return raw values in the dense form that is fed back to the model: probabilities, or one-hot if ``hard``."""
    if feature.kind is Kind.SCALAR:
        return raw
    if feature.kind is Kind.MASK:
        return (raw > 0).float() if hard else raw.sigmoid()
    if hard:
        return F.one_hot(raw.argmax(-1), raw.shape[-1]).float()
    return raw.softmax(-1)


def postprocessed(feature: Feature, raw: Tensor) -> Tensor:
    """Return raw values as predictions: masks as probabilities, otherwise class numbers and node ids."""
    if feature.kind is Kind.SCALAR:
        return raw
    return raw.sigmoid() if feature.kind is Kind.MASK else raw.argmax(-1)


def postprocessed_order(raw: Tensor, head: Tensor) -> Tensor:
    """Return pointers ``[B, n]`` from a permutation's logarithms and the raw values of its first node."""
    sharp = log_sinkhorn(raw, steps=25, noise=False, cyclic=False).argmax(-1)
    first = head.argmax(-1, keepdim=True)
    return sharp.scatter(1, first, first)
