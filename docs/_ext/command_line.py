"""Sphinx extension: the help of every command, taken from the command line itself at build time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from executed_pages import shows_project
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 98


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``command-help``."""
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True}


_PROGRAM = """
import json, sys, typer
from typer.testing import CliRunner
from graphbench.cli.app import app

def walk(command, path):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, [*path, name])

found = {}
for path in walk(typer.main.get_command(app), []):
    outcome = CliRunner().invoke(app, [*path, "--help"], prog_name="graphbench")
    assert outcome.exit_code == 0, (path, outcome.output)
    found[" ".join(path)] = outcome.output
json.dump(found, sys.stdout)
"""


def help_texts() -> dict[str, str]:
    """Return command -> what ``graphbench <command> --help`` prints on a plain terminal; "" is no command."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        environment.pop(name, None)
    argv = [sys.executable, "-c", _PROGRAM]  # the package beside these pages, wherever Sphinx was started
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    texts = json.loads(done.stdout)
    return {name: "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for name, text in texts.items()}


class CommandHelp(SphinxDirective):
    """A section with the help text of every command."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        shows_project(self.env)
        texts = help_texts()
        sections: list[nodes.Node] = [nodes.literal_block(text=texts.pop(""), language="text")]
        for name, text in texts.items():
            anchor = "graphbench-" + name.replace(" ", "-")
            section = nodes.section(ids=[anchor], names=[f"graphbench {name}"])
            section += nodes.title(text=f"graphbench {name}")
            section += nodes.literal_block(text=text, language="text")
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections
