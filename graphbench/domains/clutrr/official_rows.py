"""One row of a published CLUTRR file: its 18 columns, parsed and checked against each other."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphbench.core.errors import StoreError
from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, WORDS

NAME = re.compile(r"\[([^\[\]]+)\]")
"""A name in a published story."""

Fact = tuple[str, str, str]  # (x, word, y) of a proof: "y is the <word> of x"
Problem = tuple[str, str]  # column, description of the problem
_TASK = re.compile(r"task_([1-5])\.([1-9]\d*)")
_MISSPELT = MappingProxyType({"neice": "niece"})
_SPELLINGS = sorted((*WORDS, *_MISSPELT), key=len, reverse=True)
_WORD = re.compile("|".join(map(re.escape, _SPELLINGS)))
_WORD_PATH = re.compile(rf"(?:{_WORD.pattern})(?:-(?:{_WORD.pattern}))*")
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # errors of literal_eval


@dataclass(frozen=True, slots=True)
class OfficialRow:
    """A puzzle as a published file tells it; the attributes are the file's columns.

    Attributes:
        index: Number of the row, from the column without a name.
        id: The puzzle's UUID.
        story: The text, noise included, sentences shuffled; names in square brackets.
        query: (asker, asked).
        text_query: The question in words; empty in the released files.
        target: The word by which ``asker`` calls ``asked``, one of the 22 words.
        text_target: The answer in words; empty or one sentence.
        clean_story: The text of the path alone, in its order.
        proof_state: (head, (first, second)) per step of the proof, in the order of expansion; facts are (x, word, y).
        f_comb: The words along the path.
        task_name: ``task_<noise>.<k>``.
        story_edges: Person numbers (x, y) of the facts: the path in order, then the noise.
        edge_types: The words of ``story_edges``; the released files have only the words of the path.
        query_edge: Person numbers of (asker, asked).
        genders: Name -> ``male`` or ``female``, in the order of the person numbers.
        syn_story: Empty in the released files.
        node_mapping: Number in the generator's family -> person number.
        task_split: ``train`` or ``test``.
        place: File and number of the row, for messages.
    """

    index: int
    id: str
    story: str
    query: tuple[str, str]
    text_query: str
    target: str
    text_target: tuple[str, ...]
    clean_story: str
    proof_state: tuple[tuple[Fact, tuple[Fact, ...]], ...]
    f_comb: tuple[str, ...]
    task_name: str
    story_edges: tuple[tuple[int, int], ...]
    edge_types: tuple[str, ...]
    query_edge: tuple[int, int]
    genders: Mapping[str, str]
    syn_story: str
    node_mapping: Mapping[int, int]
    task_split: str
    place: str

    @property
    def task(self) -> str:
        """The task as in file names: 2.3 is supporting noise, three facts."""
        return self.task_name.removeprefix("task_")

    @property
    def noise(self) -> int:
        """Kind of noise: 1 none, 2 supporting, 3 irrelevant, 4 disconnected, 5 all three."""
        return int(self._task[0])

    @property
    def k(self) -> int:
        """Number of facts on the path."""
        return int(self._task[1])

    @property
    def _task(self) -> tuple[str, str]:
        noise, k = self.task.split(".")
        return noise, k


def split_words(path: str) -> tuple[str, ...]:
    """Return the words of a path written with hyphens: ``son-son-in-law`` is a son and his son-in-law.

    Raises:
        ValueError: If it has a word that is none of the 22.
    """
    if not _WORD_PATH.fullmatch(path):
        wrong = _WORD.sub("", path).strip("-").split("-")[0]
        raise ValueError(_unknown_word(wrong or path))
    return tuple(_MISSPELT.get(word, word) for word in _WORD.findall(path))


def parse_row(path: Path, number: int, cells: Mapping[str, str]) -> OfficialRow:
    """Return a row, parsed and checked.

    Args:
        path: The file, for messages.
        number: Number of the row in the file, the first under the header being 1.
        cells: Column -> text.

    Raises:
        StoreError: If a cell cannot be read or contradicts another one; the message names file, row and column.
    """
    values = {}
    for column, (parse, form) in _FORMS.items():
        try:
            values[column or "index"] = parse(cells[column])
        except ValueError as error:
            raise _error(path, number, column, cells[column], f"{error}; expected {form}") from error
    row = OfficialRow(**values, place=f"{path.name}, row {number}")
    for column, problem in contradictions(row):
        raise _error(path, number, column, cells[column], problem)
    return row


def _error(path: Path, number: int, column: str, cell: str, problem: str) -> StoreError:
    name = repr(column) if column else "without a name"
    return StoreError(f"{path}, row {number}, column {name}: {problem} (got {cell!r:.120}); take the file as published")


def _unknown_word(word: str) -> str:
    near = difflib.get_close_matches(word, WORDS, n=1)
    return f"{word!r} is no relation word" + (f", did you mean {near[0]!r}" if near else "")


def _relation_word(text: str) -> str:
    word = _MISSPELT.get(text, text)
    if word not in WORDS:
        raise ValueError(_unknown_word(text))
    return word


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _literal(text: str) -> Any:
    """Return the value that a cell holds as Python writes it."""
    try:
        return ast.literal_eval(text)
    except _UNREADABLE:
        raise ValueError("it cannot be read") from None


def _whole_number(text: str) -> int:
    _require(bool(re.fullmatch(r"-?[0-9]+", text.strip())), "not a whole number")
    return int(text)


def _all_of(kind: type, values: Any, count: int | None = None) -> bool:
    right_size = isinstance(values, list | tuple) and (count is None or len(values) == count)
    return right_size and all(type(value) is kind for value in values)


def _names(text: str) -> tuple[str, str]:
    pair = _literal(text)
    _require(_all_of(str, pair, 2), "not a pair of names")
    return pair[0], pair[1]


def _sentences(text: str) -> tuple[str, ...]:
    sentences = _literal(text)
    _require(_all_of(str, sentences), "not a list of sentences")
    return tuple(sentences)


def _number_pair(text: str) -> tuple[int, int]:
    pair = _literal(text)
    _require(_all_of(int, pair, 2), "not a pair of numbers")
    return pair[0], pair[1]


def _number_pairs(text: str) -> tuple[tuple[int, int], ...]:
    pairs = _literal(text)
    _require(isinstance(pairs, list) and all(_all_of(int, pair, 2) for pair in pairs), "not a list of number pairs")
    return tuple((x, y) for x, y in pairs)


def _word_list(text: str) -> tuple[str, ...]:
    words = _literal(text)
    _require(_all_of(str, words), "not a list of words")
    return tuple(map(_relation_word, words))


def _fact(triple: Any) -> Fact:
    _require(_all_of(str, triple, 3), f"{triple!r:.60} is no (name, word, name)")
    return triple[0], _relation_word(triple[1]), triple[2]


def _proof(text: str) -> tuple[tuple[Fact, tuple[Fact, ...]], ...]:
    steps = _literal(text)
    _require(_all_of(dict, steps), "not a list of mappings")
    _require(all(_all_of(tuple, body) for step in steps for body in step.values()), "a step has no list of facts")
    return tuple((_fact(head), tuple(map(_fact, body))) for step in steps for head, body in step.items())


def _genders(text: str) -> Mapping[str, str]:
    genders: dict[str, str] = {}
    for person in text.split(","):
        name, _, gender = person.rpartition(":")
        _require(bool(name) and gender in GENDERS, f"{name!r} has the gender {gender!r}")
        _require(name not in genders, f"{name!r} stands twice")
        genders[name] = gender
    return MappingProxyType(genders)


def _mapping(text: str) -> Mapping[int, int]:
    mapping = _literal(text)
    is_mapping = isinstance(mapping, dict) and _all_of(int, [*mapping, *mapping.values()])
    _require(is_mapping, "not a mapping of numbers to numbers")
    return MappingProxyType(mapping)


def _task_name(text: str) -> str:
    _require(bool(_TASK.fullmatch(text)), "an unknown task")
    return text


def _task_split(text: str) -> str:
    _require(text in ("train", "test"), "an unknown split")
    return text


_Form = tuple[Callable[[str], Any], str]  # the parser of a cell, and a description of its format
_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "": (_whole_number, "the row's number"),
        "id": (str, "a UUID"),
        "story": (str, "a text"),
        "query": (_names, "('Ann', 'Bob')"),
        "text_query": (str, "a text"),
        "target": (_relation_word, "one of the 22 relation words"),
        "text_target": (_sentences, "['[Ann] loves her brother [Bob].']"),
        "clean_story": (str, "a text"),
        "proof_state": (_proof, "[{('Ann', 'uncle', 'Bob'): [('Ann', 'father', 'Cy'), ('Cy', 'brother', 'Bob')]}]"),
        "f_comb": (split_words, "relation words joined by hyphens, as father-brother"),
        "task_name": (_task_name, "task_<noise 1 to 5>.<number of facts>, as task_1.2"),
        "story_edges": (_number_pairs, "[(0, 1), (1, 2)]"),
        "edge_types": (_word_list, "['father', 'brother']"),
        "query_edge": (_number_pair, "(0, 2)"),
        "genders": (_genders, "Ann:female,Cy:male,Bob:male"),
        "syn_story": (str, "a text"),
        "node_mapping": (_mapping, "{7: 0, 2: 1, 4: 2}"),
        "task_split": (_task_split, "train or test"),
    }
)
COLUMNS: tuple[str, ...] = tuple(_FORMS)


# Consistency of the columns of a row


def named_people(row: OfficialRow) -> set[str]:
    """Return the people whom the story of a row names."""
    return set(NAME.findall(row.story)) & set(row.genders)


def contradictions(row: OfficialRow) -> Iterator[Problem]:
    """Yield (column, problem) where columns of a row contradict each other; basic columns come first."""
    basic = list(_of_people(row)) or list(_of_counts(row))
    yield from basic or [*_of_path(row), *_of_words(row), *_of_names(row)]


def _held(*checks: tuple[bool, str, str]) -> Iterator[Problem]:
    return ((column, problem) for is_wrong, column, problem in checks if is_wrong)


def _of_people(row: OfficialRow) -> Iterator[Problem]:
    """Yield the problems with the people in the facts and the query of a row."""
    names = list(row.genders)
    people = set(range(len(names)))
    unknown = [name for name in row.query if name not in row.genders]
    asker, asked = row.query_edge
    others = f"not two of the {len(names)} people of 'genders'"
    yield from _held(
        (not row.id.strip(), "id", "it is empty"),
        (len(names) > NUM_ENTITIES, "genders", f"{len(names)} people, at most {NUM_ENTITIES} can be told apart"),
        (bool(unknown), "query", f"{', '.join(map(repr, unknown))} is not among the people of 'genders'"),
        (asker == asked or not {asker, asked} <= people, "query_edge", others),
        (
            {asker, asked} <= people and (names[asker], names[asked]) != row.query,
            "query_edge",
            f"not the people of 'query', {row.query}",
        ),
        (not _people(row) <= people, "story_edges", f"a person who is none of the {len(names)} of 'genders'"),
        (any(x == y for x, y in row.story_edges), "story_edges", "a fact about one person"),
    )


def _of_counts(row: OfficialRow) -> Iterator[Problem]:
    """Yield the problems with the number of facts of a row, which its task determines."""
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
    """Yield the problems with the facts of a row.

    The first k facts lead from the asker to the person asked about. No fact tells the answer: the published generator
    never tells the fact in question, nor its reverse.
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
    """Yield the problems with the words of the facts."""
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
    """Yield the problems with the names in story, proof and mapping, which must be people of the row."""
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
    """Return a pair of people about whom two facts disagree; None if there is none."""
    told: dict[tuple[int, int], str] = {}
    for edge, word in zip(row.story_edges, row.edge_types, strict=False):
        if told.setdefault(edge, word) != word:
            return edge
    return None
