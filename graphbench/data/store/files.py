"""Datasets on disk: flat arrays in one HDF5 file per split, memory-mapped, with checksums in a manifest.

Incomplete files are never visible: files are written under a temporary name, flushed to disk and renamed. HDF5 datasets
are contiguous, so they are mapped by offset and processes share the pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        state = _file_state(path)
        content["files"][name] = {**facts, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        remove_strays(self.folder, MANIFEST)
        write_json(self.path, content)
        self._stamp(name, state, content["files"][name])

    def entry(self, name: str) -> dict[str, Any] | None:
        """Return the entry of a file, or None."""
        found: dict[str, Any] | None = self.read()["files"].get(name)
        return found if found is not None and is_file(self.folder / name) else None

    def check(self, name: str, full: bool = False, content: Callable[[Path], str] | None = None) -> dict[str, Any]:
        """Check a file against its recorded checksums, and return its entry.

        The full comparison runs once per state of the file (size, times of change, inode) and recorded checksums; later
        calls compare the state only. A file that was changed in place has another time of change (``ctime``), even
        where its time of modification was put back.

        Args:
            name: File name inside the folder.
            full: Recompute the checksums in any case.
            content: Returns the content hash of a file, which is then compared with the recorded one; None compares the
                checksum of the file alone.

        Raises:
            ChecksumMismatch: If size, checksum or content differ.
            StoreError: If the file is not recorded.
        """
        entry = self.read()["files"].get(name)
        path = self.folder / name
        if entry is None or not path.is_file():
            raise StoreError(f"{path} is not recorded in {self.path}; delete it and it will be rebuilt")
        state = _file_state(path)
        checked = (None, None) if full else self._checked(name, state)
        if checked[0] != entry["sha256"]:
            self._require(path, "SHA-256", file_sha256(path), entry["sha256"])
        if content is not None and checked[1] != entry["content"]:
            self._require(path, "hash of the content", content(path), entry["content"])
        wanted = (entry["sha256"], None if content is None else entry["content"])
        if checked[0] != wanted[0] or wanted[1] not in (None, checked[1]):
            self._stamp(name, state, entry if content is not None else {"sha256": entry["sha256"]})
        return dict(entry)

    def _require(self, path: Path, kind: str, found: str, recorded: str) -> None:
        if found != recorded:
            raise ChecksumMismatch(
                f"{path} was changed or damaged: {kind} {found[:12]}... instead of {recorded[:12]}... as {self.path} "
                "says; delete this file and it will be rebuilt, bit for bit"
            )

    def _stamp_path(self, name: str) -> Path:
        return self.folder / f".{name}.checked"

    def _checked(self, name: str, state: Sequence[int]) -> tuple[str | None, str | None]:
        """Return the checksum and the content hash that a file in a state was compared with; None for none."""
        stamp = _CHECKED.get(self.folder.absolute() / name)
        if stamp is None or stamp[0] != state:
            stamp = self._stamped(name)
        return (None, None) if stamp is None or stamp[0] != state else (stamp[1], stamp[2])

    def _stamped(self, name: str) -> _Stamp | None:
        path = self._stamp_path(name)
        try:
            state, sha256, content = [] if path.is_symlink() else load_json(path)
        except (OSError, ValueError, TypeError):
            return None
        return state, sha256, content

    def _stamp(self, name: str, state: Sequence[int], checked: Mapping[str, Any]) -> None:
        """Note that a file in a state has the checksums of ``checked``, in this process and in the folder.

        Links are not followed. A file that changed while it was read gets no stamp.
        """
        path = self.folder / name
        if _file_state(path) != state:
            return
        stamp = (list(state), checked["sha256"], checked.get("content"))
        _CHECKED[path.absolute()] = stamp
        try:
            replace_text(self._stamp_path(name), json.dumps(stamp))
        except OSError:
            return  # a read-only folder: the check simply runs again in the next process


_Stamp = tuple[list[int], str | None, str | None]  # state of a file, its checksum, its content hash
_CHECKED: dict[Path, _Stamp] = {}  # file -> stamp, of this process
_FACTS: Mapping[str, type] = {"bytes": int, "sha256": str, "count": int, "split": str, "content": str}


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    for key, kind in _FACTS.items():
        if not isinstance(facts[key], kind):
            raise TypeError(f"{key} of {name} is {facts[key]!r}")


def _file_state(path: Path) -> list[int]:
    """Return what changes with a file: no program can put its time of change (``ctime``) back."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
