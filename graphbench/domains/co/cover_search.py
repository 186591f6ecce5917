"""Local search for large independent sets: NuMVC (Cai, Su, Luo and Sattar 2013) on the complement, a vertex cover.

The cover has one node too few, so some edges are uncovered. Each step takes a node out of the cover and adds an end of
a random uncovered edge. Scores decide which nodes move; a score is a sum of edge weights, and the weight of an edge
grows while the edge stays uncovered. A node that left the cover returns only after a neighbour has changed
("configuration checking"). Whenever all edges are covered, the nodes outside the cover are a larger independent set,
and one more node leaves the cover.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import Neighbours
from graphbench.core.rng import below

_MEAN_WEIGHT = 0.5  # per node: the weights are lowered when their mean exceeds this times n
_KEPT_WEIGHT = 0.3


class _Cover(NamedTuple):
    """The state of the search; ``sizes`` holds the sizes of ``members`` and ``open``."""

    sizes: NDArray[np.int64]
    members: NDArray[np.int32]  # [n] nodes of the cover
    position: NDArray[np.int32]  # [n] position of a node in members, -1 outside
    open: NDArray[np.int32]  # [m] uncovered edges
    open_position: NDArray[np.int32]  # [m] position of an edge in open
    ends: NDArray[np.int8]  # [m] how many ends of an edge are in the cover
    weight: NDArray[np.int64]  # [m]
    score: NDArray[np.int64]  # [n] weight of the edges a change of the node would newly cover, minus uncovered
    moved: NDArray[np.int64]  # [n] step of the node's last change
    free: NDArray[np.bool_]  # [n] a neighbour has changed since the node left the cover


@inner
def _full_cover(n: int, m: int) -> _Cover:
    members = np.empty(n, np.int32)
    position = np.empty(n, np.int32)
    for v in range(n):
        members[v], position[v] = v, v
    return _Cover(
        np.array([n, 0]),
        members,
        position,
        np.empty(m, np.int32),
        np.empty(m, np.int32),
        np.full(m, 2, np.int8),
        np.ones(m, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.ones(n, np.bool_),
    )


@inner
def _take_out(v: int, lists: Neighbours, cover: _Cover) -> None:
    """Take v out of the cover and keep the scores and the list of uncovered edges.

    (Arrays used in a loop are bound to names before it: reading a field of a tuple there costs as much as the work.)
    """
    cover.sizes[0] -= 1
    last = cover.members[cover.sizes[0]]
    cover.members[cover.position[v]] = last
    cover.position[last] = cover.position[v]
    cover.position[v] = -1
    cover.score[v] = -cover.score[v]
    cover.free[v] = False
    node, arc = lists.node, lists.arc
    ends, free, score, weight = cover.ends, cover.free, cover.score, cover.weight
    for k in range(lists.first[v], lists.first[v + 1]):
        u, e = node[k], arc[k] >> 1
        ends[e] -= 1
        free[u] = True
        if ends[e] == 0:
            score[u] += weight[e]
            cover.open_position[e] = cover.sizes[1]
            cover.open[cover.sizes[1]] = e
            cover.sizes[1] += 1
        else:
            score[u] -= weight[e]


@inner
def _put_in(v: int, lists: Neighbours, cover: _Cover) -> None:
    cover.position[v] = cover.sizes[0]
    cover.members[cover.sizes[0]] = v
    cover.sizes[0] += 1
    cover.score[v] = -cover.score[v]
    node, arc = lists.node, lists.arc
    ends, free, score, weight = cover.ends, cover.free, cover.score, cover.weight
    for k in range(lists.first[v], lists.first[v + 1]):
        u, e = node[k], arc[k] >> 1
        ends[e] += 1
        free[u] = True
        if ends[e] == 1:
            score[u] -= weight[e]
            cover.sizes[1] -= 1
            last = cover.open[cover.sizes[1]]
            cover.open[cover.open_position[e]] = last
            cover.open_position[last] = cover.open_position[e]
        else:
            score[u] += weight[e]


@inner
def _cheapest_member(cover: _Cover, spared: int) -> int:
    """Return the member with the highest score, except ``spared``; of equals, the member that changed longest ago."""
    best = -1
    highest = -(1 << 62)
    members, scores, moved = cover.members, cover.score, cover.moved
    for i in range(cover.sizes[0]):
        v = members[i]
        score = scores[v]
        if score < highest or v == spared:
            continue
        if score > highest or moved[v] < moved[best]:
            best, highest = v, score
    return best


@inner
def _better_end(a: int, b: int, cover: _Cover) -> int:
    if not cover.free[a]:
        return b
    if not cover.free[b]:
        return a
    if cover.score[a] != cover.score[b]:
        return a if cover.score[a] > cover.score[b] else b
    return a if cover.moved[a] < cover.moved[b] else b


@inner
def _lower_weights(edges: NDArray[np.int32], cover: _Cover) -> int:
    """Lower all weights, set the scores anew and return the sum of weights."""
    total = 0
    for v in range(cover.score.shape[0]):
        cover.score[v] = 0
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        weight = np.int64(cover.weight[e] * _KEPT_WEIGHT)
        cover.weight[e] = weight
        total += weight  # type: ignore[assignment]
        if cover.ends[e] == 0:
            cover.score[u] += weight
            cover.score[v] += weight
        elif cover.ends[e] == 1:
            cover.score[u if cover.position[u] >= 0 else v] -= weight
    return total


@inner
def _shrink(lists: Neighbours, cover: _Cover, best: NDArray[np.bool_]) -> None:
    """Take nodes out of a complete cover until an edge is uncovered; ``best`` becomes the last set before."""
    while cover.sizes[1] == 0 and cover.sizes[0] > 0:
        for v in range(best.shape[0]):
            best[v] = cover.position[v] < 0
        _take_out(_cheapest_member(cover, -1), lists, cover)


@kernel
def search_independent_set(
    edges: NDArray[np.int32], lists: Neighbours, start: NDArray[np.bool_], steps: int, state: NDArray[np.uint64]
) -> tuple[NDArray[np.bool_], int]:
    """Search for a larger independent set than ``start``; return the largest set of the search, and its steps.

    Args:
        edges: ``int32[m, 2]``.
        lists: Their neighbour lists.
        start: An independent set ``bool[n]``, possibly empty.
        steps: Largest number of exchanges.
        state: State of the random generator, advanced.
    """
    n, m = start.shape[0], edges.shape[0]
    cover = _full_cover(n, m)
    for v in range(n):
        if start[v]:
            _take_out(v, lists, cover)
    best = start.copy()
    _shrink(lists, cover, best)
    if cover.sizes[1] == 0:  # no edges
        best[:] = True
        return best, 0
    total, newest = m, -1
    for step in range(1, steps + 1):
        v = _cheapest_member(cover, newest)
        if v < 0:  # an edge and its two ends are all there is
            return best, step
        _take_out(v, lists, cover)
        cover.moved[v] = step
        e = cover.open[below(state, cover.sizes[1])]
        newest = _better_end(edges[e, 0], edges[e, 1], cover)
        _put_in(newest, lists, cover)
        cover.moved[newest] = step
        for i in range(cover.sizes[1]):
            e = cover.open[i]
            cover.weight[e] += 1
            cover.score[edges[e, 0]] += 1
            cover.score[edges[e, 1]] += 1
        total += cover.sizes[1]
        if total > _MEAN_WEIGHT * n * m:
            total = _lower_weights(edges, cover)
        if cover.sizes[1] == 0:
            _shrink(lists, cover, best)
    return best, steps
