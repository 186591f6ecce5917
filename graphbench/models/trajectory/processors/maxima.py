"""Maxima over senders; the gradient flows to the largest term alone.

PyTorch's ``max`` along an inner axis is slow on CPUs (it is not vectorised), and the gradient of its ``amax`` needs the
terms again. Here ``amax`` computes the maximum, and only one small array of positions is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphbench.models.fused import is_compiled
from graphbench.models.operations import report
from graphbench.models.pair_layout import PairLayout
from graphbench.models.semirings import MOST_NODES, semiring_product
from graphbench.models.trajectory.layers import cells_at_once


def max_over_senders(messages: Tensor) -> Tensor:
    """Return the maximum of ``messages [B, senders, n, h]`` over the senders, ``[B, n, h]``."""
    if not _needs_gradient(messages):
        return messages.amax(1)
    maxima: Tensor = _MaxOverSenders.apply(messages)  # type: ignore[no-untyped-call]
    return maxima


def max_plus(left: Tensor, right: Tensor) -> Tensor:
    """Return ``max over i of left[b, i, j] + right[b, i, k]`` for all pairs (j, k), ``[B, n, n, f]``.

    This is a matrix product in the (max, +) semiring. The n^3 terms are never kept.

    Args:
        left: ``[B, n, n, f]``.
        right: ``[B, n, n, f]``.
    """
    report(2.0 * left.numel() * left.shape[1])
    if is_compiled(0, left, right) and left.shape[1] <= MOST_NODES:
        return _compiled_max_plus(left, right)
    if not _needs_gradient(left, right):
        parts = (terms.amax(1) for _, terms in _terms(left, right))
        return functools.reduce(torch.maximum, parts)
    maxima: Tensor = _MaxPlus.apply(left, right)  # type: ignore[no-untyped-call]
    return maxima


def _compiled_max_plus(left: Tensor, right: Tensor) -> Tensor:
    samples, nodes, _, width = left.shape
    layout = PairLayout(np.full(samples, nodes), left.device)
    factors = (left.transpose(1, 2).reshape(-1, width), right.reshape(-1, width))
    return semiring_product(*factors, layout, minima=0).view(samples, nodes, nodes, width)


class _MaxOverSenders(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor) -> Tensor:
        largest, positions = _largest(messages, 0)
        ctx.save_for_backward(positions)
        ctx.senders = messages.shape[1]
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (positions,), (gradient,) = ctx.saved_tensors, gradients
        shape = (len(gradient), ctx.senders, *gradient.shape[1:])
        return gradient.new_zeros(shape).scatter_(1, positions.long().unsqueeze(1), gradient.unsqueeze(1))


class _MaxPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        parts = (_largest(terms, first) for first, terms in _terms(left, right))
        largest, positions = next(parts)
        for other, other_positions in parts:
            positions = torch.where(other > largest, other_positions, positions)
            largest = torch.maximum(largest, other)
        ctx.save_for_backward(positions)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (positions,), (gradient,) = ctx.saved_tensors, gradients
        positions = positions.long()
        left = torch.zeros_like(gradient).scatter_add_(1, positions.transpose(1, 2), gradient.transpose(1, 2))
        return left, torch.zeros_like(gradient).scatter_add_(1, positions, gradient)


def _terms(left: Tensor, right: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield the terms of ``max_plus`` in chunks: the first i, and the terms ``[B, chunk of i, n, n, f]``."""
    samples, nodes, _, width = left.shape
    chunk = max(1, cells_at_once(left.device) // (samples * nodes * nodes * width))
    for i in range(0, nodes, chunk):
        block = slice(i, i + chunk)
        yield i, left[:, block].unsqueeze(3) + right[:, block].unsqueeze(2)


def _needs_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _largest(terms: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """Return the maximum of ``terms`` over axis 1, and its int16 position, counted from ``first``."""
    largest = terms.amax(1)
    offsets = torch.arange(terms.shape[1], dtype=torch.int16, device=terms.device).view(-1, *[1] * (terms.dim() - 2))
    positions = (terms >= largest.unsqueeze(1)).to(torch.int16).mul_(offsets).amax(1)
    return largest, positions + first
