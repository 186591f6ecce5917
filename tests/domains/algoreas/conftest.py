"""Graphs for the tests of the algorithmic reasoning kernels."""

from collections.abc import Callable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest

from graphbench.domains.algoreas.graph_models import pack_mixture, pack_models
from graphbench.domains.algoreas.random_graphs import draw_graphs

# Table 14, minimum spanning tree (shift)
MODELS: dict[str, dict[str, Any]] = {
    "er": {"p": 0.17},
    "nws": {"k": 2, "p": 0.15},
    "ba": {"m": 2},
    "dba": {"m1": 2, "m2": 1, "p": 0.05},
    "pc": {"m": 5, "p": 0.35},
    "sbm": {"p": [[0.31, 0.01], [0.01, 0.31]], "sizes": [0.5, 0.5]},
}


class Shard(NamedTuple):
    """The arguments that all label kernels take."""

    key: np.uint64
    indices: np.ndarray
    attempts: np.ndarray
    num_nodes: int
    edge_ptr: np.ndarray
    edges: np.ndarray

    def graphs(self) -> list[tuple[slice, np.ndarray]]:
        """Return, per graph, the rows of its edges and the edges."""
        bounds = zip(self.edge_ptr[:-1], self.edge_ptr[1:], strict=True)
        return [(slice(begin, end), self.edges[begin:end]) for begin, end in bounds]


@pytest.fixture(scope="session")
def shard() -> Callable[..., Shard]:
    """Return a function that draws graphs of all six models."""

    def draw(num_nodes: int, count: int, first: int = 0, attempt: int = 0) -> Shard:
        key, indices = np.uint64(11), np.arange(first, first + count)
        attempts = np.full(count, attempt)
        weights = pack_mixture(dict.fromkeys(MODELS, 1))
        edge_ptr, edges, _ = draw_graphs(key, indices, attempts, num_nodes, weights, pack_models(MODELS), 1, 1)
        return Shard(key, indices, attempts, num_nodes, edge_ptr, edges)

    return draw


@pytest.fixture(scope="session")
def random_edges() -> Callable[[int, float, int], np.ndarray]:
    """Return a function that draws a random graph, perhaps in pieces, as sorted edges."""

    def draw(num_nodes: int, p: float, seed: int) -> np.ndarray:
        edges = sorted(nx.gnp_random_graph(num_nodes, p, seed=seed).edges)
        return np.array(edges, np.int32).reshape(-1, 2)

    return draw
