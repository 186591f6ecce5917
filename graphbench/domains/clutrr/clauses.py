"""The clauses of puzzles: the sequences of relations that a path can have, and the clauses held out of training.

A clause is the sequence of relations along the path from the asking person to the asked person. A walk is the
same sequence as words, which tell the gender, too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError
from graphbench.domains.clutrr.charts import derivable_along, derived
from graphbench.domains.clutrr.families import FamilyParameters, draw_family
from graphbench.domains.clutrr.paper_family import closed_family
from graphbench.domains.clutrr.relations import (
    GENDERS,
    NEUTRAL,
    NUM_RELATIONS,
    NUM_WORDS,
    relation_number,
    relation_of_word,
    word_for,
    word_number,
)
from graphbench.domains.clutrr.rules import rule_set

LONGEST_LISTED = 4
Clause = tuple[str, ...]
Relations = list[list[str]]


class ClauseError(GraphBenchError, ValueError):
    """A length whose clauses are not listed, or a number that is not a share."""


def clauses(rules: str, k: int, family: FamilyParameters | None = None) -> tuple[Clause, ...]:
    """Return every clause of k relations that a puzzle without noise can have.

    Args:
        rules: ``sound`` or ``paper``.
        k: Number of facts, 2 .. 4.
        family: Parameters of the families; ``default_family(rules)`` if None.

    Raises:
        ClauseError: If clauses of that length are not listed.
        UnknownRules: If the set of rules is unknown.
        FamilyError: If the paper's rules are given families that differ.
    """
    _check_length(k)
    rule_set(rules)
    return _listed(rules, k, family or default_family(rules))


def walks(rules: str, family: FamilyParameters | None = None) -> tuple[Clause, ...]:
    """Return every pair of words that the path of a puzzle with two facts can have; arguments as for ``clauses``."""
    return tuple(
        walk
        for clause in clauses(rules, 2, family)
        for genders in product(GENDERS, repeat=2)
        if clause[1] != "SO" or genders[0] != genders[1]
        for walk in [tuple(map(word_for, clause, genders))]
    )


def held_out(
    rules: str, k: int, share: float = 0.1, seed: int = 0, family: FamilyParameters | None = None
) -> tuple[Clause, ...]:
    """Return the clauses that no training puzzle of k facts may have: a share, rounded up, by rank of their hashes.

    For k = 2, a share of the walks is held out instead of clauses: the walks of lowest rank, as long as each clause
    keeps one walk.

    Args:
        rules: ``sound`` or ``paper``.
        k: Number of facts, 2 .. 4.
        share: Held-out share, 0 .. 1; every clause keeps at least one walk.
        seed: Seed of the choice.
        family: Parameters of the families; ``default_family(rules)`` if None.

    Returns:
        Clauses of relations; walks of words for k = 2.

    Raises:
        ClauseError: If clauses of that length are not listed or the share is out of range.
        UnknownRules: If the set of rules is unknown.
        FamilyError: If the paper's rules are given families that differ.
    """
    check_share(share)
    candidates = walks(rules, family) if k == 2 else clauses(rules, k, family)
    wanted = math.ceil(Fraction(str(share)) * len(candidates))
    ranked = sorted(candidates, key=lambda clause: _hash(seed, rules, clause))
    if k != 2:
        return tuple(sorted(ranked[:wanted], key=candidates.index))
    left = {clause: 0 for clause in clauses(rules, 2, family)}
    for walk in candidates:
        left[_clause_of_walk(walk)] += 1
    chosen: list[Clause] = []
    for walk in ranked:
        if len(chosen) < wanted and left[_clause_of_walk(walk)] > 1:
            left[_clause_of_walk(walk)] -= 1
            chosen.append(walk)
    return tuple(sorted(chosen, key=candidates.index))


def check_share(share: float) -> None:
    """Raise an error if a number is not a share.

    Raises:
        ClauseError: If it is not a number from 0 to 1.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ClauseError(f"share is {share!r}; give a number from 0 to 1")


def default_family(rules: str) -> FamilyParameters:
    """Return the default families of a set of rules; for the paper's rules, the family of the paper's code."""
    return FamilyParameters(3, 4, 4, 1.0) if rules == "paper" else FamilyParameters()


def clause_code(clause: Sequence[str]) -> int:
    """Return a clause as one number, its relations the digits in base 11, the first one highest.

    Raises:
        UnknownRelation: If the relation is unknown.
    """
    return _code(map(relation_number, clause), NUM_RELATIONS)


