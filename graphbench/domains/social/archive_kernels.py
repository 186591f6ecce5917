"""A kernel that reads the posts of lines of JSON.

The kernel reads the lines as the archive writes them, and checks the grammar of JSON and UTF-8 in full. A line that
the kernel cannot read (it may be malformed, or only unusual: numbers beyond 18 digits, keys with escapes, surrogates)
is marked, so that Python's reader of JSON decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

FIELDS = ("user_id", "date", "like_count", "reply_count", "repost_count", "reposted_author", "text")
"""Names of the fields that the kernel reads: the first five are whole numbers."""

POST, SHARED, UNREAD, BLANK = 0, 1, 2, 3
"""Classes of a line: a post, a repost of another user's post, a line that the kernel cannot read, a line of spaces."""

_NUMBERS, _REPOSTED, _TEXT = 5, 5, 6  # positions in FIELDS
_ABSENT, _NULL, _WHOLE, _STRING, _OTHER = 0, 1, 2, 3, 4  # types of values
_NAMES = np.frombuffer("".join(FIELDS).encode(), np.uint8)
_NAME_PTR = np.cumsum([0, *map(len, FIELDS)])
_MOST_DIGITS = 18
_DEEPEST = 60  # levels of arrays and objects within the object of a line
_PLAIN, _QUOTE, _BACKSLASH, _CONTROL, _HIGH = 0, 1, 2, 3, 4  # classes of the bytes of a string
_CLASSES = np.zeros(256, np.uint8)
_CLASSES[:32], _CLASSES[128:] = _CONTROL, _HIGH
_CLASSES[ord('"')], _CLASSES[ord("\\")] = _QUOTE, _BACKSLASH
_OBJECT, _OBJECT_END, _ARRAY, _ARRAY_END = ord("{"), ord("}"), ord("["), ord("]")
_COLON, _COMMA, _MARK, _MINUS, _PLUS, _POINT, _ZERO, _NINE = (ord(sign) for sign in ':,"-+.09')
_NEWLINE, _RETURN, _TAB, _SPACE = (ord(sign) for sign in "\n\r\t ")
_LETTER_U, _LETTER_E, _CAPITAL_E = ord("u"), ord("e"), ord("E")
_ESCAPES = np.frombuffer(b'"\\/bfnrt', np.uint8)
_HEX = np.zeros(256, bool)
_HEX[np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)] = True
_TRUE, _FALSE, _NULL_WORD = (np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))

Bytes = NDArray[np.uint8]


@inner
def _after_spaces(content: Bytes, i: int) -> int:
    """Return the first position from ``i`` on without a space, a tabulator or a carriage return."""
    while content[i] == _SPACE or content[i] == _TAB or content[i] == _RETURN:
        i += 1
    return i


@inner
def _between(byte: np.uint8, low: int, high: int) -> bool:
    return bool(low <= byte <= high)


@inner
def _after_character(content: Bytes, i: int) -> int:
    """Return the position after a character of several bytes; -1 if it is no UTF-8, or a surrogate."""
    first, second = content[i], content[i + 1]
    if _between(first, 0xC2, 0xDF):
        return i + 2 if _between(second, 0x80, 0xBF) else -1
    if _between(first, 0xE0, 0xEF):
        low, high = 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
        return i + 3 if _between(second, low, high) and _between(content[i + 2], 0x80, 0xBF) else -1
    if _between(first, 0xF0, 0xF4):
        low, high = 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
        if not (_between(second, low, high) and _between(content[i + 2], 0x80, 0xBF)):
            return -1
        return i + 4 if _between(content[i + 3], 0x80, 0xBF) else -1
    return -1


@inner
def _after_escape(content: Bytes, i: int) -> int:
    """Return the position after an escape that begins at ``i`` with a backslash; -1 if it is none."""
    letter = content[i + 1]
    if letter == _LETTER_U:
        for j in range(i + 2, i + 6):
            if not _HEX[content[j]]:
                return -1
        return i + 6
    for escape in _ESCAPES:
        if letter == escape:
            return i + 2
    return -1


