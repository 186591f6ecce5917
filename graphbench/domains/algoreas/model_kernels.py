"""One random graph of one model, as a matrix of bits, inside compiled kernels.

The models have the distribution of networkx 3.6; the streams of random numbers differ: ``gnp_random_graph`` (er),
``newman_watts_strogatz_graph`` (nws), ``barabasi_albert_graph`` (ba), ``dual_barabasi_albert_graph`` (dba),
``powerlaw_cluster_graph`` (pc), ``stochastic_block_model`` with two blocks (sbm).

While being drawn, a graph is a symmetric matrix of bits: ``adjacency`` is ``uint64[n, ceil(n / 64)]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, uniform
from graphbench.domains.algoreas.bits import ONE, ZERO, bit_of, lowest_bit, popcount

ER, NWS, BA, DBA, PC, SBM = range(6)  # positions in graph_models.MODELS
_ROUNDING = 1e-9  # so that a block of 0.29 * 100 nodes has 29


@inner
def link(adjacency: NDArray[np.uint64], u: int, v: int) -> None:
    """Add the edge between ``u`` and ``v``."""
    adjacency[u, v >> 6] |= bit_of(v)
    adjacency[v, u >> 6] |= bit_of(u)


@inner
def linked(adjacency: NDArray[np.uint64], u: int, v: int) -> bool:
    """Return whether there is an edge between ``u`` and ``v``."""
    return bool((adjacency[u, v >> 6] & bit_of(v)) != ZERO)


@inner
def _draw_erdos_renyi(state: NDArray[np.uint64], n: int, p: float, adjacency: NDArray[np.uint64]) -> None:
    for u in range(n):
        for v in range(u + 1, n):
            if uniform(state) < p:
                link(adjacency, u, v)


@inner
def _draw_two_blocks(
    state: NDArray[np.uint64], n: int, parameters: NDArray[np.float64], adjacency: NDArray[np.uint64]
) -> None:
    first_block = int(n * parameters[3] + _ROUNDING)
    for u in range(n):
        for v in range(u + 1, n):
            block_pair = (1 if u >= first_block else 0) + (1 if v >= first_block else 0)
            if uniform(state) < parameters[block_pair]:
                link(adjacency, u, v)


@inner
def _draw_small_world(
    state: NDArray[np.uint64], start: int, n: int, k: int, p: float, adjacency: NDArray[np.uint64]
) -> None:
    """Ring of the n nodes from ``start`` on, each joined to k // 2 on either side; each ring edge adds a chord.

    A chord is added with probability p. As in networkx, the chord starts at the smaller end of the ring edge, so the
    last nodes of the ring start fewer.
    """
    half = k // 2
    for u in range(n):
        for distance in range(1, half + 1):
            v = u + distance if u + distance < n else u + distance - n
            if v != u:
                link(adjacency, start + u, start + v)
    if k == n:  # complete: nothing to add
        return
    degree = np.empty(n, np.int64)
    for u in range(n):
        degree[u] = 2 * half
    for u in range(n):
        ring_edges = min(half, n - 1 - u) + max(half - u, 0)  # edges with u as the smaller end
        for _ in range(ring_edges):
            if uniform(state) < p and degree[u] < n - 1:
                w = u
                while w == u or linked(adjacency, start + u, start + w):
                    w = below(state, n)
                link(adjacency, start + u, start + w)
                degree[u] += 1
                degree[w] += 1


@inner
def _draw_rings(
    state: NDArray[np.uint64], n: int, parameters: NDArray[np.float64], adjacency: NDArray[np.uint64]
) -> None:
    """Several rings of different lengths on a share of the nodes; the other nodes are left alone.

    The number of rings is uniform between 1 and the largest possible number. Every ring has at least ``shortest``
    nodes. Each ring but the last takes a uniform number of the remaining nodes beyond that.
    """
    on_rings = int(n * parameters[2] + _ROUNDING)
    shortest = int(parameters[3])
    rings = 1 + below(state, on_rings // shortest)
    spare = on_rings - rings * shortest
    start = 0
    for ring in range(rings):
        more = spare if ring == rings - 1 else below(state, spare + 1)
        _draw_small_world(state, start, shortest + more, int(parameters[0]), parameters[1], adjacency)
        spare -= more
        start += shortest + more


@inner
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


@inner
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
        link(adjacency, 0, leaf)
        pool[2 * leaf - 2], pool[2 * leaf - 1] = 0, leaf
    size = 2 * leaves
    for source in range(leaves + 1, n):
        count = first if uniform(state) < p else second
        _draw_distinct(state, pool, size, count, targets)
        for i in range(count):
            link(adjacency, source, targets[i])
            pool[size], pool[size + 1] = targets[i], source
            size += 2


@inner
def _clear_table(table: NDArray[np.int32], mask: int) -> None:
    for slot in range(mask + 1):
        table[slot] = -1


@inner
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


@inner
def _read_table(table: NDArray[np.int32], mask: int, values: NDArray[np.int32]) -> int:
    count = 0
    for slot in range(mask + 1):
        if table[slot] >= 0:
            values[count] = table[slot]
            count += 1
    return count


@kernel
def order_as_python_set(values: NDArray[np.int32], count: int, table: NDArray[np.int32]) -> None:
    """Reorder ``values[:count]`` as a CPython ``set`` yields them when it was filled in that order.

    networkx's power-law cluster model attaches to its drawn targets in this order, which favours low ids, the old
    nodes. It is no part of the published model (Holme and Kim, 2002), but data drawn with networkx has it, and it is
    no small matter: at n = 128, m = 5, p = 0.5 the mean largest degree is 54 against 46 in order of drawing.

    Args:
        values: ``int32``, non-negative, different; changed in place.
        count: Number of them.
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


