"""Sphinx extension: puts what is said of the published tables into the page that asks for it."""

from __future__ import annotations

from typing import Any

from claims_text import page
from sphinx.application import Sphinx

PAGE = "published_tables"
PLACE = "<!-- published tables -->"


def setup(app: Sphinx) -> dict[str, Any]:
    """Have sources with the mark filled in when they are read."""
    app.connect("source-read", _fill_in)
    app.connect("env-get-outdated", lambda *_: [PAGE])  # results of checks change while the page's source does not
    return {"version": "1", "parallel_read_safe": True}


def _fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    if PLACE in source[0]:
        source[0] = source[0].replace(PLACE, page())
