"""The parts of report pages: templates, tables, and figures inside the page or in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphbench.reports.plots import inline_svg, png_bytes

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

ABSENT = "–"  # noqa: RUF001

Embed = Callable[["Figure", str, str], str]
"""Embeds a figure and returns the text that the template inserts: (figure, file name, title) -> text."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text with its column heads."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_MARKDOWN = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "\\|", "[": "\\[", "`": "\\`", "\\": "\\\\"})


def markdown_safe(text: str) -> str:
    """Return a text as one line of Markdown that is neither HTML, a link nor a cell's end."""
    return "".join(c if c.isprintable() else " " for c in text).translate(_MARKDOWN)


def environment(escape: bool) -> Environment:
    """Return the template environment of a page.

    Args:
        escape: Whether text is escaped, as HTML needs it.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("graphbench.reports", "templates"),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["safe_md"] = markdown_safe
    return found


def embed_for(page: Path) -> Embed:
    """Return how a page embeds figures: HTML inline, Markdown as PNG files in the folder ``figures`` next to it."""
    return _within if page.suffix.lower() == ".html" else _beside(page)


def _within(figure: Figure, name: str, title: str) -> str:
    from markupsafe import Markup

    return Markup(inline_svg(figure, title))


def _beside(page: Path) -> Embed:
    folder = page.parent / "figures"

    def embed(figure: Figure, name: str, title: str) -> str:
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.png").write_bytes(png_bytes(figure))
        return f"![{title}](figures/{name}.png)"

    return embed
