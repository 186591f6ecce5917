"""The maximum clique of a graph, the lexicographically smallest one, exact within a budget of search nodes.

Many graphs have several maximum cliques. The label is the one whose sorted node ids come first, so it is a function of
the graph alone. Its size is found by local search and branch and bound; then, node by node in the order of ids, the
search decides whether a clique of that size can still contain the node.

The budget counts nodes of the search, never time, so a label does not depend on the machine. If the budget is
spent, the label is the best clique of a long local search, and the graph is reported as not proved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import seed
from graphbench.domains.algoreas.bits import (
    ONE,
    ZERO,
    adjacency_rows,
    bit_of,
    contains,
    discard,
    insert,
    lowest_bit,
    members_of,
)
from graphbench.domains.algoreas.clique_bound import Scratch, make_scratch
from graphbench.domains.algoreas.clique_local_search import improve_clique, stranger_rows
from graphbench.domains.algoreas.clique_search import estimate_nodes, find_clique, search_order
from graphbench.domains.algoreas.clique_words import first_maximum_clique

DEFAULT_NODE_LIMIT = 2_000_000
"""Search nodes per graph: proves random graphs of density 0.9 up to 192 nodes and of density 0.75 up to 256."""

_WORD_NODES = 64
_FIRST, _SECOND, _LAST = 0, 1, 2
_FIRST_STEPS_PER_NODE = 2
_SECOND_STEPS = 20_000
_LAST_STEPS = 1_000_000
_TRIAL_NODES = 10_000
_PROBES = 100
_HOPELESS = 3  # the search is not begun if it is expected to need this many times its budget
_WALK_KEY = np.uint64(0x636C69717565)


@inner
def translate(row: NDArray[np.uint64], name: NDArray[np.int64], result: NDArray[np.uint64]) -> None:
    """Make ``result`` the set of ``name[v]`` for the nodes v of the set ``row``."""
    for w in range(row.shape[0]):
        result[w] = ZERO
    for w in range(row.shape[0]):
        rest = row[w]
        while rest != ZERO:
            insert(result, name[(w << 6) + lowest_bit(rest)])
            rest &= rest - ONE


@inner
def in_search_order(adjacency: NDArray[np.uint64], order: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the neighbour sets of the graph whose node i is node ``order[i]``."""
    position = np.empty_like(order)
    for i in range(order.shape[0]):
        position[order[i]] = i
    result = np.empty_like(adjacency)
    for i in range(order.shape[0]):
        translate(adjacency[order[i]], position, result[i])
    return result


@inner
def large_cores(core: NDArray[np.int64], least: int, words: int) -> NDArray[np.uint64]:
    """Return the set of nodes with a core number of at least ``least``."""
    result = np.zeros(words, np.uint64)
    for v in range(core.shape[0]):
        if core[v] >= least:
            insert(result, v)
    return result


@inner
def _first_of_size(
    ordered: NDArray[np.uint64],
    order: NDArray[np.int64],
    core: NDArray[np.int64],
    size: int,
    budget: int,
    s: Scratch,
    best: NDArray[np.uint64],
) -> int:
    """Turn ``best``, a clique of the maximum ``size``, into the lexicographically smallest one of that size.

    Nodes are visited in the order of ids; one that is not in ``best`` belongs to the answer if the search finds a
    clique of the full size with it and the nodes taken so far; that clique becomes ``best``.

    Returns:
        The remaining budget, -1 if it was spent; ``best`` is then the first clique, in lexicographic order, of the
        search.
    """
    n, words = ordered.shape
    position = np.empty_like(order)
    for i in range(n):
        position[order[i]] = i
    candidates = large_cores(core, size - 1, words)
    taken = np.zeros(words, np.uint64)
    rest = np.zeros(words, np.uint64)
    members = np.zeros(words, np.uint64)
    missing = size
    for v in range(n):
        if missing == 0:
            break
        i = position[v]
        if not contains(candidates, i):
            continue
        discard(candidates, i)
        for w in range(words):
            rest[w] = candidates[w] & ordered[i, w]
        if not contains(best, v):
            length = 0
            for w in range(words):
                members[w] = ZERO
            if missing > 1:
                length, budget = find_clique(ordered, rest, missing - 1, missing - 1, budget, s, members)
            if budget < 0:
                return -1
            if length < missing - 1:
                continue
            for w in range(words):
                members[w] |= taken[w]
            translate(members, order, best)
            insert(best, v)
        insert(taken, i)
        for w in range(words):
            candidates[w] = rest[w]
        missing -= 1
    return budget


