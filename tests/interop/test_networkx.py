"""Graphs of NetworkX and plain arrays, against PyG's own conversion."""

import copy
import sys
import types

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import to_networkx as pyg_to_networkx

from graphbench.catalog.features import Location
from graphbench.core.errors import ArgumentError
from graphbench.interop import from_networkx, to_arrays, to_networkx

BOTH = {"algoreas/flow_easy"}  # capacities differ between the two directions of an edge
GRAPHS = ("algoreas/mst_easy", "algoreas/topological_sort_easy", "algoreas/flow_easy", "clutrr/gen_23", "clrs/bfs")


def features_at(card, location):
    return [f for f in card.stored_features if f.location is location]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_graph_as_that_of_pyg(name, small):
    card, data = small(name).card, small(name).train[1]
    directed = card.directed or name in BOTH
    found = to_networkx(data, name, both_directions=name in BOTH)
    assert isinstance(found, nx.DiGraph) == directed
    nodes, edges = (
        [f.name for f in features_at(card, where) if f.type_name != "text"] for where in (Location.NODE, Location.EDGE)
    )
    theirs = pyg_to_networkx(data, node_attrs=nodes, edge_attrs=edges, to_undirected=not directed)
    assert nx.utils.edges_equal(found.edges, theirs.edges, directed=directed)
    assert len(found.edges) == data.num_edges // (1 if directed else 2)
    for node in theirs:
        for attribute in nodes:
            assert found.nodes[node][attribute] == theirs.nodes[node][attribute]
    for u, v in theirs.edges:
        for attribute in edges:
            assert found.edges[u, v][attribute] == theirs.edges[u, v][attribute]
    for feature in features_at(card, Location.GRAPH):
        value = data[feature.name]
        assert found.graph[feature.name] == (value if isinstance(value, str) else value.tolist()[0])


def test_attributes_are_typed(small):
    graph = to_networkx(small("algoreas/mst_easy").train[0], small("algoreas/mst_easy"))
    assert {(type(row["weight"]), type(row["in_tree"])) for _, _, row in graph.edges(data=True)} == {(float, bool)}
    assert type(graph.graph["model"]) is int
    # the marked edges are a minimum spanning tree, which NetworkX finds in the same object
    tree = [(u, v) for u, v, row in graph.edges(data=True) if row["in_tree"]]
    weight = sum(graph.edges[edge]["weight"] for edge in tree)
    assert weight == pytest.approx(nx.minimum_spanning_tree(graph).size("weight"))
    assert len(tree) == graph.number_of_nodes() - nx.number_connected_components(graph)
    story = to_networkx(small("clutrr/gen_23").train[0], "clutrr/gen_23")
    texts = [f for f in small("clutrr/gen_23").card.stored_features if f.type_name == "text"]
    assert texts and all(type(v) is str for f in texts if f.location is Location.GRAPH for v in [story.graph[f.name]])


@pytest.mark.parametrize("name", GRAPHS)
def test_back_to_pyg_bit_for_bit(name, small):
    split = small(name).train
    hints = {f.name for f in split.card.hints}
    for number in range(3):
        data = split[number]
        back = from_networkx(to_networkx(data, name, both_directions=name in BOTH), name)
        assert set(back.keys()) == set(data.keys()) - hints
        for key in back.keys():  # noqa: SIM118 (Data has no other way)
            if isinstance(data[key], torch.Tensor):
                assert back[key].dtype == data[key].dtype and torch.equal(back[key], data[key]), key
            else:
                assert back[key] == data[key], key


def test_nodes_in_another_order_give_the_same_graph(small):
    data = small("algoreas/mst_easy").train[2]
    graph = to_networkx(data, "mst_easy")
    shuffled = nx.Graph(**graph.graph)
    shuffled.add_nodes_from(reversed(list(graph.nodes(data=True))))
    shuffled.add_edges_from((v, u, row) for u, v, row in reversed(list(graph.edges(data=True))))
    back = from_networkx(shuffled, "mst_easy")
    assert torch.equal(back.edge_index, data.edge_index) and torch.equal(back.weight, data.weight)


def test_values_that_differ_by_direction_need_both(small):
    data = copy.copy(small("algoreas/mst_easy").train[0])
    data.weight = torch.arange(data.num_edges, dtype=torch.float32)
    with pytest.raises(ArgumentError, match=r"'weight' differs .* to_networkx\(\.\.\., both_directions=True\)"):
        to_networkx(data, "mst_easy")
    both = to_networkx(data, "mst_easy", both_directions=True)
    assert isinstance(both, nx.DiGraph) and both.number_of_edges() == data.num_edges
    assert [both.edges[edge]["weight"] for edge in data.edge_index.t().tolist()] == data.weight.tolist()
    assert torch.equal(from_networkx(both, "mst_easy").weight, data.weight)


