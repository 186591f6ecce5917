"""Structural features against definitions in plain Python and networkx."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.feature_communities import communities, modularity
from graphbench.domains.sat.feature_graph_kernels import clustering, symmetric
from graphbench.domains.sat.feature_graphs import LONGEST, MOST_OCCURRENCES
from graphbench.domains.sat.feature_groups import features
from graphbench.domains.sat.graphs import graph


@st.composite
def formulas(draw):
    """Formulas with empty, unit, repeated and tautological clauses, and with unused variables."""
    n = draw(st.integers(1, 12))
    literal = st.integers(1, n).flatmap(lambda v: st.sampled_from([v, -v]))
    return Cnf.from_clauses(draw(st.lists(st.lists(literal, max_size=5), max_size=14)), n)


def summary(prefix, values, log=False):
    """Return the five statistics under their names."""
    values = np.array(sorted(values), float)
    scale, mark = (lambda x: math.log10(1 + x), "log_") if log else (float, "")
    if not len(values):
        return {f"{prefix}_{name}": 0 for name in (f"{mark}mean", "cv", f"{mark}min", f"{mark}max", "entropy")}
    counts = list(Counter(values.tolist()).values())
    return {
        f"{prefix}_{mark}mean": scale(values.mean()),
        f"{prefix}_cv": values.std() / values.mean() if values.any() else 0,
        f"{prefix}_{mark}min": scale(values.min()),
        f"{prefix}_{mark}max": scale(values.max()),
        f"{prefix}_entropy": stats.entropy(counts, base=2),
    }


def share(part, whole):
    return part / whole if whole else 0


def expected_counts(cnf):
    clauses = [sorted(set(clause)) for clause in cnf.clauses()]
    n, m = cnf.num_variables, len(clauses)
    occurring = [literal for clause in clauses for literal in clause]
    used = sorted({abs(literal) for literal in occurring})
    counts = {v: (occurring.count(v), occurring.count(-v)) for v in used}
    signs = [(sum(x > 0 for x in clause), sum(x < 0 for x in clause)) for clause in clauses]
    horn = [clause for clause, (positive, _) in zip(clauses, signs, strict=True) if positive <= 1]
    reverse = [clause for clause, (_, negative) in zip(clauses, signs, strict=True) if negative <= 1]
    lengths = [len(clause) for clause in clauses]
    result = {
        "log_variables": math.log10(1 + n),
        "log_clauses": math.log10(1 + m),
        "log_literals": math.log10(1 + len(occurring)),
        "clauses_per_variable": share(m, n),
        "variables_per_clause": share(n, m),
        "literals_per_variable": share(len(occurring), n),
        "literals_per_clause": share(len(occurring), m),
        "unused_variable_share": share(n - len(used), n),
        "positive_literal_share": share(sum(x > 0 for x in occurring), len(occurring)),
        "pure_variable_share": share(sum(0 in pair for pair in counts.values()), len(used)),
        "horn_clause_share": share(len(horn), m),
        "reverse_horn_clause_share": share(len(reverse), m),
        "negative_clause_share": share(sum(p == 0 for p, _ in signs), m),
        "positive_clause_share": share(sum(q == 0 for _, q in signs), m),
    }
    for length, name in enumerate(("empty", "unit", "binary", "ternary")):
        result[f"{name}_clause_share"] = share(lengths.count(length), m)
    result |= summary("clause_balance", [min(pair) / max(pair) for pair in signs if any(pair)])
    result |= summary("variable_balance", [min(pair) / max(pair) for pair in counts.values()])
    for name, chosen in (("horn", horn), ("reverse_horn", reverse)):
        inside = Counter(abs(literal) for clause in chosen for literal in clause)
        result |= summary(f"{name}_occurrences", [inside[v] for v in used], log=True)
    result |= summary("variable_degree", [sum(pair) for pair in counts.values()], log=True)
    return result | summary("clause_degree", lengths, log=True)


def expected_graphs(cnf):
    clauses = [set(clause) for clause in cnf.clauses()]
    variables = nx.Graph()
    variables.add_nodes_from({abs(literal) for clause in clauses for literal in clause})
    for clause in clauses:
        variables.add_edges_from(itertools.combinations({abs(literal) for literal in clause}, 2))
    resolving = nx.Graph()
    resolving.add_nodes_from(range(len(clauses)))
    for i, j in itertools.combinations(range(len(clauses)), 2):
        if any(-literal in clauses[j] for literal in clauses[i]):
            resolving.add_edge(i, j)
    components = [len(component) for component in nx.connected_components(variables)]
    distances = [nx.single_source_shortest_path_length(variables, v) for v in variables]
    means = [share(sum(lengths.values()), len(lengths) - 1) for lengths in distances]
    result = {
        "log_variable_graph_edges": math.log10(1 + variables.number_of_edges()),
        "log_clause_graph_edges": math.log10(1 + resolving.number_of_edges()),
        "log_components": math.log10(1 + len(components)),
        "largest_component_share": share(max(components, default=0), len(variables)),
        "distance_mean": summary("d", means)["d_mean"],
        "distance_cv": summary("d", means)["d_cv"],
    }
    result |= summary("variable_graph_degree", [degree for _, degree in variables.degree], log=True)
    result |= summary("clause_graph_degree", [degree for _, degree in resolving.degree], log=True)
    # rounding apart, equal coefficients are one value
    result |= summary("clustering", [round(value, 12) for value in nx.clustering(variables).values()])
    result |= summary("eccentricity", [max(lengths.values()) for lengths in distances])
    del result["eccentricity_entropy"]
    return result


@given(formulas())
@settings(max_examples=150, deadline=None)
def test_counts_follow_their_definitions(cnf):
    assert features(cnf, ["size", "balance", "horn", "degrees"]) == pytest.approx(expected_counts(cnf), abs=1e-9)


@given(formulas())
@settings(max_examples=150, deadline=None)
def test_graphs_follow_their_definitions(cnf):
    found = features(cnf, ["variable_graph", "clause_graph", "distance"])
    assert found == pytest.approx(expected_graphs(cnf), abs=1e-9)


def test_long_clauses_and_hubs_have_no_pairs():
    long = list(range(1, LONGEST + 2))
    short = [[2 * v + 1, -2 * v - 2, 2 * v + 3] for v in range(20)]
    assert features(Cnf.from_clauses([*short, long]), ["variable_graph"])["log_variable_graph_edges"] == pytest.approx(
        math.log10(1 + 3 * 20)
    )
    assert features(Cnf.from_clauses([long[:-1]]), ["variable_graph"])["log_variable_graph_edges"] == pytest.approx(
        math.log10(1 + LONGEST * (LONGEST - 1) // 2)
    )
    for count, edges in ((MOST_OCCURRENCES, MOST_OCCURRENCES - 1), (MOST_OCCURRENCES + 1, 0)):
        hub = Cnf.from_clauses([[-1], *([1, v] for v in range(2, count + 1))])
        assert features(hub, ["clause_graph"])["log_clause_graph_edges"] == pytest.approx(math.log10(1 + edges))


def planted(n, groups, m, q, seed):
    """Return a formula most of whose clauses have their variables in one of some groups."""
    rng = np.random.default_rng(seed)
    size = n // groups
    clauses = []
    for _ in range(m):
        low, width = (size * rng.integers(groups), size) if rng.random() < q else (0, n)
        clauses.append(((low + rng.choice(width, 3, replace=False) + 1) * rng.choice([-1, 1], 3)).tolist())
    return Cnf.from_clauses(clauses, n)


def weighted_lists(cnf):
    """Return the symmetric neighbour lists of the variable graph, and the same as a networkx graph."""
    found = graph(cnf, "vg")
    n, counts = cnf.num_variables, found.edge_arrays["count"]
    starts = np.searchsorted(found.edges[:, 0], np.arange(n + 1)).astype(np.int64)
    lists = symmetric(starts, found.edges[:, 1].copy(), counts)
    twin = nx.Graph()
    twin.add_nodes_from(range(n))
    twin.add_weighted_edges_from((u, v, w) for (u, v), w in zip(found.edges.tolist(), counts.tolist(), strict=True))
    return lists, twin


@pytest.mark.parametrize("seed", range(5))
def test_communities_are_as_modular_as_those_of_networkx(seed):
    cnf = planted(300, 3 + 3 * seed, 1100, 0.25 * seed, seed)
    lists, twin = weighted_lists(cnf)
    for v in range(0, 300, 37):
        neighbours = lists[1][lists[0][v] : lists[0][v + 1]].tolist()
        assert neighbours == sorted(twin[v])
        assert lists[2][lists[0][v] : lists[0][v + 1]].tolist() == [twin[v][u]["weight"] for u in neighbours]
    community, _ = communities(*lists, np.uint64(seed))
    parts = [set(np.flatnonzero(community == c).tolist()) for c in range(community.max() + 1)]
    value = modularity(*lists, community)
    assert value == pytest.approx(nx.community.modularity(twin, parts))
    theirs = nx.community.modularity(twin, nx.community.louvain_communities(twin, seed=seed))
    assert value > theirs - 0.03


def test_planted_communities_are_found():
    found = features(planted(400, 8, 1700, 0.9, 1), ["community"])
    assert found["log_communities"] == pytest.approx(math.log10(1 + 8))
    assert found["modularity"] > 0.7
    assert features(planted(400, 8, 1700, 0.0, 1), ["community"])["modularity"] < 0.3


def test_large_graphs_have_the_clustering_of_every_kth_node():
    (first, nodes, _), twin = weighted_lists(planted(200, 4, 800, 0.7, 3))
    edges = np.array(sorted(map(sorted, twin.edges)), np.int32)
    up = np.searchsorted(edges[:, 0], np.arange(201)).astype(np.int64)
    values = nx.clustering(twin)
    full, stride, steps = clustering(first, nodes, up, edges[:, 1].copy(), 1 << 40)
    assert stride == 1
    assert full == pytest.approx([values[v] for v in range(200)])
    some, stride, fewer = clustering(first, nodes, up, edges[:, 1].copy(), steps // 3)
    assert stride > 2
    assert fewer < steps / 2
    assert some == pytest.approx([values[v] for v in range(0, 200, stride)])
