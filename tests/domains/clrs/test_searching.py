import bisect
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

OF_KEYS = ["minimum", "quickselect", "find_maximum_subarray_kadane"]
CONSTANT = ["minimum", "binary_search", "find_maximum_subarray_kadane"]
many = settings(max_examples=80, deadline=None)

few = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5])  # their sums are exact
few_values = st.lists(few, min_size=2, max_size=20)
lists = st.one_of(few_values, st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)).map(np.array)


def run(algorithm, *args):
    """Trace, with nodes in place of one-hot vectors."""
    found = trace(algorithm, *args)
    hints = {name: hint.argmax(-1).tolist() if hint.dtype == np.int8 else hint for name, hint in found.hints.items()}
    outputs = {name: int(output.argmax()) for name, output in found.outputs.items()}
    assert all(output.sum() == 1 for output in found.outputs.values())
    return hints, outputs


@many
@given(lists)
def test_minimum_is_the_first_of_the_smallest(keys):
    hints, outputs = run("minimum", keys)
    assert outputs == {"min": int(np.argmin(keys))}
    assert hints["i"] == list(range(len(keys)))
    assert hints["min_h"] == [int(np.argmin(keys[: step + 1])) for step in range(len(keys))]


@st.composite
def searches(draw):
    """A target, often one of the keys or beyond them, and sorted keys."""
    keys = np.sort(draw(lists))
    return draw(st.one_of(few, st.sampled_from(keys.tolist()), st.floats(-2e6, 2e6))), keys


@many
@given(searches())
def test_binary_search_finds_the_insertion_point(search):
    x, keys = search
    hints, outputs = run("binary_search", x, keys)
    place = min(bisect.bisect_left(keys.tolist(), x), len(keys) - 1)
    assert outputs == {"return": place}
    assert hints["low"][-1] == hints["high"][-1] == hints["mid"][-1] == place


