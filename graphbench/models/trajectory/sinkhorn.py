"""Permutations: the Sinkhorn operator, and the cyclic form that models learn (Ibarz et al., 2022)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_TEMPERATURE = 0.1
_MASKED = -1e6
_TINY = 1e-20


def log_sinkhorn(
    values: Tensor, *, steps: int, temperature: float = _TEMPERATURE, cyclic: bool = True, noise: bool = False
) -> Tensor:
    """Return the logarithms of a doubly stochastic matrix near ``exp(values / temperature)`` (Mena et al., 2018).

    Args:
        values: ``[..., n, n]``.
        steps: Rounds of normalising rows, then columns.
        temperature: The smaller, the closer to a permutation.
        cyclic: Whether the diagonal is impossible: no node follows itself in a cycle of all nodes.
        noise: Whether Gumbel noise is added, as in training.
    """
    nodes = values.shape[-1]
    if noise:
        uniform = torch.rand_like(values)
        values = values - torch.log(-torch.log(uniform + _TINY) + _TINY)
    values = values / temperature
    if cyclic:
        values = values + _MASKED * torch.eye(nodes, device=values.device)
    for _ in range(steps):
        values = values.log_softmax(-1)
        values = values.log_softmax(-2)
    return values


def cyclic_form(pointers: Tensor) -> tuple[Tensor, Tensor]:
    """Return an order as a cycle and its first node.

    Args:
        pointers: int64 ``[B, n]``: each node's predecessor; the first node points to itself.

    Returns:
        float32 ``[B, n, n]``, one-hot: each node's predecessor (of the first node, the last); int64 ``[B]``, heads.
    """
    nodes = pointers.shape[1]
    ids = torch.arange(nodes, device=pointers.device)
    head = (pointers == ids).int().argmax(1)
    one_hot = F.one_hot(pointers, nodes).float()
    followed = one_hot - torch.diag_embed((pointers == ids).float())
    last = followed.sum(1).argmin(1)
    rows = torch.arange(len(pointers), device=pointers.device)
    one_hot[rows, head] = F.one_hot(last, nodes).float()
    return one_hot, head
