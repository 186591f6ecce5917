"""Published CLUTRR files (Sinha et al., 2019), read into the same arrays as generated puzzles.

A published data set is a folder of CSV files: ``1.2,1.3_train.csv`` holds the training puzzles of the tasks 1.2 and
1.3, ``2.3_test.csv`` the test puzzles of task 2.3, which has noise of kind 2 (supporting) and 3 facts.
"""

from __future__ import annotations

import csv
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import FileFault, limited_lines
from graphbench.core.errors import StoreError
from graphbench.core.untrusted import open_regular_text
from graphbench.domains.clutrr.official_labels import NOT_STATED, PATH, noise_fault, typed_edges, verdict
from graphbench.domains.clutrr.official_rows import COLUMNS, NAME, OfficialRow, named_people, parse_row
from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, WORDS

_LOG = logging.getLogger(__name__)
_FILE = re.compile(r"((?:[1-5]\.\d+,)*[1-5]\.\d+)_(train|test)\.csv")
_NOISE_PREFIX = {1: "", 2: "supporting_", 3: "irrelevant_", 4: "disconnected_", 5: "mixed_"}
_TOKEN = re.compile(r"@ent\d+|n't\b|'(?:s|d|m|ll|re|ve)\b|[^\W_]+(?:['-][^\W_]+)*|\S")


@dataclass(frozen=True, eq=False)
class OfficialSplit:
    """Published puzzles as arrays: S puzzles, N people, E facts, one puzzle after the other.

    People keep their published numbers. A fact that a path passes twice is one edge.

    Attributes:
        rows: The S rows, all columns parsed.
        num_nodes: int64 ``[S]``, people per puzzle.
        num_edges: int64 ``[S]``, facts per puzzle.
        edges: int64 ``[E, 2]``, (x, y) of "y is the <word> of x", numbers within the puzzle, sorted.
        relation: int8 ``[E]``, class of the word; 22 for noise with a relation that the files lack and that nothing
            determines.
        asker: uint8 ``[N]``, 1 at the first person of the query.
        asked: uint8 ``[N]``, 1 at the second one.
        answer: int8 ``[S]``, class of the word by which ``asker`` calls ``asked``.
        gender: uint8 ``[N]``, 0 male, 1 female.
        role: uint8 ``[E]``, 0 path, 1 supporting, 2 irrelevant, 3 disconnected: by the place in the graph.
        step: float32 ``[E]``, place on the path, the first one where it passes twice; -1 for noise.
        sentence: float32 ``[E]``, always -1: the files do not say which sentence tells a fact.
        entity: uint8 ``[N]``, the number that stands for a person in ``tokens``, different within a story.
        story: S texts with names.
        tokens: S texts in lower case, words and punctuation separated by single spaces, people as ``@ent7``.
        name: N names.
    """

    rows: tuple[OfficialRow, ...]
    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: NDArray[np.int64]
    relation: NDArray[np.int8]
    asker: NDArray[np.uint8]
    asked: NDArray[np.uint8]
    answer: NDArray[np.int8]
    gender: NDArray[np.uint8]
    role: NDArray[np.uint8]
    step: NDArray[np.float32]
    sentence: NDArray[np.float32]
    entity: NDArray[np.uint8]
    story: list[str]
    tokens: list[str]
    name: list[str]

    def __len__(self) -> int:
        """Return the number of puzzles."""
        return len(self.rows)


