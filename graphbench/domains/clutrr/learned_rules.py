"""A learner of rules without weights: the compositions that training puzzles determine, and what follows from them.

A rule says which relation two consecutive relations compose to. A puzzle of two facts states a rule. A longer puzzle
determines a rule if one rule alone, added to the rules at hand, derives the puzzle's answer and contradicts no training
puzzle. The learner repeats this until no puzzle determines another rule. It answers a puzzle if its rules derive one
relation along the path, by any order of composition, and abstains otherwise: the share of answered puzzles is what the
training facts determine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clutrr.charts import chart_of
from graphbench.domains.clutrr.solvers import NO_ANSWER, Clauses, Questions, majority_answer, path_clauses, words_of

Rule = tuple[tuple[int, int], int]
Rules = Mapping[tuple[int, int], int]
Examples = Mapping[tuple[int, ...], int]


@dataclass(frozen=True)
class LearnedRules:
    """Rules that were learned from puzzles.

    Attributes:
        compositions: Two relations by number -> the relation that they compose to.
        fallback: Word by number, the answer to puzzles on which the learner abstains.
    """

    compositions: Rules
    fallback: int

    @classmethod
    def fit(cls, questions: Questions) -> LearnedRules:
        """Return the rules that some puzzles determine.

        Clauses with several answers, and puzzles without a path, are left out: no set of rules explains them.

        Raises:
            StoryError: If there are no puzzles.
        """
        clauses, _ = path_clauses(questions)
        return cls(learned_compositions(_examples(clauses, questions)), majority_answer(questions))

    def derived(self, questions: Questions) -> NDArray[np.int8]:
        """Return the derived answers: ``int8[S]`` words by number, -1 where the rules do not derive one relation."""
        clauses, genders = path_clauses(questions)
        heads: dict[tuple[int, ...], int] = {}
        for clause in set(clauses):
            derived = _heads(clause, self.compositions)
            heads[clause] = derived.pop() if len(derived) == 1 else NO_ANSWER
        return words_of([heads[clause] for clause in clauses], genders)

    def predict(self, questions: Questions) -> NDArray[np.int8]:
        """Return the derived answers, and the fallback where there is none: ``int8[S]`` words by number."""
        words = self.derived(questions)
        return np.where(words == NO_ANSWER, self.fallback, words).astype(np.int8)


def learned_compositions(examples: Examples) -> dict[tuple[int, int], int]:
    """Return the rules that examples determine.

    Args:
        examples: Relations along a path -> the relation that they compose to.
    """
    rules = {(clause[0], clause[1]): head for clause, head in examples.items() if len(clause) == 2}
    longer = {clause: head for clause, head in sorted(examples.items()) if len(clause) > 2}
    while longer:
        longer = {clause: head for clause, head in longer.items() if not _heads(clause, rules)}
        determined = {rule for clause, head in longer.items() for rule in _determined(clause, head, rules, examples)}
        agreed = {pair: head for pair, head in determined if len({h for p, h in determined if p == pair}) == 1}
        if not agreed:
            break
        rules |= agreed
    return rules


def _examples(clauses: Clauses, questions: Questions) -> Examples:
    heads: dict[tuple[int, ...], set[int]] = {}
    for clause, word in zip(clauses, questions.answer.tolist(), strict=True):
        heads.setdefault(clause, set()).add(word // 2)
    return {clause: min(relations) for clause, relations in heads.items() if len(relations) == 1 and len(clause) > 1}


def _heads(clause: tuple[int, ...], rules: Rules) -> set[int]:
    """Return the relations that the rules derive along a path."""
    return set(chart_of(clause, rules)[0, len(clause)]) if clause else set()


def _determined(clause: tuple[int, ...], head: int, rules: Rules, examples: Examples) -> list[Rule]:
    """Return the only rule that explains an example and contradicts none; no rule if there are several."""
    fitting = [rule for rule in set(_explaining(clause, head, rules)) if _consistent(rule, rules, examples)]
    return fitting if len(fitting) == 1 else []


def _explaining(clause: tuple[int, ...], head: int, rules: Rules) -> Iterator[Rule]:
    """Yield the rules that are missing for the last composition of an example, where both of its parts are derived."""
    chart, length = chart_of(clause, rules), len(clause)
    for middle in range(1, length):
        for first in chart[0, middle]:
            for second in chart[middle, length]:
                if (first, second) not in rules:
                    yield (first, second), head


def _consistent(rule: Rule, rules: Rules, examples: Examples) -> bool:
    """Return whether an additional rule derives nothing but the answer for every example."""
    pair, head = rule
    extended = {**rules, pair: head}
    return all(_heads(clause, extended) <= {answer} for clause, answer in examples.items())
