"""Databases of GBD, the benchmark database for SAT: attributes and run times of formulas by their `gbdhash`.

Iser and Jabs, "Global Benchmark Database", SAT 2024. A database is a SQLite file with the table ``features``, one
row per formula, and a table with the columns ``hash`` and ``value`` for each feature that may have several values; or a
file of comma-separated values with a column ``hash``. Databases are opened read-only.

The times in a database are processor times on the authors' machine. They are not used as labels of this package's
solvers, because the labels are modelled effort. They become the costs of a scenario (:func:`gbd_scenario`), and
``sat/aslib`` reads the scenario.
"""

from __future__ import annotations

import csv
import math
import re
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from graphbench.core.damage import FileFault, fault_of, limited_lines
from graphbench.core.errors import ArgumentError, StoreError
from graphbench.core.suggestions import closest
from graphbench.core.untrusted import open_regular, open_regular_text
from graphbench.domains.sat.scenarios import STATUSES, Scenario

_HASH, _VALUE, _FEATURES = "hash", "value", "features"
_NONE = ("", "None", "empty", "NULL")  # texts by which GBD marks a missing value
_UNSOLVED = {status: STATUSES.index(status) for status in STATUSES[1:]}
_DIGEST = re.compile(r"[0-9a-f]{32}")
_MAX_VALUES = 20_000_000  # each takes about 100 bytes of memory
_MAX_VALUE_BYTES = 1 << 20  # bytes of a value, a row or the definition of a table
_TEXT_GROWTH = 8  # all values together may have this many characters per byte of the file ...
_MIN_TEXT_LIMIT = 1 << 20  # ... plus this many characters
_GENERATED = (2, 3)  # codes of generated columns in PRAGMA table_xinfo; plain columns have 0, hidden ones 1

Columns = dict[str, dict[str, tuple[str, ...]]]
"""Feature -> gbdhash -> values; missing values are left out."""


def read_gbd(path: Path) -> Columns:
    """Return the features of a GBD database by gbdhash; a single value of a formula is a tuple of one text.

    Raises:
        StoreError: If the file cannot be read, is neither a SQLite database of GBD nor a CSV file with a column
            ``hash``, holds a key that is not a gbdhash, or is too large.
    """
    if not path.is_file():
        raise StoreError(f"{path} is no file; give a database of GBD (.db) or a CSV file with a column {_HASH!r}")
    with open_regular(path) as file:
        is_database = file.read(16).startswith(b"SQLite format 3\0")
    columns = _read_sqlite(path) if is_database else _read_csv(path)
    for column in columns.values():
        wrong = next((key for key in column if not _DIGEST.fullmatch(key)), None)
        if wrong is not None:
            raise StoreError(f"{path}: {wrong!r:.60} is no gbdhash, which has 32 hexadecimal digits")
    return columns


def _read_csv(path: Path) -> Columns:
    columns: Columns = {}
    seen: dict[str, int] = {}
    cells = _Cells(path)
    try:
        with open_regular_text(path, "utf-8-sig", "") as file:
            rows = csv.reader(limited_lines(file), strict=True)
            header = [word.strip() for word in next(rows, [])]
            if header.count(_HASH) != 1 or len(set(header)) < len(header):
                fault = "has a column twice" if len(set(header)) < len(header) else f"has no column {_HASH!r}"
                raise StoreError(f"{path} {fault}; is it a CSV file of GBD?")
            key = header.index(_HASH)
            columns = {name: {} for name in header if name != _HASH}
            for row in rows:
                if not row:
                    continue
                if len(row) != len(header):
                    raise StoreError(f"{path}, line {rows.line_num}: the row has {len(row)} cells, not {len(header)}")
                digest = row[key].strip()
                if digest in seen:
                    raise StoreError(
                        f"{path}, line {rows.line_num}: {digest!r:.60} is there already, on line {seen[digest]}"
                    )
                seen[digest] = rows.line_num
                _require_digest(f"{path}, line {rows.line_num}", digest)
                cells.count(len(row))
                for name, word in zip(header, row, strict=True):
                    if name != _HASH and word.strip() not in _NONE:
                        columns[name][digest] = cells.kept(word.strip())
    except FileFault as error:
        raise StoreError(f"{path} {error}; is it a CSV file of GBD?") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be read as CSV of GBD: {error}") from error
    return columns


