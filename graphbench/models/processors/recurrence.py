"""Steps that are repeated as often as each graph asks for, and states that share the loss (deep supervision)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from graphbench.core.errors import ConfigError
from graphbench.models.config import ModelConfig


def require_one_layer(config: ModelConfig, *settings: str) -> None:
    """Raise an error for several layers of a processor that repeats one step.

    Args:
        config: The model's configuration.
        settings: Keys of ``model.options`` on which the number of steps depends.

    Raises:
        ConfigError: If ``config.layers`` is not 1; the message names the processor and the settings.
    """
    if config.layers != 1:
        keys = ", ".join(f"model.options.{name}" for name in settings)
        raise ConfigError(
            f"model.layers is {config.layers}, but {config.processor!r} repeats one step as often as a graph's size "
            f"asks for ({keys}); set model.layers to 1"
        )


def share_of_steps(least: float, *, training: bool) -> float:
    """Return the share of its steps that a batch takes: in training drawn uniformly from ``least`` to 1, else 1."""
    return least + (1.0 - least) * float(torch.rand(())) if training else 1.0


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
