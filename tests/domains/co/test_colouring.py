import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.neighbours import neighbour_lists
from graphbench.domains.co.checkers import check_colouring
from graphbench.domains.co.colouring import ColouringEffort, find_colouring
from graphbench.domains.co.colouring_search import complete_colouring, dsatur, remove_conflicts, use_fewer_colours
from graphbench.domains.co.solvers import random_state

QUICK = ColouringEffort(steps=3000, clique_steps=300)


def planted_colouring(num_nodes, colours, p, seed):
    """Return a random graph that can be coloured with few colours, as edges."""
    rng = np.random.default_rng(seed)
    part = rng.permutation(np.arange(num_nodes) % colours)
    upper = np.triu((rng.random((num_nodes, num_nodes)) < p) & (part[:, None] != part), 1)
    return np.argwhere(upper).astype(np.int32)


def conflicts(edges, colour):
    return int((colour[edges[:, 0]] == colour[edges[:, 1]]).sum())


def test_every_small_graph_is_solved(atlas, chromatic_number):
    for n, edges in atlas:
        label = find_colouring(n, edges, ColouringEffort(steps=100, clique_steps=50))
        assert check_colouring(n, edges, label) == []
        assert label.bound <= chromatic_number(n, edges) == label.value


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 12), st.floats(0.1, 0.95), st.integers(0, 10**6))
def test_values_and_bounds_against_all_colourings(random_edges, relabel, chromatic_number, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    least = chromatic_number(num_nodes, edges)
    for number, graph in enumerate((edges, relabel(num_nodes, edges, seed))):
        label = find_colouring(num_nodes, graph, QUICK, number)
        assert check_colouring(num_nodes, graph, label) == []
        assert label.bound <= least == label.value


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(0.0, 0.6), st.integers(0, 10**6))
def test_dsatur_is_a_colouring(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    colour, colours = dsatur(neighbour_lists(num_nodes, edges))
    assert conflicts(edges, colour) == 0
    assert set(colour.tolist()) == set(range(colours))


def test_dsatur_needs_two_colours_on_bipartite_graphs(edges_of):
    for seed in range(30):
        graph = nx.bipartite.random_graph(20, 25, 0.07, seed=seed)
        label = find_colouring(45, edges_of(graph), QUICK)
        assert label.value == label.bound == 2


def test_three_colours_are_proved_by_an_odd_cycle(edges_of):
    for n in (3, 5, 9, 21):
        label = find_colouring(n, edges_of(nx.cycle_graph(n)), QUICK)
        assert label.value == label.bound == 3


@pytest.mark.parametrize("search", [remove_conflicts, complete_colouring])
@pytest.mark.parametrize(("num_nodes", "colours", "p"), [(60, 3, 0.3), (90, 5, 0.5), (100, 8, 0.9)])
def test_searches_find_planted_colourings(search, num_nodes, colours, p):
    for seed in range(3):
        edges = planted_colouring(num_nodes, colours, p, seed)
        lists = neighbour_lists(num_nodes, edges)
        start = np.zeros(num_nodes, np.int32) if search is remove_conflicts else np.full(num_nodes, -1, np.int32)
        solved, steps = search(lists, start, colours, 20_000, random_state(1, seed))
        assert solved
        assert 0 < steps < 20_000
        assert conflicts(edges, start) == 0
        assert start.min() >= 0
        assert start.max() < colours


@pytest.mark.parametrize("search", [remove_conflicts, complete_colouring])
def test_searches_give_up_on_too_few_colours(search, edges_of):
    edges = edges_of(nx.complete_graph(6))
    lists = neighbour_lists(6, edges)
    start = np.full(6, 0 if search is remove_conflicts else -1, np.int32)
    colour = start.copy()
    assert search(lists, colour, 5, 500, random_state(1, 0)) == (False, 500)
    coloured = colour[edges].min(axis=1) >= 0
    assert conflicts(edges[coloured], colour) == (1 if search is remove_conflicts else 0)
    assert search(lists, start, 1, 50, random_state(1, 0)) == (False, 50)


@pytest.mark.parametrize("partial", [False, True])
def test_use_fewer_colours_stops_where_it_should(partial):
    edges = planted_colouring(80, 4, 0.4, 0)
    lists = neighbour_lists(80, edges)
    start = np.arange(80, dtype=np.int32)
    for least, steps in ((10, 10**5), (4, 10**5), (1, 0), (1, 3000)):
        colour, colours, spent = use_fewer_colours(lists, start, 80, least, steps, partial, random_state(1, 0))
        assert conflicts(edges, colour) == 0
        assert colour.max() == colours - 1
        assert spent <= steps
        assert colours == {10**5: least, 0: 80, 3000: 4}[steps]


def test_graphs_whose_cliques_do_not_tell(edges_of):
    graph = nx.mycielskian(nx.cycle_graph(5))  # no triangle, four colours
    label = find_colouring(11, edges_of(graph), QUICK)
    assert (label.value, label.bound, label.proved) == (4, 3, False)


@pytest.mark.parametrize("num_nodes", [1, 2, 6])
def test_graphs_without_edges_and_complete_graphs(num_nodes, edges_of):
    empty = find_colouring(num_nodes, np.empty((0, 2), np.int32), QUICK)
    assert (empty.value, empty.bound) == (1, 1)
    full = find_colouring(num_nodes, edges_of(nx.complete_graph(num_nodes)), QUICK)
    assert (full.value, full.bound) == (num_nodes, num_nodes)
    assert full.solution.tolist() == list(range(num_nodes))


@pytest.mark.parametrize("family", ["ba_small", "ba_large"])
def test_growing_graphs_need_three_colours(drawn, family):
    for n, edges in drawn(family, 10):
        label = find_colouring(n, edges)
        assert check_colouring(n, edges, label) == []
        assert (label.value, label.proved) == (3, True)


@pytest.mark.parametrize("family", ["rb_small", "er_small"])
def test_same_seed_gives_the_same_colouring(drawn, family):
    for n, edges in drawn(family, 3):
        first, second = find_colouring(n, edges, QUICK), find_colouring(n, edges, QUICK)
        assert check_colouring(n, edges, first) == []
        assert first.value < dsatur(neighbour_lists(n, edges))[1] or first.proved
        np.testing.assert_array_equal(first.solution, second.solution)
        assert (first.bound, first.effort) == (second.bound, second.effort)
