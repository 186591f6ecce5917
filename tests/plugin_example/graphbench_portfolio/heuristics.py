"""Random graphs, and the size of the vertex cover that each of three heuristics finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import sample_generator
from graphbench.data.components.generators import Generator


class CoverParameters(BaseModel):
    """Random graphs of groups: nodes of one group are joined with one probability, others with another.

    Attributes:
        nodes: Number of nodes.
        groups: Number of groups.
        inside: Probability of an edge within a group.
        outside: Probability of an edge between groups.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = Field(ge=4, le=500)
    groups: int = Field(ge=1, default=3)
    inside: float = Field(ge=0, le=1, default=0.5)
    outside: float = Field(ge=0, le=1, default=0.05)


Neighbours = list[set[int]]


def greedy(neighbours: Neighbours) -> set[int]:
    """Return a vertex cover: the node with the most uncovered edges again and again, the lowest of equal ones."""
    left, cover = [set(own) for own in neighbours], set()
    while any(left):
        node = max(range(len(left)), key=lambda v: (len(left[v]), -v))
        cover.add(node)
        for other in left[node]:
            left[other].discard(node)
        left[node] = set()
    return cover


def matching(neighbours: Neighbours) -> set[int]:
    """Return a vertex cover: both ends of the edges of a maximal matching, without nodes that are not needed."""
    cover: set[int] = set()
    for node, own in enumerate(neighbours):
        free = sorted(own - cover)
        if node not in cover and free:
            cover |= {node, free[0]}
    for node in sorted(cover, key=lambda v: (len(neighbours[v]), v)):
        if neighbours[node] <= cover:
            cover.remove(node)
    return cover


def sparing(neighbours: Neighbours) -> set[int]:
    """Return a vertex cover: all nodes but an independent set that takes nodes of low degree first."""
    chosen: set[int] = set()
    for node in sorted(range(len(neighbours)), key=lambda v: (len(neighbours[v]), v)):
        if not neighbours[node] & chosen:
            chosen.add(node)
    return set(range(len(neighbours))) - chosen


HEURISTICS: Mapping[str, Callable[[Neighbours], set[int]]] = {
    "greedy": greedy,
    "matching": matching,
    "sparing": sparing,
}


def generate(
    parameters: CoverParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Return one graph per index, with the size of each heuristic's cover as a share of the nodes, ``[graphs, 3]``."""
    pairs = np.array(list(combinations(range(parameters.nodes), 2)), np.int64)
    edges, costs = [], []
    for index, attempt in zip(indices, attempts, strict=True):
        random = sample_generator(key, int(index), int(attempt))
        group = random.integers(0, parameters.groups, parameters.nodes)
        alike = group[pairs[:, 0]] == group[pairs[:, 1]]
        edges.append(pairs[random.random(len(pairs)) < np.where(alike, parameters.inside, parameters.outside)])
        neighbours = _neighbours(parameters.nodes, edges[-1])
        costs.append([len(cover(neighbours)) / parameters.nodes for cover in HEURISTICS.values()])
    num_nodes = np.full(len(indices), parameters.nodes, np.int64)
    num_edges = np.array([len(own) for own in edges], np.int64)
    return Samples(num_nodes, num_edges, np.concatenate(edges), {"cost": np.array(costs, np.float32)})


def _neighbours(nodes: int, edges: NDArray[np.int64]) -> Neighbours:
    found: Neighbours = [set() for _ in range(nodes)]
    for u, v in edges.tolist():
        found[u].add(v)
        found[v].add(u)
    return found


def check(parameters: CoverParameters, samples: Samples) -> list[str]:
    """Return the problems found by networkx: costs must lie between the largest matching and their own guarantees."""
    problems = []
    for i in range(len(samples)):
        graph = nx.empty_graph(parameters.nodes)
        graph.add_edges_from(samples.edges[samples.edge_ptr[i] : samples.edge_ptr[i + 1]].tolist())
        least = len(nx.max_weight_matching(graph, maxcardinality=True))
        lonely = sum(degree == 0 for _, degree in graph.degree)
        for name, cost in zip(HEURISTICS, samples.values["cost"][i], strict=True):
            size = round(float(cost) * parameters.nodes)
            most = 2 * least if name == "matching" else parameters.nodes - max(1, lonely)
            if not least <= size <= most:
                problems.append(f"graph {i}: {name} has a cover of {size} nodes, outside [{least}, {most}]")
    return problems


def statistics(parameters: CoverParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the size of the best heuristic's cover, and how much worse the worst one's is, float64 per graph."""
    cost = samples.values["cost"].astype(np.float64)
    return {"best_cost": cost.min(axis=1), "cost_spread": cost.max(axis=1) - cost.min(axis=1)}


GENERATORS: Mapping[str, Generator] = {
    "cover": Generator(
        name="portfolio.cover",
        version=1,
        parameters=CoverParameters,
        generate=generate,
        check=check,
        statistics=statistics,
        shard_size=lambda parameters: 200,
    )
}
