"""Computational geometry (Cormen et al., chapter 33)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared, positions, same_length, vector
from graphbench.domains.clrs.recording import Log, record

_INPUTS = "pos:node/scalar, x:node/scalar, y:node/scalar"
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
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
    """Return an instance of ``[S, n]`` and two of its points that the lowest one sees at one angle; -1s if none."""
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
    """Return whether, seen from the corner ``last``, ``point`` replaces ``end`` as the next: it is not left of it."""
    return end == last or (point != last and _turn(xs, ys, last, end, point) <= 0)


@kernel
def find_point_on_edge(xs: Floats, ys: Floats) -> tuple[int, int, int, int]:
    """Return an instance of ``[S, n]`` that Jarvis's march cannot walk around and three points on a line; else -1s."""
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


@algorithm(
    _segments,
    inputs=_INPUTS,
    hints="i:node/mask_one, j:node/mask_one, k:node/mask_one, dir:node/scalar, on_seg:node/mask",
    outputs="intersect:graph/mask",
)
def segments_intersect(
    log: Log, xs: Floats, ys: Floats, i: Ints, j: Ints, k: Ints, dir: Floats, on_seg: Ints, intersect: Ints
) -> None:
    """Whether two segments intersect (section 33.1): on which side of one the ends of the other lie, end by end."""
    record(log)
    for point in range(4):
        i[0], j[0], k[0] = 2 if point < 2 else 0, 3 if point < 2 else 1, point
        # The textbook's DIRECTION(i, j, k), in its order of operations.
        dir[point] = (xs[point] - xs[i[0]]) * (ys[j[0]] - ys[i[0]]) - (xs[j[0]] - xs[i[0]]) * (ys[point] - ys[i[0]])
        within_x = min(xs[i[0]], xs[j[0]]) <= xs[point] <= max(xs[i[0]], xs[j[0]])
        within_y = min(ys[i[0]], ys[j[0]]) <= ys[point] <= max(ys[i[0]], ys[j[0]])
        on_seg[point] = 1 if within_x and within_y else 0
        record(log)
    crosses = True
    for first in (0, 2):
        a, b = dir[first], dir[first + 1]
        crosses = crosses and ((a > 0 and b < 0) or (a < 0 and b > 0))
    touches = False
    for point in range(4):
        touches = touches or (dir[point] == 0 and on_seg[point] == 1)
    intersect[0] = 1 if crosses or touches else 0


@algorithm(
    _points_around_lowest,
    inputs=_INPUTS,
    hints="""best:node/mask_one, atans:node/scalar, in_hull_h:node/mask, stack_prev:node/pointer,
             last_stack:node/mask_one, i:node/mask_one, phase:graph/categorical(5)""",
    outputs="in_hull:node/mask",
)
def graham_scan(
    log: Log,
    xs: Floats,
    ys: Floats,
    best: Ints,
    atans: Floats,
    in_hull_h: Ints,
    stack_prev: Ints,
    last_stack: Ints,
    i: Ints,
    phase: Ints,
    in_hull: Ints,
) -> None:
    """Graham's scan (section 33.3): visit points by angle around the lowest; pop while the way does not turn left.

    Phases: 0 start, 1 lowest point, 2 angles, 3 a point popped, 4 a point pushed.
    """
    n = xs.shape[0]
    for point in range(n):
        stack_prev[point] = point
    record(log)
    lowest = _lowest(xs, ys)
    best[0] = last_stack[0] = i[0] = lowest
    in_hull_h[lowest] = 1
    phase[0] = 1
    record(log)
    for point in range(n):
        if point != lowest:
            atans[point] = np.arctan2(ys[point] - ys[lowest], xs[point] - xs[lowest])
    phase[0] = 2
    record(log)
    for point in np.argsort(atans, kind="mergesort"):
        if point == lowest:
            continue
        i[0] = point
        while last_stack[0] != lowest and _turn(xs, ys, stack_prev[last_stack[0]], last_stack[0], point) <= 0:
            popped = last_stack[0]
            last_stack[0] = stack_prev[popped]
            stack_prev[popped] = popped
            in_hull_h[popped] = 0
            phase[0] = 3
            record(log)
        stack_prev[point] = last_stack[0]
        last_stack[0] = point
        in_hull_h[point] = 1
        phase[0] = 4
        record(log)
    in_hull[:] = in_hull_h


@algorithm(
    _points_in_a_ring,
    inputs=_INPUTS,
    hints="""pred_h:node/pointer, in_hull_h:node/mask, best:node/mask_one, last_point:node/mask_one,
             endpoint:node/mask_one, i:node/mask_one, phase:graph/categorical(2)""",
    outputs="in_hull:node/mask",
)
def jarvis_march(
    log: Log,
    xs: Floats,
    ys: Floats,
    pred_h: Ints,
    in_hull_h: Ints,
    best: Ints,
    last_point: Ints,
    endpoint: Ints,
    i: Ints,
    phase: Ints,
    in_hull: Ints,
) -> None:
    """Jarvis's march (section 33.3): from each point of the hull look at all others for the one furthest right."""
    n = xs.shape[0]
    for point in range(1, n):
        pred_h[point] = point - 1
    record(log)
    best[0] = last_point[0] = _lowest(xs, ys)
    in_hull_h[best[0]] = 1
    phase[0] = 1
    record(log)
    while True:
        for point in range(n):
            i[0] = point
            if _goes_on(xs, ys, last_point[0], endpoint[0], point):
                endpoint[0] = point
            record(log)
        if endpoint[0] == best[0]:
            break
        last_point[0] = endpoint[0]
        in_hull_h[endpoint[0]] = 1
        endpoint[0] = i[0] = 0
        record(log)
    in_hull[:] = in_hull_h
