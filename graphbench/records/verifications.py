"""The list of what was computed again for a folder of records: ``verifications.jsonl``.

It has a line for every sealed draw on which an entry was tried, with any outcome, and a line with the digest of every
record whose scores were computed here, from a submission's weights or predictions. A record that says it was verified
or recomputed counts as such only if its digest is in the list: anybody can write a record, with a fitting digest.
"""

from __future__ import annotations

import json
from pathlib import Path

from graphbench.core.errors import ResultError

FILE = "verifications.jsonl"
_ATTEMPT, _WRITTEN = {"commitment", "beacon"}, {"record"}  # the keys of the two kinds of lines


def begin_attempt(records: Path, commitment: str, beacon: str) -> None:
    """Write down, before anything is computed, that an entry is tried on the draw of a beacon.

    Args:
        records: Folder of records.
        commitment: Commitment of the entry.
        beacon: The public text.

    Raises:
        ResultError: If an attempt with another beacon is in the list, or the list is damaged or cannot be written.
    """
    path = records / FILE
    beacons = {line["beacon"] for line in _lines(path) if line.get("commitment") == commitment}
    for tried in beacons - {beacon}:
        raise ResultError(
            f"a verification of this entry with the beacon {tried!r:.80} was begun already; a commitment has one draw: "
            "give the same beacon to repeat the verification"
        )
    if beacon not in beacons:
        _append(path, {"commitment": commitment, "beacon": beacon})


def confirm(records: Path, digest: str) -> None:
    """Write down that the scores of a record were computed here.

    Args:
        records: Folder of records.
        digest: Digest of the record's file.

    Raises:
        ResultError: If the list is damaged or cannot be written.
    """
    path = records / FILE
    line = {"record": digest}
    if line not in _lines(path):
        _append(path, line)


def confirmed_in(file: Path, digest: str) -> Path | None:
    """Return the folder whose list has the digest of a record: one of those that the record's file lies in, or None.

    Raises:
        ResultError: If a list is damaged.
    """
    for folder in file.resolve().parents:
        if {"record": digest} in _lines(folder / FILE):
            return folder
    return None


def _append(path: Path, line: dict[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise ResultError(f"{path} cannot be written ({error.strerror}); choose another folder") from error


def _lines(path: Path) -> list[dict[str, str]]:
    """Return the lines of a list."""
    if not path.is_file():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict) or {*line} not in (_ATTEMPT, _WRITTEN):
            raise ResultError(
                f"{path} is damaged (line {number}: {text!r:.80}); restore the list of verifications, or choose "
                "another folder of records"
            )
        lines.append(line)
    return lines