def _require_digest(location: str, digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise StoreError(f"{location}: {digest!r:.60} is no gbdhash, which has 32 hexadecimal digits")


def _read_sqlite(path: Path) -> Columns:
    try:
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA query_only = ON")
            database.execute(
                "PRAGMA ignore_check_constraints = ON"
            )  # a check constraint is an expression of the file's author
            _refuse_expressions(path, database)
            problem = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
            if problem != "ok":
                raise StoreError(f"{path} is damaged: {' '.join(problem.split())[:200]}")
            return _read_tables(path, database)
    except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError) as error:
        raise StoreError(
            f"{path} cannot be read as a SQLite database: {fault_of(error)}; get the database again"
        ) from error


def _refuse_expressions(path: Path, database: sqlite3.Connection) -> None:
    """Refuse tables with values that are computed on reading, because an expression can take any time and memory.

    Views and triggers, which occur in GBD databases, are never run, so only the definitions of tables are checked.

    Raises:
        StoreError: If a table is virtual, or has a generated column.
    """
    for name, page in database.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'").fetchall():
        if not page:
            raise StoreError(f"{path}: {str(name)!r:.60} is a virtual table, which is not read")
        for row in database.execute(f"PRAGMA table_xinfo({_quoted(str(name))})"):
            if row[6] in _GENERATED:
                raise StoreError(
                    f"{path}: the column {str(row[1])!r:.60} of {str(name)!r:.60} is generated by an expression, which "
                    "is not run; store its values"
                )


def _read_tables(path: Path, database: sqlite3.Connection) -> Columns:
    listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    tables = {str(name): _columns(database, str(name)) for (name,) in listed}
    if _HASH not in tables.get(_FEATURES, ()):
        raise StoreError(f"{path} has no table {_FEATURES!r} with a column {_HASH!r}; is it a database of GBD?")
    names = [name for name in tables[_FEATURES] if name != _HASH]
    several = [name for name, columns in tables.items() if set(columns) == {_HASH, _VALUE} and name != _FEATURES]
    features: Columns = {}
    cells = _Cells(path)
    for table, column in (*((_FEATURES, name) for name in names), *((name, _VALUE) for name in several)):
        name = column if table == _FEATURES else table
        merged = features.setdefault(
            name, {}
        )  # for a feature with several values, the table "features" holds a placeholder
        first: dict[str, tuple[str, ...]] = {}
        further: dict[str, set[str]] = {}
        for key, value in database.execute(f"SELECT {_quoted(_HASH)}, {_quoted(column)} FROM {_quoted(table)}"):
            cells.count(1)
            if value is not None and (word := str(value).strip()) not in _NONE:
                digest, single = sys.intern(str(key)), cells.kept(word)
                if first.setdefault(digest, single) != single:
                    further.setdefault(digest, set()).add(word)
        merged |= first | {key: tuple(sorted({*first[key], *words})) for key, words in further.items()}
    return features


class _Cells:
    """The values of a database, equal values stored once; their number and their total length are limited."""

    def __init__(self, path: Path) -> None:
        self._path, self._number, self._letters = path, 0, 0
        self._most_letters = _MIN_TEXT_LIMIT + _TEXT_GROWTH * path.stat().st_size
        self._values: dict[str, tuple[str]] = {}

    def count(self, number: int) -> None:
        """Add to the number of values that were read.

        Raises:
            StoreError: If the database has too many values.
        """
        self._number += number
        if self._number > _MAX_VALUES:
            raise StoreError(f"{self._path} holds more than {_MAX_VALUES:,} values, which is too large to read")

    def kept(self, word: str) -> tuple[str]:
        """Return a value as a tuple of one.

        Raises:
            StoreError: If all values together are much longer than the file, as repeated long default values are.
        """
        self._letters += len(word)
        if self._letters > self._most_letters:
            raise StoreError(f"{self._path} holds values that are longer than the file; store each of them")
        return self._values.setdefault(word, (word,))


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]


