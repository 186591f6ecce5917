"""The climatology of training states: the mean of every channel at every point, by month."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Months = Callable[[Any], NDArray[np.int64]]
_MONTHS = 12
_SLOTS = 4  # of six hours in a day


@dataclass(frozen=True)
class Climatology:
    """Mean states by month, and by time of the day where that matters.

    Attributes:
        means: float32 ``[months, slots, points, channels]``; months without any state have the mean of all.
        months: ``hours -> int64``, the months of times, from 0 on.
    """

    means: NDArray[np.float32]
    months: Months

    def at(self, hours: NDArray[Any]) -> NDArray[np.float32]:
        """Return the climatology of times; float32 ``[times, points, channels]``.

        Args:
            hours: ``[times]``, the times in hours, as the dataset has them.
        """
        return self.means[self.months(hours), _slots(hours, self.means.shape[1])]


def climatology_of(parts: Iterable[tuple[NDArray[Any], NDArray[Any]]], diurnal: bool, months: Months) -> Climatology:
    """Return the climatology of states.

    Args:
        parts: Times in hours, ``[times]``, and states, ``[times, points, channels]``, part by part.
        diurnal: Whether 00, 06, 12 and 18 UTC have separate means.
        months: ``hours -> int64``, the months of times, from 0 on.
    """
    slots = _SLOTS if diurnal else 1
    sums: NDArray[np.float64] | None = None
    counts = np.zeros((_MONTHS, slots), np.int64)
    for hours, states in parts:
        if sums is None:
            sums = np.zeros((_MONTHS, slots, *states.shape[1:]))
        for month, slot in {*zip(months(hours).tolist(), _slots(hours, slots).tolist(), strict=True)}:
            in_slot = (months(hours) == month) & (_slots(hours, slots) == slot)
            sums[month, slot] += states[in_slot].sum(axis=0, dtype=np.float64)
            counts[month, slot] += in_slot.sum()
    assert sums is not None
    overall = sums.sum(axis=(0, 1)) / counts.sum()
    means = np.where((counts > 0)[..., None, None], sums / np.maximum(counts, 1)[..., None, None], overall)
    return Climatology(means.astype(np.float32), months)


def _slots(hours: NDArray[Any], slots: int) -> NDArray[np.int64]:
    of_day = np.asarray(hours).astype(np.int64) % 24
    return of_day * slots // 24
