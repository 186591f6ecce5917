from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

many = settings(max_examples=80, deadline=None)


@st.composite
def activities(draw, largest=20, shortest=0):
    """Start and finish times, often equal, or all different."""
    n = draw(st.integers(2, largest))
    times = st.integers(0, draw(st.sampled_from([4, 10]))).map(float) if draw(st.booleans()) else st.floats(0, 1)
    pairs = st.tuples(times, times).map(sorted).filter(lambda pair: pair[1] - pair[0] >= shortest)
    return tuple(np.array(draw(st.lists(pairs, min_size=n, max_size=n))).T.copy())


@st.composite
def tasks(draw):
    n = draw(st.integers(2, 20))
    d = draw(st.lists(st.integers(1, n), min_size=n, max_size=n))
    weights = st.sampled_from([0.0, 0.25, 0.5]) if draw(st.booleans()) else st.floats(0, 1)
    return np.array(d), np.array(draw(st.lists(weights, min_size=n, max_size=n)))


def compatible(s, f, chosen):
    return all(f[a] <= s[b] or f[b] <= s[a] for a, b in combinations(chosen, 2))


@settings(max_examples=60, deadline=None)
@given(activities(largest=9, shortest=1e-9))
def test_activities_selected_are_compatible_and_as_many_as_can_be(times):
    s, f = times
    chosen = np.flatnonzero(trace("activity_selector", s, f).outputs["selected"])
    assert compatible(s, f, chosen)
    assert not any(compatible(s, f, more) for more in combinations(range(len(s)), len(chosen) + 1))


@many
@given(activities())
def test_activities_are_taken_up_by_their_ends(times):
    s, f = times
    found = trace("activity_selector", s, f)
    m, k, selected = found.hints["m"].argmax(-1), found.hints["k"].argmax(-1), found.hints["selected_h"]
    assert len(m) == len(s) + 1
    assert m[0] == k[0] == 0 and not selected[0].any()
    assert m[1:].tolist() == sorted(range(len(s)), key=f.tolist().__getitem__)
    free_from, taken, last = -np.inf, [], 0
    for step, activity in enumerate(m[1:].tolist(), 1):
        if s[activity] >= free_from:
            taken, free_from, last = [*taken, activity], f[activity], activity
        assert k[step] == last
        assert np.flatnonzero(selected[step]).tolist() == sorted(taken)
    np.testing.assert_array_equal(selected[-1], found.outputs["selected"])


def test_an_activity_may_start_when_the_last_one_ends():
    assert trace("activity_selector", [0, 1, 2], [1, 2, 3]).outputs["selected"].tolist() == [1, 1, 1]


@many
@given(tasks())
def test_tasks_are_taken_up_by_weight(instance):
    d, w = instance
    found = trace("task_scheduling", d, w)
    i, t, selected = found.hints["i"].argmax(-1), found.hints["t"], found.hints["selected_h"]
    assert len(i) == len(w) + 1
    assert i[0] == 0 and t[0] == 0 and not selected[0].any()
    assert i[1:].tolist() == sorted(range(len(w)), key=lambda task: -w[task])
    for step, task in enumerate(i[1:].tolist(), 1):
        assert selected[step].sum() == t[step]
        kept = [task] if t[step - 1] < d[task] else []
        assert np.flatnonzero(selected[step] != selected[step - 1]).tolist() == kept
    np.testing.assert_array_equal(selected[-1], found.outputs["selected"])


@many
@given(tasks())
def test_tasks_selected_meet_their_deadlines(instance):
    d, w = instance
    found = trace("task_scheduling", d, w)
    order = found.hints["i"].argmax(-1)[1:]
    done = order[found.outputs["selected"][order] == 1]
    assert (d[done] >= np.arange(1, len(done) + 1)).all()
    assert done[0] == w.argmax()
    assert len(done) <= d.max()
    late = order[found.outputs["selected"][order] == 0]
    assert (d[late] <= len(done)).all()  # the time does not come back


def test_tasks_kept_are_not_moved():
    """Both could be done, the second one first."""
    assert trace("task_scheduling", [2, 1], [3.0, 2.0]).outputs["selected"].tolist() == [1, 0]


@pytest.mark.parametrize("algorithm", ["activity_selector", "task_scheduling"])
def test_the_list_stays_as_it_is(algorithm):
    pred = trace(algorithm, [1, 2, 1, 4], [4, 3, 2, 5]).hints["pred_h"]
    np.testing.assert_array_equal(pred, np.tile([0, 0, 1, 2], (5, 1)))


def test_hundreds_of_activities_and_tasks():
    n = 256
    rng = np.random.default_rng(5)
    s = rng.permutation(n).astype(float)
    assert trace("activity_selector", s, s + 1).outputs["selected"].all()
    assert trace("activity_selector", s, s + 2).outputs["selected"].tolist() == (s % 2 == 0).tolist()
    rank = rng.permutation(n)
    assert trace("task_scheduling", rank + 1, -rank / n).outputs["selected"].all()
    assert trace("task_scheduling", np.full(n, 200), -rank / n).outputs["selected"].tolist() == (rank < 200).tolist()


@pytest.mark.parametrize(
    ("s", "f", "message"),
    [
        ([1], [2], r"s has the shape \(1,\).*2"),
        ([1, 2], [[2, 3]], r"f has the shape \(1, 2\); give a list"),
        ([1, 2], [2, 3, 4], r"s has 2 entries and f has 3; it needs 2"),
        ([1, np.nan], [2, 3], r"s\[1\] is nan; give finite numbers"),
        ([1, 2], [np.inf, 3], r"f\[0\] is inf; give finite numbers"),
        ([1, 2, 3], [1, 1, 4], r"s\[1\] = 2.0 is after f\[1\] = 1.0.*activities"),
    ],
)
def test_what_are_no_activities_is_refused(s, f, message):
    with pytest.raises(ArgumentError, match=message):
        trace("activity_selector", s, f)


@pytest.mark.parametrize(
    ("d", "w", "message"),
    [
        ([1], [0.5], r"d has the shape \(1,\).*2"),
        ([1, 2], 0.5, r"w has the shape \(\)"),
        ([1, 2, 3], [0.5, 1], r"d has 3 entries and w has 2; it needs 3"),
        ([0, 2], [0.5, 1], r"d has values from 0.0 to 2.0.*1 to 2"),
        ([1, 3], [0.5, 1], r"d has values from 1.0 to 3.0.*1 to 2"),
        ([1, 1.5], [0.5, 1], r"d has values from 1.0 to 1.5.*1 to 2"),
        ([1, 2], [0.5, np.nan], r"w\[1\] is nan; give finite numbers"),
    ],
)
def test_what_are_no_tasks_is_refused(d, w, message):
    with pytest.raises(ArgumentError, match=message):
        trace("task_scheduling", d, w)


@pytest.mark.parametrize("algorithm", ["activity_selector", "task_scheduling"])
def test_arguments_are_not_changed(algorithm):
    first, second = np.array([2, 1, 3]), np.array([3.0, 2.0, 4.0])
    trace(algorithm, first, second)
    assert first.tolist() == [2, 1, 3] and second.tolist() == [3, 2, 4]
