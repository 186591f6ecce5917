"""The state of one maximum-weight matching: duals, blossoms and the alternating tree that is being grown.

Nodes and blossoms are numbered together: ``0 .. n-1`` are the nodes, ``n .. 2n-1`` the blossoms (odd cycles shrunk
to one node). Stored edge j gives the arcs ``2j`` (edges[j, 0] to edges[j, 1]) and ``2j + 1`` (back), so ``arc ^ 1``
turns an arc round. "Outer" and "inner" are the even and odd levels of the alternating tree.

Duals are integers for doubled weights: an edge of weight w between different outermost blossoms has the slack
``dual[u] + dual[v] - 2 w``, which is never negative. The duals of the tree change with time: the duals of outer nodes
fall and the duals of inner nodes rise by one per unit of time. The stored dual is the dual at the time when its blossom
got its label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

OUTSIDE, OUTER, INNER, ADOPTED = 0, 1, 2, 3
NOW, HEAP_SIZE, TREE_SIZE, END_TIME, END_EVENT, FREE_SIZE, MARK = 0, 1, 2, 3, 4, 5, 6
NEVER = 2**62


class Graph(NamedTuple):
    """A weighted graph of n nodes and m edges."""

    edges: NDArray[np.int32]  # [m, 2]
    weight: NDArray[np.int64]  # [m]
    start: NDArray[np.int64]  # [n + 1] the arcs out of v are out[start[v]:start[v + 1]]
    out: NDArray[np.int32]  # [2m]


NODE = np.dtype(
    [
        ("dual", np.int64),
        ("base", np.int64),  # the node inside that is matched to the outside, or free
        ("mate_arc", np.int64),  # nodes only: the arc to the mate, -1 if free
        ("top", np.int64),  # nodes only: the outermost blossom around
        ("parent", np.int64),  # the blossom this is a child of, -1 if outermost
        ("first_child", np.int64),  # the child that holds the base
        ("next_child", np.int64),  # the following child on the odd cycle of the parent
        ("last_child", np.int64),  # the preceding one
        ("link", np.int64),  # the arc to next_child
        ("first_leaf", np.int64),  # the nodes inside are a stretch of the list linked by next_leaf
        ("last_leaf", np.int64),
        ("next_leaf", np.int64),  # nodes only
        ("label", np.int64),  # of an outermost blossom; ADOPTED while a blossom is being made
        ("since", np.int64),  # time of the label
        ("entry", np.int64),  # the arc by which the tree reached an inner blossom
        ("mark", np.int64),  # for finding the nearest common ancestor
    ]
)
"""The fields of a node or blossom."""


class Forest(NamedTuple):
    """Working memory for n nodes."""

    num_nodes: int
    node: NDArray[np.void]  # NODE [2n]
    tree: NDArray[np.int64]  # [4n] blossoms labelled in this stage
    free: NDArray[np.int64]  # [n] unused blossom numbers
    stack: NDArray[np.int64]  # [2n + 1, 2] pending rotations
    heap: NDArray[np.int64]  # [> 2m + n] events: time * (2m + 2n) + arc, or 2m + inner blossom
    scalar: NDArray[np.int64]  # [7] see the names above


@kernel
def make_forest(num_nodes: int, num_edges: int) -> Forest:
    """Allocate working memory for graphs of ``num_nodes`` nodes and up to ``num_edges`` edges."""
    n = num_nodes
    return Forest(
        n,
        np.empty(2 * n, NODE),
        np.empty(4 * n, np.int64),
        np.empty(n, np.int64),
        np.empty((2 * n + 1, 2), np.int64),
        np.empty(2 * num_edges + 2 * n + 16, np.int64),
        np.empty(7, np.int64),
    )


@inner
def clear_forest(f: Forest) -> None:
    """Make every node an outermost blossom of one node, free and with dual 0."""
    n = f.num_nodes
    for v in range(n):
        f.node[v].mate_arc = -1
        f.node[v].top = v
        f.node[v].next_leaf = -1
        f.free[v] = n + v
    for b in range(2 * n):
        f.node[b].dual = 0
        f.node[b].base = b
        f.node[b].first_leaf = b
        f.node[b].last_leaf = b
        f.node[b].parent = -1
        f.node[b].label = OUTSIDE
        f.node[b].since = 0
        f.node[b].mark = 0
    for i in range(f.scalar.shape[0]):
        f.scalar[i] = 0
    f.scalar[FREE_SIZE] = n


@inner
def tail_of(g: Graph, arc: int) -> int:
    """Return the node an arc leaves."""
    return int(g.edges[arc >> 1, arc & 1])


@inner
def head_of(g: Graph, arc: int) -> int:
    """Return the node an arc enters."""
    return int(g.edges[arc >> 1, 1 - (arc & 1)])


@inner
def dual_now(f: Forest, v: int) -> int:
    """Return the dual of node v at the present time."""
    b = f.node[v].top
    if f.node[b].label == OUTSIDE:
        return f.node[v].dual
    age = f.scalar[NOW] - f.node[b].since
    return f.node[v].dual - age if f.node[b].label == OUTER else f.node[v].dual + age


@inner
def slack_now(g: Graph, f: Forest, arc: int) -> int:
    """Return the slack of an edge between different outermost blossoms."""
    return dual_now(f, tail_of(g, arc)) + dual_now(f, head_of(g, arc)) - 2 * g.weight[arc >> 1]


@inner
def settle(f: Forest, b: int) -> None:
    """Write the present duals of outermost blossom b and its nodes and take its label away."""
    age = f.scalar[NOW] - f.node[b].since
    change = -age if f.node[b].label == OUTER else age
    f.node[b].label = OUTSIDE
    if b >= f.num_nodes:
        f.node[b].dual -= 2 * change
    v = f.node[b].first_leaf
    while True:
        f.node[v].dual += change
        if v == f.node[b].last_leaf:
            return
        v = f.node[v].next_leaf


@inner
def push_event(f: Forest, event: int) -> None:
    """Add an event to the binary heap, which must have room."""
    i = f.scalar[HEAP_SIZE]
    f.scalar[HEAP_SIZE] += 1
    while i > 0:
        above = (i - 1) >> 1
        if f.heap[above] <= event:
            break
        f.heap[i] = f.heap[above]
        i = above
    f.heap[i] = event


@inner
def pop_event(f: Forest) -> int:
    """Remove the earliest event from the heap, which must not be empty, and return it."""
    f.scalar[HEAP_SIZE] -= 1
    size = f.scalar[HEAP_SIZE]
    earliest, moved = f.heap[0], f.heap[size]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= size:
            break
        if below + 1 < size and f.heap[below + 1] < f.heap[below]:
            below += 1
        if f.heap[below] >= moved:
            break
        f.heap[i] = f.heap[below]
        i = below
    f.heap[i] = moved
    return earliest


@inner
def rotate(g: Graph, f: Forest, blossom: int, node: int) -> None:
    """Change the matching inside ``blossom`` so that ``node`` becomes its base.

    The children between the one that holds ``node`` and the one that holds the old base, the even way round the
    cycle, swap partners; each gets a new base in turn.
    """
    n = f.num_nodes
    f.stack[0, 0], f.stack[0, 1] = blossom, node
    pending = 1
    while pending > 0:
        pending -= 1
        b, v = f.stack[pending, 0], f.stack[pending, 1]
        f.node[b].base = v
        if b < n:
            continue
        child = v
        while f.node[child].parent != b:
            child = f.node[child].parent
        f.stack[pending, 0], f.stack[pending, 1] = child, v
        pending += 1
        forward = is_odd_place(f, b, child)
        c = child
        while c != f.node[b].first_child:
            near = f.node[c].next_child if forward else f.node[c].last_child
            far = f.node[near].next_child if forward else f.node[near].last_child
            arc = f.node[near].link if forward else f.node[far].link ^ 1
            p, q = tail_of(g, arc), head_of(g, arc)
            f.node[p].mate_arc, f.node[q].mate_arc = arc, arc ^ 1
            f.stack[pending, 0], f.stack[pending, 1] = near, p
            f.stack[pending + 1, 0], f.stack[pending + 1, 1] = far, q
            pending += 2
            c = far
        f.node[b].first_child = child


@inner
def is_odd_place(f: Forest, blossom: int, child: int) -> bool:
    """Return whether ``child`` is an odd number of steps after the child that holds the base."""
    odd = False
    c = f.node[blossom].first_child
    while c != child:
        c = f.node[c].next_child
        odd = not odd
    return odd
