"""Sphinx extension: one page per dataset card, with a drawn sample, and the table of all datasets.

The pages are written to ``docs/datasets/generated`` before Sphinx reads its sources. Nothing here knows a domain: a
new card is a new page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from overview_text import overview
from page_text import is_text, page, page_name
from sample_drawing import draw, has_picture, pick_sample
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from trajectory_drawing import draw_trajectory

from graphbench.catalog.names import catalog
from graphbench.core.errors import GraphBenchError

MOST_EDGES = 15_000  # of a graph that is drawn
FOLDER = Path("datasets", "generated")
_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    app.add_directive("dataset-overview", DatasetOverview)
    return {"version": "1", "parallel_read_safe": True}


def write_pages(docs: Path) -> list[Path]:
    """Write the pages and pictures of all cards, and remove those of cards that are gone; return the pages."""
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted: dict[Path, str] = {}
    for card in catalog().cards.values():
        picture = folder / f"{page_name(card)}.svg"
        if card.hints:
            _write_if_changed(picture, _aside(folder, partial(draw_trajectory, card)))
            wanted[folder / f"{page_name(card)}.md"] = page(card, picture.name)
            continue
        if is_text(card) or not has_picture(card):
            wanted[folder / f"{page_name(card)}.md"] = page(card)
            continue
        try:
            sample = pick_sample(card)
        except GraphBenchError as error:
            _LOG.warning("no picture of %s: %s", card.id, error)
            wanted[folder / f"{page_name(card)}.md"] = page(card)
            continue
        if len(sample.edges) > MOST_EDGES:
            wanted[folder / f"{page_name(card)}.md"] = page(card)
            continue
        _write_if_changed(picture, _drawn(sample, folder))
        wanted[folder / f"{page_name(card)}.md"] = page(card, picture.name, sample.index)
    for path, text in wanted.items():
        _write_if_changed(path, text)
    keep = {*wanted, *(path.with_suffix(".svg") for path in wanted)}
    for stale in set(folder.glob("*.*")) - keep:
        stale.unlink()
    _LOG.info("wrote %d dataset pages", len(wanted))
    return list(wanted)


def _drawn(sample: Any, folder: Path) -> str:
    return _aside(folder, partial(draw, sample))


def _aside(folder: Path, write: Callable[[Path], None]) -> str:
    """Return the text of the picture that ``write`` makes."""
    aside = folder / ".drawing.svg"
    write(aside)
    text = aside.read_text(encoding="utf-8")
    aside.unlink()
    return text


def _write_if_changed(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


class DatasetOverview(SphinxDirective):
    """The table of all datasets, one line per family, one section per domain, and the tree of their pages."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the tables."""
        self.env.note_reread()  # the catalogue changes while this page's source does not
        lines = overview(catalog().cards.values()).splitlines()
        container = nodes.section()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, "dataset-overview"), self.content_offset, container)
        return container.children
