from fractions import Fraction
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.tracing import run_all

HULLS = ["graham_scan", "jarvis_march"]
START, LOWEST, ANGLES, POPPED, PUSHED = range(5)
many = settings(max_examples=100, deadline=None)

grid = st.integers(0, 6).map(lambda k: k / 4)  # cross products are exact, and three are often on a line
numbers = st.floats(-4, 4).map(lambda x: round(x, 6))


def lists_of(coordinate, least, most):
    pairs = st.lists(st.tuples(coordinate, coordinate), min_size=least, max_size=most)
    return pairs.map(lambda found: tuple(np.array(found).T.copy()))


def points_of(args):
    return list(zip(*(axis.tolist() for axis in args), strict=True))


def cross(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def turn(a, b, c):
    """1 where the way from a over b to c turns left, -1 right, 0 on a line; exact."""
    area = cross(a, b, c)
    if abs(area) < 1e-12:  # coordinates are below 10, so above this rounding does not change the sign
        area = cross(*([Fraction(x) for x in point] for point in (a, b, c)))
    return (area > 0) - (area < 0)


# Segments


def contains(a, b, p):
    """Whether a point is on a segment, ends included."""
    between = all(min(a[axis], b[axis]) <= p[axis] <= max(a[axis], b[axis]) for axis in range(2))
    return between and turn(a, b, p) == 0


def share_a_point(a, b, c, d):
    """Whether an end is on the other segment, or each separates the other's ends."""
    touches = contains(a, b, c) or contains(a, b, d) or contains(c, d, a) or contains(c, d, b)
    return touches or (turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0)


@settings(max_examples=300, deadline=None)
@given(lists_of(grid, 4, 4))
def test_segments_on_a_grid_intersect_where_they_share_a_point(ends):
    assert trace("segments_intersect", *ends).outputs["intersect"] == share_a_point(*points_of(ends))


@many
@given(lists_of(st.floats(-1, 1), 4, 4))
def test_segments_anywhere_intersect_where_they_share_a_point(ends):
    points = points_of(ends)
    assume(min(abs(cross(*three)) for three in combinations(points, 3)) > 1e-12)  # rounding does not change a sign
    assert trace("segments_intersect", *ends).outputs["intersect"] == share_a_point(*points)


@many
@given(lists_of(grid, 4, 4), st.permutations([[0, 1], [2, 3]]), st.booleans())
def test_order_of_segments_and_ends_does_not_matter(ends, segments, turned):
    order = [*(segments[0][::-1] if turned else segments[0]), *segments[1]]
    swapped = trace("segments_intersect", *(axis[order] for axis in ends)).outputs["intersect"]
    assert swapped == trace("segments_intersect", *ends).outputs["intersect"]


@many
@given(lists_of(grid, 4, 4))
def test_steps_take_up_end_by_end(ends):
    points = points_of(ends)
    found = trace("segments_intersect", *ends)
    hints = found.hints
    assert len(hints["dir"]) == 5
    of_other = [(2, 3), (2, 3), (0, 1), (0, 1)]
    for step in range(5):
        i, j, k = (int(hints[name][step].argmax()) for name in "ijk")
        assert (i, j, k) == ((*of_other[step - 1], step - 1) if step else (0, 0, 0))
        assert not hints["dir"][step, step:].any() and not hints["on_seg"][step, step:].any()
    for point, (i, j) in enumerate(of_other):
        a, b, p = points[i], points[j], points[point]
        assert hints["dir"][-1, point] == cross(a, p, b)  # the textbook's sign: positive on the right of a -> b
        in_box = all(min(a[axis], b[axis]) <= p[axis] <= max(a[axis], b[axis]) for axis in range(2))
        assert hints["on_seg"][-1, point] == in_box
    for step in range(1, 5):
        np.testing.assert_array_equal(hints["dir"][step, :step], hints["dir"][-1, :step])
        np.testing.assert_array_equal(hints["on_seg"][step, :step], hints["on_seg"][-1, :step])


@pytest.mark.parametrize(
    ("xs", "ys", "intersect"),
    [
        ([0, 2, 0, 2], [0, 2, 2, 0], 1),  # a cross
        ([0, 2, 1, 1], [0, 0, 0, 2], 1),  # a T
        ([0, 2, 2, 4], [0, 0, 0, 2], 1),  # end to end
        ([0, 2, 1, 3], [0, 0, 0, 0], 1),  # they overlap
        ([0, 1, 2, 3], [0, 0, 0, 0], 0),  # one after the other on a line
        ([0, 2, 0, 2], [0, 0, 1, 1], 0),  # parallel
        ([0, 2, 0, 2], [1, 3, 1, 3], 1),  # the same
        ([1, 1, 0, 2], [1, 1, 0, 2], 1),  # a point on a segment
        ([3, 3, 0, 2], [3, 3, 0, 2], 0),  # a point on its line
        ([1, 1, 1, 1], [1, 1, 1, 1], 1),  # a point twice
        ([1, 1, 1, 1], [1, 1, 2, 2], 0),  # two points
    ],
)
def test_corner_cases_of_segments(xs, ys, intersect):
    assert trace("segments_intersect", xs, ys).outputs["intersect"] == intersect


# Hulls


def corners(points):
    """The points that are in no triangle of others, and on no segment between others; exact, from the definition."""
    return {
        p
        for p in range(len(points))
        if not any(in_triangle(points, p, three) for three in combinations(set(range(len(points))) - {p}, 3))
        and not any(
            contains(points[a], points[b], points[p]) for a, b in combinations(set(range(len(points))) - {p}, 2)
        )
    }


def in_triangle(points, p, three):
    a, b, c = (points[k] for k in three)
    return turn(a, b, c) != 0 and len({turn(a, b, points[p]), turn(b, c, points[p]), turn(c, a, points[p])} - {0}) == 1


def lowest(points):
    return min(range(len(points)), key=lambda p: (points[p][1], points[p][0]))


def has_order_by_angle(points):
    """Whether the lowest point sees no two in one direction and is no two itself."""
    first = lowest(points)
    return all(turn(points[first], points[a], points[b]) for a, b in combinations(set(range(len(points))) - {first}, 2))


def has_plain_edges(points):
    """Whether no edge of the hull has three points: no line through three has all others on one side."""
    return (
        not any(
            turn(points[a], points[b], points[c]) == 0
            and len({turn(points[a], points[b], point) for point in points} - {0}) <= 1
            for a, b, c in permutations(range(len(points)), 3)
            if points[a] != points[b]
        )
        and len(set(points)) > 1
    )


FITTING = {"graham_scan": has_order_by_angle, "jarvis_march": has_plain_edges}


@pytest.mark.parametrize("algorithm", HULLS)
@settings(max_examples=300, deadline=None)
@given(args=lists_of(grid, 3, 7))
def test_hull_on_a_grid_is_right_or_refused(algorithm, args):
    points = points_of(args)
    if FITTING[algorithm](points):
        in_hull = trace(algorithm, *args).outputs["in_hull"]
        assert set(np.flatnonzero(in_hull).tolist()) == corners(points)
    else:
        with pytest.raises(ArgumentError, match="no three are on a line"):
            trace(algorithm, *args)


def in_general_position(args):
    points = points_of(args)
    return min(abs(cross(*three)) for three in combinations(points, 3)) > 1e-7


general = lists_of(numbers, 3, 12).filter(in_general_position)


def hull(args):
    """The corners, counterclockwise from the lowest."""
    order = ConvexHull(np.array(args).T).vertices.tolist()
    first = order.index(lowest(points_of(args)))
    return order[first:] + order[:first]


@pytest.mark.parametrize("algorithm", HULLS)
@many
@given(args=general)
def test_hull_is_that_of_scipy(algorithm, args):
    found = trace(algorithm, *args)
    assert np.flatnonzero(found.outputs["in_hull"]).tolist() == sorted(hull(args))
    np.testing.assert_array_equal(found.hints["in_hull_h"][-1], found.outputs["in_hull"])


@many
@given(general)
def test_order_of_points_does_not_matter(args):
    order = np.random.default_rng(len(args[0])).permutation(len(args[0]))
    for algorithm in HULLS:
        in_hull = trace(algorithm, *args).outputs["in_hull"]
        moved = trace(algorithm, *(axis[order] for axis in args)).outputs["in_hull"]
        np.testing.assert_array_equal(moved, in_hull[order])


def stack_of(stack_prev, last):
    stack = [last]
    while stack_prev[stack[-1]] != stack[-1]:
        stack.append(int(stack_prev[stack[-1]]))
    return stack[::-1]


@many
@given(general)
def test_every_step_of_the_scan(args):
    """A scan of our own, with exact turns and the order of exact angles."""
    points = points_of(args)
    first, n = lowest(points), len(points)
    left_of = {p: sum(turn(points[first], points[q], points[p]) > 0 for q in range(n)) for p in range(n) if p != first}
    stack, expected = [first], [(START, 0, []), (LOWEST, first, [first]), (ANGLES, first, [first])]
    for point in sorted(left_of, key=left_of.__getitem__):
        while len(stack) > 1 and turn(points[stack[-2]], points[stack[-1]], points[point]) < 0:
            stack = stack[:-1]
            expected.append((POPPED, point, stack))
        stack = [*stack, point]
        expected.append((PUSHED, point, stack))
    hints = trace("graham_scan", *args).hints
    assert list(zip(hints["phase"].argmax(-1), hints["i"].argmax(-1), strict=True)) == [e[:2] for e in expected]
    for step, (_, _, stack) in enumerate(expected):
        assert np.flatnonzero(hints["in_hull_h"][step]).tolist() == sorted(stack)
        pred, last = hints["stack_prev"][step], int(hints["last_stack"][step].argmax())
        assert all(pred[p] == p for p in set(range(n)) - set(stack))
        assert last == (stack or [0])[-1] and stack_of(pred, last) == (stack or [0])
        assert hints["best"][step].argmax() == (first if step else 0)
    assert stack == hull(args)


@many
@given(general)
def test_angles_are_those_around_the_lowest(args):
    xs, ys = args
    atans = trace("graham_scan", *args).hints["atans"]
    assert not atans[:2].any()
    first = lowest(points_of(args))
    expected = np.angle((xs - xs[first]) + 1j * (ys - ys[first]))
    assert atans[-1, first] == 0 and (atans[-1] >= 0).all()
    np.testing.assert_allclose(atans[2:], np.tile(expected, (len(atans) - 2, 1)), rtol=1e-12)


@many
@given(general)
def test_every_step_of_the_march(args):
    points = points_of(args)
    ring, n = hull(args), len(points)
    hints = trace("jarvis_march", *args).hints
    shown = [hints[name].argmax(-1).tolist() for name in ("phase", "best", "last_point", "endpoint", "i")]
    expected = [(0, 0, 0, 0, 0), (1, ring[0], ring[0], 0, 0)]
    known = [[], ring[:1]]
    for count, (last, corner) in enumerate(pairwise([*ring, ring[0]]), 1):
        end = 0
        for point in range(n):
            if point != last and (end == last or turn(points[last], points[end], points[point]) < 0):
                end = point
            expected.append((1, ring[0], last, end, point))
            known.append(ring[:count])
        assert end == corner
        if count < len(ring):
            expected.append((1, ring[0], corner, 0, 0))
            known.append(ring[: count + 1])
    assert list(zip(*shown, strict=True)) == expected
    assert [np.flatnonzero(mask).tolist() for mask in hints["in_hull_h"]] == [sorted(corners_) for corners_ in known]
    assert (hints["pred_h"] == [0, *range(n - 1)]).all()


@pytest.mark.parametrize("algorithm", HULLS)
def test_lowest_of_several_is_the_leftmost(algorithm):
    found = trace(algorithm, [2.0, 1.0, 0.0, 3.0], [0.0, 3.0, 0.0, 2.0])
    assert found.hints["best"][-1].tolist() == [0, 0, 1, 0]
    assert found.outputs["in_hull"].all()


@pytest.mark.parametrize("algorithm", HULLS)
def test_hundreds_of_points(algorithm):
    args = np.random.default_rng(5).normal(size=(2, 256))
    in_hull = trace(algorithm, *args).outputs["in_hull"]
    assert np.flatnonzero(in_hull).tolist() == sorted(hull(args))
    angles = np.random.default_rng(6).permutation(100) * 2 * np.pi / 100 + 0.01
    assert trace(algorithm, np.cos(angles), np.sin(angles)).outputs["in_hull"].all()


# What is refused


@pytest.mark.parametrize("algorithm", [*HULLS, "segments_intersect"])
@pytest.mark.parametrize(
    ("xs", "ys", "message"),
    [
        ([0, 1], [0, 1], r"xs has the shape \(2,\).*[34]"),
        (0, 1, r"xs has the shape \(\)"),
        ([0, 1, 2, 3], [[0, 1, 0, 3]], r"ys has the shape \(1, 4\); give a list"),
        ([0, 1, 2, 3], [0, 1, 0, 2, 1], "xs has 4 entries and ys has 5"),
        ([0, np.nan, 2, 3], [0, 1, 0, 2], r"xs\[1\] is nan; give finite numbers"),
        ([0, 1, 2, 3], [0, 1, -np.inf, 2], r"ys\[2\] is -inf; give finite numbers"),
        ([0, 1, 2, -1e151], [0, 1, 0, 2], r"xs\[3\] is -1e\+151.*-1e\+150 to 1e\+150"),
        (["a", "b", "c", "d"], [0, 1, 0, 2], "xs is not an array of numbers"),
    ],
)
def test_what_are_no_points_is_refused(algorithm, xs, ys, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, xs, ys)


@pytest.mark.parametrize("ends", [3, 5, 8])
def test_other_than_two_segments_are_refused(ends):
    with pytest.raises(ArgumentError, match=f"got {ends}; give 4|shape \\({ends},\\)"):
        trace("segments_intersect", np.arange(ends), np.arange(ends) ** 2)


@pytest.mark.parametrize(
    ("xs", "ys", "message"),
    [
        ([0, 0.5, 1, 0], [0, 0, 0, 1], r"points 1 at \(0.5, 0.0\) and 2 at \(1.0, 0.0\)"),
        ([0, 1, 0, 0], [0, 1, 1, 0], r"lowest point, points 3 at \(0.0, 0.0\)"),
        ([1, 1, 1], [2, 2, 2], "are in the same direction"),
    ],
)
def test_points_without_an_order_by_angle_are_refused(xs, ys, message):
    with pytest.raises(ArgumentError, match=message):
        trace("graham_scan", xs, ys)


@pytest.mark.parametrize(
    ("xs", "ys", "message"),
    [
        ([0, 1, 2], [0, 0, 0], r"points 0 at \(0.0, 0.0\) and 2 at \(2.0, 0.0\) and 1 at \(1.0, 0.0\)"),
        ([0, 2, 1, 1], [0, 0, 2, 2], r"points 1 at \(2.0, 0.0\) and 3 at \(1.0, 2.0\) and 2 at \(1.0, 2.0\)"),
        ([1, 1, 1], [2, 2, 2], "are on a line at the edge of the hull"),
    ],
)
def test_points_that_the_march_cannot_walk_around_are_refused(xs, ys, message):
    with pytest.raises(ArgumentError, match=message):
        trace("jarvis_march", xs, ys)


def test_march_that_rounding_sends_to_and_fro_is_refused():
    """No three of them are on a line, but float turns say of each of the two upper ones that it is beyond the other."""
    xs, ys = [0.3, 0.9, 0.2], [0.772857297542022, 1.1568209607256967, 0.7088633536780763]
    assert turn(*zip(xs, ys, strict=True)) != 0
    with pytest.raises(ArgumentError, match="march may never end"):
        trace("jarvis_march", xs, ys)


@pytest.mark.parametrize("algorithm", HULLS)
def test_one_bad_instance_of_many_is_named(algorithm):
    good = ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match=r"1 at \(5.0, 5.0\)"):
        run_all(algorithm, [good, ([4.0, 5.0, 6.0], [4.0, 5.0, 6.0])])
    with pytest.raises(ArgumentError, match=r"ys\[2\] is 1e\+200"):
        run_all(algorithm, [good, ([4.0, 5.0, 6.0], [4.0, 5.0, 1e200])])


@pytest.mark.parametrize("algorithm", [*HULLS, "segments_intersect"])
def test_points_are_not_changed(algorithm):
    xs, ys = np.array([0.0, 4.0, 1.0, 2.0]), np.array([1.0, 0.0, 3.0, 1.5])
    trace(algorithm, xs, ys)
    assert xs.tolist() == [0, 4, 1, 2] and ys.tolist() == [1, 0, 3, 1.5]
