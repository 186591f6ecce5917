"""Stories read back: the facts of a text, read by matching wordings, and questions put into words.

All forms of all templates stand in one tree of tokens. People are numbered in it in the order in which a group of
sentences names them, so a text walks down one branch, and no wording begins another: there is one way to read a story.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from graphbench.domains.clutrr.relations import GENDERS, WORDS, word_number
from graphbench.domains.clutrr.templates import PARTS, Piece, Template, TextError, templates_of, tokens_of

Fact = tuple[str, str, str]
"""``(x, y, word)``: y is the word of x."""

_Key = str | int
_Node = dict[_Key, Any]
_Pattern = tuple[tuple[int, int, int], ...]
_WORDS = frozenset(WORDS)
_KIN = tuple(f"<{gender}>" for gender in GENDERS)  # stands for any word for a person of the gender
_END = ""


class Question(NamedTuple):
    """A question on the relation of two people, and its answer.

    Attributes:
        question: "What is Anna to Bob?"
        answer: "Anna is Bob's aunt."
    """

    question: str
    answer: str


def describe(word: str, asker: str, asked: str) -> Question:
    """Return a question on the relation of two people, and its answer, in words.

    Args:
        word: The word by which ``asker`` calls ``asked``, one of ``WORDS``.
        asker: Name of the asking person.
        asked: Name of the asked person.

    Raises:
        UnknownRelation: If the word is unknown.
    """
    word_number(word)
    return Question(f"What is {asked} to {asker}?", f"{asked} is {asker}'s {word}.")


def read_story(text: str, people: Collection[str]) -> list[Fact]:
    """Return the facts of a story, in the order in which it tells them.

    Args:
        text: A story, or its tokens.
        people: The names in it, or their ``@ent7``.

    Raises:
        TextError: If ``text`` is not a text or ``people`` are not texts, if the story names nobody, if a sentence fits
            no template (the message gives the first one), if the story can be read in two ways, or if it calls a
            person by words of both genders.
    """
    _check_arguments(text, people)
    tokens, names = tokens_of(text), frozenset(people)
    if not names.intersection(tokens):
        some = ", ".join(sorted(names)[:5]) or "nobody"
        raise TextError(f"the story {text[:80]!r} names none of its people ({some}); give the names that it uses")
    keys = [token if token in names else token.lower() for token in tokens]
    readings, furthest = _readings(keys, names)
    if not readings:
        sentence = _sentence_around(text, furthest)
        raise TextError(f"cannot read {sentence!r}: no template is worded so; give templates' wordings and all people")
    if len({frozenset(reading) for reading in readings}) > 1:
        raise TextError(f"the story {text[:80]!r} can be read in {len(readings)} ways")
    _check_genders(readings[0])
    return readings[0]


def _check_arguments(text: Any, people: Any) -> None:
    if not isinstance(text, str):
        raise TextError(f"the story is {text!r:.80}; give a text")
    if isinstance(people, str) or not isinstance(people, Collection):
        raise TextError(f"people is {people!r:.80}; give a list of the names in the story, as ['Ann', 'Bob']")
    odd = [person for person in people if not isinstance(person, str)]
    if odd:
        raise TextError(f"people holds {odd[0]!r:.80}; give names as the story has them, as ['Ann', 'Bob']")


def _check_genders(facts: list[Fact]) -> None:
    called: dict[str, str] = {}
    for _, y, word in facts:
        before = called.setdefault(y, word)
        if word_number(before) % 2 != word_number(word) % 2:
            raise TextError(f"the story calls {y} both {before!r} and {word!r}: no person can be both")


def _readings(keys: Sequence[str], people: frozenset[str]) -> tuple[list[list[Fact]], int]:
    """Return every reading of some tokens, and the first token that fits no reading."""
    ways: dict[int, list[list[Fact]]] = {0: [[]]}
    furthest = 0
    while ways:
        start = min(ways)
        told = ways.pop(start)
        if start == len(keys):
            return told, start
        groups, stuck = _groups(keys, start, people)
        furthest = max(furthest, stuck)
        for end, facts in groups:
            here = ways.setdefault(end, [])
            here.extend(way for before in told if (way := [*before, *facts]) not in here)
    return [], furthest


def _groups(keys: Sequence[str], start: int, people: frozenset[str]) -> tuple[list[tuple[int, list[Fact]]], int]:
    """Return ends and facts of the groups of sentences that begin at ``start``, and the first token that fits none."""
    groups = []
    furthest = start
    open_ways: list[tuple[_Node, int, tuple[str, ...], tuple[str, ...]]] = [(_tree(), start, (), ())]
    while open_ways:
        node, position, named, called = open_ways.pop()
        for pattern in node.get(_END, ()):
            groups.append((position, [(named[x], named[y], called[word]) for x, y, word in pattern]))
        furthest = max(furthest, position)
        if position == len(keys):
            continue
        key = keys[position]
        if key in people:
            named = named if key in named else (*named, key)
            branches: tuple[_Key, ...] = (named.index(key),)
        elif key in _WORDS:
            called = (*called, key)
            branches = (key, _KIN[word_number(key) % 2])
        else:
            branches = (key,)
        open_ways.extend((node[branch], position + 1, named, called) for branch in branches if branch in node)
    return groups, furthest


@lru_cache(maxsize=1)
def _tree() -> _Node:
    root: _Node = {}
    for part in PARTS:
        for template in templates_of(part):
            for genders, form in template.forms():
                keys, pattern = path_and_facts(template, genders, form)
                node = root
                for key in keys:
                    node = node.setdefault(key, {})
                node.setdefault(_END, set()).add(pattern)
    return root


def path_and_facts(
    template: Template, genders: Sequence[int], form: Sequence[Piece]
) -> tuple[tuple[_Key, ...], _Pattern]:
    """Return the tokens of a form as keys of the tree, and the facts that they tell.

    Args:
        template: The template of the form.
        genders: The genders of the form's people.
        form: The form, from :meth:`Template.form`.

    Returns:
        Keys: lower-case tokens, numbers of people in order of first mention, and words of kinship; and for each fact
        the numbers of x and y and the position of the word among the words of the form.
    """
    keys: list[_Key] = []
    named: list[int] = []
    called: list[int] = []
    for piece in form:
        if piece.kind == "text":
            keys.extend(tokens_of(piece.text.lower()))
        elif piece.kind == "name":
            named.extend([] if piece.person in named else [piece.person])
            keys.append(named.index(piece.person))
        else:
            called.append(piece.person)
            gender = genders[piece.person]
            keys.append(_KIN[gender] if template.relation is None else WORDS[2 * template.relation + gender])
    chain = range(1, template.facts + 1)
    return tuple(keys), tuple((named.index(y - 1), named.index(y), called.index(y)) for y in chain)


def _sentence_around(text: str, token: int) -> str:
    """Return the sentence in which a token of a text stands, or the last sentence if there are no more tokens."""
    tokens = tokens_of(text)
    token = min(token, len(tokens) - 1)
    position = 0
    for earlier in tokens[:token]:
        position = text.index(earlier, position) + len(earlier)
    position = text.index(tokens[token], position)
    begin = max((match.end() for match in re.finditer(r"[.!?]\s+", text) if match.end() <= position), default=0)
    return re.split(r"(?<=[.!?])\s", text[begin:].strip(), maxsplit=1)[0]
