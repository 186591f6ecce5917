import itertools
import math
import platform
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.domains.algoreas.graph_models import MODELS, check_models, pack_mixture, pack_models
from graphbench.domains.algoreas.model_kernels import order_as_python_set
from graphbench.domains.algoreas.random_graphs import draw_graphs

KEY = np.uint64(2024)
# Columns of Table 14
TOPOLOGICAL: dict[str, dict[str, Any]] = {
    "er": {"p": 0.3},
    "nws": {"k": 2, "p": 0.2},
    "ba": {"m": 2},
    "dba": {"m1": 3, "m2": 2, "p": 0.5},
    "pc": {"m": 3, "p": 0.1},
    "sbm": {"p": [[0.5, 0.2], [0.2, 0.5]], "sizes": [0.5, 0.5]},
}
TREE: dict[str, dict[str, Any]] = {
    "er": {"p": 0.17},
    "nws": {"k": 4, "p": 0.2},
    "ba": {"m": 3},
    "dba": {"m1": 4, "m2": 2, "p": 0.3},
    "pc": {"m": 5, "p": 0.35},
    "sbm": {"p": [[0.31, 0.01], [0.01, 0.31]], "sizes": [0.5, 0.5]},
}
CLIQUE: dict[str, dict[str, Any]] = {
    "er": {"p": 0.9},
    "nws": {"k": 4, "p": 0.6},
    "ba": {"m": 8},
    "dba": {"m1": 3, "m2": 1, "p": 0.07},
    "pc": {"m": 9, "p": 0.5},
    "sbm": {"p": [[0.75, 0.75], [0.75, 0.75]], "sizes": [0.5, 0.5]},
}
EXTREME: dict[str, dict[str, Any]] = {
    "er": {"p": 0.08},
    "nws": {"k": 13, "p": 0.9},  # odd k; nodes that reach every other node
    "ba": {"m": 1},
    "dba": {"m1": 3, "m2": 1, "p": 0.0},
    "pc": {"m": 3, "p": 1.0},
    "sbm": {"p": [[1.0, 0.1], [0.1, 0.4]], "sizes": [0.3125, 0.6875]},
}


def draw(models, mixture, num_nodes, count, *, first=0, attempt=0, connect=1, copies=1):
    check_models(models, mixture, num_nodes)
    return draw_graphs(
        KEY,
        np.arange(first, first + count),
        np.full(count, attempt),
        num_nodes,
        pack_mixture(mixture),
        pack_models(models),
        connect,
        copies,
    )


def split(drawn):
    edge_ptr, edges, _ = drawn
    return [edges[a:b] for a, b in itertools.pairwise(edge_ptr)]


def as_graph(num_nodes, edges):
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(edges.tolist())
    return graph


# --- determinism -----------------------------------------------------------------------------------------------------


def test_graphs_do_not_depend_on_the_shard():
    mixture = dict.fromkeys(MODELS, 1)
    _, whole, models = draw(TOPOLOGICAL, mixture, 16, 60)
    parts = [draw(TOPOLOGICAL, mixture, 16, count, first=first) for first, count in ((0, 1), (1, 40), (41, 19))]
    np.testing.assert_array_equal(whole, np.concatenate([part[1] for part in parts]))
    np.testing.assert_array_equal(models, np.concatenate([part[2] for part in parts]))
    assert len(set(models.tolist())) == 6


