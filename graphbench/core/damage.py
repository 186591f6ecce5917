"""Untrusted files: the errors that libraries raise on damaged files become one error; lines and sizes have limits.

Libraries that decompress or parse raise errors of many classes on damaged files. :func:`damage_named` turns all of them
into one class of this package, in one line that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, AnyStr

from graphbench.core.errors import GraphBenchError, StoreError
from graphbench.core.untrusted import open_regular, shown

MOST_LINE = 1 << 24
"""Characters of a line of a table: a row has some thousand cells, and a line of a larger file is no row."""

_MOST_WORDS = 200  # characters of a library's message
_ENCRYPTED = "encrypted"  # in the words of zipfile


class FileFault(ValueError):
    """The fault of a file that is read, without the file's name: "has a line of more than ..."."""


@contextmanager
def damage_named(
    path: object, error: type[GraphBenchError] = StoreError, remedy: str = "get it again"
) -> Iterator[None]:
    """Turn every error that the block raises on a damaged file into one error that names the file and the fault.

    The block should hold the calls of the library alone, so that no fault of this package looks like damage.

    Args:
        path: The file, as the message names it.
        error: Class of the error that is raised.
        remedy: The advice at the end of the message, such as ``get it again``.
    """
    try:
        yield
    except GraphBenchError:
        raise
    except Exception as problem:
        raise error(f"{path} {fault_of(problem)}; {remedy}") from problem


def fault_of(error: Exception) -> str:
    """Describe the fault of a file in one line, from the error that reading the file raised."""
    words = shown(" ".join(str(error).split()), _MOST_WORDS)
    if isinstance(error, FileFault):
        return words
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error.strerror or words})"
    if isinstance(error, RuntimeError) and _ENCRYPTED in words:
        return f"is encrypted ({words})"
    if isinstance(error, RecursionError):
        return "is damaged (its values are nested too deeply)"
    return f"is damaged ({type(error).__name__}{f': {words}' if words else ''})"


def limited_lines(file: IO[AnyStr], most: int = MOST_LINE) -> Iterator[AnyStr]:
    """Yield the lines of an open file with their ends; a line that is too long is never held whole.

    Args:
        file: The file, of text or of bytes.
        most: Most characters, or bytes, of a line.

    Raises:
        FileFault: If a line is longer; the message gives its number.
    """
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise FileFault(f"has a line of more than {most:,} characters, line {number}; it is no such table")
        yield line


def limited_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: If it cannot be read.
        FileFault: If it has more than ``most`` bytes; no more than these are read.
    """
    parts, total = list[bytes](), 0
    with open_regular(path) as file:
        while part := file.read(min(1 << 20, most + 1 - total)):
            parts.append(part)
            total += len(part)
            if total > most:
                raise FileFault(f"is larger than {most:,} bytes, the limit of such files")
    return b"".join(parts)
