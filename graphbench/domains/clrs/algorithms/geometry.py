"""Computational geometry (Cormen et al., chapter 33)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared, positions, same_length, vector
from graphbench.domains.clrs.recording import Ints, Log, NodeMask, NodeMaskOne, NodePointer, NodeScalar, record

_INPUTS = "pos:node/scalar, x:node/scalar, y:node/scalar"
Floats = NDArray[np.float64]
FARTHEST = 1e150  # products of two coordinates stay finite


def _points(xs: Instances, ys: Instances, least: int = 3) -> Prepared:
    """Prepare points of the plane, at least three."""
    x, y = vector("xs", xs, least), vector("ys", ys, least)
    same_length("xs", x, "ys", y)
    for name, values in (("xs", x), ("ys", y)):
        far = np.argwhere(np.abs(values) > FARTHEST)
        if len(far):
            i, point = far[0]
            raise ArgumentError(
                f"{name}[{point}] is {values[i, point]}; give coordinates from {-FARTHEST} to {FARTHEST}"
            )
    return Prepared((x, y), {"pos": positions(*x.shape), "x": x, "y": y})


def _segments(xs: Instances, ys: Instances) -> Prepared:
    """Prepare two segments: four points, the ends of the first and of the second."""
    prepared = _points(xs, ys, 4)
    ends = prepared.arguments[0].shape[1]
    if ends != 4:
        raise ArgumentError(f"two segments have 4 ends, got {ends}; give 4 coordinates each")
    return prepared


def _points_around_lowest(xs: Instances, ys: Instances) -> Prepared:
    """Prepare points, no two of them in the same direction from the lowest point."""
    points = _points(xs, ys)
    i, a, b = find_same_direction(*points.arguments)
    if i >= 0:
        raise ArgumentError(
            f"seen from the lowest point, points {_places(points, i, a, b)} are in the same direction, so they have no "
            "order by angle; give points of which no three are on a line"
        )
    return points


def _points_in_a_ring(xs: Instances, ys: Instances) -> Prepared:
    """Prepare points, no three of them on one edge of the hull, so that Jarvis's march ends."""
    prepared = _points(xs, ys)
    i, a, b, c = find_point_on_edge(*prepared.arguments)
    if i >= 0:
        raise ArgumentError(
            f"points {_places(prepared, i, a, b, c)} are on a line at the edge of the hull, up to rounding, so the "
            "march may never end; give points of which no three are on a line"
        )
    return prepared


def _places(prepared: Prepared, i: int, *points: int) -> str:
    """Return points of instance ``i`` as words: ``0 at (0.5, 1.0) and 3 at (1.0, 2.0)``."""
    x, y = prepared.arguments
    return " and ".join(f"{point} at ({x[i, point]}, {y[i, point]})" for point in points)


@inner
def _turn(xs: Floats, ys: Floats, a: int, b: int, c: int) -> float:
    """Return the cross product of a -> b and a -> c: positive where the way over b to c turns left."""
    return (xs[b] - xs[a]) * (ys[c] - ys[a]) - (ys[b] - ys[a]) * (xs[c] - xs[a])


@inner
def _lowest(xs: Floats, ys: Floats) -> int:
    """Return the lowest point, the leftmost of several."""
    best = 0
    for point in range(1, xs.shape[0]):
        if ys[point] < ys[best] or (ys[point] == ys[best] and xs[point] < xs[best]):
            best = point
    return best


@kernel
def find_same_direction(xs: Floats, ys: Floats) -> tuple[int, int, int]:
    """Return an instance of ``[S, n]`` and two points at equal angles from its lowest point; -1s if there are none."""
    for i in range(xs.shape[0]):
        x, y = xs[i], ys[i]
        lowest = _lowest(x, y)
        before = -1
        for point in np.argsort(np.arctan2(y - y[lowest], x - x[lowest]), kind="mergesort"):
            if point == lowest:
                continue
            if before >= 0 and _turn(x, y, lowest, before, point) <= 0:
                return i, before, point
            before = point
    return -1, -1, -1


@inner
def _goes_on(xs: Floats, ys: Floats, last: int, end: int, point: int) -> bool:
    """Return whether ``point`` replaces ``end`` as the next corner: seen from ``last``, it is not left of ``end``."""
    return end == last or (point != last and _turn(xs, ys, last, end, point) <= 0)


@kernel
def find_point_on_edge(xs: Floats, ys: Floats) -> tuple[int, int, int, int]:
    """Return an instance of ``[S, n]`` for which Jarvis's march may never end, and three points on a line; else -1s."""
    n = xs.shape[1]
    for i in range(xs.shape[0]):
        x, y = xs[i], ys[i]
        start = _lowest(x, y)
        before, last = start, start
        for _ in range(n):
            end = 0
            for point in range(n):
                if _goes_on(x, y, last, end, point):
                    end = point
            for point in range(n):
                if point not in (last, end) and _turn(x, y, last, end, point) == 0:
                    return i, last, end, point
            before, last = last, end
            if last == start:
                break
        if last != start:  # rounding makes the march go to and fro
            return i, start, before, last
    return -1, -1, -1, -1


