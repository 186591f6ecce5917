"""The parts of report pages: templates, tables, and figures inside the page or in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphbench.core.errors import ResultError
from graphbench.core.files import atomic_path, refuse_foreign_links
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

    templates = Environment(
        loader=PackageLoader("graphbench.reports", "templates"),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["safe_md"] = markdown_safe
    return templates


def page_targets(output: Path, chosen: Sequence[str], pages: Mapping[str, str], noun: str) -> dict[str, Path]:
    """Return format -> file to write: one file with the ending of a format, or a folder with a file per format.

    Args:
        output: The file or folder.
        chosen: Formats wanted in a folder.
        pages: Format (the ending of its files) -> name of its file in a folder.
        noun: The written thing in messages, e.g. ``report``.

    Raises:
        ResultError: If a format or the ending of ``output`` is unknown.
    """
    kind = output.suffix.lstrip(".").lower()
    endings = " or ".join(f".{name}" for name in pages)
    if kind in pages and not output.is_dir():
        return {kind: output}
    if kind.isalpha() and not output.is_dir():
        raise ResultError(f"{output} ends in .{kind}; a {noun} is a folder, or a file ending in {endings}")
    unknown = [name for name in chosen if name not in pages]
    if unknown or not chosen:
        raise ResultError(f"unknown {noun} format {unknown or 'none'}; choose from {', '.join(pages)}")
    return {name: output / page for name, page in pages.items() if name in chosen}


def embed_for(page: Path) -> Embed:
    """Return the embedding of a page: inline in HTML; for Markdown, PNG files in the folder ``figures`` next to it."""
    return _embed_inline if page.suffix.lower() == ".html" else _embed_as_file(page)


def _embed_inline(figure: Figure, name: str, title: str) -> str:
    from markupsafe import Markup

    return Markup(inline_svg(figure, title))


def _embed_as_file(page: Path) -> Embed:
    folder = page.parent / "figures"

    def embed(figure: Figure, name: str, title: str) -> str:
        refuse_foreign_links(folder)
        folder.mkdir(exist_ok=True)
        with atomic_path(folder / f"{name}.png") as aside:
            aside.write_bytes(png_bytes(figure))
        return f"![{title}](figures/{name}.png)"

    return embed
