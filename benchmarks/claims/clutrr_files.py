"""Count the faults of published CLUTRR files: ``python -m benchmarks.claims.clutrr_files FOLDER``.

The package reads the puzzles as they are published. This audit counts the labels that are false, the noise of another
kind than its task, the noise facts of unknown relation, the proofs, stories and columns that contradict the puzzle, the
puzzles that stand twice, and the test paths that training has, too. The files are not part of this project, so no
claim about the published tables depends on the audit; it is for people who have the files.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from graphbench.domains.clutrr.files.facts import PATH, UNKNOWN, facts_of, path_facts, strange_noise
from graphbench.domains.clutrr.files.rows import NAME, PublishedRow, cells_of, published_files, relation_word
from graphbench.domains.clutrr.reasoning import closure
from graphbench.domains.clutrr.relations import gender_of_word, relation_of_word

Verdict = Literal["true", "false", "open"]
_Triple = tuple[str, str, str]  # (x, word, y) of a proof: "y is the <word> of x"
_PROOF = TypeAdapter(list[dict[_Triple, list[_Triple]]])
_SENTENCES = TypeAdapter(list[str])
_MAPPING = TypeAdapter(dict[int, int])
_NO_VALUE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # errors of reading a cell
_ROLES = ("of the path", "supporting", "irrelevant", "disconnected")


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A row of a published file, and the text of all its columns."""

    row: PublishedRow
    cells: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """A kind of fault in published files, and its cases.

    Attributes:
        fault: The fault in words, phrased to follow a number.
        cases: Every case: its row, and a remark on its fault, which may be empty.
        checked: Number of items that were checked.
    """

    fault: str
    cases: Sequence[tuple[PublishedRow, str]]
    checked: int

    def __str__(self) -> str:
        """Return the number of cases, with file, row and id of the first case."""
        if not self.cases:
            return f"0 of {self.checked} {self.fault}"
        row, remark = self.cases[0]
        counted = f"{len(self.cases)} of {self.checked} ({len(self.cases) / self.checked:.1%}) {self.fault}"
        return f"{counted} (first: {row.place}, id {row.id!r}{': ' if remark else ''}{remark})"


def read_puzzles(folder: Path) -> list[Puzzle]:
    """Return the puzzles of a folder of published files.

    Raises:
        StoreError: If the folder has no published files, or a file is malformed.
    """
    files = published_files(folder)
    return [Puzzle(*pair) for file in files for pair in zip(file.rows(), cells_of(file.path), strict=True)]


def findings(puzzles: Sequence[Puzzle]) -> Iterator[Finding]:
    """Yield every kind of fault that is checked, including kinds without cases."""
    rows = [puzzle.row for puzzle in puzzles]
    verdicts = [verdict(row) for row in rows]
    times = Counter(row.id for row in rows)
    told = Counter(row.story for row in rows)
    remarks: dict[str, list[str | None]] = {
        "labels are false: the path implies another relation or gender": [_case(v == "false") for v in verdicts],
        "labels are not implied by the path under the sound rules": [_case(v == "open") for v in verdicts],
        "puzzles have other noise than the paper says of their task": [noise_fault(row) for row in rows],
        "stories do not name both people asked about": [_nameless(row) for row in rows],
        "proofs do not begin with the answer": [_case(not _proves(puzzle)) for puzzle in puzzles],
        "puzzles have a column that contradicts the puzzle": [column_fault(puzzle) for puzzle in puzzles],
        "puzzles share their id with another": [_case(times[row.id] > 1) for row in rows],
        "stories stand twice": [_case(told[row.story] > 1) for row in rows],
    }
    for fault, of_rows in remarks.items():
        cases = [(row, remark) for row, remark in zip(rows, of_rows, strict=True) if remark is not None]
        yield Finding(fault, cases, len(rows))
    noise = [(row, fact.relation) for row in rows for fact in facts_of(row) if fact.role != PATH]
    unknown = [(row, "") for row, relation in noise if relation == UNKNOWN]
    yield Finding(f"noise facts have no known relation (class {UNKNOWN})", unknown, len(noise))


def verdict(row: PublishedRow) -> Verdict:
    """Return whether a target is ``true`` in every family that fits the path, ``false`` in every one, or ``open``.

    A word of the wrong gender is false. A target is open where the path alone implies no relation: the paper's rules
    conclude more than is true in every family.
    """
    if gender_of_word(row.target) != row.genders[row.query[1]]:
        return "false"
    answers = closure(path_facts(row), rules="sound").get(row.query_edge, frozenset())
    if not answers:
        return "open"
    return "true" if relation_of_word(row.target) in answers else "false"


