"""Circuits built by choices: right whatever is chosen; expressions, options and play-outs against plain Python."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from graphbench.core.errors import CircuitError
from graphbench.domains.chip_design import divisors
from graphbench.domains.chip_design.aig import equivalent
from graphbench.domains.chip_design.construction import Constructions, _greedy_all, build_greedily, permuted
from graphbench.domains.chip_design.construction_kernels import VARIABLES
from graphbench.domains.chip_design.environments import ENVIRONMENTS
from graphbench.domains.chip_design.truth_tables import to_text

BUILDER = ENVIRONMENTS["circuits"]
ALL = (1 << 64) - 1


def tables(seed, shapes, ones=0.5):
    rng = np.random.default_rng(seed)
    return [rng.random((m, 1 << n)) < ones for n, m in shapes]


def built_at_random(given_tables, seed):
    """Build circuits by choices that are drawn at random."""
    rng = np.random.default_rng(seed)
    building = Constructions(given_tables, [rng.permutation(t.shape[1].bit_length() - 1) for t in given_tables])
    while building.advance():
        which, literals, _, _ = building.candidates()
        chosen = [int(rng.choice(row[row > 0])) for row in literals]
        building.choose(which, np.array(chosen))
    return building.circuits()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(2, 8), st.integers(1, 3)), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.05, 0.5, 0.9]),
    st.integers(0, 10**6),
)
@pytest.mark.thorough
def test_any_choices_end_in_a_circuit_that_computes_the_table(shapes, ones, seed):
    given_tables = tables(seed, shapes, ones)
    for circuit, table in zip(built_at_random(given_tables, seed), given_tables, strict=True):
        assert equivalent(circuit, table)
        assert circuit.num_dead == circuit.num_duplicates == 0


@pytest.mark.parametrize("n", [9, 10])
@pytest.mark.thorough
def test_larger_functions_are_built_as_well(n):
    (table,) = tables(n, [(n, 1)], 0.02)
    assert equivalent(built_at_random([table], 0)[0], table)


def test_more_inputs_are_refused():
    with pytest.raises(CircuitError, match="table 1 has 11 inputs"):
        Constructions(tables(0, [(6, 1), (11, 1)]))


def test_greedy_circuits_are_right_repeatable_and_independent_of_the_batch():
    given_tables = tables(1, [(6, 2), (7, 1), (8, 1)])
    found = build_greedily(given_tables)
    assert all(equivalent(circuit, table) for circuit, table in zip(found, given_tables, strict=True))
    for circuit, table in zip(found, given_tables, strict=True):
        assert build_greedily([table])[0].to_aiger() == circuit.to_aiger()
    noisy = [[a.to_aiger() for a in build_greedily(given_tables, noise=5.0, seed=seed)] for seed in (1, 1, 2)]
    assert noisy[0] == noisy[1] != noisy[2]


def test_permuted_tables_have_their_inputs_in_the_new_order():
    (table,), order = tables(2, [(4, 2)]), np.array([2, 0, 3, 1])
    found = permuted(table, order)
    for x in range(16):
        y = sum(((x >> i) & 1) << order[i] for i in range(4))
        assert (found[:, x] == table[:, y]).all()


@pytest.mark.thorough
def test_play_outs_are_what_greedy_choices_cost_and_leave_the_circuit_as_it_is():
    given_tables = tables(3, [(6, 1)])
    building = Constructions(given_tables)
    assert building.advance()
    which, literals, _, _ = building.candidates()
    before = building._batch.state.copy()
    costs = building.play_outs(which, literals, rounds=1, noise=0.0)[0]
    assert (building._batch.state == before).all()
    for literal, cost in zip(literals[0], costs, strict=True):
        if literal:
            other = Constructions(given_tables)
            other.advance()
            other.choose(which, np.array([literal]))
            _greedy_all(0.0, 0, other._batch)
            assert other._batch.state[0, VARIABLES] - before[0, VARIABLES] == cost
            other.waiting[:] = False
            assert equivalent(other.circuits()[0], given_tables[0])
        else:
            assert cost == 0


def test_options_split_the_goal_and_look_as_documented():
    (table,) = tables(4, [(6, 1)])
    building = Constructions([table])
    building.advance()
    _, literals, bits, features = building.candidates()
    goal, column = np.where(table[0], 1, -1), np.arange(64)
    assert (bits[0, 0] == goal).all()
    assert sorted(literals[0, :12].tolist()) == list(range(2, 14)) and not literals[0, 12:].any()
    for k in range(12):
        value = np.where(((column >> (literals[0, k] // 2 - 1)) & 1) ^ (literals[0, k] & 1), 1, -1)
        assert (bits[0, 1 + k] == goal * value).all()
        inside = value == 1
        assert features[0, k, 1] == inside.sum() / 64
        assert features[0, k, 3] == pytest.approx(abs(2 * table[0, inside].mean() - 1))
    assert not bits[0, 13:].any() and not features[0, 12:].any()


def test_the_builder_gives_right_circuits_that_depend_on_text_variant_and_choices_alone():
    texts = [to_text(table) for table in tables(5, [(7, 1), (6, 2), (5, 1)])]

    def build(chosen, variants):
        building = BUILDER.start(chosen, variants)
        while building.advance():
            choices = building.choices()
            assert choices.goal.shape[1] == BUILDER.goal and choices.numbers.shape[1:] == (24, BUILDER.numbers)
            assert choices.options.shape[1] == BUILDER.options
            costs = building.play_outs(choices, choices.options >= 0, 1)
            assert (np.isinf(costs) == (choices.options < 0)).all()
            building.choose(choices, costs.argmin(1))
        found, costs = building.structures()
        assert [int(cost) for cost in costs] == [aig.num_ands for aig in found]
        return found

    together = build(texts * 2, [0, 0, 0, 1, 1, 1])
    for circuit, text in zip(together, texts * 2, strict=True):
        assert to_text(circuit.simulate()) == text
    alone = [build([text], [variant])[0] for variant in (0, 1) for text in texts]
    assert [aig.to_aiger() for aig in together] == [aig.to_aiger() for aig in alone]


# Expressions: every one that is found is right, and one is found if there is one.


@njit
def expressions(f, care, column):
    space, found, chain = np.empty((3, 200), np.int64), np.zeros(4, np.int64), np.zeros((3, 3), np.int64)
    count = len(column)
    literal = divisors.find_literal(f, care, column, count)
    flip = divisors.find_one(f, care, column, count, space[0], found)
    pair = found.copy()
    has_chain = divisors.find_chain(f, care, column, count, 2, space, chain)
    has_multiplexer = divisors.find_multiplexer(f, care, column, count, found)
    return literal, flip, pair, has_chain, chain, has_multiplexer, found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 14))
def test_expressions_are_found_if_and_only_if_there_are_any(seed, size):
    rng = np.random.default_rng(seed)
    care = sum(1 << int(x) for x in rng.choice(64, size, replace=False))
    column = np.concatenate(([0], rng.integers(0, 1 << 63, 7, dtype=np.uint64) * np.uint64(2) + np.uint64(1)))
    column = column.astype(np.uint64)
    f = int(rng.integers(0, 1 << 63))
    literal, flip, pair, has_chain, chain, has_mux, mux = expressions(np.uint64(f), np.uint64(care), column)
    words = [int(column[v // 2]) ^ (ALL if v % 2 else 0) for v in range(2 * len(column))]

    def agrees(word):
        return (word ^ f) & care == 0

    def either(word):
        return agrees(word) or agrees(word ^ ALL)

    pairs = list(itertools.combinations(range(len(words)), 2))
    assert (literal != divisors.NOTHING) == any(agrees(word) for word in words)
    if literal != divisors.NOTHING:
        assert agrees(words[literal])
        return
    assert (flip != divisors.NOTHING) == any(either(words[a] & words[b]) for a, b in pairs)
    if flip != divisors.NOTHING:
        assert agrees(words[pair[0]] & words[pair[1]] ^ (ALL if flip else 0))
        return
    ands = [words[a] & words[b] ^ flip for a, b in pairs for flip in (0, ALL)]
    assert has_chain == any(either(word & g) for word in words for g in ands)
    if has_chain:
        inside = words[chain[0, 0]] & words[chain[0, 1]] ^ (ALL if chain[0, 2] else 0)
        assert agrees(words[chain[1, 0]] & inside ^ (ALL if chain[1, 2] else 0))
    choices = itertools.product(range(len(column)), range(len(words)), range(len(words)))
    joined = (words[2 * s] & words[a] | words[2 * s + 1] & words[b] for s, a, b in choices)
    assert has_mux == any(agrees(word) for word in joined)
    if has_mux:
        s, a, b = mux[:3]
        assert agrees(words[s] & words[a] | words[s ^ 1] & words[b])
