"""Reference solvers: an exact reasoner, a left fold, a table of clauses, a guess from two facts, the commonest answer.

Every fact on the asked person shows the gender, so all solvers but the last need to find only the relation. A
solver that follows the path takes the shortest path along the facts: noise never makes a shorter one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.core.kernels import kernel
from graphbench.domains.clutrr.deduction import MASKS, Deduction, deduction_tables, derive_all, note
from graphbench.domains.clutrr.reasoning import StoryError, compose
from graphbench.domains.clutrr.relations import NEUTRAL, NUM_RELATIONS, WORDS, relation_number

NO_ANSWER = -1
Clauses = list[tuple[int, ...]]
_Array = NDArray[np.int64]


class Questions(Protocol):
    """The input of solvers: arrays of ``Puzzles`` with these names; only the fitting of solvers reads ``answer``."""

    @property
    def num_nodes(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def num_edges(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def edges(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def relation(self) -> NDArray[np.int8]: ...  # noqa: D102
    @property
    def asker(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def asked(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def answer(self) -> NDArray[np.int8]: ...  # noqa: D102


def exact_answers(questions: Questions, rules: str = "sound") -> NDArray[np.int8]:
    """Return the only derivable answer of every question: ``int8[S]`` words by number, -1 if there is not exactly one.

    Args:
        questions: Puzzles.
        rules: ``sound`` or ``paper``.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    return _exact_answers(*_arrays(questions), deduction_tables(rules))


def left_fold(relations: Iterable[str], rules: str = "sound") -> str | None:
    """Compose relations from left to right; return None where the rules conclude nothing.

    Raises:
        UnknownRelation: If the relation is unknown.
        UnknownRules: If the set of rules is unknown.
        ValueError: If there are no relations.
    """
    steps = list(relations)
    if not steps:
        raise StoryError("a fold of no relations; give at least one")
    return reduce(lambda r1, r2: None if r1 is None else compose(r1, r2, rules), steps[1:], _checked_relation(steps[0]))