@many
@given(searches())
def test_binary_search_halves(search):
    x, keys = search
    hints, outputs = run("binary_search", x, keys)
    bounds = list(zip(hints["low"], hints["high"], strict=True))
    assert bounds[0] == (0, len(keys) - 1)
    assert hints["mid"] == [(low + high) // 2 for low, high in bounds]
    assert math.floor(math.log2(len(keys))) + 1 <= len(bounds) <= math.ceil(math.log2(len(keys))) + 1
    for (low, high), after in pairwise(bounds):
        mid = (low + high) // 2
        assert low < high and after in ((low, mid), (mid + 1, high))
    assert all(low <= outputs["return"] <= high for low, high in bounds)


def order_of(pred):
    """The nodes from first to last."""
    pred = pred.tolist()
    following = {before: node for node, before in enumerate(pred) if before != node}
    order = [next(node for node, before in enumerate(pred) if before == node)]
    while order[-1] in following:
        order.append(following[order[-1]])
    assert sorted(order) == list(range(len(pred)))
    return order


@many
@given(lists)
def test_quickselect_finds_the_upper_median(keys):
    _, outputs = run("quickselect", keys)
    assert keys[outputs["median"]] == np.partition(keys, len(keys) // 2)[len(keys) // 2]


@many
@given(lists)
def test_quickselect_goes_on_in_the_part_with_the_median(keys):
    hints, outputs = run("quickselect", keys)
    n = len(keys)
    before, first, last, step, end = list(range(n)), 0, n - 1, 0, -1
    while end != n // 2:
        pivot = before[last]
        for place in range(first, last + 1):
            order = order_of(hints["pred_h"][step])
            small = sum(keys[node] <= keys[pivot] for node in before[first : min(place + 1, last)])
            end = first + small
            shown = tuple(hints[name][step] for name in ("p", "r", "i", "j", "pivot"))
            assert shown == (order[first], order[last], order[end], order[place], pivot)
            assert hints["i_rank"][step] == (small if place == last else end) / n
            assert hints["target"][step] == (n // 2 - first) / n
            assert all(keys[node] <= keys[pivot] for node in order[first:end])
            assert all(keys[node] > keys[pivot] for node in order[end + (place == last) : place + 1])
            assert sorted(order[first : last + 1]) == sorted(before[first : last + 1])
            assert order[:first] == before[:first] and order[last + 1 :] == before[last + 1 :]
            step += 1
        before = order
        assert order[end] == pivot
        first, last = (end + 1, last) if end < n // 2 else (first, end - 1)
    assert step == len(hints["i_rank"])
    assert outputs["median"] == pivot


def stretches(keys, last):
    """(sum, -end, -start) of the stretches that end at ``last``: the largest is what is asked for."""
    return [(keys[start : last + 1].sum(), -last, -start) for start in range(last + 1)]


@many
@given(few_values.map(np.array))
def test_kadane_s_stretch_is_the_largest_and_first(keys):
    hints, outputs = run("find_maximum_subarray_kadane", keys)
    best = max(max(stretches(keys, last)) for last in range(len(keys)))
    assert (-outputs["end"], -outputs["start"]) == best[1:]
    assert hints["best_sum"][-1] == best[0]
    assert (hints["best_low"][-1], hints["best_high"][-1]) == (outputs["start"], outputs["end"])


@many
@given(few_values.map(np.array))
def test_every_step_of_kadane_is_the_best_stretch_so_far(keys):
    hints, _ = run("find_maximum_subarray_kadane", keys)
    assert len(hints["sum"]) == len(keys)
    for step in range(len(keys)):
        here = max(stretches(keys, step))
        best = max(max(stretches(keys, last)) for last in range(step + 1))
        assert (hints["sum"][step], -hints["j"][step], -hints["i"][step]) == here
        assert (hints["best_sum"][step], -hints["best_high"][step], -hints["best_low"][step]) == best


@many
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40).map(np.array))
def test_kadane_s_sum_is_the_largest_of_any_numbers(keys):
    _, outputs = run("find_maximum_subarray_kadane", keys)
    sums = np.concatenate([[0], np.cumsum(keys)])
    largest = max(sums[b] - sums[a] for b in range(1, len(sums)) for a in range(b))
    assert keys[outputs["start"] : outputs["end"] + 1].sum() == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("algorithm", CONSTANT)
@many
@given(lists)
def test_the_list_stays_as_it_is(algorithm, keys):
    args = (0.1, np.sort(keys)) if algorithm == "binary_search" else (keys,)
    for pred in trace(algorithm, *args).hints["pred_h"]:
        assert order_of(pred) == list(range(len(keys)))


def test_hundreds_of_keys():
    keys = np.random.default_rng(5).integers(-200, 200, 256) / 8
    rising = np.sort(keys)
    for x in (rising[200], rising[255], -100):
        assert run("binary_search", x, rising)[1]["return"] == np.searchsorted(rising, x)
    for arranged in (keys, rising, rising[::-1].copy()):
        assert run("minimum", arranged)[1]["min"] == arranged.argmin()
        assert arranged[run("quickselect", arranged)[1]["median"]] == rising[128]
    ends = run("find_maximum_subarray_kadane", rising)[1]
    assert ends == {"start": np.searchsorted(rising, 0), "end": 255}


@pytest.mark.parametrize("algorithm", [*OF_KEYS, "binary_search"])
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([0.5], r"A has the shape \(1,\).*2"),
        (0.5, r"A has the shape \(\)"),
        ([[0.5, 1], [2, 3]], r"A has the shape \(2, 2\); give a list"),
        ([1, np.nan], r"A\[1\] is nan; give finite numbers"),
        (["a", "b"], "A is not an array of numbers"),
    ],
)
def test_what_is_no_list_of_keys_is_refused(algorithm, keys, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, *([0.5] if algorithm == "binary_search" else []), keys)


@pytest.mark.parametrize("x", [np.nan, np.inf, [0.5], [[1], [2, 3]], None, "a", 10**400])
def test_targets_that_are_no_numbers_are_refused(x):
    with pytest.raises(ArgumentError, match=r"x is .*; give one finite number"):
        trace("binary_search", x, [1, 2])


@pytest.mark.parametrize("x", [2, np.int64(2), np.float32(2), np.array(2.0)])
def test_targets_are_numbers_of_any_type(x):
    target = trace("binary_search", x, [1, 2, 3]).inputs["target"]
    assert target == 2 and target.shape == () and target.dtype == np.float64


def test_keys_that_are_not_sorted_are_refused():
    with pytest.raises(ArgumentError, match=r"A\[1\] = 3.0 is above A\[2\] = 2.0.*keys"):
        trace("binary_search", 0.5, [1, 3, 2, 0])


@pytest.mark.parametrize("algorithm", OF_KEYS)
def test_keys_are_not_changed(algorithm):
    keys = np.array([3.0, 1.0, 2.0])
    trace(algorithm, keys)
    assert keys.tolist() == [3, 1, 2]
