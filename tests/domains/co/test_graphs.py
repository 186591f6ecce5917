import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from graphbench.domains.co.graph_kernels import count_constraints, count_joined_pairs
from graphbench.domains.co.graphs import BAParameters, ERParameters, RBParameters, draw_graphs

KEY = np.uint64(3)


def draw(parameters, count, first=0, attempt=0, key=KEY):
    """Return the graphs as (number of nodes, edges)."""
    nodes, sizes, edges = draw_graphs(parameters, key, np.arange(first, first + count), np.full(count, attempt))
    return list(zip(nodes.tolist(), np.split(edges, np.cumsum(sizes)[:-1]), strict=True))


def model_rb(cliques, size, p, rng, planted=False):
    """Return the edges of one graph of model RB, from the definition."""
    parts = [range(c * size, (c + 1) * size) for c in range(cliques)]
    arcs = set()
    alpha = math.log(size) / math.log(cliques)
    r = -alpha / math.log(1 - p)
    for _ in range(max(int(r * cliques * math.log(cliques) - 1), 0)):
        first, second = rng.sample(range(cliques), 2)
        pairs = [pair for pair in itertools.product(parts[first], parts[second]) if pair not in arcs]
        if planted:
            pairs = [(u, v) for u, v in pairs if u % size or v % size]
        arcs.update(rng.sample(pairs, min(int(p * size * size), len(pairs))))
    within = {pair for part in parts for pair in itertools.combinations(part, 2)}
    return within | {(min(arc), max(arc)) for arc in arcs}


def degrees(graphs):
    return [np.bincount(edges.ravel(), minlength=n) for n, edges in graphs]


def count_triangles(n, edges):
    matrix = np.zeros((n, n))
    matrix[edges[:, 0], edges[:, 1]] = 1
    return int(((matrix @ matrix) * matrix).sum())


def agree(ours, theirs):
    """Return whether the means of two samples differ by less than four standard errors."""
    error = math.hypot(np.std(ours) / math.sqrt(len(ours)), np.std(theirs) / math.sqrt(len(theirs)))
    return abs(np.mean(ours) - np.mean(theirs)) <= 4 * error


@pytest.mark.parametrize("family", ["rb_small", "rb_large", "er_small", "er_large", "ba_small", "ba_large"])
def test_edges_are_sorted_pairs_of_nodes(families, family):
    parameters = families[family]
    graphs = draw(parameters, 12 if family.endswith("large") else 60)
    for n, edges in graphs:
        assert edges.dtype == np.int32
        assert parameters.nodes[0] <= n <= parameters.nodes[1]
        assert (edges[:, 0] < edges[:, 1]).all()
        assert edges.min() >= 0
        assert edges.max() < n
        assert (np.diff(edges[:, 0].astype(np.int64) * n + edges[:, 1]) > 0).all()
    assert len({n for n, _ in graphs}) > 4


@pytest.mark.parametrize("family", ["rb_small", "er_small", "ba_small"])
def test_graph_depends_on_key_index_and_attempt_alone(families, family):
    parameters = families[family]
    whole = draw(parameters, 20)
    parts = draw(parameters, 7) + draw(parameters, 13, first=7)
    for (n, edges), (m, others) in zip(whole, parts, strict=True):
        assert n == m
        np.testing.assert_array_equal(edges, others)
    for other in (draw(parameters, 20, attempt=1), draw(parameters, 20, key=np.uint64(4))):
        assert not any(np.array_equal(a[1], b[1]) for a, b in zip(whole, other, strict=True))


def test_no_samples():
    for parameters in (ERParameters(model="er", nodes=(4, 5), p=0.5), BAParameters(model="ba", nodes=(4, 5), m=2)):
        nodes, sizes, edges = draw_graphs(parameters, KEY, np.empty(0, np.int64), np.empty(0, np.int64))
        assert len(nodes) == len(sizes) == 0
        assert edges.shape == (0, 2)


