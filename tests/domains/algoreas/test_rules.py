"""Structural rules beside independent implementations, on random graphs and on graphs made by hand."""

from dataclasses import replace
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import rules_of
from graphbench.domains.algoreas import rules

SEEDS = st.integers(0, 10**6)


def as_samples(graphs, **values):
    """Return (nodes, edges) pairs as samples with the given values, one array per graph, joined."""
    edges = [np.array(edges, np.int32).reshape(-1, 2) for _, edges in graphs]
    return Samples(
        np.array([nodes for nodes, _ in graphs], np.int64),
        np.array([len(own) for own in edges], np.int64),
        np.concatenate(edges),
        {name: np.concatenate(parts) for name, parts in values.items()},
    )


def drawn(seed, p=0.3, most=12, least=2):
    """Return a random graph, which may be disconnected or without edges, and its source of random numbers."""
    source = np.random.default_rng(seed)
    nodes = int(source.integers(least, most + 1))
    return nodes, sorted(tuple(sorted(e)) for e in nx.gnp_random_graph(nodes, p, seed=seed).edges), source


def as_networkx(nodes, edges, weight=None):
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from((u, v, 1.0 if weight is None else float(weight[j])) for j, (u, v) in enumerate(edges))
    return graph


def split_by(ptr, values):
    return [values[a:b] for a, b in pairwise(ptr)]


# Flow


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_the_smaller_capacity_is_that_of_the_arcs_at_source_and_sink(seed):
    nodes, edges, source = drawn(seed)
    capacity = source.uniform(0, 3, (len(edges), 2)).astype(np.float32)
    start, end = source.choice(nodes, 2, replace=False)
    network = nx.DiGraph()
    network.add_nodes_from(range(nodes))
    for (u, v), (there, back) in zip(edges, capacity.tolist(), strict=True):
        network.add_edge(u, v, capacity=there)
        network.add_edge(v, u, capacity=back)
    masks = {"source": np.arange(nodes) == start, "sink": np.arange(nodes) == end}
    twice = {name: [mask.astype(np.uint8)] * 2 for name, mask in masks.items()}
    samples = as_samples([(nodes, edges)] * 2, capacity=[capacity, capacity], **twice)
    found = rules.smaller_capacity(samples)["value"]
    out_of = sum(data["capacity"] for _, _, data in network.out_edges(start, data=True))
    into = sum(data["capacity"] for _, _, data in network.in_edges(end, data=True))
    assert found == pytest.approx([min(out_of, into)] * 2)
    assert found[0] >= nx.maximum_flow_value(network, start, end) - 1e-6


def test_a_source_without_edges_has_no_capacity():
    samples = as_samples(
        [(3, [(1, 2)])],
        capacity=[np.ones((1, 2), np.float32)],
        source=[np.array([1, 0, 0])],
        sink=[np.array([0, 0, 1])],
    )
    assert rules.smaller_capacity(samples)["value"].tolist() == [0.0]


# Bridges


def shortest_cycle(graph, u, v):
    """Return the number of edges of the shortest cycle through an edge; infinite for a bridge."""
    rest = graph.copy()
    rest.remove_edge(u, v)
    return nx.shortest_path_length(rest, u, v) + 1 if nx.has_path(rest, u, v) else np.inf


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(3, 8), st.sampled_from([0.1, 0.2, 0.4]))
def test_edges_without_a_short_cycle_are_predicted_as_bridges(seed, longest, p):
    graphs = [drawn(seed + i, p)[:2] for i in range(3)]
    samples = as_samples(graphs)
    found = rules.no_short_cycle(samples, longest)["is_bridge"]
    for (nodes, edges), predicted in zip(graphs, split_by(samples.edge_ptr, found), strict=True):
        graph = as_networkx(nodes, edges)
        assert predicted.tolist() == [shortest_cycle(graph, u, v) > longest for u, v in edges]


@pytest.mark.parametrize("length", [3, 7, 8, 20])
def test_the_edges_of_a_ring_are_bridges_for_a_rule_that_sees_less_than_the_ring(length):
    ring = sorted(tuple(sorted((i, (i + 1) % length))) for i in range(length))
    for longest in range(3, 22):
        found = rules.no_short_cycle(as_samples([(length, ring)]), longest)["is_bridge"]
        assert found.all() if longest < length else not found.any()


