"""Rows of published CLUTRR files (Sinha et al., 2019), parsed and checked.

A published data set is a folder of CSV files: ``1.2,1.3_train.csv`` holds the training puzzles of the tasks 1.2 and
1.3, ``2.3_test.csv`` holds the test puzzles of task 2.3, which has noise of kind 2 (supporting) and 3 facts.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphbench.core.damage import damage_named, limited_lines
from graphbench.core.errors import StoreError
from graphbench.core.suggestions import closest
from graphbench.core.untrusted import open_regular_text
from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, WORDS

NAME = re.compile(r"\[([^\[\]]+)\]")
"""A name in a published story."""

COLUMNS = (
    *("", "id", "story", "query", "text_query", "target", "text_target", "clean_story", "proof_state", "f_comb"),
    *("task_name", "story_edges", "edge_types", "query_edge", "genders", "syn_story", "node_mapping", "task_split"),
)
"""The columns of a published file; the first column, without a name, numbers the rows."""

Pair = tuple[int, int]
_FILE = re.compile(r"((?:[1-5]\.\d+,)*[1-5]\.\d+)_(train|test)\.csv", re.ASCII)
_NOISE_PREFIX = {1: "", 2: "supporting_", 3: "irrelevant_", 4: "disconnected_", 5: "mixed_"}
_MISSPELT = MappingProxyType({"neice": "niece"})
_WORD = re.compile("|".join(map(re.escape, sorted((*WORDS, *_MISSPELT), key=len, reverse=True))))
_WORD_PATH = re.compile(rf"(?:{_WORD.pattern})(?:-(?:{_WORD.pattern}))*")
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # errors of literal_eval
_REMEDY = "take the file as published"


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A puzzle of a published file: the columns that samples are made of, under the names of the columns.

    Attributes:
        id: The puzzle's UUID.
        story: The text, noise included, sentences shuffled; names in square brackets.
        query: (asker, asked).
        target: The word by which ``asker`` calls ``asked``, one of the 22 words.
        f_comb: The words along the path.
        task_name: ``task_<noise>.<k>``.
        story_edges: Person numbers (x, y) of the facts: the path in order, then the noise.
        edge_types: The words of ``story_edges``; the released files have only the words of the path.
        query_edge: Person numbers of (asker, asked).
        genders: Name -> ``male`` or ``female``, in the order of the person numbers.
        task_split: ``train`` or ``test``.
        place: File and number of the row, for messages.
    """

    id: str
    story: str
    query: tuple[str, str]
    target: str
    f_comb: tuple[str, ...]
    task_name: str
    story_edges: tuple[Pair, ...]
    edge_types: tuple[str, ...]
    query_edge: Pair
    genders: Mapping[str, str]
    task_split: str
    place: str

    @property
    def task(self) -> str:
        """The task as in file names: 2.3 is supporting noise, three facts."""
        return self.task_name.removeprefix("task_")

    @property
    def noise(self) -> int:
        """Kind of noise: 1 none, 2 supporting, 3 irrelevant, 4 disconnected, 5 all three."""
        return int(self.task.split(".")[0])

    @property
    def k(self) -> int:
        """Number of facts on the path."""
        return int(self.task.split(".")[1])

    @property
    def part(self) -> str:
        """The part of the folder that the row belongs to: ``train``, ``k2``, ``supporting_k3``, ..."""
        return "train" if self.task_split == "train" else f"{_NOISE_PREFIX[self.noise]}k{self.k}"


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A published file, with the tasks and the split (``train`` or ``test``) in its name."""

    path: Path
    tasks: tuple[str, ...]
    split: str

    def rows(self) -> Iterator[PublishedRow]:
        """Yield the rows of the file.

        Raises:
            StoreError: If the file cannot be read, has no rows, or a row is malformed or belongs in another file.
        """
        number = 0
        for number, cells in enumerate(cells_of(self.path), start=1):
            row = parse_row(self.path, number, cells)
            for column, fits in (("task_split", row.task_split == self.split), ("task_name", row.task in self.tasks)):
                if not fits:
                    problem = "it does not belong in a file of this name; training and test files are mixed up"
                    raise _cell_error(self.path, number, column, cells[column], problem)
            yield row
        if not number:
            raise StoreError(f"{self.path} has no rows; {_REMEDY}")


def published_files(folder: Path) -> list[PublishedFile]:
    """Return the published files of a folder, training files first, then by task.

    Raises:
        StoreError: If the folder cannot be read or has no published files.
    """
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is not a folder; give the one that holds the published files (1.2,1.3_train.csv ...)"
        )
    with damage_named(folder, remedy="check who may read it"):
        matches = [(path, _FILE.fullmatch(path.name)) for path in folder.iterdir()]
    files = [PublishedFile(path, tuple(match[1].split(",")), match[2]) for path, match in matches if match]
    if not files:
        inside = sorted({path.parent.name for path in folder.glob("*/*.csv") if _FILE.fullmatch(path.name)})
        hint = f"; give one of its folders: {', '.join(inside)}" if inside else ""
        raise StoreError(f"{folder} has no file named like 1.2,1.3_train.csv or 1.2_test.csv{hint}")
    return sorted(files, key=lambda file: (file.split == "test", [task_numbers(task) for task in file.tasks]))


def read_rows(folder: Path) -> dict[str, list[PublishedRow]]:
    """Return part -> rows of a folder of published files: ``train``, ``k2``, ``supporting_k3``, ...

    Raises:
        StoreError: If the folder has no published files, a file is malformed (the message names file, row, column), or
            a puzzle is in two parts.
    """
    rows: dict[str, list[PublishedRow]] = {}
    part_of: dict[str, str] = {}
    for row in chain.from_iterable(file.rows() for file in published_files(folder)):
        rows.setdefault(row.part, []).append(row)
        if part_of.setdefault(row.id, row.part) != row.part:
            raise StoreError(
                f"{folder}: the puzzle {row.id!r} is in {part_of[row.id]!r} and in {row.part!r}; training and test "
                "files are mixed up: take them as published"
            )
    return rows


def task_numbers(task: str) -> list[int]:
    """Return the numbers of a task, by which tasks are sorted: 1.10 -> 1, 10."""
    return [int(number) for number in task.split(".")]


def _cell_error(path: Path, number: int, column: str, cell: str, problem: str) -> StoreError:
    """Return the error for a cell of a file."""
    name = repr(column) if column else "without a name"
    return StoreError(f"{path}, row {number}, column {name}: {problem} (got {cell!r:.120}); {_REMEDY}")


def cells_of(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield column -> text for each row of a file.

    Raises:
        StoreError: If the file cannot be read, is no CSV file in UTF-8, lacks a column, or has rows of another length.
    """
    with damage_named(path, remedy=_REMEDY), open_regular_text(path, "utf-8-sig", "") as lines:
        reader = csv.reader(limited_lines(lines), strict=True)
        header = next(reader, [])
        _check_header(path, header)
        empty = 0  # number of the first row of an empty run, which may be the file's end
        for number, cells in enumerate(reader, start=1):
            if not cells:
                empty = empty or number
                continue
            if empty:
                raise StoreError(f"{path}, row {empty} is an empty line; {_REMEDY}")
            if len(cells) != len(header):
                raise StoreError(f"{path}, row {number}: {len(cells)} cells, {len(header)} columns; {_REMEDY}")
            yield dict(zip(header, cells, strict=True))


