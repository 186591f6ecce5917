"""The list of sealed draws on which entries were tried, whatever came of it: ``verifications.jsonl`` among records."""

from __future__ import annotations

import json
from pathlib import Path

from graphbench.core.errors import ResultError

FILE = "verifications.jsonl"


def note_attempt(records: Path, commitment: str, beacon: str) -> None:
    """Write down, before anything is computed, that an entry is tried on the draw of a beacon.

    Args:
        records: Folder of records.
        commitment: Commitment of the entry.
        beacon: The public text.

    Raises:
        ResultError: If the file cannot be written.
    """
    line = {"commitment": commitment, "beacon": beacon}
    if line in _attempts(records):
        return
    try:
        records.mkdir(parents=True, exist_ok=True)
        with (records / FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise ResultError(f"{records / FILE} cannot be written ({error.strerror}); choose another folder") from error


def other_beacon(records: Path, commitment: str, beacon: str) -> str | None:
    """Return another beacon with which a verification of the same entry was begun; None if there is none."""
    return next(
        (
            line["beacon"]
            for line in _attempts(records)
            if line["commitment"] == commitment and line["beacon"] != beacon
        ),
        None,
    )


def _attempts(records: Path) -> list[dict[str, str]]:
    path = records / FILE
    if not path.is_file():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [{"commitment": str(line["commitment"]), "beacon": str(line["beacon"])} for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultError(
            f"{path} is damaged ({error}); restore the list of verifications, or choose another folder of records"
        ) from error
