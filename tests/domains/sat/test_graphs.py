import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import ArgumentError
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.graph_kernels import count_pairs, joined, joined_pairs, transposed
from graphbench.domains.sat.graphs import graph, graphs_of_formulas

KINDS = ("vg", "vcg", "lcg", "cg")
EXAMPLE = Cnf.from_clauses([[1, -2], [2, 3], [], [-1], [-3, 1, 2]], 5)


@st.composite
def formulas(draw):
    """Formulas with empty, unit, repeated and tautological clauses, and with unused variables."""
    n = draw(st.integers(0, 7))
    literal = st.integers(1, n).flatmap(lambda v: st.sampled_from([v, -v])) if n else st.nothing()
    return Cnf.from_clauses(draw(st.lists(st.lists(literal, max_size=6) if n else st.just([]), max_size=12)), n)


def expected(cnf, kind, link=False):
    """Return the edges with their attribute, and the rows of the nodes, from the definitions."""
    clauses = [set(clause) for clause in cnf.clauses()]
    n, m = cnf.num_variables, cnf.num_clauses
    positive = [sum(v in clause for clause in clauses) for v in range(1, n + 1)]
    negative = [sum(-v in clause for clause in clauses) for v in range(1, n + 1)]
    of_variables = list(zip(positive, negative, strict=True))
    of_clauses = [(sum(x > 0 for x in clause), sum(x < 0 for x in clause)) for clause in clauses]
    edges = {}
    if kind == "vg":
        for u, v in itertools.combinations(range(1, n + 1), 2):
            shared = sum(bool(clause & {u, -u}) and bool(clause & {v, -v}) for clause in clauses)
            if shared:
                edges[u - 1, v - 1] = shared
        return edges, of_variables
    if kind == "cg":
        for i, j in itertools.combinations(range(m), 2):
            clashes = sum(-literal in clauses[j] for literal in clauses[i])
            if clashes:
                edges[i, j] = clashes
        return edges, of_clauses
    if kind == "vcg":
        for j, clause in enumerate(clauses):
            for v in range(1, n + 1):
                if clause & {v, -v}:
                    edges[v - 1, n + j] = (v in clause) - (-v in clause)
        return edges, of_variables + of_clauses
    for j, clause in enumerate(clauses):
        for literal in clause:
            edges[2 * abs(literal) - 2 + (literal < 0), 2 * n + j] = False
    for v in range(n if link else 0):
        edges[2 * v, 2 * v + 1] = True
    return edges, [row for pair in of_variables for row in (pair, pair[::-1])] + of_clauses


@pytest.mark.parametrize("kind", KINDS)
@given(cnf=formulas() | formulas().map(Cnf.canonical), link=st.booleans())
@settings(max_examples=150, deadline=None)
def test_graphs_follow_the_definitions(kind, cnf, link):
    link = link and kind == "lcg"
    found = graph(cnf, kind, link_literals=link)
    edges, rows = expected(cnf, kind, link)
    assert found.num_nodes == len(rows)
    assert found.edges.dtype == np.int32
    assert found.edges.tolist() == [list(pair) for pair in sorted(edges)]
    (values,) = found.edge_arrays.values()
    assert values.tolist() == [edges[pair] for pair in sorted(edges)]
    assert found.node_arrays["occurrences"].tolist() == [list(row) for row in rows]
    sides = {"vg": [0] * len(rows), "cg": [1] * len(rows)}
    left = (cnf.num_variables, 0) if kind == "vcg" else (2 * cnf.num_variables, 2)
    types = sides.get(kind, [left[1]] * left[0] + [1] * cnf.num_clauses)
    assert found.node_arrays["type"].tolist() == types


@pytest.mark.parametrize("kind", ["vg", "vcg", "lcg"])
@given(cnf=formulas().map(Cnf.canonical), link=st.booleans())
@settings(max_examples=100, deadline=None)
@pytest.mark.thorough
def test_graphs_of_formulas_in_canonical_form_are_those_of_the_general_way(kind, cnf, link):
    link = link and kind == "lcg"
    shuffled = Cnf.from_clauses([clause[::-1] for clause in cnf.clauses()], cnf.num_variables)
    general, direct = graph(shuffled, kind, link_literals=link), graph(cnf, kind, link_literals=link)
    assert direct.num_nodes == general.num_nodes
    assert direct.edges.dtype == general.edges.dtype
    np.testing.assert_array_equal(direct.edges, general.edges)
    for name in ("node_arrays", "edge_arrays"):
        assert getattr(direct, name).keys() == getattr(general, name).keys()
        for key, values in getattr(general, name).items():
            assert getattr(direct, name)[key].dtype == values.dtype
            np.testing.assert_array_equal(getattr(direct, name)[key], values)


