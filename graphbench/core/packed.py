"""Compressed files (``.gz``, ``.bz2``, ``.xz``), read as streams whose unpacked size and memory have limits.

A small file can unpack to terabytes, and a header of xz can ask for gigabytes of memory. The limit on the unpacked size
is a multiple of the size of the file, so the time that a file takes is bounded by its size.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from graphbench.core.damage import FileFault
from graphbench.core.untrusted import open_regular, require_regular
from graphbench.core.words import human_bytes

MOST_GROWTH = 1000
"""Largest ratio of the unpacked size of a text to its compressed size: gzip packs a repeated byte no tighter."""

LEAST_UNPACKED = 1 << 26
"""Bytes to which a compressed file of any size may unpack."""

MOST_XZ_MEMORY = 1 << 28
"""Bytes that the decoder of xz may use; files of ``xz -9`` take a quarter of them."""

PACKED_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, FileFault)
"""The errors that reading a compressed file raises if the file is damaged, absent or too large."""

_PIECE = 1 << 16


def open_packed(path: Path, *, growth: int = MOST_GROWTH) -> BinaryIO:
    """Return a file, decompressed by its ending where it has one of ``.gz``, ``.bz2`` and ``.xz``, as a stream.

    Args:
        path: The file.
        growth: Largest ratio of the unpacked size to the compressed size; :data:`LEAST_UNPACKED` bytes are always
            allowed.

    Raises:
        OSError: If the file cannot be opened. Reading the stream raises one of :data:`PACKED_ERRORS`.
    """
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        return open_regular(path)
    require_regular(path)
    most = max(LEAST_UNPACKED, growth * path.stat().st_size)
    return cast(BinaryIO, io.BufferedReader(_Limited(opener(path), most)))


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than a number of bytes."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._left, self._most = file, most, most

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes into a buffer, and return how many."""
        count = cast(Any, self._file).readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise FileFault(
                f"unpacks to more than {human_bytes(self._most)}, which is too large for a file of its size"
            )
        return int(count)

    def close(self) -> None:
        """Close the file, too."""
        try:
            self._file.close()
        finally:
            super().close()


class _Xz(io.RawIOBase):
    """A file of xz, or of lzma, whose decoder has a limit of memory; several streams may follow each other."""

    def __init__(self, path: Path) -> None:
        self._file = open_regular(path)
        self._decoder, self._begun = self._fresh(), b""

    @staticmethod
    def _fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes into a buffer, and return how many."""
        wanted = memoryview(buffer).cast("B")
        while True:
            if self._decoder.eof and not self._next_stream():
                return 0
            given = b""
            if self._decoder.needs_input:
                given, self._begun = self._begun or self._file.read(_PIECE), b""
                if not given:
                    raise EOFError("the file ends before its content does")
            content = self._decoder.decompress(given, len(wanted))
            if content:
                wanted[: len(content)] = content
                return len(content)

    def _next_stream(self) -> bool:
        """Begin the stream that follows, after zeros of padding; return False at the end of the file."""
        rest = self._decoder.unused_data.lstrip(b"\0")
        while not rest:
            rest = self._file.read(_PIECE)
            if not rest:
                return False
            rest = rest.lstrip(b"\0")
        self._decoder, self._begun = self._fresh(), rest
        return True

    def close(self) -> None:
        """Close the file, too."""
        try:
            self._file.close()
        finally:
            super().close()


_OPENERS: Mapping[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": _Xz}
