"""Checks of arguments before they reach compiled code: keys of splits and positions in splits."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError


def key_of(value: Any, error: type[GraphBenchError]) -> np.uint64:
    """Return the key of a split.

    Raises:
        GraphBenchError: Of the class ``error``, if it is not a whole number from 0 to 2**64 - 1.
    """
    number = whole_number(value)
    if number is None or not 0 <= number < 2**64:
        raise error(f"key is {value!r}; give a whole number from 0 to 2**64 - 1")
    return np.uint64(number)


def place_of(name: str, value: Any, error: type[GraphBenchError]) -> int:
    """Return a position in a split, or the number of an attempt or stream.

    Raises:
        GraphBenchError: Of the class ``error``, if it is not a whole number from 0 to 2**63 - 1.
    """
    number = whole_number(value)
    if number is None or not 0 <= number < 2**63:
        raise error(f"{name} is {value!r}; give a whole number from 0 to 2**63 - 1")
    return number


def places_of(name: str, values: Any, error: type[GraphBenchError]) -> NDArray[np.int64]:
    """Return positions in a split, or numbers of attempts, ``int64[S]``.

    Raises:
        GraphBenchError: Of the class ``error``, if they are not whole numbers from 0 on in one row.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # lists of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise error(f"{name} is {values!r:.80}; give a list or array of whole numbers")
    wrong = array[(array < 0) | (array > np.iinfo(np.int64).max)] if array.size else array
    if wrong.size:
        raise error(f"{name} has {int(wrong[0])}; give whole numbers from 0 to 2**63 - 1")
    return np.ascontiguousarray(array, np.int64)


def whole_number(value: Any) -> int | None:
    """Return a value as an int; None if it is not a whole number (True and False are not)."""
    try:
        return None if isinstance(value, bool | np.bool_) else index(value)
    except TypeError:
        return None
