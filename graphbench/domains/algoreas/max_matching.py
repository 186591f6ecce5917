"""Maximum-weight matching in general graphs, exact, by the primal-dual method of Edmonds (1965) and Galil (1986).

The method keeps duals: one per node, and one per blossom, an odd set of nodes that holds as many matched edges as it
can. It keeps two of the three optimality conditions (no negative slack; matched edges and blossom cycles have slack 0)
and reaches the third (free nodes have dual 0) in stages. A stage grows one alternating tree from a free node of
positive dual. Time in a stage is the amount by which the duals of the tree have moved; the next event is

- an edge from an outer node to a node outside the tree becomes tight: the tree grows by two blossoms;
- an edge between two outer blossoms becomes tight: they close an odd cycle, which is shrunk to a blossom;
- the dual of an inner blossom reaches 0: it is replaced by its children;
- an edge from an outer node to a free node becomes tight, or the dual of an outer node reaches 0: the path from there
  to the root swaps matched and unmatched edges, and the stage ends.

Events are kept in one heap. Times of events do not change while the labels of their ends stay, so an event is checked
when it is due and dropped if it is out of date. All numbers are integers: nothing is rounded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import neighbour_lists
from graphbench.core.rng import seed
from graphbench.domains.algoreas.blossom_forest import (
    END_EVENT,
    END_TIME,
    HEAP_SIZE,
    INNER,
    NEVER,
    NOW,
    OUTER,
    OUTSIDE,
    TREE_SIZE,
    Forest,
    Graph,
    clear_forest,
    head_of,
    make_forest,
    pop_event,
    rotate,
    settle,
    tail_of,
)
from graphbench.domains.algoreas.blossom_tree import expand, grow, put_label, scan_outer, shrink, tight_time
from graphbench.domains.algoreas.weights import distinct_integers, grid_step

WEIGHT_SCALE = 5.0
"""Weights are uniform in (0, WEIGHT_SCALE)."""


@inner
def _augment_to_root(g: Graph, f: Forest, node: int, arc: int) -> None:
    """Give outer ``node`` the new matched ``arc`` (-1: make it free) and swap the path from it to the root."""
    while True:
        outer = f.node[node].top
        old = f.node[f.node[outer].base].mate_arc
        rotate(g, f, outer, node)
        f.node[node].mate_arc = arc
        if old < 0:
            return
        below = f.node[head_of(g, old)].top
        arc = f.node[below].entry
        q = head_of(g, arc)
        rotate(g, f, below, q)
        f.node[q].mate_arc = arc ^ 1
        node = tail_of(g, arc)


@inner
def _finish_stage(g: Graph, f: Forest) -> None:
    """Improve the matching by the event that ends the stage and dissolve the tree."""
    f.scalar[NOW] = f.scalar[END_TIME]
    event, arcs = f.scalar[END_EVENT], 2 * g.edges.shape[0]
    if event < arcs:
        other = head_of(g, event)
        rotate(g, f, f.node[other].top, other)
        f.node[other].mate_arc = event ^ 1
        _augment_to_root(g, f, tail_of(g, event), event)
    else:
        _augment_to_root(g, f, event - arcs, -1)
    for i in range(f.scalar[TREE_SIZE]):
        if f.node[f.tree[i]].label != OUTSIDE:
            settle(f, f.tree[i])


@inner
def _run_stage(g: Graph, f: Forest, root: int) -> None:
    n, arcs = f.num_nodes, 2 * g.edges.shape[0]
    f.scalar[NOW] = f.scalar[HEAP_SIZE] = f.scalar[TREE_SIZE] = 0
    f.scalar[END_TIME] = NEVER
    put_label(g, f, f.node[root].top, OUTER, -1)
    scan_outer(g, f, f.node[root].top)
    while f.scalar[HEAP_SIZE] > 0:
        time, event = divmod(pop_event(f), arcs + 2 * n)
        if time >= f.scalar[END_TIME]:
            break
        f.scalar[NOW] = time
        if event >= arcs:
            b = event - arcs
            if f.node[b].label == INNER:
                expand(g, f, b)
        elif tight_time(g, f, event) == time:
            if f.node[f.node[head_of(g, event)].top].label == OUTER:
                shrink(g, f, event)
            else:
                grow(g, f, event)
    _finish_stage(g, f)


@inner
def _start_greedily(g: Graph, f: Forest) -> None:
    """Set duals without negative slack, lower them node by node, and match along tight edges."""
    n = f.num_nodes
    for v in range(n):
        for i in range(g.start[v], g.start[v + 1]):
            f.node[v].dual = max(f.node[v].dual, g.weight[g.out[i] >> 1])
    for v in range(n):
        if f.node[v].mate_arc >= 0:
            continue
        least, tight = 0, -1
        for i in range(g.start[v], g.start[v + 1]):
            arc = int(g.out[i])
            u = head_of(g, arc)
            bound = 2 * g.weight[arc >> 1] - f.node[u].dual
            if bound > least or (bound == least and tight < 0):
                least, tight = bound, -1
            if bound == least and f.node[u].mate_arc < 0:
                tight = arc
        f.node[v].dual = least
        if tight >= 0:
            f.node[v].mate_arc, f.node[head_of(g, tight)].mate_arc = tight, tight ^ 1


@kernel
def solve_matching(g: Graph, f: Forest) -> None:
    """Leave a maximum-weight matching in ``f.mate_arc`` and the duals that prove it in ``f``."""
    clear_forest(f)
    _start_greedily(g, f)
    for v in range(f.num_nodes):
        if f.node[v].mate_arc < 0 and f.node[v].dual > 0:
            _run_stage(g, f, v)


@kernel
def maximum_weight_matching(num_nodes: int, edges: NDArray[np.int32], weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the mate of every node in a matching of maximum total weight.

    Edges of weight 0 or less are never needed. If several matchings have the maximum weight, the one returned depends
    on the order of nodes and edges.

    Args:
        num_nodes: Number of nodes n >= 1.
        edges: ``int32[m, 2]``, every edge once, no loops.
        weight: ``int64[m]``, absolute values below 2**36.

    Returns:
        ``int64[n]``, -1 for a free node.
    """
    start, _, out = neighbour_lists(num_nodes, edges)
    g = Graph(edges, weight, start, out)
    f = make_forest(num_nodes, edges.shape[0])
    solve_matching(g, f)
    mate = np.empty(num_nodes, np.int64)
    for v in range(num_nodes):
        mate[v] = head_of(g, f.node[v].mate_arc) if f.node[v].mate_arc >= 0 else -1
    return mate


