"""Toy domain: small random graphs with labels that anyone can check by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import sample_generator
from graphbench.data.components.generators import Generator


class TriangleParameters(BaseModel):
    """Random graphs in which every pair of nodes is joined with the same probability.

    Attributes:
        nodes: Number of nodes.
        p: Probability of an edge.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = Field(ge=3, le=1000)
    p: float = Field(gt=0, lt=1)


def generate_triangles(
    parameters: TriangleParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Return one random graph per index, and which of its nodes lie on a triangle (bool per node)."""
    pairs = np.array(list(combinations(range(parameters.nodes), 2)), np.int64)
    edges, labels = [], []
    for index, attempt in zip(indices, attempts, strict=True):
        random = sample_generator(key, int(index), int(attempt))
        chosen = pairs[random.random(len(pairs)) < parameters.p]
        edges.append(chosen)
        labels.append(nodes_on_triangles(parameters.nodes, chosen))
    num_nodes = np.full(len(indices), parameters.nodes, np.int64)
    num_edges = np.array([len(e) for e in edges], np.int64)
    return Samples(num_nodes, num_edges, np.concatenate(edges), {"on_triangle": np.concatenate(labels)})


def nodes_on_triangles(num_nodes: int, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return bool ``[num_nodes]``: the diagonal of the third power of the adjacency matrix is positive."""
    adjacency = np.zeros((num_nodes, num_nodes), np.int64)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
    return np.diagonal(adjacency @ adjacency @ adjacency) > 0


def check_triangles(parameters: TriangleParameters, samples: Samples) -> list[str]:
    """Return the problems found by networkx, which shares no code with the generator."""
    problems = []
    for i in range(len(samples)):
        graph = nx.empty_graph(parameters.nodes)
        graph.add_edges_from(samples.edges[samples.edge_ptr[i] : samples.edge_ptr[i + 1]].tolist())
        expected = np.array([nx.triangles(graph, v) > 0 for v in graph])
        found = samples.values["on_triangle"][samples.node_ptr[i] : samples.node_ptr[i + 1]].astype(bool)
        if (found != expected).any():
            problems.append(f"graph {i}: on_triangle is wrong at node {int(np.argmax(found != expected))}")
    return problems


def triangle_statistics(parameters: TriangleParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the share of nodes on a triangle, float64 per graph."""
    labels = samples.values["on_triangle"].reshape(len(samples), parameters.nodes)
    return {"mean_on_triangle": labels.mean(axis=1)}


GENERATORS: Mapping[str, Generator] = {
    "triangles": Generator(
        name="toy.triangles",
        version=1,
        parameters=TriangleParameters,
        generate=generate_triangles,
        check=check_triangles,
        statistics=triangle_statistics,
        shard_size=lambda parameters: 1000,
    )
}
