"""Circulations: the projection of flows, zero on bridges alone, the same for a graph alone and in a batch."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphbench.core.ragged import offsets
from graphbench.models import circulations as module
from graphbench.models.circulations import circulations


def edges_of(graphs: list[nx.Graph]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.array([graph.number_of_nodes() for graph in graphs])
    parts = [
        np.array(sorted(g.edges), np.int64).reshape(-1, 2) + first
        for g, first in zip(graphs, offsets(sizes)[:-1], strict=True)
    ]
    return sizes, np.concatenate(parts).T


def projected(nodes: int, edges: NDArray[np.int64], flows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the circulations by least squares on the incidence matrix."""
    incidence = np.zeros((edges.shape[1], nodes))
    np.add.at(incidence, (np.arange(edges.shape[1]), edges[1]), 1.0)
    np.subtract.at(incidence, (np.arange(edges.shape[1]), edges[0]), 1.0)
    return flows - incidence @ np.linalg.lstsq(incidence, flows, rcond=None)[0]


@pytest.fixture(params=["dense", "sparse"])
def _solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "sparse":
        monkeypatch.setattr(module, "_MOST_DENSE", 1)


GRAPHS = [nx.gnm_random_graph(n, m, seed=n + m) for n, m in ((9, 5), (12, 14), (12, 30), (1, 0), (7, 0), (20, 19))]


@pytest.mark.usefixtures("_solver")
def test_circulations_are_the_least_squares_projection_of_every_graph() -> None:
    sizes, edges = edges_of(GRAPHS)
    flows = np.random.default_rng(0).normal(size=(edges.shape[1], 3))
    np.testing.assert_allclose(circulations(sizes, edges, flows), projected(int(sizes.sum()), edges, flows), atol=1e-9)


@pytest.mark.usefixtures("_solver")
def test_a_graph_has_the_same_circulations_alone_and_in_a_batch() -> None:
    sizes, edges = edges_of(GRAPHS)
    flows = np.random.default_rng(1).normal(size=(edges.shape[1], 2))
    together, first = circulations(sizes, edges, flows), 0
    for graph in GRAPHS:
        size, alone = edges_of([graph])
        last = first + alone.shape[1]
        np.testing.assert_array_equal(circulations(size, alone, flows[first:last]), together[first:last])
        first = last


@pytest.mark.parametrize("length", [4, 40, 400])
def test_circulations_are_zero_on_bridges_alone(length: int) -> None:
    graph = nx.cycle_graph(length)
    nx.add_cycle(graph, range(length, length + 5))
    graph.add_edges_from([(0, length), (1, length + 5)])  # two bridges: between the cycles, and to a leaf
    sizes, edges = edges_of([graph])
    flows = np.random.default_rng(2).normal(size=(edges.shape[1], 1))
    bridges = {tuple(sorted(edge)) for edge in nx.bridges(graph)}
    values = circulations(sizes, edges, flows)[:, 0]
    assert {tuple(edge) for edge, value in zip(edges.T.tolist(), values, strict=True) if value == 0} == bridges
    on_cycle = [abs(v) for (u, w), v in zip(edges.T.tolist(), values, strict=True) if max(u, w) < length]
    np.testing.assert_allclose(on_cycle, abs(flows_around(edges, flows, length)), rtol=1e-6)


def flows_around(edges: NDArray[np.int64], flows: NDArray[np.float64], length: int) -> float:
    """Return the mean flow around the first cycle, in one direction."""
    total = 0.0
    for (u, w), flow in zip(edges.T.tolist(), flows[:, 0], strict=True):
        if max(u, w) < length:
            total += flow if w == u + 1 else -flow
    return total / length
