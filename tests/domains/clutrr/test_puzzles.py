import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.domains.clutrr import draw_puzzles, solve
from graphbench.domains.clutrr.clauses import ClauseError, clause_of, clauses, held_out
from graphbench.domains.clutrr.families import FamilyError, FamilyParameters
from graphbench.domains.clutrr.noise import NOISES
from graphbench.domains.clutrr.puzzle_checks import check_puzzles
from graphbench.domains.clutrr.puzzles import PuzzleError, PuzzleParameters, Puzzles
from graphbench.domains.clutrr.relations import INVERSE, NEUTRAL, WORDS, relation_of_word
from graphbench.domains.clutrr.rules import RULE_SETS, UnknownRules

ARRAYS = [name for name in Puzzles.__dataclass_fields__ if name != "k"]
ANY_PARAMETERS = st.builds(
    PuzzleParameters, k=st.integers(2, 10), rules=st.sampled_from(RULE_SETS), noise=st.sampled_from(NOISES)
)


def drawn(count=200, key=5, **values):
    return draw_puzzles(PuzzleParameters(**values), key, np.arange(count))


# --- right puzzles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("k", [2, 3, 4, 7, 10])
def test_puzzles_are_right(k, noise, rules):
    parameters, indices = PuzzleParameters(k, rules, noise), np.arange(30, 90)
    attempts = indices % 3
    puzzles = draw_puzzles(parameters, 2**63 + 9, indices, attempts)
    assert check_puzzles(puzzles, parameters, 2**63 + 9, indices, attempts) == []


@pytest.mark.parametrize("mode", ["avoid", "only"])
@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_clauses_held_out_are_avoided_or_the_only_ones(k, rules, mode):
    parameters, indices = PuzzleParameters(k, rules, held_out=mode, share=0.2, held_out_seed=3), np.arange(60)
    puzzles = draw_puzzles(parameters, 1, indices)
    assert check_puzzles(puzzles, parameters, 1, indices) == []
    listed = held_out(rules, k, 0.2, 3)
    own = {tuple(word for _, _, word in p.path) if k == 2 else p.clause for p in puzzles}
    assert own <= set(listed) if mode == "only" else not own & set(listed)


@pytest.mark.parametrize(
    "family", [FamilyParameters(5, 2, 2), FamilyParameters(3, 0, 9, 0.4), FamilyParameters(2, 1, 9)]
)
def test_other_families(family):
    parameters, indices = PuzzleParameters(4, noise="disconnected", family=family), np.arange(60)
    assert check_puzzles(draw_puzzles(parameters, 1, indices), parameters, 1, indices) == []


def change(puzzles, name, at, value):
    array = getattr(puzzles, name).copy()
    array[at] = value
    return replace(puzzles, **{name: array})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: change(p, "answer", 0, (p.answer[0] + 2) % 22),
        lambda p: change(p, "answer", 0, p.answer[0] ^ 1),
        lambda p: change(p, "relation", 0, (p.relation[0] + 2) % 22),
        lambda p: change(p, "relation", 0, p.relation[0] ^ 1),
        lambda p: change(p, "gender", slice(0, 4), p.gender[:4] ^ 1),
        lambda p: change(p, "edges", 0, p.edges[0, ::-1]),
        lambda p: change(p, "edges", slice(0, 2), p.edges[1::-1]),
        lambda p: change(p, "role", 0, (p.role[0] + 1) % 4),
        lambda p: change(p, "role", p.role == 1, 2),
        lambda p: change(p, "step", p.step == 0, 1),
        lambda p: change(p, "step", p.step == -1, 0),
        lambda p: change(p, "asker", 0, p.asked[0]),
        lambda p: replace(p, asker=p.asked, asked=p.asker),
        lambda p: change(p, "clause", 0, p.clause[0] + 1),
        lambda p: change(p, "member", 0, p.member[1]),
        lambda p: change(p, "member", slice(0, 2), p.member[1::-1]),
        lambda p: change(p, "draw", 0, p.draw[0] + 1),
    ],
)
def test_checks_find_what_is_spoiled(spoil):
    parameters, indices = PuzzleParameters(4, noise="supporting"), np.arange(3)
    puzzles = draw_puzzles(parameters, 8, indices)
    assert check_puzzles(puzzles, parameters, 8, indices) == []
    assert check_puzzles(spoil(puzzles), parameters, 8, indices) != []


