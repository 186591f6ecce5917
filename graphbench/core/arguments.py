"""Check arguments that users pass: whole numbers and paths."""

from __future__ import annotations

import os
from operator import index
from pathlib import Path
from typing import Any

from graphbench.core.errors import ArgumentError, GraphBenchError


def whole_number(
    name: str,
    value: Any,
    least: int | None = None,
    otherwise: str = "",
    error: type[GraphBenchError] = ArgumentError,
) -> int:
    """Return an argument that must be a whole number, as an int; booleans are refused.

    Args:
        name: Name of the argument, for messages.
        value: Its value; NumPy integers are accepted.
        least: The smallest value allowed; None allows any.
        otherwise: Alternative for the caller, appended to the message.
        error: Class of the error that is raised.

    Raises:
        GraphBenchError: Of the given class, if it is not a whole number or is below ``least``.
    """
    remedy = f"; {otherwise}" if otherwise else ""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise error(f"{name} must be a whole number, got {value!r}{remedy}")
    if least is not None and number < least:
        raise error(f"{name} must be at least {least}, got {value}{remedy}")
    return number


def checked_path(name: str, value: str | os.PathLike[str]) -> Path:
    """Return an argument that must name a file or a folder, with ``~`` replaced by the home folder.

    Raises:
        ArgumentError: If it is no path, or has characters that no file name may have (NUL, lone surrogates).
    """
    try:
        path = Path(value).expanduser()
        encoded = os.fsencode(path)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"{name} must be a path, got {value!r}: {error}") from error
    if b"\0" in encoded:
        raise ArgumentError(f"{name} is {str(value)!r}, which has a NUL character; file names cannot contain it")
    return path
