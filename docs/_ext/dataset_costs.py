"""Sphinx extension: what every dataset costs at its full size, computed from measured rates."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from executed_pages import shows_project
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``dataset-costs``."""
    app.add_directive("dataset-costs", DatasetCosts)
    return {"version": "1", "parallel_read_safe": True}


class DatasetCosts(SphinxDirective):
    """One table per domain: CPU hours, bytes, and the time on 1 to 1,000 cores."""

    def run(self) -> list[nodes.Node]:
        """Return the tables."""
        from cost_tables import cost_page

        from graphbench.catalog.costs import read_rates
        from graphbench.catalog.names import catalog

        shows_project(self.env)
        lines = cost_page(catalog().cards.values(), read_rates()).splitlines()
        container = nodes.container()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, "dataset-costs"), self.content_offset, container)
        return container.children
