"""Sphinx extension: the search knows the index entries of all pages, also after a build that wrote only some of them.

Sphinx 8 restores titles and words of unchanged pages from the search index of the last build, but not their entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.index_entries import split_index_msg


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("html-collect-pages", restore)  # the last event before the search index is written
    return {"version": "1", "parallel_read_safe": True}


def restore(app: Sphinx) -> Iterable[tuple[str, dict[str, Any], str]]:
    """Give the search index the entries of the pages that were not written; return no pages."""
    indexer = getattr(app.builder, "indexer", None)
    if indexer is not None:
        known = indexer._index_entries
        for name, entries in app.env.domains["index"].entries.items():
            if name in indexer._titles and name not in known:
                known[name] = sorted(set(_words(entries)))
    return []


def _words(entries: Iterable[tuple[str, str, str, str, Any]]) -> Iterable[tuple[str, str, str]]:
    for kind, value, target, main, _ in entries:
        for word in split_index_msg(kind, value):
            yield word, target or "", main
