"""And-inverter graphs: simulation, depth, hashing and equivalence, against plain Python and networkx."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import CircuitError
from graphbench.domains.chip_design.aig import Aig, Circuits, equivalent
from graphbench.domains.chip_design.truth_tables import as_bits, from_text, to_bits, to_text, to_words


def random_aig(n, ands, m, seed):
    rng = np.random.default_rng(seed)
    fanins = [[int(rng.integers(0, 2 * (1 + n + k))) for _ in range(2)] for k in range(ands)]
    outputs = rng.integers(0, 2 * (1 + n + ands), m)
    return Aig(n, np.array(fanins, np.int64).reshape(-1, 2), outputs)


def value_of(aig, assignment):
    """Evaluate a circuit at one assignment, in Python."""
    values = [False, *assignment]
    for a, b in aig.fanins.tolist():
        values.append((values[a // 2] != (a % 2 == 1)) and (values[b // 2] != (b % 2 == 1)))
    return [values[o // 2] != (o % 2 == 1) for o in aig.outputs.tolist()]


def table_of(aig):
    n = aig.num_inputs
    columns = [value_of(aig, [(x >> i) & 1 == 1 for i in range(n)]) for x in range(1 << n)]
    return np.array(columns, bool).reshape(1 << n, aig.num_outputs).T


circuits = st.builds(random_aig, st.integers(0, 8), st.integers(0, 40), st.integers(1, 3), st.integers(0, 10**6))


@settings(max_examples=60, deadline=None)
@given(circuits)
def test_simulation_is_that_of_plain_python(aig):
    assert np.array_equal(aig.simulate(), table_of(aig))


@settings(max_examples=60, deadline=None)
@given(circuits)
def test_hashing_keeps_the_function_and_leaves_no_dead_or_duplicate_and(aig):
    hashed = aig.hashed()
    assert np.array_equal(hashed.simulate(), table_of(aig))
    assert hashed.num_dead == hashed.num_duplicates == 0
    pairs = [tuple(sorted(pair)) for pair in hashed.fanins.tolist()]
    assert len(set(pairs)) == len(pairs) and all(a > 1 and a // 2 != b // 2 for a, b in pairs)
    assert hashed.num_ands <= aig.num_ands - max(aig.num_dead, aig.num_duplicates)


@settings(max_examples=60, deadline=None)
@given(circuits)
def test_depth_and_dead_ands_are_those_of_networkx(aig):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(1 + aig.num_inputs + aig.num_ands))
    first = 1 + aig.num_inputs
    graph.add_edges_from((f // 2, first + k) for k, pair in enumerate(aig.fanins.tolist()) for f in pair)
    roots = {o // 2 for o in aig.outputs.tolist()}
    needed = roots.union(*(nx.ancestors(graph, root) for root in roots))
    assert aig.num_dead == sum(v >= first and v not in needed for v in graph)
    # every AND adds one level: the longest path in nodes, less the input or constant at which it begins
    assert aig.depth == nx.dag_longest_path_length(graph.subgraph(needed))


def test_order_of_inputs_assignments_and_literals():
    first = Aig(3, np.empty((0, 2), np.int32), np.array([2]))
    assert first.simulate().astype(int).tolist() == [[0, 1, 0, 1, 0, 1, 0, 1]]
    last = Aig(3, np.empty((0, 2), np.int32), np.array([7]))
    assert last.simulate().astype(int).tolist() == [[1, 1, 1, 1, 0, 0, 0, 0]]
    both = Aig(2, np.array([[2, 5]]), np.array([6, 7, 0, 1]))  # x0 and not x1, its inversion, false, true
    assert both.simulate().astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert (both.num_ands, both.depth, both.num_outputs) == (1, 1, 4)


def test_duplicates_of_a_circuit_by_hand():
    # 6 = x0 x1, 8 = x1 x0 again, 10 = x0 x0, 12 = 6 and not 8 is false, 14 = not x0, not x1
    aig = Aig(2, np.array([[2, 4], [4, 2], [2, 2], [6, 9], [3, 5]]), np.array([8, 12, 10]))
    assert (aig.num_duplicates, aig.num_dead) == (3, 1)
    assert aig.hashed().fanins.tolist() == [[4, 2]] and aig.hashed().outputs.tolist() == [6, 0, 2]


def test_many_inputs_are_simulated_in_blocks():
    n = 14
    rng = np.random.default_rng(0)
    aig = random_aig(n, 60, 2, 3)
    table = aig.simulate()
    assert table.shape == (2, 1 << n)
    for x in rng.integers(0, 1 << n, 200).tolist():
        assert table[:, x].tolist() == value_of(aig, [(x >> i) & 1 == 1 for i in range(n)])


def test_circuits_in_a_run_are_those_alone():
    aigs = [random_aig(n, 5 * n, 1 + n % 3, n) for n in range(9)]
    run = Circuits.of(aigs)
    words, ptr = run.simulate(), run.word_ptr
    assert len(run) == 9 and ptr[-1] == len(words)
    for i, aig in enumerate(aigs):
        own = to_bits(words[ptr[i] : ptr[i + 1]].reshape(aig.num_outputs, -1), aig.num_inputs)
        assert np.array_equal(own, table_of(aig))
        assert run.depths[i] == aig.depth and run.num_ands[i] == aig.num_ands
        assert np.array_equal(run[i].fanins, aig.fanins) and np.array_equal(run[i].outputs, aig.outputs)
    assert len(Circuits.of([])) == 0 and not len(Circuits.of([]).simulate())


def test_equivalence():
    aig = random_aig(7, 50, 2, 11)
    table = aig.simulate()
    assert equivalent(aig, table) and equivalent(aig, table.astype(np.int64))
    for j, x in itertools.product(range(2), (0, 63, 64, 127)):
        other = table.copy()
        other[j, x] = not other[j, x]
        assert not equivalent(aig, other)
    assert not equivalent(aig, table[:1]) and not equivalent(aig, table[:, :64])
    small = random_aig(3, 6, 1, 2)
    assert equivalent(small, small.simulate()[0])


@pytest.mark.parametrize(
    ("n", "fanins", "outputs", "words"),
    [
        (2, [[2, 6]], [6], "AND 0 .literal 6."),
        (2, [[2, 8]], [6], "outside the literals 0 to 7"),
        (2, [[2, -1]], [6], "outside the literals"),
        (2, [[2, 4]], [8], "an output lies outside"),
        (2, [2, 4], [6], "shape"),
        (2, [[2.0, 4.0]], [6], "integers"),
        (-1, [[0, 0]], [0], "inputs"),
    ],
)
def test_wrong_circuits_are_refused(n, fanins, outputs, words):
    with pytest.raises(CircuitError, match=words):
        Aig(n, np.array(fanins), np.array(outputs))


def test_too_many_inputs_for_a_table():
    with pytest.raises(CircuitError, match="21 inputs"):
        Aig(21, np.array([[2, 4]]), np.array([6])).simulate()


@pytest.mark.parametrize("table", [np.zeros((2, 3)), np.zeros((0, 4)), np.zeros((1, 1, 4)), np.full((1, 4), 2), ["ab"]])
def test_wrong_tables_are_refused(table):
    with pytest.raises(CircuitError):
        as_bits(table)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 9), st.integers(1, 3), st.integers(0, 10**6))
def test_words_and_text_hold_the_table(n, m, seed):
    table = np.random.default_rng(seed).random((m, 1 << n)) < 0.5
    assert np.array_equal(to_bits(to_words(table), n), table)
    text = to_text(table)
    assert np.array_equal(from_text(text, n), table)
    numbers = [sum(1 << x for x in range(1 << n) if row[x]) for row in table.tolist()]
    assert [int(word, 16) for word in text.split()] == numbers
    assert [len(word) for word in text.split()] == [max(1, (1 << n) // 4)] * m
    if n >= 2:
        assert np.array_equal(from_text(text), table)


@pytest.mark.parametrize("text", ["", "abc", "0g", "8000 80", "\u0663\u0663", "-8"])
def test_wrong_texts_are_refused(text):
    with pytest.raises(CircuitError):
        from_text(text)
