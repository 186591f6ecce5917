"""Connected random graphs of six models, a shard at a time, in one compiled kernel.

A graph is drawn from one model of a weighted mixture, joined where it falls apart, relabelled at random and stored
once per edge with ``u < v`` in lexicographic order.

Models: ``model_kernels``. Parameters: GraphBench, Table 14; mixtures: Table 15.

Joining: the paper adds "a number of random edges between disconnected components" (parameter c). Here components are
visited in random order, and each further component is linked to the part joined so far by c distinct random edges (both
ends uniform; fewer where the two sides have fewer than c pairs). So c = 1 adds one edge less than there were
components, and the graph is always connected. (The code published with the paper links every component to one other
random component, which may leave the graph in pieces.)

Relabelling by a uniform permutation keeps node ids from telling a node's age, ring position or block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, seed, shuffle, uniform
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit
from graphbench.domains.algoreas.model_kernels import BA, DBA, PC, draw_model, link, linked

_NUMBERING = 2  # stream of random numbers; 0 draws the graph, 1 its weights and other features


@inner
def _pick_model(state: NDArray[np.uint64], weights: NDArray[np.float64]) -> int:
    """Return a model with probability proportional to its weight."""
    total = 0.0
    for weight in weights:
        total += weight
    rest = uniform(state) * total
    model = 0
    for candidate in range(weights.shape[0]):
        if weights[candidate] > 0.0:
            model = candidate
            if rest < weights[candidate]:
                break
            rest -= weights[candidate]
    return model


@inner
def _find_components(
    adjacency: NDArray[np.uint64],
    nodes: NDArray[np.int64],
    first: NDArray[np.int64],
    unseen: NDArray[np.uint64],
) -> int:
    """List the nodes component by component and return the number of components.

    Component ``c`` becomes ``nodes[first[c]:first[c + 1]]``. ``unseen`` (one row of bits) is scratch.
    """
    n, words = adjacency.shape
    unseen[:] = ~ZERO
    if n & 63:
        unseen[words - 1] = bit_of(n) - ONE
    components = 0
    count = 0
    for root in range(n):
        if (unseen[root >> 6] & bit_of(root)) == ZERO:
            continue
        first[components] = count
        components += 1
        unseen[root >> 6] ^= bit_of(root)
        nodes[count] = root
        head = count
        count += 1
        while head < count:
            node = nodes[head]
            head += 1
            for w in range(words):
                fresh = adjacency[node, w] & unseen[w]
                unseen[w] ^= fresh
                while fresh != ZERO:
                    nodes[count] = w * 64 + lowest_bit(fresh)
                    count += 1
                    fresh &= fresh - ONE
        if count == n:
            break
    first[components] = n
    return components


@inner
def _join_components(
    state: NDArray[np.uint64],
    connect: int,
    adjacency: NDArray[np.uint64],
    components: int,
    nodes: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    order = np.empty(components, np.int64)
    for i in range(components):
        order[i] = i
    shuffle(state, order)
    joined = np.empty(nodes.shape[0], np.int64)
    size = 0
    for component in order:
        start = first[component]
        count = first[component + 1] - start
        missing = min(connect, count * size)
        while missing > 0:
            u = nodes[start + below(state, count)]
            v = joined[below(state, size)]
            if not linked(adjacency, u, v):
                link(adjacency, u, v)
                missing -= 1
        for i in range(count):
            joined[size + i] = nodes[start + i]
        size += count


@inner
def _relabel(adjacency: NDArray[np.uint64], new_id: NDArray[np.int64], relabelled: NDArray[np.uint64]) -> int:
    """Write each edge once, at its smaller new id, into ``relabelled``, and return the number of edges."""
    n, words = adjacency.shape
    relabelled[:] = ZERO
    num_edges = 0
    for u in range(n):
        a = new_id[u]
        bits = adjacency[u, u >> 6] & ~(bit_of(u) | (bit_of(u) - ONE))  # bits above u
        for w in range(u >> 6, words):
            if w > u >> 6:
                bits = adjacency[u, w]
            while bits != ZERO:
                b = new_id[w * 64 + lowest_bit(bits)]
                low, high = (a, b) if a < b else (b, a)
                relabelled[low, high >> 6] |= bit_of(high)
                num_edges += 1
                bits &= bits - ONE
    return num_edges


@inner
def _write_edges(upper: NDArray[np.uint64], edges: NDArray[np.int32], at: int) -> None:
    n, words = upper.shape
    for u in range(n):
        for w in range(u >> 6, words):
            bits = upper[u, w]
            while bits != ZERO:
                edges[at, 0] = u
                edges[at, 1] = w * 64 + lowest_bit(bits)
                at += 1
                bits &= bits - ONE


@inner
def with_rows(edges: NDArray[np.int32], used: int, rows: int) -> NDArray[np.int32]:
    """Return a copy of the first ``used`` rows in an array of ``rows``."""
    copy = np.empty((rows, 2), np.int32)
    for j in range(used):
        copy[j, 0], copy[j, 1] = edges[j, 0], edges[j, 1]
    return copy


@kernel
def draw_graphs(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    weights: NDArray[np.float64],
    params: NDArray[np.float64],
    connect: int,
    copies: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
    """Draw one graph per sample, each from ``seed(key, index // copies, attempt, 0)``.

    The copies of a graph differ in the numbering of their nodes: the first copy is numbered like a graph without
    copies, the others from ``seed(key, index, attempt, 2)``.

    Arguments are not checked here: see ``graph_models.check_models``.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``, 0 for a first draw.
        num_nodes: Number of nodes of every graph.
        weights: ``float64[6]`` mixture weights in the order of ``MODELS``, not all zero, not normalised.
        params: ``float64[6, 9]`` of ``graph_models.pack_models``.
        connect: Edges that link a component to the part joined before it; 0 leaves graphs in pieces.
        copies: Consecutive samples that are one graph.

    Returns:
        ``edge_ptr`` (``int64[S + 1]``), ``edges`` (``int32[E, 2]``, ``u < v``, lexicographic within a graph, ids from
        0 to num_nodes - 1) and ``model`` (``int8[S]``, position in ``MODELS``). Graph ``s`` has the edges
        ``edges[edge_ptr[s]:edge_ptr[s + 1]]``.
    """
    num_graphs = indices.shape[0]
    n, words = num_nodes, (num_nodes + 63) >> 6
    most = int(max(params[BA, 0], params[DBA, 0], params[DBA, 1], params[PC, 0])) + 1
    pool = np.empty(2 * n * most + n, np.int32)
    targets = np.empty(most, np.int32)
    table = np.empty(8 * most, np.int32)
    adjacency = np.empty((n, words), np.uint64)
    relabelled = np.empty((n, words), np.uint64)
    nodes = np.empty(n, np.int64)
    first = np.empty(n + 1, np.int64)
    unseen = np.empty(words, np.uint64)

    edge_ptr = np.zeros(num_graphs + 1, np.int64)
    model = np.empty(num_graphs, np.int8)
    edges = np.empty((2 * n * num_graphs, 2), np.int32)
    for s in range(num_graphs):
        state = seed(key, indices[s] // copies, attempts[s], 0)
        chosen = _pick_model(state, weights)
        draw_model(state, chosen, n, params[chosen], adjacency, pool, targets, table)
        if connect > 0:
            components = _find_components(adjacency, nodes, first, unseen)
            if components > 1:
                _join_components(state, connect, adjacency, components, nodes, first)
        for node in range(n):
            nodes[node] = node
        if indices[s] % copies > 0:
            state = seed(key, indices[s], attempts[s], _NUMBERING)
        shuffle(state, nodes)
        count = _relabel(adjacency, nodes, relabelled)
        used = int(edge_ptr[s])
        edge_ptr[s + 1] = used + count
        if used + count > edges.shape[0]:
            edges = with_rows(edges, used, 2 * (used + count))
        _write_edges(relabelled, edges, used)
        model[s] = chosen
    used = int(edge_ptr[num_graphs])
    return edge_ptr, with_rows(edges, used, used), model
