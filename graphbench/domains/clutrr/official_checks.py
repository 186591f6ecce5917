"""What the columns of a published row must have in common: a row that breaks any of it is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, WORDS

if TYPE_CHECKING:
    from graphbench.domains.clutrr.official_rows import OfficialRow

NAME = re.compile(r"\[([^\[\]]+)\]")
"""A name in a published story."""

Problem = tuple[str, str]  # column, what is wrong with it


def named_people(row: OfficialRow) -> set[str]:
    """Return the people whom the story of a row names."""
    return set(NAME.findall(row.story)) & set(row.genders)


def contradictions(row: OfficialRow) -> Iterator[Problem]:
    """Yield (column, problem) where columns of a row contradict each other, those that others rest on first."""
    found = list(_of_people(row)) or list(_of_counts(row))
    yield from found or [*_of_path(row), *_of_words(row), *_of_names(row)]


def _held(*checks: tuple[bool, str, str]) -> Iterator[Problem]:
    return ((column, problem) for is_wrong, column, problem in checks if is_wrong)


def _of_people(row: OfficialRow) -> Iterator[Problem]:
    """Yield what is wrong with the people of a row: those of its facts and its query."""
    names = list(row.genders)
    known = set(range(len(names)))
    unknown = [name for name in row.query if name not in row.genders]
    asker, asked = row.query_edge
    others = f"not two of the {len(names)} people of 'genders'"
    yield from _held(
        (not row.id.strip(), "id", "it is empty"),
        (len(names) > NUM_ENTITIES, "genders", f"{len(names)} people, at most {NUM_ENTITIES} can be told apart"),
        (bool(unknown), "query", f"{', '.join(map(repr, unknown))} is not among the people of 'genders'"),
        (asker == asked or not {asker, asked} <= known, "query_edge", others),
        (
            {asker, asked} <= known and (names[asker], names[asked]) != row.query,
            "query_edge",
            f"not the people of 'query', {row.query}",
        ),
        (not _people(row) <= known, "story_edges", f"a person who is none of the {len(names)} of 'genders'"),
        (any(x == y for x, y in row.story_edges), "story_edges", "a fact about one person"),
    )


def _of_counts(row: OfficialRow) -> Iterator[Problem]:
    """Yield where a row has more or fewer facts than its task."""
    k, facts = row.k, len(row.story_edges)
    yield from _held(
        (len(row.f_comb) != k, "f_comb", f"{len(row.f_comb)} words, but {row.task_name} has {k} facts"),
        (facts < k, "story_edges", f"{facts} facts, but {row.task_name} has {k}"),
        (
            row.noise == 1 and facts > k,
            "story_edges",
            f"{facts} facts, but {row.task_name} has {k} and no noise",
        ),
        (
            len(row.edge_types) not in (k, facts),
            "edge_types",
            f"{len(row.edge_types)} words for {k} facts of the path, {facts} in all",
        ),
    )


def _of_path(row: OfficialRow) -> Iterator[Problem]:
    """Yield what is wrong with the facts: the first k lead from who asks to who is asked about, none tells the answer.

    The published generator never tells of the fact that is asked for, nor of its reverse.
    """
    path, (asker, asked) = row.story_edges[: row.k], row.query_edge
    stops = [path[0][0], *(y for _, y in path)]
    is_path = all(y == x for (_, y), (x, _) in pairwise(path)) and (stops[0], stops[-1]) == (asker, asked)
    telling = [edge for edge in row.story_edges[row.k if row.k == 1 else 0 :] if set(edge) == {asker, asked}]
    yield from _held(
        (not is_path, "story_edges", f"the first {row.k} facts are no path from {asker} to {asked}, the query"),
        (bool(telling), "story_edges", f"the fact {telling[:1]} is about the two people asked about"),
    )


def _of_words(row: OfficialRow) -> Iterator[Problem]:
    """Yield what is wrong with the words of the facts."""
    twice = _disagreeing(row)
    genders = list(row.genders.items())
    called = [(word, *genders[y]) for (_, y), word in zip(row.story_edges, row.edge_types, strict=False)]
    wrong = [
        f"{word!r} for {name!r}, who is {gender} in 'genders'"
        for word, name, gender in called
        if GENDERS[WORDS.index(word) % 2] != gender
    ]
    yield from _held(
        (row.edge_types[: row.k] != row.f_comb, "edge_types", "not the words of 'f_comb'"),
        (twice is not None, "edge_types", f"two words for the people {twice} of 'story_edges'"),
        (bool(wrong), "edge_types", "; ".join(wrong[:1])),
    )


def _of_names(row: OfficialRow) -> Iterator[Problem]:
    """Yield where story, proof or mapping are about other people than those of the row."""
    facts = [fact for head, body in row.proof_state for fact in (head, *body)]
    strangers = sorted({name for x, _, y in facts for name in (x, y)} - set(row.genders))
    numbers = sorted(row.node_mapping.values())
    on_path = {person for edge in row.story_edges[: row.k] for person in edge}
    is_mapping = _distinct(numbers) and on_path <= set(numbers) <= set(range(len(row.genders)))
    people = ", ".join(row.genders)
    yield from _held(
        (
            not named_people(row) & set(row.query),
            "story",
            f"it names neither of {row.query}, who are asked about; names stand in square brackets",
        ),
        (bool(strangers), "proof_state", f"{', '.join(map(repr, strangers))} is not among the people of 'genders'"),
        (
            not is_mapping,
            "node_mapping",
            f"it must lead to numbers of {people}, on the path to all, and to none twice",
        ),
    )


def _people(row: OfficialRow) -> set[int]:
    return {person for edge in row.story_edges for person in edge}


def _distinct(numbers: Sequence[int]) -> bool:
    return len(set(numbers)) == len(numbers)


def _disagreeing(row: OfficialRow) -> tuple[int, int] | None:
    """Return a pair of people of whom two facts say different things."""
    told: dict[tuple[int, int], str] = {}
    for edge, word in zip(row.story_edges, row.edge_types, strict=False):
        if told.setdefault(edge, word) != word:
            return edge
    return None
