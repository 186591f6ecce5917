"""Searches that learn nothing: optimal on small graphs, feasible on large ones, the same alone and in a batch."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from graphbench.core.errors import ConfigError
from graphbench.domains.co.annealing import PENALTY, independent_part, langevin, metropolis
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.problems import PROBLEMS
from graphbench.domains.co.searches import SEARCHES

METHODS = [(problem, method) for problem, methods in SEARCHES.items() for method in methods]
EXACT = [(problem, method) for problem, method in METHODS if method not in ("greedy", "dsatur")]


def joined(listed: list[nx.Graph]) -> UndirectedGraphs:
    ptr = np.cumsum([0, *map(len, listed)])
    arcs = [(u + at, v + at) for graph, at in zip(listed, ptr, strict=False) for u, v in sorted(graph.edges)]
    edges = np.array(arcs, np.int64).reshape(-1, 2)
    both = np.stack([edges, edges[:, ::-1]], axis=1).reshape(-1, 2)
    return UndirectedGraphs.checked(ptr, both.T.copy())


def best_value(problem: str, graph: nx.Graph) -> int:
    """Return the optimum, by trying all solutions."""
    nodes = range(len(graph))
    if problem == "coloring":
        for colours in itertools.count(1):
            for colouring in itertools.product(range(colours), repeat=len(graph)):
                if all(colouring[u] != colouring[v] for u, v in graph.edges):
                    return colours
    subsets = [{v for v in nodes if bits >> v & 1} for bits in range(1 << len(graph))]
    if problem == "mis":
        return max(len(s) for s in subsets if not any(u in s and v in s for u, v in graph.edges))
    if problem == "vertex_cover":
        return min(len(s) for s in subsets if all(u in s or v in s for u, v in graph.edges))
    if problem == "max_clique":
        return max(len(s) for s in subsets if all(graph.has_edge(u, v) for u, v in itertools.combinations(s, 2)))
    return max(sum((u in s) != (v in s) for u, v in graph.edges) for s in subsets)


@pytest.fixture(scope="module")
def small() -> list[nx.Graph]:
    return [nx.gnp_random_graph(5 + seed % 4, 0.2 + 0.1 * (seed % 6), seed=seed) for seed in range(24)]


@pytest.mark.parametrize(("problem", "method"), EXACT)
def test_small_graphs_are_solved_to_the_optimum(problem, method, small):
    graphs = joined(small)
    values = PROBLEMS[problem].objectives(graphs, PROBLEMS[problem].search(method, {})(graphs))
    assert values.tolist() == [best_value(problem, graph) for graph in small]


@pytest.mark.parametrize(("problem", "method"), METHODS)
def test_solutions_are_feasible_and_do_not_depend_on_the_batch(problem, method):
    listed = [nx.gnp_random_graph(40 + 5 * seed, 0.2, seed=seed) for seed in range(4)]
    listed += [nx.empty_graph(3), nx.empty_graph(1)]
    search = PROBLEMS[problem].search(method, {})
    graphs = joined(listed)
    solution = search(graphs, 3)
    assert solution.dtype == np.int32 and solution.shape == (graphs.num_nodes,)
    values = PROBLEMS[problem].objectives(graphs, solution)
    assert (
        values[-2:].tolist()
        == {"mis": [3, 1], "max_cut": [0, 0], "coloring": [1, 1], "vertex_cover": [0, 0], "max_clique": [1, 1]}[problem]
    )
    for g, graph in enumerate(listed):
        np.testing.assert_array_equal(search(joined([graph]), 3), solution[graphs.ptr[g] : graphs.ptr[g + 1]])


@pytest.mark.parametrize(("problem", "method"), METHODS)
def test_rules_are_the_searches_that_do_not_depend_on_the_seed(problem, method):
    graphs = joined([nx.gnp_random_graph(90, 0.4, seed=seed) for seed in range(4)])
    search = PROBLEMS[problem].search(method, {})
    solutions = [search(graphs, seed) for seed in range(4)]
    same = all(np.array_equal(solution, solutions[0]) for solution in solutions)
    if method != "solver":  # solvers with a proof may have one answer
        assert same == (method in PROBLEMS[problem].rules)
    assert "solver" not in PROBLEMS[problem].rules


@pytest.mark.parametrize("problem", ["mis", "max_cut"])
def test_annealing_beats_the_greedy_rule_and_more_chains_are_never_worse(problem):
    graphs = joined([nx.gnp_random_graph(120, 0.2, seed=seed) for seed in range(6)])
    values = {
        name: PROBLEMS[problem].objectives(graphs, PROBLEMS[problem].search(method, {})(graphs, **options))
        for name, method, options in (
            ("greedy", "greedy", {}),
            ("annealing", "annealing", {}),
            ("one chain", "langevin", {"chains": 1}),
            ("langevin", "langevin", {}),
        )
    }
    assert values["annealing"].sum() > values["greedy"].sum() and values["langevin"].sum() > values["greedy"].sum()
    assert values["langevin"].sum() > values["one chain"].sum()


@pytest.mark.parametrize("of_set", [True, False])
def test_the_best_state_has_the_least_energy_of_short_chains(of_set):
    """Chains of one step end in states that can be counted: no state of a chain has less energy than the answer."""
    graphs = joined([nx.gnp_random_graph(9, 0.4, seed=seed) for seed in range(5)])

    def energies(bits):
        tails, heads = graphs.edge_index
        x = bits.astype(float)
        of_edges = x[tails] * x[heads] * PENALTY if of_set else -(x[tails] != x[heads]).astype(float)
        total = np.zeros(len(graphs))
        np.add.at(total, graphs.graph[tails], of_edges / 2)
        if of_set:
            np.add.at(total, graphs.graph, -x)
        return total

    one = [
        energies(langevin(graphs.ptr, *graphs.neighbours, of_set, chains, 30, 0.5, 2, np.uint64(7)))
        for chains in (1, 2, 4, 8)
    ]
    assert all((more <= fewer + 1e-9).all() for fewer, more in itertools.pairwise(one))
    sweeps = energies(metropolis(graphs.ptr, *graphs.neighbours, of_set, 8, 50, 1.0, 0.1, np.uint64(7)))
    optimum = [
        best_value("mis" if of_set else "max_cut", g) for g in (nx.gnp_random_graph(9, 0.4, seed=s) for s in range(5))
    ]
    assert sweeps == pytest.approx([-value for value in optimum])


def test_a_set_with_edges_in_it_is_made_independent():
    path = joined([nx.path_graph(5)])
    chosen = independent_part(path.ptr, *path.neighbours, np.array([1, 1, 1, 0, 0], np.int8))
    assert chosen.tolist() == [1, 0, 1, 0, 1]  # the middle one has most neighbours, then the last node is free


def test_wrong_names_and_options_are_refused():
    problem = PROBLEMS["mis"]
    with pytest.raises(ConfigError, match=r"no search 'anealing'.*did you mean 'annealing'"):
        problem.search("anealing", {})
    with pytest.raises(ConfigError, match=r"no option 'sweep'.*did you mean 'sweeps'"):
        problem.search("annealing", {"sweep": 3})
    with pytest.raises(ConfigError, match=r"model.options.sweeps is 1.5; give a whole number from 1 on"):
        problem.search("annealing", {"sweeps": 1.5})
    with pytest.raises(ConfigError, match=r"model.options.hottest is 0; give a number above 0"):
        problem.search("annealing", {"hottest": 0})