@kernel
def search_clique(num_nodes: int, edges: NDArray[np.int32], node_limit: int) -> tuple[NDArray[np.uint64], bool]:
    """Return the results of `maximum_clique` for a graph of any size, with the members as a set ``uint64[W]``."""
    adjacency = adjacency_rows(num_nodes, edges)
    words = adjacency.shape[1]
    order, core = search_order(adjacency)
    ordered = in_search_order(adjacency, order)
    scratch = make_scratch(num_nodes, words)
    strangers = stranger_rows(adjacency)
    state = seed(_WALK_KEY, 0, 0, 0)
    best = np.zeros(words, np.uint64)
    members = np.zeros(words, np.uint64)
    budget, unspent = min(node_limit, _TRIAL_NODES), node_limit
    stage, steps = _FIRST, _FIRST_STEPS_PER_NODE * num_nodes
    while True:
        size = improve_clique(adjacency, strangers, steps, state, best)
        if stage == _LAST:
            return best, False
        allowed = large_cores(core, size, words)
        if stage == _SECOND:
            expected = estimate_nodes(ordered, allowed, size + 1, _PROBES, state, scratch)
            if expected > _HOPELESS * unspent:
                stage, steps = _LAST, _LAST_STEPS
                continue
        unspent -= budget
        larger, left = find_clique(ordered, allowed, size + 1, num_nodes, budget, scratch, members)
        if larger > 0:
            size = larger
            translate(members, order, best)
        if left >= 0:
            left = _first_of_size(ordered, order, core, size, left + unspent, scratch, best)
            return best, left >= 0
        budget = unspent
        stage, steps = (_LAST, _LAST_STEPS) if unspent == 0 else (_SECOND, _SECOND_STEPS)


@kernel
def _label_small(
    num_nodes: int, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32], node_limit: int, in_clique: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Mark the cliques of graphs of at most 64 nodes; return 1 where the search ended within its limit, 0 elsewhere."""
    proved = np.zeros(edge_ptr.shape[0] - 1, np.uint8)
    candidates = np.empty(num_nodes + 1, np.uint64)
    path = np.empty(num_nodes + 1, np.int64)
    for s in range(proved.shape[0]):
        neighbours = adjacency_rows(num_nodes, edges[edge_ptr[s] : edge_ptr[s + 1]])[:, 0].copy()
        clique, left = first_maximum_clique(num_nodes, neighbours, node_limit, candidates, path)
        if left >= 0:
            proved[s] = 1
            for v in range(num_nodes):
                in_clique[s * num_nodes + v] = (clique & bit_of(v)) != ZERO
    return proved


def maximum_clique(num_nodes: int, edges: NDArray[np.int32], node_limit: int) -> tuple[NDArray[np.bool_], bool]:
    """Return the lexicographically smallest maximum clique of an undirected graph.

    Args:
        num_nodes: Number of nodes n >= 1.
        edges: ``int32[m, 2]``, every edge once.
        node_limit: Largest number of search nodes to open, see `DEFAULT_NODE_LIMIT`.

    Returns:
        ``members bool[n]``, and whether it is proved that no clique is larger and that no clique of this size comes
        first. If not proved, the members are still a clique, the best one found.
    """
    members, proved = _label(num_nodes, np.array([0, len(edges)]), edges, node_limit)
    return members.astype(np.bool_), bool(proved[0])


def _label(
    num_nodes: int, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32], node_limit: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    # A loop in Python costs large graphs nothing; compiled, it would have the whole search optimised a second time.
    count = len(edge_ptr) - 1
    in_clique = np.zeros(count * num_nodes, np.uint8)
    proved = np.zeros(count, np.uint8)
    if num_nodes <= _WORD_NODES:
        proved = _label_small(num_nodes, edge_ptr, edges, node_limit, in_clique)
    for s in np.flatnonzero(proved == 0):
        words, proved[s] = search_clique(num_nodes, edges[edge_ptr[s] : edge_ptr[s + 1]], node_limit)
        in_clique[s * num_nodes : (s + 1) * num_nodes] = members_of(words, num_nodes)
    return in_clique, proved


def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
    node_limit: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Mark the maximum clique of every graph of a shard; a function of the graphs, so no random numbers are used.

    Args:
        key: Key of the split; not used.
        indices: Positions of the samples in the split, ``int64[S]``; not used.
        attempts: Redraw counts of the samples, ``int64[S]``; not used.
        num_nodes: Number of nodes n of every graph.
        edge_ptr: The edges of sample s are ``edges[edge_ptr[s]:edge_ptr[s + 1]]``, ``int64[S + 1]``.
        edges: ``int32[E, 2]``.
        node_limit: Search nodes per graph.

    Returns:
        The labels ``uint8[S * n]``, 1 for a member, and ``uint8[S]``, 1 where the label is proved.
    """
    return _label(num_nodes, edge_ptr, edges, node_limit)
