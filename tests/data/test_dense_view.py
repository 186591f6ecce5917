"""The dense view of PyG batches, against one built pair by pair."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import Kind, Location, parse_features
from graphbench.data.batches.dense_view import ABSENT, EDGES, dense_groups

SPEC = {
    "a": ["input", "node", "scalar"],
    "b": ["input", "node", "scalar(3)"],
    "c": ["input", "node", "categorical(4)"],
    "one": ["input", "node", "mask_one"],
    "to": ["input", "node", "pointer"],
    "w": ["input", "edge", "scalar"],
    "v": ["input", "edge", "scalar(2)"],
    "m": ["input", "edge", "mask"],
    "r": ["input", "edge", "categorical(3)"],
    "g": ["input", "graph", "scalar"],
    "h": ["input", "graph", "categorical(5)"],
}
FEATURES = parse_features(SPEC)


def value(feature: Any, count: int, nodes: int) -> torch.Tensor:
    """Return random values of a feature of one graph."""
    if feature.kind is Kind.SCALAR:
        return torch.randn(count, feature.width) if feature.width > 1 else torch.randn(count)
    if feature.kind is Kind.MASK_ONE:
        return torch.nn.functional.one_hot(torch.randint(nodes, ()), nodes)
    return torch.randint({Kind.MASK: 2, Kind.POINTER: nodes}.get(feature.kind, feature.classes), (count,))


def graph(nodes: int, edges: int) -> Data:
    """Return a random directed graph."""
    pairs = torch.randperm(nodes * nodes)[:edges].sort().values
    index = torch.stack([pairs // nodes, pairs % nodes])
    counts = {Location.NODE: nodes, Location.EDGE: edges, Location.GRAPH: 1}
    return Data(edge_index=index, num_nodes=nodes, **{f.name: value(f, counts[f.location], nodes) for f in FEATURES})


@pytest.fixture
def graphs() -> list[Data]:
    torch.manual_seed(0)
    return [graph(n, e) for n, e in ((4, 5), (6, 9), (4, 0), (1, 0), (6, 36))]


def test_every_input_is_where_a_loop_puts_it(graphs: list[Data]) -> None:
    batch = Batch.from_data_list(graphs)
    groups = dense_groups(batch, FEATURES, {f.name: batch[f.name] for f in FEATURES}, steps=3)
    assert [group.batch.num_nodes for group in groups] == [1, 4, 6]
    assert [group.graphs.tolist() for group in groups] == [[3], [0, 2], [1, 4]]
    for group in groups:
        inputs, n = group.batch.inputs, group.batch.num_nodes
        assert group.batch.lengths.tolist() == [3] * len(group.graphs)
        for i, number in enumerate(group.graphs.tolist()):
            data = graphs[number]
            edges = {(int(u), int(v)): k for k, (u, v) in enumerate(data.edge_index.t())}
            for f in FEATURES:
                found, own = inputs[f.name][i], data[f.name]
                if f.kind is Kind.MASK_ONE:
                    assert found == own.argmax()
                elif f.location is Location.NODE:
                    assert torch.equal(found, own)
                elif f.location is Location.GRAPH:
                    assert torch.equal(found, own[0])
                else:
                    for u in range(n):
                        for v in range(n):
                            blank = torch.zeros_like(found[u, v]) + (ABSENT if f.kind is Kind.CATEGORICAL else 0)
                            assert torch.equal(found[u, v], own[edges[u, v]] if (u, v) in edges else blank)
            present = {tuple(pair) for pair in inputs[EDGES.name][i].nonzero().tolist()}
            assert present == set(edges)


def test_places_lead_back_to_the_batch(graphs: list[Data]) -> None:
    batch = Batch.from_data_list(graphs)
    groups = dense_groups(batch, FEATURES, {f.name: batch[f.name] for f in FEATURES})
    assert sorted(torch.cat([group.columns for group in groups]).tolist()) == list(range(batch.edge_index.shape[1]))
    assert sorted(torch.cat([group.nodes.flatten() for group in groups]).tolist()) == list(range(batch.num_nodes))
    for group in groups:
        graph, tails, heads = group.places
        index = torch.stack([group.nodes[graph, tails], group.nodes[graph, heads]])
        assert torch.equal(index, batch.edge_index[:, group.columns])
