"""The alternating tree of one stage of maximum-weight matching: its changes, and the events that cause them.

An event is the number of an arc that leaves an outer node (its edge becomes tight), ``2m + b`` for an inner blossom b
(its dual reaches 0) or, at the end of a stage only, ``2m + v`` for an outer node v (its dual reaches 0).
"""

from __future__ import annotations

from graphbench.core.kernels import inner
from graphbench.domains.algoreas.blossom_forest import (
    ADOPTED,
    END_EVENT,
    END_TIME,
    FREE_SIZE,
    HEAP_SIZE,
    INNER,
    MARK,
    NEVER,
    NOW,
    OUTER,
    OUTSIDE,
    TREE_SIZE,
    Forest,
    Graph,
    dual_now,
    head_of,
    is_odd_place,
    push_event,
    settle,
    slack_now,
    tail_of,
)


@inner
def _schedule(g: Graph, f: Forest, time: int, event: int) -> None:
    """Add an event unless the stage ends first; a full heap is filled anew with the events that still count."""
    if time >= f.scalar[END_TIME]:
        return
    if f.scalar[HEAP_SIZE] == f.heap.shape[0]:
        _refill_heap(g, f)
    push_event(f, time * (2 * g.edges.shape[0] + f.node.shape[0]) + event)


@inner
def _refill_heap(g: Graph, f: Forest) -> None:
    n, arcs = f.num_nodes, 2 * g.edges.shape[0]
    f.scalar[HEAP_SIZE] = 0
    for v in range(n):
        if f.node[f.node[v].top].label == OUTER:
            for i in range(g.start[v], g.start[v + 1]):
                time = tight_time(g, f, g.out[i])
                if time < f.scalar[END_TIME]:
                    push_event(f, time * (arcs + 2 * n) + g.out[i])
    for b in range(n, 2 * n):
        if f.node[b].label == INNER:
            push_event(f, (f.node[b].since + f.node[b].dual // 2) * (arcs + 2 * n) + arcs + b)


@inner
def tight_time(g: Graph, f: Forest, arc: int) -> int:
    """Return when the edge of an arc that leaves an outer node becomes tight, NEVER if its slack does not fall."""
    other = f.node[head_of(g, arc)].top
    if f.node[other].label == INNER or other == f.node[tail_of(g, arc)].top:
        return NEVER
    slack = slack_now(g, f, arc)
    return f.scalar[NOW] + (slack if f.node[other].label == OUTSIDE else slack // 2)


@inner
def scan_outer(g: Graph, f: Forest, b: int) -> None:
    """Schedule the events of the nodes of a blossom that has just become outer."""
    v = f.node[b].first_leaf
    while True:
        _end_at(f, f.scalar[NOW] + dual_now(f, v), 2 * g.edges.shape[0] + v)
        for i in range(g.start[v], g.start[v + 1]):
            arc = int(g.out[i])
            time = tight_time(g, f, arc)
            if time >= f.scalar[END_TIME]:
                continue
            other = f.node[head_of(g, arc)].top
            if f.node[other].label == OUTSIDE and f.node[f.node[other].base].mate_arc < 0:
                _end_at(f, time, arc)
            else:
                _schedule(g, f, time, arc)
        if v == f.node[b].last_leaf:
            return
        v = f.node[v].next_leaf


@inner
def _end_at(f: Forest, time: int, event: int) -> None:
    if time < f.scalar[END_TIME]:
        f.scalar[END_TIME], f.scalar[END_EVENT] = time, event


@inner
def _scan_outside(g: Graph, f: Forest, b: int) -> None:
    """Schedule the edges from outer nodes to the nodes of a blossom that has just left the tree."""
    v = f.node[b].first_leaf
    while True:
        for i in range(g.start[v], g.start[v + 1]):
            arc = int(g.out[i]) ^ 1
            if f.node[f.node[tail_of(g, arc)].top].label == OUTER:
                _schedule(g, f, tight_time(g, f, arc), arc)
        if v == f.node[b].last_leaf:
            return
        v = f.node[v].next_leaf


@inner
def put_label(g: Graph, f: Forest, b: int, label: int, entry: int) -> None:
    """Add outermost blossom b to the tree now; ``entry`` is the arc that reached it, used for inner ones."""
    f.node[b].label, f.node[b].since, f.node[b].entry = label, f.scalar[NOW], entry
    f.tree[f.scalar[TREE_SIZE]] = b
    f.scalar[TREE_SIZE] += 1
    if label == INNER and b >= f.num_nodes:
        _schedule(g, f, f.scalar[NOW] + f.node[b].dual // 2, 2 * g.edges.shape[0] + b)


@inner
def grow(g: Graph, f: Forest, arc: int) -> None:
    """Add the matched blossom an arc enters to the tree, and its mate."""
    below = f.node[head_of(g, arc)].top
    put_label(g, f, below, INNER, arc)
    outer = f.node[head_of(g, f.node[f.node[below].base].mate_arc)].top
    put_label(g, f, outer, OUTER, -1)
    scan_outer(g, f, outer)


@inner
def _above(g: Graph, f: Forest, outer: int) -> int:
    """Return the outer blossom two levels nearer to the root, -1 for the root."""
    arc = f.node[f.node[outer].base].mate_arc
    if arc < 0:
        return -1
    return f.node[tail_of(g, f.node[f.node[head_of(g, arc)].top].entry)].top


@inner
def _nearest_common_ancestor(g: Graph, f: Forest, a: int, b: int) -> int:
    f.scalar[MARK] += 1
    while True:
        if a >= 0:
            if f.node[a].mark == f.scalar[MARK]:
                return a
            f.node[a].mark = f.scalar[MARK]
            a = _above(g, f, a)
        a, b = b, a


@inner
def _join(f: Forest, child: int, following: int, arc: int) -> None:
    f.node[child].next_child, f.node[following].last_child, f.node[child].link = following, child, arc


@inner
def shrink(g: Graph, f: Forest, arc: int) -> None:
    """Make a blossom of the odd cycle that an arc between two outer blossoms closes."""
    left, right = f.node[tail_of(g, arc)].top, f.node[head_of(g, arc)].top
    ancestor = _nearest_common_ancestor(g, f, left, right)
    _join(f, left, right, arc)
    while left != ancestor:
        down = f.node[f.node[left].base].mate_arc ^ 1
        below = f.node[tail_of(g, down)].top
        _join(f, below, left, down)
        left = f.node[tail_of(g, f.node[below].entry)].top
        _join(f, left, below, f.node[below].entry)
    while right != ancestor:
        up = f.node[f.node[right].base].mate_arc
        below = f.node[head_of(g, up)].top
        _join(f, right, below, up)
        right = f.node[tail_of(g, f.node[below].entry)].top
        _join(f, below, right, f.node[below].entry ^ 1)
    f.scalar[FREE_SIZE] -= 1
    b = f.free[f.scalar[FREE_SIZE]]
    f.node[b].dual, f.node[b].mark, f.node[b].parent = 0, 0, -1
    f.node[b].first_child, f.node[b].base = ancestor, f.node[ancestor].base
    _adopt_children(g, f, b)


@inner
def _adopt_children(g: Graph, f: Forest, b: int) -> None:
    """Collect the nodes of the children of a new outer blossom, and scan the inner ones."""
    child = f.node[b].first_child
    f.node[b].first_leaf = f.node[child].first_leaf
    previous = -1
    while True:
        was_inner = f.node[child].label == INNER
        settle(f, child)
        f.node[child].parent = b
        f.node[child].label = ADOPTED if was_inner else OUTSIDE
        if previous >= 0:
            f.node[previous].next_leaf = f.node[child].first_leaf
        previous = f.node[child].last_leaf
        child = f.node[child].next_child
        if child == f.node[b].first_child:
            break
    f.node[b].last_leaf = previous
    _set_top(f, b)
    put_label(g, f, b, OUTER, -1)
    while True:
        if f.node[child].label == ADOPTED:
            f.node[child].label = OUTSIDE
            scan_outer(g, f, child)
        child = f.node[child].next_child
        if child == f.node[b].first_child:
            return


@inner
def _set_top(f: Forest, b: int) -> None:
    v = f.node[b].first_leaf
    while True:
        f.node[v].top = b
        if v == f.node[b].last_leaf:
            return
        v = f.node[v].next_leaf


@inner
def expand(g: Graph, f: Forest, b: int) -> None:
    """Replace an inner blossom of dual 0 by its children.

    The even way round from the child that the tree enters to the child of the base joins the tree; the other children
    leave it.
    """
    settle(f, b)
    first = f.node[b].first_child
    child = first
    while True:
        f.node[child].parent = -1
        _set_top(f, child)
        child = f.node[child].next_child
        if child == first:
            break
    f.free[f.scalar[FREE_SIZE]] = b
    f.scalar[FREE_SIZE] += 1
    child = f.node[head_of(g, f.node[b].entry)].top
    forward = is_odd_place(f, b, child)
    put_label(g, f, child, INNER, f.node[b].entry)
    while child != first:
        outer = f.node[child].next_child if forward else f.node[child].last_child
        child = f.node[outer].next_child if forward else f.node[outer].last_child
        put_label(g, f, outer, OUTER, -1)
        put_label(g, f, child, INNER, f.node[outer].link if forward else f.node[child].link ^ 1)
    while True:
        if f.node[child].label == OUTER:
            scan_outer(g, f, child)
        elif f.node[child].label == OUTSIDE:
            _scan_outside(g, f, child)
        child = f.node[child].next_child
        if child == first:
            return
