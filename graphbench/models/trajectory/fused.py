"""Differentiable functions of all pairs and triples of nodes that are compiled for the CPU.

Each function has a plain form in torch, which is used where :func:`.is_compiled` says no, and which the compiled form
is tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from graphbench.models.fused import flat


class PairSum(NamedTuple):
    """A vector for every pair of nodes: ``columns[u, v] @ weights + tails[u] + heads[v]``.

    Attributes:
        columns: float32 [B, n, n, F].
        weights: float32 [F, h].
        tails: float32 [B, n, h].
        heads: float32 [B, n, h].
    """

    columns: Tensor
    weights: Tensor
    tails: Tensor
    heads: Tensor


def received(total: PairSum, inner: nn.Linear, outer: nn.Linear, present: Tensor | None) -> Tensor:
    """Return ``max over u of outer(relu(inner(relu(total[u, v]))))`` for every node v, float32 [B, n, h].

    Args:
        total: The sum that a message is computed from.
        inner: A linear layer from h to h.
        outer: Another one.
        present: bool [B, n, n]: whether u sends to v; None if every node sends to every node. A node that receives
            nothing has the lowest value everywhere.
    """
    tensors = (*map(_contiguous, total), inner.weight, inner.bias, outer.weight, outer.bias)
    maxima: Tensor = _Received.apply(*tensors, present)  # type: ignore[no-untyped-call]
    return maxima


def pair_scores(total: PairSum, last: Tensor, rows: Tensor | None = None) -> Tensor:
    """Return ``relu(total[u, v] + rows[u, v]) . last`` for all pairs of nodes, float32 [B, n, n].

    Args:
        total: The first part of the sum.
        last: float32 [h].
        rows: float32 [B, n, n, h]; None for zeros.
    """
    from graphbench.models.trajectory import _pointers_cpu

    kernels = _ScoreKernels(_pointers_cpu.pair_scores, _pointers_cpu.pair_score_gradients, skips_first=True)
    samples, nodes = total.tails.shape[:2]
    other = total.columns.new_empty(0) if rows is None else rows
    tensors = map(_contiguous, (*total, other, last))
    scores: Tensor = _Scores.apply(kernels, (samples, nodes, nodes), *tensors)  # type: ignore[no-untyped-call]
    return scores


def triple_scores(sources: Tensor, targets: Tensor, last: Tensor) -> Tensor:
    """Return ``relu(targets[k] - sources[i, j]) . last`` for all triples of nodes, float32 [B, n, n, n].

    Args:
        sources: float32 [B, n, n, h].
        targets: float32 [B, n, h].
        last: float32 [h].
    """
    from graphbench.models.trajectory import _pointers_cpu

    kernels = _ScoreKernels(_pointers_cpu.triple_scores, _pointers_cpu.triple_score_gradients)
    return _of_triples(kernels, sources, targets, last)


def triplet_scores(ends: Tensor, firsts: Tensor, seconds: Tensor, last: Tensor) -> Tensor:
    """Return ``relu(ends[i, j] + firsts[i, k] + seconds[j, k]) . last`` for all triples of nodes, float32 [B, n, n, n].

    Args:
        ends: float32 [B, n, n, h], as are ``firsts`` and ``seconds``.
        firsts: See ``ends``.
        seconds: See ``ends``.
        last: float32 [h].
    """
    from graphbench.models.trajectory import _pointers_cpu

    kernels = _ScoreKernels(_pointers_cpu.triplet_scores, _pointers_cpu.triplet_score_gradients)
    return _of_triples(kernels, ends, firsts, seconds, last)


class _Received(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        from graphbench.models.trajectory._messages_cpu import receive

        *tensors, present = inputs
        columns, weights, tails, heads, inner, inner_bias, outer, outer_bias = tensors
        samples, nodes, width = tails.shape
        kept = any(tensor.requires_grad for tensor in tensors)
        mask = tails.new_empty(0, dtype=torch.bool) if present is None else present.contiguous()
        messages = samples * nodes * nodes if present is None or not kept else int(mask.count_nonzero())
        maxima = torch.empty_like(tails)
        positions = torch.empty(maxima.numel() if kept else 0, dtype=torch.int16)
        hidden = tails.new_empty(messages * width if kept else 0)
        transposed = (inner.t().contiguous(), inner_bias, outer.t().contiguous(), outer_bias)
        read = (columns, weights, tails, heads, *transposed, mask)
        arguments: list[Any] = [*map(flat, read), nodes, width, *map(flat, (maxima, positions, hidden))]
        receive(*arguments)
        ctx.save_for_backward(columns, weights, tails, heads, inner, outer, mask, positions, hidden)
        return maxima

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from graphbench.models.trajectory._messages_cpu import receive_gradients

        columns, weights, tails, heads, inner, outer, mask, positions, hidden = ctx.saved_tensors
        nodes, width = tails.shape[1:]
        of_columns = _gradient_of(columns, needed=ctx.needs_input_grad[0])
        gradients = [torch.zeros_like(tensor) for tensor in (weights, tails, heads, inner, inner[0], outer, outer[0])]
        inputs = (columns, weights, tails, heads, inner.contiguous(), outer.contiguous(), mask)
        written = (positions, hidden, gradient.contiguous(), of_columns, *gradients)
        arguments: list[Any] = [*map(flat, inputs), nodes, width, *map(flat, written)]
        receive_gradients(*arguments)
        return (of_columns if ctx.needs_input_grad[0] else None, *gradients, None)


class _ScoreKernels(NamedTuple):
    """The kernels of the scores of pairs or triples of nodes.

    Attributes:
        scores: Writes the scores.
        gradients: Adds the gradients of all tensors.
        skips_first: Whether ``gradients`` leaves out the first tensor if the array of its gradient is empty.
    """

    scores: Callable[..., None]
    gradients: Callable[..., None]
    skips_first: bool = False


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: _ScoreKernels, shape: tuple[int, ...], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        ctx.kernels = kernels
        scores = tensors[0].new_empty(shape)
        kernels.scores(*map(flat, tensors), shape[1], flat(scores))
        return scores

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors, needed = ctx.saved_tensors, ctx.needs_input_grad[2] or not ctx.kernels.skips_first
        gradients = [_gradient_of(tensors[0], needed=needed), *(torch.zeros_like(tensor) for tensor in tensors[1:])]
        written = (*map(flat, tensors), gradient.shape[1], flat(gradient.contiguous()), *map(flat, gradients))
        ctx.kernels.gradients(*written)
        return (None, None, gradients[0] if needed else None, *gradients[1:])


def _of_triples(kernels: _ScoreKernels, pairs: Tensor, *others: Tensor) -> Tensor:
    """Return the scores of all triples of nodes, float32 [B, n, n, n]; ``pairs`` is float32 [B, n, n, h]."""
    samples, nodes = pairs.shape[:2]
    tensors = map(_contiguous, (pairs, *others))
    scores: Tensor = _Scores.apply(kernels, (samples, nodes, nodes, nodes), *tensors)  # type: ignore[no-untyped-call]
    return scores


def _gradient_of(values: Tensor, *, needed: bool) -> Tensor:
    return torch.zeros_like(values) if needed else values.new_empty(0)


def _contiguous(values: Tensor) -> Tensor:
    return values.contiguous()
