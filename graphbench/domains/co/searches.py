"""Searches that learn nothing: greedy rules, annealing, the sampler RLSA, and the solvers that make the labels.

=============  ============================================  ==============================  =======================
method         independent sets                              cuts                            colourings
=============  ============================================  ==============================  =======================
``greedy``     fewest remaining neighbours first             high degrees first              high degrees first
``dsatur``                                                                                   most colours beside first
``annealing``  Metropolis chains with a penalty for edges    Metropolis chains               annealing with fixed k
``langevin``   many nodes flip in every step (RLSA)          the same
``solver``     reductions, local search                      tabu search                     TabuCol and PartialCol
=============  ============================================  ==============================  =======================

Vertex covers and cliques have the searches of independent sets, see `reductions_to_sets`; the solver of cliques is
a local search with a proof by branch and bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from graphbench.core.neighbours import Neighbours
from graphbench.domains.co.annealing import independent_part, langevin, metropolis
from graphbench.domains.co.baselines import greedy_colouring, greedy_cut, greedy_independent_set
from graphbench.domains.co.clique import CliqueEffort, find_clique
from graphbench.domains.co.colouring import ColouringEffort, find_colouring
from graphbench.domains.co.colouring_annealing import anneal_colouring
from graphbench.domains.co.colouring_search import dsatur
from graphbench.domains.co.decoding import Solution
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.independent_set import IndependentSetEffort, find_independent_set
from graphbench.domains.co.max_cut import MaxCutEffort, find_cut
from graphbench.domains.co.reductions_to_sets import Search, search_for_cliques, search_for_covers
from graphbench.domains.co.solvers import Label, random_state

_KEY = 0x616E6E65


def _each(graphs: UndirectedGraphs, solve: Callable[[int, NDArray[np.int32]], Label]) -> Solution:
    """Return the solutions of a solver that takes one graph at a time."""
    edges = graphs.edge_index[:, graphs.edge_index[0] < graphs.edge_index[1]].T
    owner = graphs.graph[edges[:, 0]]
    order = np.lexsort((edges[:, 1], edges[:, 0], owner))
    bounds = np.searchsorted(owner[order], np.arange(len(graphs) + 1))
    parts = []
    for g, (first, stop) in enumerate(zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True)):
        graph_edges = (edges[order[bounds[g] : bounds[g + 1]]] - first).astype(np.int32)
        parts.append(solve(int(stop - first), graph_edges).solution)
    return np.concatenate(parts).astype(np.int32)


def _lists(graphs: UndirectedGraphs, g: int) -> Neighbours:
    """Return the neighbours of the nodes of one graph."""
    first, node = graphs.neighbours
    start, stop = graphs.ptr[g], graphs.ptr[g + 1]
    rows = slice(first[start], first[stop])
    return Neighbours(first[start : stop + 1] - first[start], node[rows] - np.int32(start), np.zeros(0, np.int32))


def greedy_sets(graphs: UndirectedGraphs, seed: int = 0) -> Solution:
    """Return the sets that take the node with fewest remaining neighbours until no node remains."""
    return _each(graphs, greedy_independent_set)


def annealed_sets(
    graphs: UndirectedGraphs,
    seed: int = 0,
    *,
    chains: int = 4,
    sweeps: int = 500,
    hottest: float = 0.5,
    coldest: float = 0.05,
) -> Solution:
    """Return the best sets of Metropolis chains, see `annealing`."""
    bits = metropolis(graphs.ptr, *graphs.neighbours, True, chains, sweeps, hottest, coldest, np.uint64(_KEY + seed))
    return independent_part(graphs.ptr, *graphs.neighbours, bits)


def langevin_sets(
    graphs: UndirectedGraphs,
    seed: int = 0,
    *,
    chains: int = 64,
    steps: int = 300,
    temperature: float = 0.01,
    distance: int = 5,
) -> Solution:
    """Return the best sets of chains of regularised Langevin annealing, see `annealing`."""
    bits = langevin(graphs.ptr, *graphs.neighbours, True, chains, steps, temperature, distance, np.uint64(_KEY + seed))
    return independent_part(graphs.ptr, *graphs.neighbours, bits)


def solved_sets(graphs: UndirectedGraphs, seed: int = 0, *, steps: int = 50_000, nodes: int = 200_000) -> Solution:
    """Return the sets of the solver that makes the labels."""
    effort = IndependentSetEffort(steps=steps, nodes=nodes)
    return _each(graphs, lambda count, edges: find_independent_set(count, edges, effort, seed))


def solved_cliques(graphs: UndirectedGraphs, seed: int = 0, *, steps: int = 5_000, nodes: int = 200_000) -> Solution:
    """Return the cliques of the solver that makes the labels."""
    effort = CliqueEffort(steps=steps, nodes=nodes)
    return _each(graphs, lambda count, edges: find_clique(count, edges, effort, seed))


def greedy_cuts(graphs: UndirectedGraphs, seed: int = 0) -> Solution:
    """Return the cuts in which each node, by falling degree, takes the side that cuts more edges to earlier nodes."""
    return _each(graphs, greedy_cut)


def annealed_cuts(
    graphs: UndirectedGraphs,
    seed: int = 0,
    *,
    chains: int = 4,
    sweeps: int = 200,
    hottest: float = 3.0,
    coldest: float = 0.3,
) -> Solution:
    """Return the best cuts of Metropolis chains, see `annealing`."""
    key = np.uint64(_KEY + seed)
    return metropolis(graphs.ptr, *graphs.neighbours, False, chains, sweeps, hottest, coldest, key).astype(np.int32)


def langevin_cuts(
    graphs: UndirectedGraphs,
    seed: int = 0,
    *,
    chains: int = 64,
    steps: int = 300,
    temperature: float = 3.0,
    distance: int = 10,
) -> Solution:
    """Return the best cuts of chains of regularised Langevin annealing, see `annealing`."""
    key = np.uint64(_KEY + seed)
    bits = langevin(graphs.ptr, *graphs.neighbours, False, chains, steps, temperature, distance, key)
    return bits.astype(np.int32)


def solved_cuts(graphs: UndirectedGraphs, seed: int = 0, *, steps: int = 20_000) -> Solution:
    """Return the cuts of the solver that makes the labels, without the proof."""
    effort = MaxCutEffort(steps=steps, batches=0)
    return _each(graphs, lambda count, edges: find_cut(count, edges, effort, seed))


def greedy_colourings(graphs: UndirectedGraphs, seed: int = 0) -> Solution:
    """Return the colourings that give nodes by falling degree the first free colour (Welsh and Powell, 1967)."""
    return _each(graphs, greedy_colouring)


def dsatur_colourings(graphs: UndirectedGraphs, seed: int = 0) -> Solution:
    """Return the colourings that first colour the node with the most colours beside it (Brelaz, 1979)."""
    return np.concatenate([dsatur(_lists(graphs, g))[0] for g in range(len(graphs))]).astype(np.int32)


def annealed_colourings(
    graphs: UndirectedGraphs, seed: int = 0, *, sweeps: int = 500, hottest: float = 0.5, coldest: float = 0.1
) -> Solution:
    """Return the colourings of annealing that starts with the colouring of DSATUR, see `colouring_annealing`."""
    parts = []
    for g in range(len(graphs)):
        lists = _lists(graphs, g)
        colour, colours = dsatur(lists)
        parts.append(anneal_colouring(lists, colour, colours, sweeps, hottest, coldest, random_state(_KEY, seed)))
    return np.concatenate(parts).astype(np.int32)


def solved_colourings(graphs: UndirectedGraphs, seed: int = 0, *, steps: int = 50_000) -> Solution:
    """Return the colourings of the solver that makes the labels."""
    effort = ColouringEffort(steps=steps)
    return _each(graphs, lambda count, edges: find_colouring(count, edges, effort, seed))


_OF_SETS: Mapping[str, Search] = {
    "greedy": greedy_sets,
    "annealing": annealed_sets,
    "langevin": langevin_sets,
    "solver": solved_sets,
}

SEARCHES: Mapping[str, Mapping[str, Search]] = {
    "mis": _OF_SETS,
    "max_cut": {
        "greedy": greedy_cuts,
        "annealing": annealed_cuts,
        "langevin": langevin_cuts,
        "solver": solved_cuts,
    },
    "coloring": {
        "greedy": greedy_colourings,
        "dsatur": dsatur_colourings,
        "annealing": annealed_colourings,
        "solver": solved_colourings,
    },
    "vertex_cover": {name: search_for_covers(search) for name, search in _OF_SETS.items()},
    "max_clique": {**{name: search_for_cliques(search) for name, search in _OF_SETS.items()}, "solver": solved_cliques},
}
"""Name of the problem in the domain -> method -> ``(graphs, seed, **options) -> solution``."""

RULES = frozenset({"greedy", "dsatur"})
"""The methods that draw no random number."""
