"""Facts of published CLUTRR puzzles, with the relations of noise facts that the files leave out.

A noise fact gets a relation only if no other relation is possible:

* Both people are on the path and the rules derive exactly one relation for them.
* A supporting detour a -> d -> b past the path fact (a, b), or an irrelevant fact (a, d), in a puzzle with the noise
  of its task: the fact was made by expanding a path fact by one of the 16 rules (section 3.5 of the paper), spouses
  have different genders, and nobody has two spouses; a single rule remains, or several rules that agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from graphbench.domains.clutrr.files.rows import Pair, PublishedRow
from graphbench.domains.clutrr.relations import GENDERS, NEUTRAL, NUM_WORDS, WORDS

UNKNOWN = NUM_WORDS
"""Class of a noise fact whose relation the files do not say and nothing determines."""

PATH, SUPPORTING, IRRELEVANT, DISCONNECTED = range(4)
_ROLES_OF_NOISE = ((PATH,), (SUPPORTING,), (IRRELEVANT,), (DISCONNECTED,), (SUPPORTING, IRRELEVANT, DISCONNECTED))


class Fact(NamedTuple):
    """A fact of a puzzle: a pair of people (x, y), once where the path passes the pair twice.

    Attributes:
        edge: The numbers of x and y.
        relation: Class of the word by which y is called as seen from x; :data:`UNKNOWN` where unknown.
        role: 0 path, 1 supporting, 2 irrelevant, 3 disconnected.
        step: Position on the path, the first position if the path passes the pair twice; -1 for noise.
    """

    edge: Pair
    relation: int
    role: int
    step: int


def facts_of(row: PublishedRow) -> list[Fact]:
    """Return the facts of a row, sorted by the numbers of the people."""
    path, noise = row.story_edges[: row.k], row.story_edges[row.k :]
    relation = {edge: WORDS.index(word) for edge, word in zip(row.story_edges, row.edge_types, strict=False)}
    role = dict(zip(noise, noise_roles(row), strict=True)) | dict.fromkeys(path, PATH)
    step = dict.fromkeys(noise, -1) | dict(zip(reversed(path), range(row.k - 1, -1, -1), strict=True))
    if len(relation) < len(role):
        relation = _derived(row, role) | relation
    return [Fact(edge, relation.get(edge, UNKNOWN), role[edge], step[edge]) for edge in sorted(role)]


def noise_roles(row: PublishedRow) -> list[int]:
    """Return the role of each noise fact, by its links in the graph (section 3.5 of the paper).

    Noise facts linked by people off the path form one piece, and the number of its people on the path gives its role:
    supporting for two or more, irrelevant for one, disconnected for none.
    """
    path, noise = row.story_edges[: row.k], row.story_edges[row.k :]
    on_path = {person for edge in path for person in edge}
    return [DISCONNECTED - min(len(_piece(edge, noise, on_path) & on_path), 2) for edge in noise]


def strange_noise(row: PublishedRow) -> list[tuple[Pair, int]]:
    """Return the noise facts, with their roles, whose role is not of the row's task."""
    roles = zip(row.story_edges[row.k :], noise_roles(row), strict=True)
    return [(edge, role) for edge, role in roles if role not in _ROLES_OF_NOISE[row.noise - 1]]


def path_facts(row: PublishedRow) -> tuple[tuple[int, int, str], ...]:
    """Return the facts of the path as (x, y, relation without gender)."""
    facts = zip(row.story_edges, row.f_comb, strict=False)
    return tuple((x, y, NEUTRAL[WORDS.index(word) // 2]) for (x, y), word in facts)


def _piece(edge: Pair, noise: Sequence[Pair], on_path: set[int]) -> set[int]:
    """Return the people of the noise facts that are linked to one of them by people off the path."""
    piece: set[int] = set(edge)
    while True:
        links = piece - on_path
        grown = piece.union(*(other for other in noise if links & set(other)))
        if grown == piece:
            return piece
        piece = grown


def _derived(row: PublishedRow, role: Mapping[Pair, int]) -> dict[Pair, int]:
    """Return the classes of the noise facts that can have only one relation."""
    genders = [GENDERS.index(gender) for gender in row.genders.values()]
    derivable = _derivable(path_facts(row))
    possible = {edge: set(derivable.get(edge, ())) for edge in role}
    for edge, relations in () if strange_noise(row) else _expansions(row, role, genders):
        possible[edge] = relations & possible[edge] if possible[edge] else relations
    return {
        edge: 2 * NEUTRAL.index(relations.pop()) + genders[edge[1]]
        for edge, relations in possible.items()
        if len(relations) == 1
    }


@lru_cache(maxsize=4096)
def _derivable(facts: tuple[tuple[int, int, str], ...]) -> Mapping[Pair, frozenset[str]]:
    from graphbench.domains.clutrr.reasoning import closure

    return closure(facts, rules="paper")


@lru_cache(maxsize=1)
def _bodies() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return relation -> the pairs of relations that the paper's rules compose to it."""
    from graphbench.domains.clutrr.reasoning import compose

    heads = {(first, second): compose(first, second, rules="paper") for first, second in product(NEUTRAL, repeat=2)}
    return {head: tuple(body for body, composed in heads.items() if composed == head) for head in NEUTRAL}


def _expansions(row: PublishedRow, role: Mapping[Pair, int], genders: Sequence[int]) -> Iterator[tuple[Pair, set[str]]]:
    """Yield noise facts with the relations they may have, by the expansions of path facts that can have made them."""
    path = {(x, y): relation for x, y, relation in path_facts(row)}
    spouse = {x: y for (x, y), relation in path.items() if relation == "SO"}
    spouse |= {y: x for x, y in spouse.items()}

    def may_hold(x: int, y: int, relation: str) -> bool:
        return relation != "SO" or (genders[x] != genders[y] and spouse.get(x, y) == y and spouse.get(y, x) == x)

    for (a, d), (middle, b) in pairwise(row.story_edges):
        if role[a, d] == role[middle, b] == SUPPORTING and d == middle and (a, b) in path:
            bodies = [(s, t) for s, t in _bodies()[path[a, b]] if may_hold(a, d, s) and may_hold(d, b, t)]
            yield (a, d), {first for first, _ in bodies}
            yield (d, b), {second for _, second in bodies}
    for (a, d), kind in role.items():
        if kind == IRRELEVANT:
            heads = [relation for (x, _), relation in path.items() if x == a]
            yield (a, d), {first for head in heads for first, _ in _bodies()[head] if may_hold(a, d, first)}
