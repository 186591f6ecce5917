"""Stories of puzzles: the facts in sentences, by name and as tokens with numbered people.

The path of a puzzle is cut into runs of one to three facts, every way of cutting being as likely. Each run is told by
one template in one or two sentences: a group. Every fact of noise is told alone. The groups are shuffled. A story uses
no template twice while there are others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.ragged import offsets
from graphbench.core.rng import below, permutation, seed
from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, NUM_RELATIONS, NUM_WORDS, WORDS
from graphbench.domains.clutrr.templates import (
    MOST_FACTS,
    Piece,
    Template,
    TextError,
    name_file,
    templates_of,
    tokens_of,
)

_Array = NDArray[np.int64]
_PATH = 0
_NUM_KINDS = NUM_RELATIONS + MOST_FACTS - 1  # kinds of templates: single facts by relation, then two and three facts


@dataclass(frozen=True)
class Stories:
    """Stories of P puzzles with N people and E facts in all.

    Attributes:
        text: ``[P]``, with names.
        tokens: ``[P]``, in lower case, people as ``@ent7``; words and punctuation separated by single spaces.
        names: ``[N]``, unlike within a puzzle, of the person's gender.
        entity: int64 ``[N]``, below ``NUM_ENTITIES``: the person's number in ``tokens``, unlike within a puzzle.
        sentence: int64 ``[E]``: which group of sentences of the story tells the fact, counted from 0.
    """

    text: list[str]
    tokens: list[str]
    names: list[str]
    entity: _Array
    sentence: _Array


class _Puzzles(NamedTuple):
    """Puzzles in the format of the kernel; edges are in the order of the path, then noise, and nodes count over all."""

    node_ptr: _Array
    edge_ptr: _Array
    order: _Array  # position among the edges as given
    x: _Array
    y: _Array
    word: _Array
    gender: _Array
    path: _Array  # number of facts on the path of each puzzle


class _Wording(NamedTuple):
    """The numbers of the forms, of the names and of the ways to tell a path."""

    counts: _Array  # templates of each kind
    bases: _Array  # first form of each kind
    name_counts: _Array  # [2], names of male and of female people
    ways: _Array  # ways to cut 0, 1, ... facts into runs


class _Choices(NamedTuple):
    """The random choices of all puzzles."""

    name: _Array  # [N], position among the names of the gender of the person
    entity: _Array  # [N], number of the person in the tokens
    sentence: _Array  # [E], group of sentences that tells the fact
    groups: _Array  # [E, 3], first fact, number of facts and form of each group, puzzle by puzzle


@dataclass(frozen=True)
class _Forms:
    """The forms of a part's templates as format strings, and the positions where the forms of each kind begin."""

    text: list[str]
    tokens: list[str]
    counts: _Array
    bases: _Array


