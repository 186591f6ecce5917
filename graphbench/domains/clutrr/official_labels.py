"""Relations of noise facts that published CLUTRR files leave out, and checks of published labels.

A noise fact gets a relation only if no other relation is possible:

* Both people are on the path and the rules derive exactly one relation for them.
* A supporting detour a -> d -> b past the path fact (a, b), or an irrelevant fact (a, d), in a puzzle with the noise
  of its task: the fact was made by expanding a path fact by one of the 16 rules (section 3.5 of the paper), spouses
  have different genders, and nobody has two spouses; a single rule remains, or several rules that agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Literal

from graphbench.domains.clutrr.official_rows import OfficialRow
from graphbench.domains.clutrr.relations import GENDERS, NEUTRAL, NUM_WORDS, WORDS

NOT_STATED = NUM_WORDS
"""Class of a noise fact whose relation the files do not say and nothing determines."""

PATH, SUPPORTING, IRRELEVANT, DISCONNECTED = range(4)
_NAMES = ("of the path", "supporting", "irrelevant", "disconnected")
_MIXED = 5
Pair = tuple[int, int]
Verdict = Literal["true", "false", "open"]


@dataclass(frozen=True, slots=True)
class TypedEdges:
    """The facts of a row, each pair of people once.

    Attributes:
        edges: Person numbers (x, y), sorted.
        relations: Class of the word by which y is called as seen from x; 22 where unknown.
        roles: 0 path, 1 supporting, 2 irrelevant, 3 disconnected.
        steps: Place on the path, the first one where the path passes a pair twice; -1 for noise.
    """

    edges: tuple[Pair, ...]
    relations: tuple[int, ...]
    roles: tuple[int, ...]
    steps: tuple[int, ...]


def typed_edges(row: OfficialRow) -> TypedEdges:
    """Return the facts of a row with relation, role and position; unknown noise relations are derived or flagged."""
    path, noise = row.story_edges[: row.k], row.story_edges[row.k :]
    relation = {edge: WORDS.index(word) for edge, word in zip(row.story_edges, row.edge_types, strict=False)}
    role = dict(zip(noise, noise_roles(row), strict=True)) | dict.fromkeys(path, PATH)
    step = dict.fromkeys(noise, -1) | dict(zip(reversed(path), range(row.k - 1, -1, -1), strict=True))
    if len(relation) < len(role):
        relation = _derived(row, role) | relation
    edges = sorted(role)
    return TypedEdges(
        edges=tuple(edges),
        relations=tuple(relation.get(edge, NOT_STATED) for edge in edges),
        roles=tuple(role[edge] for edge in edges),
        steps=tuple(step[edge] for edge in edges),
    )


def noise_roles(row: OfficialRow) -> list[int]:
    """Return the role of each noise fact, by its place in the graph (section 3.5 of the paper).

    Noise facts linked by people off the path form one piece, and the number of its people on the path gives its role:
    supporting for two or more, irrelevant for one, disconnected for none.
    """
    path, noise = row.story_edges[: row.k], row.story_edges[row.k :]
    on_path = {person for edge in path for person in edge}
    return [
        DISCONNECTED - min(len(_piece(edge, noise, on_path) & on_path), DISCONNECTED - SUPPORTING) for edge in noise
    ]


def noise_fault(row: OfficialRow) -> str | None:
    """Return how the noise of a row contradicts the paper's definition of its task, or None.

    A task of one kind of noise has facts of this kind only; the task of all kinds has at least one noise fact.
    """
    if row.noise - 1 == PATH:
        return None
    noise = row.story_edges[row.k :]
    if not noise:
        return f"{row.task_name} without noise"
    wanted = [SUPPORTING, IRRELEVANT, DISCONNECTED] if row.noise == _MIXED else [row.noise - 1]
    for edge, role in zip(noise, noise_roles(row), strict=True):
        if role not in wanted:
            return f"the noise fact {edge} is {_NAMES[role]}, not {_NAMES[wanted[0]]}"
    return None


def _piece(edge: Pair, noise: Sequence[Pair], on_path: set[int]) -> set[int]:
    """Return the people of the noise facts that hang together with one of them off the path."""
    piece: set[int] = set(edge)
    while True:
        links = piece - on_path
        grown = piece.union(*(other for other in noise if links & set(other)))
        if grown == piece:
            return piece
        piece = grown


def verdict(row: OfficialRow) -> Verdict:
    """Return whether a target is ``true`` in every family that fits the path, ``false`` in every one, or ``open``.

    A word of the wrong gender is false. A target is open where the path alone implies no relation: the paper's rules
    conclude more than is true in every family.
    """
    word = WORDS.index(row.target)
    if GENDERS[word % 2] != row.genders[row.query[1]]:
        return "false"
    answers = _derivable(_path_facts(row), "sound").get(row.query_edge, frozenset())
    if not answers:
        return "open"
    return "true" if NEUTRAL[word // 2] in answers else "false"


def _path_facts(row: OfficialRow) -> tuple[tuple[int, int, str], ...]:
    facts = zip(row.story_edges, row.f_comb, strict=False)
    return tuple((x, y, NEUTRAL[WORDS.index(word) // 2]) for (x, y), word in facts)


@lru_cache(maxsize=4096)
def _derivable(facts: tuple[tuple[int, int, str], ...], rules: str) -> Mapping[Pair, frozenset[str]]:
    from graphbench.domains.clutrr.reasoning import closure

    return closure(facts, rules=rules)


@lru_cache(maxsize=1)
def _bodies() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return relation -> the pairs of relations that the paper's rules compose to it."""
    from graphbench.domains.clutrr.reasoning import compose

    heads = {(first, second): compose(first, second, rules="paper") for first, second in product(NEUTRAL, repeat=2)}
    return {head: tuple(body for body, composed in heads.items() if composed == head) for head in NEUTRAL}


