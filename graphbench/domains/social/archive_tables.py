"""The tables of an archive on disk, in parts by user: built once, in bounded memory, and continued after interruptions.

The folder ``graphbench-prepared`` next to the archive's files holds, for posts and for interactions of each kind,
64 files of rows; user ``u`` is in part ``u % 64``. A journal records how much of the archive is done; rows
beyond the recorded ones are cut off before the work continues. The tables hold no texts and no names of users.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import damage_named
from graphbench.core.files import clear_errors, file_lock, load_json, open_no_link, refuse_foreign_links, write_json
from graphbench.core.progress import progress_bar
from graphbench.domains.social.archive_files import Block, graphs_file, merged, posts_file, read_blocks
from graphbench.domains.social.archive_rows import parse_interactions, parse_posts
from graphbench.domains.social.tables import KINDS, Interactions, Posts

_LOG = logging.getLogger(__name__)
PREPARED = "graphbench-prepared"
PARTS = 64
_POSTS = ("posts", "posts_and_shares")
_ROWS_PER_COMMIT = 1_000_000
_VERSION = 1
ELSEWHERE = "copy the archive to a folder that can be written, or make room"


@dataclass
class Journal:
    """The progress of reading a tarball into a table.

    Attributes:
        archive: Name, bytes and time of change of the tarball, and the version of the table's format.
        members: Number of files that are read.
        rows: Number of rows.
        malformed: Number of malformed lines.
        shared: Number of lines that record reposts of other users' posts.
        sizes: Bytes of every part.
        done: Whether the tarball is read to its end.
    """

    archive: list[str | int]
    members: int = 0
    rows: int = 0
    malformed: int = 0
    shared: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * PARTS)
    done: bool = False


def prepare_posts(folder: Path, progress: bool | None = None, *, shared: bool = False) -> Journal:
    """Read the posts of an archive into their table, unless it exists; return the journal.

    Args:
        folder: The folder of the archive.
        progress: Show a progress bar; None for terminals only.
        shared: Whether reposts of other users' posts are rows, too; this is a separate table.

    Raises:
        StoreError: If a file is missing, damaged or unsafe, or the table cannot be written.
    """

    def parse(block: Block) -> tuple[NDArray[np.int32], int, int]:
        parsed = parse_posts(block.content, shared=shared)
        return parsed.rows, parsed.malformed, parsed.shared

    return _prepare(folder, posts_file(folder), _POSTS[shared], ("json", "jsonl", "ndjson"), parse, progress)


def prepare_interactions(folder: Path, kind: str, progress: bool | None = None) -> Journal:
    """Read the interactions of one kind into their table, unless it exists; return the journal.

    Raises:
        StoreError: As for :func:`prepare_posts`.
    """

    def parse(block: Block) -> tuple[NDArray[np.int32], int, int]:
        return (*parse_interactions(block.content), 0)

    return _prepare(folder, graphs_file(folder, kind), kind, (f"{kind}.csv",), parse, progress)


def posts_by_part(folder: Path, *, shared: bool = False) -> Iterator[Posts]:
    """Yield the posts of a prepared archive, 64 parts by user; ``shared`` as for :func:`prepare_posts`."""
    for path in _part_paths(folder, _POSTS[shared]):
        user, time, likes, replies, reposts = _rows(path, 5)
        yield Posts(user, time, likes, replies, reposts)


def interactions_by_part(folder: Path, kind: str) -> Iterator[Interactions]:
    """Yield the interactions of a prepared archive, 64 parts by source."""
    for path in _part_paths(folder, kind):
        source, target, time = _rows(path, 3)
        yield Interactions(source, target, time)


def _rows(path: Path, columns: int) -> NDArray[np.int32]:
    """Return the columns of a part, int32 ``[columns, rows]``."""
    with damage_named(path, remedy=f"delete the folder {path.parent} and it will be made again"):
        return np.fromfile(path, np.int32).reshape(-1, columns).T


def _part_paths(folder: Path, table: str) -> list[Path]:
    return [folder / PREPARED / f"{table}-{part:02}.rows" for part in range(PARTS)]


def identity_of(archive: Path) -> list[str | int]:
    """Return name, bytes and time of change of a tarball, and the version of the tables' format."""
    stat = archive.stat()
    return [archive.name, stat.st_size, stat.st_mtime_ns, _VERSION]


