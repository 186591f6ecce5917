"""What all processors of trajectory models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import PairVectors

NEVER = -1e6
"""What stands for a message that does not exist, below all that do."""


@dataclass
class Step:
    """What a processor reads.

    Attributes:
        nodes: ``[B, n, 2h]``: the encoded nodes beside what the processor returned before.
        pairs: The encoded pairs.
        graph: ``[B, h]``: the encoded graph.
        neighbours: bool ``[B, n, n]``: which nodes send messages to which; the diagonal is set.
        before: ``[B, n, h]``: what the processor returned before.
    """

    nodes: Tensor
    pairs: PairVectors
    graph: Tensor
    neighbours: Tensor
    before: Tensor


class Processor(nn.Module):
    """One step on the vectors of all nodes, the same at every step of a trajectory.

    Subclasses implement ``update``. Layer normalisation follows.

    Attributes:
        makes_messages: Whether a step returns vectors of pairs as well.
    """

    makes_messages: ClassVar[bool] = False

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__()
        self.config = config
        self.norm = nn.LayerNorm(config.hidden) if config.use_layer_norm else nn.Identity()

    def forward(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes ``[B, n, h]``, and the messages ``[B, n, n, h]`` where there are any."""
        nodes, messages = self.update(step)
        return self.norm(nodes), messages

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes before normalisation, and the messages or None."""
        raise NotImplementedError


class Gate(nn.Module):
    """How much of a new state replaces the old one (Ibarz et al., 2022); at first little does.

    Args:
        hidden: Width h.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.of_nodes, self.of_messages = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, hidden)
        nn.init.constant_(self.last.bias, -3.0)

    def forward(self, step: Step, messages: Tensor, new: Tensor) -> Tensor:
        """Return the mixture of ``new`` and the state before."""
        gate = torch.sigmoid(self.last(torch.relu(self.of_nodes(step.nodes) + self.of_messages(messages))))
        return gate * new + (1 - gate) * step.before
