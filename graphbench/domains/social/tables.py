"""The tables from which snapshots are made: posts with their counts, their content by period, and interactions.

Times are whole minutes since 1 January 1970, UTC, as the archive of Bluesky gives minutes. Users are whole numbers from
0 on. Rows may be in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError

KINDS = ("quotes", "replies", "reposts")
COUNTS = ("likes", "replies", "reposts")
_MINUTES_PER_DAY = 1440
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Contents:
    """The contents of users' posts, one row per user and period (for example a month).

    Attributes:
        user: Integers ``[R]``.
        time: Integers ``[R]``: a time by which all posts of the row have been written, usually the end of the period.
            This time decides to which interval a row belongs, so an interval leaves out a row with a period that
            reaches beyond the end of the interval.
        vectors: Floats ``[R, d]``: the content of these posts.
    """

    user: Integers
    time: Integers
    vectors: Floats

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ArgumentError: If the columns differ in length or have another type.
        """
        _check_columns("contents", {"user": self.user, "time": self.time})
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.user) or self.vectors.dtype.kind != "f":
            raise ArgumentError(
                f"contents.vectors has the shape {self.vectors.shape} and the type {self.vectors.dtype}; give floats "
                f"[{len(self.user)}, d]"
            )


@dataclass(frozen=True)
class Posts:
    """Posts with the engagement that they received.

    Attributes:
        user: Integers ``[P]``: who wrote it.
        time: Integers ``[P]``.
        likes: Integers ``[P]``.
        replies: Integers ``[P]``.
        reposts: Integers ``[P]``.
        contents: The contents of the posts; None if unknown.
    """

    user: Integers
    time: Integers
    likes: Integers
    replies: Integers
    reposts: Integers
    contents: Contents | None = None

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ArgumentError: If the columns differ in length, or have another type.
        """
        _check_columns("posts", {name: getattr(self, name) for name in ("user", "time", *COUNTS)})

    def __len__(self) -> int:
        """Return the number of posts."""
        return len(self.user)


@dataclass(frozen=True)
class Interactions:
    """Interactions of one kind: ``source`` quoted, replied to or reposted a post of ``target``.

    Attributes:
        source: Integers ``[I]``.
        target: Integers ``[I]``.
        time: Integers ``[I]``.
    """

    source: Integers
    target: Integers
    time: Integers

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ArgumentError: If the columns differ in length, or have another type.
        """
        _check_columns("interactions", {"source": self.source, "target": self.target, "time": self.time})

    def __len__(self) -> int:
        """Return the number of interactions."""
        return len(self.source)


def end_of_day(day: date) -> int:
    """Return the last minute of a day, so that intervals ``(t0, t1]`` contain the whole day ``t1``."""
    return (day - _EPOCH.date()).days * _MINUTES_PER_DAY + _MINUTES_PER_DAY - 1


def _check_columns(table: str, columns: dict[str, Any]) -> None:
    shapes = {name: getattr(column, "shape", None) for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or any(shape is None or len(shape) != 1 for shape in shapes.values()):
        raise ArgumentError(f"the columns of {table} have the shapes {shapes}; give arrays [rows] of one length")
    for name, column in columns.items():
        if column.dtype.kind not in "iu":
            raise ArgumentError(f"{table}.{name} has the type {column.dtype}; give whole numbers")