def walk_code(walk: Sequence[str]) -> int:
    """Return a walk as one number, its words the digits in base 22, the first one highest.

    Raises:
        UnknownRelation: If the word is unknown.
    """
    return _code(map(word_number, walk), NUM_WORDS)


def clause_of(code: int, k: int) -> Clause:
    """Return the clause of k relations that a number stands for.

    Raises:
        ClauseError: If no clause of that length has this number.
    """
    if not 0 <= code < NUM_RELATIONS**k:
        raise ClauseError(f"clause {code!r} is out of range; codes of {k} relations end at {NUM_RELATIONS**k - 1}")
    return tuple(NEUTRAL[int(code) // NUM_RELATIONS**digit % NUM_RELATIONS] for digit in reversed(range(k)))


def told_relations(rules: str, family: FamilyParameters) -> NDArray[np.int8]:
    """Return the relations that stories tell instead of the true ones: ``int8[N, N]``, or ``[0, 0]`` for none."""
    return closed_family(family).copy() if rules == "paper" else np.empty((0, 0), np.int8)


def _check_length(k: int) -> None:
    if k not in range(2, LONGEST_LISTED + 1):
        raise ClauseError(f"clauses of {k!r} relations are not listed; give 2 to {LONGEST_LISTED}")


def _code(digits: Iterable[int], base: int) -> int:
    code = 0
    for digit in digits:
        code = code * base + digit
    return code


def _clause_of_walk(walk: Clause) -> Clause:
    return tuple(map(relation_of_word, walk))


def _hash(seed: int, rules: str, clause: Clause) -> bytes:
    return hashlib.sha256(f"{seed} {rules} {' '.join(clause)}".encode()).digest()


@lru_cache(maxsize=32)
def _listed(rules: str, k: int, family: FamilyParameters) -> tuple[Clause, ...]:
    """List the clauses of the largest family, which contains every smaller family."""
    if rules == "paper":
        matrix = closed_family(family)
        starts = list(range(len(matrix)))
    else:
        children = family.max_children
        largest = draw_family(FamilyParameters(family.generations, children, children, float(family.marriage > 0)), 0)
        matrix = largest.relations
        roles = np.stack([largest.generation, largest.father >= 0])
        starts = np.unique(roles, axis=1, return_index=True)[
            1
        ].tolist()  # people with the same role have the same clauses
    relations = [[NEUTRAL[r] if r >= 0 else "" for r in row] for row in matrix.tolist()]
    return tuple(clause for clause in product(NEUTRAL, repeat=k) if _occurs(clause, rules, relations, starts))


def _occurs(clause: Clause, rules: str, relations: Relations, starts: list[int]) -> bool:
    """Return whether some path has the clause, resolves from its ends, and gives a single answer."""
    if not derivable_along(clause, rules):
        return False
    facts = [(i, i + 1, relation) for i, relation in enumerate(clause)]
    answers = derived(facts, rules)[0, len(clause)]
    if len(answers) > 1:
        return False
    compositions = rule_set(rules).compositions
    return any(
        relations[path[0]][path[-1]] in answers and _resolves(path, relations, compositions)
        for start in starts
        for path in _paths(clause, [start], relations)
    )


def _paths(clause: Clause, start: list[int], relations: Relations) -> Iterator[list[int]]:
    """Yield the paths of a clause that continue from the people of ``start`` without visiting a person twice."""
    if len(start) > len(clause):
        yield start
        return
    for person, relation in enumerate(relations[start[-1]]):
        if relation == clause[len(start) - 1] and person not in start:
            yield from _paths(clause, [*start, person], relations)


def _resolves(path: list[int], relations: Relations, compositions: Mapping[tuple[str, str], str]) -> bool:
    """Return whether backward chaining from the two ends of a path can produce its facts."""
    if len(path) == 2:
        return True
    first, last = path[0], path[-1]
    return any(
        compositions.get((relations[first][path[m]], relations[path[m]][last])) == relations[first][last]
        and _resolves(path[: m + 1], relations, compositions)
        and _resolves(path[m:], relations, compositions)
        for m in range(1, len(path) - 1)
    )


def held_out_codes(rules: str, k: int, share: float, seed: int, family: FamilyParameters) -> NDArray[np.int64]:
    """Return the sorted numbers of the walks (k = 2) or clauses (other k) that ``held_out`` returns."""
    code = walk_code if k == 2 else clause_code
    return np.array(sorted(map(code, held_out(rules, k, share, seed, family))), np.int64)
