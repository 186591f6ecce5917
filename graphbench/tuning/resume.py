"""Continuing a run: a new search is asked and told what the journal holds, and is then where the old one was."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphbench.core.errors import TuningError
from graphbench.core.files import is_there
from graphbench.reports.tuning.trials import Trial
from graphbench.tuning.journal import Event, EventKind, Journal
from graphbench.tuning.search import Search
from graphbench.tuning.trials import Asked

logger = logging.getLogger(__name__)

_OF_TRIALS = (EventKind.ASKED, EventKind.FINISHED, EventKind.REPLACED, EventKind.RETRIED, EventKind.RESTARTED)


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        search: In the state after the last event.
        trials: Finished trials, in the order of their ends.
        pending: Trials that were asked for and are not finished, by number.
        checkpoints: Configuration -> budget -> what the training method returned; it may have been removed since.
        has_model: Whether some trial's training method returned a model.
        lanes: The most trials that ran at once.
        forgotten: Seconds of failed trials that count no more, as they were run again.
    """

    search: Search
    trials: list[Trial] = field(default_factory=list)
    pending: dict[int, Asked] = field(default_factory=dict)
    checkpoints: dict[int, dict[int, Path]] = field(default_factory=dict)
    has_model: bool = False
    lanes: int = 1
    forgotten: float = 0.0

    def note_asked(self, asked: Asked) -> None:
        """Remember a trial that waits or runs."""
        self.pending[asked.number] = asked
        self.lanes = max(self.lanes, len(self.pending))

    def note_finished(self, trial: Trial, checkpoint: Path | None, has_model: bool) -> None:
        """Remember how a trial ended."""
        self.pending.pop(trial.number, None)
        self.trials.append(trial)
        self.has_model = self.has_model or has_model
        if checkpoint is not None and trial.succeeded:
            self.checkpoints.setdefault(trial.config_id, {})[trial.budget] = checkpoint

    def note_retried(self, numbers: Collection[int]) -> list[Trial]:
        """Let failed trials wait to be run again, and return what they were."""
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
            (0, None) where it starts from scratch.
        """
        kept = self.checkpoints.get(config_id, {})
        usable = [smaller for smaller, path in kept.items() if smaller <= budget and is_there(path)]
        return (max(usable), kept[max(usable)]) if usable else (0, None)


def resume(
    journal: Journal, make_search: Callable[[], Search], output: Path, *, retry_failed: bool = False
) -> Progress:
    """Return the progress that a journal holds, ready to go on.

    Where all trials failed, the search starts again from the first one: the cause was none of the configurations. A
    search that answers otherwise than the journal says (of another version of a library) is replaced, with a warning,
    by a new one that is told all finished trials; the journal notes it, so that later continuations do the same.

    Args:
        journal: The run's journal.
        make_search: Returns a new search, always the same.
        output: The run's folder, to which checkpoints are relative.
        retry_failed: Let all trials that failed wait to be run again.

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
    last = _places_until(EventKind.RESTARTED, events)
    ended = [event["trial"] for event in events[:last] if event["event"] == EventKind.FINISHED]
    forgotten = sum(Trial.from_json(record).seconds for record in ended)
    del events[:last]
    start = _places_until(EventKind.REPLACED, events)
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


def _places_until(kind: EventKind, events: Sequence[Event]) -> int:
    """Return how many events there are up to the last one of a kind; 0 without one."""
    return max((place for place, event in enumerate(events, start=1) if event["event"] == kind), default=0)


def asked_event(asked: Asked) -> dict[str, Any]:
    """Return the content of the event that a trial was asked for."""
    return asdict(asked)


def finished_event(trial: Trial, checkpoint: Path | None, has_model: bool, output: Path) -> dict[str, Any]:
    """Return the content of the event that a trial ended."""
    place = None
    if checkpoint is not None:
        inside = checkpoint.is_relative_to(output)
        place = str(checkpoint.relative_to(output) if inside else checkpoint)
    return {"trial": trial.to_json(), "checkpoint": place, "has_model": has_model}


def _informed(search: Search, events: Sequence[Event], output: Path) -> Progress:
    """Return the progress of events, with a search that was told of them without having been asked."""
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
        place = event.get("checkpoint")
        progress.note_finished(
            Trial.from_json(event["trial"]), None if place is None else output / place, bool(event.get("has_model"))
        )


def _asked(event: Mapping[str, Any]) -> Asked:
    try:
        return Asked(**{name: event[name] for name in Asked.__dataclass_fields__})
    except KeyError as error:
        raise TuningError(f"an event of the journal has no {error}: {dict(event)}; choose another folder") from error