def write_stories(
    num_nodes: NDArray[Any],
    num_edges: NDArray[Any],
    edges: NDArray[Any],
    word: NDArray[Any],
    gender: NDArray[Any],
    role: NDArray[Any],
    step: NDArray[Any],
    seeds: NDArray[np.uint64],
    part: str,
    max_facts: int = MOST_FACTS,
    wording_seed: int = 0,
) -> Stories:
    """Return the stories of a batch of puzzles; each is a function of its puzzle and its seed alone.

    Args:
        num_nodes: Integers ``[P]``: people of each puzzle.
        num_edges: Integers ``[P]``: facts of each puzzle.
        edges: Integers ``[E, 2]``: x and y of each fact "y is the ... of x", counted within the puzzle.
        word: Integers ``[E]``: position in ``WORDS``.
        gender: Integers ``[N]``: 0 male, 1 female.
        role: Integers ``[E]``: 0 on the path, else noise.
        step: Integers ``[E]``: position of a fact on the path, from 0; ignored for noise.
        seeds: uint64 ``[P]``.
        part: ``train`` or ``test``: which templates to use.
        max_facts: Facts told together at most: 1, 2 or 3.
        wording_seed: Seed of the choice of the templates of ``test``; see ``templates_of``.

    Raises:
        TextError: If a puzzle cannot be told: it has no facts, too many people, a word that does not fit the gender, or
            facts that form no path; or if the arrays do not fit together.
    """
    if max_facts not in range(1, MOST_FACTS + 1):
        raise TextError(f"max_facts is {max_facts}; give 1, 2 or 3")
    forms = _forms(part, wording_seed)
    shapes = [np.shape(a) for a in (num_nodes, num_edges, edges, word, gender, role, step, seeds)]
    puzzles, people, facts = len(num_nodes), int(np.sum(num_nodes)), int(np.sum(num_edges))
    if shapes != [(puzzles,), (puzzles,), (facts, 2), (facts,), (people,), (facts,), (facts,), (puzzles,)]:
        raise TextError(f"arrays of {puzzles} puzzles, {people} people and {facts} facts in all have shapes {shapes}")
    told = _puzzles(num_nodes, num_edges, edges, word, gender, role, step)
    names = name_file()
    _check_people(told, (len(names.male), len(names.female)))
    _check_facts(told, np.asarray(step)[told.order])

    wording = _Wording(
        forms.counts,
        forms.bases,
        np.array([len(names.male), len(names.female)], np.int64),
        _ways_to_cut(int(told.path.max(initial=0)), max_facts),
    )
    choices = _Choices(
        np.empty(people, np.int64),
        np.empty(people, np.int64),
        np.empty(facts, np.int64),
        np.empty((facts, 3), np.int64),
    )
    num_groups = _choose(seeds.astype(np.uint64), told, wording, choices)
    by_gender = (names.male, names.female)
    chosen = [by_gender[g][i] for g, i in zip(told.gender.tolist(), choices.name.tolist(), strict=True)]
    numbered = [f"@ent{number}" for number in choices.entity.tolist()]
    text, tokens = _render(told, forms, choices.groups, num_groups, chosen, numbered)
    as_given = np.empty_like(choices.sentence)
    as_given[told.order] = choices.sentence
    return Stories(text, tokens, chosen, choices.entity, as_given)


def _puzzles(
    num_nodes: NDArray[Any],
    num_edges: NDArray[Any],
    edges: NDArray[Any],
    word: NDArray[Any],
    gender: NDArray[Any],
    role: NDArray[Any],
    step: NDArray[Any],
) -> _Puzzles:
    node_ptr, edge_ptr = offsets(np.asarray(num_nodes, np.int64)), offsets(np.asarray(num_edges, np.int64))
    puzzle = np.repeat(np.arange(len(num_edges)), num_edges)
    on_path = np.asarray(role) == _PATH
    order = np.lexsort((np.where(on_path, step, 0), ~on_path, puzzle))
    path = np.bincount(puzzle[on_path], minlength=len(num_edges)).astype(np.int64)
    ends = np.asarray(edges, np.int64)
    outside = (ends < 0) | (ends >= np.asarray(num_nodes)[puzzle][:, None])
    if outside.any():
        where = puzzle[outside.any(1)][0]
        raise TextError(f"puzzle {where} has {num_nodes[where]} people, but a fact names person {ends[outside][0]}")
    ends = (ends + node_ptr[puzzle][:, None])[order]
    words, genders = np.asarray(word, np.int64)[order], np.asarray(gender, np.int64)
    x, y = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    return _Puzzles(node_ptr, edge_ptr, order, x, y, words, genders, path)


def _check_people(told: _Puzzles, most: tuple[int, int]) -> None:
    people, facts = np.diff(told.node_ptr), np.diff(told.edge_ptr)
    if (facts == 0).any():
        raise TextError(f"puzzle {facts.argmin()} has no facts: its story would name nobody")
    if (people > NUM_ENTITIES).any():
        raise TextError(f"puzzle {people.argmax()} has {people.max()} people; a story can number {NUM_ENTITIES}")
    if not np.isin(told.gender, (0, 1)).all():
        raise TextError(f"a gender is {told.gender[~np.isin(told.gender, (0, 1))][0]}; give 0 (male) or 1 (female)")
    women = np.diff(offsets(told.gender)[told.node_ptr])
    for gender, count in enumerate((people - women, women)):
        if (count > most[gender]).any():
            kind = GENDERS[gender]
            raise TextError(
                f"puzzle {count.argmax()} has {count.max()} {kind} people and names.yaml {most[gender]} {kind} names; "
                "add names"
            )


