"""Casts to smaller types: a finite number that the smaller type cannot hold is refused, and never becomes infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def overflowing(values: NDArray[Any], dtype: DTypeLike) -> NDArray[np.bool_]:
    """Return which finite values become infinite in a floating-point type; of the values' shape.

    Args:
        values: Real numbers of any type.
        dtype: The type; of a type that is no floating-point type, no value overflows.
    """
    target, given = np.dtype(dtype), np.asarray(values)
    if target.kind != "f" or given.dtype.kind not in "iuf" or np.can_cast(given.dtype, target, "safe"):
        return np.zeros(given.shape, bool)
    with np.errstate(over="ignore"):
        overflows: NDArray[np.bool_] = np.isfinite(given) & ~np.isfinite(given.astype(target))
    return overflows


def overflow_fault(values: NDArray[Any], dtype: DTypeLike) -> str | None:
    """Describe the first value that overflows a dtype, as "holds 1e+300 in row 3, which overflows float32"."""
    wrong = np.argwhere(overflowing(values, dtype))
    if not len(wrong):
        return None
    place = wrong[0].tolist()
    column = f", column {', '.join(map(str, place[1:]))}" if place[1:] else ""
    row = f" in row {place[0]}{column}" if place else ""
    return f"holds {np.asarray(values)[tuple(place)].item()!r}{row}, which overflows {np.dtype(dtype).name}"
