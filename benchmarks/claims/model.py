"""What a file of claims holds: the tables of one paper, and what is said of their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphbench.core.yaml_text import SafeLoader

FOLDER = Path(__file__).resolve().parent
Verdict = Literal["reproduced", "refuted", "not_comparable", "open", "finding"]
VERDICTS: dict[Verdict, str] = {
    "reproduced": "reproduced",
    "refuted": "refuted",
    "not_comparable": "not comparable",
    "open": "open",
    "finding": "finding",
}
BASES: dict[str, str] = {"measured": "measured again", "print": "from other printed numbers", "setting": "setting held"}
"""How a row was reproduced: measured here, computed from other printed numbers, or a setting that is run as printed."""

_NAME = r"^[a-z0-9_]+$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Row(_Strict):
    """A row of a table, a group of rows, or a statement about the table, and what is said of it.

    Texts may hold names in braces (``{mean:.1f}``): values that the check measures.

    Attributes:
        id: Name within the table.
        about: Which rows or statement, in a few words.
        verdict: Reproduced, refuted, not comparable, open, or a finding on the datasets beside the printed scores.
        basis: How a row was reproduced, see :data:`BASES`; None for other verdicts.
        printed: What the paper prints, transcribed or taken from ``baselines/published`` by the check.
        ours: What the check finds.
        because: How this was measured, why it is refuted, why it is not comparable, or what a finding means.
        cost: For open rows, what an answer would cost, and how that was estimated.
        check: Name of the check.
        arguments: Its arguments.
        slow: Whether the check takes more than some seconds.
        needs: Optional packages without which the check is skipped.
        datasets: Datasets, or globs of datasets, on whose pages the row stands; findings name at least one.
    """

    id: str = Field(pattern=_NAME)
    about: str
    verdict: Verdict
    basis: Literal["measured", "print", "setting"] | None = None
    printed: str
    ours: str = ""
    because: str = ""
    cost: str = ""
    check: str = Field(pattern=_NAME)
    arguments: dict[str, Any] = {}
    slow: bool = False
    needs: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_what_its_verdict_asks_for(self) -> Row:
        if (self.verdict == "open") != bool(self.cost):
            raise ValueError(f"row {self.id!r}: open rows say what an answer would cost, and only these")
        if (self.verdict == "reproduced") != (self.basis is not None):
            raise ValueError(f"row {self.id!r}: reproduced rows say how ('basis'), and only these")
        if self.verdict in ("reproduced", "refuted", "finding") and not self.ours:
            raise ValueError(f"row {self.id!r}: a row that is {self.verdict} says what was found here ('ours')")
        if self.verdict in ("refuted", "not_comparable", "finding") and not self.because:
            raise ValueError(f"row {self.id!r}: a row that is {VERDICTS[self.verdict]} says why ('because')")
        if self.verdict == "finding" and not self.datasets:
            raise ValueError(f"row {self.id!r}: a finding names the datasets on whose pages it stands ('datasets')")
        return self

    @property
    def names(self) -> set[str]:
        """The values of the check that the texts ask for."""
        texts = (self.printed, self.ours, self.because, self.cost)
        return {re.split(r"[.\[]", name)[0] for text in texts for _, name, _, _ in Formatter().parse(text) if name}


class Table(_Strict):
    """One table of a paper.

    Attributes:
        number: Its number; 0 for statements outside tables that are quoted for their numbers.
        title: A short title.
        states: What it states, in a sentence.
        rows: What is said of its rows.
    """

    number: int = Field(ge=0)
    title: str
    states: str
    rows: tuple[Row, ...] = Field(min_length=1)


class Paper(_Strict):
    """The tables of a paper.

    Attributes:
        key: Name of the file.
        title: The paper's title.
        short: How the page calls it.
        citation: Authors, year and address.
        version: Which version of the paper the tables were read in.
        tables: All tables, in order.
    """

    key: str = Field(pattern=_NAME)
    title: str
    short: str
    citation: str
    version: str = Field(min_length=1)
    tables: tuple[Table, ...]

    @model_validator(mode="after")
    def _has_unique_names(self) -> Paper:
        numbers = [table.number for table in self.tables]
        if numbers != sorted(set(numbers)):
            raise ValueError("tables stand in the order of their numbers, each once")
        for table in self.tables:
            ids = [row.id for row in table.rows]
            if len(set(ids)) < len(ids):
                raise ValueError(f"table {table.number} has two rows of one name: {sorted(ids)}")
        return self

    def rows(self) -> Iterator[tuple[str, Table, Row]]:
        """Yield the full name of every row (``graphbench/2/states``), its table, and the row."""
        for table in self.tables:
            for row in table.rows:
                yield f"{self.key}/{table.number}/{row.id}", table, row


def read_paper(path: Path) -> Paper:
    """Return the claims of one file.

    Raises:
        ValueError: If the file does not follow the format; the message names file and key.
    """
    return _paper(path, path.stat().st_mtime_ns)


@cache
def _paper(path: Path, _: int) -> Paper:
    """Return the claims of one version of a file; every page about a dataset asks for them."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=SafeLoader)
        return Paper.model_validate({"key": path.stem, **content})
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{path}: {'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}") from error


def papers(folder: Path = FOLDER) -> list[Paper]:
    """Return the claims about all papers, GraphBench first."""
    order = ("graphbench", "clrs", "clrs_text", "clutrr")
    return [read_paper(folder / f"{key}.yaml") for key in order if (folder / f"{key}.yaml").is_file()]


def rows_about(dataset: str, folder: Path = FOLDER) -> dict[str, Row]:
    """Return the rows that stand on the page of a dataset, under their full names."""
    return {name: row for name, row in all_rows(folder).items() if any(fnmatchcase(dataset, p) for p in row.datasets)}


def all_rows(folder: Path = FOLDER) -> dict[str, Row]:
    """Return every row of every paper under its full name."""
    return {name: row for paper in papers(folder) for name, _, row in paper.rows()}
