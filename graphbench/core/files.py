"""Atomic writes, JSON files, folders without foreign links, and errors of the file system that name a remedy.

If everybody can write a folder of data, runs or searches, another user may have replaced a folder or file in it by a
symbolic link. Links that the user made are followed: a link that stands for the folder as a whole, or for a folder
inside it. Where this package writes or deletes, it refuses links that another user put into a folder that everybody
may write (:func:`refuse_foreign_links`), and all links that replace a file or folder which this package alone makes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from graphbench.core.damage import FileFault, limited_bytes
from graphbench.core.errors import GraphBenchError, StoreError
from graphbench.core.untrusted import open_regular

if TYPE_CHECKING:
    from filelock import BaseFileLock

MOST_JSON_BYTES = 1 << 26
"""Bytes of a file of JSON: manifests and records have some thousand; lists take twenty times as much memory."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_ELSEWHERE = "choose another --root or set GRAPHBENCH_ROOT"


@contextmanager
def clear_errors(
    path: Path, action: str, elsewhere: str = _ELSEWHERE, error: type[GraphBenchError] = StoreError
) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an error that names a remedy.

    Args:
        path: The file or folder that the block reads or writes.
        action: The verb for the message, e.g. ``write``.
        elsewhere: How to choose another folder, as the end of the message.
        error: Class of the error that is raised.
    """
    try:
        yield
    except GraphBenchError:
        raise
    except OSError as problem:
        raise error(_os_error_text(path, action, problem, elsewhere)) from problem


def _os_error_text(path: Path, action: str, error: OSError, elsewhere: str) -> str:
    code = error.errno
    if code is None:  # h5py hides the number in the message
        code = next((c for c in (*_FULL, *_READ_ONLY) if f"errno = {c}," in str(error)), None)
    what = f"cannot {action} {path}"
    if code in _FULL:
        free = shutil.disk_usage(existing_parent(path)).free
        return f"{what}: the disk is full ({free / 1e6:.0f} MB free); free space, or {elsewhere}"
    if code in _READ_ONLY:
        access = "read-only for" if action in ("write", "create") else "not readable by"
        return f"{what}: the folder is {access} this user; {elsewhere}"
    if code in (errno.ENOTDIR, errno.EEXIST):
        file = next((part for part in (path, *path.parents) if part.exists() and not part.is_dir()), error)
        return f"{what}: a file lies where a folder should be ({file}); move it away, or {elsewhere}"
    return f"{what}: {error}" + ("" if elsewhere == _ELSEWHERE else f"; {elsewhere}")


def existing_parent(path: Path) -> Path:
    """Return the nearest folder above ``path`` that exists."""
    for folder in (path, *path.parents):
        if folder.exists():
            return folder
    return Path("/")


def default_mode() -> int:
    """Return the permissions that new files get by the process's umask, e.g. ``0o644``."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success flush it to disk and rename it to ``path``, on failure remove it."""
    with clear_errors(path, "write"):
        refuse_foreign_links(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_beside(path)
    try:
        with clear_errors(path, "write"):
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _temporary_beside(path: Path) -> Path:
    """Return a new name that nobody can guess, and that :func:`remove_strays` finds."""
    return path.with_name(f".{path.name.lstrip('.')}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def replace_text(path: Path, text: str) -> None:
    """Replace a small file by a text, without flushing it to the disk; if the file is a link, the link is replaced.

    Raises:
        OSError: If it cannot be written.
    """
    temporary = _temporary_beside(path)
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def refuse_foreign_links(path: Path) -> None:
    """Refuse a path that leads through a symbolic link which another user put into a folder that everybody may write.

    Args:
        path: A file or folder, which need not exist.

    Raises:
        StoreError: If there is such a link; the message names it.
    """
    waiting, passed = [path.absolute()], set[Path]()
    while waiting:
        whole = waiting.pop()
        for part in (*reversed(whole.parents), whole):
            if part in passed or not part.is_symlink():
                continue
            passed.add(part)
            if _is_foreign(part):
                raise _link_error(part, "another user put it into a folder that everybody may write")
            waiting.append(part.parent / part.readlink())


def _is_foreign(link: Path) -> bool:
    folder = link.parent.stat()
    return bool(folder.st_mode & stat.S_IWOTH) and link.lstat().st_uid not in (os.geteuid(), 0, folder.st_uid)


def _link_error(link: Path, reason: str) -> StoreError:
    target = link.readlink()
    return StoreError(
        f"{link} is a symbolic link to {target}, which is not followed: {reason}; remove the link, or {_ELSEWHERE}"
    )


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link that replaces a file or folder which this package alone makes.

    Raises:
        StoreError: If the path is a link, or :func:`refuse_foreign_links` refuses it.
    """
    refuse_foreign_links(path.parent)
    if path.is_symlink():
        raise _link_error(path, "graphbench makes no links there")


def make_work_folder(path: Path) -> None:
    """Make a folder that this package alone uses, if it does not exist.

    Raises:
        OSError: If it cannot be made.
        StoreError: As :func:`refuse_link`.
    """
    refuse_link(path)
    path.mkdir(parents=True, exist_ok=True)


def remove_work_folder(path: Path) -> None:
    """Remove a folder that this package alone uses, as far as possible; a link is left alone, and so is its target."""
    with suppress(StoreError, OSError):
        refuse_link(path)
        shutil.rmtree(path, ignore_errors=True)


def open_no_link(path: Path, mode: str) -> BinaryIO:
    """Open a file of bytes for writing or appending; a link that replaces the file is not followed.

    Raises:
        OSError: If it cannot be opened.
        StoreError: As :func:`refuse_link`.
    """
    refuse_link(path)
    file = cast("BinaryIO", open(path, mode, opener=_open_without_links))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise StoreError(f"{path} is a pipe, a socket or a device; remove it")
    return file


def _open_without_links(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | getattr(os, "O_NONBLOCK", 0), 0o666)


def file_lock(path: Path, timeout: float = -1) -> BaseFileLock:
    """Return the lock of a file, which is not acquired yet.

    Args:
        path: The file; it is created when the lock is acquired.
        timeout: Seconds to wait for another process; negative for any time.

    Raises:
        StoreError: As :func:`refuse_link`.
    """
    from filelock import FileLock

    refuse_link(path)
    return FileLock(path, timeout=timeout)


def remove_strays(folder: Path, name: str) -> None:
    """Remove incomplete files of :func:`atomic_path`; ``name`` may be a glob, and the caller must hold its lock."""
    for leftover in folder.glob(f".{name}.*.tmp"):
        leftover.unlink(missing_ok=True)


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists, even if another machine has just created it."""
    with suppress(OSError):
        list(path.parent.iterdir())  # lets a network file system read the folder again
    return path.exists()


def await_files(paths: Sequence[Path], seconds: float) -> list[Path]:
    """Wait until files or folders that other machines wrote are visible; return the ones still missing."""
    deadline = time.monotonic() + seconds
    missing = [path for path in paths if not path.exists()]
    while missing and time.monotonic() < deadline:
        if not is_there(missing[0]):
            time.sleep(seconds / 100)
        missing = [path for path in missing if not path.exists()]
    return missing


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_file(path: Path) -> bool:
    """Return whether a file is there.

    Raises:
        StoreError: If a folder above it may not be entered, or a file cannot have the name.
    """
    with clear_errors(path, "look for"):
        return path.is_file()


def load_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not UTF-8, is not JSON, or is nested too deeply.
    """
    text = json_text(path)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its lists and objects are nested too deeply") from None


def json_text(path: Path) -> str:
    """Return the text of a file of JSON.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not UTF-8, or is larger than :data:`MOST_JSON_BYTES`.
    """
    return limited_bytes(path, MOST_JSON_BYTES).decode("utf-8")


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 atomically, with the line ends that it has."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def write_json(path: Path, value: Any, *, sort_keys: bool = True, indent: int = 2) -> None:
    """Write JSON atomically; NaN and infinity, which JSON does not have, are refused with a ``ValueError``.

    Args:
        path: The file.
        value: A value that JSON can represent.
        sort_keys: Write the keys of mappings in alphabetical order, so that equal values give equal bytes; False keeps
            the order of the mapping.
        indent: Spaces per level.
    """
    write_text(path, json.dumps(value, indent=indent, sort_keys=sort_keys, allow_nan=False) + "\n")


def read_json(path: Path, error: type[GraphBenchError] = StoreError, remedy: str = "restore or remove it") -> Any:
    """Return the content of a JSON file.

    Args:
        path: The file.
        error: Class of the error that is raised.
        remedy: The advice at the end of the message, for a file that cannot be read.

    Raises:
        GraphBenchError: Of the given class, if the file is missing, cannot be read or is not JSON; the message names
            the file, its fault and the remedy.
    """
    try:
        text = json_text(path)
    except FileNotFoundError:
        raise error(f"{path} does not exist; {remedy}") from None
    except FileFault as problem:
        raise error(f"{path} {problem}; {remedy}") from problem
    except (OSError, ValueError) as problem:
        raise error(f"cannot read {path}: {problem}; {remedy}") from problem
    return parse_json(text, f"cannot read {path}: it", error, remedy)


def parse_json(text: str | bytes, where: str, error: type[GraphBenchError] = StoreError, remedy: str = "") -> Any:
    """Return the value that JSON text holds.

    Args:
        text: The text; bytes are UTF-8.
        where: Where the text comes from, for the message.
        error: Class of the error that is raised.
        remedy: The advice at the end of the message, for text that is not JSON.

    Raises:
        GraphBenchError: Of the given class, if the text is not JSON or is nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        fault = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise error(f"{where} is not valid JSON: {fault}{f'; {remedy}' if remedy else ''}") from problem


_SPARE_BYTES = 64_000_000  # left free on the disk beyond what a build needs


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


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
