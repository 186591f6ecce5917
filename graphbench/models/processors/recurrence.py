"""Steps that are repeated as often as each graph asks for, and states that share the loss (deep supervision)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from graphbench.core.errors import ConfigError
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout


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
    return least + (1.0 - least) * float(torch.rand(())) if training and least < 1.0 else 1.0


def repeats(steps: float, per_doubling: float, share: float, layout: Layout) -> tuple[int, Tensor | None]:
    """Return how often a step is repeated in a batch, and in each of its graphs.

    A graph of n nodes takes ``ceil(share * (steps + per_doubling * log2(n)))`` steps.

    Args:
        steps: Steps of a graph of one node.
        per_doubling: Further steps for every doubling of the nodes.
        share: See :func:`share_of_steps`.
        layout: The graphs of the batch.

    Returns:
        The most steps of a graph, and int64 [B], the steps of every graph; None if all graphs take equally many.
    """
    smallest, largest = layout.extent.fewest_nodes, layout.extent.most_nodes
    nodes = np.arange(smallest, largest + 1)
    counts = np.ceil(share * (steps + per_doubling * np.log2(np.maximum(nodes, 1)))).astype(np.int64)
    if counts[0] == counts[-1]:
        return int(counts[-1]), None
    return int(counts[-1]), torch.from_numpy(counts).to(layout.sizes.device)[layout.sizes - smallest]


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
