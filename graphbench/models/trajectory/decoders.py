"""Decoders: node, pair and graph vectors of a step to raw values of a feature, and raw values to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ConfigError
from graphbench.models.base import module_key
from graphbench.models.fused import is_compiled
from graphbench.models.layers import full_precision
from graphbench.models.trajectory.fused import PairSum, pair_scores, triple_scores, triplet_scores
from graphbench.models.trajectory.layers import cells_at_once, linear
from graphbench.models.trajectory.processors.base import DenseProcessor, Step, pick
from graphbench.models.trajectory.sinkhorn import log_sinkhorn


class DecoderInput:
    """The vectors that decoders read after a step.

    Attributes:
        step: The vectors that the processor has read.
        after: ``[B, n, h]``: the states of the nodes after the processor.
        processor: The processor, for its messages.
    """

    def __init__(self, step: Step, after: Tensor, processor: DenseProcessor) -> None:
        self.step, self.after, self.processor = step, after, processor
        self.pairs, self.graph = step.pairs, step.graph
        self._messages: Tensor | None = None
        self._largest: Tensor | None = None

    @property
    def nodes(self) -> Tensor:
        """``[B, n, 3h]``: encoded nodes, states before and states after the processor."""
        return torch.cat([self.step.nodes, self.after], -1)

    @property
    def largest(self) -> Tensor:
        """``[B, 3h]``: the maximum over the nodes of these vectors, computed on first access."""
        if self._largest is None:
            self._largest = torch.cat([self.step.nodes.amax(1), self.after.amax(1)], -1)
        return self._largest

    @property
    def messages(self) -> Tensor:
        """``[B, n, n, h]`` from a processor that makes vectors of pairs, computed on first access."""
        if self._messages is None:
            self._messages = self.processor.messages(self.step)
        return self._messages

    def project(self, *linears: nn.Linear) -> tuple[Tensor, ...]:
        """Return each of several linear maps of the nodes, ``[B, n, out]``."""
        return self.step.project_with(self.after, *linears)

    def where(self, updated: Tensor, before: DecoderInput) -> DecoderInput:
        """Return this state for the samples with ``updated [B]``, and the previous state for the others."""
        step = self.step.where(updated, before.step)
        return DecoderInput(step, pick(updated, self.after, before.after), self.processor)


class FeatureDecoder(nn.Module):
    """The decoder of one feature to raw values, float32.

    ======================  ========================================================================================
    node                    a linear map of the node
    node pointer            linear of max(W1 h_i, W2 h_j + W3 e_ji)
    edge                    the sum of linear maps of both nodes and the pair
    edge pointer            linear of max(W1 h_i + W2 h_j + W3 e_ij, W4 h_k); with ``triplets``, linear of
                            relu(W1 h_i + W2 h_j + W3 e_ij + W4 h_k + W5 e_ik + W6 e_kj)
    graph                   linear maps of the maximum over the nodes and of the graph, summed
    ======================  ========================================================================================

    Args:
        feature: The decoded feature.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
        triplets: Whether pointers of edges are decoded from triples of nodes.
    """

    def __init__(self, feature: Feature, hidden: int, *, messages: bool, triplets: bool = False) -> None:
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
        self.sides = nn.ModuleList(linear(wide, out) for _ in range(2 if triplets and self.third is not None else 0))
        self.last = linear(hidden, 1) if pointer else None

    def node_maps(self) -> tuple[nn.Linear, ...]:
        """Return the linear maps of the nodes, in the order of ``projected`` in ``forward``."""
        if self.feature.location is Location.GRAPH:
            return ()
        return tuple(layer for layer in (self.first, self.second, self.third) if layer is not None)

    def forward(self, state: DecoderInput, projected: Sequence[Tensor] | None = None) -> Tensor:
        """Return raw values: ``[B, items]``, with a last axis of classes or of nodes pointed at.

        Args:
            state: The vectors to decode.
            projected: The maps :meth:`node_maps` of the nodes, which several decoders compute together.
        """
        if self.feature.location is Location.GRAPH:
            assert self.second is not None
            raw = self.first(state.largest) + self.second(state.graph.to(self.second.weight.dtype))
        else:
            raw = self._of_nodes(state, state.project(*self.node_maps()) if projected is None else projected)
        several = self.last is not None or self.feature.kind is Kind.CATEGORICAL or self.feature.width > 1
        return raw if several else raw.squeeze(-1)  # type: ignore[no-any-return]

    def _of_nodes(self, state: DecoderInput, projected: Sequence[Tensor]) -> Tensor:
        """Return the raw values of a feature of nodes or pairs."""
        if self.pair is None:
            return projected[0]
        if self.last is None:
            return self._pairs(state, *projected)
        return self._node_pointers(state, *projected) if self.third is None else self._edge_pointers(state, *projected)

    def _pairs(self, state: DecoderInput, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the sum of linear maps of row, column and pair, ``[B, n, n, out]``."""
        assert self.pair is not None
        return self._of_pairs(state, self.pair).add_(rows.unsqueeze(2)).add_(columns.unsqueeze(1))

    def _of_pairs(self, state: DecoderInput, layer: nn.Linear) -> Tensor:
        """Return a linear map of the pairs, in newly allocated memory, ``[B, n, n, out]``."""
        total, messages = state.pairs.project(layer), self._of_messages(state, layer)
        return total if messages is None else total.add_(messages)

    def _node_pointers(self, state: DecoderInput, sources: Tensor, targets: Tensor) -> Tensor:
        # max(a, b) = a + relu(b - a), and the linear map of a is one of nodes alone. Rows are the nodes pointed at.
        assert self.pair is not None and self.last is not None
        if is_compiled(sources.shape[-1], sources, targets):
            pair = state.pairs.composed(self.pair)
            total = PairSum(state.pairs.columns, pair.weight, targets + pair.bias, -sources)
            excess_scores = pair_scores(total, self.last.weight[0], self._of_messages(state, self.pair))
        else:
            excess = self._pairs(state, targets, -sources).relu_()
            excess_scores = torch.matmul(excess, self.last.weight[0])
        return self.last(sources) + excess_scores.transpose(1, 2)  # type: ignore[no-any-return]

    def _edge_pointers(self, state: DecoderInput, rows: Tensor, columns: Tensor, targets: Tensor) -> Tensor:
        assert self.last is not None
        sources = self._pairs(state, rows, columns)
        if len(self.sides):
            firsts, seconds = (self._of_pairs(state, side) for side in self.sides)  # type: ignore[arg-type]
            triples = (sources, firsts + targets.unsqueeze(1), seconds.transpose(1, 2))
            return relu_of_triples(*triples, self.last.weight[0]) + self.last.bias
        return self.last(sources) + excess_over(sources, targets, self.last.weight[0])  # type: ignore[no-any-return]

    def _of_messages(self, state: DecoderInput, layer: nn.Linear) -> Tensor | None:
        """Return a linear map of the processor's messages, ``[B, n, n, out]``; None if it makes none."""
        if not self.reads_messages:
            return None
        weight = layer.weight[:, len(state.pairs.bias) :]
        return F.linear(state.messages.to(weight.dtype), weight)


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
    if is_compiled(hidden, sources, targets):
        return triple_scores(sources, targets, weight)
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


