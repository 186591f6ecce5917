import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.algoreas.topological_sort import label_shard, orient_edges, topological_ranks


def oriented(edges, position):
    arcs = np.empty_like(edges)
    orient_edges(edges, position, arcs, np.empty(len(position), int))
    return arcs


def ranks_of(arcs, priority):
    row_end = np.searchsorted(arcs[:, 0], np.arange(len(priority)), side="right")
    rank = np.empty(len(priority), int)
    topological_ranks(arcs, row_end, priority, rank, np.empty((2, len(priority)), int))
    return rank


def networkx_ranks(num_nodes, arcs, priority):
    graph = nx.empty_graph(num_nodes, nx.DiGraph)
    graph.add_edges_from(arcs.tolist())
    ranks = np.empty(num_nodes, int)
    ranks[list(nx.lexicographical_topological_sort(graph, key=lambda node: priority[node]))] = np.arange(num_nodes)
    return ranks


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.floats(0, 1), st.integers(0, 10**6))
def test_order_is_the_smallest_of_all_orders(random_edges, num_nodes, p, seed):
    rng = np.random.default_rng(seed)
    priority = rng.permutation(num_nodes).astype(np.float32)
    arcs = oriented(random_edges(num_nodes, p, seed), rng.permutation(num_nodes))
    ranks = ranks_of(arcs, priority)
    allowed = []
    for order in itertools.permutations(range(num_nodes)):
        place = np.argsort(order)
        if all(place[u] < place[v] for u, v in arcs):
            allowed.append([priority[node] for node in order])
    assert priority[np.argsort(ranks)].tolist() == min(allowed)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 10**6))
def test_arcs_are_the_edges_directed_by_position(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    position = np.random.default_rng(seed).permutation(num_nodes)
    arcs = oriented(edges, position)
    assert (position[arcs[:, 0]] < position[arcs[:, 1]]).all()
    assert sorted(arcs.tolist()) == arcs.tolist()
    assert sorted(map(sorted, arcs.tolist())) == edges.tolist()


@pytest.mark.parametrize(("num_nodes", "count"), [(16, 300), (128, 12), (512, 1)])
def test_order_is_that_of_networkx(shard, num_nodes, count):
    task = shard(num_nodes, count)
    arcs, priority, rank = label_shard(*task)
    for graph, (rows, edges) in enumerate(task.graphs()):
        nodes = slice(graph * num_nodes, (graph + 1) * num_nodes)
        own = arcs[rows]
        assert sorted(map(sorted, own.tolist())) == edges.tolist()
        assert sorted(own.tolist()) == own.tolist()
        assert len(np.unique(priority[nodes])) == num_nodes
        expected = networkx_ranks(num_nodes, own, priority[nodes]) / (num_nodes - 1)
        np.testing.assert_array_equal(rank[nodes], expected.astype(np.float32))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 10**6))
def test_ranks_move_with_the_nodes(random_edges, num_nodes, p, seed):
    rng = np.random.default_rng(seed)
    priority = rng.permutation(num_nodes).astype(np.float32)
    arcs = oriented(random_edges(num_nodes, p, seed), rng.permutation(num_nodes))
    new_id = rng.permutation(num_nodes)
    moved_arcs = np.array(sorted(new_id[arcs].tolist()), np.int32).reshape(-1, 2)
    moved_priority = np.empty_like(priority)
    moved_priority[new_id] = priority
    moved = ranks_of(moved_arcs, moved_priority)
    np.testing.assert_array_equal(moved[new_id], ranks_of(arcs, priority))


def test_a_cycle_is_an_error():
    arcs = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    with pytest.raises(ValueError, match="cycle"):
        ranks_of(arcs, np.zeros(3, np.float32))


def test_one_node_has_rank_0(shard):
    arcs, priority, rank = label_shard(
        shard(16, 1).key, np.arange(2), np.zeros(2, int), 1, np.zeros(3, int), np.empty((0, 2), np.int32)
    )
    assert arcs.shape == (0, 2)
    assert rank.tolist() == [0, 0]
    assert priority[0] != priority[1]


def test_labels_do_not_depend_on_the_shard_but_on_the_attempt(shard):
    whole = label_shard(*shard(16, 20))
    parts = [label_shard(*shard(16, count, first)) for first, count in ((0, 7), (7, 13))]
    for array, *pieces in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(array, np.concatenate(pieces))
    task = shard(16, 20)
    again = label_shard(*task._replace(attempts=task.attempts + 1))
    assert all((a != b).any() for a, b in zip(whole, again, strict=True))


def test_dtypes_and_ranges(shard):
    arcs, priority, rank = label_shard(*shard(16, 500))
    assert (arcs.dtype, priority.dtype, rank.dtype) == (np.int32, np.float32, np.float32)
    assert 0 < priority.min() < 0.01 and 0.99 < priority.max() < 1
    assert (priority * 2**24 % 1 == 0).all()
    assert rank.min() == 0 and rank.max() == 1
    # Half of the arcs go from the smaller id to the larger: the orientation is independent of ids.
    assert abs((arcs[:, 0] < arcs[:, 1]).mean() - 0.5) < 0.02