@inner
def _after_string(content: Bytes, i: int) -> tuple[int, bool]:
    """Return the position after a string whose opening quote is at ``i``, and whether the string has escapes.

    The position is -1 if the string is not closed on its line, or holds something that is not allowed in a string.
    """
    i, has_escapes = i + 1, False
    while True:
        byte_class = _CLASSES[content[i]]
        if byte_class == _PLAIN:
            i += 1
        elif byte_class == _QUOTE:
            return i + 1, has_escapes
        elif byte_class == _CONTROL:
            return -1, has_escapes
        else:
            has_escapes |= byte_class == _BACKSLASH
            i = _after_escape(content, i) if byte_class == _BACKSLASH else _after_character(content, i)
            if i < 0:
                return -1, has_escapes


@inner
def _after_digits(content: Bytes, i: int) -> int:
    while _between(content[i], _ZERO, _NINE):
        i += 1
    return i


@inner
def _after_number(content: Bytes, i: int) -> tuple[int, int, int]:
    """Return the position after a number, its value if it is whole, and its type; position -1 if it is unusual."""
    is_negative = content[i] == _MINUS
    first = i + is_negative
    i, value = first, 0
    while _between(content[i], _ZERO, _NINE) and i - first <= _MOST_DIGITS:
        value = value * 10 + int(content[i]) - _ZERO
        i += 1
    if i == first or i - first > _MOST_DIGITS or (content[first] == _ZERO and i - first > 1):
        return -1, 0, _OTHER
    kind = _WHOLE
    if content[i] == _POINT:
        kind, begin = _OTHER, i + 1
        i = _after_digits(content, begin)
        if i == begin:
            return -1, 0, _OTHER
    if content[i] == _LETTER_E or content[i] == _CAPITAL_E:
        kind, begin = _OTHER, i + 1
        begin += content[begin] == _PLUS or content[begin] == _MINUS
        i = _after_digits(content, begin)
        if i == begin:
            return -1, 0, _OTHER
    return i, -value if is_negative else value, kind


@inner
def _after_word(content: Bytes, i: int, word: Bytes) -> int:
    for letter in word:
        if content[i] != letter:
            return -1
        i += 1
    return i


@inner
def _after_scalar(content: Bytes, i: int) -> tuple[int, int, int]:
    """Return position, value and type as :func:`_after_number` does, of a number, string, truth value or null."""
    first = content[i]
    if first == _MARK:
        return _after_string(content, i)[0], 0, _STRING
    if first == _NULL_WORD[0]:
        return _after_word(content, i, _NULL_WORD), 0, _NULL
    if first == _TRUE[0]:
        return _after_word(content, i, _TRUE), 0, _OTHER
    if first == _FALSE[0]:
        return _after_word(content, i, _FALSE), 0, _OTHER
    return _after_number(content, i)


@inner
def _after_key(content: Bytes, i: int) -> int:
    """Return the position of the value that follows a key and its colon; -1 if there is none."""
    i = _after_string(content, i)[0] if content[i] == _MARK else -1
    if i < 0:
        return -1
    i = _after_spaces(content, i)
    return _after_spaces(content, i + 1) if content[i] == _COLON else -1


@inner
def _after_nested(content: Bytes, i: int) -> int:
    """Return the position after an array or object; -1 if it is malformed or too deep."""
    depth, objects = 0, np.int64(0)  # one bit of ``objects`` for each level
    while True:
        is_object = content[i] == _OBJECT
        if is_object or content[i] == _ARRAY:
            if depth == _DEEPEST:
                return -1
            depth, objects = depth + 1, objects * 2 + is_object
            i = _after_spaces(content, i + 1)
            if content[i] != (_OBJECT_END if is_object else _ARRAY_END):
                if is_object:
                    i = _after_key(content, i)
                    if i < 0:
                        return -1
                continue
        else:
            i = _after_scalar(content, i)[0]
            if i < 0:
                return -1
            i = _after_spaces(content, i)
        while content[i] == (_OBJECT_END if objects & 1 else _ARRAY_END):
            depth, objects = depth - 1, objects // 2
            if depth == 0:
                return i + 1
            i = _after_spaces(content, i + 1)
        if content[i] != _COMMA:
            return -1
        i = _after_spaces(content, i + 1)
        if objects & 1:
            i = _after_key(content, i)
            if i < 0:
                return -1


