"""Standard output of a command: its answer, and nothing that plug-ins, models or libraries print meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from typer.core import TyperCommand

from graphbench.core.foreign import prints_on_stderr


class _Answers:
    stream: TextIO | None = None  # standard output while a command runs


@contextmanager
def _answers_alone_on_stdout() -> Iterator[None]:
    before, _Answers.stream = _Answers.stream, sys.stdout
    try:
        with prints_on_stderr():
            yield
    finally:
        _Answers.stream = before


def answer_stream() -> TextIO:
    """Return the stream that a command's answer is written to: the process's standard output."""
    return sys.stdout if _Answers.stream is None else _Answers.stream


def echo(text: str, *, nl: bool = True) -> None:
    """Print a text as part of a command's answer."""
    typer.echo(text, file=answer_stream(), nl=nl)


class Command(TyperCommand):
    """A command; while it runs, ``print`` writes to standard error, and :func:`answer_stream` is standard output."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _answers_alone_on_stdout():
            return super().invoke(ctx)


class CommandLine(typer.Typer):
    """A group of commands of the class :class:`Command`."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        """Return a decorator that adds a command."""
        return super().command(name, **{"cls": Command, **options})