def read_official(folder: str | Path, seed: int = 0) -> dict[str, OfficialSplit]:
    """Read a folder of published CLUTRR files.

    One warning counts the faults of the files and gives file, row and id of the first of each kind: false labels,
    labels that the sound rules do not derive, noise that contradicts the paper's definition of its task, stories that
    do not name both people of the question, proofs of another fact than the answer, repeated ids, and noise facts of
    unknown relation.

    Args:
        folder: The folder, for example ``data_089907f8``.
        seed: Seed of the numbers that stand for people; the numbers of a puzzle depend only on the seed and the id.

    Returns:
        ``train`` for the training files; one split per test task: ``k2`` ... without noise, ``supporting_k3``,
        ``irrelevant_k3``, ``disconnected_k3``, ``mixed_k3`` (all kinds) with noise.

    Raises:
        StoreError: If the folder has no published files, or a file is malformed; the message names file, row, column.
    """
    files = _find_files(Path(folder))
    rows: dict[str, list[OfficialRow]] = {}
    for file in files:
        for row in _read_file(file):
            rows.setdefault("train" if file.part == "train" else _split_name(row), []).append(row)
    _check_apart(rows, Path(folder))
    splits = {split: _official_split(split_rows, seed) for split, split_rows in rows.items()}
    _warn(splits, Path(folder))
    return splits


def published_tasks(folder: str | Path) -> dict[str, frozenset[str]]:
    """Return the tasks in the names of published files: ``train`` -> 1.2, 1.3; ``test`` -> 1.2, 1.3, 2.3.

    Raises:
        StoreError: If the folder has no published files.
    """
    files = _find_files(Path(folder))
    return {part: frozenset(t for file in files if file.part == part for t in file.tasks) for part in ("train", "test")}


@dataclass(frozen=True, slots=True)
class _File:
    """A file, with the split and the task in its name."""

    path: Path
    tasks: tuple[str, ...]
    part: str


