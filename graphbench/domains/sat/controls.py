"""Kernels of crafted formulas whose difficulty is understood: pigeonholes, parity equations and graph colouring."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below, next_u64, seed, uniform
from graphbench.domains.sat.drawing import draw_subset, real_between, rounded, whole_between
from graphbench.domains.sat.random_clauses import Formula

_ONE = np.uint64(1)
_S63 = np.uint64(63)


@kernel
def draw_pigeonhole(key: np.uint64, index: int, attempt: int, holes: tuple[int, int]) -> Formula:
    """Return the unsatisfiable formula "h + 1 pigeons sit in h holes, at most one pigeon in each hole".

    Variable ``pigeon * h + hole + 1`` says that the pigeon sits in the hole. Only h is drawn.
    """
    h = whole_between(seed(key, index, attempt, 0), holes[0], holes[1])
    conflicts = h * (h + 1) * h // 2
    literals = np.empty((h + 1) * h + 2 * conflicts, np.int32)
    ptr = np.zeros(h + 2 + conflicts, np.int64)
    for pigeon in range(h + 1):
        for hole in range(h):
            literals[pigeon * h + hole] = pigeon * h + hole + 1
        ptr[pigeon + 1] = (pigeon + 1) * h
    clause = h + 1
    for hole in range(h):
        for first in range(h + 1):
            for second in range(first + 1, h + 1):
                at = ptr[clause]
                literals[at], literals[at + 1] = -(first * h + hole + 1), -(second * h + hole + 1)
                clause += 1
                ptr[clause] = at + 2
    return (h + 1) * h, literals, ptr


@kernel
def draw_edges(state: NDArray[np.uint64], n: int, m: int) -> NDArray[np.int64]:
    """Return the edges of a uniform graph G(n, m) of n nodes and m edges, int64 ``[m, 2]`` with u < v (Floyd)."""
    taken = np.zeros(n * (n - 1) // 2, np.bool_)
    edges = np.empty((m, 2), np.int64)
    for e in range(m):
        top = len(taken) - m + e
        pick = below(state, top + 1)
        if taken[pick]:
            pick = top
        taken[pick] = True
        v = int((1.0 + math.sqrt(1.0 + 8.0 * pick)) / 2.0)  # pairs are counted by v, then by u
        while v * (v - 1) // 2 > pick:
            v -= 1
        while v * (v + 1) // 2 <= pick:
            v += 1
        edges[e, 0], edges[e, 1] = pick - v * (v - 1) // 2, v
    return edges


@kernel
def colouring_clauses(n: int, edges: NDArray[np.int64], colours: int) -> Formula:
    """Return the formula "every node has one of k colours, and adjacent nodes have different colours".

    Variable ``node * k + colour + 1`` says that the node has the colour. One clause per node says that the node has a
    colour, one clause per node and pair of colours that the node does not have both colours, and one clause per edge
    and colour that the colour is not at both ends of the edge.
    """
    pairs = colours * (colours - 1) // 2
    clauses = n * (1 + pairs) + len(edges) * colours
    literals = np.empty(n * colours + 2 * (clauses - n), np.int32)
    ptr = np.zeros(clauses + 1, np.int64)
    clause = at = 0
    for node in range(n):
        for colour in range(colours):
            literals[at] = node * colours + colour + 1
            at += 1
        clause += 1
        ptr[clause] = at
        for first in range(colours):
            for second in range(first + 1, colours):
                literals[at], literals[at + 1] = -(node * colours + first + 1), -(node * colours + second + 1)
                at += 2
                clause += 1
                ptr[clause] = at
    for e in range(len(edges)):
        for colour in range(colours):
            literals[at] = -(edges[e, 0] * colours + colour + 1)
            literals[at + 1] = -(edges[e, 1] * colours + colour + 1)
            at += 2
            clause += 1
            ptr[clause] = at
    return n * colours, literals, ptr


@kernel
def draw_colouring(
    key: np.uint64, index: int, attempt: int, nodes: tuple[int, int], ratio: tuple[float, float], colours: int
) -> Formula:
    """Draw a random graph G(n, m), and return the formula that the graph can be coloured.

    ``ratio`` is the range of m / n; m is at most the number of pairs of nodes.
    """
    state = seed(key, index, attempt, 0)
    n = whole_between(state, nodes[0], nodes[1])
    m = min(rounded(real_between(state, ratio[0], ratio[1]) * n), n * (n - 1) // 2)
    return colouring_clauses(n, draw_edges(state, n, m), colours)


@kernel
def dependent_equations(equations: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the equations whose left side is a sum modulo 2 of earlier left sides, by Gaussian elimination.

    Args:
        equations: int64 ``[m, w]``: the distinct variables of every equation, counted from 0.
        n: Number of variables.
    """
    words = (n + 63) // 64
    rows = np.zeros((n, words), np.uint64)  # the first variable of row v is v, once the row is used
    used = np.zeros(n, np.bool_)
    row = np.empty(words, np.uint64)
    dependents = np.empty(len(equations), np.int64)
    size = 0
    for e in range(len(equations)):
        row[:] = np.uint64(0)
        for v in equations[e]:
            row[v // 64] |= _ONE << np.uint64(v % 64)
        dependent = True
        for v in range(n):
            if (row[v // 64] >> np.uint64(v % 64)) & _ONE:
                if not used[v]:
                    rows[v] = row
                    used[v] = True
                    dependent = False
                    break
                for word in range(words):
                    row[word] ^= rows[v, word]
        if dependent:
            dependents[size] = e
            size += 1
    return dependents[:size].copy()


@kernel
def draw_parity(
    key: np.uint64,
    index: int,
    attempt: int,
    variables: tuple[int, int],
    ratio: tuple[float, float],
    width: tuple[int, int],
    flipped: float,
) -> tuple[int, NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], bool]:
    """Draw a system of equations modulo 2, each of w distinct variables.

    A random assignment determines the right sides. With probability ``flipped``, the right side of one equation that
    depends linearly on earlier equations is then negated, and the system becomes inconsistent.

    Returns:
        The number n of variables, the variables of the equations int64 ``[m, w]``, counted from 0, the right sides bool
        ``[m]``, the assignment bool ``[n]``, and whether the system is consistent.
    """
    state = seed(key, index, attempt, 0)
    n = whole_between(state, variables[0], variables[1])
    m = math.ceil(real_between(state, ratio[0], ratio[1]) * n)
    equations = np.empty((m, whole_between(state, width[0], width[1])), np.int64)
    model = np.empty(n, np.bool_)
    for v in range(n):
        model[v] = (next_u64(state) >> _S63) == _ONE
    sides = np.zeros(m, np.bool_)
    for e in range(m):
        draw_subset(state, n, equations[e])
        for v in equations[e]:
            sides[e] ^= model[v]
    consistent = not uniform(state) < flipped
    if not consistent:
        candidates = dependent_equations(equations, n)
        e = candidates[below(state, len(candidates))]
        sides[e] = not sides[e]
    return n, equations, sides, model, consistent


@kernel
def parity_clauses(n: int, equations: NDArray[np.int64], sides: NDArray[np.bool_]) -> Formula:
    """Return the clauses of equations modulo 2: an equation of w variables excludes 2^(w-1) assignments to them."""
    w = equations.shape[1]
    clauses = len(equations) << (w - 1)
    literals = np.empty(clauses * w, np.int32)
    at = 0
    for e in range(len(equations)):
        for assignment in range(1 << w):
            parity = False
            for i in range(w):
                parity ^= (assignment >> i) & 1 == 1
            if parity != sides[e]:
                for i in range(w):
                    literal = equations[e, i] + 1
                    literals[at] = -literal if (assignment >> i) & 1 else literal
                    at += 1
    return n, literals, np.arange(clauses + 1) * w
