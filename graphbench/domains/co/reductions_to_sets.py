"""Vertex covers and cliques, as independent sets: of the same graph, and of its complement.

The nodes outside an independent set touch every edge, so a smallest vertex cover is the rest of a largest independent
set. A clique is an independent set of the complement, whose edges are the pairs that are not joined: n (n - 1) / 2 - m
of them. So the decoders, rules and searches of independent sets serve three problems. Cliques have a solver of their
own, see `clique`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.domains.co.baselines import greedy_independent_set, random_independent_set
from graphbench.domains.co.decoding import Solution, decode_independent_sets
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.independent_set import IndependentSetEffort, find_independent_set
from graphbench.domains.co.solvers import Edges, Label, checked_edges


@kernel
def _absent_pairs(ptr: NDArray[np.int64], first: NDArray[np.int64], node: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the pairs of nodes of a graph that are not joined, [pairs, 2], u < v, sorted; neighbours are sorted."""
    count = 0
    for g in range(ptr.shape[0] - 1):
        size = ptr[g + 1] - ptr[g]
        count += size * (size - 1) // 2 - (first[ptr[g + 1]] - first[ptr[g]]) // 2
    pairs = np.empty((count, 2), np.int64)
    at = 0
    for g in range(ptr.shape[0] - 1):
        for u in range(ptr[g], ptr[g + 1]):
            row = first[u]
            while row < first[u + 1] and node[row] <= u:
                row += 1
            for v in range(u + 1, ptr[g + 1]):
                if row < first[u + 1] and node[row] == v:
                    row += 1
                else:
                    pairs[at, 0] = u
                    pairs[at, 1] = v
                    at += 1
    return pairs


def complements(graphs: UndirectedGraphs) -> UndirectedGraphs:
    """Return the complement of every graph of a batch."""
    first, node = graphs.neighbours
    rising = np.lexsort((node, np.repeat(np.arange(graphs.num_nodes), np.diff(first))))
    pairs = _absent_pairs(graphs.ptr, first, node[rising])
    arcs = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
    return UndirectedGraphs(graphs.ptr, np.ascontiguousarray(arcs.T))


def absent_edges(num_nodes: int, edges: Edges) -> Edges:
    """Return the edges of the complement of a graph, in the form of `solvers`."""
    edges = checked_edges(num_nodes, edges).astype(np.int64)
    both = np.stack([edges, edges[:, ::-1]], axis=1).reshape(-1, 2)
    graph = UndirectedGraphs(np.array([0, num_nodes]), np.ascontiguousarray(both.T))
    return np.ascontiguousarray(complements(graph).edge_index[:, ::2].T.astype(np.int32))


def _cover(num_nodes: int, of_set: Label) -> Label:
    """Return the vertex cover beside an independent set."""
    solution = (1 - of_set.solution).astype(np.int32)
    return replace(of_set, value=num_nodes - of_set.value, solution=solution, bound=num_nodes - of_set.bound)


def find_vertex_cover(num_nodes: int, edges: Edges, effort: IndependentSetEffort | None = None, seed: int = 0) -> Label:
    """Return a small vertex cover: the rest of :func:`~graphbench.domains.co.independent_set.find_independent_set`."""
    return _cover(num_nodes, find_independent_set(num_nodes, edges, effort, seed))


def greedy_vertex_cover(num_nodes: int, edges: Edges) -> Label:
    """Return the rest of the set that takes the node with fewest remaining neighbours until no node remains."""
    return replace(_cover(num_nodes, greedy_independent_set(num_nodes, edges)), bound=0)


def random_vertex_cover(num_nodes: int, edges: Edges, seed: int = 0) -> Label:
    """Return the rest of the set that takes nodes in random order where it can."""
    return replace(_cover(num_nodes, random_independent_set(num_nodes, edges, seed)), bound=0)


def greedy_clique(num_nodes: int, edges: Edges) -> Label:
    """Return the clique that takes the node joined to most of the nodes that may still join, until none may."""
    return greedy_independent_set(num_nodes, absent_edges(num_nodes, edges))


def random_clique(num_nodes: int, edges: Edges, seed: int = 0) -> Label:
    """Return the clique that takes nodes in random order where it can."""
    return random_independent_set(num_nodes, absent_edges(num_nodes, edges), seed)


def decode_vertex_covers(
    graphs: UndirectedGraphs, scores: NDArray[Any], *, restarts: int = 1, seed: int = 0, temperature: float = 1.0
) -> Solution:
    """Return a vertex cover of every graph, 1 for its members, int32 ``[N]``: nodes of low scores stay out.

    Arguments and errors are those of :func:`~graphbench.domains.co.decoding.decode_independent_sets`; the larger its
    score, the later a node may stay out of the cover. No member could leave the cover.
    """
    options: dict[str, Any] = {"restarts": restarts, "seed": seed, "temperature": temperature}
    return (1 - decode_independent_sets(graphs, np.negative(scores), **options)).astype(np.int32)


def decode_cliques(
    graphs: UndirectedGraphs, scores: NDArray[Any], *, restarts: int = 1, seed: int = 0, temperature: float = 1.0
) -> Solution:
    """Return a clique of every graph, 1 for its members, int32 ``[N]``: by falling score, where it is joined to all.

    Arguments and errors are those of :func:`~graphbench.domains.co.decoding.decode_independent_sets`.
    """
    options: dict[str, Any] = {"restarts": restarts, "seed": seed, "temperature": temperature}
    return decode_independent_sets(complements(graphs), scores, **options)


Search = Callable[..., Solution]


def search_for_covers(search: Search) -> Search:
    """Return a search for independent sets as a search for vertex covers, with the same options."""

    @wraps(search)
    def find(graphs: UndirectedGraphs, seed: int = 0, **options: Any) -> Solution:
        return (1 - search(graphs, seed, **options)).astype(np.int32)

    return find


def search_for_cliques(search: Search) -> Search:
    """Return a search for independent sets as a search for cliques, with the same options."""

    @wraps(search)
    def find(graphs: UndirectedGraphs, seed: int = 0, **options: Any) -> Solution:
        return search(complements(graphs), seed, **options)

    return find
