"""States of repeated steps that share the loss in training (deep supervision)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor


def supervised_states(states: Sequence[Tensor], earlier: int) -> list[Tensor]:
    """Return the last of the states and earlier ones, evenly spaced, the latest first.

    Args:
        states: The first state, and the state after every step.
        earlier: Number of earlier states; fewer are returned if there are fewer.
    """
    count = min(earlier, len(states) - 1)
    places = np.linspace(len(states) - 1, 0, count + 1, endpoint=False).round().astype(int)
    return [states[place] for place in places]