def test_an_attempt_changes_every_graph():
    first = split(draw(TREE, {"er": 1}, 16, 50))
    second = split(draw(TREE, {"er": 1}, 16, 50, attempt=1))
    assert not any(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_edges_outgrow_the_first_allocation():
    edge_ptr, edges, _ = draw({"er": {"p": 1.0}}, {"er": 1}, 40, 3)
    assert np.diff(edge_ptr).tolist() == [780] * 3
    np.testing.assert_array_equal(edges[780:1560], list(itertools.combinations(range(40), 2)))


RINGS = {"nws": {"k": 2, "p": 0.0, "share": 0.75, "shortest": 20}}


def test_rings_leave_the_other_nodes_to_trees_and_are_joined_by_bridges():
    lengths = set()
    for edges in split(draw(RINGS, {"nws": 1}, 128, 60)):
        graph = as_graph(128, edges)
        bridges = set(nx.bridges(graph))
        graph.remove_edges_from(bridges)
        rings = [part for part in nx.connected_components(graph) if len(part) > 1]
        assert all(degree == 2 for part in rings for _, degree in graph.degree(part))
        assert sum(map(len, rings)) == 96 and min(map(len, rings)) >= 20
        assert len(bridges) == 128 - 96 + len(rings) - 1
        lengths |= {len(part) for part in rings}
    assert 96 in lengths and len(lengths) > 20


def test_copies_of_a_graph_differ_in_the_numbering_of_their_nodes_alone():
    mixture = dict.fromkeys(MODELS, 1)
    alone = split(draw(TOPOLOGICAL, mixture, 12, 8, first=20))
    copies = split(draw(TOPOLOGICAL, mixture, 12, 24, first=60, copies=3))
    for i, edges in enumerate(alone):
        same = copies[3 * i : 3 * i + 3]
        np.testing.assert_array_equal(same[0], edges)
        assert all(nx.is_isomorphic(as_graph(12, edges), as_graph(12, copy)) for copy in same)
    assert len({edges.tobytes() for edges in copies}) == 24


# --- structure -------------------------------------------------------------------------------------------------------

probability = st.floats(0, 1)


@st.composite
def one_model(draw_from, num_nodes):
    name = draw_from(st.sampled_from(MODELS))
    degree = st.integers(1, max(num_nodes - 1, 1))
    if name == "sbm":
        a, b, c, size = (draw_from(probability) for _ in range(4))
        return name, {"p": [[a, b], [b, c]], "sizes": [size, 1 - size]}
    parameters = {
        "er": {"p": probability},
        "nws": {"k": st.integers(0, num_nodes), "p": probability},
        "ba": {"m": degree},
        "dba": {"m1": degree, "m2": degree, "p": probability},
        "pc": {"m": degree, "p": probability},
    }[name]
    return name, {key: draw_from(value) for key, value in parameters.items()}


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(2, 70), st.integers(0, 2**40), st.integers(1, 3))
def test_graphs_are_connected_simple_and_sorted(data, num_nodes, index, connect):
    name, parameters = data.draw(one_model(num_nodes))
    pieces, joined = (
        split(draw({name: parameters}, {name: 1}, num_nodes, 2, first=index, connect=c)) for c in (0, connect)
    )
    for before, edges in zip(pieces, joined, strict=True):
        assert (edges[:, 0] >= 0).all() and (edges[:, 0] < edges[:, 1]).all() and (edges[:, 1] < num_nodes).all()
        assert (np.diff(edges[:, 0] * num_nodes + edges[:, 1]) > 0).all()
        assert nx.is_connected(as_graph(num_nodes, edges))
        components = nx.number_connected_components(as_graph(num_nodes, before))
        added = len(edges) - len(before)
        assert components - 1 <= added <= (components - 1) * connect
        if connect == 1:
            assert added == components - 1


def test_one_node_has_no_edges():
    edge_ptr, edges, _ = draw({"er": {"p": 0.5}}, {"er": 1}, 1, 3)
    assert edge_ptr.tolist() == [0, 0, 0, 0]
    assert edges.shape == (0, 2)


@pytest.mark.parametrize("num_nodes", [64, 65, 300])
def test_large_graphs_of_known_size(num_nodes):
    for edges in split(draw({"ba": {"m": 3}}, {"ba": 1}, num_nodes, 5)):
        assert len(edges) == 3 + 3 * (num_nodes - 4)
    for edges in split(draw({"er": {"p": 0.0}}, {"er": 1}, num_nodes, 5)):
        assert nx.is_tree(as_graph(num_nodes, edges))


def test_connect_links_two_components_by_that_many_edges():
    blocks = {"sbm": {"p": [[1.0, 0.0], [0.0, 1.0]], "sizes": [0.5, 0.5]}}
    for connect, expected in ((1, 1), (3, 3), (9, 9), (50, 9)):
        counts = np.diff(draw(blocks, {"sbm": 1}, 6, 20, connect=connect)[0])
        assert counts.tolist() == [6 + expected] * 20


def test_joining_picks_ends_uniformly():
    # Four single nodes: the fourth hits the middle of the path of three with probability 1/3, which makes a star.
    graphs = split(draw({"er": {"p": 0.0}}, {"er": 1}, 4, 6000))
    stars = sum(np.bincount(edges.ravel()).max() == 3 for edges in graphs)
    assert stats.binomtest(stars, 6000, 1 / 3).pvalue > 1e-4


