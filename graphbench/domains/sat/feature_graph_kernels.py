"""Compiled measurements of the graphs of formulas; their numbers of steps do not depend on the machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel


@kernel
def symmetric(
    first: NDArray[np.int64], larger: NDArray[np.int32], weights: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return all neighbours of every node, ascending, with their weights, from the larger neighbours."""
    n = len(first) - 1
    starts = np.zeros(n + 1, np.int64)
    for u in range(n):
        starts[u + 1] += first[u + 1] - first[u]
        for k in range(first[u], first[u + 1]):
            starts[larger[k] + 1] += 1
    for u in range(n):
        starts[u + 1] += starts[u]
    after = starts[:-1].copy()
    nodes, result = np.empty(2 * len(larger), np.int32), np.empty(2 * len(larger), np.int64)
    for u in range(n):  # the smaller neighbours of node u were added in earlier iterations
        for k in range(first[u], first[u + 1]):
            v = larger[k]
            nodes[after[v]], result[after[v]] = u, weights[k]
            after[v] += 1
    for u in range(n):
        for k in range(first[u], first[u + 1]):
            nodes[after[u]], result[after[u]] = larger[k], weights[k]
            after[u] += 1
    return starts, nodes, result


@kernel
def clustering(
    first: NDArray[np.int64], nodes: NDArray[np.int32], up: NDArray[np.int64], larger: NDArray[np.int32], most: int
) -> tuple[NDArray[np.float64], int, int]:
    """Return the clustering coefficients of the nodes (Watts and Strogatz 1998), 0 for fewer than two neighbours.

    Args:
        first: int64 ``[N + 1]``, where the neighbours of every node begin in ``nodes``.
        nodes: int32, all neighbours of every node.
        up: int64 ``[N + 1]``, where the larger neighbours of every node begin in ``larger``.
        larger: int32, the neighbours of every node with a larger number.
        most: Limit of steps. If measuring all nodes takes more steps, only every k-th node is measured, with the
            smallest k that keeps the limit on average.

    Returns:
        The coefficients of the measured nodes, float64 ``[measured]``, the stride k, and the number of steps.
    """
    n = len(first) - 1
    total = 0
    for u in range(n):
        total += (first[u + 1] - first[u]) * (1 + up[u + 1] - up[u])
    stride = 1 + total // most
    result = np.zeros((n + stride - 1) // stride, np.float64)
    marked = np.full(n, -1, np.int32)
    steps = 0
    for i in range(len(result)):
        v = i * stride
        degree = first[v + 1] - first[v]
        if degree < 2:
            continue
        for k in range(first[v], first[v + 1]):
            marked[nodes[k]] = v
        links = 0
        for k in range(first[v], first[v + 1]):
            u = nodes[k]
            steps += 1 + up[u + 1] - up[u]
            for at in range(up[u], up[u + 1]):
                links += 1 if marked[larger[at]] == v else 0
        result[i] = 2.0 * links / (degree * (degree - 1))
    return result, stride, steps


@kernel
def distances(
    first: NDArray[np.int64],
    clauses: NDArray[np.int32],
    clause_first: NDArray[np.int64],
    members: NDArray[np.int32],
    sources: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Search the variable graph breadth-first from some variables, through the clauses.

    Args:
        first: int64 ``[2n + 1]``, where the clauses of every literal begin in ``clauses``.
        clauses: int32, the clauses of every literal.
        clause_first: int64 ``[m + 1]``, where the literals of every clause begin in ``members``.
        members: int32, the literals of every clause.
        sources: int64 ``[k]``, the start variables, counted from 0.

    Returns:
        The largest and the mean distance from each source to the variables of its component, int64 ``[k]`` and float64
        ``[k]``, and the number of steps.
    """
    n, m = len(first) // 2, len(clause_first) - 1
    furthest, means = np.zeros(len(sources), np.int64), np.zeros(len(sources), np.float64)
    seen, closed = np.full(n, -1, np.int32), np.full(m, -1, np.int32)
    queue, depth = np.empty(n, np.int32), np.empty(n, np.int32)
    steps = 0
    for i in range(len(sources)):
        queue[0], depth[0], seen[sources[i]] = sources[i], 0, i
        head, tail, total = 0, 1, 0
        while head < tail:
            v = queue[head]
            for k in range(first[2 * v], first[2 * v + 2]):
                j = clauses[k]
                steps += 1
                if closed[j] == i:
                    continue
                closed[j] = i
                for at in range(clause_first[j], clause_first[j + 1]):
                    w = members[at] >> 1
                    steps += 1
                    if seen[w] != i:
                        seen[w] = i
                        queue[tail], depth[tail] = w, depth[head] + 1
                        total += depth[tail]
                        tail += 1
            head += 1
        furthest[i] = depth[tail - 1]
        means[i] = total / max(tail - 1, 1)
    return furthest, means, steps


@kernel
def component_sizes(
    first: NDArray[np.int64], clauses: NDArray[np.int32], clause_first: NDArray[np.int64], members: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the numbers of variables of the components of the variable graph, int64 ``[components]``."""
    n, m = len(first) // 2, len(clause_first) - 1
    seen, closed = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    queue, sizes = np.empty(n, np.int32), np.empty(n, np.int64)
    count = 0
    for source in range(n):
        if seen[source]:
            continue
        queue[0], seen[source] = source, True
        head, tail = 0, 1
        while head < tail:
            v = queue[head]
            head += 1
            for k in range(first[2 * v], first[2 * v + 2]):
                j = clauses[k]
                if closed[j]:
                    continue
                closed[j] = True
                for at in range(clause_first[j], clause_first[j + 1]):
                    w = members[at] >> 1
                    if not seen[w]:
                        seen[w] = True
                        queue[tail] = w
                        tail += 1
        sizes[count] = tail
        count += 1
    return sizes[:count].copy()