def left_fold_answers(questions: Questions, rules: str = "sound") -> NDArray[np.int8]:
    """Return the answers of a left fold along the path: ``int8[S]`` words by number, -1 if it finds no answer.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    clauses, genders = path_clauses(questions)
    folded: dict[tuple[int, ...], int] = {}
    for clause in set(clauses):
        head = left_fold((NEUTRAL[r] for r in clause), rules) if clause else None
        folded[clause] = NO_ANSWER if head is None else relation_number(head)
    return words_of([folded[clause] for clause in clauses], genders)


@dataclass(frozen=True)
class ClauseTable:
    """A table from clauses to their most frequent answer.

    Attributes:
        answers: Relations of a clause by number -> relation.
        fallback: Word by number, the answer to clauses that are not in the table.
    """

    answers: dict[tuple[int, ...], int]
    fallback: int

    @classmethod
    def fit(cls, questions: Questions) -> ClauseTable:
        """Return the table of the clauses and answers of some puzzles.

        Raises:
            StoryError: If there are no puzzles.
        """
        counts: dict[tuple[int, ...], Counter[int]] = {}
        clauses, _ = path_clauses(questions)
        for clause, word in zip(clauses, questions.answer.tolist(), strict=True):
            counts.setdefault(clause, Counter())[word // 2] += 1
        answers = {clause: _most_frequent(counter) for clause, counter in counts.items()}
        return cls(answers, majority_answer(questions))

    def predict(self, questions: Questions) -> NDArray[np.int8]:
        """Return the answers of the table: ``int8[S]`` words by number."""
        clauses, genders = path_clauses(questions)
        words = words_of([self.answers.get(clause, NO_ANSWER) for clause in clauses], genders)
        return np.where(words == NO_ANSWER, self.fallback, words).astype(np.int8)


@dataclass(frozen=True)
class EndsGuess:
    """A naive Bayes classifier with two inputs: the words of the first and of the last fact of the path.

    A model may reach the accuracy of this classifier without composing any facts.

    Attributes:
        prior: float64 ``[22]``, log probability of every answer.
        first: float64 ``[22, 22]``, log probability of the first fact's word given the answer (rows).
        last: float64 ``[22, 22]``, log probability of the last fact's word given the answer (rows).
    """

    prior: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]

    @classmethod
    def fit(cls, questions: Questions) -> EndsGuess:
        """Return the classifier of some puzzles; every count begins at one.

        Raises:
            StoryError: If there are no puzzles.
        """
        if len(questions.answer) == 0:
            raise StoryError("a guess from no puzzles; give at least one")
        first, last, has_path = _path_ends(questions)
        answers = np.asarray(questions.answer, np.int64)
        tables = []
        for words in (first, last):
            counts = np.ones((len(WORDS), len(WORDS)))
            np.add.at(counts, (answers[has_path], words[has_path]), 1)
            tables.append(np.log(counts / counts.sum(axis=1, keepdims=True)))
        prior = np.bincount(answers, minlength=len(WORDS)) + 1.0
        return cls(np.log(prior / prior.sum()), *tables)

    def predict(self, questions: Questions) -> NDArray[np.int8]:
        """Return the most probable answers: ``int8[S]`` words by number, the first one in case of a tie."""
        first, last, has_path = _path_ends(questions)
        seen = self.first[:, first] + self.last[:, last]
        return np.argmax(self.prior[:, None] + np.where(has_path, seen, 0.0), axis=0).astype(np.int8)


def majority_answer(questions: Questions) -> int:
    """Return the most frequent answer of some puzzles, the first one in case of a tie.

    Raises:
        StoryError: If there are no puzzles.
    """
    if len(questions.answer) == 0:
        raise StoryError("the most frequent answer of no puzzles; give at least one")
    return _most_frequent(Counter(questions.answer.tolist()))


def path_clauses(questions: Questions) -> tuple[Clauses, NDArray[np.int64]]:
    """Return the relations along the shortest path of every puzzle, and the gender of the asked person.

    A puzzle without a path has no relations, and gender 0.
    """
    words, lengths = _shortest_paths(*_arrays(questions))
    rows = zip(words.tolist(), lengths.tolist(), strict=True)
    clauses = [tuple(word // 2 for word in row[:length]) for row, length in rows]
    last = words[np.arange(len(words)), np.maximum(lengths - 1, 0)]
    return clauses, np.where(lengths > 0, last % 2, 0)


def _path_ends(questions: Questions) -> tuple[_Array, _Array, NDArray[np.bool_]]:
    """Return the words of the first and the last fact of every path, 0 without a path, and a mask of existing paths."""
    words, lengths = _shortest_paths(*_arrays(questions))
    has_path = lengths > 0
    ends = [words[np.arange(len(words)), column] for column in (np.zeros_like(lengths), np.maximum(lengths - 1, 0))]
    first, last = (np.where(has_path, end, 0) for end in ends)
    return first, last, has_path


def _arrays(questions: Questions) -> tuple[_Array, _Array, _Array, _Array, _Array, _Array]:
    """Return the arrays of questions as int64, which the compiled functions read.

    Raises:
        ArgumentError: If the arrays do not fit together, or an array names an unknown person or relation.
    """
    arrays = (
        np.ascontiguousarray(questions.num_nodes, np.int64),
        np.ascontiguousarray(questions.num_edges, np.int64),
        np.ascontiguousarray(questions.edges, np.int64),
        np.ascontiguousarray(questions.relation, np.int64),
        np.ascontiguousarray(questions.asker, np.int64),
        np.ascontiguousarray(questions.asked, np.int64),
    )
    nodes, counts, edges, relation, asker, asked = arrays
    people = all(array.shape == nodes.shape for array in (counts, asker, asked)) and nodes.ndim == 1
    total = int(counts.sum())
    if not people or counts.min(initial=0) < 0 or edges.shape != (total, 2) or relation.shape != (total,):
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise ArgumentError(f"the arrays of {len(nodes)} questions with {total} facts have the shapes {shapes}")
    limits = ((edges, np.repeat(nodes, counts)[:, None]), (relation, 2 * NUM_RELATIONS), (asker, nodes), (asked, nodes))
    for array, limit in limits:
        if (wrong := (array < 0) | (array >= limit)).any():
            raise ArgumentError(f"a question names {array[wrong][0]}, which is no person or relation of it")
    return arrays


def _checked_relation(relation: str) -> str | None:
    return NEUTRAL[relation_number(relation)]


def _most_frequent(counter: Counter[int]) -> int:
    return min(counter, key=lambda number: (-counter[number], number))


def words_of(relations: list[int], genders: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the words for relations and genders by number, ``int8[S]``; -1 where there is no relation."""
    numbers = np.array(relations, np.int64)
    return np.where(numbers >= 0, 2 * numbers + genders, NO_ANSWER).astype(np.int8)