def test_checks_find_clauses_that_are_not_wanted():
    indices = np.arange(80)
    puzzles = drawn(80, key=1, k=3)
    for mode in ("avoid", "only"):
        found = check_puzzles(puzzles, PuzzleParameters(3, held_out=mode), 1, indices)
        assert 0 < len(found) < 80
        assert all(f"held_out is {mode}" in line for line in found)


# --- properties ------------------------------------------------------------------------------------------------------


def one(parameters, key):
    return draw_puzzles(parameters, key, np.array([0]))[0]


@settings(max_examples=60, deadline=None)
@given(ANY_PARAMETERS, st.integers(0, 2**64 - 1), st.randoms(use_true_random=False))
def test_relabelling_people_changes_nothing(parameters, key, rng):
    puzzle = one(parameters, key)
    names = list(range(100, 100 + len(puzzle.genders)))
    rng.shuffle(names)
    facts = [(names[x], names[y], relation) for x, y, relation in puzzle.edges]
    rng.shuffle(facts)
    x, y = puzzle.query
    assert solve(facts, (names[x], names[y]), parameters.rules) == {relation_of_word(puzzle.answer)}


@settings(max_examples=40, deadline=None)
@given(ANY_PARAMETERS.filter(lambda p: p.rules == "sound"), st.integers(0, 2**64 - 1))
def test_swapping_the_question_inverts_the_answer(parameters, key):
    puzzle = one(parameters, key)
    assert solve(puzzle.edges, puzzle.query[::-1]) == {INVERSE[relation_of_word(puzzle.answer)]}


@settings(max_examples=60, deadline=None)
@given(ANY_PARAMETERS.filter(lambda p: p.noise != "none"), st.integers(0, 2**64 - 1))
def test_removing_noise_keeps_the_answer(parameters, key):
    puzzle = one(parameters, key)
    story = [edge for edge, role in zip(puzzle.edges, puzzle.roles, strict=True) if role == "path"]
    assert len(puzzle.edges) > len(story) == parameters.k
    assert solve(story, puzzle.query, parameters.rules) == {relation_of_word(puzzle.answer)}


@settings(max_examples=40, deadline=None)
@given(ANY_PARAMETERS.filter(lambda p: p.noise == "none"), st.integers(0, 2**64 - 1), st.data())
def test_every_fact_of_a_path_is_needed(parameters, key, data):
    puzzle = one(parameters, key)
    left_out = data.draw(st.integers(0, parameters.k - 1))
    rest = [edge for i, edge in enumerate(puzzle.edges) if i != left_out]
    told = {person for edge in rest for person in edge[:2]}
    assert not set(puzzle.query) <= told or solve(rest, puzzle.query, parameters.rules) == frozenset()


# --- determinism -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_puzzle_is_a_function_of_its_index(rules):
    parameters = PuzzleParameters(4, rules, "supporting")
    whole = draw_puzzles(parameters, 3, np.arange(50))
    some = draw_puzzles(parameters, 3, np.array([40, 7, 7, 21], np.int32))
    assert list(some) == [whole[40], whole[7], whole[7], whole[21]]
    again = draw_puzzles(parameters, 3, np.arange(50), np.zeros(50, np.int64))
    assert all(np.array_equal(getattr(whole, name), getattr(again, name)) for name in ARRAYS)
    assert whole[0] != draw_puzzles(parameters, 4, np.array([0]))[0]
    assert whole[0] != draw_puzzles(parameters, 3, np.array([0]), np.array([1]))[0]
    assert len(draw_puzzles(parameters, 3, np.array([], np.int64))) == 0


