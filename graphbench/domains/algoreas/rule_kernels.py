"""Compiled parts of the structural rules; every kernel takes all graphs of some samples at once.

``node_ptr`` and ``edge_ptr`` are ``int64[S + 1]``; node ids in ``edges`` are local to their graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import arc_lists, neighbour_lists
from graphbench.domains.algoreas.bits import ONE, ZERO, adjacency_rows, contains, count, insert, lowest_bit, popcount
from graphbench.domains.algoreas.steiner_tree import shortest_distances, slot_to_root


@kernel
def on_short_cycle(
    node_ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64], edges: NDArray[np.int32], longest: int
) -> NDArray[np.bool_]:
    """Return which edges lie on a cycle of at most ``longest`` edges, ``bool[E]``.

    An edge lies on such a cycle if its nodes are at most ``longest - 1`` apart without the edge; a breadth-first search
    per edge decides this.

    Args:
        node_ptr: Offsets of the nodes.
        edge_ptr: Offsets of the edges.
        edges: ``int32[E, 2]``, undirected, no two of them equal.
        longest: Edges of the longest cycle that counts.
    """
    on_cycle = np.zeros(edges.shape[0], np.bool_)
    for s in range(node_ptr.shape[0] - 1):
        num_nodes = node_ptr[s + 1] - node_ptr[s]
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        start, neighbour, arc = neighbour_lists(num_nodes, edges[begin:end])
        seen = np.full(num_nodes, -1, np.int64)  # the last edge whose search has reached the node
        distance = np.zeros(num_nodes, np.int64)
        queue = np.empty(num_nodes, np.int64)
        for j in range(end - begin):
            origin, goal = edges[begin + j, 0], edges[begin + j, 1]
            queue[0], head, tail = origin, 0, 1
            seen[origin], distance[origin] = j, 0
            while head < tail and seen[goal] != j:
                node = queue[head]
                head += 1
                if distance[node] == longest - 1:
                    break
                for slot in range(start[node], start[node + 1]):
                    other = neighbour[slot]
                    if seen[other] != j and arc[slot] >> 1 != j:
                        seen[other], distance[other] = j, distance[node] + 1
                        queue[tail] = other
                        tail += 1
            on_cycle[begin + j] = seen[goal] == j
    return on_cycle


@kernel
def greedy_matching(num_nodes: int, edges: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the matching that takes the edges in the given order, each if both of its nodes are free, ``bool[E]``.

    Args:
        num_nodes: Number of nodes of all graphs.
        edges: ``int64[E, 2]``, with numbers of nodes that count through all graphs.
        order: ``int64[E]``, a permutation of the edges.
    """
    free = np.ones(num_nodes, np.bool_)
    matched = np.zeros(edges.shape[0], np.bool_)
    for j in order:
        if free[edges[j, 0]] and free[edges[j, 1]]:
            free[edges[j, 0]] = free[edges[j, 1]] = False
            matched[j] = True
    return matched