def test_wrong_graphs_are_refused(small):
    data = small("algoreas/mst_easy").train[0]
    with pytest.raises(ArgumentError, match="the dataset is given as 3"):
        to_networkx(data, 3)
    with pytest.raises(ArgumentError, match="the graph has no field"):
        to_networkx(data, "topological_sort_easy")
    twice = copy.copy(data)
    twice.edge_index = torch.cat([data.edge_index, data.edge_index], 1)
    twice.weight, twice.in_tree = data.weight.repeat(2), data.in_tree.repeat(2)
    with pytest.raises(ArgumentError, match=f"{data.num_edges // 2} edges join the same nodes"):
        to_networkx(twice, "mst_easy")
    with pytest.raises(ArgumentError, match=r"'weight' has \d+ rows for 2 edges"):
        half = copy.copy(data)
        half.edge_index = data.edge_index[:, :2]
        to_networkx(half, "mst_easy")
    named = nx.relabel_nodes(to_networkx(data, "mst_easy"), {0: "first"})
    with pytest.raises(ArgumentError, match="name them 0 to"):
        from_networkx(named, "mst_easy")
    bare = nx.Graph(to_networkx(data, "mst_easy").edges)
    bare.add_nodes_from(range(data.num_nodes))
    with pytest.raises(ArgumentError, match="'weight' is missing"):
        from_networkx(bare, "mst_easy")
    graph = to_networkx(data, "mst_easy")
    with pytest.raises(ArgumentError, match="the graph is a multigraph"):
        from_networkx(nx.MultiGraph(graph), "mst_easy")
    one_way = nx.DiGraph(graph)
    one_way.remove_edge(*next(iter(one_way.edges)))
    with pytest.raises(ArgumentError, match=r"arc \(\d+, \d+\) is missing"):
        from_networkx(one_way, "mst_easy")
    with pytest.raises(ArgumentError, match="have arcs; give a DiGraph"):
        from_networkx(nx.Graph(graph), "topological_sort_easy")
    nx.set_edge_attributes(graph, "heavy", "weight")
    with pytest.raises(ArgumentError, match="the attribute 'weight' is no scalar"):
        from_networkx(graph, "mst_easy")


@pytest.mark.parametrize("name", GRAPHS)
def test_arrays_hold_the_graph(name, small):
    split = small(name).train
    data, arrays = split[0], to_arrays(split[0], split)
    adjacency = np.zeros((arrays.num_nodes, arrays.num_nodes), int)
    np.add.at(adjacency, (arrays.src, arrays.dst), 1)
    dense = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.long)
    dense.index_put_(tuple(data.edge_index), torch.ones(data.num_edges, dtype=torch.long), accumulate=True)
    assert np.array_equal(adjacency, dense.numpy())
    assert arrays.src.dtype == np.int64 and arrays.num_nodes == data.num_nodes
    for found, location in ((arrays.ndata, "node"), (arrays.edata, "edge"), (arrays.gdata, "graph")):
        assert list(found) == [f.name for f in features_at(split.card, Location(location))]
        for key, value in found.items():
            assert np.array_equal(value, data[key]) if isinstance(value, np.ndarray) else value == data[key]


def test_arrays_of_one_graph_of_dgl(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "dgl.graphbolt", types.ModuleType("dgl.graphbolt"))  # built for PyTorch <= 2.2
    dgl = pytest.importorskip("dgl")
    data = small("algoreas/mst_easy").train[0]
    arrays = to_arrays(data, "mst_easy")
    graph = dgl.graph((torch.from_numpy(arrays.src), torch.from_numpy(arrays.dst)), num_nodes=arrays.num_nodes)
    graph.edata["weight"] = torch.from_numpy(arrays.edata["weight"])
    assert graph.num_nodes() == data.num_nodes and graph.num_edges() == data.num_edges
    assert torch.equal(torch.stack(graph.edges()), data.edge_index)
    assert torch.equal(graph.in_degrees(), torch.bincount(data.edge_index[1], minlength=data.num_nodes))
    heavy = graph.filter_edges(lambda edges: edges.data["weight"] > data.weight.mean())
    assert heavy.tolist() == torch.nonzero(data.weight > data.weight.mean())[:, 0].tolist()