def test_node_ids_are_relabelled_uniformly():
    graphs = split(draw({"ba": {"m": 4}}, {"ba": 1}, 5, 5000))  # a star
    centres = Counter(int(np.bincount(edges.ravel()).argmax()) for edges in graphs)
    assert stats.chisquare([centres[node] for node in range(5)]).pvalue > 1e-4
    newest = split(draw({"pc": {"m": 1, "p": 0}}, {"pc": 1}, 3, 6000))  # a path
    assert stats.chisquare(list(Counter(map(bytes, newest)).values())).pvalue > 1e-4


def test_models_follow_the_mixture():
    mixture = {"er": 1, "ba": 2, "sbm": 0.5}
    counts = np.bincount(draw(TREE, mixture, 16, 7000)[2], minlength=6)
    assert counts[[1, 3, 4]].tolist() == [0, 0, 0]
    assert stats.chisquare(counts[[0, 2, 5]], [2000, 4000, 1000]).pvalue > 1e-4


# --- distributions: networkx -----------------------------------------------------------------------------------------


def networkx_graph(name, parameters, n, seed):
    if name == "er":
        return nx.gnp_random_graph(n, parameters["p"], seed=seed)
    if name == "nws":
        return nx.newman_watts_strogatz_graph(n, parameters["k"], parameters["p"], seed=seed)
    if name == "ba":
        return nx.barabasi_albert_graph(n, parameters["m"], seed=seed)
    if name == "dba":
        return nx.dual_barabasi_albert_graph(n, parameters["m1"], parameters["m2"], parameters["p"], seed=seed)
    if name == "pc":
        return nx.powerlaw_cluster_graph(n, parameters["m"], parameters["p"], seed=seed)
    first = round(n * parameters["sizes"][0])
    return nx.stochastic_block_model([first, n - first], parameters["p"], seed=seed)


def adjacency_of(num_nodes, graphs):
    adjacency = np.zeros((len(graphs), num_nodes, num_nodes), np.float32)
    for matrix, edges in zip(adjacency, graphs, strict=True):
        if len(edges):
            u, v = np.asarray(edges).T
            matrix[u, v] = matrix[v, u] = 1
    return adjacency


def statistics(adjacency):
    """Return numbers per graph that relabelling keeps, int64[graphs] each."""
    degree = adjacency.sum(2)
    return {
        "edges": degree.sum(1) / 2,
        "triangles": ((adjacency @ adjacency) * adjacency).sum((1, 2)) / 6,
        "squares": (degree**2).sum(1),
        "largest degree": degree.max(1),
        "smallest degree": degree.min(1),
        "nodes of smallest degree": (degree == degree.min(1, keepdims=True)).sum(1),
        "nodes below mean degree": (degree < degree.mean()).sum(1),
    }


def p_value_same(a, b):
    """Return the p-value of a chi-squared test that two samples come from one distribution."""
    values, counts = np.unique(np.concatenate([a, b]), return_counts=True)
    bins, filled = [0], 0  # neighbouring values share a bin until it holds a tenth of the samples
    for count in counts[:-1]:
        filled += count
        full = filled >= counts.sum() / 10
        bins.append(bins[-1] + full)
        filled = 0 if full else filled
    table = np.array([np.bincount(np.array(bins)[np.searchsorted(values, x)], minlength=bins[-1] + 1) for x in (a, b)])
    return stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


