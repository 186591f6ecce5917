"""Graphs and brute force for the tests of combinatorial optimisation."""

import itertools
from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np
import pytest

from graphbench.domains.co.graphs import BAParameters, ERParameters, GraphParameters, RBParameters, draw_graphs

Graph = tuple[int, np.ndarray]

# GraphBench, Table 11
FAMILIES: dict[str, GraphParameters] = {
    "rb_small": RBParameters(model="rb", cliques=(20, 25), clique_size=(5, 12), tightness=(0.3, 1.0), nodes=(200, 300)),
    "rb_large": RBParameters(
        model="rb", cliques=(40, 55), clique_size=(20, 25), tightness=(0.3, 1.0), nodes=(800, 1200)
    ),
    "er_small": ERParameters(model="er", nodes=(200, 300), p=0.15),
    "er_large": ERParameters(model="er", nodes=(700, 800), p=0.15),
    "ba_small": BAParameters(model="ba", nodes=(200, 300), m=2),
    "ba_large": BAParameters(model="ba", nodes=(700, 800), m=2),
}


def as_edges(graph: nx.Graph) -> np.ndarray:
    return np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), np.int32).reshape(-1, 2)


def relabelled(num_nodes: int, edges: np.ndarray, seed: int) -> np.ndarray:
    new = np.random.default_rng(seed).permutation(num_nodes)
    pairs = np.sort(new[edges], axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int32)


@pytest.fixture(scope="session")
def families() -> dict[str, GraphParameters]:
    """Return the parameters of the paper's six families of graphs."""
    return FAMILIES


@pytest.fixture(scope="session")
def relabel() -> Callable[[int, np.ndarray, int], np.ndarray]:
    """Return a function that renames the nodes of a graph at random."""
    return relabelled


@pytest.fixture(scope="session")
def edges_of() -> Callable[[nx.Graph], np.ndarray]:
    """Return a function that turns a networkx graph into sorted edges."""
    return as_edges


@cache
def _atlas() -> tuple[Graph, ...]:
    graphs = [graph for graph in nx.graph_atlas_g() if len(graph)]
    return tuple((len(graph), as_edges(graph)) for graph in graphs)


@pytest.fixture(scope="session")
def atlas() -> tuple[Graph, ...]:
    """Return all 1252 graphs of 1 to 7 nodes, up to isomorphism."""
    return _atlas()


@pytest.fixture(scope="session")
def random_edges() -> Callable[[int, float, int], np.ndarray]:
    def draw(num_nodes: int, p: float, seed: int) -> np.ndarray:
        return as_edges(nx.gnp_random_graph(num_nodes, p, seed=seed))

    return draw


@pytest.fixture(scope="session")
def drawn() -> Callable[..., list[Graph]]:
    """Return a function that draws graphs of one of the paper's families."""

    def draw(family: str, count: int, first: int = 0) -> list[Graph]:
        indices = np.arange(first, first + count)
        nodes, sizes, edges = draw_graphs(FAMILIES[family], np.uint64(7), indices, np.zeros(count, np.int64))
        parts = np.split(edges, np.cumsum(sizes)[:-1])
        return [(int(n), part.copy()) for n, part in zip(nodes, parts, strict=True)]

    return draw


@pytest.fixture(scope="session")
def largest_set() -> Callable[[int, np.ndarray], int]:
    """Return a function that finds the size of a largest independent set by trying all sets of nodes."""

    def solve(num_nodes: int, edges: np.ndarray) -> int:
        sets = np.arange(1 << num_nodes)
        independent = np.ones(len(sets), bool)
        for u, v in edges.tolist():
            independent &= ((sets >> u) & (sets >> v) & 1) == 0
        return max(int(s).bit_count() for s in sets[independent])

    return solve


@pytest.fixture(scope="session")
def heaviest() -> Callable[..., float]:
    """Return a function that finds the weight of a heaviest cut by trying all of them."""

    def solve(num_nodes: int, edges: np.ndarray, weights: np.ndarray | None = None) -> float:
        sides = np.arange(1 << max(num_nodes - 1, 0))  # the last node is on side 0
        value = np.zeros(len(sides), np.int64)
        for row, (u, v) in enumerate(edges.tolist()):
            value += (((sides >> u) ^ (sides >> v)) & 1) * (1 if weights is None else int(weights[row]))
        return int(value.max())

    return solve


@pytest.fixture(scope="session")
def chromatic_number() -> Callable[[int, np.ndarray], int]:
    """Return a function that finds the least number of colours by trying all colourings."""

    def solve(num_nodes: int, edges: np.ndarray) -> int:
        pairs = edges.tolist()
        for colours in itertools.count(1):
            if _can_colour(num_nodes, pairs, colours, [0]):
                return colours
        raise AssertionError

    return solve


def _can_colour(num_nodes: int, pairs: list[list[int]], colours: int, given: list[int]) -> bool:
    v = len(given)
    if v == num_nodes:
        return True
    taken = {given[u] for u, w in pairs if w == v}
    choices = range(min(colours, max(given) + 2))
    return any(c not in taken and _can_colour(num_nodes, pairs, colours, [*given, c]) for c in choices)