def _check_facts(told: _Puzzles, step: NDArray[Any]) -> None:
    puzzle = np.repeat(np.arange(len(told.path)), np.diff(told.edge_ptr))
    rank = np.arange(len(puzzle)) - told.edge_ptr[:-1][puzzle]
    on_path = rank < told.path[puzzle]
    unknown = (told.word < 0) | (told.word >= NUM_WORDS)
    if unknown.any():
        raise TextError(f"unknown word {told.word[unknown][0]}; words of kinship are numbered 0 to {NUM_WORDS - 1}")
    wrong = told.gender[told.y] != told.word % 2
    if wrong.any():
        where = int(wrong.argmax())
        gender = GENDERS[told.gender[told.y[where]]]
        raise TextError(f"puzzle {puzzle[where]} calls a {gender} person {WORDS[told.word[where]]!r}")
    linked = np.ones(len(puzzle), bool)
    linked[1:] = (rank[1:] == 0) | ~on_path[1:] | (told.y[:-1] == told.x[1:])
    broken = on_path & ~(linked & (step == rank)) | (told.x == told.y)
    first = on_path & (rank == 0)
    if broken.any():
        raise TextError(
            f"the facts of puzzle {puzzle[broken.argmax()]} make no path: give steps 0, 1, ..., each from the y of the "
            "one before"
        )
    people, times = np.unique(np.concatenate([told.x[first], told.y[on_path]]), return_counts=True)
    if (times > 1).any():
        where = np.searchsorted(told.node_ptr, people[times.argmax()], "right") - 1
        raise TextError(f"the path of puzzle {where} visits a person twice")


def _ways_to_cut(most: int, max_facts: int) -> _Array:
    """Return in how many ways 0, 1, ... facts can be cut into runs of at most ``max_facts``, int64 ``[most + 1]``."""
    ways = np.zeros(most + 1, np.int64)
    ways[0] = 1
    for facts in range(1, most + 1):
        ways[facts] = ways[max(0, facts - max_facts) : facts].sum()
    return ways


@inner
def _run_length(state: NDArray[np.uint64], left: int, ways: _Array) -> int:
    """Return how many of the facts left the next run takes, so that every way of cutting them is as likely."""
    draw = below(state, ways[left])
    length = 1
    while draw >= ways[left - length]:
        draw -= ways[left - length]
        length += 1
    return length


@inner
def _choose_people(
    state: NDArray[np.uint64], gender: _Array, name_counts: _Array, name: _Array, entity: _Array
) -> None:
    pools = np.empty((2, name_counts.max()), np.int64)
    pools[:] = np.arange(name_counts.max())
    taken = np.zeros(2, np.int64)
    for person in range(gender.shape[0]):
        of = gender[person]
        drawn = taken[of] + below(state, name_counts[of] - taken[of])
        name[person] = pools[of, drawn]
        pools[of, drawn] = pools[of, taken[of]]
        taken[of] += 1
    entity[:] = permutation(state, NUM_ENTITIES)[: entity.shape[0]]


@inner
def _choose_form(
    state: NDArray[np.uint64], first: int, length: int, told: _Puzzles, wording: _Wording, is_used: NDArray[np.bool_]
) -> int:
    """Return the number of a form: the template is drawn, and the genders determine the form of the template.

    A template that the story already uses gives way to the next, unless it uses all of them.
    """
    x, y, gender, counts = told.x, told.y, told.gender, wording.counts
    kind = told.word[first] // 2 if length == 1 else NUM_RELATIONS + length - 2
    template = below(state, counts[kind])
    for _ in range(counts[kind]):
        if not is_used[kind, template]:
            break
        template = (template + 1) % counts[kind]
    is_used[kind, template] = True
    bits = gender[x[first]]
    for position in range(length):
        bits |= gender[y[first + position]] << (position + 1)
    return wording.bases[kind] + (template << (length + 1)) + bits


