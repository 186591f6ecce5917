"""The random graphs of `graphs`, a shard at a time, in compiled kernels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below, next_u64, permutation, seed, uniform
from graphbench.domains.algoreas.random_graphs import with_rows

_ROUNDING = 1e-9  # so that log 8 / log 2 = 3 is not rounded down to 2
_TWO_32 = 4294967296.0
_LOW32 = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)

Graphs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


@kernel
def _between(state: NDArray[np.uint64], low: int, high: int) -> int:
    return low + below(state, high - low + 1)


@kernel
def _draw_pairs(state: NDArray[np.uint64], n: int, p: float, edges: NDArray[np.int32], at: int) -> int:
    """Write every pair with probability p, rounded to a multiple of 2**-32, from row ``at``; return the row after."""
    threshold = np.uint64(math.floor(p * _TWO_32 + 0.5))
    spare = np.uint64(0)
    full = False
    for u in range(n):
        for v in range(u + 1, n):
            if full:
                draw = spare
                full = False
            else:
                bits = next_u64(state)
                draw = bits & _LOW32
                spare = bits >> _S32
                full = True
            edges[at, 0], edges[at, 1] = u, v
            at += 1 if draw < threshold else 0
    return at


@kernel
def draw_uniform_graphs(
    key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64], low: int, high: int, p: float
) -> Graphs:
    """Draw Erdos-Renyi graphs of ``low`` to ``high`` nodes; results as in `graphs.draw_graphs`.

    Their nodes are exchangeable, so no ids are shuffled.
    """
    num_nodes = np.empty(indices.shape[0], np.int64)
    num_edges = np.empty(indices.shape[0], np.int64)
    most = high * (high - 1) // 2 + 1  # one row is written past the last edge
    edges = np.empty((most + int(indices.shape[0] * p * (most - 1)), 2), np.int32)
    used = 0
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], 0)
        num_nodes[s] = _between(state, low, high)
        if used + most > edges.shape[0]:
            edges = with_rows(edges, used, 2 * (used + most))
        after = _draw_pairs(state, num_nodes[s], p, edges, used)
        num_edges[s] = after - used
        used = after
    return num_nodes, num_edges, with_rows(edges, used, used)


@kernel
def _write_sorted(
    n: int, pairs: NDArray[np.int64], new_id: NDArray[np.int64], edges: NDArray[np.int32], at: int
) -> None:
    """Write the edges ``pairs int64[m, 2]`` under new ids, sorted, into the m rows from ``at``.

    Two passes of counting sort: by the larger end, then by the smaller one.
    """
    m = pairs.shape[0]
    first = np.zeros((2, n + 1), np.int64)
    for e in range(m):
        a, b = new_id[pairs[e, 0]], new_id[pairs[e, 1]]
        pairs[e, 0], pairs[e, 1] = min(a, b), max(a, b)
        first[0, pairs[e, 0] + 1] += 1
        first[1, pairs[e, 1] + 1] += 1
    for v in range(n):
        first[0, v + 1] += first[0, v]
        first[1, v + 1] += first[1, v]
    by_larger = np.empty(m, np.int64)
    for e in range(m):
        by_larger[first[1, pairs[e, 1]]] = e
        first[1, pairs[e, 1]] += 1
    for i in range(m):
        u = pairs[by_larger[i], 0]
        row = at + first[0, u]
        edges[row, 0], edges[row, 1] = u, pairs[by_larger[i], 1]
        first[0, u] += 1


@kernel
def _grow(state: NDArray[np.uint64], n: int, m: int, pairs: NDArray[np.int64]) -> None:
    """Fill ``pairs int64[m * (n - m), 2]`` with the edges of a Barabasi-Albert graph that starts from a star.

    The ends of the edges so far, read as one list, name each node once per edge at it.
    """
    for leaf in range(m):
        pairs[leaf, 0], pairs[leaf, 1] = 0, leaf + 1
    row = m
    for source in range(m + 1, n):
        begin = row
        while row < begin + m:
            pick = below(state, 2 * begin)
            target = pairs[pick >> 1, pick & 1]
            fresh = True
            for i in range(begin, row):
                if pairs[i, 0] == target:
                    fresh = False
            if fresh:
                pairs[row, 0], pairs[row, 1] = target, source
                row += 1


@kernel
def draw_growing_graphs(
    key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64], low: int, high: int, m: int
) -> Graphs:
    """Draw Barabasi-Albert graphs of ``low`` to ``high`` nodes; results as in `graphs.draw_graphs`."""
    num_nodes = np.empty(indices.shape[0], np.int64)
    num_edges = np.empty(indices.shape[0], np.int64)
    edges = np.empty((indices.shape[0] * m * (high - m), 2), np.int32)
    pairs = np.empty((m * (high - m), 2), np.int64)
    used = 0
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], 0)
        n = _between(state, low, high)
        num_nodes[s] = n
        num_edges[s] = m * (n - m)
        _grow(state, n, m, pairs[: num_edges[s]])
        _write_sorted(n, pairs[: num_edges[s]], permutation(state, n), edges, used)
        used += num_edges[s]
    return num_nodes, num_edges, with_rows(edges, used, used)


@kernel
def count_constraints(cliques: int, size: int, p: float) -> int:
    """Return the number of constraints of model RB: r N log N - 1 with r = -alpha / log(1 - p), rounded down."""
    if p >= 1.0:
        return 0
    return max(math.floor(-cliques * math.log(size) / math.log(1.0 - p) - 1.0 + _ROUNDING), 0)


@kernel
def count_joined_pairs(size: int, p: float) -> int:
    """Return the number of edges that a constraint of model RB adds: p K^2, rounded down."""
    return math.floor(p * size * size + _ROUNDING)


@kernel
def _add_constraint(
    state: NDArray[np.uint64],
    first: int,
    second: int,
    size: int,
    count: int,
    spare: bool,
    linked: NDArray[np.bool_],
    choices: NDArray[np.int64],
    pairs: NDArray[np.int64],
    m: int,
) -> int:
    """Link ``count`` uniform pairs of cliques ``first`` and ``second`` that were not linked in this order yet.

    All, if there are fewer. Row u, column v of ``linked`` is the pair (u, v) linked from u's clique to v's.
    Pairs linked in neither order before are written to ``pairs`` from row ``m``; returns the row after.
    ``spare``: the pair of their first nodes is never linked. ``choices`` is scratch.
    """
    available = 0
    for i in range(size):
        for j in range(size):
            choices[available] = i * size + j
            taken = linked[first * size + i, second * size + j] or (spare and i == 0 and j == 0)
            available += 0 if taken else 1
    for t in range(min(count, available)):
        at = t + below(state, available - t)
        pair = choices[at]
        choices[at] = choices[t]
        u, v = first * size + pair // size, second * size + pair % size
        linked[u, v] = True
        pairs[m, 0], pairs[m, 1] = u, v
        m += 0 if linked[v, u] else 1
    return m


@kernel
def _draw_model_rb(
    state: NDArray[np.uint64],
    cliques: int,
    size: int,
    p: float,
    planted: bool,
    linked: NDArray[np.bool_],
    pairs: NDArray[np.int64],
) -> int:
    """Write the edges of a graph of model RB to ``pairs``, each once; return how many. Clique c is nodes c * size on.

    A planted solution is the first node of every clique: ids are shuffled later. ``linked`` is scratch, all False
    before and after.
    """
    m = 0
    for u in range(cliques * size):
        for v in range(u + 1, u - u % size + size):
            pairs[m, 0], pairs[m, 1] = u, v
            m += 1
    within = m
    choices = np.empty(size * size + 1, np.int64)
    count = count_joined_pairs(size, p)
    for _ in range(count_constraints(cliques, size, p)):
        a = below(state, cliques)
        b = below(state, cliques - 1)
        b += 1 if b >= a else 0
        m = _add_constraint(state, a, b, size, count, planted, linked, choices, pairs, m)
    for e in range(within, m):
        u, v = pairs[e, 0], pairs[e, 1]
        linked[u, v] = linked[v, u] = False
    return m


@kernel
def draw_model_rb_graphs(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    cliques: tuple[int, int],
    clique_size: tuple[int, int],
    tightness: tuple[float, float],
    nodes: tuple[int, int],
    planted: bool,
) -> Graphs:
    """Draw graphs of model RB; results as in `graphs.draw_graphs`. Some product must lie in ``nodes``."""
    num_nodes = np.empty(indices.shape[0], np.int64)
    num_edges = np.empty(indices.shape[0], np.int64)
    most = min(nodes[1], cliques[1] * clique_size[1])
    linked = np.zeros((most, most), np.bool_)
    pairs = np.empty((most * (most - 1) // 2 + 1, 2), np.int64)
    edges = np.empty((most * most // 4 * max(indices.shape[0] // 4, 1), 2), np.int32)
    used = 0
    for s in range(indices.shape[0]):
        state = seed(key, indices[s], attempts[s], 0)
        count = size = 0
        while not nodes[0] <= count * size <= nodes[1]:
            count = _between(state, cliques[0], cliques[1])
            size = _between(state, clique_size[0], clique_size[1])
        p = tightness[0] + (tightness[1] - tightness[0]) * uniform(state)
        n = count * size
        m = _draw_model_rb(state, count, size, p, planted, linked, pairs)
        if used + m > edges.shape[0]:
            edges = with_rows(edges, used, 2 * (used + m))
        _write_sorted(n, pairs[:m], permutation(state, n), edges, used)
        num_nodes[s], num_edges[s] = n, m
        used += m
    return num_nodes, num_edges, with_rows(edges, used, used)