@inner
def _field_named(content: Bytes, first: int, end: int) -> int:
    """Return the position in ``FIELDS`` of a name; -1 if it is none of them."""
    for field in range(_NAME_PTR.shape[0] - 1):
        name = _NAME_PTR[field]
        if _NAME_PTR[field + 1] - name == end - first and content[first] == _NAMES[name]:
            same = True
            for j in range(end - first):
                same &= content[first + j] == _NAMES[name + j]
            if same:
                return field
    return -1


@inner
def _after_object(
    content: Bytes, i: int, types: NDArray[np.int64], values: NDArray[np.int64], spans: NDArray[np.int64]
) -> int:
    """Read the fields of an object, of equal names the last; return the position after it, -1 if it is unusual.

    Args:
        content: The bytes.
        i: Position of the object.
        types: int64 ``[7]``: receives the types of the fields' values.
        values: int64 ``[7]``: receives the values of whole numbers.
        spans: int64 ``[7, 2]``: receives first position and end of the values.
    """
    if content[i] != _OBJECT:
        return -1
    i = _after_spaces(content, i + 1)
    if content[i] == _OBJECT_END:
        return i + 1
    while True:
        key = i
        if content[i] != _MARK:
            return -1
        i, has_escapes = _after_string(content, i)
        if i < 0 or has_escapes:
            return -1
        field = _field_named(content, key + 1, i - 1)
        i = _after_spaces(content, i)
        if content[i] != _COLON:
            return -1
        i = _after_spaces(content, i + 1)
        begin, value, kind = i, 0, _OTHER
        if content[i] == _OBJECT or content[i] == _ARRAY:
            i = _after_nested(content, i)
        else:
            i, value, kind = _after_scalar(content, i)
        if i < 0:
            return -1
        if field >= 0:
            types[field], values[field], spans[field, 0], spans[field, 1] = kind, value, begin, i
        i = _after_spaces(content, i)
        if content[i] == _OBJECT_END:
            return i + 1
        if content[i] != _COMMA:
            return -1
        i = _after_spaces(content, i + 1)


@inner
def _class_of(types: NDArray[np.int64]) -> int:
    """Return the class of a line from the types of its fields."""
    for field in range(_NUMBERS):
        if types[field] != _WHOLE:
            return UNREAD
    if types[_TEXT] == _WHOLE or types[_TEXT] == _OTHER:
        return UNREAD
    return POST if types[_REPOSTED] <= _NULL else SHARED


@kernel
def scan_posts(
    content: Bytes, lines: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    r"""Read the posts of lines of JSON; blank lines are left out.

    Args:
        content: uint8 ``[bytes]``, the lines; the last byte is a newline.
        lines: At least the number of lines.

    Returns:
        For every line that is not blank: the whole numbers, int64 ``[L, 5]``; the class, uint8 ``[L]``; first position
        and end of the line, int64 ``[L, 2]``; first position and end of the text with its quotes, int64 ``[L, 2]``,
        both 0 for a line without text. Numbers and texts of lines of the class ``UNREAD`` are meaningless.
    """
    numbers, classes = np.empty((lines, _NUMBERS), np.int64), np.empty(lines, np.uint8)
    extents, texts = np.empty((lines, 2), np.int64), np.zeros((lines, 2), np.int64)
    types, values, spans = np.empty(7, np.int64), np.empty(7, np.int64), np.empty((7, 2), np.int64)
    i = count = 0
    while i < content.shape[0]:
        begin = i
        i = _after_spaces(content, i)
        if content[i] == _NEWLINE:
            i += 1
            continue
        types[:] = _ABSENT
        end = _after_object(content, i, types, values, spans)
        if end >= 0:
            end = _after_spaces(content, end)
        if end >= 0 and content[end] == _NEWLINE:
            classes[count] = _class_of(types)
            numbers[count] = values[:_NUMBERS]
            if types[_TEXT] == _STRING:
                texts[count] = spans[_TEXT]
        else:
            classes[count], end = UNREAD, i
            while content[end] != _NEWLINE:
                end += 1
        extents[count, 0], extents[count, 1] = begin, end
        count, i = count + 1, end + 1
    return numbers[:count], classes[:count], extents[:count], texts[:count]
