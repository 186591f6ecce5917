"""Layers shared by encoders, processors and decoders."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.fused import is_compiled, scaled_where_kept

_STEPS = 1 << 16  # resolution of the fast dropout's rate
_LOWEST = -(1 << 15)


class Dropout(nn.Module):
    """Dropout that draws 16 random bits per element on the CPU: torch's dropout takes a tenth of a training step there.

    The rate is rounded to a multiple of 2^-16 on the CPU, and the scale accordingly, so the expectation stays exact.
    """

    def __init__(self, rate: float) -> None:
        """Create a layer that zeroes each element with probability ``rate`` in training mode."""
        super().__init__()
        self.rate = rate

    @property
    def drops(self) -> bool:
        """Whether elements are dropped: in training mode, where the rate is not 0."""
        return self.training and self.rate > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` with elements dropped (training) or unchanged (evaluation)."""
        if not self.drops:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.rate, True)
        dropped = min(max(round(self.rate * _STEPS), 1), _STEPS - 1)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
        bits, lowest, scale = bits[: x.numel()], _LOWEST + dropped, _STEPS / (_STEPS - dropped)
        if is_compiled() and x.dtype in (torch.float32, torch.bfloat16):
            return scaled_where_kept(x, bits, lowest, scale)
        return x * ((bits.view(x.shape) >= lowest) * scale)

    def extra_repr(self) -> str:
        """Return the description that ``repr`` shows."""
        return f"rate={self.rate}"


class StochasticDepth(Dropout):
    """Skip a residual branch for a whole graph with probability ``rate`` in training mode (Huang et al., 2016)."""

    def forward(self, branch: Tensor) -> Tensor:
        """Return ``branch`` [graphs, ...] with some graphs' rows zeroed and the others scaled up."""
        if not self.drops:
            return branch
        shape = (branch.shape[0],) + (1,) * (branch.dim() - 1)
        keep = torch.rand(shape, device=branch.device) >= self.rate
        return branch * (keep / (1.0 - self.rate))


class FullPrecisionLinear(nn.Linear):
    """A linear layer that computes in float32, also under autocast.

    It is the last layer of decoders: bfloat16 has 8 significant bits, too few for a scalar target or for close logits.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return float32 [..., outputs] of ``input`` [..., inputs], which is raised to float32."""
        with full_precision(input.device):
            return super().forward(input.float())


def full_precision(device: torch.device) -> torch.autocast:
    """Return the context in which a model computes in the precision of its tensors, also under autocast."""
    return torch.autocast(device.type, enabled=False)


class FeedForward(nn.Module):
    """A residual feed-forward network, ``x + W2 act(W1 LN(x))``, d -> d -> d (paper, appendix B, FNN)."""

    def __init__(self, width: int, activation: str, dropout: float, *, affine: bool = True) -> None:
        """Create the network.

        Args:
            width: Embedding width ``d``.
            activation: ``gelu`` or ``relu``.
            dropout: Dropout rate on the branch's output.
            affine: Whether the layer normalisation has learned scales and shifts.
        """
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=affine)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        self.activation = activation_function(activation)
        self.dropout = Dropout(dropout)

    def branch(self, x: Tensor) -> Tensor:
        """Return the branch that is added to ``x`` [..., d]."""
        result: Tensor = self.dropout(self.outer(self.activation(self.inner(self.norm(x)))))
        return result

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x + branch(x)``, same shape as ``x`` [..., d]."""
        return x + self.branch(x)


def activation_function(name: str) -> nn.Module:
    """Return the activation with the given name, ``gelu`` (exact) or ``relu``."""
    return nn.GELU() if name == "gelu" else nn.ReLU()


def learned_vector(width: int) -> nn.Parameter:
    """Return a trainable vector float32 [1, d], N(0, 0.02), that stands in for a missing feature or token."""
    return nn.Parameter(torch.randn(1, width) * 0.02)
