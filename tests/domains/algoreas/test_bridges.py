import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.algoreas.bridges import find_bridges, label_shard


def as_graph(num_nodes, edges):
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(edges.tolist())
    return graph


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 14), st.floats(0, 0.5), st.integers(0, 10**6))
def test_bridges_are_the_edges_whose_removal_disconnects(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    graph = as_graph(num_nodes, edges)
    components = nx.number_connected_components(graph)
    expected = []
    for u, v in edges.tolist():
        rest = graph.copy()
        rest.remove_edge(u, v)
        expected.append(nx.number_connected_components(rest) > components)
    assert find_bridges(num_nodes, edges).tolist() == expected


@pytest.mark.parametrize(("num_nodes", "count"), [(16, 300), (128, 12), (512, 6)])
def test_bridges_are_those_of_networkx(shard, num_nodes, count):
    task = shard(num_nodes, count)
    is_bridge = label_shard(*task)
    assert is_bridge.dtype == np.uint8
    for rows, edges in task.graphs():
        expected = {tuple(sorted(bridge)) for bridge in nx.bridges(as_graph(num_nodes, edges))}
        assert is_bridge[rows].tolist() == [tuple(edge) in expected for edge in edges.tolist()]
    assert 0 < is_bridge.mean() < 1


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 40), st.floats(0, 0.2), st.integers(0, 10**6))
def test_bridges_move_with_the_nodes(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    new_id = np.random.default_rng(seed).permutation(num_nodes)
    moved = np.sort(new_id[edges].astype(np.int32), axis=1)
    order = np.lexsort((moved[:, 1], moved[:, 0]))
    np.testing.assert_array_equal(find_bridges(num_nodes, moved[order]), find_bridges(num_nodes, edges)[order])


def test_known_cases():
    path = np.array([[u, u + 1] for u in range(9999)], np.int32)
    assert find_bridges(10000, path).all()  # deep: no recursion
    cycle = np.concatenate([path, [[0, 9999]]]).astype(np.int32)
    assert not find_bridges(10000, cycle).any()
    bell = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]], np.int32)
    assert find_bridges(6, bell).tolist() == [False, False, False, True, False, False, False]
    assert find_bridges(2, np.array([[0, 1], [0, 1]], np.int32)).tolist() == [False, False]
    assert find_bridges(3, np.empty((0, 2), np.int32)).tolist() == []


def test_labels_do_not_depend_on_the_shard(shard):
    parts = [label_shard(*shard(16, count, first)) for first, count in ((0, 7), (7, 13))]
    np.testing.assert_array_equal(label_shard(*shard(16, 20)), np.concatenate(parts))
