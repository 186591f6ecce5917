"""Layers made of PyTorch Geometric's parts alone: peers of the training benchmark."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import HeteroLinear, MessagePassing

from graphbench.models.processors.typed import TypedLayer, TypedLinear


class TypedPeer(MessagePassing):
    """The layer of ``typed`` with one weight per type, with the parameters of a given layer."""

    def __init__(self, layer: TypedLayer) -> None:
        super().__init__(aggr="sum")
        self.norm, self.feed_forward = layer.norm, layer.feed_forward
        self.own, self.sent = (_hetero_linear(linear) for linear in (layer.own, layer.sent))

    def forward(self, nodes: Tensor, edges: Tensor, ends: Tensor, kinds: Tensor) -> Tensor:
        """Return updated nodes [N, d]; ``kinds`` int64 [N] are the types of the nodes."""
        normed = self.norm(nodes)
        received = self.propagate(ends, x=self.sent(normed, kinds), edges=edges)
        result: Tensor = self.feed_forward(nodes + self.own(normed, kinds) + received)
        return result

    def message(self, x_j: Tensor, edges: Tensor) -> Tensor:
        """Return the messages [E, d]."""
        return torch.relu(x_j + edges)


def _hetero_linear(given: TypedLinear) -> HeteroLinear:
    weights = torch.stack([weight.t() for weight in given.parameters()])
    types, width, _ = weights.shape
    made = HeteroLinear(width, width, types, bias=False)
    with torch.no_grad():
        made.weight.copy_(weights)
    return made