# Trees and matchings


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_lightest_edges_at_an_end_are_in_the_tree(seed):
    nodes, edges, source = drawn(seed)
    weight = source.permutation(len(edges)).astype(np.float32)
    found = rules.lightest_at_an_end(as_samples([(nodes, edges)], weight=[weight]))["in_tree"]
    graph = as_networkx(nodes, edges, weight)
    expected = set()
    for node in graph:
        if graph[node]:
            expected.add(tuple(sorted((node, min(graph[node], key=lambda other: graph[node][other]["weight"])))))
    assert {edge for edge, taken in zip(edges, found, strict=True) if taken} == expected
    tree = {tuple(sorted(edge[:2])) for edge in nx.minimum_spanning_edges(graph)}
    assert expected <= tree


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_the_greedy_matching_takes_the_heaviest_free_edge_again_and_again(seed):
    graphs = [drawn(seed + i) for i in range(3)]
    weights = [source.permutation(len(edges)).astype(np.float32) for _, edges, source in graphs]
    samples = as_samples([graph[:2] for graph in graphs], weight=weights)
    found = split_by(samples.edge_ptr, rules.heaviest_first(samples)["matched"])
    for (nodes, edges, _), weight, matched in zip(graphs, weights, found, strict=True):
        graph, expected = as_networkx(nodes, edges, weight), set()
        while graph.number_of_edges():
            u, v, _ = max(graph.edges(data="weight"), key=lambda edge: edge[2])
            expected.add(tuple(sorted((u, v))))
            graph.remove_nodes_from((u, v))
        taken = {edge for edge, chosen in zip(edges, matched, strict=True) if chosen}
        assert taken == expected
        whole = as_networkx(nodes, edges, weight)
        best = sum(whole[u][v]["weight"] for u, v in nx.max_weight_matching(whole))
        assert 2 * sum(whole[u][v]["weight"] for u, v in taken) >= best


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_the_two_shorter_of_the_paths_between_terminals_are_taken(seed):
    nodes, edges, source = drawn(seed, least=3)
    edges = sorted({*edges, *pairwise(range(nodes))})
    weight = source.uniform(1, 10, len(edges)).astype(np.float32)
    graph, terminals = as_networkx(nodes, edges, weight), source.choice(nodes, 3, replace=False).tolist()
    mask = np.isin(np.arange(nodes), terminals).astype(np.uint8)
    found = rules.two_shortest_paths(as_samples([(nodes, edges)], weight=[weight], is_terminal=[mask]))["in_tree"]
    pairs = sorted(combinations(terminals, 2), key=lambda pair: nx.dijkstra_path_length(graph, *pair))
    paths = [nx.dijkstra_path(graph, *pair) for pair in pairs[:2]]
    expected = {tuple(sorted(step)) for path in paths for step in pairwise(path)}
    assert {edge for edge, taken in zip(edges, found, strict=True) if taken} == expected


def test_terminals_without_a_path_between_them_are_not_joined():
    samples = as_samples(
        [(6, [(0, 1), (1, 2), (3, 4)])],
        weight=[np.ones(3, np.float32)],
        is_terminal=[np.array([1, 0, 1, 0, 1, 0], np.uint8)],
    )
    assert rules.two_shortest_paths(samples)["in_tree"].tolist() == [True, True, False]


# Cliques


def greedy_cliques_by_hand(nodes, edges):
    """Return the largest greedy cliques, each a list of nodes."""
    graph, cliques = as_networkx(nodes, edges), []
    for origin in range(nodes):
        clique, candidates = [origin], set(graph[origin])
        while candidates:
            best = min(candidates, key=lambda node: (-len(candidates & set(graph[node])), node))
            clique.append(best)
            candidates &= set(graph[best])
        cliques.append(sorted(clique))
    size = max(map(len, cliques))
    return [clique for clique in cliques if len(clique) == size]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.2, 0.6, 0.9]))
def test_greedy_cliques_are_those_by_hand_from_either_end_of_the_ids(seed, p):
    graphs = [drawn(seed + i, p)[:2] for i in range(3)]
    samples = as_samples(graphs)
    for largest_ids in (False, True):
        found = rules.greedy_clique(samples, largest_ids=largest_ids)["in_clique"]
        for (nodes, edges), chosen in zip(graphs, split_by(samples.node_ptr, found), strict=True):
            reversed_edges = [(nodes - 1 - u, nodes - 1 - v) for u, v in edges]
            expected = min(greedy_cliques_by_hand(nodes, reversed_edges if largest_ids else edges))
            expected = [nodes - 1 - v for v in reversed(expected)] if largest_ids else expected
            assert np.flatnonzero(chosen).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.2, 0.6, 0.9]))
def test_greedy_members_are_the_nodes_of_all_largest_greedy_cliques(seed, p):
    graphs = [drawn(seed + i, p)[:2] for i in range(3)]
    samples = as_samples(graphs)
    found = rules.greedy_members(samples)["is_member"]
    for graph, chosen in zip(graphs, split_by(samples.node_ptr, found), strict=True):
        assert np.flatnonzero(chosen).tolist() == sorted(set().union(*greedy_cliques_by_hand(*graph)))


def test_greedy_cliques_of_graphs_beyond_one_word():
    nodes = 70
    clique = list(range(60, 70))
    edges = sorted({*combinations(clique, 2), *((i, i + 1) for i in range(nodes - 1))})
    found = rules.greedy_clique(as_samples([(nodes, edges)]))["in_clique"]
    assert np.flatnonzero(found).tolist() == clique
    triangles = [(0, 1), (0, 2), (1, 2), (64, 65), (64, 66), (65, 66)]
    samples = as_samples([(nodes, triangles)])
    assert np.flatnonzero(rules.greedy_clique(samples)["in_clique"]).tolist() == [0, 1, 2]
    assert np.flatnonzero(rules.greedy_clique(samples, largest_ids=True)["in_clique"]).tolist() == [64, 65, 66]
    assert np.flatnonzero(rules.greedy_members(samples)["is_member"]).tolist() == [0, 1, 2, 64, 65, 66]


