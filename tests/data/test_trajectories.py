"""Stored changes against the dense states they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.data.arrays.trajectories import Changes, HintLayout, Trajectories

HINTS = (
    Feature("color", Stage.HINT, Location.NODE, Kind.CATEGORICAL, 3),
    Feature("d", Stage.HINT, Location.NODE, Kind.SCALAR),
    Feature("u", Stage.HINT, Location.NODE, Kind.MASK_ONE),
    Feature("tree", Stage.HINT, Location.EDGE, Kind.MASK),
    Feature("time", Stage.HINT, Location.GRAPH, Kind.SCALAR),
    Feature("phase", Stage.HINT, Location.GRAPH, Kind.MASK),
)


def dense_states(rng, lengths, cells, floats):
    """Return one array [T, cells] per sample, in which few cells change from step to step."""
    states = []
    for steps in lengths:
        state = np.zeros((steps, cells))
        for t in range(steps):
            state[t] = state[t - 1] if t else 0
            chosen = rng.random(cells) < (0.5 if t == 0 else 0.1)
            state[t, chosen] = rng.random(chosen.sum()) if floats else rng.integers(-1, 4, chosen.sum())
        states.append(state)
    return states


def changes_of(states):
    counts, cells, values, ptr = [], [], [], [0]
    for state in states:
        before = np.zeros(state.shape[1])
        for now in state:
            changed = np.flatnonzero(now != before)
            counts.append(len(changed))
            cells += changed.tolist()
            values += now[changed].tolist()
            before = now
        ptr.append(len(cells))
    dtype = float if any(v % 1 for v in values) else int
    return Changes(np.array(ptr), np.array(counts, int), np.array(cells, int), np.array(values, dtype))


def build(seed, lengths, nodes):
    rng, layout = np.random.default_rng(seed), HintLayout(HINTS, nodes)
    ints = dense_states(rng, lengths, layout.ints, floats=False)
    floats = dense_states(rng, lengths, layout.floats, floats=True)
    step_ptr = np.concatenate([[0], np.cumsum(lengths)])
    return layout, ints, floats, Trajectories(step_ptr, changes_of(ints), changes_of(floats))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 6))
def test_replay_gives_back_every_state_and_repeats_the_last(seed, lengths, nodes):
    layout, ints, floats, trajectories = build(seed, lengths, nodes)
    stored = trajectories.compact(layout)
    assert stored.ints.values.dtype == np.int8 and stored.floats.values.dtype == np.float32
    for found, states, dtype in zip(stored.replay(layout), (ints, floats), (np.int8, np.float32), strict=True):
        assert found.shape[:2] == (max(lengths), len(lengths))
        for sample, state in enumerate(states):
            np.testing.assert_array_equal(found[: len(state), sample], state.astype(dtype))
            assert (found[len(state) :, sample] == state[-1].astype(dtype)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_parts_taken_and_joined_are_the_whole(seed, data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=6))
    cut = data.draw(st.integers(1, len(lengths) - 1))
    layout, *_, whole = build(seed, lengths, 3)
    halves = [whole.take(np.arange(cut)), whole.take(np.arange(cut, len(lengths)))]
    for name, array in Trajectories.join(halves).arrays().items():
        np.testing.assert_array_equal(array, whole.arrays()[name])
    order = np.array(data.draw(st.permutations(range(len(lengths)))))
    for found, expected in zip(whole.take(order).replay(layout), whole.replay(layout), strict=True):
        np.testing.assert_array_equal(found, expected[:, order][: len(found)])


def test_arrays_by_name_and_back():
    *_, trajectories = build(1, [3, 5], 4)
    again = Trajectories.of_arrays(trajectories.arrays())
    for name, array in again.arrays().items():
        assert name.startswith("hint.")
        assert array is trajectories.arrays()[name]


def test_layout_puts_hints_side_by_side():
    layout = HintLayout(HINTS, 5)
    assert (layout.ints, layout.floats, layout.largest) == (5 + 1 + 25 + 1, 5 + 1, 4)
    views = layout.views(np.arange(layout.ints), np.arange(layout.floats))
    assert {name: view.shape for name, view in views.items()} == {
        "color": (5,),
        "d": (5,),
        "u": (1,),
        "tree": (5, 5),
        "time": (1,),
        "phase": (1,),
    }
    integers = np.concatenate([views[name].ravel() for name in ("color", "u", "tree", "phase")])
    np.testing.assert_array_equal(integers, np.arange(layout.ints))


@pytest.mark.parametrize(("nodes", "dtype"), [(128, np.int8), (129, np.int16)])
def test_values_are_stored_in_the_smallest_safe_type(nodes, dtype):
    layout = HintLayout(HINTS[2:3], nodes)
    changes = Changes(np.array([0, 1]), np.array([1]), np.array([0]), np.array([nodes - 1]))
    empty = Changes(np.array([0, 0]), np.array([0]), np.array([], int), np.array([], float))
    stored = Trajectories(np.array([0, 1]), changes, empty).compact(layout)
    assert stored.ints.values.dtype == dtype
    assert stored.ints.values[0] == nodes - 1
