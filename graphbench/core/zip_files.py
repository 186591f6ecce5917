"""Untrusted ZIP archives: the declared sizes and names are checked before any entry of an archive is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from graphbench.core.damage import FileFault
from graphbench.core.untrusted import shown
from graphbench.core.words import human_bytes

_ENCRYPTED = 1  # of the flags of an entry


def require_plain_entries(archive: ZipFile) -> list[ZipInfo]:
    """Return the entries of an archive, whose names are distinct and none of which is encrypted.

    Raises:
        FileFault: If an entry is encrypted, or two have the same name.
    """
    entries = archive.infolist()
    if locked := next((entry for entry in entries if entry.flag_bits & _ENCRYPTED), None):
        raise FileFault(f"is encrypted (its entry {_name(locked.filename)}); write it without a password")
    name, times = next(iter(Counter(entry.filename for entry in entries).most_common(1)), ("", 0))
    if times > 1:
        raise FileFault(f"is damaged: it has the entry {_name(name)} {times} times")
    return entries


def require_stored_entries(archive: ZipFile, path: Path) -> list[ZipInfo]:
    """Return the entries of an archive that is not compressed, so its content is as large as its file at most.

    Raises:
        FileFault: If an entry is encrypted or compressed, two have the same name, or together they are larger than the
            file, as entries are that share their bytes.
    """
    entries = require_plain_entries(archive)
    if packed := next((entry for entry in entries if entry.compress_type != ZIP_STORED), None):
        raise FileFault(f"has the compressed entry {_name(packed.filename)}; write it without compression")
    total = sum(entry.file_size for entry in entries)
    if total > path.stat().st_size:
        raise FileFault(f"is damaged: it says that it holds {human_bytes(total)}, which is more than the file has")
    return entries


def _name(text: str) -> str:
    return shown(repr(text), 80)
