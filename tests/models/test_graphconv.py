"""GraphConv against PyG's layer."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GraphConv

from graphbench.models.config import ModelConfig
from graphbench.models.processors.graphconv import GraphConvLayer

from .conftest import layout_of, random_arcs


@pytest.mark.parametrize("arcs", [0, 1, 25])
def test_the_layer_and_its_gradients_are_pygs(arcs: int) -> None:
    layer = GraphConvLayer(ModelConfig(processor="graphconv", hidden=6, layers=1, activation="relu", dropout=0.0))
    theirs = GraphConv(6, 6, aggr="mean")
    with torch.no_grad():
        theirs.lin_root.weight.copy_(layer.own.weight)
        theirs.lin_rel.weight.copy_(layer.others.weight)
        theirs.lin_rel.bias.copy_(layer.own.bias)
    edge_index = random_arcs(7, arcs)
    nodes = torch.randn(7, 6, requires_grad=True)
    own = nodes.detach().clone().requires_grad_()
    expected = theirs(nodes, edge_index).relu()
    found = layer(own, None, layout_of(edge_index, 7))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    weights = torch.randn(7, 6)
    (expected * weights).sum().backward()
    (found * weights).sum().backward()
    torch.testing.assert_close(own.grad, nodes.grad, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(layer.others.weight.grad, theirs.lin_rel.weight.grad, atol=1e-5, rtol=1e-4)


def test_dropout_is_applied_while_training_alone() -> None:
    layer = GraphConvLayer(ModelConfig(processor="graphconv", hidden=6, layers=1, dropout=0.5))
    nodes, layout = torch.randn(7, 6), layout_of(random_arcs(7, 20), 7)
    assert not torch.equal(layer(nodes, None, layout), layer(nodes, None, layout))
    layer.eval()
    assert torch.equal(layer(nodes, None, layout), layer(nodes, None, layout))
