"""Attention with a bias from the graph: two kinds of bias, and four ways to apply it.

A bias is float [heads, queries, keys] per graph. ``dense()`` builds the bias of a whole padded batch; ``rows()`` builds
a slice, so that the full square of a graph with tens of thousands of tokens is never held in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from graphbench.core.errors import ConfigError
from graphbench.models.graphs import segment_sum
from graphbench.models.processors.sparse_bias import BiasedPairs, ordered_pairs, pairs_attention

DENSE_BIAS_BYTES = 1 << 29  # if the bias of a batch is larger, "auto" works in slices
_SLICE_BYTES = 1 << 26
_LONG_SEQUENCE = 128  # tokens; of shorter ones, dense biases are cheap
_MOST_BIASED = 0.2  # share of all pairs

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


class AttentionBias(Protocol):
    """The bias of ``heads`` heads for sequences of ``lengths`` int64 [B] tokens, padded to ``size``."""

    lengths: Tensor
    size: int
    heads: int

    def dense(self) -> Tensor:
        """Return the bias of all graphs, float [B, heads, size, size]; padding is not yet masked."""
        ...

    def rows(self, graph: int, start: int, stop: int, length: int) -> Tensor:
        """Return one graph's bias for queries ``start .. stop-1`` and ``length`` keys, [heads, stop-start, length]."""
        ...

    def most_pairs(self) -> int:
        """Return an upper bound of the number of pairs that have a bias."""
        ...

    def pairs(self) -> BiasedPairs:
        """Return the pairs that have a bias."""
        ...


class ArcBias:
    """A bias on the pairs of tokens that an arc joins, 0 elsewhere; the head of an arc attends to its tail."""

    def __init__(self, values: Tensor, arcs: Tensor, lengths: Tensor, size: int, token: Tensor | None) -> None:
        """Create the bias.

        Args:
            values: [E, heads].
            arcs: int64 [3, E]: graph, position of the query (head), position of the key (tail).
            lengths: int64 [B], tokens per graph.
            size: Padded length.
            token: [3, heads], biases of the graph token (loop, in, out) at position 0, or None.
        """
        self.values, self.arcs, self.token = values, arcs, token
        self.lengths, self.size, self.heads = lengths, size, values.shape[1]

    def dense(self) -> Tensor:
        """Return the bias of all graphs, [B, heads, size, size]."""
        graph, query, key = self.arcs
        flat = (graph * self.size + query) * self.size + key
        square = self.values.new_zeros(self.lengths.numel() * self.size**2, self.heads).index_add(0, flat, self.values)
        bias = square.view(-1, self.size, self.size, self.heads).permute(0, 3, 1, 2)
        return bias if self.token is None else bias + token_bias(self.token, 0, self.size, self.size)

    def rows(self, graph: int, start: int, stop: int, length: int) -> Tensor:
        """Return a slice of one graph's bias, [heads, stop-start, length]."""
        owner, query, key = self.arcs
        selected = ((owner == graph) & (query >= start) & (query < stop)).nonzero().squeeze(1)
        flat = (query[selected] - start) * length + key[selected]
        square = self.values.new_zeros((stop - start) * length, self.heads).index_add(0, flat, self.values[selected])
        bias = square.view(stop - start, length, self.heads).permute(2, 0, 1)
        return bias if self.token is None else bias + token_bias(self.token, start, stop, length)

    def most_pairs(self) -> int:
        """Return an upper bound of the number of pairs that have a bias."""
        return self.arcs.shape[1] + (0 if self.token is None else 2 * self.lengths.numel() * self.size)

    def pairs(self) -> BiasedPairs:
        """Return the pairs that have a bias; several arcs between two tokens add up."""
        graph, query, key = self.arcs
        flat, values = (graph * self.size + query) * self.size + key, self.values
        if self.token is not None:
            of_token, kinds = token_pairs(self.lengths, self.size)
            flat, values = torch.cat([flat, of_token]), torch.cat([values, self.token.to(values.dtype)[kinds]])
        starts, pairs, place = ordered_pairs(flat, self.size, self.lengths.numel())
        return BiasedPairs(starts, pairs, segment_sum(values, place, pairs.shape[1]), self.lengths)


