"""Connected random graphs of six models, a shard at a time, in one compiled kernel.

A graph is drawn from one model of a weighted mixture, joined where it falls apart, relabelled at random and stored
once per edge with ``u < v`` in lexicographic order.

Models (``graph_models.MODELS``) have the distribution of networkx 3.6: ``gnp_random_graph`` (er), ``newman_watts_strogatz_graph``
(nws), ``barabasi_albert_graph`` (ba), ``dual_barabasi_albert_graph`` (dba), ``powerlaw_cluster_graph`` (pc) and
``stochastic_block_model`` with two blocks (sbm); the streams of random numbers differ. Parameters: GraphBench,
Table 14; mixtures: Table 15.

Joining: the paper adds "a number of random edges between disconnected components" (parameter c). Here components are
visited in random order, and each next one is linked to the part joined so far by c distinct random edges (both ends
uniform; fewer where the two sides have fewer than c pairs). So c = 1 adds one edge less than there were components,
and the graph is always connected. (The code published with the paper links every component to one random other one,
which may leave the graph in pieces.)

Relabelling by a uniform permutation keeps node ids from telling a node's age, ring position or block.

While being drawn, a graph is a symmetric matrix of bits: ``adjacency`` is ``uint64[n, ceil(n / 64)]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit, popcount
from graphbench.domains.rng import below, seed, shuffle, uniform

_ER, _NWS, _BA, _DBA, _PC, _SBM = range(6)
_ROUNDING = 1e-9  # so that a block of 0.29 * 100 nodes has 29


@njit(cache=True)
def _link(adjacency: NDArray[np.uint64], u: int, v: int) -> None:
    adjacency[u, v >> 6] |= bit_of(v)
    adjacency[v, u >> 6] |= bit_of(u)


@njit(cache=True)
def _linked(adjacency: NDArray[np.uint64], u: int, v: int) -> bool:
    return (adjacency[u, v >> 6] & bit_of(v)) != ZERO


@njit(cache=True)
def _draw_erdos_renyi(state: NDArray[np.uint64], n: int, p: float, adjacency: NDArray[np.uint64]) -> None:
    for u in range(n):
        for v in range(u + 1, n):
            if uniform(state) < p:
                _link(adjacency, u, v)


@njit(cache=True)
def _draw_two_blocks(
    state: NDArray[np.uint64], n: int, parameters: NDArray[np.float64], adjacency: NDArray[np.uint64]
) -> None:
    first_block = int(n * parameters[3] + _ROUNDING)
    for u in range(n):
        for v in range(u + 1, n):
            block_pair = (1 if u >= first_block else 0) + (1 if v >= first_block else 0)
            if uniform(state) < parameters[block_pair]:
                _link(adjacency, u, v)


@njit(cache=True)
def _draw_small_world(state: NDArray[np.uint64], n: int, k: int, p: float, adjacency: NDArray[np.uint64]) -> None:
    """Ring of n nodes, each joined to k // 2 on either side; each ring edge adds a chord with probability p.

    As in networkx, the chord starts at the smaller end of the ring edge, so the last nodes of the ring start fewer.
    """
    half = k // 2
    for u in range(n):
        for distance in range(1, half + 1):
            v = u + distance if u + distance < n else u + distance - n
            if v != u:
                _link(adjacency, u, v)
    if k == n:  # complete: nothing to add
        return
    degree = np.empty(n, np.int64)
    for u in range(n):
        degree[u] = 2 * half
    for u in range(n):
        ring_edges = min(half, n - 1 - u) + max(half - u, 0)  # those of which u is the smaller end
        for _ in range(ring_edges):
            if uniform(state) < p and degree[u] < n - 1:
                w = u
                while w == u or _linked(adjacency, u, w):
                    w = below(state, n)
                _link(adjacency, u, w)
                degree[u] += 1
                degree[w] += 1


@njit(cache=True)
def _draw_distinct(
    state: NDArray[np.uint64], pool: NDArray[np.int32], pool_size: int, count: int, targets: NDArray[np.int32]
) -> None:
    """Fill ``targets[:count]`` with different values drawn from ``pool[:pool_size]``, each draw uniform."""
    drawn = 0
    while drawn < count:
        candidate = pool[below(state, pool_size)]
        fresh = True
        for i in range(drawn):
            if targets[i] == candidate:
                fresh = False
                break
        if fresh:
            targets[drawn] = candidate
            drawn += 1


@njit(cache=True)
def _draw_preferential(
    state: NDArray[np.uint64],
    n: int,
    first: int,
    second: int,
    p: float,
    adjacency: NDArray[np.uint64],
    pool: NDArray[np.int32],
    targets: NDArray[np.int32],
) -> None:
    """Barabasi-Albert growth: a new node brings ``first`` edges with probability p, else ``second``.

    Growth starts from a star of max(first, second) leaves. ``pool`` lists every node once per edge at it.
    """
    leaves = max(first, second)
    for leaf in range(1, leaves + 1):
        _link(adjacency, 0, leaf)
        pool[2 * leaf - 2], pool[2 * leaf - 1] = 0, leaf
    size = 2 * leaves
    for source in range(leaves + 1, n):
        count = first if uniform(state) < p else second
        _draw_distinct(state, pool, size, count, targets)
        for i in range(count):
            _link(adjacency, source, targets[i])
            pool[size], pool[size + 1] = targets[i], source
            size += 2


@njit(cache=True)
def _clear_table(table: NDArray[np.int32], mask: int) -> None:
    for slot in range(mask + 1):
        table[slot] = -1


@njit(cache=True)
def _put_in_table(table: NDArray[np.int32], mask: int, value: int) -> None:
    slot = value & mask
    perturb = value
    while True:
        probes = 10 if slot + 9 <= mask else 1
        for offset in range(probes):
            if table[slot + offset] < 0:
                table[slot + offset] = value
                return
        perturb >>= 5
        slot = (slot * 5 + 1 + perturb) & mask


@njit(cache=True)
def _read_table(table: NDArray[np.int32], mask: int, values: NDArray[np.int32]) -> int:
    count = 0
    for slot in range(mask + 1):
        if table[slot] >= 0:
            values[count] = table[slot]
            count += 1
    return count


@njit(cache=True)
def order_as_python_set(values: NDArray[np.int32], count: int, table: NDArray[np.int32]) -> None:
    """Reorder ``values[:count]`` as a CPython ``set`` yields them when it was filled in that order.

    networkx's power-law cluster model attaches to its drawn targets in this order, which favours low ids, the old
    nodes. It is no part of the published model (Holme and Kim, 2002), but data drawn with networkx has it, and it is
    no small matter: at n = 128, m = 5, p = 0.5 the mean largest degree is 54 against 46 in order of drawing.

    Args:
        values: ``int32``, non-negative, different; changed in place.
        count: How many of them.
        table: Scratch, ``int32[8 * (count + 1)]`` at least.
    """
    mask = 7
    _clear_table(table, mask)
    for filled in range(1, count + 1):
        _put_in_table(table, mask, values[filled - 1])
        if filled * 5 >= mask * 3:
            _read_table(table, mask, values)
            while mask < 4 * filled:
                mask = 2 * mask + 1
            _clear_table(table, mask)
            for i in range(filled):
                _put_in_table(table, mask, values[i])
    _read_table(table, mask, values)


@njit(cache=True)
def _draw_new_neighbour_of(
    state: NDArray[np.uint64], adjacency: NDArray[np.uint64], target: int, source: int
) -> int:
    """Return a neighbour of ``target``, uniform among those not yet linked to ``source``, or -1 without any."""
    words = adjacency.shape[1]
    available = 0
    for w in range(words):
        available += popcount(adjacency[target, w] & ~adjacency[source, w])
    available -= 1 if _linked(adjacency, target, source) else 0
    if available == 0:
        return -1
    skip = below(state, available)
    for w in range(words):
        bits = adjacency[target, w] & ~adjacency[source, w]
        if source >> 6 == w:
            bits &= ~bit_of(source)
        count = popcount(bits)
        if skip < count:
            for _ in range(skip):
                bits &= bits - ONE
            return w * 64 + lowest_bit(bits)
        skip -= count
    return -1


@njit(cache=True)
def _draw_powerlaw_cluster(
    state: NDArray[np.uint64],
    n: int,
    m: int,
    p: float,
    adjacency: NDArray[np.uint64],
    pool: NDArray[np.int32],
    targets: NDArray[np.int32],
    table: NDArray[np.int32],
) -> None:
    """Preferential attachment in which each further edge closes a triangle with probability p.

    As in networkx, a target already linked by a triangle counts again, so a node may bring fewer than m edges.
    """
    for node in range(m):
        pool[node] = node
    size = m
    for source in range(m, n):
        _draw_distinct(state, pool, size, m, targets)
        order_as_python_set(targets, m, table)
        target = targets[0]
        used = 1
        chosen = target
        for count in range(m):
            if count > 0:
                chosen = _draw_new_neighbour_of(state, adjacency, target, source) if uniform(state) < p else -1
                if chosen < 0:
                    target = targets[used]
                    used += 1
                    chosen = target
            _link(adjacency, source, chosen)
            pool[size] = chosen
            size += 1
        for _ in range(m):
            pool[size] = source
            size += 1


@njit(cache=True)
def _draw_model(
    state: NDArray[np.uint64],
    model: int,
    n: int,
    parameters: NDArray[np.float64],
    adjacency: NDArray[np.uint64],
    pool: NDArray[np.int32],
    targets: NDArray[np.int32],
    table: NDArray[np.int32],
) -> None:
    """Draw a graph of one model, as drawn (perhaps in pieces, ids in the model's own order), into ``adjacency``."""
    adjacency[:] = ZERO
    a, b, p = parameters[0], parameters[1], parameters[2]
    if model == _ER:
        _draw_erdos_renyi(state, n, a, adjacency)
    elif model == _NWS:
        _draw_small_world(state, n, int(a), b, adjacency)
    elif model == _BA:
        _draw_preferential(state, n, int(a), int(a), 1.0, adjacency, pool, targets)
    elif model == _DBA:
        # As in networkx, p = 0 or 1 is plain Barabasi-Albert, with the smaller star.
        first = int(b) if p == 0.0 else int(a)
        second = int(a) if p == 1.0 else int(b)
        _draw_preferential(state, n, first, second, p, adjacency, pool, targets)
    elif model == _PC:
        _draw_powerlaw_cluster(state, n, int(a), b, adjacency, pool, targets, table)
    else:
        _draw_two_blocks(state, n, parameters, adjacency)


@njit(cache=True)
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


@njit(cache=True)
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
    found = 0
    for root in range(n):
        if (unseen[root >> 6] & bit_of(root)) == ZERO:
            continue
        first[components] = found
        components += 1
        unseen[root >> 6] ^= bit_of(root)
        nodes[found] = root
        head = found
        found += 1
        while head < found:
            node = nodes[head]
            head += 1
            for w in range(words):
                fresh = adjacency[node, w] & unseen[w]
                unseen[w] ^= fresh
                while fresh != ZERO:
                    nodes[found] = w * 64 + lowest_bit(fresh)
                    found += 1
                    fresh &= fresh - ONE
        if found == n:
            break
    first[components] = n
    return components


@njit(cache=True)
def _join_components(
    state: NDArray[np.uint64],
    connect: int,
    adjacency: NDArray[np.uint64],
    components: int,
    nodes: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    order = np.empty(components, np.int64)
    for component in range(components):
        order[component] = component
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
            if not _linked(adjacency, u, v):
                _link(adjacency, u, v)
                missing -= 1
        for i in range(count):
            joined[size + i] = nodes[start + i]
        size += count


@njit(cache=True)
def _relabel(adjacency: NDArray[np.uint64], new_id: NDArray[np.int64], relabelled: NDArray[np.uint64]) -> int:
    """Write each edge once, at its smaller new id, into ``relabelled``, and return the number of edges."""
    n, words = adjacency.shape
    relabelled[:] = ZERO
    num_edges = 0
    for u in range(n):
        a = new_id[u]
        bits = adjacency[u, u >> 6] & ~(bit_of(u) | (bit_of(u) - ONE))  # those above u
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


@njit(cache=True)
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


@njit(cache=True)
def _with_rows(edges: NDArray[np.int32], used: int, rows: int) -> NDArray[np.int32]:
    """Return a copy of the first ``used`` rows in an array of ``rows``."""
    copy = np.empty((rows, 2), np.int32)
    for j in range(used):
        copy[j, 0], copy[j, 1] = edges[j, 0], edges[j, 1]
    return copy


@njit(cache=True)
def draw_graphs(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    weights: NDArray[np.float64],
    params: NDArray[np.float64],
    connect: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
    """Draw one graph per sample, each from ``seed(key, index, attempt, 0)``.

    Arguments are not checked here: see ``graph_models.check_models``.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``, 0 for a first draw.
        num_nodes: Number of nodes of every graph.
        weights: ``float64[6]`` mixture weights in the order of ``MODELS``, not all zero, not normalised.
        params: ``float64[6, 9]`` of ``graph_models.pack_models``.
        connect: Edges that link a component to the part joined before it; 0 leaves graphs in pieces.

    Returns:
        ``edge_ptr`` (``int64[S + 1]``), ``edges`` (``int32[E, 2]``, ``u < v``, lexicographic within a graph, ids from
        0 to num_nodes - 1) and ``model`` (``int8[S]``, position in ``MODELS``). Graph ``s`` has the edges
        ``edges[edge_ptr[s]:edge_ptr[s + 1]]``.
    """
    num_graphs = indices.shape[0]
    n, words = num_nodes, (num_nodes + 63) >> 6
    most = int(max(params[_BA, 0], params[_DBA, 0], params[_DBA, 1], params[_PC, 0])) + 1
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
        state = seed(key, indices[s], attempts[s], 0)
        chosen = _pick_model(state, weights)
        _draw_model(state, chosen, n, params[chosen], adjacency, pool, targets, table)
        if connect > 0:
            components = _find_components(adjacency, nodes, first, unseen)
            if components > 1:
                _join_components(state, connect, adjacency, components, nodes, first)
        for node in range(n):
            nodes[node] = node
        shuffle(state, nodes)
        count = _relabel(adjacency, nodes, relabelled)
        used = edge_ptr[s]
        edge_ptr[s + 1] = used + count
        if used + count > edges.shape[0]:
            edges = _with_rows(edges, used, 2 * (used + count))
        _write_edges(relabelled, edges, used)
        model[s] = chosen
    used = edge_ptr[num_graphs]
    return edge_ptr, _with_rows(edges, used, used), model
