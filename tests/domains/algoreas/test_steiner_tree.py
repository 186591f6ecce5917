import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from graphbench.domains.algoreas.steiner_tree import label_shard, steiner_tree


def connected(random_edges, num_nodes, p, seed):
    """Return a random graph with a path through all nodes added."""
    edges = {tuple(edge) for edge in random_edges(num_nodes, p, seed).tolist()}
    order = np.random.default_rng(seed).permutation(num_nodes).tolist()
    edges |= {tuple(sorted(pair)) for pair in itertools.pairwise(order)}
    return np.array(sorted(edges), np.int32)


def check_is_minimal_tree(num_nodes, edges, in_tree, terminals):
    tree = nx.Graph(edges[in_tree].tolist())
    assert nx.is_tree(tree)
    assert set(terminals) <= set(tree.nodes)
    assert {node for node, degree in tree.degree if degree == 1} <= set(terminals)


def best_over_all_node_sets(num_nodes, edges, weight, terminals):
    """Return the least weight of a spanning tree of any connected induced subgraph with the terminals."""
    graph = nx.Graph()
    graph.add_weighted_edges_from((int(u), int(v), float(w)) for (u, v), w in zip(edges, weight, strict=True))
    others = [node for node in range(num_nodes) if node not in terminals]
    best = np.inf
    for size in range(len(others) + 1):
        for extra in itertools.combinations(others, size):
            part = graph.subgraph([*terminals, *extra])
            if nx.is_connected(part):
                best = min(best, nx.minimum_spanning_tree(part).size("weight"))
    return best


def best_over_meeting_nodes(num_nodes, edges, weight, terminals):
    matrix = coo_array((weight.astype(float), edges.T), shape=(num_nodes, num_nodes)).tocsr()
    return dijkstra(matrix, directed=False, indices=terminals).sum(axis=0).min()


@settings(max_examples=150, deadline=None)
@given(st.integers(3, 8), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([2, 5, 2**20]))
def test_tree_is_the_lightest_over_all_node_sets(random_edges, num_nodes, p, seed, largest):
    rng = np.random.default_rng(seed)
    edges = connected(random_edges, num_nodes, p, seed)
    weight = rng.integers(1, largest + 1, len(edges)).astype(np.float32)  # small values: many ties
    terminals = rng.choice(num_nodes, 3, replace=False)
    in_tree = steiner_tree(num_nodes, edges, weight, terminals)
    check_is_minimal_tree(num_nodes, edges, in_tree, terminals.tolist())
    best = best_over_all_node_sets(num_nodes, edges, weight, terminals.tolist())
    assert weight[in_tree].sum(dtype=float) == best


@pytest.mark.parametrize(("num_nodes", "count"), [(16, 300), (128, 12), (512, 2)])
def test_tree_has_the_weight_that_scipy_finds(shard, num_nodes, count):
    task = shard(num_nodes, count)
    weight, is_terminal, in_tree = label_shard(*task)
    assert (weight.dtype, is_terminal.dtype, in_tree.dtype) == (np.float32, np.uint8, np.uint8)
    for graph, (rows, edges) in enumerate(task.graphs()):
        terminals = np.flatnonzero(is_terminal[graph * num_nodes : (graph + 1) * num_nodes])
        assert len(terminals) == 3
        own = in_tree[rows].astype(bool)
        check_is_minimal_tree(num_nodes, edges, own, terminals.tolist())
        assert weight[rows][own].sum(dtype=float) == best_over_meeting_nodes(num_nodes, edges, weight[rows], terminals)


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 30), st.floats(0, 1), st.integers(0, 10**6))
def test_tree_moves_with_the_nodes(random_edges, num_nodes, p, seed):
    rng = np.random.default_rng(seed)
    edges = connected(random_edges, num_nodes, p, seed)
    weight = rng.uniform(0.1, 10, len(edges)).astype(np.float32)
    terminals, new_id = rng.choice(num_nodes, 3, replace=False), rng.permutation(num_nodes)
    moved = np.sort(new_id[edges].astype(np.int32), axis=1)
    order = np.lexsort((moved[:, 1], moved[:, 0]))
    in_moved = steiner_tree(num_nodes, moved[order], weight[order], new_id[terminals])
    np.testing.assert_array_equal(in_moved, steiner_tree(num_nodes, edges, weight, terminals)[order])


def test_meeting_node_need_not_be_a_terminal():
    edges = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]], np.int32)
    weight = np.array([1, 1, 1, 1.75, 1.75, 1.75], np.float32)
    assert steiner_tree(4, edges, weight, np.array([1, 2, 3])).tolist() == [True] * 3 + [False] * 3
    weight[3:] = 1.25  # now two sides of the triangle are lighter
    tree = steiner_tree(4, edges, weight, np.array([1, 2, 3]))
    assert weight[tree].sum() == 2.5


def test_ties_follow_the_smallest_ids():
    square = np.array([[0, 1], [0, 3], [1, 2], [2, 3], [2, 4]], np.int32)  # 0 to 2 over 1 or over 3
    tree = steiner_tree(5, square, np.ones(5, np.float32), np.array([0, 2, 4]))
    assert tree.tolist() == [True, False, True, False, True]


def test_part_above_the_branching_is_cut_off():
    # 1e-9 vanishes beside 1e9, so nodes 0 and 1 look like equally good meeting nodes; only node 1 branches.
    edges = np.array([[0, 1], [1, 2], [1, 3], [1, 4]], np.int32)
    tree = steiner_tree(5, edges, np.array([1e-9, 1e9, 1e9, 1e9]), np.array([2, 3, 4]))
    assert tree.tolist() == [False, True, True, True]


def test_errors(shard):
    with pytest.raises(ValueError, match="no path joins the terminals"):
        steiner_tree(4, np.array([[0, 1], [2, 3]], np.int32), np.ones(2, np.float32), np.array([0, 1, 2]))
    task = shard(16, 1)
    pair = task._replace(num_nodes=2, edge_ptr=np.array([0, 1]), edges=np.array([[0, 1]], np.int32))
    with pytest.raises(ValueError, match="fewer than 3 nodes"):
        label_shard(*pair)


def test_terminals_and_weights_are_uniform(shard):
    weight, is_terminal, _ = label_shard(*shard(16, 2000))
    assert stats.chisquare(is_terminal.reshape(2000, 16).sum(0)).pvalue > 1e-4
    assert stats.kstest(weight, stats.uniform(0, 10).cdf).pvalue > 1e-4


def test_labels_do_not_depend_on_the_shard_but_on_the_attempt(shard):
    whole = label_shard(*shard(16, 20))
    parts = [label_shard(*shard(16, count, first)) for first, count in ((0, 7), (7, 13))]
    for array, *pieces in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(array, np.concatenate(pieces))
    task = shard(16, 20)
    again = label_shard(*task._replace(attempts=task.attempts + 1))
    assert all((a != b).any() for a, b in zip(whole, again, strict=True))
