"""Differentiable products and closures of matrices in the semirings (max, min) and (max, +).

In (max, min), an entry of a product is the widest bottleneck of a step from u to w and a step from w to v; in (max, +)
it is the largest sum. A closure holds the best value over walks of any length. The gradient of an entry goes to the
steps of one best walk. Compiled kernels do the work on CPUs and, where Triton can compile, on CUDA devices; other
devices compute the same values in slices.
"""

from __future__ import annotations

import logging
import math
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.fused import flat
from graphbench.models.operations import report
from graphbench.models.pair_layout import PairLayout

_LOG = logging.getLogger(__name__)

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
    report(2.0 * left.shape[1] * _triples(layout))
    result: Tensor
    if left.device.type == "cpu":
        result = _Product.apply(_by_channel(left), _by_channel(right), layout, minima).t()  # type: ignore[no-untyped-call]
    else:
        result = _DeviceProduct.apply(left.float().contiguous(), right.float().contiguous(), layout, minima)  # type: ignore[no-untyped-call]
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
        report(2.0 * values.shape[1] * _triples(layout) * _doublings(layout))
        result: Tensor = _Closure.apply(_by_channel(values), layout, minima).t()  # type: ignore[no-untyped-call]
        return result
    values = values.float()
    for _ in range(_doublings(layout)):
        product = semiring_product(values, values, layout, minima)
        values = torch.where(product > values, product, values)
    return values


def _doublings(layout: PairLayout) -> int:
    """Return how many squarings hold the walks of all lengths."""
    return math.ceil(math.log2(max(layout.most_nodes - 1, 2)))


def _triples(layout: PairLayout) -> float:
    """Return the number of triples of nodes of a graph, over all graphs."""
    return float(np.sum(np.asarray(layout.counts, np.float64) ** 3))


def _by_channel(values: Tensor) -> Tensor:
    """Return ``values`` [P, C] as float32 [C, P], contiguous: a view of values that lie so already."""
    return values.float().t().contiguous()


def mean_products(left: Tensor, right: Tensor, layout: PairLayout) -> Tensor:
    """Return ``out[u, v] = mean over w of left[u, w] right[w, v]`` for every channel, float [C, P].

    These are the matrix products of the usual semiring (+, x), divided by the number of nodes of a graph.

    Args:
        left: float [C, P], one column per pair of nodes of a graph.
        right: float [C, P].
        layout: The pairs.
    """

    def multiplied(a: Tensor, b: Tensor, nodes: int) -> Tensor:
        shape = (a.shape[0], -1, nodes, nodes)
        product: Tensor = torch.matmul(a.reshape(shape) / nodes, b.reshape(shape)).flatten(1)
        return product

    if layout.same_size is not None:
        return multiplied(left, right, layout.same_size) if layout.same_size else left
    sizes = [int(n) for n in layout.counts if n]
    squares = [n * n for n in sizes]
    parts = zip(torch.split(left, squares, dim=1), torch.split(right, squares, dim=1), sizes, strict=True)
    return torch.cat([multiplied(*part) for part in parts], dim=1)


class _Product(torch.autograd.Function):
    """The compiled product of float32 [C, P]."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, layout: PairLayout, minima: int) -> Tensor:
        from graphbench.models._semiring_cpu import products

        out, middles = torch.empty_like(left), _middles(left, needed=any(ctx.needs_input_grad))
        products(flat(left), flat(right), layout.counts, minima, flat(out), middles.numpy())
        ctx.save_for_backward(left, right, middles)
        ctx.layout, ctx.minima = layout, minima
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        from graphbench.models._semiring_cpu import product_gradients

        left, right, middles = ctx.saved_tensors
        of_left, of_right = torch.zeros_like(left), torch.zeros_like(right)
        inputs = (flat(left), flat(right), ctx.layout.counts, ctx.minima, middles.numpy())
        product_gradients(*inputs, flat(gradient.contiguous()), flat(of_left), flat(of_right))
        return of_left, of_right, None, None


class _DeviceProduct(torch.autograd.Function):
    """The product of float32 [P, C] on a device other than the CPU."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, layout: PairLayout, minima: int) -> Tensor:
        out, middles = _device_product(left, right, layout, minima, any(ctx.needs_input_grad))
        ctx.save_for_backward(left, right, middles)
        ctx.layout, ctx.minima = layout, minima
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        left, right, middles = ctx.saved_tensors
        return *_sliced_gradients(left, right, ctx.layout, ctx.minima, middles, gradient), None, None


class _Closure(torch.autograd.Function):
    """The compiled closure of float32 [C, P]."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, layout: PairLayout, minima: int) -> Tensor:
        from graphbench.models._semiring_cpu import closures

        out, middles = torch.empty_like(values), _middles(values, needed=any(ctx.needs_input_grad))
        closures(flat(values), layout.counts, minima, flat(out), middles.numpy())
        ctx.save_for_backward(out, middles)
        ctx.layout, ctx.minima = layout, minima
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        from graphbench.models._semiring_cpu import closure_gradients

        out, middles = ctx.saved_tensors
        of_values, passed = torch.empty_like(out), flat(gradient.contiguous())
        closure_gradients(flat(out), ctx.layout.counts, ctx.minima, middles.numpy(), passed, flat(of_values))
        return of_values, None, None


def _middles(values: Tensor, *, needed: bool) -> Tensor:
    return torch.empty(values.numel() if needed else 0, dtype=torch.int16)


def _device_product(
    left: Tensor, right: Tensor, layout: PairLayout, minima: int, needed: bool
) -> tuple[Tensor, Tensor]:
    """Return what :func:`_sliced_product` returns, from one kernel where the device has it."""
    if left.is_cuda and not torch.compiler.is_compiling() and _kernel_works(left.device):
        from graphbench.models._semiring_gpu import products

        return products(left, right, layout, minima, needed)
    return _sliced_product(left, right, layout, minima, needed)


@cache
def _kernel_works(device: torch.device) -> bool:
    """Return whether Triton is installed and compiles the kernel for a CUDA device; say so once if it does not."""
    if find_spec("triton") is None:
        return False
    one = torch.zeros(1, 1, device=device)
    try:
        from graphbench.models._semiring_gpu import products

        products(one, one, PairLayout(np.ones(1, np.int64), device), 0, needed=True)
    except Exception as error:  # e.g. no C compiler, or a GPU that Triton does not know
        _LOG.warning("Triton cannot compile the products of pairs (%s); they are computed in slices, slower", error)
        return False
    return True


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
