"""Lines, tables and JSON on standard output, and the folder of all datasets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from graphbench.cli.output import answer_stream, echo
from graphbench.core.files import default_root
from graphbench.core.untrusted import shown

_WHOLE = (
    "id",
    "dataset",
    "model",
    "split",
    "feature",
    "metric",
    "check",
    "nodes",
    "graphs",
    "here",
    "content",
    "outcome",
)
_GAP = 2  # spaces between columns
_LONG_WORD = 16  # as long as categorical(128); longer ones are broken where the terminal is too narrow


def console(least: int = 0) -> Console:
    """Return the console; ``least`` is a width below which it never goes, however narrow the terminal is."""
    stream = answer_stream()
    terminal = Console(file=stream, highlight=False, markup=False, emoji=False)
    wide = terminal.width >= least
    return terminal if wide else Console(file=stream, highlight=False, markup=False, emoji=False, width=least)


def print_line(text: str | Text, style: str | None = None) -> None:
    """Print a line that is never broken: names and numbers in it can be searched and copied.

    Characters that a terminal would obey are printed as escapes, here as in tables: names come from files of others.
    """
    console().print(shown(text, lines=True) if isinstance(text, str) else text, style=style, soft_wrap=True)


class _Table(Table):
    """A table whose cells no terminal obeys."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row; see ``rich.table.Table``."""
        super().add_row(*(shown(c, lines=True) if isinstance(c, str) else c for c in cells), **options)


def new_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table; columns of names and numbers are never broken or cut, columns of words are folded."""
    table = _Table(header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column in columns:
        whole = column in _WHOLE or column in right
        table.add_column(shown(column), justify="right" if column in right else "left", overflow="fold", no_wrap=whole)
    return table


def print_table(table: Table) -> None:
    """Print a table as wide as the screen allows, and wider where names and numbers need it; nothing if it is empty."""
    if not table.row_count:
        return
    ranges = [_widths(column) for column in table.columns]
    least = sum(low + _GAP for low, _ in ranges) - _GAP
    wishes = sum(high - low for low, high in ranges)
    spare = min(wishes, max(0, console().width - least))
    for column, (low, high) in zip(table.columns, ranges, strict=True):
        column.width = low + (high - low) * spare // max(wishes, 1)
    console(least + spare).print(table)


def _widths(column: Column) -> tuple[int, int]:
    """Return the least width of a column and the one that breaks no cell."""
    texts = [str(cell) for cell in (column.header, *column.cells)]
    longest = max(map(cell_len, texts))
    if column.no_wrap:
        return longest, longest
    return min(_LONG_WORD, max((cell_len(word) for text in texts for word in text.split()), default=0)), longest


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    echo(json.dumps(value, indent=2, default=str))


def root_folder(root: Path | None) -> Path:
    """Return the folder of all datasets, the default where none is given."""
    return default_root() if root is None else root.expanduser()
