"""The base class of processors of dense pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import PairVectors
from graphbench.models.trajectory.layers import linear

MASKED = -1e6
"""The value of masked messages, below all others."""

_INITIAL_GATE_BIAS = -3.0


@dataclass
class Step:
    """The vectors that a processor reads in one step.

    Attributes:
        nodes: ``[B, n, 2h]``: the encoded nodes and the processor's output of the previous step, concatenated.
        pairs: The encoded pairs.
        graph: ``[B, h]``: the encoded graph.
        neighbours: bool ``[B, n, n]``: whether one node sends messages to another; the diagonal is set.
    """

    nodes: Tensor
    pairs: PairVectors
    graph: Tensor
    neighbours: Tensor


class DenseProcessor(nn.Module):
    """Base class of processors of dense pairs: one step on the vectors of all nodes, the same at every step.

    Subclasses implement ``forward``, which applies ``norm`` to the new nodes.

    Attributes:
        makes_messages: Whether ``messages`` returns vectors of pairs.
        norm: A layer normalisation, or the identity.
    """

    makes_messages: ClassVar[bool] = False

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__()
        self.config = config
        self.norm: nn.Module = nn.LayerNorm(config.hidden) if config.use_layer_norm else nn.Identity()

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after the step, ``[B, n, h]``."""
        raise NotImplementedError

    def messages(self, nodes: Tensor, pairs: PairVectors, graph: Tensor) -> Tensor:
        """Return vectors of pairs for the decoders ``[B, n, n, h]``; the arguments are the fields of a ``Step``."""
        raise NotImplementedError(f"{type(self).__name__} makes no vectors of pairs")


class Gate(nn.Module):
    """The share of a new state that replaces the old one (Ibarz et al., 2022), small at initialisation.

    Args:
        hidden: Width h.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.of_nodes, self.of_messages = linear(2 * hidden, hidden), linear(hidden, hidden)
        self.last = linear(hidden, hidden)
        nn.init.constant_(self.last.bias, _INITIAL_GATE_BIAS)

    def forward(self, nodes: Tensor, received: Tensor, new: Tensor) -> Tensor:
        """Return the mixture of ``new`` and the previous state, which is the second half of ``nodes``."""
        gate = torch.sigmoid(self.last(torch.relu(self.of_nodes(nodes) + self.of_messages(received))))
        return torch.lerp(nodes[..., new.shape[-1] :].to(new.dtype), new, gate.to(new.dtype))