def _check_header(path: Path, header: Sequence[str]) -> None:
    if len(header) == 1 and (mark := next((m for m in ";\t|" if header[0].count(m) >= len(COLUMNS) - 1), None)):
        raise StoreError(
            f"{path} has {mark!r} between its cells, a published file ','; save it with commas, or {_REMEDY}"
        )
    missing = [
        repr(column) if column else "the first one, without a name" for column in COLUMNS if column not in header
    ]
    if missing:
        hint = "; mirrors leave columns out, take the authors' files" if "target_text" in header else ""
        raise StoreError(
            f"{path} lacks the column {', '.join(missing)}; a published file has {len(COLUMNS)} columns{hint}"
        )
    if len(set(header)) != len(header):
        raise StoreError(f"{path} has a column twice; {_REMEDY}")


# One row: cells that can be read, and columns that agree


def parse_row(path: Path, number: int, cells: Mapping[str, str]) -> PublishedRow:
    """Return a row, parsed and checked.

    Args:
        path: The file, for messages.
        number: Number of the row in the file, the first under the header being 1.
        cells: Column -> text.

    Raises:
        StoreError: If a cell cannot be read or contradicts another one; the message names file, row and column.
    """
    values: dict[str, Any] = {}
    for column, (parse, form) in _FORMS.items():
        try:
            values[column] = parse(cells[column])
        except ValueError as error:
            raise _cell_error(path, number, column, cells[column], f"{error}; expected {form}") from error
    row = PublishedRow(**values, place=f"{path.name}, row {number}")
    for column, problem in chain(_problems_of_people(row), _problems_of_facts(row), _problems_of_words(row)):
        raise _cell_error(path, number, column, cells[column], problem)
    return row


