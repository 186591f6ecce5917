"""Sphinx extension: sizes, statistics and scores of simulated datasets beside those that a paper prints.

What stands in a table is said by the page that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from executed_pages import shows_project
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives ``published-sizes``, ``measured-statistics`` and ``published-scores``."""
    for name, text in (
        ("published-sizes", lambda words, lines: _texts().sizes(*words)),
        ("measured-statistics", lambda words, lines: _texts().statistics(words, lines)),
        ("published-scores", lambda words, lines: _texts().scores(words, lines)),
    ):
        app.add_directive(name, _directive(text))
    return {"version": "1", "parallel_read_safe": True}


def _texts() -> Any:
    import published_text  # imports much of the package, which a build without changes does not need

    return published_text


def _directive(text: Callable[[Sequence[str], Sequence[str]], str]) -> type[SphinxDirective]:
    class Shown(SphinxDirective):
        required_arguments, final_argument_whitespace, has_content = 1, True, True

        def run(self) -> list[nodes.Node]:
            shows_project(self.env)
            container = nodes.container()
            container.document = self.state.document
            lines = text(self.arguments[0].split(), [line for line in self.content if line.strip()]).splitlines()
            self.state.nested_parse(StringList(lines, self.name), self.content_offset, container)
            return container.children

    return Shown
