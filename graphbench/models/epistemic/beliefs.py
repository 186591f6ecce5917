"""States of belief about the relation of a pair of nodes: their composition, and their combination.

A belief is a distribution over latent relations and the unknown: float [..., facets, symbols + 1], where the last entry
is the share of the unknown. A share of the unknown allows every latent relation (a simple support function in the
sense of Dempster and Shafer).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.epistemic.config import EpistemicModelConfig

_TINY = 1e-9
_SMALLEST = 1e-6
_START = 0.01


class Composition(nn.Module):
    """The belief about (u, v) from beliefs about (u, w) and (w, v): ``c_k = sum over i, j of a_i b_j T_ijk``.

    ``T_ij`` is a distribution over latent relations and the unknown, for every pair of latent relations; with an
    unknown factor the composition is unknown. In the beginning almost all of ``T`` is unknown.
    """

    bias: Tensor

    def __init__(self, config: EpistemicModelConfig) -> None:
        super().__init__()
        symbols = config.symbols
        self.gain = config.gain
        bias = F.pad(torch.zeros(symbols), (0, 1), value=math.log(symbols) + config.doubt)
        self.register_buffer("bias", bias, persistent=False)
        self.weight = nn.Parameter(torch.randn(config.facets, symbols**2, symbols + 1) * _START)

    def table(self) -> Tensor:
        """Return ``T``, float [facets, symbols^2, symbols + 1]."""
        return torch.softmax(self.gain * self.weight + self.bias, dim=2)

    def forward(self, left: Tensor, right: Tensor, table: Tensor) -> Tensor:
        """Return the composed beliefs of ``left`` and ``right``, all float [T, facets, symbols + 1]."""
        a, b = left[..., :-1].transpose(0, 1), right[..., :-1].transpose(0, 1)
        products = (a.unsqueeze(3) * b.unsqueeze(2)).flatten(2)
        known = torch.bmm(products, table[..., :-1]).transpose(0, 1)
        return torch.cat([known, (1.0 - known.sum(2, keepdim=True)).clamp(min=_SMALLEST)], dim=2)


def combined(beliefs: Tensor, index: Tensor, count: int, pooling: str) -> Tensor:
    """Return the combination of the beliefs that share an index, float [count, facets, symbols + 1].

    Args:
        beliefs: float [items, facets, symbols + 1].
        index: int64 [items], from 0 to ``count - 1``; every number occurs.
        count: Number of combined beliefs.
        pooling: ``votes``: the known shares are added, and the unknown share is the product of all unknown shares.
            ``product``: Dempster's rule: what is possible (a relation's share and the unknown's) is multiplied.
            ``minimum``: the same, with the minimum in place of the product.
    """
    known, unknown = beliefs[..., :-1], beliefs[..., -1:]
    if pooling == "votes":
        votes = known.new_zeros(count, *known.shape[1:]).index_add(0, index, known)
        none = _product(unknown, index, count)
        shares = votes / votes.sum(2, keepdim=True).clamp(min=_TINY)
        return torch.cat([(1.0 - none) * shares, none], dim=2)
    pool = _product if pooling == "product" else _minimum
    possible, none = pool(known + unknown, index, count), pool(unknown, index, count)
    kept = torch.cat([(possible - none).clamp(min=0.0), none], dim=2)
    return kept / kept.sum(2, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)


def unknown_beliefs(count: int, like: Tensor) -> Tensor:
    """Return beliefs that know nothing, [count, facets, symbols + 1], with facets and symbols of ``like``."""
    return F.pad(like.new_zeros(count, like.shape[1], like.shape[2] - 1), (0, 1), value=1.0)


def scores(beliefs: Tensor, prototypes: Tensor) -> Tensor:
    """Return logits float [B, classes]: minus the cross-entropy between a class and what a belief holds possible.

    Args:
        beliefs: float [B, facets, symbols + 1].
        prototypes: float [classes, facets, symbols], the distribution of each class over latent relations.
    """
    possible = beliefs[..., :-1] + beliefs[..., -1:] / prototypes.shape[2]
    return torch.einsum("bfs,cfs->bc", possible.clamp(min=_SMALLEST).log(), prototypes)


def _product(values: Tensor, index: Tensor, count: int) -> Tensor:
    logs = values.clamp(min=_TINY).log()
    return logs.new_zeros(count, *values.shape[1:]).index_add(0, index, logs).exp()


def _minimum(values: Tensor, index: Tensor, count: int) -> Tensor:
    places = index.view(-1, 1, 1).expand_as(values)
    return values.new_full((count, *values.shape[1:]), torch.inf).scatter_reduce(0, places, values, "amin")
