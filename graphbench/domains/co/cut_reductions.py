"""Max-cut problems without nodes of at most three neighbours: the best cut of the rest extends to the best cut.

The contribution of a node v to the best cut depends only on which of its neighbours a, b, c share a side, and every
such function is a constant plus weights of the pairs ab, ac, bc: v is replaced by changed weights between its
neighbours ("star-triangle"; sparse max-cut: Charfreitag, Juenger, Mallach and Mutzel 2022). Edges that reach weight 0
vanish, which frees further nodes.

Weights may become negative, and halves, never finer: for the value f(S) of a cut by the set S, the weight of ab is
(f({a}) + f({b}) - f({a, b})) / 2, and f stays whole. So all weights here are doubled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel


class ReducedCut(NamedTuple):
    """The rest of a graph, with doubled weights, and the data that extend a cut of the rest to the graph.

    Twice the value of the cut of the graph is ``constant`` plus the doubled weights the cut of the rest cuts.
    """

    nodes: NDArray[np.int32]  # [k] the nodes left
    first: NDArray[np.int64]  # [k + 1] neighbour lists of the rest: rows first[i] to first[i + 1] - 1
    near: NDArray[np.int32]  # the neighbours, as places in nodes, sorted
    weight: NDArray[np.int32]  # the doubled weights, none 0
    constant: int
    gone: NDArray[np.int32]  # [g] the other nodes in the order they went
    gone_near: NDArray[np.int32]  # [g, 3] their neighbours at that time, -1 where fewer
    gone_weight: NDArray[np.int32]  # [g, 3] and the doubled weights


@inner
def _add_weight(a: int, b: int, change: int, weight: NDArray[np.int32], degree: NDArray[np.int64]) -> None:
    before = weight[a, b]
    weight[a, b] = weight[b, a] = before + change
    step = (1 if before + change != 0 else 0) - (1 if before != 0 else 0)
    degree[a] += step
    degree[b] += step


@inner
def _replace(
    near: NDArray[np.int32], old_weight: NDArray[np.int32], weight: NDArray[np.int32], degree: NDArray[np.int64]
) -> int:
    """Replace a node with up to 3 neighbours by weights between these; return its minimal contribution.

    ``old_weight`` holds the node's weights, 0 where ``near`` is -1. ``apart[i]`` is the loss if neighbour i is on the
    other side than the rest.
    """
    total = old_weight[0] + old_weight[1] + old_weight[2]
    together = max(0, total)
    apart = np.empty(3, np.int64)
    for i in range(3):
        apart[i] = max(old_weight[i], total - old_weight[i]) - together
    for i in range(3):
        for j in range(i):
            change = (apart[i] + apart[j] - apart[3 - i - j]) // 2
            if change != 0:
                _add_weight(near[i], near[j], change, weight, degree)
    return together


@kernel
def reduce_cut(num_nodes: int, edges: NDArray[np.int32]) -> ReducedCut:
    """Replace nodes of at most three neighbours until there are none; edges are ``int32[m, 2]``, each of weight 1."""
    n = num_nodes
    weight = np.zeros((n, n), np.int32)
    degree = np.zeros(n, np.int64)
    for e in range(edges.shape[0]):
        _add_weight(edges[e, 0], edges[e, 1], 2, weight, degree)
    left = np.ones(n, np.bool_)
    gone = np.empty(n, np.int32)
    gone_near = np.full((n, 3), -1, np.int32)
    gone_weight = np.zeros((n, 3), np.int32)
    constant = count = 0
    changed = True
    while changed:
        changed = False
        for v in range(n):
            if not left[v] or degree[v] > 3:
                continue
            k = 0
            for u in range(n):
                if weight[v, u] != 0:
                    gone_near[count, k], gone_weight[count, k] = u, weight[v, u]
                    k += 1
            for i in range(k):
                _add_weight(v, gone_near[count, i], -gone_weight[count, i], weight, degree)
            constant += _replace(gone_near[count], gone_weight[count], weight, degree)
            gone[count] = v
            left[v] = False
            count += 1
            changed = True
    nodes = np.empty(n - count, np.int32)
    k = 0
    for v in range(n):
        if left[v]:
            nodes[k] = v
            k += 1
    first = np.zeros(nodes.shape[0] + 1, np.int64)
    for i in range(nodes.shape[0]):
        first[i + 1] = first[i] + degree[nodes[i]]
    near = np.empty(first[-1], np.int32)
    kept = np.empty(first[-1], np.int32)
    row = 0
    for i in range(nodes.shape[0]):
        for j in range(nodes.shape[0]):
            if weight[nodes[i], nodes[j]] != 0:
                near[row], kept[row] = j, weight[nodes[i], nodes[j]]
                row += 1
    return ReducedCut(
        nodes, first, near, kept, constant, gone[:count].copy(), gone_near[:count].copy(), gone_weight[:count].copy()
    )


@kernel
def expand_cut(num_nodes: int, reduced: ReducedCut, side: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the best sides ``bool[n]`` of all nodes for the sides ``bool[k]`` of the nodes left."""
    result = np.zeros(num_nodes, np.bool_)
    for i in range(side.shape[0]):
        result[reduced.nodes[i]] = side[i]
    for g in range(reduced.gone.shape[0] - 1, -1, -1):
        surplus = 0
        for i in range(3):
            if reduced.gone_weight[g, i] != 0:
                other = result[reduced.gone_near[g, i]]
                surplus += -reduced.gone_weight[g, i] if other else reduced.gone_weight[g, i]
        result[reduced.gone[g]] = surplus > 0
    return result
