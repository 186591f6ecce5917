"""The journal of a tuning run: every event as one JSON line, appended and flushed to the disk before work goes on.

It is the only truth about a run. A process may be killed at any moment: what it leaves is the whole journal, but for at
most one torn last line, which the next process cuts off.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from graphbench.core.errors import TuningError
from graphbench.core.files import clear_errors

JOURNAL = "journal.jsonl"
_ELSEWHERE = "choose another output folder"

Event = dict[str, Any]


class EventKind(StrEnum):
    """What an event says has happened, and what it holds besides the time."""

    OPENED = "opened"  # a process began: settings
    ASKED = "asked"  # the search asked for a trial: the fields of Asked
    FINISHED = "finished"  # a trial ended: trial, checkpoint, has_model
    ALIVE = "alive"  # time went by
    RETRIED = "retried"  # failed trials wait to be run again: numbers
    RESTARTED = "restarted"  # the whole search began again, as no trial had succeeded
    REPLACED = "searched_anew"  # a new search goes on, which was only told the trials before
    OTHER_CODE = "other_code"  # the training method's code changed: after, before, now
    CLOSED = "closed"  # a process ended


class Journal:
    """The open journal of a run, held by one process at a time; see :func:`open_journal`.

    Attributes:
        past: The events of earlier processes, in their order.
    """

    def __init__(self, path: Path, file: BinaryIO, past: Sequence[Event]) -> None:
        self.past = past
        self._own: list[Event] = []
        self._path, self._file = path, file
        self._opened = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since this process opened the journal."""
        return time.monotonic() - self._opened

    @property
    def seconds(self) -> float:
        """Seconds that the run took so far, in this and all earlier processes."""
        return seconds_of(self.past) + self.elapsed

    @property
    def begun(self) -> str | None:
        """When the run was first opened, ISO 8601, UTC; None before."""
        return next((event["time"] for event in self.of_kind(EventKind.OPENED)), None)

    def of_kind(self, kind: str) -> list[Event]:
        """Return all events of a kind, those of this process included."""
        return [event for event in (*self.past, *self._own) if event["event"] == kind]

    def append(self, kind: str, **content: Any) -> None:
        """Write one event; when this returns it is on the disk.

        Args:
            kind: What happened; stored as ``event``.
            content: Anything JSON can hold. The moment (``time``, UTC) and the seconds since the journal was opened
                (``elapsed``) are added.

        Raises:
            StoreError: If the journal cannot be written.
        """
        event = {"event": str(kind), "time": utc_now(), "elapsed": round(self.elapsed, 3), **content}
        with clear_errors(self._path, "write", _ELSEWHERE):
            self._file.write((json.dumps(event, allow_nan=False) + "\n").encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self._own.append(event)


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """Open the journal of a run for this process alone; the folder is made where it is missing.

    Args:
        folder: The output folder of the run.

    Yields:
        The journal, with the events of earlier processes. A torn last line is gone.

    Raises:
        TuningError: If another process has it open, or a line other than the last is damaged.
        StoreError: If the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    path = folder / JOURNAL
    lock = FileLock(folder / f".{JOURNAL}.lock", timeout=0)
    with clear_errors(folder, "write", _ELSEWHERE):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise TuningError(
                f"another process tunes in {folder}; wait for it, or choose another output folder"
            ) from error
    try:
        with clear_errors(path, "write", _ELSEWHERE):
            file = path.open("a+b")
        with file:
            whole = _cut_torn_line(file)
            yield Journal(path, file, parse_events(whole, path))
    finally:
        lock.release()


def read_journal(folder: Path) -> list[Event]:
    """Return the events of a run, which may be going on; a torn last line is left out.

    Raises:
        TuningError: If there is no journal, or it is damaged.
    """
    path = folder / JOURNAL
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TuningError(f"{folder} holds no tuning run (it has no {JOURNAL})") from None
    return parse_events(content[: content.rfind(b"\n") + 1], path)


def parse_events(content: bytes, path: Path) -> list[Event]:
    """Return the events in whole lines of JSON.

    Raises:
        TuningError: If a line is no event; the message names file and line.
    """
    events = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            event = json.loads(line)
            event["event"], event["elapsed"]
        except (ValueError, KeyError, TypeError) as error:
            raise TuningError(
                f"{path}:{number}: not an event of a tuning run ({error}); restore the file, or choose another output "
                "folder"
            ) from error
        events.append(event)
    return events


def seconds_of(events: Sequence[Mapping[str, Any]]) -> float:
    """Return how long a run took: the sum over its processes of the time from opening to the last event."""
    total = last = 0.0
    for event in events:
        if event["event"] == EventKind.OPENED:
            total, last = total + last, 0.0
        last = max(last, float(event["elapsed"]))
    return total + last


def utc_now() -> str:
    """Return the moment as ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cut_torn_line(file: BinaryIO) -> bytes:
    """Return the whole lines, after removing from the file what follows them."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        file.truncate(len(whole))
        os.fsync(file.fileno())
    return whole
