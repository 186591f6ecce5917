"""Declared sizes of files of arrays, read from their headers alone: sizes are checked before anything is loaded."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from graphbench.core.damage import damage_named
from graphbench.core.errors import EvaluationError
from graphbench.core.untrusted import open_regular

MOST_ARRAYS = 256
_ARRAY_END = ".npy"
_ARCHIVE_START = b"PK\x03\x04"
_END = struct.Struct("<4s4H2IH")  # the last record: disks, entries, size and offset of the list of entries, comment
_LARGE_END = struct.Struct("<4sQ2H2L4Q")  # the same for large archives, followed by a record that says where it is
_END_START, _LARGE_START, _LOCATOR_SIZE = b"PK\x05\x06", b"PK\x06\x06", 20
_MAX_COMMENT, _MAX_DIRECTORY = 2**16, 2**20  # bytes
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def require_declared_sizes(path: Path, most_bytes: int) -> int:
    """Return the size of the arrays of a ``.npy`` or ``.npz`` file in bytes, after checking the declared sizes.

    Raises:
        EvaluationError: If the arrays together are larger than ``most_bytes``; one is larger or smaller than its header
            says, holds Python objects or records, or is encrypted; there are more than :data:`MOST_ARRAYS`, two of one
            name, or something else among them; or the file cannot be read.
    """
    with (
        damage_named(path, EvaluationError, "write it again with numpy.save or numpy.savez"),
        open_regular(path) as file,
    ):
        if file.read(len(_ARCHIVE_START)) == _ARCHIVE_START:  # numpy.load looks at these bytes alone
            return _bytes_of_archive(path, most_bytes)
        file.seek(0)
        return _bytes_of_array(file, path.stat().st_size, str(path), most_bytes)


def _require_small_directory(path: Path) -> None:
    """Refuse an archive that declares a long list of entries, which would be read whole.

    Raises:
        EvaluationError: If it has more than :data:`MOST_ARRAYS` entries, or their list is too long.
    """
    behind = _LARGE_END.size + _LOCATOR_SIZE  # size of the records that large archives have before the last one
    with open_regular(path) as file:
        file.seek(-min(path.stat().st_size, behind + _END.size + _MAX_COMMENT), 2)
        tail = file.read()
    position = len(tail) - _END.size
    if not (tail[position:].startswith(_END_START) and tail.endswith(b"\0\0")):  # there is a comment behind it
        position = tail.rfind(_END_START)
    if position < 0 or position + _END.size > len(tail):
        return  # the archive is damaged, as its reader will say
    *_, entries, size, _, _ = _END.unpack_from(tail, position)
    declared = [(entries, size)]
    if position >= behind and tail[position - behind :].startswith(_LARGE_START):  # its numbers count, if it is there
        *_, entries, size, _ = _LARGE_END.unpack_from(tail, position - behind)
        declared.append((entries, size))
    for entries, size in declared:
        if entries > MOST_ARRAYS or size > _MAX_DIRECTORY:
            raise EvaluationError(
                f"{path} has {entries:,} entries, listed in {size:,} bytes; at most {MOST_ARRAYS} arrays are read"
            )


def _bytes_of_archive(path: Path, most_bytes: int) -> int:
    _require_small_directory(path)
    with ZipFile(path) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(members) > MOST_ARRAYS:
            raise EvaluationError(f"{path} has {len(members):,} entries; at most {MOST_ARRAYS} arrays are read")
        for name in names:
            if not name.endswith(_ARRAY_END):
                raise EvaluationError(f"{path} has the entry {name!r}, which is no array; write it with numpy.savez")
            if names.count(name) > 1:
                raise EvaluationError(f"{path} has two entries {name!r}; write it with numpy.savez")
        total = sum(member.file_size for member in members)
        if total > most_bytes:
            raise _too_large(path, total, most_bytes)
        for member in members:
            if member.flag_bits & 1:
                raise EvaluationError(f"{path}: its entry {member.filename!r} is encrypted; write it without")
            with archive.open(member) as file:
                _bytes_of_array(file, member.file_size, f"{path}: {member.filename}", most_bytes)
        return total


def _bytes_of_array(file: IO[bytes], size: int, where: str, most_bytes: int) -> int:
    """Return the size that the header of an array declares; ``size`` is the size of the header and the values."""
    version = np.lib.format.read_magic(file)
    reader: Any = _READERS.get(version)
    if reader is None:
        raise EvaluationError(f"{where} has version {version} of the format of arrays; write it with numpy.save")
    shape, _, dtype = reader(file)
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        kind = "Python objects, which are never unpickled" if dtype.hasobject else "records"
        raise EvaluationError(f"{where} holds {kind}; write numbers with numpy.save")
    if any(length < 0 for length in shape):
        raise EvaluationError(f"{where} has the shape {list(shape)}; write it with numpy.save")
    declared: int = math.prod(shape) * int(dtype.itemsize)
    if declared > most_bytes:
        raise _too_large(where, declared, most_bytes)
    if file.tell() + declared != size:
        raise EvaluationError(
            f"{where} says that it holds {list(shape)} {dtype}, which are {declared:,} bytes, but has "
            f"{size - file.tell():,}; write it again with numpy.save"
        )
    return declared


def _too_large(where: object, size: int, most_bytes: int) -> EvaluationError:
    return EvaluationError(
        f"{where} holds {size:,} bytes of arrays, more than the {most_bytes:,} that are read; write float32 or "
        "float16, one row per item"
    )
