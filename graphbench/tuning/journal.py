"""The journal of a tuning run: every event as one JSON line, appended and flushed to the disk before work continues.

It is the only source of truth on a run. A process may be killed at any moment: it leaves the whole journal and at
most one torn last line, which the next process removes. To continue the run, the journal is replayed: a new search
proposes the same trials, gets the same results, and is then in the state of the old one.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from graphbench.core.errors import TuningError
from graphbench.core.files import clear_errors, file_lock, is_there, open_no_link, parse_json
from graphbench.tuning.search import Search
from graphbench.tuning.trial import Trial
from graphbench.tuning.trials import Asked

logger = logging.getLogger(__name__)

JOURNAL = "journal.jsonl"
_ELSEWHERE = "choose another output folder"

Event = dict[str, Any]


class EventKind(StrEnum):
    """The kinds of events; a comment says when an event is written, and which values it holds besides the time."""

    OPENED = "opened"  # a process began: settings
    ASKED = "asked"  # the search proposed a trial: the fields of Asked
    FINISHED = "finished"  # a trial ended: trial, checkpoint, has_model
    ALIVE = "alive"  # written while trials run, so that a killed run loses little of its time
    RETRIED = "retried"  # failed trials are run again: numbers
    RESTARTED = "restarted"  # the search began again, as no trial had succeeded
    REPLACED = "searched_anew"  # a new search replaced the old one, and has got its results
    CLOSED = "closed"  # a process ended


_OF_TRIALS = (EventKind.ASKED, EventKind.FINISHED, EventKind.REPLACED, EventKind.RETRIED, EventKind.RESTARTED)


class Journal:
    """The open journal of a run, held by one process at a time; see :func:`open_journal`.

    Attributes:
        past: The events of earlier processes, in their order.
    """

    def __init__(self, path: Path, file: BinaryIO, past: Sequence[Event]) -> None:
        self.past = past
        self._written: list[Event] = []
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
        """Return all events of a kind, from earlier processes and from this one."""
        return [event for event in (*self.past, *self._written) if event["event"] == kind]

    def append(self, kind: str, **content: Any) -> None:
        """Write one event; it is on the disk when this returns.

        Args:
            kind: The kind of the event, stored as ``event``.
            content: Values that JSON can hold. The time (``time``, UTC) and the seconds since the journal was opened
                (``elapsed``) are added.

        Raises:
            StoreError: If the journal cannot be written.
        """
        event = {"event": str(kind), "time": utc_now(), "elapsed": round(self.elapsed, 3), **content}
        with clear_errors(self._path, "write", _ELSEWHERE):
            self._file.write((json.dumps(event, allow_nan=False) + "\n").encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self._written.append(event)


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """Open the journal of a run for this process alone; the folder is created if it is missing.

    Args:
        folder: The output folder of the run.

    Yields:
        The journal, with the events of earlier processes. A torn last line is removed.

    Raises:
        TuningError: If another process has the journal open, or a line other than the last is damaged.
        StoreError: If the folder cannot be written.
    """
    from filelock import Timeout

    path = folder / JOURNAL
    with clear_errors(folder, "write", _ELSEWHERE):
        lock = file_lock(folder / f".{JOURNAL}.lock", timeout=0)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise TuningError(
                f"another process tunes in {folder}; wait for it, or choose another output folder"
            ) from error
    try:
        with clear_errors(path, "write", _ELSEWHERE):
            file = open_no_link(path, "a+b")
        with file:
            whole = _cut_torn_line(file)
            yield Journal(path, file, parse_events(whole, path))
    finally:
        lock.release()


def parse_events(content: bytes, path: Path) -> list[Event]:
    """Return the events in whole lines of JSON.

    Raises:
        TuningError: If a line is not an event; the message names file and line.
    """
    events = []
    for number, line in enumerate(content.splitlines(), start=1):
        remedy = f"restore the file, or {_ELSEWHERE}"
        event = parse_json(line, f"{path}:{number}: this line", TuningError, remedy)
        if not isinstance(event, dict) or not isinstance(event.get("elapsed"), int | float) or "event" not in event:
            raise TuningError(f"{path}:{number}: not an event of a tuning run; {remedy}")
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
    """Return the current time as ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cut_torn_line(file: BinaryIO) -> bytes:
    """Return the complete lines, after removing an incomplete last one from the file."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        file.truncate(len(whole))
        os.fsync(file.fileno())
    return whole


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        search: The search, in the state after the last event.
        trials: Finished trials, in the order of their ends.
        pending: Trials that were asked for and are not finished, by number.
        checkpoints: Configuration id -> budget -> checkpoint of the training method; the checkpoint may have been
            removed since.
        has_model: Whether some trial's training method returned a model.
        lanes: The largest number of trials that ran at once.
        forgotten: Seconds of failed trials that were run again and no longer count.
    """

    search: Search
    trials: list[Trial] = field(default_factory=list)
    pending: dict[int, Asked] = field(default_factory=dict)
    checkpoints: dict[int, dict[int, Path]] = field(default_factory=dict)
    has_model: bool = False
    lanes: int = 1
    forgotten: float = 0.0

    def note_asked(self, asked: Asked) -> None:
        """Record a trial that waits or runs."""
        self.pending[asked.number] = asked
        self.lanes = max(self.lanes, len(self.pending))

    def note_finished(self, trial: Trial, checkpoint: Path | None, has_model: bool) -> None:
        """Record how a trial ended."""
        self.pending.pop(trial.number, None)
        self.trials.append(trial)
        self.has_model = self.has_model or has_model
        if checkpoint is not None and trial.succeeded:
            self.checkpoints.setdefault(trial.config_id, {})[trial.budget] = checkpoint

    def note_retried(self, numbers: Collection[int]) -> list[Trial]:
        """Make failed trials wait to be run again, and return them."""
        gone = [trial for trial in self.trials if trial.number in numbers]
        self.trials = [trial for trial in self.trials if trial.number not in numbers]
        for trial in gone:
            asked = Asked(trial.number, trial.config_id, trial.config, trial.budget, trial.seed)
            self.pending[trial.number] = asked
        self.forgotten += sum(trial.seconds for trial in gone)
        return gone

    def checkpoint_of(self, config_id: int, budget: int) -> tuple[int, Path | None]:
        """Return the largest budget up to ``budget`` from which a configuration can be continued, and its checkpoint.

        Returns:
            (0, None) if the configuration starts from scratch.
        """
        kept = self.checkpoints.get(config_id, {})
        usable = [smaller for smaller, path in kept.items() if smaller <= budget and is_there(path)]
        return (max(usable), kept[max(usable)]) if usable else (0, None)


