"""The learner of rules: rules that puzzles state or determine, and nothing where puzzles leave a choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphbench.catalog.names import catalog
from graphbench.domains.clutrr.learned_rules import LearnedRules, learned_compositions
from graphbench.domains.clutrr.puzzles import PuzzleParameters, Puzzles, draw_puzzles
from graphbench.domains.clutrr.reasoning import StoryError
from graphbench.domains.clutrr.relations import relation_number
from graphbench.domains.clutrr.rules import RULE_SETS, rule_set
from graphbench.domains.clutrr.solvers import exact_answers, majority_answer

A, B, C, D, E = range(5)


def drawn(k: int, count: int = 300, key: int = 1, **values: object) -> Puzzles:
    return draw_puzzles(PuzzleParameters(k, **values), key, np.arange(count))


@pytest.mark.parametrize("rules", RULE_SETS)
def test_puzzles_of_two_facts_state_the_rules_that_longer_puzzles_follow(rules: str) -> None:
    learned = LearnedRules.fit(drawn(2, 3000, rules=rules, held_out="avoid"))
    truth = {
        (relation_number(r1), relation_number(r2)): relation_number(r)
        for (r1, r2), r in rule_set(rules).compositions.items()
    }
    assert learned.compositions == truth
    for k, noise in ((3, "supporting"), (5, "irrelevant"), (8, "none")):
        puzzles = drawn(k, key=2, rules=rules, noise=noise)
        assert np.array_equal(learned.derived(puzzles), exact_answers(puzzles, rules))
        assert np.array_equal(learned.predict(puzzles), puzzles.answer)


def test_the_learner_abstains_where_nothing_follows() -> None:
    puzzles = drawn(2, 400)
    few = LearnedRules.fit(puzzles)
    pair = next(iter(few.compositions))
    poorer = LearnedRules({pair: few.compositions[pair]}, few.fallback)
    derived = poorer.derived(puzzles)
    assert 0 < np.count_nonzero(derived == -1) < len(derived)
    assert np.array_equal(derived[derived >= 0], puzzles.answer[derived >= 0])
    assert set(poorer.predict(puzzles)[derived == -1].tolist()) == {majority_answer(puzzles)}
    swapped = replace(puzzles, asker=puzzles.asked, asked=puzzles.asker)
    assert set(few.derived(swapped).tolist()) == {-1}


def test_a_longer_example_determines_a_missing_rule() -> None:
    assert learned_compositions({(A, B): C, (A, B, D): E}) == {(A, B): C, (C, D): E}
    chain = {(A, B): C, (A, B, D): E, (A, B, D, D): A}
    assert learned_compositions(chain) == {(A, B): C, (C, D): E, (E, D): A}


def test_a_choice_between_two_rules_is_left_open_until_an_example_contradicts_one() -> None:
    choice = {(A, B): C, (B, D): D, (A, B, D): E}  # either (C, D) or (A, D) gives E
    assert learned_compositions(choice) == {(A, B): C, (B, D): D}
    decided = {**choice, (E, B): A, (A, D, B): C}  # if (A, D) gave E, the last example would be A
    assert learned_compositions(decided) == {(A, B): C, (B, D): D, (E, B): A, (C, D): E}


def test_examples_that_need_two_rules_at_once_teach_nothing() -> None:
    assert learned_compositions({(A, B, C): D}) == {}


def test_contradictory_answers_and_no_puzzles() -> None:
    puzzles = drawn(2, 50)
    other = puzzles.answer.copy()
    other[:] = (other + 2) % 22
    both = {
        name: np.concatenate([getattr(puzzles, name)] * 2)
        for name in ("num_nodes", "num_edges", "edges", "relation", "asker", "asked")
    }
    assert LearnedRules.fit(Both(**both, answer=np.concatenate([puzzles.answer, other]))).compositions == {}
    with pytest.raises(StoryError):
        LearnedRules.fit(drawn(2, 0))


class Both:
    """Questions from arrays."""

    def __init__(self, **arrays: np.ndarray) -> None:
        self.__dict__.update(arrays)


def test_the_cards_say_what_the_training_puzzles_determine() -> None:
    cards = [card for card in catalog().cards.values() if card.domain == "clutrr"]
    assert len(cards) == 12
    for card in cards:
        for split, solvers in card.solvers.items():
            scores = solvers["learned_rules"]
            assert 0.0 <= scores["coverage"] <= 1.0, split
            assert scores["accuracy"] <= solvers["exact_reasoner"]["accuracy"]