def test_arrays_and_view():
    puzzles = drawn(5, k=3, noise="irrelevant")
    assert len(puzzles) == len(list(puzzles)) == 5
    assert {name: getattr(puzzles, name).dtype for name in ("edges", "relation", "gender", "answer", "clause")} == {
        "edges": np.int32,
        "relation": np.int8,
        "gender": np.int8,
        "answer": np.int8,
        "clause": np.int64,
    }
    assert puzzles.node_ptr[-1] == len(puzzles.gender) == len(puzzles.member)
    assert puzzles.edge_ptr[-1] == len(puzzles.edges) == len(puzzles.role) == len(puzzles.step)
    last = puzzles[-1]
    assert last == puzzles[4]
    assert [x for x, _, _ in last.path] + [last.query[1]] == [last.query[0]] + [y for _, y, _ in last.path]
    assert tuple(relation_of_word(word) for _, _, word in last.path) == last.clause
    with pytest.raises(IndexError, match="puzzle 5 of 5"):
        puzzles[5]


# --- distributions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4, 10])
def test_sound_answers_are_as_likely_as_each_other(k):
    answers = drawn(4000, k=k).answer // 2
    assert stats.chisquare(np.bincount(answers, minlength=11)).pvalue > 1e-3


def test_paper_asks_for_any_fact_of_its_family():
    """Its 554 facts are 42 of spouses, which no rule concludes, and these."""
    answers = Counter(NEUTRAL[a // 2] for a in drawn(6000, k=2, rules="paper").answer)
    facts = {"sibling": 96, "un": 96, "inv-un": 96, "child": 45, "inv-child": 45, "in-law": 35, "inv-in-law": 35}
    facts |= {"grand": 32, "inv-grand": 32}
    assert set(answers) == set(facts)
    expected = np.array(list(facts.values())) * 6000 / sum(facts.values())
    shares = np.array([answers[r] for r in facts]) / expected
    assert (np.abs(shares - 1) < 0.2).all(), shares


@pytest.mark.parametrize("noise", ["none", "disconnected"])
def test_numbers_of_people_and_order_tell_nothing(noise):
    puzzles = drawn(4000, k=3, noise=noise)
    four = puzzles.num_nodes == puzzles.num_nodes.min()
    for people in (puzzles.asker[four], puzzles.asked[four]):
        assert stats.chisquare(np.bincount(people)).pvalue > 1e-3
    if noise == "none":
        first_step = puzzles.step[puzzles.edge_ptr[:-1]]
        counts = np.bincount(first_step, minlength=3)
        assert counts.min() > 0.25 * len(puzzles)


def test_people_have_both_genders():
    puzzles = drawn(2000, k=3)
    assert abs(puzzles.gender.mean() - 0.5) < 0.03
    assert {WORDS[word] for word in puzzles.answer} == set(WORDS)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_clauses_drawn_are_those_listed(rules, k):
    found = {clause_of(code, k) for code in drawn(20_000, k=k, rules=rules).clause.tolist()}
    listed = set(clauses(rules, k))
    assert found <= listed
    assert len(found) > 0.98 * len(listed)


def test_rules_are_drawn_before_people():
    """A grandchild of three facts is first resolved by one of the rules, each as likely, however many people fit."""
    puzzles = drawn(6000, k=2)
    of_grandchild = Counter(clause_of(c, 2) for c, a in zip(puzzles.clause, puzzles.answer, strict=True) if a // 2 == 5)
    assert set(of_grandchild) == {("child", "child"), ("SO", "grand"), ("in-law", "child"), ("grand", "sibling")}
    always = [of_grandchild[clause] for clause in (("child", "child"), ("in-law", "child"), ("SO", "grand"))]
    assert stats.chisquare(always).pvalue > 1e-3


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"k": 1}, PuzzleError, "k is 1.*2 to 10"),
        ({"k": 11}, PuzzleError, "k is 11"),
        ({"k": 3.0}, PuzzleError, "k is 3.0"),
        ({"k": 3, "rules": "sond"}, UnknownRules, "did you mean 'sound'"),
        ({"k": 3, "noise": "loud"}, PuzzleError, "noise is 'loud'.*supporting"),
        ({"k": 3, "held_out": "some"}, PuzzleError, "held_out is 'some'.*avoid"),
        ({"k": 5, "held_out": "avoid"}, PuzzleError, "held_out is 'avoid' for k = 5.*4"),
        ({"k": 3, "held_out": "only", "share": 0.0}, PuzzleError, "share of 0.0.*raise"),
        ({"k": 3, "held_out": "only", "share": 2}, ClauseError, "share is 2; give a number from 0 to 1"),
        ({"k": 3, "rules": "paper", "family": FamilyParameters()}, FamilyError, "the paper's rules need one family"),
        ({"k": 10, "family": FamilyParameters(2, 1, 4)}, PuzzleError, "11 people.*at most 10"),
        (
            {"k": 8, "noise": "disconnected", "family": FamilyParameters(2, 1, 4)},
            PuzzleError,
            "k = 8.*'disconnected' needs 11 people.*lower k",
        ),
    ],
)
def test_parameters_out_of_range(values, error, message):
    with pytest.raises(error, match=message):
        PuzzleParameters(**values)


