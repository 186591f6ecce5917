from dataclasses import replace

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError
from graphbench.domains.clutrr import answer
from graphbench.domains.clutrr.noise import NOISES
from graphbench.domains.clutrr.puzzles import PuzzleParameters, draw_puzzles
from graphbench.domains.clutrr.reasoning import StoryError
from graphbench.domains.clutrr.relations import WORDS, UnknownRelation, relation_number, word_for, word_number
from graphbench.domains.clutrr.rules import RULE_SETS, UnknownRules
from graphbench.domains.clutrr.solvers import (
    ClauseTable,
    EndsGuess,
    exact_answers,
    left_fold,
    left_fold_answers,
    majority_answer,
    path_clauses,
)


def drawn(k, count=300, key=1, **values):
    return draw_puzzles(PuzzleParameters(k, **values), key, np.arange(count))


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("k", [2, 5, 10])
def test_the_reasoner_is_always_right_and_the_path_is_found(k, noise, rules):
    puzzles = drawn(k, rules=rules, noise=noise)
    assert np.array_equal(exact_answers(puzzles, rules), puzzles.answer)
    found, genders = path_clauses(puzzles)
    assert found == [tuple(map(relation_number, puzzle.clause)) for puzzle in puzzles]
    assert np.array_equal(genders, puzzles.answer % 2)


def test_the_reasoner_answers_nothing_where_there_is_no_single_answer():
    puzzles = drawn(3)
    rule_less = exact_answers(puzzles, "paper")
    for puzzle, found in zip(puzzles, rule_less, strict=True):
        try:
            expected = word_number(
                word_for(answer(puzzle.edges, puzzle.query, "paper"), puzzle.genders[puzzle.query[1]])
            )
        except StoryError:
            expected = -1
        assert found == expected
    assert 0 < np.count_nonzero(rule_less == -1) < len(puzzles)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_left_fold_is_that_of_the_path(rules):
    puzzles = drawn(4, rules=rules, noise="supporting")
    folded = left_fold_answers(puzzles, rules)
    for puzzle, found in zip(puzzles, folded, strict=True):
        head = left_fold(puzzle.clause, rules)
        word = None if head is None else word_for(head, puzzle.genders[puzzle.query[1]])
        assert found == (-1 if word is None else word_number(word))
    assert 0.2 < (folded == puzzles.answer).mean() < 0.8
    assert np.array_equal(left_fold_answers(drawn(2, rules=rules), rules), drawn(2, rules=rules).answer)


def test_left_fold():
    assert left_fold(["SO", "child", "sibling"]) == "child"
    assert left_fold(["child", "inv-un", "child"]) is None
    assert left_fold(["child", "inv-un"], "paper") == "sibling"
    assert left_fold(["un"]) == "un"


def test_the_table_knows_the_clauses_it_has_seen():
    train = drawn(3, 2000, held_out="avoid")
    table = ClauseTable.fit(train)
    assert np.array_equal(table.predict(train), train.answer)
    unseen = drawn(3, held_out="only")
    assert set(table.predict(unseen)) == {table.fallback} == {majority_answer(train)}
    counts = np.bincount(train.answer, minlength=len(WORDS))
    assert counts[table.fallback] == counts.max()


def test_a_guess_from_two_facts_is_that_of_naive_bayes():
    train, puzzles = drawn(3, 400, noise="irrelevant"), drawn(5, 200, key=2, noise="supporting")
    guess = EndsGuess.fit(train)
    ends = [[(path[0][2], path[-1][2]) for path in (p.path for p in some)] for some in (train, puzzles)]
    places = [np.array([[word_number(word) for word in pair] for pair in some]) for some in ends]
    size = len(WORDS)
    expected = np.empty((len(puzzles), size))
    for answer_number in range(size):
        own = places[0][train.answer == answer_number]
        chance = np.full(len(puzzles), (len(own) + 1) / (len(train.answer) + size))
        for column in range(2):
            counts = np.bincount(own[:, column], minlength=size) + 1
            chance *= counts[places[1][:, column]] / (len(own) + size)
        expected[:, answer_number] = chance
    assert np.array_equal(guess.predict(puzzles), expected.argmax(axis=1))
    right = (guess.predict(puzzles) == puzzles.answer).mean()
    assert (majority_answer(train) == puzzles.answer).mean() + 0.1 < right < 0.9


def test_a_guess_sees_the_ends_of_the_path_alone():
    train, puzzles = drawn(3, 2000), drawn(3, 300, key=5)
    answers: dict[tuple[str, str], set[int]] = {}
    for puzzle, found in zip(puzzles, EndsGuess.fit(train).predict(puzzles), strict=True):
        answers.setdefault((puzzle.path[0][2], puzzle.path[-1][2]), set()).add(int(found))
    assert {len(found) for found in answers.values()} == {1}


def test_puzzles_without_a_path():
    puzzles = drawn(2, 20)
    swapped = replace(puzzles, asker=puzzles.asked, asked=puzzles.asker)
    assert path_clauses(swapped)[0] == [()] * 20
    assert set(left_fold_answers(swapped)) == {-1}
    table = ClauseTable.fit(puzzles)
    assert set(table.predict(swapped)) == {table.fallback}
    assert set(EndsGuess.fit(puzzles).predict(swapped)) == {majority_answer(puzzles)}


def test_no_puzzles():
    none = drawn(2, 0)
    assert len(exact_answers(none)) == len(left_fold_answers(none)) == 0
    for fit in (ClauseTable.fit, EndsGuess.fit, majority_answer):
        with pytest.raises(StoryError, match="give at least one"):
            fit(none)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: left_fold([]), StoryError),
        (lambda: left_fold(["son"]), UnknownRelation),
        (lambda: left_fold(["child", "child"], "all"), UnknownRules),
        (lambda: exact_answers(drawn(2, 1), "all"), UnknownRules),
    ],
)
def test_errors(ask, error):
    with pytest.raises(error):
        ask()


@pytest.mark.parametrize("solver", [exact_answers, path_clauses])
@pytest.mark.parametrize("value", [-1, 2**40])
@pytest.mark.parametrize("name", ["edges", "relation", "asker", "asked", "num_edges"])
def test_questions_that_were_changed_are_refused(solver, name, value):
    puzzles = drawn(2, 3)
    array = np.array(getattr(puzzles, name), np.int64)
    array.reshape(-1)[-1] = value
    with pytest.raises(ArgumentError):
        solver(replace(puzzles, **{name: array}))
