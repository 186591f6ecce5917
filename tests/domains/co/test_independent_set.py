import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphbench.core.neighbours import neighbour_lists
from graphbench.domains.co.checkers import check_independent_set
from graphbench.domains.co.cover_search import search_independent_set
from graphbench.domains.co.independent_set import IndependentSetEffort, find_independent_set
from graphbench.domains.co.set_bounds import Complement
from graphbench.domains.co.set_reductions import expand_set, reduce_set
from graphbench.domains.co.solvers import random_state

QUICK = IndependentSetEffort(steps=200, nodes=10_000)


def test_every_small_graph_is_solved(atlas, largest_set):
    for n, edges in atlas:
        label = find_independent_set(n, edges, QUICK)
        assert check_independent_set(n, edges, label) == []
        assert label.proved
        assert label.value == largest_set(n, edges)


@settings(max_examples=150, deadline=None)
@given(st.integers(8, 14), st.floats(0.1, 0.9), st.integers(0, 10**6))
def test_reductions_lose_no_node(random_edges, largest_set, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    reduced = reduce_set(num_nodes, edges)
    best = largest_set(num_nodes, edges)
    left = len(reduced.nodes)
    assert reduced.gained + (largest_set(left, reduced.edges) if left else 0) == best
    for subset in _largest_sets(left, reduced.edges, best - reduced.gained):
        members = expand_set(reduced, subset)
        assert members.sum() == best
        assert not (members[edges[:, 0]] & members[edges[:, 1]]).any()


def _largest_sets(num_nodes, edges, size):
    """Yield some independent sets of a given size."""
    sets = (np.isin(np.arange(num_nodes), c) for c in itertools.combinations(range(num_nodes), size))
    free = (s for s in sets if not (s[edges[:, 0]] & s[edges[:, 1]]).any())
    return itertools.islice(free, 5)


def test_reductions_meet_every_rule(random_edges):
    fates = np.concatenate([reduce_set(40, random_edges(40, 0.1, seed)).fate for seed in range(20)])
    assert set(fates.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("family", ["ba_small", "ba_large"])
def test_growing_graphs_are_proved_by_reductions(drawn, family):
    for n, edges in drawn(family, 10):
        label = find_independent_set(n, edges)
        assert check_independent_set(n, edges, label) == []
        assert label.proved
        assert label.effort == {"steps": 0, "nodes": 0}


def test_forests_and_bipartite_graphs_obey_koenig(edges_of):
    for seed in range(10):
        graph = nx.bipartite.random_graph(25, 30, 0.08, seed=seed)
        top = range(25)
        matching = nx.bipartite.hopcroft_karp_matching(graph, top)
        label = find_independent_set(55, edges_of(graph), QUICK)
        assert label.value == 55 - len(matching) // 2


@pytest.mark.parametrize("p", [0.1, 0.3, 0.6])
def test_random_graphs_equal_networkx(random_edges, p):
    for seed in range(4):
        edges = random_edges(45, p, seed)
        label = find_independent_set(45, edges, QUICK)
        complement = nx.complement(nx.Graph([*edges.tolist()]))
        complement.add_nodes_from(range(45))
        for v in set(range(45)) - set(edges.ravel().tolist()):
            complement.add_edges_from((v, u) for u in range(45) if u != v)
        assert check_independent_set(45, edges, label) == []
        assert label.proved
        assert label.value == nx.max_weight_clique(complement, weight=None)[1]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.floats(0.02, 0.5), st.integers(0, 10**6))
def test_proved_values_do_not_depend_on_names_or_seeds(random_edges, relabel, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    label = find_independent_set(num_nodes, edges, QUICK)
    other = find_independent_set(num_nodes, relabel(num_nodes, edges, seed), QUICK, seed + 1)
    assume(label.proved and other.proved)  # the effort is small, and now and then too small for 60 nodes
    assert label.value == other.value


@settings(max_examples=60, deadline=None)
@given(st.integers(5, 14), st.floats(0.1, 0.7), st.integers(0, 10**6))
def test_bounds_hold_without_search(random_edges, largest_set, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    best = largest_set(num_nodes, edges)
    assert Complement(num_nodes, edges).bound(1, num_nodes, 0) >= best
    complement = Complement(num_nodes, edges)
    members, left = complement.find(1, 10**6)
    assert left >= 0
    assert members.sum() == best
    assert complement.find(best + 1, 10**6)[0] is None
    label = find_independent_set(num_nodes, edges, IndependentSetEffort(steps=0, nodes=0))
    assert check_independent_set(num_nodes, edges, label) == []
    assert label.value <= best <= label.bound


def test_same_seed_gives_the_same_set(drawn):
    effort = IndependentSetEffort(steps=2000, nodes=100)
    for n, edges in drawn("er_small", 3):
        first, second = find_independent_set(n, edges, effort), find_independent_set(n, edges, effort)
        np.testing.assert_array_equal(first.solution, second.solution)
        assert (first.value, first.bound, first.effort) == (second.value, second.bound, second.effort)
    assert not np.array_equal(first.solution, find_independent_set(n, edges, effort, 1).solution)


def test_search_finds_the_planted_set():
    rng = np.random.default_rng(0)
    for _ in range(3):
        members = rng.choice(150, 40, replace=False)
        upper = np.triu(rng.random((150, 150)) < 0.3, 1)
        upper[np.ix_(members, members)] = False
        edges = np.argwhere(upper).astype(np.int32)
        found, steps = search_independent_set(
            edges, neighbour_lists(150, edges), np.zeros(150, np.bool_), 20_000, random_state(1, 0)
        )
        assert steps == 20_000
        assert set(members.tolist()) <= set(np.flatnonzero(found).tolist())


def test_search_never_returns_less_than_it_started_with(random_edges):
    edges = random_edges(60, 0.2, 1)
    lists = neighbour_lists(60, edges)
    best, _ = search_independent_set(edges, lists, np.zeros(60, np.bool_), 5000, random_state(1, 0))
    again, steps = search_independent_set(edges, lists, best, 0, random_state(1, 0))
    assert steps == 0
    np.testing.assert_array_equal(best, again)


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_graphs_without_edges_and_complete_graphs(num_nodes, edges_of):
    assert find_independent_set(num_nodes, np.empty((0, 2), np.int32)).value == num_nodes
    assert find_independent_set(num_nodes, edges_of(nx.complete_graph(num_nodes))).value == 1
    lists = neighbour_lists(num_nodes, np.empty((0, 2), np.int32))
    empty = np.zeros(num_nodes, np.bool_)
    found, _ = search_independent_set(np.empty((0, 2), np.int32), lists, empty, 10, random_state(1, 0))
    assert found.all()


def test_search_on_a_single_edge():
    edges = np.array([[0, 1]], np.int32)
    found, _ = search_independent_set(edges, neighbour_lists(2, edges), np.zeros(2, np.bool_), 10, random_state(1, 0))
    assert found.sum() == 1


def test_model_rb_graphs_of_the_paper_are_proved(drawn):
    for n, edges in drawn("rb_small", 6):
        label = find_independent_set(n, edges, IndependentSetEffort(steps=5000, nodes=100_000))
        assert check_independent_set(n, edges, label) == []
        assert label.proved