def _quoted(name: str) -> str:
    """Return a name quoted as an SQL identifier; NUL characters are removed, since an identifier cannot hold them."""
    return '"' + name.replace("\0", "").replace('"', '""') + '"'


def gbd_scenario(
    columns: Mapping[str, Mapping[str, Sequence[str]]],
    solvers: Sequence[str],
    cutoff: float,
    *,
    features: Sequence[str] = (),
    name: str = "gbd",
) -> Scenario:
    """Return run times and features of formulas as a scenario; its instances are the gbdhashes of the formulas.

    Formulas without a run of every solver are left out. :func:`~graphbench.domains.sat.aslib_files.write_scenario`
    writes the scenario to a folder. If the folder also holds the formulas in the sub-folder ``formulas``, ``sat/aslib``
    reads the scenario with their graphs.

    Args:
        columns: Feature -> gbdhash -> values, from :func:`read_gbd`.
        solvers: The features that hold times in seconds. A word such as ``timeout``, ``memout`` or ``other``, or a time
            above the cutoff, is an unsolved run.
        cutoff: Time at which runs were stopped, in seconds.
        features: The numeric features of formulas; a value that is not a number counts as missing.
        name: Name of the scenario.

    Raises:
        ArgumentError: If a name is unknown or repeated, or the cutoff is not positive.
        StoreError: If a run is neither a time nor a word for an unsolved run, or no formula has runs of all solvers.
    """
    if not 0 < cutoff < math.inf:
        raise ArgumentError(f"cutoff is {cutoff!r}; give the seconds after which runs were stopped")
    for wanted in (*solvers, *features):
        if wanted not in columns:
            raise ArgumentError(
                f"there is no column {wanted!r}{closest(wanted, columns)} (there are {', '.join(columns)})"
            )
    if not solvers or len({*solvers, *features}) < len(solvers) + len(features):
        raise ArgumentError(f"solvers {list(solvers)} and features {list(features)} must be columns, each named once")
    hashes = sorted(set.intersection(*(set(columns[solver]) for solver in solvers)))
    if not hashes:
        raise StoreError(f"no formula has runs of all of {', '.join(solvers)}")
    runs = [[_run(solver, key, columns[solver][key], cutoff) for solver in solvers] for key in hashes]
    table = [[_number(columns[feature].get(key, ())) for feature in features] for key in hashes]
    return Scenario(
        name=name,
        instances=tuple(hashes),
        algorithms=tuple(solvers),
        cutoff=float(cutoff),
        seconds=np.array([[seconds for seconds, _ in row] for row in runs])[:, :, None],
        status=np.array([[status for _, status in row] for row in runs], np.int8)[:, :, None],
        feature_names=tuple(features),
        features=np.array(table, np.float64).reshape(len(hashes), len(features)),
        steps={"gbd": tuple(features)},
    ).check()


def _run(solver: str, key: str, values: Sequence[str], cutoff: float) -> tuple[float, int]:
    """Return the time of a run in seconds, nan if unsolved, and its status as a position in ``STATUSES``."""
    word = values[0].lower() if len(values) == 1 else ""
    if word in _UNSOLVED:
        return math.nan, _UNSOLVED[word]
    seconds = _number(values)
    if not seconds >= 0:
        raise StoreError(
            f"the run of {solver} on {key} is {', '.join(values)!r:.60}; it is a time, or a word like timeout"
        )
    return (seconds, 0) if seconds <= cutoff else (math.nan, STATUSES.index("timeout"))


def _number(values: Sequence[str]) -> float:
    """Return the value of a feature as a number; nan if it is not a number, or the feature has several values."""
    try:
        number = float(values[0]) if len(values) == 1 else math.nan
    except ValueError:
        return math.nan
    return number
