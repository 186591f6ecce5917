"""The manifest of a folder: the content of its files, their checksums and hashes, and the checked state of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.core.files import clear_errors, file_sha256, is_file, load_json, remove_strays, replace_text, write_json
from graphbench.data.store.files import FORMAT, _check_format

MANIFEST = "manifest.json"
_Stamp = tuple[list[int], str | None, str | None]  # state of a file, its checksum, its content hash
_CHECKED: dict[Path, _Stamp] = {}  # file -> stamp, of this process
_FACTS: Mapping[str, type] = {"bytes": int, "sha256": str, "count": int, "split": str, "content": str}


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
            file_format = content["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self.path} is damaged: it is no manifest with the files of the folder; restore this file, or delete "
                f"{self.folder} and it will be rebuilt, bit for bit"
            ) from error
        _check_format(self.path, file_format)
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
        facts: dict[str, Any] | None = self.read()["files"].get(name)
        return facts if facts is not None and is_file(self.folder / name) else None

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

    def _require(self, path: Path, kind: str, actual: str, recorded: str) -> None:
        if actual != recorded:
            raise ChecksumMismatch(
                f"{path} was changed or damaged: {kind} {actual[:12]}... instead of {recorded[:12]}... as {self.path} "
                "says; delete this file and it will be rebuilt, bit for bit"
            )

    def _stamp_path(self, name: str) -> Path:
        return self.folder / f".{name}.checked"

    def _checked(self, name: str, state: Sequence[int]) -> tuple[str | None, str | None]:
        """Return the checksum and the content hash that a file in a state was compared with; None if there is none."""
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


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    for key, kind in _FACTS.items():
        if not isinstance(facts[key], kind):
            raise TypeError(f"{key} of {name} is {facts[key]!r}")


def _file_state(path: Path) -> list[int]:
    """Return the facts that change with a file: no program can reset the file's time of change (``ctime``)."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
