"""Read text and JSON that strangers wrote: with limits, and shown in terminals without doing anything there."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any

MOST_LEVELS = 50
MOST_DIGITS = 20
MOST_CHARACTERS = 4000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES = frozenset("\n\t")
_FORMULAS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\u2212")  # \u2212 is the minus sign


def shown(text: object, most: int | None = None, *, lines: bool = False) -> str:
    r"""Return text with every character that has no visible glyph written as an escape such as ``\x1b``.

    These are control characters, which a terminal obeys, line breaks, marks that turn the direction of writing, and
    halves of surrogate pairs.

    Args:
        text: The text, or a value whose ``str`` is shown.
        most: Most characters; the end of a longer text is replaced by ``...``.
        lines: Whether line breaks and tabs stay as they are.
    """
    kept = _LINES if lines else frozenset()
    printable = "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape").decode("ascii") for c in str(text)
    )
    return printable if most is None or len(printable) <= most else printable[: most - 3] + "..."


def spreadsheet_cell(value: Any) -> Any:
    r"""Return a value for a CSV file; a spreadsheet runs no text of it as a formula, and a terminal obeys none.

    Args:
        value: A number, which is returned as it is, or a text.

    Returns:
        A text in which control characters and line breaks are escapes such as ``\x1b``, as in :func:`shown`. Where it
        begins as formulas do (``=``, ``+``, ``-`` or ``@``, also of full width), an apostrophe stands before it, as
        OWASP recommends (https://owasp.org/www-community/attacks/CSV_Injection).
    """
    if not isinstance(value, str):
        return value
    text = shown(value)
    return f"'{text}" if text.lstrip()[:1] in _FORMULAS else text


def text_fault(text: str, most: int = MOST_CHARACTERS, *, lines: bool = False) -> str | None:
    """Return why a text is refused, or None: it is too long, or has characters without a visible glyph.

    Args:
        text: The text.
        most: Most characters.
        lines: Whether it may have several lines, and tabs.
    """
    if len(text) > most:
        return f"a text of {len(text):,} characters, of which {most:,} are allowed"
    strange = next((c for c in text if not c.isprintable() and not (lines and c in _LINES)), None)
    return None if strange is None else f"a text with the character {shown(strange)}, which cannot be printed"


def texts_fault(value: Any, most: int = MOST_CHARACTERS, levels: int = MOST_LEVELS) -> str | None:
    """Return why a value of JSON is refused, or None: it has such a text, or is nested too deeply.

    Args:
        value: The value: mappings, lists, texts and numbers.
        most: Most characters of a text.
        levels: Most lists and mappings within each other.
    """
    waiting = [(value, 0)]
    while waiting:
        item, level = waiting.pop()
        if level > levels:
            return f"lists and mappings nested more than {levels} deep"
        if isinstance(item, str) and (fault := text_fault(item, most, lines=True)):
            return fault
        inside: Iterable[Any] = item if isinstance(item, list | tuple) else ()
        if isinstance(item, dict):
            inside = (*item, *item.values())
        waiting += [(part, level + 1) for part in inside]
    return None


def limited_text(path: Path, most_bytes: int) -> str:
    """Return the text of a file, UTF-8 without a byte order mark.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is larger, or is no such text.
    """
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it is larger than {most_bytes:,} bytes")
    if content.startswith(_BYTE_ORDER_MARK):
        raise ValueError("it begins with a byte order mark; save it as UTF-8 without one")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start:,}") from None


def strict_json(path: Path, most_bytes: int) -> Any:
    """Return the value of a JSON file, which follows the standard to the letter.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is larger than ``most_bytes``, is no UTF-8 or no JSON, is nested too deeply, has a key twice,
            NaN, infinity, a number of more than :data:`MOST_DIGITS` digits, or a text that :func:`texts_fault` refuses.
    """
    text = limited_text(path, most_bytes)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_each_key_once,
            parse_constant=_refuse_constant,
            parse_int=_whole_number,
            parse_float=_finite_number,
        )
    except RecursionError:
        raise ValueError("its lists and mappings are nested too deeply") from None
    if fault := texts_fault(value):
        raise ValueError(f"it has {fault}")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {shown(repr(twice), 80)} appears twice")
    return mapping


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it has the value {name}; JSON has finite numbers alone")


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _finite_number(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"it has the number {shown(digits, 40)}, which is too large")
    return value


class NoRegularFile(OSError):
    """A path that is a pipe, a socket or a device."""


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading. Pipes, sockets and devices are refused at once: reading them could wait for ever.

    Raises:
        OSError: If the path cannot be opened, or is no regular file.
    """
    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NoRegularFile(errno.EINVAL, "it is a pipe, a socket or a device; give a regular file", str(path))
    return file


def require_regular(path: Path) -> None:
    """Refuse a path that :func:`open_regular` refuses, before a library opens it.

    Raises:
        OSError: As :func:`open_regular`.
    """
    open_regular(path).close()


def open_regular_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> TextIOWrapper:
    """Open a file of text for reading, as :func:`open_regular`."""
    return TextIOWrapper(open_regular(path), encoding=encoding, newline=newline)


def _open_without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