@kernel
def label_shard(
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
    num_nodes: int,
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.int32],
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Draw weights for the graphs of a shard and mark the edges of a maximum-weight matching.

    Weights are different multiples of 2**-21, about 5e-7, in (0, 5); float32 holds them exactly, and the matching is
    exact for them. With so fine a grid hardly any graph has two optimal matchings.

    Args:
        key: Key of the split.
        indices: Positions of the samples in the split, ``int64[S]``.
        attempts: Redraw counts of the samples, ``int64[S]``.
        num_nodes: Number of nodes n of every graph.
        edge_ptr: The edges of sample s are ``edges[edge_ptr[s]:edge_ptr[s + 1]]``, ``int64[S + 1]``.
        edges: ``int32[E, 2]``.

    Returns:
        Weights ``float32[E]`` and the labels ``uint8[E]``, 1 for a matched edge.
    """
    step = grid_step(WEIGHT_SCALE)
    bound = int(WEIGHT_SCALE / step)
    weight = np.empty(edges.shape[0], np.float32)
    matched = np.zeros(edges.shape[0], np.uint8)
    largest = 0
    for s in range(indices.shape[0]):
        largest = max(largest, edge_ptr[s + 1] - edge_ptr[s])
    f = make_forest(num_nodes, largest)
    for s in range(indices.shape[0]):
        first, last = edge_ptr[s], edge_ptr[s + 1]
        state = seed(key, indices[s], attempts[s], 1)
        integers = distinct_integers(state, last - first, bound)
        start, _, out = neighbour_lists(num_nodes, edges[first:last])
        g = Graph(edges[first:last], integers, start, out)
        solve_matching(g, f)
        for e in range(last - first):
            weight[first + e] = np.float32(integers[e] * step)
        for v in range(num_nodes):
            if f.node[v].mate_arc >= 0:
                matched[first + (f.node[v].mate_arc >> 1)] = 1
    return weight, matched
