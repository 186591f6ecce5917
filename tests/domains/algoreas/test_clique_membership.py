"""Members of maximum cliques beside all maximal cliques that networkx lists."""

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.algoreas import checks
from graphbench.domains.algoreas.clique_membership import (
    count_maximum_cliques,
    extend_to_union,
    label_graphs,
    label_shard,
    several_cliques,
)
from graphbench.domains.algoreas.max_clique import maximum_clique, search_clique
from graphbench.verification.measuring import arrays_hash, first_samples

AMPLE = 10**9


def as_graph(num_nodes, edges):
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(np.asarray(edges).tolist())
    return graph


def as_edges(graph):
    return np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), np.int32).reshape(-1, 2)


def maximum_cliques(num_nodes, edges):
    cliques = [sorted(clique) for clique in nx.find_cliques(as_graph(num_nodes, edges))]
    size = max(map(len, cliques))
    return [clique for clique in cliques if len(clique) == size]


def members_of(num_nodes, edges, node_limit=AMPLE):
    """Return the members, the size of a maximum clique and whether both are proved, of one graph."""
    is_member, size, proved = label_graphs(num_nodes, np.array([0, len(edges)]), edges, node_limit)
    return np.flatnonzero(is_member).tolist(), int(size[0]), bool(proved[0])


def members_in_words(num_nodes, edges):
    """Return the members by the search for graphs of any size."""
    clique, proved = search_clique(num_nodes, edges, AMPLE)
    union, ended = extend_to_union(num_nodes, edges, AMPLE, clique, num_nodes)
    assert proved and ended
    return np.flatnonzero(np.unpackbits(union.view(np.uint8), bitorder="little")).tolist()


def assert_as_listed(num_nodes, edges):
    cliques = maximum_cliques(num_nodes, edges)
    through = Counter(itertools.chain.from_iterable(cliques))
    assert members_of(num_nodes, edges) == (sorted(through), len(cliques[0]), True)
    assert members_in_words(num_nodes, edges) == sorted(through)
    counts, total, ended = count_maximum_cliques(num_nodes, edges, len(cliques[0]), AMPLE)
    assert ended and total == len(cliques)
    assert counts.tolist() == [through[node] for node in range(num_nodes)]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 14), st.floats(0.0, 1.0), st.integers(0, 10**6))
@pytest.mark.thorough
def test_members_and_counts_are_those_of_all_maximum_cliques(random_edges, num_nodes, p, seed):
    assert_as_listed(num_nodes, random_edges(num_nodes, p, seed))


@pytest.mark.parametrize(("num_nodes", "p"), [(40, 0.3), (40, 0.75), (63, 0.6), (64, 0.6), (65, 0.6), (110, 0.4)])
@pytest.mark.thorough
def test_members_equal_networkx_on_larger_graphs(random_edges, num_nodes, p):
    for seed in range(4):
        assert_as_listed(num_nodes, random_edges(num_nodes, p, seed))


def test_the_two_searches_agree_on_graphs_of_one_word(random_edges):
    for seed in range(20):
        edges = random_edges(58, 0.85, seed)
        assert members_of(58, edges)[0] == members_in_words(58, edges)


@pytest.mark.parametrize(("parts", "width"), [(5, 3), (12, 4), (33, 5)])
def test_members_are_decided_without_listing_the_cliques(parts, width):
    """A complete multipartite graph has ``width ** parts`` maximum cliques; one node more is in none of them."""
    num_nodes = parts * width
    part = np.random.default_rng(parts).permutation(np.arange(num_nodes) % parts)
    edges = np.argwhere(np.triu(part[:, None] != part[None, :])).astype(np.int32)
    extra = [(v, num_nodes) for v in range(num_nodes) if part[v] > 1]  # lacks the first two parts
    edges = np.concatenate([edges, np.array(extra, np.int32)])
    expected = list(range(num_nodes)), parts, True
    assert members_of(num_nodes + 1, edges) == expected
    assert members_in_words(num_nodes + 1, edges) == expected[0]
    if width**parts < 1000:
        assert count_maximum_cliques(num_nodes + 1, edges, parts, AMPLE)[1] == width**parts
    else:
        assert not count_maximum_cliques(num_nodes + 1, edges, parts, 1000)[2]