@pytest.mark.thorough
def test_sizes_are_uniform(families):
    for family in ("er_small", "ba_small"):
        nodes, _, _ = draw_graphs(families[family], KEY, np.arange(20_000), np.zeros(20_000, np.int64))
        counts = np.bincount(nodes - 200, minlength=101)
        assert len(counts) == 101
        assert stats.chisquare(counts).pvalue > 1e-4


def test_every_pair_is_joined_with_the_same_probability():
    graphs = draw(ERParameters(model="er", nodes=(9, 9), p=0.3), 8000)
    counts = np.zeros((9, 9), np.int64)
    for _, edges in graphs:
        counts[edges[:, 0], edges[:, 1]] += 1
    pairs = counts[np.triu_indices(9, 1)]
    expected = np.array([0.3, 0.7]) * 8000
    statistic = sum(((np.array([k, 8000 - k]) - expected) ** 2 / expected).sum() for k in pairs)
    assert stats.chi2.sf(statistic, len(pairs)) > 1e-4
    sizes = np.bincount([len(edges) for _, edges in graphs], minlength=37)
    binomial = stats.binom.pmf(np.arange(37), 36, 0.3) * 8000
    assert stats.chisquare(sizes[3:20], binomial[3:20] * sizes[3:20].sum() / binomial[3:20].sum()).pvalue > 1e-4


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_edges(p):
    for n, edges in draw(ERParameters(model="er", nodes=(1, 8), p=p), 40):
        assert len(edges) == p * n * (n - 1) / 2


