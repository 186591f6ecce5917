"""Files that appear whole or not at all, and clear words for what the disk refuses."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphbench.core.errors import StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def clear_errors(path: Path, action: str) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a :class:`StoreError` that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(_remedy(path, action, error)) from error


def _remedy(path: Path, action: str, error: OSError) -> str:
    code = error.errno
    if code is None:  # h5py hides the number in the message
        code = next((c for c in (*_FULL, *_READ_ONLY) if f"errno = {c}," in str(error)), None)
    what = f"cannot {action} {path}"
    if code in _FULL:
        free = shutil.disk_usage(existing_parent(path)).free
        return f"{what}: the disk is full ({free / 1e6:.0f} MB free); free space or choose another --root"
    if code in _READ_ONLY:
        return f"{what}: the folder is read-only for this user; choose another --root or set GRAPHBENCH_ROOT"
    if code in (errno.ENOTDIR, errno.EEXIST):
        return f"{what}: a file lies where a folder should be ({error}); move it away or choose another --root"
    return f"{what}: {error}"


def existing_parent(path: Path) -> Path:
    """Return the nearest folder above ``path`` that exists."""
    for folder in (path, *path.parents):
        if folder.exists():
            return folder
    return Path("/")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success flush it to disk and rename it to ``path``, on failure remove it."""
    with clear_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with clear_errors(path, "write"):
            yield aside
            _flush(aside)
            aside.replace(path)
            _flush(path.parent)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def remove_strays(folder: Path, name: str) -> None:
    """Remove what killed processes left half-written; only for whoever holds the lock of these files.

    Args:
        folder: Where to look.
        name: Name of the finished file, as given to :func:`atomic_path`; may be a glob.
    """
    for stray in folder.glob(f".{name}.*.tmp"):
        stray.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    with atomic_path(path) as aside:
        aside.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