@pytest.mark.parametrize("num_nodes", [1, 2, 64, 65, 130])
def test_extreme_graphs(num_nodes):
    everybody = list(range(num_nodes))
    assert members_of(num_nodes, np.empty((0, 2), np.int32)) == (everybody, 1, True)
    assert members_of(num_nodes, as_edges(nx.complete_graph(num_nodes))) == (everybody, num_nodes, True)
    assert members_of(num_nodes, as_edges(nx.path_graph(num_nodes))) == (everybody, min(2, num_nodes), True)


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 80), st.floats(0.2, 0.8), st.integers(0, 10**6))
def test_a_new_numbering_moves_the_members_along(random_edges, num_nodes, p, seed):
    edges = random_edges(num_nodes, p, seed)
    number = np.random.default_rng(seed).permutation(num_nodes)
    moved = np.sort(number[edges].astype(np.int32).reshape(-1, 2), axis=1)
    assert members_of(num_nodes, moved)[0] == sorted(number[members_of(num_nodes, edges)[0]].tolist())


def test_a_new_numbering_does_not_move_the_label_of_the_maximum_clique_along():
    """The reason for the task: two triangles that share no node, and the label is the one with node 0."""
    edges = np.array([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)], np.int32)
    number = np.array([5, 4, 3, 2, 1, 0])
    moved = np.sort(number[edges].astype(np.int32), axis=1)
    first, second = (np.flatnonzero(maximum_clique(6, own, AMPLE)[0]).tolist() for own in (edges, moved))
    assert first == [0, 1, 2] and second == [0, 1, 2] and sorted(number[first].tolist()) == [3, 4, 5]
    assert members_of(6, edges)[0] == members_of(6, moved)[0] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("num_nodes", "p"), [(60, 0.9), (128, 0.9)])
@pytest.mark.thorough
def test_without_budget_the_label_is_not_proved_and_holds_members_of_cliques(random_edges, num_nodes, p):
    edges = random_edges(num_nodes, p, 1)
    everything, size, proved = members_of(num_nodes, edges)
    assert proved
    proofs = []
    for limit in (1, 1_000, 30_000, 10**7):
        found, length, proved = members_of(num_nodes, edges, limit)
        assert (found, length, proved) == members_of(num_nodes, edges, limit)
        assert length <= size and len(found) >= length
        if length == size:
            assert set(found) <= set(everything)
        assert not proved or found == everything
        proofs.append(proved)
    assert proofs == sorted(proofs) and not proofs[0] and proofs[-1]


@pytest.mark.parametrize("num_nodes", [12, 70])
def test_graphs_with_several_maximum_cliques_are_those_networkx_lists(random_edges, num_nodes):
    graphs = [random_edges(num_nodes, p, seed) for p in (0.2, 0.5) for seed in range(30)]
    edge_ptr = np.cumsum([0, *(len(edges) for edges in graphs)])
    cliques = [maximum_cliques(num_nodes, edges) for edges in graphs]
    in_clique = np.zeros((len(graphs), num_nodes), np.uint8)
    for row, (clique, *_) in zip(in_clique, cliques, strict=True):
        row[clique] = 1
    proved = np.ones(len(graphs), np.uint8)
    proved[3] = 0
    arguments = (num_nodes, edge_ptr, np.concatenate(graphs), in_clique.reshape(-1), proved)
    expected = np.array([float(len(own) > 1) for own in cliques])
    expected[3] = np.nan
    assert 0 < np.nanmean(expected) < 1
    np.testing.assert_array_equal(several_cliques(*arguments, AMPLE), expected)
    assert np.isnan(several_cliques(*arguments, 0)).sum() > np.isnan(expected).sum()


def test_labels_do_not_depend_on_sharding(shard):
    whole = label_shard(*shard(70, 20), 50)
    parts = [label_shard(*shard(70, 7), 50), label_shard(*shard(70, 13, first=7), 50)]
    for k in range(3):
        assert np.array_equal(whole[k], np.concatenate([part[k] for part in parts]))


