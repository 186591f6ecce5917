"""Sphinx extension: tables of the measurements in ``benchmarks/results``, and a summary, where there are any."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from executed_pages import shows_project
from measurements import machine_line, result_table, results
from speed_text import speed_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives ``benchmark-tables`` and ``benchmark-summary``."""
    app.add_directive("benchmark-tables", BenchmarkTables)
    app.add_directive("benchmark-summary", BenchmarkSummary)
    return {"version": "1", "parallel_read_safe": True}


class BenchmarkTables(SphinxDirective):
    """All measured tables, or the command that makes them."""

    def run(self) -> list[nodes.Node]:
        """Return the tables."""
        shows_project(self.env)
        found = results()
        text = self.text(found) if found else "No measurements lie in this checkout; `make bench` makes them."
        container = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), "benchmarks"), self.content_offset, container)
        return container.children

    @staticmethod
    def text(found: list[dict[str, Any]]) -> str:
        """Return the Markdown of stored results."""
        return "\n\n".join(f"**{r['title']}**\n\n{result_table(r)}\n\n{machine_line(r)}" for r in found)


class BenchmarkSummary(BenchmarkTables):
    """One line per benchmark."""

    @staticmethod
    def text(found: list[dict[str, Any]]) -> str:
        """Return the Markdown of the summary."""
        return speed_table(found)
