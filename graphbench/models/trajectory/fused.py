"""Differentiable functions of all pairs and triples of nodes that are compiled for the CPU.

Each function has a plain form in torch, which is used where :func:`.is_compiled` says no, and which the compiled form
is tested against.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

MOST_NODES = 2**15 - 1
"""Nodes of the largest graph: the positions of maxima are int16."""


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
    other = total.columns.new_empty(0) if rows is None else rows.contiguous()
    scores: Tensor = _PairScores.apply(*map(_contiguous, total), other, last.contiguous())  # type: ignore[no-untyped-call]
    return scores


def triple_scores(sources: Tensor, targets: Tensor, last: Tensor) -> Tensor:
    """Return ``relu(targets[k] - sources[i, j]) . last`` for all triples of nodes, float32 [B, n, n, n].

    Args:
        sources: float32 [B, n, n, h].
        targets: float32 [B, n, h].
        last: float32 [h].
    """
    tensors = (sources.contiguous(), targets.contiguous(), last.contiguous())
    scores: Tensor = _TripleScores.apply(*tensors)  # type: ignore[no-untyped-call]
    return scores


def triplet_scores(ends: Tensor, firsts: Tensor, seconds: Tensor, last: Tensor) -> Tensor:
    """Return ``relu(ends[i, j] + firsts[i, k] + seconds[j, k]) . last`` for all triples of nodes, float32 [B, n, n, n].

    Args:
        ends: float32 [B, n, n, h], as are ``firsts`` and ``seconds``.
        firsts: See ``ends``.
        seconds: See ``ends``.
        last: float32 [h].
    """
    tensors = (ends.contiguous(), firsts.contiguous(), seconds.contiguous(), last.contiguous())
    scores: Tensor = _TripletScores.apply(*tensors)  # type: ignore[no-untyped-call]
    return scores


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
        arguments: list[Any] = [*map(_flat, read), nodes, width, *map(_flat, (maxima, positions, hidden))]
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
        arguments: list[Any] = [*map(_flat, inputs), nodes, width, *map(_flat, written)]
        receive_gradients(*arguments)
        return (of_columns if ctx.needs_input_grad[0] else None, *gradients, None)


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        from graphbench.models.trajectory import _pointers_cpu

        ctx.save_for_backward(*tensors)
        samples, nodes = tensors[2].shape[:2]
        scores = tensors[2].new_empty(samples, nodes, nodes)
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(scores)]
        _pointers_cpu.pair_scores(*arguments)
        return scores

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from graphbench.models.trajectory._pointers_cpu import pair_score_gradients

        tensors, nodes = ctx.saved_tensors, gradient.shape[1]
        needed = ctx.needs_input_grad[0]
        gradients = [_gradient_of(tensors[0], needed=needed), *(torch.zeros_like(tensor) for tensor in tensors[1:])]
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(gradient.contiguous()), *map(_flat, gradients)]
        pair_score_gradients(*arguments)
        return (gradients[0] if needed else None, *gradients[1:])


class _TripleScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        from graphbench.models.trajectory import _pointers_cpu

        ctx.save_for_backward(*tensors)
        samples, nodes = tensors[1].shape[:2]
        scores = tensors[1].new_empty(samples, nodes, nodes, nodes)
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(scores)]
        _pointers_cpu.triple_scores(*arguments)
        return scores

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        from graphbench.models.trajectory._pointers_cpu import triple_score_gradients

        tensors, nodes = ctx.saved_tensors, gradient.shape[1]
        gradients = tuple(torch.zeros_like(tensor) for tensor in tensors)
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(gradient.contiguous()), *map(_flat, gradients)]
        triple_score_gradients(*arguments)
        return gradients


class _TripletScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        from graphbench.models.trajectory import _pointers_cpu

        ctx.save_for_backward(*tensors)
        samples, nodes = tensors[0].shape[:2]
        scores = tensors[0].new_empty(samples, nodes, nodes, nodes)
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(scores)]
        _pointers_cpu.triplet_scores(*arguments)
        return scores

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        from graphbench.models.trajectory._pointers_cpu import triplet_score_gradients

        tensors, nodes = ctx.saved_tensors, gradient.shape[1]
        gradients = tuple(torch.zeros_like(tensor) for tensor in tensors)
        arguments: list[Any] = [*map(_flat, tensors), nodes, _flat(gradient.contiguous()), *map(_flat, gradients)]
        triplet_score_gradients(*arguments)
        return gradients


def _gradient_of(values: Tensor, *, needed: bool) -> Tensor:
    return torch.zeros_like(values) if needed else values.new_empty(0)


def _contiguous(values: Tensor) -> Tensor:
    return values.contiguous()


def _flat(values: Tensor) -> Any:
    """Return a contiguous tensor as an array of one dimension that shares its memory."""
    return values.detach().view(-1).numpy()
