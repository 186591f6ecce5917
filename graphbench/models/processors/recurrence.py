"""Steps that are repeated as often as each graph asks for, and states that share the loss (deep supervision)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor


def repeated_states(
    step: Callable[[Tensor], Tensor], first: Tensor, steps: int, stops: Tensor | None, *, keep: bool
) -> list[Tensor]:
    """Return the states after repeated steps.

    Args:
        step: Returns the states after one more step.
        first: [rows, h], the first states.
        steps: Number of steps.
        stops: int64 [rows, 1], the number of steps of every row; a row keeps its state after them. None if every row
            takes ``steps`` steps.
        keep: Whether the earlier states are returned, too: the first states, and the states after every step. Else the
            last states alone are returned.
    """
    states = [first]
    for number in range(steps):
        after = step(states[-1])
        after = after if stops is None else torch.where(number < stops, after, states[-1])
        states = [*states, after] if keep else [after]
    return states


def supervised_states(states: Sequence[Tensor], earlier: int) -> list[Tensor]:
    """Return the last of the states and earlier ones, evenly spaced, the latest first.

    Args:
        states: The first state, and the state after every step.
        earlier: Number of earlier states; fewer are returned if there are fewer.
    """
    count = min(earlier, len(states) - 1)
    places = np.linspace(len(states) - 1, 0, count + 1, endpoint=False).round().astype(int)
    return [states[place] for place in places]
