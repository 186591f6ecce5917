"""Sphinx extension: the tables of the leaderboard from the committed records, in ``docs/leaderboard.md``.

The line ``<!-- leaderboard -->`` of that page is replaced by tables and pictures. The pages of ``graphbench
leaderboard`` are written beside it, into the folder ``leaderboard-pages`` of the built site.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from executed_pages import fill_mark
from page_text import page_name
from sphinx.application import Sphinx
from sphinx.util import logging

from graphbench.catalog.names import card
from graphbench.core.errors import ResultError
from graphbench.leaderboard import RULES, Board, Group, Leaderboard, build_leaderboard, leaderboard_of, texts
from graphbench.leaderboard.history import Change, first_places
from graphbench.leaderboard.pictures import group_figure
from graphbench.records.files import load_records
from graphbench.reports.pages import markdown_safe
from graphbench.reports.plots import inline_svg

MARK = "<!-- leaderboard -->"
FOLDER = "leaderboard-pages"
_COLUMNS = (
    "rank",
    "model",
    "score",
    "95 % interval",
    "class",
    "rank in class",
    "seeds",
    "source",
    "against the best mean",
    "parameters",
    "training time",
)
_RIGHT = (2, 9, 10)
_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    fill_mark(app, MARK, lambda: page_text(_leaderboard()))
    app.connect("build-finished", _write_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        pages = build_leaderboard(load_records(), Path(app.outdir) / FOLDER, ("html", "json"), changes=_changes())
        _LOG.info("wrote %d pages of the leaderboard", len(pages))


@cache
def _changes() -> list[Change]:
    """Return the changes of first places; none where the documentation is built outside of a checkout."""
    try:
        return first_places()
    except ResultError as error:
        _LOG.info("no changes of first places: %s", error)
        return []


@cache
def _leaderboard() -> Leaderboard:
    return leaderboard_of(load_records())


def page_text(found: Leaderboard) -> str:
    """Return the tables and pictures of a leaderboard, and its rules, as Markdown with headings."""
    parts = ["## The whole suite", *_groups(found.groups, "suite")]
    for domain in found.domains:
        parts += [f"## {domain}", *_groups([g for g in found.groups if len(g.units) > 1], domain)]
        for section in texts.sections(found, domain):
            parts.append(f"### {markdown_safe(section.unit)}")
            parts.append(f"[{markdown_safe(section.title)}]({_link(section.unit)}), {section.head}.")
            parts += [board_text(board) for board in section.tables]
            if section.others:
                count = len(section.others)
                what = "Another table has" if count == 1 else f"{count} more tables have"
                parts.append(f"{what} scores on other samples: see the full pages.")
    parts += ["## How models are ranked", *(f"**{heading}.** {text}" for heading, text in RULES)]
    return "\n\n".join(parts)


def _link(unit: str) -> str:
    address = unit.partition(" ")[0]
    return f"datasets/generated/{page_name(card(address.partition(':')[0].partition('@')[0]))}.md"


def _groups(groups: Iterable[Group], name: str) -> list[str]:
    parts = []
    for title, group in texts.merged_groups(group for group in groups if group.name == name):
        parts.append(" ".join([f"**{markdown_safe(title)}.**", *map(markdown_safe, texts.group_notes(group))]))
        grid = texts.group_grid(group)
        if grid.rows:
            parts.append(_table(grid.heads, grid.rows))
        if figure := group_figure(group):
            svg = inline_svg(figure, texts.figure_title(group))
            parts.append(f'```{{raw}} html\n<div style="max-width: 46rem; margin-bottom: 1.5rem">{svg}</div>\n```')
    return parts


def board_text(board: Board) -> str:
    """Return one table as Markdown: the models, and below them the references, which have no rank."""
    rows = []
    for row in board.rows:
        cells = dict(zip(texts.HEADS, texts.row_cells(row, board), strict=True))
        rows.append([cells[column] for column in _COLUMNS])
    for reference in board.references:
        name, kind, score, basis = texts.reference_cells(reference)
        rows.append(["", f"{name} ({kind})", score, "", "", "", "", "", basis, "", ""])
    return f"{markdown_safe(f'Samples: {texts.data_text(board)}.')}\n\n{_table(_COLUMNS, rows, _RIGHT)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a Markdown table of escaped texts; columns whose numbers are in ``right`` are right-aligned."""
    rule = ["---:" if i in right else ":---" for i in range(len(heads))]
    lines = [list(heads), rule, *([markdown_safe(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
