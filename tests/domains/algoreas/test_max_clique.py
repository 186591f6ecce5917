import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.rng import seed as seed_state
from graphbench.domains.algoreas.bits import adjacency_rows
from graphbench.domains.algoreas.clique_local_search import improve_clique, stranger_rows
from graphbench.domains.algoreas.max_clique import label_shard, maximum_clique, search_clique

AMPLE = 10**9


def nodes_of(row):
    """Return the sorted nodes of a set of words."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def proved_clique(num_nodes, edges, node_limit=AMPLE):
    members, proved = maximum_clique(num_nodes, edges, node_limit)
    assert members.shape == (num_nodes,)
    assert proved
    return np.flatnonzero(members).tolist()


def searched_clique(num_nodes, edges):
    """Return the result of the search for large graphs, whatever the size."""
    row, proved = search_clique(num_nodes, edges, AMPLE)
    assert proved
    return nodes_of(row)


def as_graph(num_nodes, edges):
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(edges.tolist())
    return graph


def as_edges(graph):
    return np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), np.int32).reshape(-1, 2)


def first_largest(num_nodes, edges):
    """Return the lexicographically smallest of all maximum cliques, by listing every maximal clique."""
    return min((sorted(c) for c in nx.find_cliques(as_graph(num_nodes, edges))), key=lambda c: (-len(c), c))


def is_maximal_clique(num_nodes, edges, members):
    graph = as_graph(num_nodes, edges)
    complete = all(graph.has_edge(u, v) for u, v in itertools.combinations(members, 2))
    common = set(graph).intersection(*(graph[v] for v in members)) if members else set(graph)
    return complete and not common


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 14), st.floats(0.0, 1.0), st.integers(0, 10**6))
def test_clique_is_the_first_of_the_largest(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    expected = first_largest(num_nodes, edges)
    assert proved_clique(num_nodes, edges) == expected
    assert searched_clique(num_nodes, edges) == expected


@pytest.mark.parametrize(("num_nodes", "p"), [(40, 0.3), (40, 0.75), (63, 0.6), (64, 0.6), (65, 0.6), (110, 0.4)])
@pytest.mark.thorough
def test_clique_equals_networkx_on_larger_graphs(random_edges, num_nodes, p):
    for seed in range(8):
        edges = random_edges(num_nodes, p, seed)
        expected = first_largest(num_nodes, edges)
        assert proved_clique(num_nodes, edges) == expected
        assert searched_clique(num_nodes, edges) == expected


@pytest.mark.parametrize(("num_nodes", "p"), [(64, 0.9), (90, 0.75)])
def test_size_equals_networkx_on_dense_graphs(random_edges, num_nodes, p):
    edges = random_edges(num_nodes, p, 0)
    found = proved_clique(num_nodes, edges)
    assert len(found) == nx.max_weight_clique(as_graph(num_nodes, edges), weight=None)[1]
    assert is_maximal_clique(num_nodes, edges, found)


def test_both_searches_agree_where_listing_all_cliques_takes_too_long(random_edges):
    for seed in range(25):
        edges = random_edges(58, 0.9, seed)
        assert searched_clique(58, edges) == proved_clique(58, edges)


@pytest.mark.parametrize(("parts", "width"), [(5, 3), (12, 4), (30, 3), (60, 2), (33, 5)])
@pytest.mark.thorough
def test_complete_multipartite_graph_takes_the_smallest_node_of_each_part(parts, width):
    # width ** parts maximum cliques: ties everywhere.
    num_nodes = parts * width
    part = np.random.default_rng(parts).permutation(np.arange(num_nodes) % parts)
    upper = np.triu(part[:, None] != part[None, :])
    edges = np.argwhere(upper).astype(np.int32)
    expected = sorted(int(np.flatnonzero(part == k)[0]) for k in range(parts))
    assert proved_clique(num_nodes, edges) == expected
    assert searched_clique(num_nodes, edges) == expected


@pytest.mark.parametrize("num_nodes", [1, 2, 64, 65, 130])
def test_extreme_graphs(num_nodes):
    assert proved_clique(num_nodes, np.empty((0, 2), np.int32)) == [0]
    assert proved_clique(num_nodes, as_edges(nx.complete_graph(num_nodes))) == list(range(num_nodes))
    assert proved_clique(num_nodes, as_edges(nx.path_graph(num_nodes))) == list(range(min(2, num_nodes)))


def test_hidden_clique_is_found(random_edges):
    hidden = sorted(np.random.default_rng(5).choice(200, 24, replace=False).tolist())
    graph = as_graph(200, random_edges(200, 0.5, 5))
    graph.add_edges_from(itertools.combinations(hidden, 2))
    assert set(hidden) <= set(proved_clique(200, as_edges(graph)))


@settings(max_examples=25, deadline=None)
@given(st.integers(60, 100), st.floats(0.1, 0.8), st.integers(0, 10**6))
def test_size_does_not_depend_on_names(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    name = np.random.default_rng(seed).permutation(num_nodes)
    renamed = np.sort(name[edges].astype(np.int32).reshape(-1, 2), axis=1)
    found, moved = proved_clique(num_nodes, edges), proved_clique(num_nodes, renamed)
    assert len(found) == len(moved)
    assert moved <= sorted(name[found].tolist())


@pytest.mark.thorough
def test_dense_graphs_of_the_test_split_are_proved(random_edges):
    for p, seed in itertools.product((0.75, 0.9), range(6)):
        edges = random_edges(128, p, seed)
        found = proved_clique(128, edges, 100_000)
        assert is_maximal_clique(128, edges, found)
        unproved, _ = maximum_clique(128, edges, 1)
        assert unproved.sum() == len(found)  # the local search alone meets the maximum on such graphs


def test_without_budget_the_result_is_a_maximal_clique_and_not_proved(random_edges):
    for num_nodes, limit in ((60, 1), (100, 1), (100, 30)):
        edges = random_edges(num_nodes, 0.9, 3)
        members, proved = maximum_clique(num_nodes, edges, limit)
        again, _ = maximum_clique(num_nodes, edges, limit)
        assert not proved
        assert np.array_equal(members, again)
        assert is_maximal_clique(num_nodes, edges, np.flatnonzero(members).tolist())


def test_a_hopeless_search_is_not_begun(random_edges):
    edges = random_edges(300, 0.9, 1)
    members, proved = maximum_clique(300, edges, 10**5)
    assert not proved
    assert is_maximal_clique(300, edges, np.flatnonzero(members).tolist())
    assert members.sum() >= 46  # what ten times as long a walk finds


def test_budget_decides_whether_the_first_of_several_cliques_is_proved(random_edges):
    edges = random_edges(128, 0.9, 1)
    outcomes = [maximum_clique(128, edges, limit) for limit in (1, 3_000, 10_000, 10**6)]
    proofs = [proved for _, proved in outcomes]
    assert proofs == sorted(proofs) and not proofs[0] and proofs[-1]
    assert len({int(members.sum()) for members, _ in outcomes}) == 1
    best = np.flatnonzero(outcomes[-1][0]).tolist()
    assert all(best <= np.flatnonzero(members).tolist() for members, _ in outcomes)


def test_local_search_keeps_a_clique_and_improves_it(random_edges):
    edges = random_edges(90, 0.7, 2)
    adjacency = adjacency_rows(90, edges)
    best = np.zeros(2, np.uint64)
    sizes = []
    for steps in (0, 20, 20_000):
        size = improve_clique(adjacency, stranger_rows(adjacency), steps, seed_state(np.uint64(1), 0, 0, 0), best)
        assert is_maximal_clique(90, edges, nodes_of(best))
        assert size == len(nodes_of(best))
        sizes.append(size)
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(proved_clique(90, edges)) > sizes[0]


@pytest.mark.parametrize("num_nodes", [16, 80])
def test_labels_are_the_cliques_of_the_graphs(shard, num_nodes):
    graphs = shard(num_nodes, 60)
    in_clique, proved = label_shard(*graphs, AMPLE)
    assert in_clique.dtype == proved.dtype == np.uint8
    assert proved.all()
    for members, (_, edges) in zip(in_clique.reshape(60, num_nodes), graphs.graphs(), strict=True):
        assert np.flatnonzero(members).tolist() == first_largest(num_nodes, edges)


def test_labels_do_not_depend_on_sharding(shard):
    whole = label_shard(*shard(70, 20), 50)
    parts = [label_shard(*shard(70, 7), 50), label_shard(*shard(70, 13, first=7), 50)]
    for k in range(2):
        assert np.array_equal(whole[k], np.concatenate([part[k] for part in parts]))
