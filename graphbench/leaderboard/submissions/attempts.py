"""The list of sealed draws on which entries were tried, with any outcome: ``verifications.jsonl`` among records."""

from __future__ import annotations

import json
from pathlib import Path

from graphbench.core.errors import ResultError

FILE = "verifications.jsonl"


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
    beacons = {before for entry, before in _attempts(path) if entry == commitment}
    for tried in beacons - {beacon}:
        raise ResultError(
            f"a verification of this entry with the beacon {tried!r:.80} was begun already; a commitment has one draw: "
            "give the same beacon to repeat the verification"
        )
    if beacon in beacons:
        return
    try:
        records.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"commitment": commitment, "beacon": beacon}) + "\n")
    except OSError as error:
        raise ResultError(f"{path} cannot be written ({error.strerror}); choose another folder") from error


def _attempts(path: Path) -> list[tuple[str, str]]:
    """Return (commitment, beacon) of every attempt."""
    if not path.is_file():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [(str(line["commitment"]), str(line["beacon"])) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultError(
            f"{path} is damaged ({error}); restore the list of verifications, or choose another folder of records"
        ) from error