@contextmanager
def only_here(folder: Path) -> Iterator[None]:
    """Create the folder of prepared tables and hold its lock, so that other processes wait."""
    refuse_foreign_links(folder / PREPARED)
    (folder / PREPARED).mkdir(exist_ok=True)
    with file_lock(folder / PREPARED / ".lock"):
        yield


def _prepare(
    folder: Path,
    archive: Path,
    table: str,
    endings: tuple[str, ...],
    parse: Callable[[Block], tuple[NDArray[np.int32], int, int]],
    progress: bool | None,
) -> Journal:
    journal_path, identity = folder / PREPARED / f"{table}.json", identity_of(archive)
    journal = _read_journal(journal_path, identity)
    if journal.done:
        return journal
    with clear_errors(journal_path.parent, "write", ELSEWHERE), ExitStack() as files:
        files.enter_context(only_here(folder))
        journal = _read_journal(journal_path, identity)  # another process may have finished it
        if journal.done:
            return journal
        paths = _part_paths(folder, table)
        for path, size in zip(paths, journal.sizes, strict=True):
            open_no_link(path, "ab").close()
            if path.stat().st_size < size:  # rows are lost: begin anew
                journal = Journal(identity)
        streams = [files.enter_context(open_no_link(path, "r+b")) for path in paths]
        for stream, size in zip(streams, journal.sizes, strict=True):
            stream.truncate(size)
            stream.seek(size)
        bar = files.enter_context(progress_bar(1, f"read {table} of {archive.name}", unit="rows", enabled=progress))
        committed = journal.rows
        blocks = read_blocks(archive, endings, journal.members)
        for block in merged(blocks) if table in _POSTS else blocks:
            rows, malformed, shared = parse(block)
            _append(streams, rows, journal)
            journal.rows, journal.malformed = journal.rows + len(rows), journal.malformed + malformed
            journal.shared += shared
            bar.update(0, rows=journal.rows)
            if block.last:
                journal.members = block.member + 1
                if journal.rows - committed >= _ROWS_PER_COMMIT:
                    committed = journal.rows
                    for stream in streams:
                        stream.flush()
                    write_json(journal_path, asdict(journal))
        for stream in streams:
            stream.flush()
        journal.done = True
        write_json(journal_path, asdict(journal))
    if journal.malformed:
        _LOG.warning(
            "%s: %s lines of %s are malformed and left out; %s rows are read",
            *(archive, f"{journal.malformed:,}", table, f"{journal.rows:,}"),
        )
    return journal


def _append(streams: Sequence[IO[bytes]], rows: NDArray[np.int32], journal: Journal) -> None:
    part = rows[:, 0] % PARTS
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(PARTS + 1))
    ordered = np.ascontiguousarray(rows[order])
    for number, stream in enumerate(streams):
        part_rows = ordered[bounds[number] : bounds[number + 1]]
        stream.write(part_rows.tobytes())
        journal.sizes[number] += part_rows.nbytes


def _read_journal(path: Path, identity: list[str | int]) -> Journal:
    """Return the journal of a table; a new journal if there is none for this archive."""
    try:
        journal = Journal(**load_json(path))
    except (OSError, TypeError, ValueError, json.JSONDecodeError):
        return Journal(identity)
    return journal if journal.archive == identity else Journal(identity)


def facts(folder: Path) -> dict[str, Journal]:
    """Return table -> journal of the prepared tables."""
    journals = {}
    for table in (*_POSTS, *KINDS):
        path = folder / PREPARED / f"{table}.json"
        if path.is_file():
            with damage_named(path, remedy=f"delete the folder {path.parent} and it will be made again"):
                journals[table] = Journal(**load_json(path))
    return journals
