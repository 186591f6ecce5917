"""Shared parts of encoders, processors and decoders: linear layers, and the size of chunks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TRUNCATION = 2.0  # in standard deviations
_CELLS_ON_CPU = 1 << 20
_CELLS_ON_GPU = 1 << 26


def cells_at_once(device: torch.device) -> int:
    """Return how many numbers a computation on triples of nodes should hold at once.

    The numbers fit a CPU's cache, or keep a GPU busy.
    """
    return _CELLS_ON_CPU if device.type == "cpu" else _CELLS_ON_GPU


def linear(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer: weights from a truncated normal distribution of scale ``inputs ** -0.5``, biases 0."""
    layer = nn.Linear(inputs, outputs)
    truncated_normal_(layer.weight, 1 / math.sqrt(inputs))
    nn.init.zeros_(layer.bias)
    return layer


@torch.no_grad()
def truncated_normal_(weight: Tensor, deviations: float | Tensor) -> None:
    """Fill a tensor from a normal distribution that is truncated at two standard deviations.

    Args:
        weight: The tensor.
        deviations: The standard deviation before truncation, or one per column.
    """
    nn.init.trunc_normal_(weight, std=1.0, a=-_TRUNCATION, b=_TRUNCATION)
    weight.mul_(deviations)


def thin_linear(columns: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``columns @ weight + bias`` for a small number of columns.

    Args:
        columns: ``[..., F]``.
        weight: ``[F, out]``, row-major: with a weight ``[out, F]`` the products of the backward pass take four times
            as long on CPUs.
        bias: ``[out]``.
    """
    return F.linear(columns, weight.t(), bias)