# The datasets


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
@pytest.mark.parametrize("split", ["train", "val", "n64", "test"])
def test_first_samples_have_the_bytes_of_the_card(difficulty, split):
    card = graphbench.card(f"clique_membership_{difficulty}")
    assert arrays_hash(first_samples(card, split)) == card.measured.first_samples[split]


def test_labels_and_statistics_of_a_split_are_those_networkx_lists():
    card = graphbench.card("clique_membership_easy")
    generator, samples = find("generator", card.generator), draw_samples(card, "val", np.arange(150))
    parameters = generator.parse(card, "val")
    assert generator.check(parameters, samples) == []
    statistics = generator.statistics(parameters, samples)
    for i, graph in enumerate(checks.graphs(samples)):
        cliques = maximum_cliques(graph.nodes, graph.edges)
        assert np.flatnonzero(graph.values["is_member"]).tolist() == sorted(set().union(*cliques))
        assert graph.values["clique_size"][0] == statistics["clique_size"][i] == len(cliques[0])
        assert statistics["several"][i] == (len(cliques) > 1)
    clique = graphbench.card("max_clique_easy")
    maker, drawn = find("generator", clique.generator), draw_samples(clique, "val", np.arange(150))
    several = maker.statistics(maker.parse(clique, "val"), drawn)["several"]
    listed = [len(maximum_cliques(graph.nodes, graph.edges)) > 1 for graph in checks.graphs(drawn)]
    assert several.tolist() == listed


@pytest.mark.parametrize("nodes", [16, 80])
def test_the_check_notices_wrong_members_and_sizes(nodes):
    edges = as_edges(nx.gnp_random_graph(nodes, 0.5, seed=3))
    members, size, _ = members_of(nodes, edges)
    is_member = np.isin(np.arange(nodes), members).astype(np.uint8)

    def problem(**changes):
        values = {"is_member": is_member, "clique_size": np.array([size]), "proved": np.array([1]), **changes}
        return checks.check_clique_membership(checks.Graph(nodes, edges, values))

    assert problem() is None
    missing, added = is_member.copy(), is_member.copy()
    missing[members[0]] = 0
    added[next(v for v in range(nodes) if v not in members)] = 1
    assert problem(is_member=missing) is not None
    assert nodes > 64 or problem(is_member=added) is not None
    assert problem(clique_size=np.array([size - 1])) is not None
    assert problem(clique_size=np.array([size + 1])) is not None


def test_the_datasets_supplement_the_benchmark_and_are_in_none_of_its_groups():
    names = [f"algoreas/clique_membership_{difficulty}" for difficulty in ("easy", "medium", "hard")]
    assert graphbench.list_datasets("clique_membership") == graphbench.list_datasets("algoreas_membership") == names
    for group in ("algoreas", "algoreas_easy", "algoreas_medium", "algoreas_hard", "algorithmic_reasoning_easy"):
        assert not set(names) & set(graphbench.list_datasets(group))
    assert set(names) < set(graphbench.list_datasets("algoreas/*"))
    for name in names:
        card, clique = graphbench.card(name), graphbench.card(name.replace("clique_membership", "max_clique"))
        assert card.supplementary and not clique.supplementary
        assert card.all_groups == ("algoreas_membership",) and clique.all_groups[0] == "algoreas"
        for split in ("train", "val", "test"):
            assert card.split(split).parameters == clique.split(split).parameters


def test_the_card_of_the_maximum_clique_says_how_many_graphs_have_several():
    cards = [graphbench.card(f"max_clique_{difficulty}") for difficulty in ("easy", "medium", "hard")]
    shares = [100 * card.measured.statistics["test"]["several"][0] for card in cards]
    (count,) = {card.measured.statistics_samples["test"] for card in cards}
    words = "{:.0f} %, {:.0f} % and {:.0f} % of the first {:,} test graphs".format(*shares, count)
    for card in cards:
        assert words in card.description
        for split in card.splits:
            assert 0.5 < card.measured.statistics[split]["several"][0] < 1