class RelationBias:
    """A bias by the relation of two tokens that are nodes or edges: the same token, a shared endpoint, or none (0).

    The relation is computed by comparing endpoints and is not stored.
    """

    def __init__(self, weight: Tensor, endpoints: Tensor, lengths: Tensor, token: Tensor | None) -> None:
        """Create the bias.

        Args:
            weight: [2, heads]: same token, shared endpoint.
            endpoints: int64 [B, size, 2]; a node v is (v, v); a graph token and padding have negative numbers.
            lengths: int64 [B], tokens per graph.
            token: [3, heads], biases of the graph token (loop, in, out) at position 0, or None.
        """
        self.weight, self.endpoints, self.token = weight, endpoints, token
        self.lengths, self.size, self.heads = lengths, endpoints.shape[1], weight.shape[1]

    def dense(self) -> Tensor:
        """Return the bias of all graphs, [B, heads, size, size]."""
        shared = shares_endpoint(self.endpoints, self.endpoints)
        return self._bias(shared.unsqueeze(1), 0, self.size, self.size)

    def rows(self, graph: int, start: int, stop: int, length: int) -> Tensor:
        """Return a slice of one graph's bias, [heads, stop-start, length]."""
        ends = self.endpoints[graph]
        return self._bias(shares_endpoint(ends[start:stop], ends[:length]), start, stop, length)

    def most_pairs(self) -> int:
        """Return an upper bound of the number of pairs that have a bias."""
        counts = torch.bincount(self._incidences[0])
        return int(counts.square().sum()) + (0 if self.token is None else 2 * self.lengths.numel() * self.size)

    def pairs(self) -> BiasedPairs:
        """Return the pairs that have a bias."""
        node, token = self._incidences
        counts = torch.bincount(node)
        first, repeats = counts.cumsum(0) - counts, counts[node]
        one = torch.repeat_interleave(token, repeats)  # every incidence with all incidences of its node
        within = torch.arange(len(one)) - torch.repeat_interleave(repeats.cumsum(0) - repeats, repeats)
        other = token[torch.repeat_interleave(first[node], repeats) + within]
        flat = one * self.size + other % self.size
        table = self.weight
        if self.token is not None:
            of_token, kinds = token_pairs(self.lengths, self.size)
            table = torch.cat([table, self.token.to(table.dtype)])
            flat = torch.cat([flat, of_token])
        starts, pairs, place = ordered_pairs(flat, self.size, self.lengths.numel())
        kind = (pairs[0] != pairs[1]).long()
        if self.token is not None:
            kind = kind.index_copy(0, place[-len(kinds) :], 2 + kinds)
        return BiasedPairs(starts, pairs, table[kind], self.lengths)

    @cached_property
    def _incidences(self) -> tuple[Tensor, Tensor]:
        """Nodes, in order, and the tokens that touch them, numbered through the padded batch; int64 [I] each."""
        ends = self.endpoints.flatten(0, 1)
        tokens = torch.arange(len(ends)).repeat(2)
        nodes = torch.cat([ends[:, 0], torch.where(ends[:, 0] == ends[:, 1], -1, ends[:, 1])])
        there = nodes >= 0
        order = torch.argsort(nodes[there], stable=True)
        return nodes[there][order], tokens[there][order]

    def _bias(self, shared: Tensor, start: int, stop: int, keys: int) -> Tensor:
        positions = torch.arange(start, stop, device=shared.device).unsqueeze(1)
        same = positions == torch.arange(keys, device=shared.device)
        bias = self.weight[1].view(-1, 1, 1) * (shared & ~same)
        if self.token is None:
            return bias + self.weight[0].view(-1, 1, 1) * same
        not_token = positions > 0  # the graph token's loop has another bias
        return bias + self.weight[0].view(-1, 1, 1) * (same & not_token) + token_bias(self.token, start, stop, keys)


def shares_endpoint(queries: Tensor, keys: Tensor) -> Tensor:
    """Return whether tokens share an endpoint, bool [..., Q, K]; endpoints are int64 [..., Q, 2] and [..., K, 2]."""
    a, b = queries[..., 0].unsqueeze(-1), queries[..., 1].unsqueeze(-1)
    c, d = keys[..., 0].unsqueeze(-2), keys[..., 1].unsqueeze(-2)
    return (a == c) | (a == d) | (b == c) | (b == d)


def token_bias(token: Tensor, start: int, stop: int, keys: int) -> Tensor:
    """Return the graph token's bias [heads, stop-start, keys]: loop at (0, 0), in as the query, out as a key."""
    query_is = (torch.arange(start, stop, device=token.device) == 0).unsqueeze(1)
    key_is = (torch.arange(keys, device=token.device) == 0).unsqueeze(0)
    kinds = torch.stack([query_is & key_is, query_is & ~key_is, ~query_is & key_is]).to(token.dtype)
    return torch.einsum("th,tqk->hqk", token, kinds)


