"""Rows of the archive: posts from lines of JSON, interactions from lines of CSV; malformed lines are counted."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.social.archive_kernels import BLANK, FIELDS, POST, SHARED, UNREAD, scan_posts

*COLUMNS, _REPOSTED, _TEXT = FIELDS
_LARGEST = np.iinfo(np.int32).max
_DAYS_AS_STAMPS = 10**8  # stamps below are days, YYYYMMDD; others minutes, YYYYMMDDHHMM
_YEARS = (1970, 2100)


@dataclass(frozen=True)
class PostRows:
    """Posts of some lines.

    Attributes:
        rows: int32 ``[P, 5]``: user, time in minutes since 1970, likes, replies, reposts.
        texts: The text of every post; empty if texts were not requested.
        malformed: Number of malformed lines.
        shared: Number of lines that record a repost of another user's post; they do not count as posts by default.
    """

    rows: NDArray[np.int32]
    texts: list[str]
    malformed: int
    shared: int


def minutes_of_stamps(stamps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the minutes since 1970 of days YYYYMMDD and minutes YYYYMMDDHHMM, and a mask of the stamps that exist."""
    stamps = np.where((stamps > 0) & (stamps < _DAYS_AS_STAMPS), stamps * 10_000, stamps)
    year, month, day = stamps // 10**8, stamps // 10**6 % 100, stamps // 10**4 % 100
    hour, minute = stamps // 100 % 100, stamps % 100
    exists = (year >= _YEARS[0]) & (year <= _YEARS[1]) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    exists &= (hour < 24) & (minute < 60)
    months = np.where(exists, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(exists, day - 1, 0)
    exists &= days.astype("datetime64[M]") == months  # no 31 February
    return days.astype(np.int64) * 1440 + hour * 60 + minute, exists


def parse_posts(content: bytes, *, texts: bool = False, shared: bool = False) -> PostRows:
    """Return the posts of lines of JSON objects with the fields of the archive.

    With ``shared``, lines that record a repost of another user's post are rows, too, with the counts of the reposted
    post; otherwise they are left out. They are counted in any case. A line is malformed if it is not a JSON object,
    lacks the user, the date or a count, or one of these is not a whole number in its range. Python's reader of JSON
    decides about the lines that the kernel cannot read.
    """
    ended = content if content.endswith(b"\n") else content + b"\n"
    numbers, classes, extents, spans = scan_posts(np.frombuffer(ended, np.uint8), ended.count(b"\n"))
    texts_of_unread: dict[int, str] = {}
    for line in np.flatnonzero(classes == UNREAD).tolist():
        begin, end = extents[line].tolist()
        classes[line], numbers[line], texts_of_unread[line] = _read_by_python(ended[begin:end])
    is_row = (classes == POST) | (shared & (classes == SHARED))
    lines = np.flatnonzero(is_row)
    rows, valid = _checked(numbers[lines])
    written = []
    if texts:
        for line, (begin, end) in zip(lines[valid].tolist(), spans[lines[valid]].tolist(), strict=True):
            text = texts_of_unread.get(line)
            written.append((json.loads(ended[begin:end]) if end else "") if text is None else text)
    malformed = int((classes == UNREAD).sum() + (~valid).sum())
    return PostRows(rows, written, malformed, int((classes == SHARED).sum()))


def _read_by_python(line: bytes) -> tuple[int, list[int], str]:
    """Return class, whole numbers and text of a line of JSON; the class ``UNREAD`` if the line is malformed."""
    nothing = [0] * len(COLUMNS)
    if not line.strip():
        return BLANK, nothing, ""
    try:
        post: Any = json.loads(line)
    except (ValueError, RecursionError):
        post = None
    if not isinstance(post, dict):
        return UNREAD, nothing, ""
    values = [post.get(name) for name in COLUMNS]
    if any(type(value) is not int or not -(2**62) < value < 2**62 for value in values):
        return UNREAD, nothing, ""
    text = str(post.get(_TEXT) or "")
    return POST if post.get(_REPOSTED) is None else SHARED, [int(value) for value in values if value is not None], text


def _checked(values: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the rows in range, with minutes in place of stamps, and a mask of these rows."""
    minutes, valid = minutes_of_stamps(values[:, 1])
    rows = values.copy()
    rows[:, 1] = np.where(valid, minutes, 0)
    valid &= ((rows >= 0) & (rows <= _LARGEST)).all(axis=1)
    return rows[valid].astype(np.int32), valid


def parse_interactions(content: bytes) -> tuple[NDArray[np.int32], int]:
    """Return source, target and minute of lines of CSV, int32 ``[I, 3]``, and the number of malformed lines.

    A line of words (``source,target,date``) is a header and left out.
    """
    lines = content.strip()
    if not lines:
        return np.empty((0, 3), np.int32), 0
    first, _, rest = lines.partition(b"\n")
    if not first[:1].isdigit() and any(letter in first.lower() for letter in (b"source", b"date", b"user", b"u,v")):
        lines = rest
    try:
        values = np.loadtxt(io.BytesIO(lines), np.int64, delimiter=",", usecols=(0, 1, 2), ndmin=2, comments=None)
        malformed = 0
    except (ValueError, OverflowError, IndexError):
        values, malformed = _rows_of_lines(lines)
    minutes, valid = minutes_of_stamps(values[:, 2].astype(np.int64))
    rows = values.astype(np.int64)
    rows[:, 2] = np.where(valid, minutes, 0)
    valid &= ((rows >= 0) & (rows <= _LARGEST)).all(axis=1)
    return rows[valid].astype(np.int32), malformed + int((~valid).sum())


def _rows_of_lines(lines: bytes) -> tuple[NDArray[np.int64], int]:
    rows, malformed = [], 0
    for line in lines.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = [int(part) for part in line.split(b",")[:3]]
        except ValueError:
            row = []
        if len(row) == 3 and all(0 <= value < 2**62 for value in row):
            rows.append(row)
        else:
            malformed += 1
    return np.array(rows, np.int64).reshape(-1, 3), malformed
