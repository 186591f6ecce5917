import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.co.checkers import check_cut
from graphbench.domains.co.cut_bounds import eigenvalue_bound, pack_odd_cycles
from graphbench.domains.co.cut_elimination import heaviest_cut
from graphbench.domains.co.cut_reductions import expand_cut, reduce_cut
from graphbench.domains.co.cut_search import search_cut
from graphbench.domains.co.elimination_plan import plan_elimination
from graphbench.domains.co.max_cut import MaxCutEffort, find_cut
from graphbench.domains.co.solvers import random_state

QUICK = MaxCutEffort(steps=300)


def signed_graph(num_nodes, p, seed):
    """Return edges with random weights of both signs, and the neighbour lists the kernels take."""
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((num_nodes, num_nodes)) < p, 1))
    weights = rng.integers(1, 5, len(edges)) * rng.choice([-1, 1, 1], len(edges))
    matrix = np.zeros((num_nodes, num_nodes), np.int32)
    matrix[edges[:, 0], edges[:, 1]] = weights
    matrix += matrix.T
    source, near = np.nonzero(matrix)
    first = np.searchsorted(source, np.arange(num_nodes + 1)).astype(np.int64)
    return edges, weights, (first, near.astype(np.int32), matrix[source, near])


def weight_of(edges, weights, side):
    return int(weights[side[edges[:, 0]] != side[edges[:, 1]]].sum())


def test_every_small_graph_is_solved(atlas, heaviest):
    for n, edges in atlas:
        label = find_cut(n, edges, QUICK)
        assert check_cut(n, edges, label) == []
        assert label.proved
        assert label.value == heaviest(n, edges)


@settings(max_examples=100, deadline=None)
@given(st.integers(6, 13), st.floats(0.2, 0.9), st.integers(0, 10**6))
def test_reductions_lose_no_edge(random_edges, heaviest, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    rest = reduce_cut(num_nodes, edges)
    k = len(rest.nodes)
    source = np.repeat(np.arange(k), np.diff(rest.first))
    assert (np.bincount(source, minlength=k) > 3).all()
    once = source < rest.near
    pairs, weights = np.stack([source, rest.near], 1)[once], rest.weight[once]
    best = heaviest(k, pairs, weights) if k else 0
    assert rest.constant + best == 2 * heaviest(num_nodes, edges)
    for side in np.random.default_rng(seed).random((4, k)) < 0.5:
        full = expand_cut(num_nodes, rest, side)
        np.testing.assert_array_equal(full[rest.nodes], side)
        assert 2 * weight_of(edges, np.ones(len(edges), int), full) == rest.constant + weight_of(pairs, weights, side)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 13), st.floats(0.2, 1.0), st.integers(1, 4), st.integers(0, 10**6))
def test_elimination_finds_the_heaviest_cut(heaviest, num_nodes, p, width, seed):
    edges, weights, lists = signed_graph(num_nodes, p, seed)
    best = heaviest(num_nodes, edges, weights)
    found, plan = plan_elimination(*lists, width, num_nodes)
    assert found
    assert sorted([*plan.hubs.tolist(), *plan.order.tolist()]) == list(range(num_nodes))
    assert plan.size.max(initial=0) <= width
    value, side, bound, _ = heaviest_cut(plan, best - 3, 1, 10**6)
    assert value == bound == best
    assert weight_of(edges, weights, side) == best
    value, _, bound, _ = heaviest_cut(plan, best, 1, 10**6)
    assert value == bound == best


@settings(max_examples=60, deadline=None)
@given(st.integers(10, 13), st.floats(0.5, 1.0), st.integers(0, 3), st.integers(0, 10**6))
def test_bounds_hold_when_branches_are_left_over(heaviest, num_nodes, p, batches, seed):
    edges, weights, lists = signed_graph(num_nodes, p, seed)
    best = heaviest(num_nodes, edges, weights)
    _, plan = plan_elimination(*lists, 1, num_nodes)
    value, _, bound, spent = heaviest_cut(plan, best - 2, 1, batches)
    assert spent <= batches
    assert value <= best <= bound