@kernel
def terminal_paths(
    node_ptr: NDArray[np.int64],
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
    weight: NDArray[np.float32],
    is_terminal: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which edges lie on the shortest paths that a minimum spanning tree over the terminals is made of.

    Args:
        node_ptr: Offsets of the nodes.
        edge_ptr: Offsets of the edges.
        edges: ``int32[E, 2]``, undirected.
        weight: ``float32[E]``, positive.
        is_terminal: ``bool[N]``.

    Returns:
        ``bool[E]``. If terminals lie in several components, the terminals reached by the first one are joined.
    """
    taken = np.zeros(edges.shape[0], np.bool_)
    for s in range(node_ptr.shape[0] - 1):
        first, num_nodes = node_ptr[s], node_ptr[s + 1] - node_ptr[s]
        begin, end = edge_ptr[s], edge_ptr[s + 1]
        start, neighbour, arc = neighbour_lists(num_nodes, edges[begin:end])
        terminals = np.flatnonzero(is_terminal[first : first + num_nodes])
        distance = np.empty((terminals.shape[0], num_nodes))
        # Prim's algorithm over the terminals with their distances in the graph.
        best = np.full(terminals.shape[0], np.inf)
        origin = np.zeros(terminals.shape[0], np.int64)
        is_joined = np.zeros(terminals.shape[0], np.bool_)
        joined = 0
        for _ in range(terminals.shape[0] - 1):
            is_joined[joined] = True
            distance[joined] = shortest_distances(terminals[joined], start, neighbour, arc, weight[begin:end])
            nearest = -1
            for i in range(terminals.shape[0]):
                if distance[joined, terminals[i]] < best[i]:
                    best[i], origin[i] = distance[joined, terminals[i]], joined
                if not is_joined[i] and (nearest < 0 or best[i] < best[nearest]):
                    nearest = i
            if best[nearest] == np.inf:
                break
            node = int(terminals[nearest])
            while node != terminals[origin[nearest]]:
                slot = slot_to_root(node, distance[origin[nearest]], start, neighbour, arc, weight[begin:end])
                taken[begin + (arc[slot] >> 1)] = True
                node = int(neighbour[slot])
            joined = nearest
    return taken


@kernel
def ancestors(
    node_ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64], arcs: NDArray[np.int32], priority: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return, for every node, the largest priority among it and its ancestors, and the number of its ancestors.

    Args:
        node_ptr: Offsets of the nodes.
        edge_ptr: Offsets of the arcs.
        arcs: ``int32[E, 2]`` (source, target), without cycles.
        priority: ``float32[N]``.

    Returns:
        ``float32[N]`` and ``int64[N]``.

    Raises:
        ValueError: The arcs close a cycle.
    """
    largest = priority.copy()
    number = np.zeros(priority.shape[0], np.int64)
    for s in range(node_ptr.shape[0] - 1):
        first, num_nodes = node_ptr[s], node_ptr[s + 1] - node_ptr[s]
        local = arcs[edge_ptr[s] : edge_ptr[s + 1]]
        start, target = arc_lists(num_nodes, local[:, 0], local[:, 1])
        waiting_for = np.zeros(num_nodes, np.int64)
        for node in target:
            waiting_for[node] += 1
        above = np.zeros((num_nodes, (num_nodes + 63) >> 6), np.uint64)
        queue = np.empty(num_nodes, np.int64)
        tail = 0
        for node in range(num_nodes):
            if waiting_for[node] == 0:
                queue[tail] = node
                tail += 1
        for head in range(num_nodes):
            if head == tail:
                raise ValueError("the arcs close a cycle, so a node is an ancestor of itself; pass an acyclic graph")
            node = queue[head]
            number[first + node] = count(above[node])
            insert(above[node], node)
            for slot in range(start[node], start[node + 1]):
                other = target[slot]
                largest[first + other] = max(largest[first + other], largest[first + node])
                for w in range(above.shape[1]):
                    above[other, w] |= above[node, w]
                waiting_for[other] -= 1
                if waiting_for[other] == 0:
                    queue[tail] = other
                    tail += 1
    return largest, number


@kernel
def _grow(origin: int, rows: NDArray[np.uint64], candidates: NDArray[np.uint64], clique: NDArray[np.uint64]) -> int:
    """Fill ``clique`` with a greedy one that contains ``origin``, and return its size.

    The next node is the candidate with the most neighbours among the candidates, of several the smallest.
    """
    words = rows.shape[1]
    for w in range(words):
        clique[w] = ZERO
        candidates[w] = rows[origin, w]
    insert(clique, origin)
    size = 1
    while True:
        best, most = -1, -1
        for w in range(words):
            rest = candidates[w]
            while rest != ZERO:
                node = (w << 6) + lowest_bit(rest)
                rest &= rest - ONE
                degree = 0
                for i in range(words):
                    degree += popcount(rows[node, i] & candidates[i])
                if degree > most:
                    best, most = node, degree
        if best < 0:
            return size
        insert(clique, best)
        size += 1
        for w in range(words):
            candidates[w] &= rows[best, w]


@inner
def _comes_before(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> bool:
    """Return whether a set is lexicographically smaller than another of the same size."""
    for w in range(first.shape[0]):
        if first[w] != second[w]:
            different = first[w] ^ second[w]
            return (first[w] >> np.uint64(lowest_bit(different))) & ONE == ONE
    return False


@kernel
def greedy_cliques(
    node_ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64], edges: NDArray[np.int32], largest_ids: bool
) -> NDArray[np.bool_]:
    """Return the nodes of the largest greedy clique of every graph, of several the lexicographically smallest.

    Args:
        node_ptr: Offsets of the nodes.
        edge_ptr: Offsets of the edges.
        edges: ``int32[E, 2]``, undirected.
        largest_ids: Whether node ids are read in falling order: node ``v`` counts as ``n - 1 - v``.

    Returns:
        ``bool[N]``.
    """
    chosen = np.zeros(node_ptr[-1], np.bool_)
    for s in range(node_ptr.shape[0] - 1):
        first, num_nodes = node_ptr[s], node_ptr[s + 1] - node_ptr[s]
        local = edges[edge_ptr[s] : edge_ptr[s + 1]]
        if largest_ids:
            local = (num_nodes - 1 - local).astype(np.int32)
        rows = adjacency_rows(num_nodes, local)
        clique, candidates = np.zeros(rows.shape[1], np.uint64), np.zeros(rows.shape[1], np.uint64)
        best, largest = np.zeros(rows.shape[1], np.uint64), 0
        for origin in range(num_nodes):
            size = _grow(origin, rows, candidates, clique)
            if size > largest or (size == largest and _comes_before(clique, best)):
                largest = size
                for w in range(best.shape[0]):
                    best[w] = clique[w]
        for node in range(num_nodes):
            chosen[first + (num_nodes - 1 - node if largest_ids else node)] = contains(best, node)
    return chosen


@kernel
def greedy_members(
    node_ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return the nodes of all largest greedy cliques of every graph, one clique from every node, ``bool[N]``.

    Args:
        node_ptr: Offsets of the nodes.
        edge_ptr: Offsets of the edges.
        edges: ``int32[E, 2]``, undirected.
    """
    chosen = np.zeros(node_ptr[-1], np.bool_)
    for s in range(node_ptr.shape[0] - 1):
        first, num_nodes = node_ptr[s], node_ptr[s + 1] - node_ptr[s]
        rows = adjacency_rows(num_nodes, edges[edge_ptr[s] : edge_ptr[s + 1]])
        clique, candidates = np.zeros(rows.shape[1], np.uint64), np.zeros(rows.shape[1], np.uint64)
        union, largest = np.zeros(rows.shape[1], np.uint64), 0
        for origin in range(num_nodes):
            size = _grow(origin, rows, candidates, clique)
            for w in range(union.shape[0]):
                if size > largest:
                    union[w] = clique[w]
                elif size == largest:
                    union[w] |= clique[w]
            largest = max(largest, size)
        for node in range(num_nodes):
            chosen[first + node] = contains(union, node)
    return chosen
