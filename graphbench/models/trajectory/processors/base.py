"""The base class of processors of dense pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import NodeVectors, PairVectors
from graphbench.models.trajectory.layers import linear

MASKED = -1e6
"""The value of masked messages, below all others."""

_INITIAL_GATE_BIAS = -3.0


class Step:
    """The vectors that a processor reads in one step.

    Args:
        nodes: ``[B, n, 2h]``: the encoded nodes and the processor's output of the previous step, concatenated.
        pairs: The encoded pairs.
        graph: ``[B, h]``: the encoded graph.
        neighbours: bool ``[B, n, n]``: whether one node sends messages to another; the diagonal is set.
    """

    share: Tensor | None = None
    """``[B, n, h]``: the share of the previous states in ``nodes``, from a gate; None without one."""

    pair_states: Tensor | None = None
    """``[B, n, n, h]``: states of pairs that a processor keeps: it reads the previous ones, None in the first step, and
    writes the new ones here; None for processors that keep none."""

    def __init__(self, nodes: Tensor | NodeVectors, pairs: PairVectors, graph: Tensor, neighbours: Tensor) -> None:
        self._nodes, self.pairs, self.graph, self.neighbours = nodes, pairs, graph, neighbours
        self._full = nodes if isinstance(nodes, Tensor) else None

    @property
    def nodes(self) -> Tensor:
        """``[B, n, 2h]``, computed on first access; for linear functions of the nodes, ``project`` takes less time."""
        if self._full is None:
            assert isinstance(self._nodes, NodeVectors)
            self._full = self._nodes.full()
        return self._full

    @property
    def before(self) -> Tensor:
        """``[B, n, h]``, the processor's output of the previous step."""
        if isinstance(self._nodes, NodeVectors):
            return self._nodes.states
        return self._nodes[..., self._nodes.shape[-1] // 2 :]

    def project(self, *linears: nn.Linear) -> tuple[Tensor, ...]:
        """Return each of several linear maps of the nodes, ``[B, n, out]``."""
        if isinstance(self._nodes, NodeVectors):
            return self._nodes.project(*linears)
        return tuple(linear(self._nodes) for linear in linears)

    def project_with(self, after: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
        """Return each of several linear maps of the nodes and their new states ``after [B, n, h]``, ``[B, n, out]``."""
        if isinstance(self._nodes, NodeVectors):
            return self._nodes.beside(after).project(*linears)
        joined = torch.cat([self._nodes, after], -1)
        return tuple(linear(joined) for linear in linears)

    def where(self, chosen: Tensor, other: Step) -> Step:
        """Return this step for the samples with ``chosen [B]``, and another step for the others."""
        pairs = PairVectors(
            pick(chosen, self.pairs.columns, other.pairs.columns), self.pairs.weight, self.pairs.bias, self.pairs.made
        )
        step_nodes, other_nodes = self._nodes, other._nodes
        nodes: Tensor | NodeVectors
        if isinstance(step_nodes, NodeVectors) and isinstance(other_nodes, NodeVectors):
            columns = pick(chosen, step_nodes.columns, other_nodes.columns)
            states = pick(chosen, step_nodes.states, other_nodes.states)
            nodes = NodeVectors(columns, step_nodes.weight, step_nodes.bias, states, step_nodes.made)
        else:
            nodes = pick(chosen, self.nodes, other.nodes)
        neighbours = pick(chosen, self.neighbours, other.neighbours)
        step = Step(nodes, pairs, pick(chosen, self.graph, other.graph), neighbours)
        if self.pair_states is not None and other.pair_states is not None:
            step.pair_states = pick(chosen, self.pair_states, other.pair_states)
        return step


def pick(chosen: Tensor, values: Tensor, other: Tensor) -> Tensor:
    """Return ``values [B, ...]`` of the samples with ``chosen [B]``, and ``other [B, ...]`` of the others."""
    return torch.where(chosen.view(-1, *[1] * (values.dim() - 1)), values, other)


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

    def messages(self, step: Step) -> Tensor:
        """Return vectors of pairs for the decoders, ``[B, n, n, h]``."""
        raise NotImplementedError(f"{type(self).__name__} makes no vectors of pairs")

    def cores(self) -> Mapping[str, nn.Module]:
        """Return modules, by name, that processors of graphs have too, so that weights can move between the two."""
        return {}


class HistoryGate(nn.Module):
    """The share of the previous states that a step reads (Bohde et al., 2024), almost closed at initialisation.

    Args:
        hidden: Width h.
        penalty: Weight of the penalty at the start of training.
        anneal: Number of training batches in which this weight falls to 0.
    """

    batches: Tensor

    def __init__(self, hidden: int, penalty: float, anneal: int) -> None:
        super().__init__()
        self.penalty, self.anneal = penalty, anneal
        self.share = linear(2 * hidden, hidden)
        nn.init.constant_(self.share.bias, _INITIAL_GATE_BIAS)
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, nodes: NodeVectors) -> Tensor:
        """Return the share of each number of the states of ``nodes``, ``[B, n, h]``."""
        (logits,) = nodes.project(self.share)
        return torch.sigmoid(logits)

    def loss(self, shares: Sequence[Tensor], lengths: Tensor) -> Tensor:
        """Return the penalty of a batch, a scalar, and count the batch if in training.

        Args:
            shares: The shares of the second step and of all later steps, each ``[B, n, h]``.
            lengths: int64 ``[B]``: shares after a sample's end do not count.
        """
        weight = self.penalty * (1 - self.batches / self.anneal).clamp(min=0)
        if self.training:
            self.batches += 1
        if not shares:
            return weight.new_zeros(())
        squares = torch.stack([share.square().mean((1, 2)) for share in shares])
        running = lengths > torch.arange(2, len(shares) + 2, device=lengths.device).unsqueeze(1)
        return weight * (squares * running).sum() / running.sum().clamp(min=1)


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

    def forward(self, step: Step, received: Tensor, new: Tensor) -> Tensor:
        """Return the mixture of ``new`` and the previous state, from the step's nodes and what they received."""
        (nodes,) = step.project(self.of_nodes)
        gate = torch.sigmoid(self.last(torch.relu(nodes + self.of_messages(received))))
        return torch.lerp(step.before.to(new.dtype), new, gate.to(new.dtype))
