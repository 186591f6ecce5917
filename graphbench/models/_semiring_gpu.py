"""The kernel of products of matrices in the semirings (max, min) and (max, +) on GPUs, in the language Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphbench.models.pair_layout import PairLayout

_ROWS = 32  # pairs of one program
_MOST_CHANNELS = 32  # channels of one program


def products(left: Tensor, right: Tensor, layout: PairLayout, minima: int, needed: bool) -> tuple[Tensor, Tensor]:
    """Return the product float32 [P, C] of float32 [P, C], and the first position of every maximum, int64 [P, C].

    Args:
        left: The first factor, contiguous.
        right: The second factor, contiguous.
        layout: The pairs.
        minima: The first ``minima`` channels take the minimum; the others take the sum.
        needed: Whether the positions are needed; they are empty otherwise.
    """
    pairs, width = left.shape
    out = torch.empty_like(left)
    middles = torch.empty_like(left, dtype=torch.int64) if needed else left.new_empty(0, dtype=torch.int64)
    if not out.numel():
        return out, middles
    channels = min(triton.next_power_of_2(width), _MOST_CHANNELS)
    grid = (triton.cdiv(pairs, _ROWS), triton.cdiv(width, channels))
    positions = (layout.first_of_row, layout.first_of_graph, layout.sizes, layout.columns)
    _product[grid](left, right, out, middles, *positions, pairs, width, minima, needed, _ROWS, channels)
    return out, middles


@triton.jit  # type: ignore[untyped-decorator]
def _product(  # type: ignore[no-untyped-def]
    left,
    right,
    out,
    middles,
    first_of_row,
    first_of_graph,
    sizes,
    columns,
    pairs,
    width,
    minima,
    NEEDED: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = row < pairs
    inside = known[:, None] & (channel < width)[None, :]
    size = tl.load(sizes + row, mask=known, other=0)
    first = tl.load(first_of_row + row, mask=known, other=0)
    second = tl.load(first_of_graph + row, mask=known, other=0) + tl.load(columns + row, mask=known, other=0)
    takes_minimum = (channel < minima)[None, :]
    best = tl.full((ROWS, CHANNELS), float("-inf"), tl.float32)
    place = tl.zeros((ROWS, CHANNELS), tl.int32)
    for w in range(0, tl.max(size, 0).to(tl.int32)):
        there = inside & (w < size)[:, None]
        a = tl.load(left + ((first + w) * width)[:, None] + channel[None, :], mask=there, other=float("-inf"))
        b = tl.load(right + ((second + w * size) * width)[:, None] + channel[None, :], mask=there, other=float("-inf"))
        value = tl.where(takes_minimum, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), a + b)
        better = value > best
        best = tl.where(better, value, best)
        place = tl.where(better, w, place)
    at = (row * width)[:, None] + channel[None, :]
    tl.store(out + at, best, mask=inside)
    if NEEDED:
        tl.store(middles + at, place.to(tl.int64), mask=inside)