class SegmentsIntersectHints(NamedTuple):
    """The hints of ``segments_intersect``."""

    i: NodeMaskOne
    j: NodeMaskOne
    k: NodeMaskOne
    dir: NodeScalar
    on_seg: NodeMask


@algorithm(_segments, inputs=_INPUTS, hints=SegmentsIntersectHints, outputs="intersect:graph/mask")
def segments_intersect(log: Log, xs: Floats, ys: Floats, hints: SegmentsIntersectHints, intersect: Ints) -> None:
    """Whether two segments intersect (section 33.1): on which side of one the ends of the other lie, end by end."""
    record(log)
    for point in range(4):
        i, j = (2, 3) if point < 2 else (0, 1)
        hints.i[0], hints.j[0], hints.k[0] = i, j, point
        # The textbook's DIRECTION(i, j, k), in its order of operations.
        hints.dir[point] = (xs[point] - xs[i]) * (ys[j] - ys[i]) - (xs[j] - xs[i]) * (ys[point] - ys[i])
        within_x = min(xs[i], xs[j]) <= xs[point] <= max(xs[i], xs[j])
        within_y = min(ys[i], ys[j]) <= ys[point] <= max(ys[i], ys[j])
        hints.on_seg[point] = 1 if within_x and within_y else 0
        record(log)
    crosses = True
    for first in (0, 2):
        a, b = hints.dir[first], hints.dir[first + 1]
        crosses = crosses and ((a > 0 and b < 0) or (a < 0 and b > 0))
    touches = False
    for point in range(4):
        touches = touches or (hints.dir[point] == 0 and hints.on_seg[point] == 1)
    intersect[0] = 1 if crosses or touches else 0


class GrahamScanHints(NamedTuple):
    """The hints of ``graham_scan``."""

    best: NodeMaskOne
    atans: NodeScalar
    in_hull_h: NodeMask
    stack_prev: NodePointer
    last_stack: NodeMaskOne
    i: NodeMaskOne
    phase: Annotated[Ints, "graph/categorical(5)"]


@algorithm(_points_around_lowest, inputs=_INPUTS, hints=GrahamScanHints, outputs="in_hull:node/mask")
def graham_scan(log: Log, xs: Floats, ys: Floats, hints: GrahamScanHints, in_hull: Ints) -> None:
    """Graham's scan (section 33.3): visit points by angle around the lowest; pop while the way does not turn left.

    Phases: 0 start, 1 lowest point, 2 angles, 3 a point popped, 4 a point pushed.
    """
    n = xs.shape[0]
    for point in range(n):
        hints.stack_prev[point] = point
    record(log)
    lowest = _lowest(xs, ys)
    hints.best[0] = hints.last_stack[0] = hints.i[0] = lowest
    hints.in_hull_h[lowest] = 1
    hints.phase[0] = 1
    record(log)
    for point in range(n):
        if point != lowest:
            hints.atans[point] = np.arctan2(ys[point] - ys[lowest], xs[point] - xs[lowest])
    hints.phase[0] = 2
    record(log)
    for point in np.argsort(hints.atans, kind="mergesort"):
        if point == lowest:
            continue
        hints.i[0] = point
        top = hints.last_stack[0]
        while top != lowest and _turn(xs, ys, hints.stack_prev[top], top, point) <= 0:
            popped, top = top, hints.stack_prev[top]
            hints.last_stack[0] = top
            hints.stack_prev[popped] = popped
            hints.in_hull_h[popped] = 0
            hints.phase[0] = 3
            record(log)
        hints.stack_prev[point] = top
        hints.last_stack[0] = point
        hints.in_hull_h[point] = 1
        hints.phase[0] = 4
        record(log)
    in_hull[:] = hints.in_hull_h


class JarvisMarchHints(NamedTuple):
    """The hints of ``jarvis_march``."""

    pred_h: NodePointer
    in_hull_h: NodeMask
    best: NodeMaskOne
    last_point: NodeMaskOne
    endpoint: NodeMaskOne
    i: NodeMaskOne
    phase: Annotated[Ints, "graph/categorical(2)"]


@algorithm(_points_in_a_ring, inputs=_INPUTS, hints=JarvisMarchHints, outputs="in_hull:node/mask")
def jarvis_march(log: Log, xs: Floats, ys: Floats, hints: JarvisMarchHints, in_hull: Ints) -> None:
    """Jarvis's march (section 33.3): from each point of the hull look at all others for the one furthest right."""
    n = xs.shape[0]
    for point in range(1, n):
        hints.pred_h[point] = point - 1
    record(log)
    hints.best[0] = hints.last_point[0] = _lowest(xs, ys)
    hints.in_hull_h[hints.best[0]] = 1
    hints.phase[0] = 1
    record(log)
    while True:
        for point in range(n):
            hints.i[0] = point
            if _goes_on(xs, ys, hints.last_point[0], hints.endpoint[0], point):
                hints.endpoint[0] = point
            record(log)
        if hints.endpoint[0] == hints.best[0]:
            break
        hints.last_point[0] = hints.endpoint[0]
        hints.in_hull_h[hints.endpoint[0]] = 1
        hints.endpoint[0] = hints.i[0] = 0
        record(log)
    in_hull[:] = hints.in_hull_h
