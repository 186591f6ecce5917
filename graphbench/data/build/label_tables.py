"""Tables of recorded outcomes, from which labels are made without repeating the work: shipped, imported, exported.

A labeller with recorded outcomes (:class:`~.generators.Recorded`) splits its work in two: a costly outcome
per graph (a few whole numbers that describe the run of a solver), and the label that follows from the outcome. A table
holds outcomes of one labeller at one effort by a key of the graph's content, so it serves every dataset that contains
the graphs. A table is a text of comma-separated values after a comment with a JSON description; a file, compressed with
xz, holds one table or more.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from graphbench.catalog.cards import canonical_json
from graphbench.catalog.resources import data_folders
from graphbench.core.damage import FileFault, limited_lines
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path
from graphbench.core.packed import open_packed
from graphbench.core.validation import StrictModel, explain
from graphbench.data.components.domain import find
from graphbench.data.components.generators import Labeller

SUFFIX = ".csv.xz"
FOLDER = "labels"
_KEY = "key"
_COMMENT = "# "
_MAX_LINE = 1 << 16  # characters of a row, or of the description of a table
_GROWTH = 50  # a file may unpack to this many times its size: keys are hashes, which compress badly
_NUMBER = re.compile(r"-?[0-9]{1,18}")


class TableHead(StrictModel):
    """The description of a table.

    Attributes:
        labeller: ``<domain>.<name>``.
        version: Version of the labeller.
        effort: Complete effort on every graph.
        columns: Names of the numbers of an outcome.
        about: Description of the way in which the outcomes were obtained, e.g. machine and versions.
    """

    labeller: str
    version: int
    effort: dict[str, Any]
    columns: tuple[str, ...]
    about: dict[str, Any] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """File name of the table: the labeller, and a digest of the facts that determine its outcomes."""
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
        row = self.rows.get(key)
        return None if row is None else dict(zip(self.head.columns, row, strict=True))

    def with_rows(self, other: LabelTable) -> LabelTable:
        """Return the table with the rows of another table of the same labeller and effort; existing rows stay.

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


def read_tables(path: Path) -> tuple[LabelTable, ...]:
    """Return the tables of a file, which follow each other.

    Raises:
        StoreError: If the file cannot be read or is no file of tables.
    """
    tables: list[tuple[TableHead, dict[str, tuple[int, ...]]]] = []
    try:
        with io.TextIOWrapper(open_packed(path, growth=_GROWTH), encoding="utf-8", newline="") as file:
            for number, text in enumerate(limited_lines(file, _MAX_LINE), 1):
                words = text.rstrip("\r\n").split(",")
                if text.startswith(_COMMENT):
                    tables.append((TableHead.model_validate_json(text.removeprefix(_COMMENT)), {}))
                elif not tables or len(words) != 1 + len(tables[-1][0].columns):
                    raise StoreError(f"{path}, line {number}: {text.strip()[:60]!r} is no row of a table of labels")
                elif words[0] != _KEY:
                    if not all(map(_NUMBER.fullmatch, words[1:])):
                        raise StoreError(f"{path}, line {number}: {text.strip()[:60]!r} holds other than whole numbers")
                    if words[0] in tables[-1][1]:
                        raise StoreError(f"{path}, line {number}: the key {words[0]} is in the table twice")
                    tables[-1][1][words[0]] = tuple(map(int, words[1:]))
    except ValidationError as error:
        raise StoreError(f"{path} is no file of tables of labels: {explain(error, TableHead)}") from error
    except lzma.LZMAError as error:
        raise StoreError(f"{path} is no xz file, or a damaged one ({error}); compress tables with xz") from error
    except FileFault as error:
        raise StoreError(f"{path} {error}; import the table again") from error
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be read as tables of labels: {error}") from error
    if not tables:
        raise StoreError(f"{path} holds no table of labels")
    return tuple(LabelTable(head, rows) for head, rows in tables)