# Orders


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.1, 0.3, 0.6]))
def test_ranks_follow_the_largest_ancestor(seed, p):
    graphs = [drawn(seed + i, p) for i in range(2)]
    moved = [(nodes, source.permutation(nodes)) for nodes, _, source in graphs]
    arcs = [
        sorted((int(new[u]), int(new[v])) for u, v in edges)
        for (_, edges, _), (_, new) in zip(graphs, moved, strict=True)
    ]
    priority = [source.permutation(nodes).astype(np.float32) for nodes, _, source in graphs]
    samples = as_samples([(nodes, own) for (nodes, _, _), own in zip(graphs, arcs, strict=True)], priority=priority)
    found = split_by(samples.node_ptr, rules.largest_ancestor(samples)["rank"])
    for (nodes, _, _), own, first, rank in zip(graphs, arcs, priority, found, strict=True):
        graph = nx.DiGraph(own)
        graph.add_nodes_from(range(nodes))
        above = [nx.ancestors(graph, node) for node in range(nodes)]
        keys = [(max(first[a] for a in {*above[v], v}), len(above[v])) for v in range(nodes)]
        expected = [(sum(k < key for k in keys) + (keys.count(key) - 1) / 2) / max(nodes - 1, 1) for key in keys]
        assert rank == pytest.approx(expected)


def test_a_node_waits_for_its_ancestor_of_largest_priority():
    order = [(0, 1), (1, 2)]  # 0 -> 1 -> 2, and 3 alone
    samples = as_samples(
        [(4, order), (1, [])], priority=[np.array([3, 0, 1, 2], np.float32), np.array([0], np.float32)]
    )
    assert rules.largest_ancestor(samples)["rank"].tolist() == pytest.approx([1 / 3, 2 / 3, 1, 0, 0])


def test_arcs_that_close_a_cycle_are_refused():
    samples = as_samples([(2, [(0, 1), (1, 0)])], priority=[np.zeros(2, np.float32)])
    with pytest.raises(ValueError, match="cycle"):
        rules.largest_ancestor(samples)


# Cards


def test_every_dataset_has_a_structural_rule_and_every_rule_is_named_on_a_card():
    cards = [graphbench.card(name) for name in graphbench.list_datasets() if name.startswith("algoreas/")]
    assert cards and all("structural" in rules_of(card) for card in cards)
    named = {name for card in cards for name in card.task.rules.values()}
    assert named == {f"algoreas.{name}" for name in rules.RULES}
    assert all(rule.description.endswith(".") for rule in rules.RULES.values())


@pytest.mark.parametrize("values", [0, 1])
def test_no_graphs_and_graphs_without_edges_have_predictions(values):
    graphs = [(3, [])] * values
    empty = np.zeros((0, 2), np.int32)
    samples = Samples(
        np.array([nodes for nodes, _ in graphs], np.int64),
        np.zeros(values, np.int64),
        empty,
        {
            "weight": np.zeros(0, np.float32),
            "capacity": np.zeros((0, 2), np.float32),
            "priority": np.arange(3 * values, dtype=np.float32),
            "is_terminal": np.ones(3 * values, np.uint8),
            "source": np.eye(3, dtype=np.uint8)[0][: 3 * values],
            "sink": np.eye(3, dtype=np.uint8)[1][: 3 * values],
        },
    )
    rows = {"value": values, "is_bridge": 0, "in_tree": 0, "matched": 0}
    rows |= dict.fromkeys(("in_clique", "is_member", "rank"), 3 * values)
    for rule in rules.RULES.values():
        for output, predictions in rule.predict(samples).items():
            assert predictions.shape == (rows[output],)


@pytest.mark.parametrize("nodes", [16, 200])
def test_predictions_do_not_depend_on_the_type_that_stores_node_ids(nodes):
    source = np.random.default_rng(nodes)
    edges = sorted({*nx.gnp_random_graph(nodes, 0.1, seed=1).edges, *pairwise(range(nodes))})
    samples = as_samples(
        [(nodes, edges)],
        weight=[source.permutation(len(edges)).astype(np.float32) + 1],
        capacity=[source.random((len(edges), 2), np.float32)],
        priority=[source.permutation(nodes).astype(np.float32)],
        is_terminal=[(np.arange(nodes) % 7 == 3).astype(np.uint8)],
        source=[(np.arange(nodes) == nodes - 1).astype(np.uint8)],
        sink=[(np.arange(nodes) == 0).astype(np.uint8)],
    )
    for dtype in (np.uint8, np.int64):
        stored = replace(samples, edges=samples.edges.astype(dtype))
        stored.edges.setflags(write=False)
        for rule in rules.RULES.values():
            for output, expected in rule.predict(samples).items():
                np.testing.assert_array_equal(rule.predict(stored)[output], expected)
