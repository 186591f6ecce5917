"""Datasets on disk: flat arrays in one HDF5 file per split, memory-mapped, with checksums in a manifest.

Incomplete files are never visible: files are written under a temporary name, flushed to disk and renamed. HDF5 datasets
are contiguous, so they are mapped by offset and processes share the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import StoreError
from graphbench.core.files import (
    atomic_path,
)
from graphbench.core.untrusted import require_regular

FORMAT = 1
_HEADER_BYTES = 65_536

Array = NDArray[Any]


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of one array of a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class ArrayFile:
    """An HDF5 file of contiguous arrays that is written in pieces.

    HDF5 lays out the file; the rows are then written at their offsets by ordinary file operations. So a full disk
    raises an ordinary error, whereas the library would leave a file that it cannot close.
    """

    def __init__(self, path: Path, specs: Mapping[str, ArraySpec], attributes: Mapping[str, Any]) -> None:
        self._specs = specs
        self._offsets = _lay_out(path, specs, {"format": FORMAT, **attributes})
        self._stream = path.open("r+b")

    def write(self, name: str, first: int, rows: Array) -> None:
        """Write ``rows`` at row ``first`` of the array ``name``, cast to its type."""
        spec, offset = self._specs[name], self._offsets[name]
        if rows.shape[1:] != spec.shape[1:] or first + len(rows) > spec.shape[0]:
            raise ValueError(
                f"rows {first} to {first + len(rows)} of shape {rows.shape} do not fit {name} {spec.shape}"
            )
        if rows.size == 0 or offset is None:
            return
        content: Any = np.ascontiguousarray(rows, spec.dtype)
        self._stream.seek(offset + first * (content.nbytes // len(content)))
        self._stream.write(memoryview(content).cast("B"))

    def __enter__(self) -> ArrayFile:
        """Return the file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Flush and close the file."""
        self._stream.close()


def _lay_out(path: Path, specs: Mapping[str, ArraySpec], attributes: Mapping[str, Any]) -> dict[str, int | None]:
    """Create an HDF5 file with allocated but unwritten arrays; return their offsets in bytes."""
    import h5py

    path.write_bytes(bytes(_HEADER_BYTES))  # a full disk raises an ordinary error here, clearer than the error of HDF5
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.CONTIGUOUS)
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    settings.set_obj_track_times(False)
    offsets = {}
    with h5py.File(path, "w", libver="latest") as file:
        for name, value in attributes.items():
            file.attrs[name] = value
        for name, spec in specs.items():
            space, kind = h5py.h5s.create_simple(spec.shape), h5py.h5t.py_create(spec.dtype, logical=True)
            offsets[name] = h5py.h5d.create(file.id, name.encode(), kind, space, settings).get_offset()
    return offsets


def write_arrays(path: Path, arrays: Mapping[str, Array], attributes: Mapping[str, Any] | None = None) -> None:
    """Write arrays to an HDF5 file, atomically."""
    specs = {name: ArraySpec(array.shape, array.dtype) for name, array in arrays.items()}
    with atomic_path(path) as aside, ArrayFile(aside, specs, attributes or {}) as file:
        for name, array in arrays.items():
            file.write(name, 0, array)


def map_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file, memory-mapped copy-on-write: changes never reach the disk.

    Raises:
        StoreError: If the file is missing, is not HDF5, or was written by a newer format.
    """
    import h5py

    with _open_arrays(path) as file:
        handles = {name.decode(): h5py.h5d.open(file.id, name) for name in file.id}
        locations = {name: (array.get_offset(), array.shape, array.dtype) for name, array in handles.items()}
        content = np.memmap(path, np.uint8, "c")
        return {name: _map_array(path, content, *location) for name, location in locations.items()}


def file_attribute(path: Path, name: str) -> Any:
    """Return an attribute of a file of arrays, or None where it has none of that name.

    Raises:
        StoreError: As :func:`map_arrays` does.
    """
    with _open_arrays(path) as file:
        return file.attrs.get(name)


@contextmanager
def _open_arrays(path: Path) -> Iterator[Any]:
    """Open a file of arrays for reading; any error that a damaged file causes becomes a :class:`StoreError`."""
    import h5py

    try:
        require_regular(path)
        with h5py.File(path, "r") as file:
            _check_format(path, file.attrs.get("format", 0))
            yield file
    except StoreError:
        raise
    except (OSError, ValueError, RuntimeError, AttributeError, LookupError, TypeError, ArithmeticError) as error:
        raise StoreError(f"cannot read {path}: {error}; delete it and it will be rebuilt") from error


def _map_array(
    path: Path, content: np.memmap[Any, Any], offset: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    if offset is not None:
        end = offset + ArraySpec(shape, dtype).nbytes
        if end > len(content):
            raise StoreError(f"{path} ends within an array; delete it to rebuild")
        array = cast("np.memmap[Any, Any]", content[offset:end].view(dtype).reshape(shape))
        array.offset = offset  # type: ignore[misc]
        return array
    if 0 in shape:
        return np.empty(shape, dtype)
    raise StoreError(f"{path} holds an array that is not contiguous or was never written; delete it to rebuild")


def _check_format(path: Path, file_format: Any) -> None:
    if file_format == FORMAT:
        return
    if isinstance(file_format, int | np.integer) and file_format > FORMAT:
        raise StoreError(
            f"{path} has the store format {file_format}, newer than this version reads ({FORMAT}); "
            "update graphbench, or choose another --root"
        )
    raise StoreError(
        f"{path} has store format {file_format}, this version reads {FORMAT}; delete it and it will be rebuilt"
    )
