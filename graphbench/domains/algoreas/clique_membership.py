"""The nodes that lie in at least one maximum clique of a graph, exact within a budget of search nodes.

A graph with several maximum cliques has one set of members: it depends on the graph alone, and a new numbering of the
nodes moves the set along. One maximum clique and its size come from `max_clique`. Then every other node is decided by
itself: the search either meets a clique of that size that contains the node, all of whose nodes are members, or proves
that there is none; the node is then left out of all later searches.

No search lists the maximum cliques, whose number can grow exponentially; `count_maximum_cliques` does, for comparisons.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.algoreas.bits import (
    ONE,
    ZERO,
    adjacency_rows,
    bit_of,
    contains,
    count,
    discard,
    insert,
    lowest_bit,
    members_of,
    popcount,
)
from graphbench.domains.algoreas.clique_bound import Scratch, make_scratch, must_branch
from graphbench.domains.algoreas.clique_search import find_clique, last_node, search_order
from graphbench.domains.algoreas.clique_words import clique_of_size, first_maximum_clique
from graphbench.domains.algoreas.max_clique import in_search_order, large_cores, search_clique, translate

_WORD_NODES = 64


@inner
def _decide_nodes(
    ordered: NDArray[np.uint64],
    core: NDArray[np.int64],
    size: int,
    enough: int,
    budget: int,
    s: Scratch,
    union: NDArray[np.uint64],
) -> int:
    """Add the nodes of all cliques of the maximum ``size`` to ``union``, which holds one such clique.

    Nodes are in search order. A node of small core number has few neighbours to search, so the last nodes come first.
    The search ends as soon as the union has ``enough`` nodes.

    Returns:
        The remaining budget, -1 if it was spent; ``union`` then holds members alone, but not all of them.
    """
    n, words = ordered.shape
    candidates = large_cores(core, size - 1, words)
    rest = np.zeros(words, np.uint64)
    members = np.zeros(words, np.uint64)
    for i in range(n - 1, -1, -1):
        if count(union) >= enough:
            break
        if contains(union, i) or not contains(candidates, i):
            continue
        for w in range(words):
            rest[w] = candidates[w] & ordered[i, w]
            members[w] = ZERO
        length = 0
        if size > 1:
            length, budget = find_clique(ordered, rest, size - 1, size - 1, budget, s, members)
        if length == size - 1:
            insert(union, i)
            for w in range(words):
                union[w] |= members[w]
        elif budget < 0:
            return -1
        else:
            discard(candidates, i)
    return budget


@kernel
def extend_to_union(
    num_nodes: int, edges: NDArray[np.int32], node_limit: int, clique: NDArray[np.uint64], enough: int
) -> tuple[NDArray[np.uint64], bool]:
    """Return the union of all maximum cliques of a graph of any size, given one of them.

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``, every edge once.
        node_limit: Largest number of search nodes to open.
        clique: A maximum clique, as a set ``uint64[W]``.
        enough: The search ends as soon as the union has this many nodes; ``num_nodes`` for the whole union.

    Returns:
        The union ``uint64[W]``, and whether the search ended within its limit. If it did not, the union may lack nodes.
    """
    adjacency = adjacency_rows(num_nodes, edges)
    words = adjacency.shape[1]
    order, core = search_order(adjacency)
    position = np.empty_like(order)
    for i in range(num_nodes):
        position[order[i]] = i
    ordered = in_search_order(adjacency, order)
    union, result = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    translate(clique, position, union)
    scratch = make_scratch(num_nodes, words)
    left = _decide_nodes(ordered, core, count(clique), enough, node_limit, scratch, union)
    translate(union, order, result)
    return result, left >= 0


@inner
def _union_of_words(
    num_nodes: int,
    neighbours: NDArray[np.uint64],
    clique: np.uint64,
    budget: int,
    candidates: NDArray[np.uint64],
    path: NDArray[np.int64],
) -> tuple[np.uint64, int]:
    """Return the union of all maximum cliques of at most 64 nodes as a word, and the budget left, -1 if it was spent.

    ``candidates`` and ``path`` are working memory, as for `first_maximum_clique`.
    """
    union, size = clique, popcount(clique)
    allowed = ~ZERO >> np.uint64(64 - num_nodes)
    for v in range(num_nodes):
        if union & bit_of(v) != ZERO:
            continue
        rest = allowed & neighbours[v]
        if popcount(rest) < size - 1:
            allowed &= ~bit_of(v)
            continue
        members, budget = clique_of_size(neighbours, rest, size - 1, budget, candidates, path)
        if popcount(members) == size - 1:
            union |= members | bit_of(v)
        elif budget < 0:
            return union, -1
        else:
            allowed &= ~bit_of(v)
    return union, budget


@kernel
def _label_small(
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
    node_limit: int,
    is_member: NDArray[np.uint8],
    size: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """Mark members of graphs of at most 64 nodes, and note sizes; return 1 where both searches ended, 0 elsewhere."""
    proved = np.zeros(edge_ptr.shape[0] - 1, np.uint8)
    candidates = np.empty(num_nodes + 1, np.uint64)
    path = np.empty(num_nodes + 1, np.int64)
    for s in range(proved.shape[0]):
        neighbours = adjacency_rows(num_nodes, edges[edge_ptr[s] : edge_ptr[s + 1]])[:, 0].copy()
        clique, left = first_maximum_clique(num_nodes, neighbours, node_limit, candidates, path)
        if left < 0:
            continue
        union, left = _union_of_words(num_nodes, neighbours, clique, node_limit, candidates, path)
        if left >= 0:
            proved[s], size[s] = 1, popcount(clique)
            for v in range(num_nodes):
                is_member[s * num_nodes + v] = (union & bit_of(v)) != ZERO
    return proved


def label_graphs(
    num_nodes: int, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32], node_limit: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Mark the nodes of some graphs that lie in at least one maximum clique.

    Args:
        num_nodes: Number of nodes n >= 1 of every graph.
        edge_ptr: The edges of graph s are ``edges[edge_ptr[s]:edge_ptr[s + 1]]``, ``int64[S + 1]``.
        edges: ``int32[E, 2]``, undirected, every edge once.
        node_limit: Search nodes per graph for a maximum clique, and as many again for the other nodes.

    Returns:
        The labels ``uint8[S * n]``, 1 for a member; the number of nodes of a maximum clique ``int64[S]``; and
        ``uint8[S]``, 1 where both are proved. Where they are not, the labels are the nodes of the largest cliques that
        were met.
    """
    # A loop in Python costs large graphs nothing; compiled, it would have the whole search optimised a second time.
    count_graphs = len(edge_ptr) - 1
    is_member = np.zeros(count_graphs * num_nodes, np.uint8)
    size = np.zeros(count_graphs, np.int64)
    proved = np.zeros(count_graphs, np.uint8)
    if num_nodes <= _WORD_NODES:
        proved = _label_small(num_nodes, edge_ptr, edges, node_limit, is_member, size)
    for s in np.flatnonzero(proved == 0):
        local = edges[edge_ptr[s] : edge_ptr[s + 1]]
        union, is_maximum = search_clique(num_nodes, local, node_limit)
        size[s] = count(union)
        if is_maximum:
            union, proved[s] = extend_to_union(num_nodes, local, node_limit, union, num_nodes)
        is_member[s * num_nodes : (s + 1) * num_nodes] = members_of(union, num_nodes)
    return is_member, size, proved


