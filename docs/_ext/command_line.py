"""Sphinx extension: the help of every command, taken from the command line itself at build time."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH = 98


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``command-help``."""
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True}


def commands() -> list[tuple[str, ...]]:
    """Return the names of all commands, in the order of the help text; each group is followed by its own commands."""
    from graphbench.cli.app import app

    found: list[tuple[str, ...]] = []
    for name, command in typer.main.get_command(app).commands.items():
        found.append((name,))
        found += [(name, own) for own in getattr(command, "commands", ())]
    return found


def help_text(*command: str) -> str:
    """Return what ``graphbench <command> --help`` prints on a plain terminal."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        environment.pop(name, None)
    argv = [sys.executable, "-m", "graphbench", *command, "--help"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    return "\n".join(lines).replace("python -m graphbench", "graphbench")


class CommandHelp(SphinxDirective):
    """A section with the help text of every command."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        sections: list[nodes.Node] = [nodes.literal_block(text=help_text(), language="text")]
        for words in commands():
            name = " ".join(words)
            section = nodes.section(ids=[f"graphbench-{'-'.join(words)}"], names=[f"graphbench {name}"])
            section += nodes.title(text=f"graphbench {name}")
            section += nodes.literal_block(text=help_text(*words), language="text")
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections
