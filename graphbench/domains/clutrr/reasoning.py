"""Derivations from the facts of a story: compositions, the closure, and the answers to a question.

``solve`` returns the relations that a chart parser derives along any route between two people. A route derives a
relation if it is one fact, or if it splits into two parts with relations that compose. Routes use the facts, derived
facts and inverses, as long as no fact relates a person to itself. ``solve`` therefore finds every relation that a
parser of simple paths finds, and also relations that follow only from a detour: a fact off the path may complete an
answer, or add a second one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError
from graphbench.domains.clutrr.deduction import Deduction, deduction_tables, derivable_masks
from graphbench.domains.clutrr.relations import NEUTRAL, relation_number
from graphbench.domains.clutrr.rules import rule_set

Person = TypeVar("Person", bound=Hashable)
_tables = lru_cache(maxsize=4)(deduction_tables)


class StoryError(GraphBenchError, ValueError):
    """The facts of a story or its question make no puzzle."""


def compose(r1: str, r2: str, rules: str = "sound") -> str | None:
    """Return the relation of y to x if z is the r1 of x and y is the r2 of z, for three different people.

    Args:
        r1: Relation without gender, as in ``NEUTRAL``.
        r2: Another or the same.
        rules: ``sound`` or ``paper``.

    Returns:
        The relation, or None where the rules conclude nothing.

    Raises:
        UnknownRelation: If the relation is unknown.
        UnknownRules: If the set of rules is unknown.
    """
    relation_number(r1), relation_number(r2)
    return rule_set(rules).compositions.get((r1, r2))


def closure(
    edges: Iterable[tuple[Person, Person, str]], rules: str = "sound"
) -> dict[tuple[Person, Person], frozenset[str]]:
    """Return every relation derivable from some facts.

    Args:
        edges: Facts ``(x, y, relation)``: y is the relation of x.
        rules: ``sound`` or ``paper``.

    Returns:
        ``(x, y)`` -> the relations that y has to x; pairs without a derivable relation are absent.

    Raises:
        UnknownRelation: If a fact has an unknown relation.
        UnknownRules: If the set of rules is unknown.
        StoryError: If a fact is not a triple or relates a person to itself.
    """
    tables = _tables(rule_set(rules).name)
    people, ends, relation = _numbered(edges)
    masks = _masks(len(people), ends, relation, tables)
    return {(people[x], people[y]): frozenset(relations_of(int(masks[x, y]))) for x, y in np.argwhere(masks).tolist()}


def solve(
    edges: Iterable[tuple[Person, Person, str]], query: tuple[Person, Person], rules: str = "sound"
) -> frozenset[str]:
    """Return every answer derivable to "what is y to x?".

    Args:
        edges: Facts ``(x, y, relation)``: y is the relation of x.
        query: The two people (x, y).
        rules: ``sound`` or ``paper``.

    Returns:
        Relations without gender; empty if none is derivable.

    Raises:
        UnknownRelation: If a fact has an unknown relation.
        UnknownRules: If the set of rules is unknown.
        StoryError: If a fact is not a triple, the question is not a pair, a fact or the question relates a person to
            itself, or no fact tells of the asked person.
    """
    tables = _tables(rule_set(rules).name)
    people, ends, relation = _numbered(edges)
    x, y = _places(people, query)
    return frozenset(relations_of(int(_masks(len(people), ends, relation, tables)[x, y])))


def answer(edges: Iterable[tuple[Person, Person, str]], query: tuple[Person, Person], rules: str = "sound") -> str:
    """Return the only answer derivable to "what is y to x?".

    Args:
        edges: Facts ``(x, y, relation)``: y is the relation of x.
        query: The two people (x, y).
        rules: ``sound`` or ``paper``.

    Raises:
        UnknownRelation: If a fact has an unknown relation.
        UnknownRules: If the set of rules is unknown.
        StoryError: As for ``solve``; also if no facts lead from x to y, or there is no answer or more than one.
    """
    facts = _facts(edges)
    answers = sorted(solve(facts, query, rules))
    x, y = query
    if len(answers) > 1:
        raise StoryError(f"the facts give {len(answers)} relations of {y!r} to {x!r}: {', '.join(answers)}; need one")
    if not answers:
        reason = "but the rules derive no relation" if _are_linked(facts, query) else "as no path of facts joins them"
        raise StoryError(f"the facts give no relation of {y!r} to {x!r}, {reason}; add facts")
    return answers[0]


def relations_of(mask: int) -> Iterator[str]:
    """Yield the names of the relations of a mask."""
    return (name for number, name in enumerate(NEUTRAL) if mask >> number & 1)


def _numbered(
    edges: Iterable[tuple[Person, Person, str]],
) -> tuple[list[Person], list[tuple[int, int]], list[int]]:
    number: dict[Person, int] = {}
    ends, relation = [], []
    for x, y, name in _facts(edges):
        if x == y:
            raise StoryError(f"the fact ({x!r}, {y!r}, {name!r}) relates a person to itself; leave it out")
        ends.append((number.setdefault(x, len(number)), number.setdefault(y, len(number))))
        relation.append(relation_number(name))
    return list(number), ends, relation


def _facts(edges: Any) -> list[tuple[Any, Any, str]]:
    """Return facts as a list of triples."""
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise StoryError(f"the facts are {edges!r:.80}; give a list of (x, y, relation): y is the relation of x")
    facts = list(edges)
    for fact in facts:
        if not isinstance(fact, tuple | list) or len(fact) != 3:
            raise StoryError(f"the fact {fact!r:.80} is not (x, y, relation): y is the relation of x")
        for person in fact[:2]:
            if not _is_hashable(person):
                raise StoryError(f"{person!r:.80} in a fact stands for nobody; name people by texts or numbers")
    return facts


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _places(people: list[Person], query: Any) -> tuple[int, int]:
    if not isinstance(query, tuple | list) or len(query) != 2:
        raise StoryError(f"the question is {query!r:.80}; ask for two people, as ('Ann', 'Bob')")
    x, y = query
    if not people:
        raise StoryError(f"there are no facts on {y!r} and {x!r}; give some, as ('Ann', 'Bob', 'sibling')")
    for person in query:
        if person not in people:
            raise StoryError(f"no fact tells of {person!r}; ask for two of {', '.join(map(repr, people))}")
    if x == y:
        raise StoryError(f"the question asks for the relation of {x!r} to itself; ask for two people")
    return people.index(x), people.index(y)


def _masks(num_people: int, ends: list[tuple[int, int]], relation: list[int], tables: Deduction) -> NDArray[np.uint16]:
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return derivable_masks(num_people, pairs, np.array(relation, np.int64), tables)


def _are_linked(facts: Iterable[tuple[Person, Person, str]], query: tuple[Person, Person]) -> bool:
    reached, grown = {query[0]}, True
    while grown:
        ends = [{x, y} for x, y, _ in facts]
        before = len(reached)
        reached = reached.union(*(pair for pair in ends if pair & reached))
        grown = len(reached) > before
    return query[1] in reached