def noise_fault(row: PublishedRow) -> str | None:
    """Return how the noise of a row contradicts the paper's definition of its task, or None.

    A task of one kind of noise has facts of this kind only; the task of all kinds has at least one noise fact.
    """
    if row.noise > 1 and len(row.story_edges) == row.k:
        return f"{row.task_name} without noise"
    for edge, role in strange_noise(row):
        return f"the noise fact {edge} is {_ROLES[role]}, not {_ROLES[row.noise - 1]}"
    return None


def column_fault(puzzle: Puzzle) -> str | None:
    """Return the fault of a column that samples do not need, or None: number, sentences, proof or mapping."""
    for column, fault_of in _COLUMN_FAULTS.items():
        cell = puzzle.cells[column]
        try:
            fault = fault_of(puzzle.row, cell)
        except _NO_VALUE:
            fault = "it cannot be read"
        if fault:
            return f"column {column!r}: {fault} (got {cell!r:.120})"
    return None


def _number_fault(row: PublishedRow, cell: str) -> str:
    int(cell)
    return ""


def _sentences_fault(row: PublishedRow, cell: str) -> str:
    _SENTENCES.validate_python(ast.literal_eval(cell), strict=True)
    return ""


def _proof_fault(row: PublishedRow, cell: str) -> str:
    facts = _proof_facts(cell)
    strangers = sorted({name for x, _, y in facts for name in (x, y)} - row.genders.keys())
    return f"{', '.join(map(repr, strangers))} is not among the people of 'genders'" if strangers else ""


def _mapping_fault(row: PublishedRow, cell: str) -> str:
    numbers = list(_MAPPING.validate_python(ast.literal_eval(cell), strict=True).values())
    on_path = {person for edge in row.story_edges[: row.k] for person in edge}
    is_mapping = len(set(numbers)) == len(numbers) and on_path <= set(numbers) <= set(range(len(row.genders)))
    return "" if is_mapping else "it must lead to people of 'genders', to all people of the path, and to nobody twice"


_COLUMN_FAULTS: Mapping[str, Callable[[PublishedRow, str], str]] = {
    "": _number_fault,
    "text_target": _sentences_fault,
    "proof_state": _proof_fault,
    "node_mapping": _mapping_fault,
}


def _case(is_faulty: bool) -> str | None:
    return "" if is_faulty else None


def _nameless(row: PublishedRow) -> str | None:
    missing = [f"[{name}]" for name in row.query if name not in NAME.findall(row.story)]
    return f"nobody is called {', '.join(missing)}" if missing else None


def _proof_facts(cell: str) -> list[_Triple]:
    """Return the facts of a proof, each head before its body, the spelling of the words corrected."""
    steps = _PROOF.validate_python(ast.literal_eval(cell), strict=True)
    facts = [fact for step in steps for head, body in step.items() for fact in (head, *body)]
    return [(x, relation_word(word), y) for x, word, y in facts]


def _proves(puzzle: Puzzle) -> bool:
    """Return whether the proof of a puzzle begins with the answer."""
    (asker, asked), target = puzzle.row.query, puzzle.row.target
    try:
        return _proof_facts(puzzle.cells["proof_state"])[0] == (asker, target, asked)
    except (*_NO_VALUE, IndexError):
        return False


def relations_of_noise(puzzles: Sequence[Puzzle]) -> str:
    """Return how many noise facts have a relation in the files, and how many can have only one."""
    stated = derived = count = 0
    for row in (puzzle.row for puzzle in puzzles):
        in_file = set(row.story_edges[: len(row.edge_types)])
        noise = [fact for fact in facts_of(row) if fact.role != PATH]
        count += len(noise)
        stated += sum(fact.edge in in_file for fact in noise)
        derived += sum(fact.edge not in in_file and fact.relation != UNKNOWN for fact in noise)
    return f"{stated} of {count} noise facts have a relation in the files, {derived} more can have only one"


def clause_leakage(puzzles: Sequence[Puzzle]) -> Iterator[str]:
    """Yield, for every test part, how many of its paths have the words or the relations of a training path."""
    parts: dict[str, list[PublishedRow]] = {}
    for puzzle in puzzles:
        parts.setdefault(puzzle.row.part, []).append(puzzle.row)
    trained = parts.pop("train", [])
    paths, clauses = {row.f_comb for row in trained}, {_clause(row) for row in trained}
    for part, rows in parts.items():
        words, relations = sum(row.f_comb in paths for row in rows), sum(_clause(row) in clauses for row in rows)
        yield f"{part}: {words} of {len(rows)} paths have the words of a training path, {relations} its relations"


def _clause(row: PublishedRow) -> tuple[str, ...]:
    return tuple(map(relation_of_word, row.f_comb))


def main() -> None:
    """Print the findings in a folder of published files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims.clutrr_files", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the files, for example data_089907f8")
    puzzles = read_puzzles(parser.parse_args().folder)
    print(*findings(puzzles), relations_of_noise(puzzles), *clause_leakage(puzzles), sep="\n")


if __name__ == "__main__":
    main()