def smallest_p_value(name, ours, theirs, num_nodes, count):
    mine = split(draw({name: ours}, {name: 1}, num_nodes, count, connect=0))
    nx_graphs = [list(networkx_graph(name, theirs, num_nodes, seed).edges) for seed in range(count)]
    a, b = (statistics(adjacency_of(num_nodes, graphs)) for graphs in (mine, nx_graphs))
    return min(p_value_same(a[statistic], b[statistic]) for statistic in a) * len(a)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(TOPOLOGICAL, id="topological"),
        pytest.param(TREE, id="mst", marks=pytest.mark.thorough),
        pytest.param(CLIQUE, id="clique", marks=pytest.mark.thorough),
        pytest.param(EXTREME, id="other", marks=pytest.mark.thorough),
    ],
)
def test_distribution_is_that_of_networkx(name, column):
    assert smallest_p_value(name, column[name], column[name], 16, 3000) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_distribution_is_that_of_networkx_at_64_nodes(name):
    assert smallest_p_value(name, TREE[name], TREE[name], 64, 1000) > 1e-4


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("er", {"p": 0.19}),
        ("nws", {"k": 4, "p": 0.23}),
        ("ba", {"m": 2}),
        ("dba", {"m1": 4, "m2": 2, "p": 0.35}),
        ("dba", {"m1": 2, "m2": 4, "p": 0.7}),  # same mixture of degrees after a draw, other star: must agree
        ("pc", {"m": 5, "p": 0.45}),
        ("sbm", {"p": [[0.31, 0.02], [0.02, 0.31]], "sizes": [0.5, 0.5]}),
        ("sbm", {"p": [[0.31, 0.01], [0.01, 0.31]], "sizes": [0.375, 0.625]}),
    ],
)
@pytest.mark.thorough
def test_the_comparison_detects_a_wrong_parameter(name, wrong):
    p_value = smallest_p_value(name, wrong, TREE[name], 16, 3000)
    assert (p_value > 1e-4) == (wrong == {"m1": 2, "m2": 4, "p": 0.7})