def _derived(row: OfficialRow, role: Mapping[Pair, int]) -> dict[Pair, int]:
    """Return the classes of the noise facts that can have only one relation."""
    genders = [GENDERS.index(gender) for gender in row.genders.values()]
    facts = _path_facts(row)
    derivable = _derivable(facts, "paper")
    possible = {edge: set(derivable.get(edge, ())) for edge in role}
    made = _expansions(row.story_edges, role, facts, genders) if noise_fault(row) is None else ()
    for edge, relations in made:
        possible[edge] = relations & possible[edge] if possible[edge] else relations
    return {
        edge: 2 * NEUTRAL.index(next(iter(relations))) + genders[edge[1]]
        for edge, relations in possible.items()
        if len(relations) == 1
    }


def _expansions(
    order: Sequence[Pair], role: Mapping[Pair, int], facts: Iterable[tuple[int, int, str]], genders: Sequence[int]
) -> Iterable[tuple[Pair, set[str]]]:
    """Yield noise facts with the relations they may have, by the expansions of path facts that can have made them."""
    path = {(x, y): relation for x, y, relation in facts}
    spouse = {x: y for (x, y), relation in path.items() if relation == "SO"}
    spouse |= {y: x for x, y in spouse.items()}

    def may_hold(x: int, y: int, relation: str) -> bool:
        return relation != "SO" or (genders[x] != genders[y] and spouse.get(x, y) == y and spouse.get(y, x) == x)

    for (a, d), (middle, b) in pairwise(order):
        if role[a, d] == role[middle, b] == SUPPORTING and d == middle and (a, b) in path:
            bodies = [(s, t) for s, t in _bodies()[path[a, b]] if may_hold(a, d, s) and may_hold(d, b, t)]
            yield (a, d), {first for first, _ in bodies}
            yield (d, b), {second for _, second in bodies}
    for (a, d), kind in role.items():
        if kind == IRRELEVANT:
            heads = [relation for (x, _), relation in path.items() if x == a]
            yield (a, d), {first for head in heads for first, _ in _bodies()[head] if may_hold(a, d, first)}
