"""Chunk files of zarr stores: their first bytes are checked before a library unpacks them.

A chunk is unpacked whole, into as much memory as its file states, and Blosc reads beyond the end of a file that is
shorter than its first bytes state, which ends the process. The first bytes are therefore compared with the size of the
file and with the shape of the array's chunks.
"""

from __future__ import annotations

import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from graphbench.core.damage import fault_of
from graphbench.core.errors import StoreError
from graphbench.core.packed import MOST_XZ_MEMORY, PACKED_ERRORS
from graphbench.core.untrusted import open_regular
from graphbench.domains.weather.places import Place, head_of

_HEAD = 18  # number of first bytes of a file, which tell the size of its content
_SPARE = 3  # a chunk may unpack to this many times its size in the array if filters change its values
_PIECE = 1 << 20
_BLOSC_VERSIONS = (1, 2)
_BLOSC_HEAD = 16
_ZSTD_START = b"\x28\xb5\x2f\xfd"


def bytes_of_chunk(array: Any) -> int:
    """Return the bytes of a chunk of an array of zarr."""
    return math.prod(array.chunks) * int(array.dtype.itemsize)


def chunk_places(array: Any) -> list[range]:
    """Return the chunk indices of an array along every axis."""
    return [range(-(-n // c)) for n, c in zip(array.shape, array.chunks, strict=True)]


def require_chunks(path: Place, name: str, array: Any, places: Sequence[range], since: str = "") -> None:
    """Refuse files of chunks that are cut off, or that claim to unpack to more than a chunk.

    Args:
        path: The store.
        name: The array's name.
        array: The array of zarr.
        places: The chunks that are read, by axis.
        since: The first time that is read, for messages.

    Raises:
        StoreError: If a file is damaged; the message names the file.
    """
    codecs = names_of_codecs(array)
    check = next((_HEADS[codec] for codec in codecs if codec in _HEADS), None)
    stream = next((_STREAMS[codec] for codec in codecs if codec in _STREAMS), None)
    most = _SPARE * bytes_of_chunk(array) + _PIECE
    if check is None and stream is None:
        return
    for chunk in product(*places):
        file = f"{name}/{array.metadata.encode_chunk_key(chunk)}"
        fault = None
        if check is not None:
            head = head_of(path, file, _HEAD)
            fault = None if head is None else check(*head, most)
        elif stream is not None and isinstance(path, Path) and (chunk_path := path / file).is_file():
            fault = _fault_of_stream(chunk_path, stream(), most)
        if fault is not None:
            raise StoreError(
                f"cannot read {name} of {path}{since}: the file {file} {fault}, so a chunk is damaged; copy the store "
                "again"
            )


def names_of_codecs(array: Any) -> list[str]:
    """Return the names of an array's codecs, for example ``blosc`` in format 2 or ``BloscCodec`` in format 3."""
    codecs = [getattr(array.metadata, "compressor", None), *(getattr(array.metadata, "codecs", None) or ())]
    return [str(getattr(codec, "codec_id", type(codec).__name__)) for codec in codecs if codec is not None]


def _fault_of_blosc(head: bytes, size: int, most: int) -> str | None:
    if len(head) < _BLOSC_HEAD:
        return "is cut off"
    unpacked, block, packed = (int.from_bytes(head[i : i + 4], "little") for i in (4, 8, 12))
    if packed > size:
        return "is cut off"
    plain = head[0] in _BLOSC_VERSIONS and packed >= _BLOSC_HEAD and head[3]  # version, whole size, bytes of a number
    if not plain or (unpacked and not 0 < block <= unpacked):
        return "begins as no file of Blosc does"
    return f"unpacks to {unpacked:,} bytes" if unpacked > most else None


def _fault_of_lz4(head: bytes, size: int, most: int) -> str | None:
    unpacked = int.from_bytes(head[:4], "little")
    return "is cut off" if size < 4 else f"unpacks to {unpacked:,} bytes" if unpacked > most else None


def _fault_of_zstd(head: bytes, size: int, most: int) -> str | None:
    """Return the fault of a frame of RFC 8878, if its header tells the size of its content."""
    if not head.startswith(_ZSTD_START) or len(head) < 6:
        return "is no frame of Zstandard, or is cut off"
    single, kind = head[4] >> 5 & 1, head[4] >> 6
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[head[4] & 3]
    width = (single, 2, 4, 8)[kind]
    unpacked = int.from_bytes(head[at : at + width], "little") + (256 if kind == 1 else 0)
    return f"unpacks to {unpacked:,} bytes" if unpacked > most else None


def _fault_of_stream(file: Path, decoder: Any, most: int) -> str | None:
    """Return the fault of a file that tells its unpacked size only while it is unpacked, piece by piece."""
    left = most
    try:
        with open_regular(file) as stream:
            while left >= 0 and not decoder.eof and (packed := stream.read(_PIECE)):
                while left >= 0 and not decoder.eof:
                    left -= len(decoder.decompress(packed, _PIECE))
                    # zlib returns the input that it has not read yet; the other decoders keep it
                    packed = getattr(decoder, "unconsumed_tail", b"")
                    if not packed and getattr(decoder, "needs_input", True):
                        break
    except PACKED_ERRORS as error:
        return fault_of(error)
    if left < 0:
        return f"unpacks to more than {most:,} bytes"
    return None if decoder.eof else "is cut off"


_HEADS: Mapping[str, Callable[[bytes, int, int], str | None]] = {
    **dict.fromkeys(("blosc", "BloscCodec"), _fault_of_blosc),
    "lz4": _fault_of_lz4,
    **dict.fromkeys(("zstd", "ZstdCodec"), _fault_of_zstd),
}
_STREAMS: Mapping[str, Callable[[], Any]] = {
    **dict.fromkeys(
        ("zlib", "gzip", "GzipCodec"), lambda: zlib.decompressobj(wbits=47)
    ),  # accepts both zlib and gzip headers
    "bz2": bz2.BZ2Decompressor,
    "lzma": lambda: lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY),
}
