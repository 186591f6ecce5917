import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.core.rng import seed as seed_state
from graphbench.domains.algoreas.mst import label_shard, minimum_spanning_tree
from graphbench.domains.algoreas.weights import distinct_integers, distinct_weights, grid_step


def networkx_tree(num_nodes, edges, weight):
    graph = nx.empty_graph(num_nodes)
    graph.add_weighted_edges_from((int(u), int(v), float(w)) for (u, v), w in zip(edges, weight, strict=True))
    tree = {tuple(sorted(edge)) for edge in nx.minimum_spanning_edges(graph, "kruskal", data=False)}
    return [tuple(edge) in tree for edge in edges.tolist()]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.integers(1, 6))
def test_tree_is_the_lightest_of_all_spanning_trees(random_edges, num_nodes, seed, largest):
    edges = random_edges(num_nodes, 0.8, seed)
    weight = np.random.default_rng(seed).integers(1, largest + 1, len(edges)).astype(np.float32)  # with ties
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(edges.tolist())
    size = num_nodes - nx.number_connected_components(graph)
    totals = []
    for chosen in itertools.combinations(range(len(edges)), size):
        forest = nx.empty_graph(num_nodes)
        forest.add_edges_from(edges[list(chosen)].tolist())
        if nx.is_forest(forest):
            totals.append(weight[list(chosen)].sum())
    in_tree = minimum_spanning_tree(num_nodes, edges, weight)
    assert in_tree.sum() == size
    assert weight[in_tree].sum() == min(totals)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 10**6), st.integers(1, 100))
def test_ties_go_to_the_edge_stored_first(random_edges, num_nodes, p, seed, largest):
    edges = random_edges(num_nodes, p, seed)
    weight = np.random.default_rng(seed).integers(1, largest + 1, len(edges)).astype(np.float32)
    in_tree = minimum_spanning_tree(num_nodes, edges, weight)
    assert in_tree.tolist() == networkx_tree(num_nodes, edges, weight)  # Kruskal with a stable sort


@pytest.mark.parametrize(("num_nodes", "count"), [(6, 100), (16, 300), (128, 12), (512, 2)])
def test_tree_is_that_of_networkx(shard, num_nodes, count):
    task = shard(num_nodes, count)
    weight, in_tree = label_shard(*task)
    assert (weight.dtype, in_tree.dtype) == (np.float32, np.uint8)
    for rows, edges in task.graphs():
        assert in_tree[rows].tolist() == networkx_tree(task.num_nodes, edges, weight[rows])


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 10**6))
def test_tree_moves_with_the_nodes(random_edges, num_nodes, p, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(num_nodes, p, seed)
    weight = rng.permutation(len(edges)).astype(np.float32)
    moved = np.sort(rng.permutation(num_nodes)[edges].astype(np.int32), axis=1)
    order = np.lexsort((moved[:, 1], moved[:, 0]))
    in_moved = minimum_spanning_tree(num_nodes, moved[order], weight[order])
    np.testing.assert_array_equal(in_moved, minimum_spanning_tree(num_nodes, edges, weight)[order])


def test_labels_do_not_depend_on_the_shard_but_on_the_attempt(shard):
    whole = label_shard(*shard(16, 20))
    parts = [label_shard(*shard(16, count, first)) for first, count in ((0, 7), (7, 13))]
    for array, *pieces in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(array, np.concatenate(pieces))
    task = shard(16, 20)
    assert (label_shard(*task._replace(attempts=task.attempts + 1))[0] != whole[0]).mean() > 0.99


# --- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "bits"), [(1, 24), (2, 23), (3, 22), (4, 22), (5, 21), (10, 20)])
def test_grid_is_the_finest_that_float32_holds(scale, bits):
    step = grid_step(float(scale))
    assert step == 2.0**-bits
    near_scale = np.float64(scale) - np.arange(1, 1000) * step
    assert (near_scale.astype(np.float32) == near_scale).all()
    finer = np.float64(scale) - np.arange(1, 1000) * step / 2
    assert scale in (1, 2, 4) or (finer.astype(np.float32) != finer).any()


@pytest.mark.parametrize("scale", [1.0, 3.0, 5.0, 10.0])
def test_weights_are_distinct_uniform_and_on_the_grid(scale):
    weights = distinct_weights(seed_state(np.uint64(3), 0, 0, 1), 30000, scale)
    assert weights.dtype == np.float32
    assert len(np.unique(weights)) == 30000
    assert weights.min() > 0 and weights.max() < scale
    assert (weights.astype(np.float64) / grid_step(scale) % 1 == 0).all()
    assert stats.kstest(weights, stats.uniform(0, scale).cdf).pvalue > 1e-4


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**40), st.integers(2, 200), st.data())
def test_integers_are_distinct_even_when_nearly_all_are_taken(index, bound, data):
    count = data.draw(st.integers(0, bound - 1))
    integers = distinct_integers(seed_state(np.uint64(3), index, 0, 1), count, bound)
    assert len(set(integers.tolist())) == count
    assert set(integers.tolist()) <= set(range(1, bound))


def test_integers_are_uniform_over_ordered_selections():
    counts = np.zeros((4, 4))
    for index in range(6000):
        first, second = distinct_integers(seed_state(np.uint64(3), index, 0, 1), 2, 5)
        counts[first - 1, second - 1] += 1
    assert (counts.diagonal() == 0).all()
    assert stats.chisquare(counts[~np.eye(4, dtype=bool)]).pvalue > 1e-4


def test_more_weights_than_grid_points_is_an_error():
    with pytest.raises(ValueError, match="more distinct weights"):
        distinct_integers(seed_state(np.uint64(3), 0, 0, 1), 5, 5)
