"""Tables in ARFF, the attribute-relation file format of Weka, in which ASlib scenarios are written.

The reader supports numeric, string and nominal attributes, keywords and nominal values in any case, quoted names and
values with escapes, tabs and blanks between words, comments, and ``?`` for a missing value. It refuses sparse rows,
dates and relational attributes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from graphbench.core.damage import FileFault, limited_lines
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path
from graphbench.core.untrusted import open_regular_text

NUMERIC, STRING, NOMINAL = "numeric", "string", "nominal"
_KINDS = {"numeric": NUMERIC, "real": NUMERIC, "integer": NUMERIC, "string": STRING}
_MISSING = "?"
_BLANK = " \t\r\n"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_QUOTES = re.compile(r"'((?:[^'\\]|\\.)*+)'|\"((?:[^\"\\]|\\.)*+)\"", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*")
_SPECIAL = re.compile(r"[\s,'\"%{}\\?]|^$")
_SHOWN = 60  # number of characters of a faulty line that an error message shows

Value = float | str | None
"""A number, a text, or None where the value is missing."""


@dataclass(frozen=True)
class Attribute:
    """A column.

    Attributes:
        name: Its name, as written.
        kind: ``numeric``, ``string`` or ``nominal``.
        values: The values of a nominal attribute.
    """

    name: str
    kind: str = NUMERIC
    values: tuple[str, ...] = ()

    @cached_property
    def spelling(self) -> dict[str, str]:
        """Map every value, as written and in lower case, to the first value of the attribute that it stands for."""
        return {**{value.lower(): value for value in reversed(self.values)}, **{value: value for value in self.values}}


@dataclass(frozen=True, eq=False)
class Arff:
    """A table.

    Attributes:
        path: The file.
        relation: Name of the table.
        attributes: The columns.
        rows: The rows, one value per column.
        lines: Line of the file of every row, from 1 on.
    """

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    rows: tuple[tuple[Value, ...], ...]
    lines: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in lower case; columns are looked up by these names."""
        return tuple(attribute.name.lower() for attribute in self.attributes)

    def location_of(self, row: int) -> str:
        """Return the file and the line of a row, for error messages."""
        return f"{self.path}, line {self.lines[row]}"

    def column_number(self, name: str) -> int:
        """Return the position of the column of this name; without an exact match, upper and lower case are ignored.

        Raises:
            StoreError: If the table has no column of this name.
        """
        exact = [attribute.name for attribute in self.attributes]
        if name in exact:
            return exact.index(name)
        if name.lower() not in self.names:
            raise StoreError(f"{self.path} has no attribute {name!r}; it has {', '.join(self.names) or 'none'}")
        return self.names.index(name.lower())

    def texts(self, name: str) -> list[str]:
        """Return a column as texts; a whole number is written without a point.

        Raises:
            StoreError: If the table has no column of this name, or a value is missing.
        """
        column = self.column_number(name)
        texts = []
        for i, row in enumerate(self.rows):
            value = row[column]
            if value is None:
                raise StoreError(f"{self.location_of(i)}: {name} is missing")
            texts.append(value if isinstance(value, str) else f"{value:.17g}")
        return texts

    def numbers(self, name: str) -> list[float]:
        """Return a column as numbers, nan where a value is missing; a text that spells a number is converted.

        Raises:
            StoreError: If the table has no column of this name, or a value is not a number.
        """
        column = self.column_number(name)
        return [self._number(i, name, row[column]) for i, row in enumerate(self.rows)]

    def _number(self, row: int, name: str, value: Value) -> float:
        try:
            return math.nan if value is None else float(value)
        except ValueError:
            raise StoreError(f"{self.location_of(row)}: {name} is {value!r:.60}, which is no number") from None


def read_arff(path: Path) -> Arff:
    """Return the table of an ARFF file.

    Raises:
        StoreError: If the file cannot be read, is not an ARFF file, has two columns of the same name, or has a row that
            does not fit the attributes; the message gives the line.
    """
    try:
        with open_regular_text(path, "utf-8-sig") as file:
            return _parse(path, limited_lines(file))
    except FileFault as error:
        raise StoreError(f"{path} {error}; is it an ARFF file?") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is no ARFF file: it holds bytes that are no UTF-8 text ({error.reason})") from error
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def _parse(path: Path, lines: Iterable[str]) -> Arff:
    numbered = (
        (number, text) for number, line in enumerate(lines, 1) if (text := line.strip(_BLANK)) and text[0] != "%"
    )
    relation, attributes = _header(path, numbered)
    rows, places = [], []
    for number, text in numbered:
        location = f"{path}, line {number}"
        if text[0] == "{":
            raise StoreError(f"{location}: the row is sparse, which is not read; write all values")
        rows.append(_row(location, text, attributes))
        places.append(number)
    return Arff(path, relation, attributes, tuple(rows), tuple(places))


def _header(path: Path, numbered: Iterator[tuple[int, str]]) -> tuple[str, tuple[Attribute, ...]]:
    relation, attributes = "", list[Attribute]()
    for number, text in numbered:
        location = f"{path}, line {number}"
        keyword, rest = (*text.split(None, 1), "")[:2]
        match keyword.lower():
            case "@relation":
                relation = _word(location, rest)[0] if rest else ""
            case "@attribute":
                attributes.append(_attribute(location, rest))
            case "@data":
                count = Counter(attribute.name for attribute in attributes)
                twice = [name for name, times in count.items() if times > 1]
                if twice or not attributes:
                    fault = f"the attribute {twice[0]!r} twice" if twice else "no attribute"
                    raise StoreError(f"{path} has {fault}; give every column a different name")
                return relation, tuple(attributes)
            case _:
                raise StoreError(
                    f"{location}: {text[:_SHOWN]!r} where @RELATION, @ATTRIBUTE or @DATA is expected; "
                    "is it an ARFF file?"
                )
    raise StoreError(f"{path} has no @DATA; is it an ARFF file?")