def test_attempts_are_as_many_as_indices():
    with pytest.raises(PuzzleError, match="give one of each"):
        draw_puzzles(PuzzleParameters(2), 1, np.arange(3), np.zeros(2, np.int64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, [0]), r"key is -1.*0 to 2\*\*64 - 1"),
        ((2**64, [0]), "key is 18446744073709551616"),
        ((None, [0]), "key is None"),
        (("a", [0]), "key is 'a'"),
        ((1, [0, -1]), "indices has -1.*0"),
        ((1, np.array([2**63], np.uint64)), "indices has 9223372036854775808"),
        ((1, ["a"]), r"indices is \['a'\].*list"),
        ((1, "a"), "indices is 'a'"),
        ((1, 3), "indices is 3"),
        ((1, None), "indices is None"),
        ((1, [0.5]), r"indices is \[0.5\]"),
        ((1, [[0], [1, 2]]), r"indices is \[\[0\], \[1, 2\]\]"),
        ((1, np.zeros((2, 2), np.int64)), "indices is array"),
        ((1, [0], [-1]), "attempts has -1"),
        ((1, [0], [True]), r"attempts is \[True\]"),
    ],
)
def test_keys_and_places_that_do_not_exist(arguments, message):
    with pytest.raises(PuzzleError, match=message):
        draw_puzzles(PuzzleParameters(2), *arguments)


def test_no_indices_draw_nothing_and_lists_are_as_good_as_arrays():
    assert len(draw_puzzles(PuzzleParameters(2), 1, [])) == 0
    drawn_at = [draw_puzzles(PuzzleParameters(3), np.uint64(7), i) for i in ([0, 5], range(0, 6, 5), np.array([0, 5]))]
    assert len({tuple(puzzles) for puzzles in drawn_at}) == 1
    with pytest.raises(TypeError, match="puzzle 'a' of 2: give a whole number"):
        drawn_at[0]["a"]


def test_puzzles_that_fit_nowhere_are_an_error_soon():
    drawn(1, k=2)
    parameters = PuzzleParameters(6, "paper", family=FamilyParameters(4, 1, 1, 1.0))
    start = time.perf_counter()
    with pytest.raises(PuzzleError, match=r"k = 6, rules 'paper'.*131072 families"):
        draw_puzzles(parameters, 1, np.arange(1000))
    assert time.perf_counter() - start < 10