def _find_files(folder: Path) -> list[_File]:
    """Return the files of a folder, training first, then by task."""
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is not a folder; give the one that holds the published files (1.2,1.3_train.csv ...)"
        )
    try:
        matches = [(path, _FILE.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError as error:
        raise unreadable(folder, error) from error
    files = [_File(path, tuple(match[1].split(",")), match[2]) for path, match in matches if match]
    if not files:
        inside = sorted({path.parent.name for path in folder.glob("*/*.csv") if _FILE.fullmatch(path.name)})
        hint = f"; give one of its folders: {', '.join(inside)}" if inside else ""
        raise StoreError(f"{folder} has no file named like 1.2,1.3_train.csv or 1.2_test.csv{hint}")
    return sorted(files, key=lambda file: (file.part == "test", [tuple(map(int, t.split("."))) for t in file.tasks]))


def unreadable(path: Path, error: OSError) -> StoreError:
    """Return the error for a file or folder that the system does not let us read."""
    return StoreError(f"{path} cannot be read: {error.strerror or error}; check what it is, and who may read it")


def _read_file(file: _File) -> Iterator[OfficialRow]:
    number = 0
    for number, cells in enumerate(_cells(file.path), start=1):
        row = parse_row(file.path, number, cells)
        for column, said, fits in (
            ("task_split", row.task_split, row.task_split == file.part),
            ("task_name", row.task_name, row.task in file.tasks),
        ):
            if not fits:
                raise StoreError(
                    f"{file.path}, row {number}, column {column!r}: {said!r} does not belong in a file of this name; "
                    "training and test files are mixed up: take them as published"
                )
        yield row
    if not number:
        raise StoreError(f"{file.path} has no rows; take the file as published")


def _cells(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield column -> text for each row of a file."""
    try:
        with open_regular_text(path, "utf-8-sig", "") as lines:
            reader = csv.reader(limited_lines(lines), strict=True)
            header = next(reader, [])
            _check_header(path, header)
            empty = 0  # number of the first row of an empty run, which may be the file's end
            for number, cells in enumerate(reader, start=1):
                if not cells:
                    empty = empty or number
                    continue
                if empty:
                    raise StoreError(f"{path}, row {empty} is an empty line; take the file as published")
                if len(cells) != len(header):
                    raise StoreError(
                        f"{path}, row {number}: {len(cells)} cells, {len(header)} columns; take the file as published"
                    )
                yield dict(zip(header, cells, strict=True))
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not UTF-8 ({error}); save it as UTF-8 or take the file as published") from error
    except FileFault as error:
        raise StoreError(f"{path} {error}; take the file as published") from error
    except csv.Error as error:
        raise StoreError(f"{path} is no table of cells between commas ({error}); take the file as published") from error
    except StoreError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    missing = [column for column in COLUMNS if column not in header]
    separator = next((mark for mark in ";\t|" if len(header) == 1 and header[0].count(mark) >= len(COLUMNS) - 1), None)
    if separator is not None:
        raise StoreError(
            f"{path} has {separator!r} between its cells, a published file ','; save it with commas, or take the file "
            "as published"
        )
    if missing:
        shown = ", ".join(repr(column) if column else "the first one, without a name" for column in missing)
        hint = "; mirrors leave columns out, take the authors' files" if "target_text" in header else ""
        raise StoreError(f"{path} lacks the column {shown}; a published file has {len(COLUMNS)} columns{hint}")
    if len(set(header)) != len(header):
        raise StoreError(f"{path} has a column twice; take the file as published")


def _split_name(row: OfficialRow) -> str:
    return f"{_NOISE_PREFIX[row.noise]}k{row.k}"


def _check_apart(rows: Mapping[str, Sequence[OfficialRow]], folder: Path) -> None:
    """Raise if a puzzle is in two splits."""
    home: dict[str, str] = {}
    for split, split_rows in rows.items():
        for row in split_rows:
            if home.setdefault(row.id, split) != split:
                raise StoreError(
                    f"{folder}: the puzzle {row.id!r} is in {home[row.id]!r} and in {split!r}; training and test files "
                    "are mixed up: take them as published"
                )


def _warn(splits: Mapping[str, OfficialSplit], folder: Path) -> None:
    """Log one warning that counts all faults, if there are any."""
    faults = [str(finding) for finding in findings(list(splits.values())) if finding.faulty]
    if faults:
        _LOG.warning("%s: %s; all are kept as published", folder, "; ".join(faults))


def _official_split(rows: Sequence[OfficialRow], seed: int) -> OfficialSplit:
    typed = [typed_edges(row) for row in rows]
    people = [list(row.genders) for row in rows]
    entities = [_entities(row, seed) for row in rows]
    first = np.cumsum([0, *map(len, people)])[:-1]
    query = np.array([row.query_edge for row in rows], np.int64).reshape(-1, 2)
    edges = np.array(list(chain.from_iterable(t.edges for t in typed)), np.int64).reshape(-1, 2)
    return OfficialSplit(
        rows=tuple(rows),
        num_nodes=np.array(list(map(len, people)), np.int64),
        num_edges=np.array([len(t.edges) for t in typed], np.int64),
        edges=edges,
        relation=_joined((t.relations for t in typed), np.int8),
        asker=_marks(first + query[:, 0], sum(map(len, people))),
        asked=_marks(first + query[:, 1], sum(map(len, people))),
        answer=np.array([WORDS.index(row.target) for row in rows], np.int8),
        gender=_joined((map(GENDERS.index, row.genders.values()) for row in rows), np.uint8),
        role=_joined((t.roles for t in typed), np.uint8),
        step=_joined((t.steps for t in typed), np.float32),
        sentence=np.full(len(edges), -1, np.float32),
        entity=_joined((e.values() for e in entities), np.uint8),
        story=[NAME.sub(r"\1", row.story) for row in rows],
        tokens=[_tokens(row.story, e) for row, e in zip(rows, entities, strict=True)],
        name=list(chain.from_iterable(people)),
    )


def _joined(parts: Any, dtype: Any) -> NDArray[Any]:
    return np.fromiter(chain.from_iterable(parts), dtype)


def _marks(places: NDArray[np.int64], count: int) -> NDArray[np.uint8]:
    marks = np.zeros(count, np.uint8)
    marks[places] = 1
    return marks


def _entities(row: OfficialRow, seed: int) -> dict[str, int]:
    """Return name -> the number that stands for it, drawn for this puzzle."""
    puzzle_seed = int.from_bytes(hashlib.blake2b(row.id.encode(), digest_size=8).digest(), "little")
    numbers = np.random.default_rng([seed, puzzle_seed]).permutation(NUM_ENTITIES)[: len(row.genders)]
    return dict(zip(row.genders, numbers.tolist(), strict=True))


def _tokens(story: str, entity: Mapping[str, int]) -> str:
    """Return a story's words, people as ``@ent7``; a name in brackets that nobody has stays a word."""
    anonymous = NAME.sub(lambda match: f" @ent{entity[match[1]]} " if match[1] in entity else f" {match[1]} ", story)
    return " ".join(_TOKEN.findall(anonymous.lower()))


# Faults that are counted and not refused: in labels, noise, stories and proofs

Faulty = tuple[OfficialRow, str]  # a row, and a remark about its fault


@dataclass(frozen=True)
class Finding:
    """A kind of fault in published files, and its cases.

    Attributes:
        about: The subject of the check, in a word or two.
        what: The fault in words, phrased to follow a number.
        faulty: Every case: its row, and a remark about its fault.
        every: Number of items that were checked.
    """

    about: str
    what: str
    faulty: Sequence[Faulty]
    every: int

    def __str__(self) -> str:
        """Return the number of cases, with file, row and id of the first case."""
        if not self.faulty:
            return f"0 of {self.every} {self.what}"
        first, more = self.faulty[0]
        share = len(self.faulty) / self.every
        words = f"{len(self.faulty)} of {self.every} ({share:.1%}) {self.what}"
        return f"{words} (first: {first.place}, id {first.id!r}{more})"


def findings(splits: Sequence[OfficialSplit]) -> Iterator[Finding]:
    """Yield every kind of fault that is checked, including kinds without cases.

    Args:
        splits: All splits of a folder.
    """
    rows = [row for split in splits for row in split.rows]
    verdicts = [verdict(row) for row in rows]
    times = Counter(row.id for row in rows)
    nameless = [
        (row, f": nobody is called {', '.join(missing)}")
        for row in rows
        if (missing := [f"[{name}]" for name in row.query if name not in named_people(row)])
    ]
    noisy = [(row, f": {fault}") for row in rows if (fault := noise_fault(row)) is not None]
    kinds: tuple[tuple[str, str, list[Faulty]], ...] = (
        (
            "labels",
            "labels are false: the path implies another relation or gender",
            _rows_where(rows, (v == "false" for v in verdicts)),
        ),
        (
            "labels",
            "labels are not implied by the path under the sound rules",
            _rows_where(rows, (v == "open" for v in verdicts)),
        ),
        ("noise", "puzzles have other noise than the paper says of their task", noisy),
        ("stories", "stories do not name both people asked about", nameless),
        ("proofs", "proofs do not begin with the answer", _rows_where(rows, (not _proves(row) for row in rows))),
        ("duplicates", "puzzles share their id with another", _rows_where(rows, (times[row.id] > 1 for row in rows))),
    )
    for about, what, faulty in kinds:
        yield Finding(about, what, faulty, len(rows))
    unknown = [(row, "") for split in splits for row in _of_unknown_noise(split)]
    every = sum(int((split.role != PATH).sum()) for split in splits)
    yield Finding("noise relations", f"noise facts have no known relation (class {NOT_STATED})", unknown, every)


def _rows_where(rows: Iterable[OfficialRow], faulty: Iterable[bool]) -> list[Faulty]:
    return [(row, "") for row, is_faulty in zip(rows, faulty, strict=True) if is_faulty]


def _of_unknown_noise(split: OfficialSplit) -> list[OfficialRow]:
    """Return the row of every noise fact of unknown relation."""
    owner = np.repeat(np.arange(len(split)), split.num_edges)
    return [split.rows[i] for i in owner[(split.role != PATH) & (split.relation == NOT_STATED)].tolist()]


def _proves(row: OfficialRow) -> bool:
    asker, asked = row.query
    return bool(row.proof_state) and row.proof_state[0][0] == (asker, row.target, asked)
