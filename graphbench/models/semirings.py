"""Differentiable products and closures of matrices in the semirings (max, min) and (max, +).

In (max, min), an entry of a product is the widest bottleneck of a step from u to w and a step from w to v; in (max, +)
it is the largest sum. A closure holds the best value over walks of any length. The gradient of an entry goes to the
steps of one best walk. Compiled kernels do the work on CPUs; other devices compute the same values in slices.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.pair_layout import PairLayout

MOST_NODES = 2**15 - 1
"""Nodes of the largest graph: positions of maxima are int16."""


def semiring_product(left: Tensor, right: Tensor, layout: PairLayout, minima: int) -> Tensor:
    """Return ``out[u, v] = max over w of op(left[u, w], right[w, v])`` for every channel, float32 [P, C].

    Args:
        left: float [P, C], one row per pair of nodes of a graph.
        right: float [P, C].
        layout: The pairs.
        minima: The first ``minima`` channels take the minimum as ``op``; the others take the sum.
    """
    result: Tensor = _Product.apply(left.float().contiguous(), right.float().contiguous(), layout, minima)  # type: ignore[no-untyped-call]
    return result


def semiring_closure(values: Tensor, layout: PairLayout, minima: int) -> Tensor:
    """Return the best value over all walks from u to v of the product of the walk's steps, float32 [P, C].

    Args:
        values: float [P, C], one row per pair of nodes of a graph. Channels whose walks add their steps hold no value
            above 0; with positive cycles no walk would be the best.
        layout: The pairs.
        minima: The walks of the first ``minima`` channels take the minimum of their steps; the others add them.
    """
    if values.device.type == "cpu":
        result: Tensor = _Closure.apply(values.float().contiguous(), layout, minima)  # type: ignore[no-untyped-call]
        return result
    values = values.float()
    for _ in range(math.ceil(math.log2(max(layout.most_nodes - 1, 2)))):
        values = torch.maximum(values, semiring_product(values, values, layout, minima))
    return values


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, layout: PairLayout, minima: int) -> Tensor:
        needed = left.requires_grad or right.requires_grad
        compiled = left.device.type == "cpu"
        out, middles = (_compiled_product if compiled else _sliced_product)(left, right, layout, minima, needed)
        ctx.save_for_backward(left, right, middles)
        ctx.layout, ctx.minima = layout, minima
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        left, right, middles = ctx.saved_tensors
        gradients = _compiled_gradients if left.device.type == "cpu" else _sliced_gradients
        return *gradients(left, right, ctx.layout, ctx.minima, middles, gradient), None, None


class _Closure(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, layout: PairLayout, minima: int) -> Tensor:
        from graphbench.models._semiring_cpu import closures

        out = torch.empty_like(values)
        middles = _middles(values, needed=values.requires_grad)
        closures(values.detach().numpy(), layout.counts, minima, out.numpy(), middles.numpy())
        ctx.save_for_backward(out, middles)
        ctx.layout, ctx.minima = layout, minima
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        from graphbench.models._semiring_cpu import closure_gradients

        out, middles = ctx.saved_tensors
        of_values, passed = torch.empty_like(out), gradient.contiguous().numpy()
        closure_gradients(out.numpy(), ctx.layout.counts, ctx.minima, middles.numpy(), passed, of_values.numpy())
        return of_values, None, None


def _middles(values: Tensor, *, needed: bool) -> Tensor:
    return torch.empty(values.numel() if needed else 0, dtype=torch.int16)


def _compiled_product(
    left: Tensor, right: Tensor, layout: PairLayout, minima: int, needed: bool
) -> tuple[Tensor, Tensor]:
    """Return the product, and the positions of its maxima as the kernel writes them."""
    from graphbench.models._semiring_cpu import products

    out, middles = torch.empty_like(left), _middles(left, needed=needed)
    inputs = (left.detach().numpy(), right.detach().numpy(), layout.counts, minima)
    products(*inputs, out.numpy(), middles.numpy())
    return out, middles


def _compiled_gradients(
    left: Tensor, right: Tensor, layout: PairLayout, minima: int, middles: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of both factors from the gradient of a product of :func:`_compiled_product`."""
    from graphbench.models._semiring_cpu import product_gradients

    of_left, of_right = torch.zeros_like(left), torch.zeros_like(right)
    inputs = (left.numpy(), right.numpy(), layout.counts, minima, middles.numpy(), gradient.contiguous().numpy())
    product_gradients(*inputs, of_left.numpy(), of_right.numpy())
    return of_left, of_right


def _sliced_product(
    left: Tensor, right: Tensor, layout: PairLayout, minima: int, needed: bool
) -> tuple[Tensor, Tensor]:
    """Return the product, and the first position of every maximum, int64 [P, C]; the memory is that of one slice."""
    minimum = torch.arange(left.shape[1], device=left.device) < minima
    out = torch.full_like(left, -torch.inf)
    middles = torch.zeros_like(left, dtype=torch.int64)
    for w in range(layout.most_nodes):
        first, second, there = layout.through(w)
        a, b = left.index_select(0, first), right.index_select(0, second)
        value = torch.where(minimum, torch.minimum(a, b), a + b)
        better = there.unsqueeze(1) & (value > out)
        out = torch.where(better, value, out)
        if needed:
            middles.masked_fill_(better, w)
    return out, middles


def _sliced_gradients(
    left: Tensor, right: Tensor, layout: PairLayout, minima: int, middles: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of both factors from the gradient of a product of :func:`_sliced_product`."""
    first, second = _factors(layout, middles)
    a, b = left.gather(0, first), right.gather(0, second)
    share = torch.where(a < b, 1.0, torch.where(b < a, 0.0, 0.5))  # of a minimum, which passes to the smaller factor
    minimum = torch.arange(left.shape[1], device=left.device) < minima
    of_left = torch.zeros_like(left).scatter_add_(0, first, torch.where(minimum, share, 1.0) * gradient)
    of_right = torch.zeros_like(right).scatter_add_(0, second, torch.where(minimum, 1.0 - share, 1.0) * gradient)
    return of_left, of_right


def _factors(layout: PairLayout, middles: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the two factors of every entry, int64 [P, C]."""
    first = layout.first_of_row.unsqueeze(1) + middles
    second = layout.first_of_graph.unsqueeze(1) + middles * layout.sizes.unsqueeze(1) + layout.columns.unsqueeze(1)
    return first, second