@pytest.mark.parametrize(("n", "m"), [(60, 2), (40, 5), (12, 11), (2, 1)])
def test_growth_equals_networkx_in_distribution(n, m):
    ours = draw(BAParameters(model="ba", nodes=(n, n), m=m), 400)
    theirs = [nx.barabasi_albert_graph(n, m, seed=s) for s in range(400)]
    assert {len(edges) for _, edges in ours} == {graph.number_of_edges() for graph in theirs} == {m * (n - m)}
    lists = degrees(ours)
    others = [np.array([d for _, d in graph.degree]) for graph in theirs]
    for measure in (np.max, np.var, lambda d: (d == m).sum(), lambda d: (d > 3 * m).sum()):
        assert agree([measure(d) for d in lists], [measure(d) for d in others])
    triangles = [count_triangles(n, edges) for _, edges in ours]
    assert agree(triangles, [sum(nx.triangles(graph).values()) // 3 for graph in theirs])


def test_ids_do_not_tell_the_age_of_a_node(families):
    first = np.array([d[0] for d in degrees(draw(families["ba_small"], 2000))])
    assert abs(first.mean() - 4) < 4 * first.std() / math.sqrt(len(first))


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize(("cliques", "size", "p"), [(20, 10, 0.31), (24, 12, 0.6), (22, 9, 0.95), (8, 3, 0.5)])
@pytest.mark.thorough
def test_model_rb_equals_its_definition_in_distribution(cliques, size, p, planted):
    parameters = RBParameters(
        model="rb",
        cliques=(cliques, cliques),
        clique_size=(size, size),
        tightness=(p, p),
        nodes=(1, 1000),
        planted=planted,
    )
    n = cliques * size
    ours = draw(parameters, 60)
    rng = random.Random(5)
    theirs = [(n, np.array(sorted(model_rb(cliques, size, p, rng, planted)))) for _ in range(60)]
    assert {m for m, _ in ours} == {n}
    assert agree([len(edges) for _, edges in ours], [len(edges) for _, edges in theirs])
    for measure in (np.max, np.min, np.var):
        assert agree([measure(d) for d in degrees(ours)], [measure(d) for d in degrees(theirs)])
    assert agree(*([count_triangles(n, edges) for _, edges in part] for part in (ours, theirs)))


@pytest.mark.parametrize(("family", "nodes", "edges"), [("rb_small", 241.0, 9016.1), ("rb_large", 1027.8, 102644.8)])
def test_model_rb_has_the_published_means_of_table_2(families, family, nodes, edges):
    count = 4000 if family == "rb_small" else 300
    num_nodes, num_edges, _ = draw_graphs(families[family], KEY, np.arange(count), np.zeros(count, np.int64))
    for values, published in ((num_nodes, nodes), (2 * num_edges, edges)):  # table 2 counts both directions
        assert abs(values.mean() - published) < 4 * values.std() / math.sqrt(count)


def test_model_rb_counts():
    assert [count_constraints(*row) for row in ((22, 8, 0.5), (22, 12, 0.3), (20, 10, 1.0), (20, 10, 0.99999))] == [
        22 * 3 - 1,
        int(22 * math.log(12) / -math.log(0.7) - 1),
        0,
        3 - 0,
    ]
    assert [count_joined_pairs(*row) for row in ((10, 0.29), (12, 0.5), (9, 1.0), (7, 0.3))] == [29, 72, 81, 14]


def test_model_rb_has_its_cliques():
    parameters = RBParameters(model="rb", cliques=(6, 6), clique_size=(5, 5), tightness=(1.0, 1.0), nodes=(30, 30))
    for _, edges in draw(parameters, 5):
        components = list(nx.connected_components(nx.Graph(edges.tolist())))
        assert sorted(map(len, components)) == [5] * 6
        assert len(edges) == 6 * 10


def test_planted_graphs_have_an_independent_set_of_one_node_per_clique(largest_set):
    def sizes(planted):
        parameters = RBParameters(
            model="rb",
            cliques=(5, 5),
            clique_size=(3, 3),
            tightness=(0.25, 0.35),
            nodes=(15, 15),
            planted=planted,
        )
        return [largest_set(n, edges) for n, edges in draw(parameters, 60)]

    assert set(sizes(True)) == {5}
    assert max(sizes(False)) <= 5
    assert min(sizes(False)) < 5


def test_model_rb_sizes_are_uniform_over_the_products_in_range(families):
    nodes, _, _ = draw_graphs(families["rb_small"], KEY, np.arange(3000), np.zeros(3000, np.int64))
    products = [n * k for n in range(20, 26) for k in range(5, 13) if 200 <= n * k <= 300]
    values, counts = np.unique(products, return_counts=True)
    seen = np.array([(nodes == value).sum() for value in values])
    assert seen.sum() == 3000
    assert stats.chisquare(seen, counts * 3000 / counts.sum()).pvalue > 1e-4


@pytest.mark.parametrize(
    ("model", "values", "message"),
    [
        (ERParameters, {"model": "er", "nodes": (5, 4), "p": 0.1}, "lower end first"),
        (ERParameters, {"model": "er", "nodes": (0, 4), "p": 0.1}, "greater than or equal to 1"),
        (ERParameters, {"model": "er", "nodes": (1, 4), "p": 1.1}, "less than or equal to 1"),
        (ERParameters, {"model": "er", "nodes": (1, 4), "p": 0.1, "q": 1}, "Extra inputs"),
        (BAParameters, {"model": "ba", "nodes": (3, 9), "m": 3}, "give m below"),
        (BAParameters, {"model": "er", "nodes": (3, 9), "m": 1}, "Input should be 'ba'"),
    ],
)
def test_wrong_parameters(model, values, message):
    with pytest.raises(ValidationError, match=message):
        model(**values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cliques": (1, 5)}, "2 or more"),
        ({"nodes": (200, 201)}, "widen a range"),
        ({"tightness": (0.0, 0.5)}, "greater than 0"),
        ({"tightness": (0.9, 0.5)}, "lower end first"),
    ],
)
def test_wrong_parameters_of_model_rb(changes, message):
    values = {"model": "rb", "cliques": (7, 8), "clique_size": (3, 4), "tightness": (0.3, 1.0), "nodes": (20, 40)}
    with pytest.raises(ValidationError, match=message):
        RBParameters(**{**values, **changes})