def relation_word(text: str) -> str:
    """Return a word of kinship, its spelling corrected.

    Raises:
        ValueError: If the word is none of the 22.
    """
    word = _MISSPELT.get(text, text)
    if word not in WORDS:
        raise ValueError(f"{text!r} is no relation word{closest(text, WORDS)}")
    return word


def split_words(path: str) -> tuple[str, ...]:
    """Return the words of a path written with hyphens: ``son-son-in-law`` is a son and his son-in-law.

    Raises:
        ValueError: If the path has a word that is none of the 22.
    """
    if not _WORD_PATH.fullmatch(path):
        wrong = _WORD.sub("", path).strip("-").split("-")[0] or path
        raise ValueError(f"{wrong!r} is no relation word{closest(wrong, WORDS)}")
    return tuple(map(relation_word, _WORD.findall(path)))


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except _UNREADABLE:
        raise ValueError("it cannot be read") from None


def _items(kind: type, values: Any, noun: str, count: int | None = None) -> tuple[Any, ...]:
    """Return the values of a list or tuple, all of one type."""
    is_sequence = isinstance(values, list | tuple) and count in (None, len(values))
    if not is_sequence or any(type(value) is not kind for value in values):
        raise ValueError(f"not {noun}")
    return tuple(values)


def _pairs(text: str) -> tuple[tuple[Any, ...], ...]:
    pairs = _literal(text)
    if not isinstance(pairs, list):
        raise ValueError("not a list of number pairs")
    return tuple(_items(int, pair, "a list of number pairs", 2) for pair in pairs)


def _words(text: str) -> tuple[str, ...]:
    return tuple(map(relation_word, _items(str, _literal(text), "a list of words")))


def _genders(text: str) -> Mapping[str, str]:
    genders: dict[str, str] = {}
    for person in text.split(","):
        name, _, gender = person.rpartition(":")
        if not name or gender not in GENDERS:
            raise ValueError(f"{name!r} has the gender {gender!r}")
        if name in genders:
            raise ValueError(f"{name!r} stands twice")
        genders[name] = gender
    return MappingProxyType(genders)


