"""Sphinx extension: puts what is said of the published tables into the page that asks for it."""

from __future__ import annotations

from typing import Any

from claims_text import page
from executed_pages import fill_mark
from sphinx.application import Sphinx

PLACE = "<!-- published tables -->"


def setup(app: Sphinx) -> dict[str, Any]:
    """Have sources with the mark filled in when they are read."""
    fill_mark(app, PLACE, page)
    return {"version": "1", "parallel_read_safe": True}