def _attribute(location: str, text: str) -> Attribute:
    name, rest = _word(location, text)
    kind = rest.strip(_BLANK)
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise StoreError(f"{location}: the values of {name!r} do not end with a closing brace")
        values = tuple("" if value is None else value for value, _ in _values(location, kind[1:-1]))
        return Attribute(name, NOMINAL, values)
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word not in _KINDS:
        raise StoreError(
            f"{location}: the type of {name!r} is {kind[:_SHOWN]!r}; read are NUMERIC, REAL, INTEGER, STRING and "
            "{values}"
        )
    return Attribute(name, _KINDS[word])


def _word(location: str, text: str) -> tuple[str, str]:
    """Return the first word of a text, which may be quoted, and the rest."""
    if text[:1] in ("'", '"'):
        name, end = _quoted(location, text, 0)
        return name, text[end:]
    words = text.split(None, 1)
    if not words:
        raise StoreError(f"{location}: a name is missing")
    head, brace, tail = words[0].partition("{")  # as in "@ATTRIBUTE status{ok,timeout}"
    return head, brace + tail + (" " + words[1] if len(words) > 1 else "")


def _quoted(location: str, text: str, start: int) -> tuple[str, int]:
    """Return the content of the quoted text that begins at ``start``, and the position after its closing quote."""
    match = _QUOTES.match(text, start)
    if match is None:
        raise StoreError(f"{location}: the quote {text[start]} of {text[start : start + _SHOWN]!r} is not closed")
    content = match[1] if match[1] is not None else match[2]
    return _ESCAPED.sub(lambda letter: _ESCAPES.get(letter[1], letter[1]), content), match.end()


def _values(location: str, text: str) -> list[tuple[str | None, bool]]:
    """Return the values of a line, each with a flag that tells whether it is quoted; a missing value is None."""
    if "'" not in text and '"' not in text and "\\" not in text:
        words = [word.strip(_BLANK) for word in text.split(",")]
        return [(None if word == _MISSING else word, False) for word in words]
    values: list[tuple[str | None, bool]] = []
    at = 0
    while True:
        at = _BLANKS.match(text, at).end()  # type: ignore[union-attr] # it matches no letter, too
        value, start = None, at
        if quoted := text[at : at + 1] in ("'", '"'):
            value, start = _quoted(location, text, at)
        comma = text.find(",", start)
        word = text[start : len(text) if comma < 0 else comma].strip(_BLANK)
        if quoted and word:
            raise StoreError(f"{location}: {word[:_SHOWN]!r} follows a quoted value; a comma is expected")
        values.append((value, True) if quoted else (None if word == _MISSING else word, False))
        if comma < 0:
            return values
        at = comma + 1


def _row(location: str, text: str, attributes: Sequence[Attribute]) -> tuple[Value, ...]:
    words = _values(location, text)
    if len(words) != len(attributes):
        raise StoreError(f"{location}: the row has {len(words)} values, but there are {len(attributes)} attributes")
    return tuple(_value(location, a, word, quoted) for a, (word, quoted) in zip(attributes, words, strict=True))


def _value(location: str, attribute: Attribute, word: str | None, quoted: bool) -> Value:
    if word is None:
        return None
    if attribute.kind == NUMERIC:
        try:
            return float(word)
        except ValueError:
            raise StoreError(f"{location}: {attribute.name} is {word[:_SHOWN]!r}, which is no number") from None
    if not word and not quoted:
        raise StoreError(f"{location}: the value of {attribute.name} is empty; write ? for a missing one")
    if attribute.kind != NOMINAL:
        return word
    written = attribute.spelling.get(word, attribute.spelling.get(word.lower()))
    if written is not None:
        return written
    raise StoreError(f"{location}: {attribute.name} is {word[:_SHOWN]!r}, which is none of its values")


def write_arff(path: Path, relation: str, attributes: Sequence[Attribute], rows: Iterable[Sequence[Value]]) -> None:
    """Write a table as an ARFF file, from which :func:`read_arff` reads the same values.

    Args:
        path: The file.
        relation: Name of the table.
        attributes: The columns.
        rows: The rows, one value per column; nan is written as a missing value.

    Raises:
        StoreError: If the file cannot be written.
    """
    with atomic_path(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"@RELATION {_escaped(relation)}\n\n")
        for attribute in attributes:
            values = ",".join(map(_escaped, attribute.values))
            kind = f"{{{values}}}" if attribute.kind == NOMINAL else attribute.kind.upper()
            file.write(f"@ATTRIBUTE {_escaped(attribute.name)} {kind}\n")
        file.write("\n@DATA\n")
        for row in rows:
            file.write(",".join(map(_written, row)) + "\n")


def _written(value: Value) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _MISSING
    if isinstance(value, str):
        return _escaped(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    """Return the text, in quotes if it contains a character that has a meaning in ARFF."""
    if not _SPECIAL.search(text):
        return text
    shown = text.replace("\\", "\\\\").replace("'", "\\'")
    for letter, sign in _ESCAPES.items():
        shown = shown.replace(sign, f"\\{letter}")
    return f"'{shown}'"