def _matching(pattern: str, problem: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(problem)
        return text

    return parse


_FORMS: Mapping[str, tuple[Callable[[str], Any], str]] = MappingProxyType(
    {
        "id": (_matching(r"(?s)\s*\S.*", "it is empty"), "a UUID"),
        "story": (str, "a text"),
        "query": (lambda text: _items(str, _literal(text), "a pair of names", 2), "('Ann', 'Bob')"),
        "target": (relation_word, "one of the 22 relation words"),
        "f_comb": (split_words, "relation words joined by hyphens, as father-brother"),
        "task_name": (
            _matching(r"task_[1-5]\.[1-9][0-9]{0,3}", "an unknown task"),
            "task_<noise 1 to 5>.<number of facts>, as task_1.2",
        ),
        "story_edges": (_pairs, "[(0, 1), (1, 2)]"),
        "edge_types": (_words, "['father', 'brother']"),
        "query_edge": (lambda text: _items(int, _literal(text), "a pair of numbers", 2), "(0, 2)"),
        "genders": (_genders, "Ann:female,Cy:male,Bob:male"),
        "task_split": (_matching("train|test", "an unknown split"), "train or test"),
    }
)
"""Column -> the parser of its cells, and a description of their format."""


# The problems of a row, (column, problem) each. Only the first is reported, so a check relies on the checks before it.


def _problems_of_people(row: PublishedRow) -> Iterator[tuple[str, str]]:
    names, (asker, asked) = list(row.genders), row.query_edge
    people = range(len(names))
    if len(names) > NUM_ENTITIES:
        yield "genders", f"{len(names)} people, at most {NUM_ENTITIES} can be told apart"
    for name in row.query:
        if name not in row.genders:
            yield "query", f"{name!r} is not among the people of 'genders'"
    if asker == asked or asker not in people or asked not in people:
        yield "query_edge", f"not two of the {len(names)} people of 'genders'"
    if (names[asker], names[asked]) != row.query:
        yield "query_edge", f"not the people of 'query', {row.query}"
    if not {person for edge in row.story_edges for person in edge} <= set(people):
        yield "story_edges", f"a person who is none of the {len(names)} of 'genders'"
    if any(x == y for x, y in row.story_edges):
        yield "story_edges", "a fact about one person"
    if not set(NAME.findall(row.story)) & set(row.query):
        yield "story", f"it names neither of {row.query}, the people of the question; names stand in square brackets"


def _problems_of_facts(row: PublishedRow) -> Iterator[tuple[str, str]]:
    """Yield the problems with the facts.

    The first k facts lead from the asker to the asked person. No fact tells the answer: the published generator
    never tells the fact in question, nor its reverse.
    """
    k, facts, (asker, asked) = row.k, len(row.story_edges), row.query_edge
    if len(row.f_comb) != k:
        yield "f_comb", f"{len(row.f_comb)} words, but {row.task_name} has {k} facts"
    if facts < k:
        yield "story_edges", f"{facts} facts, but {row.task_name} has {k}"
    if row.noise == 1 and facts > k:
        yield "story_edges", f"{facts} facts, but {row.task_name} has {k} and no noise"
    if len(row.edge_types) not in (k, facts):
        yield "edge_types", f"{len(row.edge_types)} words for {k} facts of the path, {facts} in all"
    path = row.story_edges[:k]
    is_path = all(y == x for (_, y), (x, _) in pairwise(path)) and (path[0][0], path[-1][1]) == (asker, asked)
    if not is_path:
        yield "story_edges", f"the first {k} facts are no path from {asker} to {asked}, the query"
    for edge in row.story_edges[k if k == 1 else 0 :]:
        if set(edge) == {asker, asked}:
            yield "story_edges", f"the fact {edge} relates the two people of the question"


def _problems_of_words(row: PublishedRow) -> Iterator[tuple[str, str]]:
    if row.edge_types[: row.k] != row.f_comb:
        yield "edge_types", "not the words of 'f_comb'"
    people, words = list(row.genders.items()), dict[Pair, str]()
    for edge, word in zip(row.story_edges, row.edge_types, strict=False):
        name, gender = people[edge[1]]
        if words.setdefault(edge, word) != word:
            yield "edge_types", f"two words for the people {edge} of 'story_edges'"
        if GENDERS[WORDS.index(word) % 2] != gender:
            yield "edge_types", f"{word!r} for {name!r}, who is {gender} in 'genders'"
