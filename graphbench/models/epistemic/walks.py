"""The compositions along the shortest walks from a source to a target, found for a batch of graphs at once.

A pair of nodes (u, v) lies on a shortest walk from s to t if d(s, u) + d(u, v) + d(v, t) = d(s, t). The state of a pair
at distance 1 follows from the arcs from u to v. The state of a pair at a larger distance follows from the states of
(u, w) and (w, v) for the nodes w in between. Pairs are therefore computed in the order of their distances, each once;
the number of rounds is the distance from s to t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Walks:
    """The pairs of nodes on the shortest walks of a batch, numbered by distance, and the compositions that give them.

    Attributes:
        arcs: int64 [A], the columns of ``edge_index`` that are steps of a shortest walk.
        arc_pairs: int64 [A], the pair of every such arc.
        left: int64 [T], the pair (u, w) of every composition, by the distance of the composed pair.
        right: int64 [T], the pair (w, v).
        composed: int64 [T], the pair (u, v), counted from the first pair of its distance.
        answers: int64 [B], the pair (source, target) of every graph; -1 where no walk leads to the target.
        pairs: Number of pairs at distance 1, 2, ...
        compositions: Number of compositions that give pairs at distance 1 (none), 2, ...
    """

    arcs: Ints
    arc_pairs: Ints
    left: Ints
    right: Ints
    composed: Ints
    answers: Ints
    pairs: tuple[int, ...]
    compositions: tuple[int, ...]


def shortest_walks(arcs: Ints, ptr: Ints, sources: Ints, targets: Ints, *, ends: bool) -> Walks:
    """Return the compositions along the shortest walks from the source to the target of every graph.

    Args:
        arcs: int64 [2, E], tails and heads, counted through the batch.
        ptr: int64 [B + 1], the first node of every graph.
        sources: int64 [B], the source of every graph, counted through the batch.
        targets: int64 [B], the target of every graph.
        ends: Keep only pairs that begin at the source or end at the target, each extended by one arc at a time, and
            the compositions of the source with the target.
    """
    graphs, most = np.arange(len(ptr) - 1), int(np.diff(ptr).max(initial=1))
    owner = np.searchsorted(ptr, arcs[0], side="right") - 1
    tails, heads = arcs - ptr[owner]
    start, stop = sources - ptr[:-1], targets - ptr[:-1]
    adjacent = np.zeros((len(graphs), most, most), bool)
    adjacent[owner, tails, heads] = True
    depth, left_over = _depths(adjacent, start), _depths(adjacent.transpose(0, 2, 1), stop)
    reached = depth[graphs, stop] > 0
    on_walk = (depth >= 0) & (left_over >= 0) & (depth + left_over == depth[graphs, stop][:, None]) & reached[:, None]
    linked = _linked(adjacent, depth, on_walk)
    distance = depth[:, None, :] - depth[:, :, None]
    kept = linked & ((distance == 1) | (not ends))
    kept[graphs, start] |= linked[graphs, start]
    kept[graphs, :, stop] |= linked[graphs, :, stop]
    graph, u, w, v = _triples(kept, distance, start, stop, ends=ends)
    number, pairs = _numbered(kept, distance)
    triple_distance = distance[graph, u, v]
    order = np.argsort(triple_distance, kind="stable")
    graph, u, w, v = graph[order], u[order], w[order], v[order]
    first = np.concatenate([[0], np.cumsum(pairs)])
    steps = np.flatnonzero(kept[owner, tails, heads])
    return Walks(
        steps,
        number[owner[steps], tails[steps], heads[steps]],
        number[graph, u, w],
        number[graph, w, v],
        number[graph, u, v] - first[triple_distance[order] - 1],
        np.where(reached, number[graphs, start, stop], -1),
        tuple(pairs.tolist()),
        tuple(np.bincount(triple_distance, minlength=len(pairs) + 1)[1:].tolist()),
    )


def _depths(adjacent: NDArray[np.bool_], start: Ints) -> Ints:
    """Return the distance int64 [B, n] of every node from the start of its graph; -1 where no walk leads."""
    graphs, most, _ = adjacent.shape
    depth = np.full((graphs, most), -1, np.int64)
    front = np.zeros((graphs, 1, most), np.float32)
    front[np.arange(graphs), 0, start] = 1.0
    steps = adjacent.astype(np.float32)
    for distance in range(most):
        new = (front[:, 0] > 0) & (depth < 0)
        if not new.any():
            break
        depth[new] = distance
        front = new[:, None].astype(np.float32) @ steps
    return depth


def _linked(adjacent: NDArray[np.bool_], depth: Ints, on_walk: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pairs bool [B, n, n] that lie on a shortest walk: each step on the way leads one deeper."""
    deeper = depth[:, None, :] == depth[:, :, None] + 1
    steps = (adjacent & deeper & on_walk[:, :, None] & on_walk[:, None, :]).astype(np.float32)
    linked: NDArray[np.bool_] = steps > 0
    front = steps
    while front.any():
        front = ((front @ steps) > 0).astype(np.float32)
        linked |= front > 0
    return linked


def _triples(
    kept: NDArray[np.bool_], distance: Ints, start: Ints, stop: Ints, *, ends: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the graph and the nodes u, w, v of every composition, each int64 [T]."""
    graph, u, w, v = np.nonzero(kept[:, :, :, None] & kept[:, None, :, :])
    used = kept[graph, u, v]
    if ends:
        first, last = u == start[graph], v == stop[graph]
        forward, backward = first & (distance[graph, w, v] == 1), last & (distance[graph, u, w] == 1)
        used &= (first & last) | (forward & ~last) | (backward & ~first)
    return graph[used], u[used], w[used], v[used]


def _numbered(kept: NDArray[np.bool_], distance: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the kept pairs, int64 [B, n, n], in the order of their distances, and how many each has."""
    graph, u, v = np.nonzero(kept)
    far = distance[graph, u, v]
    order = np.argsort(far, kind="stable")
    number = np.full(kept.shape, -1, np.int64)
    number[graph[order], u[order], v[order]] = np.arange(len(order))
    return number, np.bincount(far, minlength=2)[1:]
