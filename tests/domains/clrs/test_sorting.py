import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

ALL = ["insertion_sort", "bubble_sort", "heapsort", "quicksort"]
STABLE = ["insertion_sort", "bubble_sort"]
BUILD, EXTRACT, REPAIR = range(3)
many = settings(max_examples=80, deadline=None)

few_values = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5]), min_size=2, max_size=20)
any_values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)
lists = st.one_of(few_values, any_values).map(np.array)


def order_of(pred):
    """The nodes from first to last; fails where the pointers are not one list of all nodes."""
    pred = pred.tolist()
    (head,) = (node for node, before in enumerate(pred) if before == node)
    following = {before: node for node, before in enumerate(pred) if node != head}
    order = [head]
    while order[-1] in following:
        order.append(following[order[-1]])
    assert len(order) == len(pred) == len(set(order))
    return order


def run(algorithm, keys):
    """Trace, the list at every step, and the nodes and classes that the other hints show."""
    found = trace(algorithm, keys)
    hints = {name: hint.argmax(-1).tolist() for name, hint in found.hints.items() if name not in ("pred_h", "parent")}
    return found, [order_of(pred) for pred in found.hints["pred_h"]], hints


@pytest.mark.parametrize("algorithm", ALL)
@many
@given(lists)
def test_keys_come_out_sorted(algorithm, keys):
    found = trace(algorithm, keys)
    assert keys[order_of(found.outputs["pred"])].tolist() == sorted(keys.tolist())


@pytest.mark.parametrize("algorithm", STABLE)
@many
@given(lists)
def test_equal_keys_keep_their_order(algorithm, keys):
    expected = sorted(range(len(keys)), key=keys.tolist().__getitem__)
    assert order_of(trace(algorithm, keys).outputs["pred"]) == expected


@pytest.mark.parametrize("algorithm", ALL)
@many
@given(lists)
def test_last_hint_is_the_output(algorithm, keys):
    found = trace(algorithm, keys)
    np.testing.assert_array_equal(found.hints["pred_h"][-1], found.outputs["pred"])


@many
@given(lists)
def test_insertion_sort_sorts_one_more_key_per_step(keys):
    _, lists_, hints = run("insertion_sort", keys)
    n = len(keys)
    assert len(lists_) == n
    for step, order in enumerate(lists_):
        start = sorted(range(step + 1), key=keys.tolist().__getitem__)
        assert order == start + list(range(step + 1, n))
        assert hints["j"][step] == step
        assert hints["i"][step] == lists_[max(step - 1, 0)][order.index(step)]


@many
@given(lists)
def test_bubble_sort_compares_neighbours_from_the_end(keys):
    _, lists_, hints = run("bubble_sort", keys)
    n = len(keys)
    places = [(left, right) for left in range(n) for right in range(n - 1, left, -1)]
    assert lists_[0] == list(range(n)) and hints["i"][0] == hints["j"][0] == 0
    assert len(lists_) == 1 + len(places)
    for step, (left, right) in enumerate(places, 1):
        before, order = lists_[step - 1], list(lists_[step])
        assert (hints["i"][step], hints["j"][step]) == (order[left], order[right])
        if keys[before[right]] < keys[before[right - 1]]:
            order[right - 1], order[right] = order[right], order[right - 1]
        assert order == before
        if right == left + 1:
            assert keys[lists_[step][: left + 1]].tolist() == sorted(keys.tolist())[: left + 1]


@many
@given(lists)
def test_bubble_sort_swaps_once_per_inversion(keys):
    _, lists_, _ = run("bubble_sort", keys)
    swaps = sum(a != b for a, b in itertools.pairwise(lists_))
    assert swaps == sum(a > b for a, b in itertools.combinations(keys.tolist(), 2))


def heap_parents(order, size):
    parents = list(range(len(order)))
    for place in range(size):
        for child in (2 * place + 1, 2 * place + 2):
            if child < size:
                parents[order[child]] = order[place]
    return parents


def heap_sizes(phases, n):
    """The size of the heap at every step: one less from every extraction on."""
    return (n - np.cumsum(np.array(phases) == EXTRACT)).tolist()


@many
@given(lists)
def test_pointers_of_heapsort_are_those_of_a_heap(keys):
    found, lists_, hints = run("heapsort", keys)
    sizes = heap_sizes(hints["phase"], len(keys))
    assert sizes[-1] == 1
    for order, size, last, parents in zip(lists_, sizes, hints["heap_size"], found.hints["parent"], strict=True):
        assert parents.tolist() == heap_parents(order, size)
        assert last == order[size - 1]


