"""GCN against PyG's layer, and GCN and GAT in the frame of GIN."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv

from graphbench.models.config import ModelConfig
from graphbench.models.processors.base import Context, State
from graphbench.models.processors.gcn import GCN, GCNLayer, ResidualGAT, normalised_sums

from .conftest import layout_of, random_arcs

WIDTH = 6


@pytest.mark.parametrize("arcs", [0, 1, 25])
def test_what_a_node_receives_is_pygs(arcs: int) -> None:
    layer, theirs = GCNLayer(ModelConfig(processor="gcn", hidden=WIDTH, layers=1)), GCNConv(WIDTH, WIDTH)
    with torch.no_grad():
        theirs.lin.weight.copy_(layer.weight.weight)
        layer.weight.bias.zero_()
    nodes, edge_index = torch.randn(7, WIDTH), random_arcs(7, arcs)
    found = normalised_sums(layer.weight(nodes), layout_of(edge_index, 7))
    torch.testing.assert_close(found, theirs(nodes, edge_index), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("processor", [GCN, ResidualGAT])
def test_nodes_see_as_many_steps_away_as_there_are_layers(processor: type[GCN]) -> None:
    config = ModelConfig(processor="gcn", hidden=8, layers=2, heads=2)
    model = processor(config, Context(directed=False, edge_tokens=False, graph_token=False)).eval()
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    edge_index = torch.cat([path, path.flip(0)], dim=1)
    nodes = torch.randn(5, 8)
    changed = nodes.clone()
    changed[0] = torch.randn(8)
    edges = torch.randn(1, 8)
    found, other = (model(State(x, edges, None, layout_of(edge_index, 5))).nodes for x in (nodes, changed))
    same = torch.isclose(found, other, atol=1e-6).all(dim=1).tolist()
    assert same == [False, False, False, True, True]


def test_attention_reads_edges_and_gcn_does_not() -> None:
    config = ModelConfig(processor="gcn", hidden=8, layers=1, heads=2)
    context = Context(directed=False, edge_tokens=False, graph_token=False)
    edge_index, nodes = random_arcs(5, 8), torch.randn(5, 8)
    for processor, reads in ((GCN, False), (ResidualGAT, True)):
        model = processor(config, context).eval()
        one, two = (model(State(nodes, torch.randn(8, 8), None, layout_of(edge_index, 5))).nodes for _ in range(2))
        assert processor.uses_edges == reads and torch.equal(one, two) != reads