@given(st.lists(formulas(), max_size=5) | st.lists(formulas().map(Cnf.canonical), max_size=5), st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
@pytest.mark.thorough
def test_many_formulas_at_once_have_the_graphs_of_each(cnfs, kind):
    ptr = np.cumsum([0, *(length for cnf in cnfs for length in cnf.lengths)])
    literals = np.concatenate([np.empty(0, np.int32), *(cnf.literals for cnf in cnfs)])
    sizes = np.array([[cnf.num_variables, cnf.num_clauses] for cnf in cnfs], np.int64).reshape(-1, 2)
    link = kind == "lcg"
    together = graphs_of_formulas(sizes[:, 0], sizes[:, 1], ptr, literals, kind, link_literals=link)
    alone = [graph(cnf, kind, link_literals=link) for cnf in cnfs]
    assert together.num_nodes.tolist() == [found.num_nodes for found in alone]
    assert together.num_edges.tolist() == [len(found.edges) for found in alone]
    if alone:
        assert np.array_equal(together.edges, np.concatenate([found.edges for found in alone]))
        for name in ("node_arrays", "edge_arrays"):
            for key, values in getattr(together, name).items():
                parts = [getattr(found, name)[key] for found in alone]
                assert values.dtype == parts[0].dtype
                assert np.array_equal(values, np.concatenate(parts))


def test_large_graphs_are_projections_of_the_variable_clause_graph():
    rng = np.random.default_rng(5)
    literals = rng.integers(1, 401, (1500, 4)) * rng.choice([-1, 1], (1500, 4))
    cnf = Cnf.from_clauses(literals.tolist(), 400).canonical()
    bipartite = nx.Graph(graph(cnf, "vcg").edges.tolist())
    bipartite.add_nodes_from(range(400))
    weighted = nx.bipartite.weighted_projected_graph(bipartite, range(400))
    found = graph(cnf, "vg")
    pairs = map(tuple, found.edges.tolist())
    assert dict(zip(pairs, found.edge_arrays["count"].tolist(), strict=True)) == {
        (min(u, v), max(u, v)): weight for u, v, weight in weighted.edges(data="weight")
    }
    clashes = Counter()
    holders = {literal: [] for v in range(1, 401) for literal in (v, -v)}
    for j, clause in enumerate(cnf.clauses()):
        for literal in clause:
            clashes.update((i, j) for i in holders[-literal])
            holders[literal].append(j)
    found = graph(cnf, "cg")
    assert dict(zip(map(tuple, found.edges.tolist()), found.edge_arrays["count"].tolist(), strict=True)) == clashes


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_has_at_most_the_allowed_edges(kind):
    size = len(graph(EXAMPLE, kind).edges)
    assert len(graph(EXAMPLE, kind, size).edges) == size
    with pytest.raises(ArgumentError, match=f"'{kind}' has more than max_edges = {size - 1}"):
        graph(EXAMPLE, kind, size - 1)


def test_links_count_as_edges():
    size = len(graph(EXAMPLE, "lcg").edges) + 5
    assert len(graph(EXAMPLE, "lcg", size, link_literals=True).edges) == size
    with pytest.raises(ArgumentError, match="max_edges"):
        graph(EXAMPLE, "lcg", size - 1, link_literals=True)


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentError, match=r"graph 'xyz'.*vg"):
        graph(EXAMPLE, "xyz")
    with pytest.raises(ArgumentError, match="link_literals has no meaning for 'vg'"):
        graph(EXAMPLE, "vg", link_literals=True)
    for literal in (0, 3, -3, -(2**31)):
        with pytest.raises(ArgumentError, match=f"the literal {literal} at position 1"):
            graph(Cnf(2, np.array([1, literal], np.int32), np.array([0, 2])), "vcg")
    for sizes in ([3, -1], [-1, 3]):
        with pytest.raises(ArgumentError, match="2 formulas of 2 clauses"):
            graphs_of_formulas(np.array([2, 2]), np.array(sizes), np.array([0, 1, 2]), np.array([1, 2]), "vcg")
    with pytest.raises(ArgumentError, match="2 formulas of 3 clauses"):
        graphs_of_formulas(np.array([2, 2]), np.array([2, 1]), np.array([0, 2, 1, 2]), np.array([1, 2]), "vg")
    with pytest.raises(ArgumentError, match=r"2 formulas of 5 clauses.*fit 4 clauses of 3 literals"):
        graphs_of_formulas(np.array([2, 2]), np.array([2, 3]), np.array([0, 1, 1, 2, 3]), np.array([1, 2, 1]), "vg")


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.data())
def test_both_ways_to_join_the_members_of_groups_agree(n, data):
    groups = data.draw(st.lists(st.lists(st.integers(0, n - 1), unique=True, max_size=n).map(sorted), max_size=9))
    group_first = np.cumsum([0, *map(len, groups)])
    members = np.array([v for group in groups for v in group], np.int32)
    shared = Counter(pair for group in groups for pair in itertools.combinations(group, 2))
    by_node = transposed(group_first, members, n)
    total = count_pairs(group_first)
    assert total == shared.total()
    starts, larger, joined_counts, _ = joined(*by_node, group_first, members, 0, 1000)
    smaller = np.repeat(np.arange(n), np.diff(starts))
    num_edges, edges, counts = joined_pairs(np.array([n]), group_first, members)
    assert num_edges.tolist() == [len(shared)]
    assert list(zip(map(tuple, edges.tolist()), counts.tolist(), strict=True)) == sorted(shared.items())
    pairs = zip(smaller.tolist(), larger.tolist(), strict=True)
    assert list(zip(pairs, joined_counts.tolist(), strict=True)) == sorted(shared.items())


@pytest.mark.parametrize("length", [20, 60])  # fewer and more pairs than are stored before equal ones are merged
def test_long_clauses_have_the_graph_of_the_definition(length):
    rng = np.random.default_rng(length)
    clauses = [(rng.permutation(80)[:length] + 1) * rng.choice([-1, 1], length) for _ in range(12)]
    cnf = Cnf.from_clauses([clause.tolist() for clause in clauses], 80)
    shared = Counter(
        pair for clause in clauses for pair in itertools.combinations(sorted(np.abs(clause) - 1), 2)
    )  # fmt: skip
    found = graph(cnf, "vg")
    assert list(map(tuple, found.edges.tolist())) == sorted(shared)
    assert found.edge_arrays["count"].tolist() == [shared[pair] for pair in sorted(shared)]
    with pytest.raises(ArgumentError, match="max_edges"):
        graph(cnf, "vg", len(shared) - 1)
