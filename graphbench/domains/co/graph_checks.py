"""Independent checks of drawn graphs: structure, and properties of the random model; no drawing kernel is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.co.graphs import BAParameters, ERParameters, GraphParameters, RBParameters

_SIGMAS = 7.0

Edges = NDArray[np.int64]


def check_graphs(parameters: GraphParameters, samples: Samples) -> list[str]:
    """Return the problems of the samples, each naming the graph; an empty list if all are correct."""
    model_check: Callable[[Any, int, Edges], str | None] = _CHECKS[parameters.model]
    problems = []
    for i, (nodes, edges) in enumerate(graphs_of(samples)):
        problem = _structure_problem(parameters, nodes, edges) or model_check(parameters, nodes, edges)
        if problem is not None:
            problems.append(f"graph {i}: {problem}")
    return problems


def graphs_of(samples: Samples) -> Iterator[tuple[int, Edges]]:
    """Yield number of nodes and edges ``int64[m, 2]`` of every graph."""
    ptr = samples.edge_ptr
    for i, nodes in enumerate(samples.num_nodes.tolist()):
        yield nodes, np.asarray(samples.edges[ptr[i] : ptr[i + 1]], np.int64)


def _structure_problem(parameters: GraphParameters, nodes: int, edges: Edges) -> str | None:
    low, high = parameters.nodes
    if not low <= nodes <= high:
        return f"{nodes} nodes, not {low} to {high}"
    if not len(edges):
        return None
    if edges.min() < 0 or edges.max() >= nodes:
        return "node ids out of range"
    if (edges[:, 0] >= edges[:, 1]).any():
        return "an edge not stored as u < v"
    if (np.diff(edges[:, 0] * nodes + edges[:, 1]) <= 0).any():
        return "edges are not sorted or repeat"
    return None


def _er_problem(parameters: ERParameters, nodes: int, edges: Edges) -> str | None:
    pairs, p = nodes * (nodes - 1) / 2, parameters.p
    deviation = _SIGMAS * np.sqrt(pairs * p * (1 - p))
    if abs(len(edges) - pairs * p) <= deviation:
        return None
    return f"{len(edges)} edges, expected {pairs * p:.0f} ± {deviation:.0f}"


def _ba_problem(parameters: BAParameters, nodes: int, edges: Edges) -> str | None:
    expected = parameters.m * (nodes - parameters.m)
    if len(edges) != expected:
        return f"{len(edges)} edges instead of {expected}"
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges.tolist())
    return None if nx.is_connected(graph) else "not connected"


def _rb_problem(parameters: RBParameters, nodes: int, edges: Edges) -> str | None:
    low, high = parameters.cliques
    sizes = range(parameters.clique_size[0], parameters.clique_size[1] + 1)
    fitting = [size for size in sizes if nodes % size == 0 and low <= nodes // size <= high]
    if not fitting:
        return f"{nodes} nodes are no product of cliques and clique_size"
    least = int(np.bincount(edges.reshape(-1), minlength=nodes).min()) if len(edges) else 0
    if not any(least >= size - 1 and len(edges) >= nodes * (size - 1) / 2 for size in fitting):
        return f"{len(edges)} edges and least degree {least}; too few for cliques of {fitting} nodes"
    return None


_CHECKS: dict[str, Callable[[Any, int, Edges], str | None]] = {"er": _er_problem, "ba": _ba_problem, "rb": _rb_problem}
