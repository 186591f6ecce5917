"""Datasets on disk: flat arrays in one HDF5 file per split, memory-mapped, with checksums in a manifest.

Incomplete files are never visible: files are written under a temporary name, flushed to disk and renamed. HDF5 datasets
are contiguous, so they are mapped by offset and processes share the pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.core.files import (
    atomic_path,
    clear_errors,
    existing_parent,
    is_file,
    load_json,
    remove_strays,
    replace_text,
    write_json,
)

FORMAT = 1
MANIFEST = "manifest.json"
_HEADER_BYTES = 65_536
_SPARE_BYTES = 64_000_000  # left free on the disk beyond what a build needs

Array = NDArray[Any]


def default_root() -> Path:
    """Return ``$GRAPHBENCH_ROOT``, or else the user's cache folder."""
    from platformdirs import user_cache_path

    configured = os.environ.get("GRAPHBENCH_ROOT")
    return Path(configured).expanduser() if configured else user_cache_path("graphbench")


def require_space(folder: Path, needed: int) -> None:
    """Raise a clear error if the disk has too little space for a build.

    Raises:
        StoreError: If fewer than ``needed`` bytes and a reserve of 64 MB are free.
    """
    free = shutil.disk_usage(existing_parent(folder)).free
    if free < needed + _SPARE_BYTES:
        raise StoreError(
            f"too little disk space in {folder}: about {needed / 1e6:.0f} MB and a reserve of "
            f"{_SPARE_BYTES / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free; "
            "free space, choose another --root, or ask for fewer samples with --limit"
        )


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

    path.write_bytes(bytes(_HEADER_BYTES))  # a full disk raises an ordinary error here, clearer than that of HDF5
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
        found = {name.decode(): h5py.h5d.open(file.id, name) for name in file.id}
        places = {name: (array.get_offset(), array.shape, array.dtype) for name, array in found.items()}
        content = np.memmap(path, np.uint8, "c")
        return {name: _map_array(path, content, *place) for name, place in places.items()}


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


def _check_format(path: Path, found: Any) -> None:
    if found == FORMAT:
        return
    if isinstance(found, int | np.integer) and found > FORMAT:
        raise StoreError(
            f"{path} has the store format {found}, newer than this version reads ({FORMAT}); "
            "update graphbench, or choose another --root"
        )
    raise StoreError(f"{path} has store format {found}, this version reads {FORMAT}; delete it and it will be rebuilt")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def smallest_integer(largest: int) -> np.dtype[Any]:
    """Return the smallest of uint8, uint16, int32 and int64 that holds 0 .. ``largest``."""
    for candidate in (np.uint8, np.uint16, np.int32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.int64)


def pointer_dtype(largest: int) -> np.dtype[Any]:
    """Return the integer type of offsets up to ``largest``: int32, or int64 where it is too small."""
    return np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)


class Manifest:
    """The manifest of a dataset folder: card, fingerprint, versions, and the checksum of every file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self.folder = folder

    def read(self) -> dict[str, Any]:
        """Return the content, or an empty manifest if there is no file yet."""
        if not is_file(self.path):
            return {"format": FORMAT, "files": {}}
        try:
            with clear_errors(self.path, "read"):
                content: dict[str, Any] = load_json(self.path)
            for name, facts in content["files"].items():
                _check_facts(name, facts)
            found = content["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self.path} is damaged ({type(error).__name__}: {error}); delete {self.folder} and it will be rebuilt"
            ) from error
        _check_format(self.path, found)
        return content

    def add_file(self, name: str, facts: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Record a finished file with its size and checksum, keeping the others."""
        content = self.read()
        path = self.folder / name
        content.update(about)
        content["files"][name] = {**facts, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        remove_strays(self.folder, MANIFEST)
        write_json(self.path, content)
        self._stamp(name)

    def entry(self, name: str) -> dict[str, Any] | None:
        """Return the entry of a file, or None."""
        found: dict[str, Any] | None = self.read()["files"].get(name)
        return found if found is not None and is_file(self.folder / name) else None

    def check(self, name: str, full: bool = False) -> None:
        """Check a file against its recorded checksum.

        The full comparison runs once per file and state (size, time of change, inode) of the file; later calls compare
        that state only.

        Args:
            name: File name inside the folder.
            full: Recompute the checksum in any case.

        Raises:
            ChecksumMismatch: If size or checksum differ.
        """
        entry = self.read()["files"].get(name)
        path = self.folder / name
        if entry is None or not path.is_file():
            raise StoreError(f"{path} is not recorded in {self.path}; delete it and it will be rebuilt")
        state = _file_state(path)
        if state[0] == entry["bytes"] and not full and self._stamped(name) == state:
            return
        found = file_sha256(path)
        if found != entry["sha256"]:
            raise ChecksumMismatch(
                f"{path} was changed or damaged: SHA-256 {found[:12]}... instead of {entry['sha256'][:12]}...; "
                "delete this file and it will be rebuilt, bit for bit"
            )
        self._stamp(name)

    def _stamp_path(self, name: str) -> Path:
        return self.folder / f".{name}.checked"

    def _stamped(self, name: str) -> list[int] | None:
        try:
            stamp: list[int] = load_json(self._stamp_path(name))
        except (OSError, ValueError):
            return None
        return stamp

    def _stamp(self, name: str) -> None:
        try:
            replace_text(self._stamp_path(name), json.dumps(_file_state(self.folder / name)))
        except OSError:
            return  # a read-only folder: the check simply runs again next time


_FACTS: Mapping[str, type] = {"bytes": int, "sha256": str, "count": int, "split": str, "content": str}


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    for key, kind in _FACTS.items():
        if not isinstance(facts[key], kind):
            raise TypeError(f"{key} of {name} is {facts[key]!r}")


def _file_state(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino]
