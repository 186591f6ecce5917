"""The files of the archive of Bluesky, read as streams: members of tarballs in blocks of whole lines.

Failla and Rossetti, "I'm in the Bluesky Tonight", PLOS ONE, 2024; https://zenodo.org/records/14669616. The archive has
``user_posts.tar.gz`` with files of posts, one JSON object per line, and ``graphs.tar.gz`` with ``quotes.csv``,
``replies.csv`` and ``reposts.csv``: source, target, day or minute.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from graphbench.core.damage import fault_of
from graphbench.core.errors import StoreError
from graphbench.core.packed import open_packed
from graphbench.core.untrusted import NoRegularFile, open_regular
from graphbench.core.words import human_bytes
from graphbench.data.sources.downloads import BoundedTarInfo, path_problem

POSTS = ("user_posts.tar.gz", "posts.tar.gz")
GRAPHS = "graphs.tar.gz"
_BLOCK = 1 << 24
_MERGED = 1 << 22
_BUFFER = 1 << 16
_GROWTH, _MIN_UNPACKED_BYTES = (
    50,
    1 << 28,
)  # limit of unpacked bytes: this many times the archive's size, and at least this many
_MAX_FILES = 20_000_000


@dataclass(frozen=True)
class Block:
    """Some lines of a file of a tarball.

    Attributes:
        member: Number of the file among the files of the tarball, from 0 on.
        name: Path of the file in the tarball.
        content: Whole lines.
        last: Whether the block is the last one of the file.
    """

    member: int
    name: str
    content: bytes
    last: bool


def posts_file(folder: Path) -> Path:
    """Return the tarball of posts of an archive.

    Raises:
        StoreError: If the folder does not exist, or lacks the file.
    """
    return _find(folder, POSTS)


def graphs_file(folder: Path, kind: str) -> Path:
    """Return the tarball of interactions of an archive, or the unpacked file of one kind of interactions.

    Raises:
        StoreError: If the folder does not exist, or lacks the file.
    """
    return _find(folder, (GRAPHS, f"graphs/{kind}.csv", f"{kind}.csv"))


def _find(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    fault = "is not a folder" if not folder.is_dir() else f"has no file {' or '.join(names)}"
    raise StoreError(
        f"{folder} {fault}; give the folder with {POSTS[0]} and {GRAPHS} of https://zenodo.org/records/14669616"
    )


def read_blocks(path: Path, endings: tuple[str, ...], first: int = 0) -> Iterator[Block]:
    """Yield the lines of the files of a tarball in the tarball's order, in blocks of about 16 MB.

    Args:
        path: The tarball, or a single file ``.csv``.
        endings: File name endings; other files are left out.
        first: Number of the first file to read.

    Raises:
        StoreError: If the tarball is truncated or damaged, names a path outside of it or a link, or holds more bytes or
            files than an archive of its size can.
    """
    try:
        if path.suffix == ".csv":
            with open_regular(path) as stream:
                yield from _lines(path, path.name, 0, stream)
            return
        with open_packed(path) as stream:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedTarInfo, bufsize=_BUFFER) as archive:
                yield from _blocks(path, archive, endings, first)
            while stream.read(_BLOCK):  # reads the bytes after the last file, so that the checksum is compared
                continue
    except NoRegularFile as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise StoreError(f"{path} is truncated or damaged ({fault_of(error)}); fetch it again") from error
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be read ({error}); fetch it again, or make it readable") from error


def merged(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks of at least 4 MB; lines of several small files are merged into a block named after the last file."""
    parts: list[bytes] = []
    size, last = 0, None
    for block in blocks:
        last = block
        parts += [block.content] if block.content else []
        size += len(block.content)
        if size >= _MERGED:
            yield replace(block, content=b"\n".join(parts))
            parts, size = [], 0
    if last is not None:
        yield replace(last, content=b"\n".join(parts))


def _blocks(path: Path, archive: tarfile.TarFile, endings: tuple[str, ...], first: int) -> Iterator[Block]:
    most, total, number = max(_MIN_UNPACKED_BYTES, _GROWTH * path.stat().st_size), 0, -1
    for count, info in enumerate(archive):
        total += info.size + tarfile.BLOCKSIZE
        archive.members = []  # type: ignore[attr-defined] # otherwise the list would keep every entry
        problem = path_problem(info.name)
        if not (info.isreg() or info.isdir()):
            problem = "is a link or a special file"
        elif count >= _MAX_FILES:
            problem = f"is beyond the {_MAX_FILES:,} files allowed"
        elif total > most:
            problem = f"takes the archive beyond the {human_bytes(most)} that it may have unpacked"
        if problem:
            raise StoreError(f"the archive {path} is unsafe: {info.name!r} {problem}; it is not used")
        if not info.isreg() or not info.name.endswith(endings) or info.name.rpartition("/")[2].startswith("."):
            continue
        number += 1
        if number < first:
            continue
        stream = archive.extractfile(info)
        assert stream is not None
        yield from _lines(path, info.name, number, stream)


def _lines(path: Path, name: str, number: int, stream: IO[bytes]) -> Iterator[Block]:
    rest, content = b"", stream.read(_BLOCK)
    while following := stream.read(_BLOCK):
        whole, newline, tail = (rest + content).rpartition(b"\n")
        if len(tail) > _BLOCK:
            raise StoreError(f"{name} in {path} has a line of more than {human_bytes(_BLOCK)}; it is no file of posts")
        if newline:
            yield Block(number, name, whole, False)
        rest, content = tail, following
    yield Block(number, name, rest + content, True)
