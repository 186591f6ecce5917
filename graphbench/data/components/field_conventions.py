"""Conventions of forecast fields: how a domain names channels and weighs them, and how it reads times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FieldConvention:
    """The conventions of the fields that forecast tasks predict.

    Attributes:
        name: ``<domain>.<name>``, as the options of a forecast task on a card write it.
        levels: Variable -> its levels, in the order of the channels of a whole state; no level for a variable with one
            channel.
        variable_and_level: ``channel -> (variable, level)``; the level is None for a variable with one channel. Raises
            an ``ArgumentError`` for a name of no channel.
        channel_weights: ``channels -> float64 [channels]``, the weight of every channel's squared error in the loss.
        months: ``hours -> int64``, the months of times from 0 for January to 11.
        clock: ``hours -> float32 [..., features]``, the features of a time that a model reads.
    """

    name: str
    levels: Mapping[str, Sequence[int]]
    variable_and_level: Callable[[str], tuple[str, int | None]]
    channel_weights: Callable[[Sequence[str]], NDArray[np.float64]]
    months: Callable[[Any], NDArray[np.int64]]
    clock: Callable[[Any], NDArray[np.float32]]