@kernel
def _exact_answers(
    num_nodes: NDArray[np.int64],
    num_edges: NDArray[np.int64],
    edges: NDArray[np.int64],
    relation: NDArray[np.int64],
    asker: NDArray[np.int64],
    asked: NDArray[np.int64],
    deduction: Deduction,
) -> NDArray[np.int8]:
    max_people = max(1, num_nodes.max()) if num_nodes.shape[0] > 0 else 1
    derived = np.empty((max_people, max_people), np.uint16)
    open_facts = np.empty(max_people * max_people * NUM_RELATIONS, np.int64)
    relation_of = np.full(MASKS, NO_ANSWER, np.int64)
    for r in range(NUM_RELATIONS):
        relation_of[1 << r] = r
    answers = np.full(num_nodes.shape[0], NO_ANSWER, np.int8)
    first = 0
    for s in range(num_nodes.shape[0]):
        derived[:] = 0
        num_open, gender = 0, 0
        for e in range(first, first + num_edges[s]):
            num_open = note(
                derived,
                open_facts,
                num_open,
                edges[e, 0],
                edges[e, 1],
                np.uint16(1 << relation[e] // 2),
            )
            if edges[e, 1] == asked[s]:
                gender = relation[e] % 2
        derive_all(derived, num_nodes[s], open_facts, num_open, deduction)
        answer = relation_of[derived[asker[s], asked[s]]]
        if answer >= 0:
            answers[s] = 2 * answer + gender
        first += num_edges[s]
    return answers


@kernel
def _shortest_paths(
    num_nodes: NDArray[np.int64],
    num_edges: NDArray[np.int64],
    edges: NDArray[np.int64],
    relation: NDArray[np.int64],
    asker: NDArray[np.int64],
    asked: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words along the shortest path of each puzzle, -1 behind its end, and its length, 0 for no path.

    The search starts at the asked person and goes against the direction of the facts. Among shortest paths, it
    takes the path with the earliest facts.
    """
    most = max(1, num_nodes.max()) if num_nodes.shape[0] > 0 else 1
    words = np.full((num_nodes.shape[0], most), -1, np.int64)
    lengths = np.zeros(num_nodes.shape[0], np.int64)
    distance = np.empty(most, np.int64)
    step = np.empty(most, np.int64)
    first = 0
    for s in range(num_nodes.shape[0]):
        distance[:] = most
        distance[asked[s]] = 0
        for length in range(1, num_nodes[s]):
            for e in range(first, first + num_edges[s]):
                x, y = edges[e, 0], edges[e, 1]
                if distance[y] == length - 1 and distance[x] > length:
                    distance[x], step[x] = length, e
        first += num_edges[s]
        node = asker[s]
        if distance[node] == most:
            continue
        lengths[s] = distance[node]
        for i in range(lengths[s]):
            words[s, i] = relation[step[node]]
            node = edges[step[node], 1]
    return words, lengths