def small_world_distribution(n, k, p):
    """Return the exact distribution of networkx's process over edge sets."""
    ring = {tuple(sorted((u, (u + d) % n))) for u in range(n) for d in range(1, k // 2 + 1)}
    distribution = {frozenset(ring): 1.0}
    for u, _ in sorted(ring):
        following: Counter = Counter()
        for edges, chance in distribution.items():
            free = [w for w in range(n) if w != u and tuple(sorted((u, w))) not in edges]
            following[edges] += chance * (1 - p if free else 1)
            for w in free:
                following[edges | {tuple(sorted((u, w)))}] += chance * p / len(free)
        distribution = following
    return distribution


@pytest.mark.parametrize(("n", "k", "p"), [(5, 2, 0.4), (6, 2, 0.7), (5, 4, 0.5), (6, 5, 0.8)])
def test_small_world_has_the_exact_distribution(n, k, p):
    def degrees(edges):
        return tuple(sorted(np.bincount(np.array(list(edges)).ravel(), minlength=n).tolist()))

    expected: Counter = Counter()
    for edges, chance in small_world_distribution(n, k, p).items():
        expected[degrees(edges)] += chance
    count = 20000
    found = Counter(degrees(edges) for edges in split(draw({"nws": {"k": k, "p": p}}, {"nws": 1}, n, count)))
    assert set(found) <= set(expected)
    common = [key for key, chance in expected.items() if chance * count >= 5]
    observed = [found[key] for key in common] + [count - sum(found[key] for key in common)]
    chances = [expected[key] for key in common]
    chances.append(max(1 - sum(chances), 0))
    if chances[-1] * count < 1e-6:
        observed, chances = observed[:-1], chances[:-1]
    if len(chances) > 1:
        assert stats.chisquare(observed, np.array(chances) * count).pvalue > 1e-4


def test_the_comparison_sees_rare_values_and_passes_equal_samples():
    steady, sometimes = np.zeros(3000), np.arange(3000) % 20 == 0
    assert p_value_same(steady, sometimes * 1.0) < 1e-4
    assert p_value_same(steady, steady) == 1
    assert p_value_same(sometimes * 1.0, 1.0 * sometimes[::-1]) > 0.9


def test_erdos_renyi_has_the_exact_distribution():
    count = 20000
    found = np.bincount(np.diff(draw({"er": {"p": 0.3}}, {"er": 1}, 3, count, connect=0)[0]), minlength=4)
    expected = [math.comb(3, edges) * 0.3**edges * 0.7 ** (3 - edges) * count for edges in range(4)]
    assert stats.chisquare(found, expected).pvalue > 1e-4


@pytest.mark.skipif(platform.python_implementation() != "CPython", reason="the order is CPython's")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 5000), unique=True, max_size=200))
def test_set_order_is_that_of_cpython(values):
    ours = np.array(values, np.int32)
    order_as_python_set(ours, len(values), np.empty(8 * (len(values) + 1), np.int32))
    theirs = set()
    for value in values:
        theirs.add(value)
    assert ours.tolist() == [theirs.pop() for _ in range(len(theirs))]


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "mixture", "num_nodes", "message"),
    [
        ({"ba": {"m": 16}}, {"ba": 1}, 16, "ba has m = 16 for 16 nodes"),
        ({"dba": {"m1": 2, "m2": 17, "p": 0.5}}, {"dba": 1}, 16, "dba has m2 = 17 for 16 nodes"),
        ({"pc": {"m": 16, "p": 0.5}}, {"pc": 1}, 16, "pc has m = 16"),
        ({"nws": {"k": 17, "p": 0.5}}, {"nws": 1}, 16, "k = 17 for 16 nodes"),
        ({"er": {"p": 1.5}}, {"er": 1}, 16, "er p has the value 1.5"),
        ({"er": {"p": math.nan}}, {"er": 1}, 16, "er p has the value nan"),
        ({"er": {"p": "0.3"}}, {"er": 1}, 16, "er p has the value '0.3'"),
        ({"ba": {"m": 0}}, {"ba": 1}, 16, "ba m is 0"),
        ({"ba": {"m": 2.5}}, {"ba": 1}, 16, "ba m is 2.5"),
        ({"nws": {"k": -2, "p": 0.1}}, {"nws": 1}, 16, "nws k is -2"),
        ({"er": {"q": 0.3}}, {"er": 1}, 16, "er has no parameter 'q'"),
        ({"dba": {"m1": 3, "p": 0.3}}, {"dba": 1}, 16, "dba lacks the parameter 'm2'"),
        ({"gnm": {"m": 3}}, {"er": 1}, 16, "unknown graph model 'gnm'"),
        (TREE, {"gnm": 1}, 16, "unknown graph model 'gnm'"),
        (TREE, {"er": -1}, 16, "mixture weight of 'er' is -1"),
        (TREE, {"er": math.inf}, 16, "mixture weight of 'er' is inf"),
        (TREE, {"er": 0, "ba": 0}, 16, "no positive weight"),
        (TREE, {}, 16, "no positive weight"),
        ({"er": {"p": 0.3}}, {"er": 1, "ba": 2}, 16, "'ba' the weight 2"),
        (TREE, {"er": 1}, 0, "number of nodes is 0"),
        ({"sbm": {"p": [[0.5, 0.2], [0.3, 0.5]], "sizes": [0.5, 0.5]}}, {"sbm": 1}, 16, "not symmetric"),
        ({"sbm": {"p": [[0.5, 1.2], [1.2, 0.5]], "sizes": [0.5, 0.5]}}, {"sbm": 1}, 16, "sbm p has the value 1.2"),
        ({"sbm": {"p": [0.5, 0.2], "sizes": [0.5, 0.5]}}, {"sbm": 1}, 16, "2 by 2"),
        ({"sbm": {"p": [[0.5, 0.2], [0.2, 0.5]], "sizes": [0.5, 0.6]}}, {"sbm": 1}, 16, "add up to 1.1"),
        ({"sbm": {"p": [[0.5, 0.2], [0.2, 0.5]], "sizes": [8, 8]}}, {"sbm": 1}, 16, "fractions"),
        ({"nws": {"k": 2, "p": 0.0, "share": 0.5}}, {"nws": 1}, 64, "lacks the parameter 'shortest'"),
        ({"nws": {"k": 2, "p": 0.0, "share": 0, "shortest": 9}}, {"nws": 1}, 64, "share is 0"),
        ({"nws": {"k": 2, "p": 0.0, "share": 0.5, "shortest": 33}}, {"nws": 1}, 64, "rings on 32 of 64 nodes"),
        ({"nws": {"k": 10, "p": 0.0, "share": 0.5, "shortest": 9}}, {"nws": 1}, 64, "k of at most 9"),
    ],
)
def test_errors_name_the_value(models, mixture, num_nodes, message):
    with pytest.raises(ValueError, match=message):
        check_models(models, mixture, num_nodes)


def test_models_without_weight_may_be_absent_or_too_large():
    check_models({"er": {"p": 0.3}, "ba": {"m": 50}}, {"er": 1, "ba": 0, "pc": 0}, 16)


def test_packed_rows_have_the_documented_layout():
    rows = pack_models(TOPOLOGICAL)
    assert rows.shape == (6, 9)
    expected = [[0.3], [2, 0.2], [2], [3, 2, 0.5], [3, 0.1], [0.5, 0.2, 0.5, 0.5]]
    assert rows.tolist() == [row + [0] * (9 - len(row)) for row in expected]
    assert pack_mixture({"sbm": 2, "nws": 1}).tolist() == [0, 1, 0, 0, 0, 2]