def write_tables(tables: Iterable[LabelTable], path: Path) -> None:
    """Write tables to a file, their rows sorted by key; equal tables give equal files.

    Raises:
        StoreError: If the file cannot be written.
    """
    lines = []
    for table in tables:
        lines.append(_COMMENT + json.dumps(table.head.model_dump(mode="json"), sort_keys=True))
        lines.append(",".join((_KEY, *table.head.columns)))
        lines += [",".join((key, *map(str, row))) for key, row in sorted(table.rows.items())]
    with atomic_path(path) as aside:
        aside.write_bytes(lzma.compress("".join(line + "\n" for line in lines).encode("utf-8"), preset=9))


def add_to_folder(table: LabelTable, folder: Path) -> Path:
    """Add the rows of a table to the table of the same labeller and effort in a folder; return the file.

    Raises:
        StoreError: If the files cannot be read or written.
    """
    path = folder / table.head.name
    tables = read_tables(path) if path.is_file() else ()
    write_tables([tables[0].with_rows(table) if tables else table], path)
    return path


def find_tables(labeller: Labeller, effort: BaseModel, root: Path | None) -> Sequence[LabelTable]:
    """Return the tables with outcomes of a labeller at an effort: tables shipped with cards, and imported tables.

    Args:
        labeller: A labeller with recorded outcomes.
        effort: Its effort.
        root: Folder of all datasets, where imported tables are; None for shipped ones alone.
    """
    name = table_head(labeller, effort).name
    domain = labeller.name.partition(".")[0]
    folders = [folder.path / domain / FOLDER for folder in data_folders("datasets")]
    folders += [] if root is None else [root / FOLDER]
    return [
        _cached(path, path.stat().st_mtime_ns) for table_folder in folders if (path := table_folder / name).is_file()
    ]


@lru_cache(maxsize=32)
def _cached(path: Path, changed: int) -> LabelTable:
    tables = read_tables(path)
    if len(tables) != 1 or tables[0].head.name != path.name:
        raise StoreError(f"{path} does not hold the table of its name; remove it, and import it again")
    return tables[0]


def first_outcome(tables: Iterable[LabelTable], key: str) -> dict[str, int] | None:
    """Return the outcome of a graph in the first table that holds it; None if none does."""
    return next((outcome for table in tables if (outcome := table.outcome(key)) is not None), None)


def tabulated_labels(tables: Iterable[LabelTable], features: Sequence[str]) -> NDArray[np.float64]:
    """Return features of labels that follow from tables, float64 ``[graphs, features]``, sorted by the graphs' keys.

    Graphs are left out for which a table has no outcome.

    Args:
        tables: Tables of all labellers that give the features; of one feature several tables of different graphs.
        features: Names of scalar features.

    Raises:
        StoreError: If no table gives a feature, several efforts give it, or no graph has all of them.
    """
    columns: dict[str, dict[str, float]] = {name: {} for name in features}
    efforts: dict[str, str] = {}
    for table in tables:
        labeller = find("labeller", table.head.labeller)
        if labeller.recorded is None:
            raise StoreError(f"the labeller {labeller.name} of a table has no recorded outcomes")
        effort = labeller.effort.model_validate(table.head.effort)
        for key, row in table.rows.items():
            label = labeller.recorded.label(effort, dict(zip(table.head.columns, row, strict=True)))
            for name in columns.keys() & label.keys():
                if efforts.setdefault(name, table.head.name) != table.head.name:
                    raise StoreError(f"{name} follows from the tables {efforts[name]} and {table.head.name}; give one")
                columns[name].setdefault(key, float(label[name]))
    missing = [name for name, values in columns.items() if not values]
    if missing:
        raise StoreError(f"no table gives {missing[0]}; give the tables of all labellers, e.g. of one export")
    keys = sorted(set.intersection(*(set(values) for values in columns.values())))
    if not keys:
        raise StoreError(f"no graph has outcomes of all of {', '.join(features)}")
    return np.array([[columns[name][key] for name in features] for key in keys], np.float64)