def resume(
    journal: Journal, make_search: Callable[[], Search], output: Path, *, retry_failed: bool = False
) -> Progress:
    """Return the progress that a journal holds, ready to be continued.

    If all trials failed, the search starts again from the first trial, because the cause is not a configuration. If the
    search proposes other trials than the journal holds (with another version of a library), a warning is logged and a
    new search replaces the old one. The new search gets the results of all finished trials. An event in the journal
    makes later continuations do the same.

    Args:
        journal: The run's journal.
        make_search: Returns a new search; all searches it returns are equal.
        output: The run's folder, to which checkpoints are relative.
        retry_failed: Run all failed trials again.

    Raises:
        TuningError: If an event is malformed.
    """
    progress = _replayed(journal, make_search, output)
    failed = [trial for trial in progress.trials if not trial.succeeded]
    if failed and len(failed) == len(progress.trials):
        logger.info("none of %d trials succeeded before: the search starts again", len(failed))
        journal.append(EventKind.RESTARTED)
        seconds = progress.forgotten + sum(trial.seconds for trial in failed)
        return Progress(make_search(), forgotten=seconds)
    if failed and retry_failed:
        numbers = [trial.number for trial in failed]
        logger.info("%d failed trials are run again", len(numbers))
        journal.append(EventKind.RETRIED, numbers=numbers)
        _reopen(progress, numbers)
    return progress


def _reopen(progress: Progress, numbers: Collection[int]) -> None:
    for trial in progress.note_retried(numbers):
        progress.search.reopen(trial)


def _replayed(journal: Journal, make_search: Callable[[], Search], output: Path) -> Progress:
    events = [event for event in journal.past if event["event"] in _OF_TRIALS]
    last = _count_until(EventKind.RESTARTED, events)
    ended = [event["trial"] for event in events[:last] if event["event"] == EventKind.FINISHED]
    forgotten = sum(Trial.from_json(record).seconds for record in ended)
    del events[:last]
    start = _count_until(EventKind.REPLACED, events)
    progress = _informed(make_search(), events[:start], output)
    progress.forgotten += forgotten
    for event in events[start:]:
        if event["event"] == EventKind.ASKED and (answer := progress.search.ask()) != (asked := _asked(event)):
            logger.warning(
                "the search answers %s where the journal has %s: a library has another version than before. The trials "
                "so far are kept, and a new search chooses the next ones",
                answer,
                asked,
            )
            journal.append(EventKind.REPLACED)
            progress = _informed(make_search(), events, output)
            progress.forgotten += forgotten
            return progress
        if event["event"] == EventKind.RETRIED:
            _reopen(progress, event["numbers"])
            continue
        _note(progress, event, output)
        if event["event"] == EventKind.FINISHED:
            progress.search.tell(progress.trials[-1])
    return progress


def _count_until(kind: EventKind, events: Sequence[Event]) -> int:
    """Return the number of events up to and including the last event of a kind; 0 if there is none."""
    return max((count for count, event in enumerate(events, start=1) if event["event"] == kind), default=0)


def finished_event(trial: Trial, checkpoint: Path | None, has_model: bool, output: Path) -> dict[str, Any]:
    """Return the content of the event that records the end of a trial."""
    stored_path = None
    if checkpoint is not None:
        inside = checkpoint.is_relative_to(output)
        stored_path = str(checkpoint.relative_to(output) if inside else checkpoint)
    return {"trial": trial.to_json(), "checkpoint": stored_path, "has_model": has_model}


def _informed(search: Search, events: Sequence[Event], output: Path) -> Progress:
    """Return the progress that events describe, with a search that learns results of trials it did not propose."""
    progress = Progress(search)
    for event in events:
        if event["event"] == EventKind.ASKED:
            search.adopt(_asked(event))
        _note(progress, event, output)
    for trial in progress.trials:
        search.tell(trial)
    return progress


def _note(progress: Progress, event: Event, output: Path) -> None:
    if event["event"] == EventKind.ASKED:
        progress.note_asked(_asked(event))
    elif event["event"] == EventKind.RETRIED:
        progress.note_retried(event["numbers"])
    elif event["event"] == EventKind.FINISHED:
        stored_path = event.get("checkpoint")
        progress.note_finished(
            Trial.from_json(event["trial"]),
            None if stored_path is None else output / stored_path,
            bool(event.get("has_model")),
        )


def _asked(event: Mapping[str, Any]) -> Asked:
    try:
        return Asked(**{name: event[name] for name in Asked.__dataclass_fields__})
    except KeyError as error:
        raise TuningError(f"an event of the journal has no {error}: {dict(event)}; choose another folder") from error