@inner
def _draw_new_neighbour_of(state: NDArray[np.uint64], adjacency: NDArray[np.uint64], target: int, source: int) -> int:
    """Return a neighbour of ``target``, uniform among the nodes not yet linked to ``source``, or -1."""
    words = adjacency.shape[1]
    available = 0
    for w in range(words):
        available += popcount(adjacency[target, w] & ~adjacency[source, w])
    available -= 1 if linked(adjacency, target, source) else 0
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
            return int(w * 64 + lowest_bit(bits))
        skip -= count
    return -1


@inner
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
            link(adjacency, source, chosen)
            pool[size] = chosen
            size += 1
        for _ in range(m):
            pool[size] = source
            size += 1


@inner
def draw_model(
    state: NDArray[np.uint64],
    model: int,
    n: int,
    parameters: NDArray[np.float64],
    adjacency: NDArray[np.uint64],
    pool: NDArray[np.int32],
    targets: NDArray[np.int32],
    table: NDArray[np.int32],
) -> None:
    """Draw a graph of one model into ``adjacency``: perhaps in pieces, ids in the model's order.

    Args:
        state: Generator of the sample; advanced.
        model: Position in ``graph_models.MODELS``.
        n: Number of nodes.
        parameters: ``float64[9]``, the model's row of ``graph_models.pack_models``.
        adjacency: ``uint64[n, ceil(n / 64)]``, overwritten.
        pool: Scratch, ``int32[n + 2 * n * m]`` for the largest m, m1 or m2 of the parameters.
        targets: Scratch, ``int32[m]``.
        table: Scratch, ``int32[8 * (m + 1)]``.
    """
    adjacency[:] = ZERO
    a, b, p = parameters[0], parameters[1], parameters[2]
    if model == ER:
        _draw_erdos_renyi(state, n, a, adjacency)
    elif model == NWS and p > 0.0:
        _draw_rings(state, n, parameters, adjacency)
    elif model == NWS:
        _draw_small_world(state, 0, n, int(a), b, adjacency)
    elif model == BA:
        _draw_preferential(state, n, int(a), int(a), 1.0, adjacency, pool, targets)
    elif model == DBA:
        # As in networkx, p = 0 or 1 is plain Barabasi-Albert, with the smaller star.
        first = int(b) if p == 0.0 else int(a)
        second = int(a) if p == 1.0 else int(b)
        _draw_preferential(state, n, first, second, p, adjacency, pool, targets)
    elif model == PC:
        _draw_powerlaw_cluster(state, n, int(a), b, adjacency, pool, targets, table)
    else:
        _draw_two_blocks(state, n, parameters, adjacency)