def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
    node_limit: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the result of :func:`label_graphs` for a shard; a function of the graphs, so no random numbers are used.

    Args:
        key: Key of the split; not used.
        indices: Positions of the samples in the split, ``int64[S]``; not used.
        attempts: Redraw counts of the samples, ``int64[S]``; not used.
        num_nodes: Number of nodes n of every graph.
        edge_ptr: The edges of sample s are ``edges[edge_ptr[s]:edge_ptr[s + 1]]``, ``int64[S + 1]``.
        edges: ``int32[E, 2]``.
        node_limit: Search nodes per graph and search.
    """
    return label_graphs(num_nodes, edge_ptr, edges, node_limit)


def several_cliques(
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
    in_clique: NDArray[np.uint8],
    proved: NDArray[np.uint8],
    node_limit: int,
) -> NDArray[np.float64]:
    """Return which graphs have several maximum cliques, given one of them.

    Args:
        num_nodes: Number of nodes n of every graph.
        edge_ptr: The edges of graph s are ``edges[edge_ptr[s]:edge_ptr[s + 1]]``, ``int64[S + 1]``.
        edges: ``int32[E, 2]``, undirected, every edge once.
        in_clique: The cliques, ``uint8[S * n]``.
        proved: ``uint8[S]``, 1 where the clique is a maximum clique.
        node_limit: Search nodes per graph.

    Returns:
        ``float64[S]``, 1 where there are several, 0 where there is one, nan where the clique is not proved or the
        search did not end within its limit.
    """
    several = np.full(len(proved), np.nan)
    padded = np.zeros((len(proved), (num_nodes + 63) // 64 * 64), np.uint8)
    padded[:, :num_nodes] = in_clique.reshape(len(proved), num_nodes)
    cliques = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    for s in np.flatnonzero(proved):
        local, size = edges[edge_ptr[s] : edge_ptr[s + 1]], int(padded[s].sum())
        union, ended = extend_to_union(num_nodes, local, node_limit, cliques[s], size + 1)
        if ended:
            several[s] = count(union) > size
    return several


@kernel
def count_maximum_cliques(
    num_nodes: int, edges: NDArray[np.int32], size: int, node_limit: int
) -> tuple[NDArray[np.int64], int, bool]:
    """Count the cliques of the maximum size, all in all and through every node, by listing them.

    Args:
        num_nodes: Number of nodes n.
        edges: ``int32[m, 2]``, undirected, every edge once.
        size: Number of nodes of a maximum clique.
        node_limit: Largest number of search nodes to open.

    Returns:
        Cliques through every node ``int64[n]``, the number of cliques, and whether the search ended within its limit.
    """
    adjacency = adjacency_rows(num_nodes, edges)
    words = adjacency.shape[1]
    order, core = search_order(adjacency)
    ordered = in_search_order(adjacency, order)
    scratch = make_scratch(num_nodes, words)
    through = np.zeros(num_nodes, np.int64)
    candidates = np.zeros((num_nodes + 1, words), np.uint64)
    branching = np.zeros((num_nodes + 1, words), np.uint64)
    path = np.empty(num_nodes + 1, np.int64)
    cliques = 0
    candidates[0] = large_cores(core, size - 1, words)
    if size == 1:
        return np.ones(num_nodes, np.int64), num_nodes, True
    depth = 0 if must_branch(ordered, candidates[0], size, branching[0], scratch) else -1
    while depth >= 0:
        b = last_node(branching[depth])
        if b < 0:
            depth -= 1
            continue
        path[depth] = b
        branching[depth, b >> 6] &= ~bit_of(b)
        candidates[depth, b >> 6] &= ~bit_of(b)
        for w in range(words):
            candidates[depth + 1, w] = candidates[depth, w] & ordered[b, w]
        choices, missing = count(candidates[depth + 1]), size - depth - 1
        if missing == 1:  # every common neighbour completes a clique
            cliques += choices
            for i in range(depth + 1):
                through[order[path[i]]] += choices
            for w in range(words):
                rest = candidates[depth + 1, w]
                while rest != ZERO:
                    through[order[(w << 6) + lowest_bit(rest)]] += 1
                    rest &= rest - ONE
            continue
        if choices < missing:
            continue
        if node_limit <= 0:
            return through, cliques, False
        node_limit -= 1
        if must_branch(ordered, candidates[depth + 1], missing, branching[depth + 1], scratch):
            depth += 1
    return through, cliques, True