@kernel
def _choose(seeds: NDArray[np.uint64], told: _Puzzles, wording: _Wording, choices: _Choices) -> _Array:
    """Make all random choices and write them into ``choices``; return the number of groups of each puzzle.

    Row ``edge_ptr[i] + g`` of ``groups`` is group g of puzzle i, in the order of the story.
    """
    node_ptr, edge_ptr, path, gender = told.node_ptr, told.edge_ptr, told.path, told.gender
    sentence, groups, ways, max_templates = choices.sentence, choices.groups, wording.ways, wording.counts.max()
    num_groups = np.zeros(seeds.shape[0], np.int64)
    for i in range(seeds.shape[0]):
        state = seed(seeds[i], 0, 0, 0)
        people = slice(node_ptr[i], node_ptr[i + 1])
        name, entity = choices.name[people], choices.entity[people]
        _choose_people(state, gender[people], wording.name_counts, name, entity)
        begin, end = edge_ptr[i], edge_ptr[i + 1]
        runs, is_used = np.empty((end - begin, 3), np.int64), np.zeros((_NUM_KINDS, max_templates), np.bool_)
        fact, number = begin, 0
        while fact < end:
            left = begin + path[i] - fact
            length = _run_length(state, left, ways) if left > 0 else 1
            runs[number, 0], runs[number, 1] = fact, length
            runs[number, 2] = _choose_form(state, fact, length, told, wording, is_used)
            fact += length
            number += 1
        order = permutation(state, number)
        for position in range(number):
            groups[begin + position] = runs[order[position]]
            first = groups[begin + position, 0]
            sentence[first : first + groups[begin + position, 1]] = position
        num_groups[i] = number
    return num_groups


@lru_cache(maxsize=8)
def _forms(part: str, seed: int) -> _Forms:
    text: list[str] = []
    tokens: list[str] = []
    counts, bases = np.zeros(_NUM_KINDS, np.int64), np.zeros(_NUM_KINDS, np.int64)
    kind = -1
    for template in templates_of(part, seed):
        new = template.relation if template.relation is not None else NUM_RELATIONS + template.facts - 2
        if new != kind:
            kind = new
            bases[kind] = len(text)
        counts[kind] += 1
        for genders, form in template.forms():
            text.append("".join(_formats(template, genders, form)))
            tokens.append(" ".join(token for piece in form for token in _token_formats(template, genders, piece)))
    return _Forms(text, tokens, counts, bases)


def _formats(template: Template, genders: tuple[int, ...], pieces: tuple[Piece, ...]) -> list[str]:
    """Return format strings that take names, then words of kinship; the word of a single fact is filled in."""
    filled = []
    for piece in pieces:
        if piece.kind == "text":
            filled.append(piece.text)
        elif piece.kind == "name":
            filled.append(f"{{{piece.person}}}")
        elif template.relation is None:
            filled.append(f"{{{template.facts + piece.person}}}")
        else:
            filled.append(WORDS[2 * template.relation + genders[piece.person]])
    return filled


def _token_formats(template: Template, genders: tuple[int, ...], piece: Piece) -> list[str]:
    return tokens_of(piece.text.lower()) if piece.kind == "text" else _formats(template, genders, (piece,))


def _render(
    told: _Puzzles, forms: _Forms, groups: _Array, num_groups: _Array, names: list[str], numbered: list[str]
) -> tuple[list[str], list[str]]:
    """Return text and tokens of every story."""
    x, y = told.x.tolist(), told.y.tolist()
    words = [WORDS[number] for number in told.word.tolist()]
    of_text, of_tokens = forms.text, forms.tokens
    texts, tokens = [], []
    for begin, count in zip(told.edge_ptr.tolist(), num_groups.tolist(), strict=False):
        text, token = [], []
        for first, length, form in groups[begin : begin + count].tolist():
            if length == 1:
                one, other = x[first], y[first]
                text.append(of_text[form].format(names[one], names[other]))
                token.append(of_tokens[form].format(numbered[one], numbered[other]))
            else:
                people = [x[first], *y[first : first + length]]
                called = words[first : first + length]
                text.append(of_text[form].format(*[names[person] for person in people], *called))
                token.append(of_tokens[form].format(*[numbered[person] for person in people], *called))
        texts.append(" ".join(text))
        tokens.append(" ".join(token))
    return texts, tokens
