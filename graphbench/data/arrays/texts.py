"""Strings as flat arrays: one per node or graph, UTF-8, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import StoreError
from graphbench.core.ragged import offsets, take_runs

POINTER = ".ptr"  # suffix of the array with the offset of each string


@dataclass(frozen=True, eq=False)
class Texts:
    """Strings, one per row.

    Attributes:
        content: uint8 ``[bytes]``, the strings in UTF-8.
        ptr: integer ``[rows + 1]``: string ``i`` is ``content[ptr[i]:ptr[i + 1]]``.
    """

    content: NDArray[np.uint8]
    ptr: NDArray[Any]

    @classmethod
    def of(cls, strings: Iterable[str]) -> Texts:
        """Encode strings."""
        encoded = [string.encode() for string in strings]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets(lengths))

    def __len__(self) -> int:
        """Return the number of strings."""
        return len(self.ptr) - 1

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Texts:
        """Return some of the strings: a slice of consecutive ones (as a view), or the given rows."""
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            ptr = self.ptr[first : max(first, last) + 1].astype(np.int64)  # the type of newly generated texts
            return Texts(self.content[int(ptr[0]) : int(ptr[-1])], ptr - ptr[0])
        begin = self.ptr[rows]
        taken = offsets((self.ptr[rows + 1] - begin).astype(np.int64))
        return Texts(take_runs(np.ascontiguousarray(self.content), begin, taken), taken)

    def take(self, first: NDArray[Any], ptr: NDArray[np.int64]) -> Texts:
        """Return runs of rows; arguments as for :func:`graphbench.core.ragged.take_runs`."""
        return self[np.repeat(first.astype(np.int64) - ptr[:-1], np.diff(ptr)) + np.arange(int(ptr[-1]))]

    def strings(self) -> list[str]:
        """Return the strings.

        Raises:
            StoreError: If the bytes are not UTF-8.
        """
        raw, ptr = self.content.tobytes(), self.ptr.tolist()
        try:
            return [raw[a:b].decode() for a, b in pairwise(ptr)]
        except UnicodeDecodeError as error:
            raise StoreError(f"a stored text is not UTF-8 ({error}); delete its file and it will be rebuilt") from error


def take_rows(values: Any, first: NDArray[Any], ptr: NDArray[np.int64]) -> Any:
    """Return the concatenation of runs of rows of an array or of texts; see :func:`~.ragged.take_runs`."""
    return values.take(first, ptr) if isinstance(values, Texts) else take_runs(np.ascontiguousarray(values), first, ptr)


def stored_arrays(values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return feature values as arrays by the names they are stored under: texts as two arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in values.items():
        if isinstance(value, Texts):
            arrays |= {name: value.content, name + POINTER: value.ptr}
        else:
            arrays[name] = value
    return arrays


def stored_names_of(feature: Feature) -> list[str]:
    """Return the names of the arrays that hold a feature."""
    return [feature.name, feature.name + POINTER] if feature.kind is Kind.TEXT else [feature.name]


def stored_value(feature: Feature, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return a feature's value, array or texts, from the arrays of a file."""
    stored = [arrays[name] for name in stored_names_of(feature)]
    return Texts(stored[0], stored[1]) if feature.kind is Kind.TEXT else stored[0]
