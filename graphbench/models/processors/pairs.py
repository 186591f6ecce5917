"""Attention with a bias on few pairs of tokens: a fused kernel without bias, and a correction of the biased pairs.

With scores ``s``, biases ``b`` that are 0 but for some pairs P, the fused kernel's result ``o_i`` and the logarithm of
its normaliser ``z_i``, biased attention is ``(o_i + sum over j in P of w_ij v_j) / (1 + sum over j in P of w_ij)`` with
``w_ij = exp(s_ij - z_i) (exp(b_ij) - 1)``. The same kernel's backward pass, given the biased result and normaliser,
gives the gradients of all pairs without their biases, and the gradients of P are corrected likewise. Memory is linear
in tokens and pairs. Sums are taken in the order of the pairs, so they are the same in every run with the same number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.arcs import occurrences
from graphbench.models.fused import LANES

_flash: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_flash_backward: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


@dataclass(frozen=True)
class BiasedPairs:
    """The pairs of tokens that have a bias, each once, ordered by query and key.

    Attributes:
        starts: int64 [B * L + 1], the first pair of every query; L is the padded number of tokens of a graph.
        keys: int64 [P], the key of every pair. Tokens are numbered through the padded batch.
        values: float [P, heads].
        lengths: int64 [B], tokens per graph.
    """

    starts: Tensor
    keys: Tensor
    values: Tensor
    lengths: Tensor


def ordered_pairs(flat: Tensor, size: int, graphs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return pairs in order, each once.

    Args:
        flat: int64 [Q], ``(graph * size + query) * size + key`` of pairs, in any order and possibly repeated.
        size: Padded number of tokens L of a graph.
        graphs: Number of graphs B.

    Returns:
        int64 [P], the pairs in order as in ``flat``; int64 [Q], the place of every given pair among them; and
        ``starts`` and ``keys`` of :class:`BiasedPairs`.
    """
    pairs, place = torch.unique(flat, return_inverse=True)
    query = pairs // size
    keys = query // size * size + pairs % size
    starts = F.pad(occurrences(query, graphs * size).cumsum(0), (1, 0))
    return pairs, place, starts, keys


def pairs_attention(pairs: BiasedPairs) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return attention with the given biases: a function of queries, keys and values, float32 [B, heads, L, d / heads].

    The values of padding in the result are not defined.

    Args:
        pairs: The biases, on the CPU.
    """
    prepared = _Prepared(pairs, torch.expm1(pairs.values.detach().float()).numpy(), pairs.lengths.tolist())

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        tensors = (t.float() for t in (queries, keys, values, pairs.values))
        result: Tensor = _PairsAttention.apply(*tensors, prepared)  # type: ignore[no-untyped-call]
        return result.to(values.dtype)

    return attend


@dataclass(frozen=True)
class _Prepared:
    """Pairs with ``exp(bias) - 1`` float32 [P, heads] and the lengths of the graphs, which all layers share."""

    pairs: BiasedPairs
    changes: Any
    lengths: list[int]

    def arrays(self, bias: Tensor) -> tuple[Any, ...]:
        """Return the arguments of the kernels that follow queries, keys and values."""
        pairs = self.pairs
        return bias.detach().numpy(), self.changes, *(t.numpy() for t in (pairs.starts, pairs.keys, pairs.lengths))


class _PairsAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, prepared: _Prepared) -> Tensor:
        from graphbench.models._attention_cpu import correct

        scale = queries.shape[-1] ** -0.5
        plain, normalisers = torch.zeros_like(values), torch.zeros(queries.shape[:3])
        for graph, length in enumerate(prepared.lengths):  # each with its own length: padding costs its square
            part = [t[graph : graph + 1, :, :length] for t in (queries, keys, values)]
            out, normaliser = _flash(*part, 0.0, False, scale=scale)
            plain[graph, :, :length], normalisers[graph, :, :length] = out[0], normaliser[0]
        rows = [_tokens_first(t) for t in (queries * scale, keys, values)]
        out, of_rows = _tokens_first(plain), _tokens_first(normalisers.unsqueeze(3))[..., 0].contiguous()
        whole, weights = torch.zeros(of_rows.shape, dtype=torch.bool), torch.zeros_like(bias)
        state = (of_rows.numpy(), whole.numpy(), weights.numpy())
        arguments: tuple[Any, ...] = (*map(_flat, rows), *prepared.arrays(bias), *state, _flat(out))
        correct(*arguments)
        result = _heads_first(out, values.shape)
        ctx.save_for_backward(queries, keys, values, bias, result, of_rows, whole, weights)
        ctx.prepared = prepared
        return result

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        from graphbench.models._attention_cpu import correct_gradients

        queries, keys, values, bias, result, of_rows, whole, weights = ctx.saved_tensors
        prepared: _Prepared = ctx.prepared
        scale, plain = queries.shape[-1] ** -0.5, [torch.zeros_like(t) for t in (queries, keys, values)]
        graphs, heads, size, _ = values.shape
        normalisers = of_rows.masked_fill(whole, torch.inf).view(graphs, size, heads).transpose(1, 2)
        for graph, length in enumerate(prepared.lengths):
            part = [t[graph : graph + 1, :, :length] for t in (gradient, queries, keys, values, result, normalisers)]
            for whole_batch, one in zip(plain, _flash_backward(*part, 0.0, False, scale=scale), strict=True):
                whole_batch[graph, :, :length] = one[0]
        rows = [_tokens_first(t) for t in (queries * scale, keys, values)]
        of_tokens, of_bias = [_tokens_first(t) for t in (plain[0] / scale, *plain[1:])], torch.empty_like(bias)
        state = (of_rows.numpy(), whole.numpy(), weights.numpy())
        outputs = [_tokens_first(t) for t in (result, gradient)]
        given: tuple[Any, ...] = (*map(_flat, rows), *prepared.arrays(bias), *state, *map(_flat, outputs))
        results: tuple[Any, ...] = (*map(_flat, of_tokens), of_bias.numpy())
        correct_gradients(*given, *results)
        of_queries, of_keys, of_values = (_heads_first(t, values.shape) for t in of_tokens)
        return of_queries * scale, of_keys, of_values, of_bias, None


def _tokens_first(values: Tensor) -> Tensor:
    """Return ``values`` [B, heads, L, D] as a new, contiguous tensor [B * L, heads, D'], D padded with zeros to D'."""
    graphs, heads, size, width = values.shape
    rows = values.new_zeros(graphs * size, heads, -(-width // LANES) * LANES)
    rows.view(graphs, size, heads, -1)[..., :width] = values.transpose(1, 2)
    return rows


def _heads_first(values: Tensor, shape: Any) -> Tensor:
    """Return ``values`` [B * L, heads, D'] as a view of the shape [B, heads, L, D]."""
    graphs, heads, size, width = shape
    return values.view(graphs, size, heads, -1).transpose(1, 2)[..., :width]


def _flat(values: Tensor) -> Any:
    return values.detach().view(-1).numpy()
