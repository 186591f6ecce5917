"""Attention with a bias on few pairs of tokens, for the CPU: no square of tokens is ever held in memory.

:mod:`graphbench.models._attention_cpu` has the kernels. Every head of every graph is computed by one thread, in one
order, so results are the same in every run and with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.arcs import occurrences
from graphbench.models.fused import LANES, flat


@dataclass(frozen=True)
class BiasedPairs:
    """The pairs of tokens that have a bias, each once, ordered by graph, group of ``LANES`` queries, key, and query.

    Attributes:
        starts: int64 [B * ceil(L / LANES) + 1], the first pair of every group; L is the padded number of tokens.
        pairs: int64 [2, P], the positions of query and key within their graph.
        values: float [P, heads].
        lengths: int64 [B], tokens per graph.
    """

    starts: Tensor
    pairs: Tensor
    values: Tensor
    lengths: Tensor


def ordered_pairs(flat: Tensor, size: int, graphs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return pairs in the order of :class:`BiasedPairs`, each once.

    Args:
        flat: int64 [Q], ``(graph * size + query) * size + key`` of pairs, in any order and possibly repeated.
        size: Padded number of tokens L of a graph.
        graphs: Number of graphs B.

    Returns:
        ``starts`` and ``pairs`` of :class:`BiasedPairs`, and int64 [Q], the place of every given pair among the pairs.
    """
    token, key = flat // size, flat % size
    graph, query, groups = token // size, token % size, -(-size // LANES)
    numbers = ((graph * groups + query // LANES) * size + key) * LANES + query % LANES
    ordered, place = torch.unique(numbers, return_inverse=True)
    rest = ordered // LANES
    group = rest // size
    pairs = torch.stack([group % groups * LANES + ordered % LANES, rest % size])
    return F.pad(occurrences(group, graphs * groups).cumsum(0), (1, 0)), pairs, place


def pairs_attention(pairs: BiasedPairs) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return attention with the given biases: a function of queries, keys and values, float32 [B, heads, L, d / heads].

    The result is 0 on padding.

    Args:
        pairs: The biases, on the CPU.
    """
    bias = pairs.values.float()

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        tensors = (t.float().contiguous() for t in (queries, keys, values, bias))
        result: Tensor = _PairsAttention.apply(*tensors, pairs)  # type: ignore[no-untyped-call]
        return result.to(values.dtype)

    return attend


class _PairsAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, pairs: BiasedPairs) -> Tensor:
        from graphbench.models._attention_cpu import attend

        result, normalisers = torch.zeros_like(values), values.new_zeros(values.shape[:3])
        given: tuple[Any, ...] = (*_arrays(queries, keys, values, bias, pairs), values.shape[3])

        def some(heads: tuple[int, int]) -> None:
            arguments: tuple[Any, ...] = (*given, heads, flat(normalisers), flat(result))
            attend(*arguments)

        _for_all_heads(some, values.shape[0] * values.shape[1])
        ctx.save_for_backward(queries, keys, values, bias, result, normalisers)
        ctx.pairs = pairs
        return result

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        from graphbench.models._attention_cpu import attend_backward

        queries, keys, values, bias, result, normalisers = ctx.saved_tensors
        given: tuple[Any, ...] = (*_arrays(queries, keys, values, bias, ctx.pairs), values.shape[3])
        of_tokens, of_bias = [torch.zeros_like(t) for t in (queries, keys, values)], torch.zeros_like(bias)
        tokens = (normalisers, result, gradient.contiguous(), *of_tokens)
        outputs: tuple[Any, ...] = (*map(flat, tokens), of_bias.numpy())

        def some(heads: tuple[int, int]) -> None:
            arguments: tuple[Any, ...] = (*given, heads, *outputs)
            attend_backward(*arguments)

        _for_all_heads(some, values.shape[0] * values.shape[1])
        return of_tokens[0], of_tokens[1], of_tokens[2], of_bias, None


def _for_all_heads(work: Callable[[tuple[int, int]], None], heads: int) -> None:
    """Call ``work`` with ranges (first, last + 1) of the heads of all graphs, one range per thread of torch."""
    threads = max(1, min(torch.get_num_threads(), heads))
    bounds = [heads * i // threads for i in range(threads + 1)]
    ranges = list(pairwise(bounds))
    if threads == 1:
        work(ranges[0])
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ranges))


def _arrays(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, pairs: BiasedPairs) -> tuple[Any, ...]:
    """Return the first arguments of the kernels."""
    facts = (pairs.starts, pairs.pairs, pairs.lengths)
    return (*map(flat, (queries, keys, values)), bias.detach().numpy(), *(t.contiguous().numpy() for t in facts))