def relu_of_triples(ends: Tensor, firsts: Tensor, seconds: Tensor, weight: Tensor) -> Tensor:
    """Return ``relu(ends[b, i, j] + firsts[b, i, k] + seconds[b, j, k]) @ weight``, ``[B, n, n, n]``.

    Vectors of triples are computed for a few rows i at a time, and computed again in the backward pass.

    Args:
        ends: ``[B, n, n, h]``, as are ``firsts`` and ``seconds``.
        firsts: See ``ends``.
        seconds: See ``ends``.
        weight: ``[h]``.
    """

    def rows(ends: Tensor, firsts: Tensor, seconds: Tensor, weight: Tensor) -> Tensor:
        total = ends.unsqueeze(3) + firsts.unsqueeze(2) + seconds.unsqueeze(1)
        return torch.matmul(total.relu_(), weight)

    samples, nodes, _, hidden = ends.shape
    if is_compiled(hidden, ends, firsts, seconds):
        return triplet_scores(ends, firsts, seconds, weight)
    chunk = max(1, cells_at_once(ends.device) // (samples * nodes * nodes * hidden))
    pieces = zip(torch.split(ends, chunk, 1), torch.split(firsts, chunk, 1), strict=True)
    if torch.is_grad_enabled() and ends.requires_grad:
        saved: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
        return torch.cat([checkpoint(rows, *piece, seconds, weight, **saved) for piece in pieces], 1)
    return torch.cat([rows(*piece, seconds, weight) for piece in pieces], 1)


class Decoders(nn.Module):
    """The decoders of several features; a permutation has a second decoder for the first node.

    Args:
        features: The decoded features.
        hidden: Width h.
        messages: Whether the processor makes vectors of pairs.
        triplets: Whether pointers of edges are decoded from triples of nodes.
        permutations: Whether permutations are decoded as such; else as pointers.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        hidden: int,
        *,
        messages: bool,
        triplets: bool = False,
        permutations: bool = False,
    ) -> None:
        super().__init__()
        self.features = tuple(features)
        self.permutations = permutations
        heads = [head_of(f) for f in features if permutations and f.kind is Kind.PERMUTATION]
        self.decoded = (*self.features, *heads)
        self.decoders = nn.ModuleDict(
            {module_key(f.name): FeatureDecoder(f, hidden, messages=messages, triplets=triplets) for f in self.decoded}
        )
        self.read_messages = messages and any(d.pair is not None for d in self.decoders.values())

    def forward(self, state: DecoderInput) -> dict[str, Tensor]:
        """Return feature name -> raw values; for permutations, the logarithms of a doubly stochastic matrix."""
        if self.read_messages:
            state.messages  # noqa: B018  computed here, in the precision of the processor
        with full_precision(state.nodes.device):
            raw = self._raw(state)
        for feature in self.features:
            if self.permutations and feature.kind is Kind.PERMUTATION:
                raw[feature.name] = log_sinkhorn(raw[feature.name], steps=10, noise=self.training)
        return raw

    def _raw(self, state: DecoderInput) -> dict[str, Tensor]:
        """Return the raw values of all features; the linear maps of nodes are one product."""
        decoders = {f.name: self.decoders[module_key(f.name)] for f in self.decoded}
        counts = {name: len(decoder.node_maps()) for name, decoder in decoders.items()}  # type: ignore[operator]
        maps = [layer for decoder in decoders.values() for layer in decoder.node_maps()]  # type: ignore[operator]
        projected = iter(state.project(*maps) if maps else ())
        return {name: decoders[name](state, list(islice(projected, count))) for name, count in counts.items()}


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