@many
@given(lists)
def test_heapsort_builds_a_heap_and_repairs_it(keys):
    found, lists_, hints = run("heapsort", keys)
    n, phases = len(keys), hints["phase"]
    built = phases.index(EXTRACT)
    assert set(phases[:built]) == {BUILD} and set(phases[built:]) == {EXTRACT, REPAIR}
    assert phases.count(EXTRACT) == n - 1
    sizes = heap_sizes(phases, n)
    for step, following in enumerate([*phases[1:], EXTRACT]):
        if following == EXTRACT:  # the step ends the building or a repair
            parents = found.hints["parent"][step]
            assert phases[step] != EXTRACT
            assert (keys[parents] >= keys)[lists_[step][: sizes[step]]].all()


@many
@given(lists)
def test_heapsort_extracts_the_largest_key(keys):
    _, lists_, hints = run("heapsort", keys)
    for step in np.flatnonzero(np.array(hints["phase"]) == EXTRACT):
        order, before = lists_[step], lists_[step - 1]
        size = heap_sizes(hints["phase"], len(keys))[step]
        assert order == [before[size], *before[1:size], before[0], *before[size + 1 :]]
        assert keys[order[size]] == keys[before[: size + 1]].max()
        assert (hints["i"][step], hints["j"][step]) == (order[0], order[size])
        assert hints["largest"][step] == 0


def sinking(keys, order, size, top):
    """The lists and the places of a key that sinks, by the definition: exchange with the larger child."""
    steps, place = [], top
    while True:
        family = [p for p in (place, 2 * place + 1, 2 * place + 2) if p < size]
        below = max(family, key=lambda p: keys[order[p]])  # the first of equal ones
        order[place], order[below] = order[below], order[place]
        steps.append((list(order), place, below))
        if below == place:
            return steps
        place = below


@many
@given(lists)
def test_every_step_of_heapsort(keys):
    _, lists_, hints = run("heapsort", keys)
    n = len(keys)
    order = list(range(n))
    expected = [(list(order), (n - 1, n - 1, n - 1), BUILD)]
    for top in reversed(range(n)):
        steps = sinking(keys, order, n, top)
        expected += [(now, (now[top], now[place], now[below]), BUILD) for now, place, below in steps]
    for size in range(n - 1, 0, -1):
        order[0], order[size] = order[size], order[0]
        expected.append((list(order), (order[0], order[size], 0), EXTRACT))
        steps = sinking(keys, order, size, 0)
        expected += [(now, (now[size], now[place], now[below]), REPAIR) for now, place, below in steps]
    shown = zip(hints["i"], hints["j"], hints["largest"], strict=True)
    assert list(zip(lists_, shown, hints["phase"], strict=True)) == expected


@many
@given(lists)
def test_quicksort_divides_the_left_part_first(keys):
    _, lists_, hints = run("quicksort", keys)
    before = list(range(len(keys)))
    done = 0

    def divide(first, last):
        nonlocal before, done
        if first >= last:
            return
        pivot = before[last]
        for place in range(first, last + 1):
            order = lists_[done]
            shown = tuple(hints[name][done] for name in "prij")
            end = first + sum(keys[node] <= keys[pivot] for node in before[first : min(place + 1, last)])
            assert shown == (order[first], order[last], order[end], order[place])
            assert sorted(order[first : last + 1]) == sorted(before[first : last + 1])
            assert order[:first] == before[:first] and order[last + 1 :] == before[last + 1 :]
            assert all(keys[node] <= keys[pivot] for node in order[first:end])
            assert all(keys[node] > keys[pivot] for node in order[end + (place == last) : place + 1])
            done += 1
        before = order
        assert order[end] == pivot
        divide(first, end - 1)
        divide(end + 1, last)

    divide(0, len(keys) - 1)
    assert done == len(lists_)


@pytest.mark.parametrize("algorithm", ALL)
def test_hundreds_of_keys(algorithm):
    keys = np.random.default_rng(5).integers(0, 200, 256) / 8
    for arranged in (keys, np.sort(keys), np.sort(keys)[::-1]):
        order = order_of(trace(algorithm, arranged).outputs["pred"])
        assert arranged[order].tolist() == sorted(keys.tolist())


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], r"A has the shape \(0,\).*2"),
        ([0.5], r"A has the shape \(1,\).*2"),
        ([[0.5, 1], [2, 3]], r"A has the shape \(2, 2\); give a list"),
        ([1, np.nan], r"A\[1\] is nan; give finite numbers"),
        ([-np.inf, 1], r"A\[0\] is -inf; give finite numbers"),
        (["a", "b"], "A is not an array of numbers"),
    ],
)
def test_what_is_no_list_of_keys_is_refused(algorithm, keys, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, keys)


@pytest.mark.parametrize("algorithm", ALL)
def test_keys_are_not_changed(algorithm):
    keys = np.array([3.0, 1.0, 2.0])
    trace(algorithm, keys)
    assert keys.tolist() == [3, 1, 2]
