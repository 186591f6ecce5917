"""Sums over the arcs of a graph, computed from a sorted list of arcs instead of one copied row per arc."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_NARROW = 8  # copying rows of fewer numbers than this is faster than sorting the arcs
_MAX_COPIED = 1 << 28  # numbers that may be copied to the arcs on an accelerator


class Bags(NamedTuple):
    """Rows in bags: bag ``i`` holds ``rows[offsets[i]:offsets[i + 1]]``; int64 ``[A]`` and ``[bags + 1]``."""

    rows: Tensor
    offsets: Tensor


@dataclass(frozen=True)
class Arcs:
    """Arcs between two numbered sets, which may be the same, sorted by their targets or sources when first needed.

    Attributes:
        ends: int64 [2, A], the source and the target of every arc.
        sources: Number of nodes that an arc may start at.
        targets: Number of nodes that an arc may point at.
        symmetric: Whether the sets are the same and every arc has its reverse, so that one order serves both.
    """

    ends: Tensor
    sources: int
    targets: int
    symmetric: bool = False

    @cached_property
    def arriving(self) -> Bags:
        """The sources of the arcs into every target."""
        return _sorted(self.ends[1], self.ends[0], self.targets)

    @cached_property
    def leaving(self) -> Bags:
        """The targets of the arcs from every source."""
        return self.arriving if self.symmetric else _sorted(self.ends[0], self.ends[1], self.sources)

    @cached_property
    def incoming(self) -> Bags:
        """The numbers of the arcs into every target, in ascending order."""
        return _sorted(self.ends[1], torch.arange(self.ends.shape[1], device=self.ends.device), self.targets)

    @cached_property
    def reversed(self) -> Arcs:
        """The same arcs from targets to sources; both directions share the sorted lists."""
        other = Arcs(self.ends.flip(0), self.targets, self.sources, self.symmetric)
        other.__dict__["leaving"], other.__dict__["arriving"] = self.arriving, self.leaving
        return other


def arc_sums(values: Tensor, arcs: Arcs) -> Tensor:
    """Return the sum over arcs (u, v) of ``values[u]`` for every target v, [targets, ...].

    Arcs are sorted once, and the values are never copied to the arcs. Every sum is taken in the order of the arcs, so
    that it is the same with any number of threads.

    Args:
        values: float [sources, ...], one row per node that an arc may start at.
        arcs: The arcs.
    """
    shape = (arcs.targets, *values.shape[1:])
    width = values.shape[1:].numel()
    copied = width < _NARROW or (values.device.type != "cpu" and arcs.ends.shape[1] * width <= _MAX_COPIED)
    if copied or torch.compiler.is_compiling():
        source, target = arcs.ends
        return values.new_zeros(shape).index_add(0, target, values.index_select(0, source))
    sums: Tensor = _BagSums.apply(values.reshape(values.shape[0], width), arcs)  # type: ignore[no-untyped-call]
    return sums.view(shape)


class _BagSums(torch.autograd.Function):
    """Sums of rows of values; the gradient is the same sum along the reversed arcs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, arcs: Arcs) -> Tensor:
        ctx.arcs = arcs
        return _bag_sums(values, arcs.arriving)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _bag_sums(gradient.contiguous(), ctx.arcs.leaving), None


def occurrences(numbers: Tensor, count: int) -> Tensor:
    """Return how often each of 0, ..., ``count - 1`` occurs in ``numbers`` int64 [items], int64 [count].

    ``torch.bincount`` reads its largest input on the host, so other devices and compiled graphs add up ones.
    """
    if numbers.device.type == "cpu" and not torch.compiler.is_compiling():
        return torch.bincount(numbers, minlength=count)
    return numbers.new_zeros(count).index_add(0, numbers, torch.ones_like(numbers))


def _bag_sums(values: Tensor, bags: Bags) -> Tensor:
    return F.embedding_bag(bags.rows, values, bags.offsets, mode="sum", include_last_offset=True)


def _sorted(keys: Tensor, rows: Tensor, count: int) -> Bags:
    """Return the rows sorted by their keys, which lie in ``[0, count)``, and the offset of each key."""
    order = torch.sort(keys, stable=True).indices
    lengths = occurrences(keys, count)
    return Bags(rows.index_select(0, order), torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]))
