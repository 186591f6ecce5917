"""A hash of whole numbers in tensor operations, the same on every device."""

from __future__ import annotations

from torch import Tensor


def hashed(values: Tensor) -> Tensor:
    """Return a hash of every number, int64, shaped as ``values`` int64."""
    values = (values + 1) * 0x1E3779B97F4A7C15
    values = (values ^ (values >> 29)) * 0x1B873593CC9E2D51
    return values ^ (values >> 32)