def test_plans_need_no_more_hubs_than_allowed():
    _, _, lists = signed_graph(30, 0.5, 1)
    found, plan = plan_elimination(*lists, 2, 3)
    assert not found
    assert len(plan.hubs) == 0


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 13), st.floats(0.1, 1.0), st.integers(0, 10**6))
def test_quick_bounds_hold(heaviest, num_nodes, p, seed):
    edges, weights, lists = signed_graph(num_nodes, p, seed)
    best = heaviest(num_nodes, edges, weights)
    missed = pack_odd_cycles(*lists)
    assert missed >= 0
    assert weights[weights > 0].sum() - missed >= best
    if len(edges):
        assert eigenvalue_bound(*lists) >= best


def test_quick_bounds_are_tight_where_they_should_be(edges_of):
    for n, graph in ((5, nx.cycle_graph(5)), (7, nx.cycle_graph(7)), (3, nx.cycle_graph(3))):
        lists = reduce_free_lists(n, edges_of(graph))
        assert pack_odd_cycles(*lists) == 1
    lists = reduce_free_lists(12, edges_of(nx.complete_bipartite_graph(5, 7)))
    assert pack_odd_cycles(*lists) == 0
    assert eigenvalue_bound(*lists) == 35
    lists = reduce_free_lists(6, edges_of(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))))
    assert pack_odd_cycles(*lists) == 2


def reduce_free_lists(num_nodes, edges):
    matrix = np.zeros((num_nodes, num_nodes), np.int32)
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = 1
    source, near = np.nonzero(matrix)
    return np.searchsorted(source, np.arange(num_nodes + 1)), near.astype(np.int32), matrix[source, near]


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.floats(0.2, 1.0), st.integers(0, 10**6))
def test_search_reports_the_weight_of_its_cut(heaviest, num_nodes, p, seed):
    edges, weights, lists = signed_graph(num_nodes, p, seed)
    side, value = search_cut(*lists, 2000, random_state(1, seed))
    assert weight_of(edges, weights, side) == value == heaviest(num_nodes, edges, weights)


def test_growing_graphs_of_the_paper_are_proved(drawn):
    for n, edges in drawn("ba_small", 8):
        label = find_cut(n, edges)
        assert check_cut(n, edges, label) == []
        assert label.proved
        assert label.effort["batches"] > 0


def test_proof_mends_a_poor_search(drawn):
    n, edges = drawn("ba_small", 1)[0]
    best = find_cut(n, edges)
    mended = find_cut(n, edges, MaxCutEffort(steps=30))
    assert mended.proved
    assert check_cut(n, edges, mended) == []
    assert mended.value == best.value
    assert find_cut(n, edges, MaxCutEffort(steps=30, batches=0)).value < best.value


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 50), st.floats(0.05, 0.15), st.integers(0, 10**6))
def test_proved_values_do_not_depend_on_names_or_seeds(random_edges, relabel, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    label = find_cut(num_nodes, edges, QUICK)
    other = find_cut(num_nodes, relabel(num_nodes, edges, seed), QUICK, seed + 1)
    assert label.proved
    assert other.proved
    assert label.value == other.value


@pytest.mark.parametrize("family", ["rb_small", "er_small", "ba_large"])
def test_bounds_and_values_of_unproved_graphs(drawn, family):
    for n, edges in drawn(family, 3):
        label = find_cut(n, edges, MaxCutEffort(steps=5000, batches=0))
        assert check_cut(n, edges, label) == []
        assert label.value < label.bound < len(edges)
        again = find_cut(n, edges, MaxCutEffort(steps=5000, batches=0))
        np.testing.assert_array_equal(label.solution, again.solution)
        assert label.bound == again.bound


@pytest.mark.parametrize("graph", [nx.petersen_graph(), nx.complete_bipartite_graph(6, 7), nx.complete_graph(11)])
def test_known_graphs(edges_of, graph):
    expected = {15: 12, 42: 42, 55: 30}
    label = find_cut(len(graph), edges_of(graph), QUICK)
    assert label.proved
    assert label.value == expected[graph.number_of_edges()]
    assert label.solution[0] == 0


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_graphs_without_edges(num_nodes):
    label = find_cut(num_nodes, np.empty((0, 2), np.int32))
    assert (label.value, label.bound) == (0, 0)
