"""Tables of recorded outcomes, from which labels are made without repeating the work: shipped, imported, exported.

A labeller with recorded outcomes (:class:`~graphbench.data.samples.Recorded`) splits its work in two: a costly outcome
per graph (what a solver did), a few whole numbers, and the label that follows from it. A table holds outcomes of one
labeller at one effort by a key of the graph's content, so it serves every dataset with such graphs. A table is a CSV
file, compressed with xz; its first line is a comment with a JSON description.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from graphbench.catalog.cards import canonical_json
from graphbench.catalog.resources import data_folders
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path, clear_errors
from graphbench.core.validation import explain
from graphbench.data.samples import Labeller

SUFFIX = ".csv.xz"
FOLDER = "labels"
_KEY = "key"
_COMMENT = "# "


class TableHead(BaseModel):
    """The description of a table.

    Attributes:
        labeller: ``<domain>.<name>``.
        version: Version of the labeller.
        effort: Complete effort on every graph.
        columns: Names of the numbers of an outcome.
        about: How the outcomes were obtained, such as machine and versions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    labeller: str
    version: int
    effort: dict[str, Any]
    columns: tuple[str, ...]
    about: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """File name of the table: the labeller, and a digest of what its outcomes depend on."""
        digest = hashlib.sha256(canonical_json([self.version, self.effort]).encode()).hexdigest()[:12]
        return f"{self.labeller}-{digest}{SUFFIX}"


@dataclass(frozen=True)
class LabelTable:
    """Outcomes of one labeller.

    Attributes:
        head: The description.
        rows: Key of a graph -> outcome, in the order of the columns.
    """

    head: TableHead
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def outcome(self, key: str) -> dict[str, int] | None:
        """Return the outcome of the graph with a key; None if the table does not hold it."""
        found = self.rows.get(key)
        return None if found is None else dict(zip(self.head.columns, found, strict=True))

    def with_rows(self, other: LabelTable) -> LabelTable:
        """Return the table with the rows of another of the same labeller and effort; own rows stay.

        Raises:
            StoreError: If the other table belongs to another labeller, version or effort.
        """
        if other.head.name != self.head.name or other.head.columns != self.head.columns:
            raise StoreError(f"a table of {other.head.name} cannot be joined to one of {self.head.name}")
        return LabelTable(self.head, {**other.rows, **self.rows})


def table_head(labeller: Labeller, effort: BaseModel, about: Mapping[str, Any] | None = None) -> TableHead:
    """Return the description of the table that holds the outcomes of a labeller at an effort."""
    assert labeller.recorded is not None
    return TableHead(
        labeller=labeller.name,
        version=labeller.version,
        effort=effort.model_dump(mode="json"),
        columns=labeller.recorded.columns,
        about=dict(about or {}),
    )


def read_table(path: Path) -> LabelTable:
    """Return the table of a file.

    Raises:
        StoreError: If the file cannot be read or is no such table.
    """
    try:
        with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
            first = file.readline()
            head = TableHead.model_validate_json(first.removeprefix(_COMMENT))
            lines = csv.reader(file)
            names = next(lines, [])
            if names != [_KEY, *head.columns]:
                raise StoreError(f"{path} has the columns {', '.join(names)}; expected key, {', '.join(head.columns)}")
            rows = {line[0]: tuple(map(int, line[1:])) for line in lines}
    except ValidationError as error:
        raise StoreError(f"{path} is no table of labels: {explain(error, TableHead)}") from error
    except (OSError, EOFError, lzma.LZMAError, ValueError, IndexError) as error:
        raise StoreError(f"{path} cannot be read as a table of labels: {error}") from error
    if any(len(row) != len(head.columns) for row in rows.values()):
        raise StoreError(f"{path} has a row that does not have {len(head.columns)} numbers")
    return LabelTable(head, rows)


def write_table(table: LabelTable, path: Path) -> None:
    """Write a table, its rows sorted by key; equal tables give equal files.

    Raises:
        StoreError: If the file cannot be written.
    """
    text = io.StringIO(newline="")
    text.write(_COMMENT + json.dumps(table.head.model_dump(mode="json"), sort_keys=True) + "\n")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([_KEY, *table.head.columns])
    lines.writerows([key, *row] for key, row in sorted(table.rows.items()))
    with atomic_path(path) as aside:
        aside.write_bytes(lzma.compress(text.getvalue().encode("utf-8"), preset=9))


def add_to_folder(table: LabelTable, folder: Path) -> Path:
    """Add the rows of a table to the one of the same labeller and effort in a folder; return its file.

    Raises:
        StoreError: If the files cannot be read or written.
    """
    path = folder / table.head.name
    with clear_errors(folder, "create"):
        folder.mkdir(parents=True, exist_ok=True)
    write_table(table.with_rows(read_table(path)) if path.is_file() else table, path)
    return path


def find_tables(labeller: Labeller, effort: BaseModel, root: Path | None) -> Sequence[LabelTable]:
    """Return the tables with outcomes of a labeller at an effort: those shipped with cards, and those imported.

    Args:
        labeller: A labeller with recorded outcomes.
        effort: Its effort.
        root: Folder of all datasets, where imported tables are; None for shipped ones alone.
    """
    name = table_head(labeller, effort).name
    domain = labeller.name.partition(".")[0]
    places = [folder.path / domain / FOLDER for folder in data_folders("datasets")]
    places += [] if root is None else [root / FOLDER]
    return [_cached(path, path.stat().st_mtime_ns) for place in places if (path := place / name).is_file()]


@lru_cache(maxsize=32)
def _cached(path: Path, changed: int) -> LabelTable:
    return read_table(path)


def first_outcome(tables: Iterable[LabelTable], key: str) -> dict[str, int] | None:
    """Return the outcome of a graph in the first table that holds it; None if none does."""
    return next((found for table in tables if (found := table.outcome(key)) is not None), None)
