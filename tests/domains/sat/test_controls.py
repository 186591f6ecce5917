"""Pigeonholes, parity equations and colourings against brute force and NetworkX."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.core.rng import seed
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.controls import (
    colouring_clauses,
    dependent_equations,
    draw_colouring,
    draw_edges,
    draw_parity,
    draw_pigeonhole,
    parity_clauses,
)
from graphbench.domains.sat.instances import ColoringParameters, ParityParameters, PigeonholeParameters, draw_instance

KEY = np.uint64(17)


def models(formula):
    """Return the satisfying assignments, bool ``[number, n]``, by trying all."""
    values = np.array(list(itertools.product([False, True], repeat=formula.num_variables)))
    holds = np.ones(len(values), bool)
    for clause in formula.clauses():
        holds &= np.any([values[:, abs(x) - 1] == (x > 0) for x in clause], axis=0)
    return values[holds]


# --- pigeonholes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [1, 2, 3])
def test_pigeonhole_clauses_are_unsatisfiable_and_none_can_be_left_out(holes):
    formula = Cnf(*draw_pigeonhole(KEY, 0, 0, (holes, holes)))
    clauses = list(formula.clauses())
    assert formula.num_variables == holes * (holes + 1)
    assert len(clauses) == holes + 1 + holes * math.comb(holes + 1, 2)
    assert not len(models(formula))
    for j in range(len(clauses)):
        assert len(models(Cnf.from_clauses(clauses[:j] + clauses[j + 1 :], formula.num_variables)))


def test_pigeonhole_sizes_are_drawn():
    p = PigeonholeParameters(holes=(4, 7))
    sizes = Counter(draw_instance(p, KEY, i, 0).formula.num_variables for i in range(100))
    assert set(sizes) == {20, 30, 42, 56}


# --- parity -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(30))
@pytest.mark.thorough
def test_parity_clauses_have_the_solutions_of_the_equations(index):
    n, equations, sides, hidden, consistent = draw_parity(KEY, index, 0, (6, 9), (1.01, 1.4), (2, 5), 0.5)
    assert 6 <= n <= 9
    assert n < len(equations) <= math.ceil(1.4 * n)
    assert all(len(set(row)) == len(row) and min(row) >= 0 and max(row) < n for row in equations.tolist())
    values = np.array(list(itertools.product([False, True], repeat=n)))
    holds = (values[:, equations].sum(axis=2) % 2 == sides).all(axis=1)
    formula = Cnf(*parity_clauses(n, equations, sides))
    np.testing.assert_array_equal(models(formula), values[holds])
    assert formula.num_clauses == len(equations) * 2 ** (equations.shape[1] - 1)
    assert consistent == holds.any()
    wrong = int((hidden[equations].sum(axis=1) % 2 != sides).sum())
    assert wrong == (0 if consistent else 1)


def rank(rows):
    """Return the rank modulo 2 of rows given as whole numbers."""
    basis = []
    for row in rows:
        for b in basis:
            row = min(row, row ^ b)
        if row:
            basis.append(row)
    return len(basis)


@settings(max_examples=80, deadline=None)
@given(st.integers(4, 140).flatmap(lambda n: st.tuples(st.just(n), st.integers(2, 4), st.integers(0, 2**32))))
def test_dependent_equations_do_not_raise_the_rank(drawn):
    n, width, source = drawn
    rng = np.random.default_rng(source)
    span = rng.integers(width, n + 1)  # equations over few variables are often dependent
    equations = np.array([rng.choice(span, width, replace=False) for _ in range(min(n, 40))])
    rows = [sum(1 << int(v) for v in row) for row in equations]
    expected = [e for e in range(len(rows)) if rank(rows[: e + 1]) == rank(rows[:e])]
    assert dependent_equations(equations, n).tolist() == expected


def test_share_of_flipped_systems():
    for flipped, low, high in ((0.0, 0, 0), (0.3, 90, 150), (1.0, 400, 400)):
        p = ParityParameters(variables=(10, 20), ratio=(1.1, 1.2), flipped=flipped)
        inconsistent = sum(not draw_instance(p, KEY, i, 0).satisfiable for i in range(400))
        assert low <= inconsistent <= high


def test_systems_of_few_equations_are_allowed_where_none_is_flipped():
    p = ParityParameters(variables=(10, 20), ratio=(0.2, 0.5), width=(3, 3), flipped=0.0)
    for i in range(20):
        instance = draw_instance(p, KEY, i, 0)
        assert instance.model is not None
        assert instance.formula.is_satisfied_by(instance.model)
        assert instance.formula.num_clauses % 4 == 0
        assert instance.formula.num_clauses <= 40


# --- colouring --------------------------------------------------------------------------------------------------------


def test_graphs_with_a_number_of_edges_are_equally_likely():
    graphs = Counter()
    for index in range(3000):
        edges = draw_edges(seed(KEY, index, 0, 0), 5, 3).tolist()
        assert all(0 <= u < v < 5 for u, v in edges)
        graphs[frozenset(map(tuple, edges))] += 1
    assert all(len(graph) == 3 for graph in graphs)
    assert len(graphs) == math.comb(10, 3)
    assert stats.chisquare(list(graphs.values())).pvalue > 1e-3


def test_a_graph_with_all_edges():
    edges = draw_edges(seed(KEY, 0, 0, 0), 300, 300 * 299 // 2)
    assert set(map(tuple, edges.tolist())) == set(itertools.combinations(range(300), 2))


@pytest.mark.parametrize(("nodes", "colours"), [(6, 2), (5, 3), (4, 4), (3, 1)])
def test_models_are_the_colourings(nodes, colours):
    """The number of colourings with k colours is the value at k of the chromatic polynomial."""
    for index in range(8):
        m = index % (nodes * (nodes - 1) // 2 + 1)
        edges = draw_edges(seed(KEY, index, 0, 0), nodes, m)
        graph = nx.Graph(edges.tolist())
        graph.add_nodes_from(range(nodes))
        polynomial = nx.chromatic_polynomial(graph)
        expected = int(polynomial.subs("x", colours)) if m else colours**nodes
        found = models(Cnf(*colouring_clauses(nodes, edges, colours))).reshape(-1, nodes, colours)
        assert len(found) == expected
        assert (found.sum(axis=2) == 1).all()
        given_colours = found.argmax(axis=2)
        assert (given_colours[:, edges[:, 0]] != given_colours[:, edges[:, 1]]).all()


def test_sizes_of_colourings():
    for index in range(50):
        n, literals, ptr = draw_colouring(KEY, index, 0, (20, 40), (1.0, 2.0), 3)
        nodes = n // 3
        assert 20 <= nodes <= 40
        edges = (len(ptr) - 1 - 4 * nodes) / 3
        assert math.floor(nodes) <= edges <= math.ceil(2 * nodes)
        assert len(literals) == 3 * nodes + 2 * (3 * nodes + 3 * edges)


def test_more_edges_than_pairs_give_a_complete_graph():
    p = ColoringParameters(nodes=(5, 5), ratio=(10, 10), colors=2)
    assert draw_instance(p, KEY, 0, 0).formula.num_clauses == 5 * 2 + 10 * 2