def token_pairs(lengths: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the pairs of graph tokens with all tokens of their graphs, and their kinds: loop 0, in 1, out 2.

    Args:
        lengths: int64 [B], tokens per graph; the graph token is the first.
        size: Padded number of tokens.

    Returns:
        int64 [Q], ``(graph * size + query) * size + key``, and int64 [Q].
    """
    graph = torch.repeat_interleave(lengths)
    token = torch.arange(len(graph)) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    base = graph * size**2
    others = token > 0
    flat = torch.cat([base + token, (base + token * size)[others]])
    return flat, torch.cat([others.long(), torch.full((int(others.sum()),), 2)])


def attention_function(mode: str, bias: AttentionBias) -> Attention:
    """Return attention with a bias: a function of queries, keys and values [B, heads, L, d/heads], scaled per head.

    Args:
        mode: ``auto``, ``sdpa``, ``chunked``, ``pairs`` or ``flex``, see ``ModelConfig.attention``.
        bias: The bias, the same for every layer.

    Raises:
        ConfigError: If ``flex`` is chosen without edge tokens or without a CUDA device, or ``pairs`` on a device that
            is no CPU.
    """
    if mode == "flex":
        if not isinstance(bias, RelationBias) or bias.weight.device.type != "cuda":
            raise ConfigError("attention 'flex' needs edge tokens and a CUDA device; use 'auto'")
        return flex_attention_function(bias, compiled=True)
    square = 4 * bias.lengths.numel() * bias.heads * bias.size**2
    if mode == "pairs" or (mode == "auto" and _has_few_pairs(bias)):
        if bias.lengths.device.type != "cpu":
            raise ConfigError("attention 'pairs' needs a CPU; use 'auto'")
        return pairs_attention(bias.pairs())
    if mode == "chunked" or (mode == "auto" and square > DENSE_BIAS_BYTES):
        return _sliced_attention(bias)
    return _dense_attention(bias)


def _has_few_pairs(bias: AttentionBias) -> bool:
    """Return whether adding the biases of single pairs on the CPU is faster than adding a dense bias."""
    if bias.lengths.device.type != "cpu" or bias.size < _LONG_SEQUENCE or torch.compiler.is_compiling():
        return False
    return bias.most_pairs() <= _MOST_BIASED * bias.lengths.numel() * bias.size**2


def _dense_attention(bias: AttentionBias) -> Attention:
    padding = torch.arange(bias.size, device=bias.lengths.device) >= bias.lengths.unsqueeze(1)
    mask = bias.dense().masked_fill(padding[:, None, None], -torch.inf)
    device = mask.device.type
    if torch.is_autocast_enabled(device):
        mask = mask.to(torch.get_autocast_dtype(device))
    if device != "cpu":
        mask = mask.contiguous()  # once, not in every layer

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask.to(queries.dtype))

    return attend


def _sliced_attention(bias: AttentionBias) -> Attention:
    lengths: list[int] = bias.lengths.tolist()

    def attend_slice(queries: Tensor, keys: Tensor, values: Tensor, graph: int, start: int) -> Tensor:
        rows = bias.rows(graph, start, start + queries.shape[1], keys.shape[1])
        mask = rows.unsqueeze(0).to(queries.dtype)
        return F.scaled_dot_product_attention(
            queries.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), attn_mask=mask
        ).squeeze(0)

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        recompute = torch.is_grad_enabled() and queries.requires_grad  # else every slice's bias is kept for backward
        outputs = []
        for graph, length in enumerate(lengths):
            step = max(1, _SLICE_BYTES // (4 * bias.heads * length))
            parts = []
            for start in range(0, length, step):
                part = (queries[graph, :, start : min(start + step, length)], keys[graph, :, :length])
                arguments = (*part, values[graph, :, :length], graph, start)
                parts.append(
                    checkpoint(attend_slice, *arguments, use_reentrant=False, preserve_rng_state=False)
                    if recompute
                    else attend_slice(*arguments)
                )
            outputs.append(F.pad(torch.cat(parts, dim=1), (0, 0, 0, bias.size - length)))
        return torch.stack(outputs)

    return attend


def flex_attention_function(bias: RelationBias, *, compiled: bool) -> Attention:
    """Return attention by ``torch.nn.attention.flex_attention``, which computes the bias inside the kernel.

    Args:
        bias: The bias; the kernel reads its endpoint numbers.
        compiled: Whether to compile. Without, the result is the same, but the full square is built (for tests).
    """
    first, second = bias.endpoints[..., 0].contiguous(), bias.endpoints[..., 1].contiguous()
    weight, lengths, token = bias.weight, bias.lengths, bias.token

    def biased(score: Tensor, graph: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        a, b, c, d = first[graph, query], second[graph, query], first[graph, key], second[graph, key]
        shared = (a == c) | (a == d) | (b == c) | (b == d)
        added = torch.where(shared, weight[1, head], torch.zeros_like(score))
        added = torch.where(query == key, weight[0, head], added)
        if token is not None:
            added = torch.where(query == 0, token[1, head], torch.where(key == 0, token[2, head], added))
            added = torch.where((query == 0) & (key == 0), token[0, head], added)
        return torch.where(key < lengths[graph], score + added, -torch.inf)

    flex = _flex_attention(compiled)

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        result: Tensor = flex(queries.contiguous(), keys.contiguous(), values.contiguous(), score_mod=biased)
        return result

    return attend


@functools.cache
def _flex_attention(compiled: bool) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    function: Any = torch.compile(flex_attention, dynamic=True) if compiled else flex_attention
    return cast("Callable[..., Any]", function)
