"""Code that this package did not write: plug-ins, generators, objectives. Their errors, interrupts and prints.

An error of such code may have a text that cannot be computed, has no end, or is obeyed by a terminal, and such code may
raise classes that are no ``Exception``. The functions of this module describe any error without raising one.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import Any

from graphbench.core.untrusted import MOST_CHARACTERS, shown

_CLASS_NAME = type.__dict__["__name__"]  # read past a metaclass that redefines __name__
_MOST_OF_A_NAME = 100  # characters


class Interrupts:
    """Whether the user interrupted a block with Ctrl-C.

    Attributes:
        received: True after a SIGINT whose handler raised ``KeyboardInterrupt``.
    """

    def __init__(self) -> None:
        self.received = False


@contextmanager
def interrupts_noted() -> Iterator[Interrupts]:
    """Note Ctrl-C while the block runs, and answer it as before.

    So a ``KeyboardInterrupt`` of the user can be told from one that the block's code raises by itself. Only the main
    thread receives signals; in other threads the user interrupts nothing. A handler of SIGINT that the block installs
    is removed at its end.
    """
    interrupts = Interrupts()
    is_main = threading.current_thread() is threading.main_thread()
    before: Any = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(before):  # SIGINT is ignored, ends the process, or is handled by compiled code
        yield interrupts
        return

    def note(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            interrupts.received = True
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """Send the prints of the block to standard error, so that standard output holds the answer of a command alone.

    If the block replaces ``sys.stdout`` or ``sys.stderr`` by other streams, these streams are removed at its end.
    Output that compiled code writes to the file descriptor of standard output is not redirected.
    """
    errors = sys.stderr
    try:
        with redirect_stdout(errors):
            yield
    finally:
        sys.stderr = errors


def class_name(value: object) -> str:
    """Return the name of the class of an object; no code of the class runs."""
    return shown(_CLASS_NAME.__get__(type(value)), _MOST_OF_A_NAME)


def text_of(value: object, most: int = MOST_CHARACTERS) -> str:
    r"""Return the text of an object, on one or several lines.

    Args:
        value: The object, such as an error.
        most: Most characters; the end of a longer text is replaced by ``...``.

    Returns:
        ``str(value)``, in which characters that a terminal obeys are written as escapes such as ``\x1b``; where ``str``
        raises an error, a text that names the class of that error.

    Raises:
        KeyboardInterrupt: If the user presses Ctrl-C meanwhile.
    """
    with interrupts_noted() as interrupts:
        try:
            text = str.__str__(str(value))  # the text itself, of a subclass of str too
        except BaseException as fault:
            if interrupts.received:
                raise
            return f"(no text: __str__ raised {class_name(fault)})"
    return shown(text[: most + 1], most, lines=True)


def described(error: BaseException, most: int = MOST_CHARACTERS) -> str:
    """Return class and text of an error, as ``ValueError: no such node``; the class alone if the text is empty."""
    text = text_of(error, most).strip()
    return f"{class_name(error)}: {text}" if text else class_name(error)


def first_line(error: BaseException) -> str:
    """Return the first line of :func:`described`."""
    return described(error).splitlines()[0]


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error as text, or its description where a traceback cannot be made."""
    with interrupts_noted() as interrupts:
        try:
            return "".join(traceback.format_exception(error))
        except BaseException:  # the library asks an error for its truth value, its notes and more
            if interrupts.received:
                raise
            return described(error)


def causes(error: BaseException | None, *, contexts: bool = False) -> Iterator[BaseException]:
    """Yield an error and the chain of errors from which it was raised, each once.

    Args:
        error: The last error of the chain.
        contexts: Whether an error without a cause is followed to the error that was handled when it was raised.
    """
    passed: set[int] = set()
    while error is not None and id(error) not in passed:
        passed.add(id(error))
        yield error
        error = error.__cause__ or (error.__context__ if contexts else None)
