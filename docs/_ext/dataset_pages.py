"""Sphinx extension: a page per dataset card with a drawn sample, a page per domain, and the table of all datasets.

The pages are written below ``docs/datasets`` before Sphinx reads its sources, and only where their text has changed.
Nothing here knows a domain: a new card is a new page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from executed_pages import shows_project
from project_state import project_key
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

DATASETS = Path("datasets")
FOLDER = DATASETS / "generated"
_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    app.add_directive("dataset-overview", DatasetOverview)
    return {"version": "1", "parallel_read_safe": True}


def write_pages(docs: Path) -> list[Path]:
    """Write the pages and pictures of all cards and domains, remove those of cards that are gone; return the pages.

    Nothing is imported and nothing is computed where the pages were written in the present state of the project.
    """
    state = docs / "_build" / "dataset_pages.json"
    known = json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {"key": "", "pages": []}
    before = [docs / name for name in known["pages"]]
    if known["key"] == project_key() and all(path.is_file() for path in before):
        return before
    pages, complete = _write_all(docs)
    for stale in set(before) - set(pages):
        stale.unlink(missing_ok=True)
    if complete:
        names = [path.relative_to(docs).as_posix() for path in pages]
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps({"key": project_key(), "pages": names}), encoding="utf-8")
    _LOG.info("wrote %d pages of datasets", len(pages))
    return pages


def _write_all(docs: Path) -> tuple[list[Path], bool]:
    """Return the pages, and whether every picture could be drawn."""
    from domain_pages import domain_page
    from overview_text import by_domain
    from page_text import page, page_name
    from pictures import draw_pictures, write_if_changed

    from graphbench.catalog.names import catalog

    cards = list(catalog().cards.values())
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    notes = draw_pictures(cards, folder, docs / "_build" / "pictures")
    failed = {name: note["error"] for name, note in notes.items() if note["error"]}
    for name, reason in failed.items():
        _LOG.warning("no picture of %s: %s", name, reason)
    wanted: dict[Path, str] = {}
    for card in cards:
        note = notes.get(card.id)
        picture = None if note is None or note["error"] else f"{page_name(card)}.svg"
        index = 0 if note is None or note["index"] is None else note["index"]
        wanted[folder / f"{page_name(card)}.md"] = page(card, picture, index)
    for domain, families in by_domain(cards).items():
        wanted[docs / DATASETS / f"{domain}.md"] = domain_page(domain, families)
    for path, text in wanted.items():
        write_if_changed(path, text)
    drawn = {folder / f"{page_name(card)}.svg" for card in cards if card.id in notes and card.id not in failed}
    for stale in set(folder.glob("*.*")) - {*wanted, *drawn}:
        stale.unlink()
    return list(wanted), not failed


class DatasetOverview(SphinxDirective):
    """The table of all datasets, one line per family, one section per domain."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the tables."""
        from overview_text import overview

        from graphbench.catalog.names import catalog

        shows_project(self.env)
        lines = overview(catalog().cards.values()).splitlines()
        container = nodes.section()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, "dataset-overview"), self.content_offset, container)
        return container.children
