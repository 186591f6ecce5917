"""The loop of a tuning run: it asks the search for trials, runs them, and keeps the journal and the checkpoints."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from graphbench.core.errors import TuningError
from graphbench.core.files import remove_work_folder
from graphbench.training.interrupts import deferred_signals
from graphbench.tuning.execution import LOGS, Execution
from graphbench.tuning.journal import EventKind, Journal, Progress, finished_event
from graphbench.tuning.trial import Status, Trial, incumbent_of
from graphbench.tuning.trials import Asked, Observer
from graphbench.tuning.worker import Job, Outcome

logger = logging.getLogger(__name__)

TRIALS = "trials"
_ALIVE_SECONDS = 60.0  # between events: the most time that a killed run does not count
_NUMBERS = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?")  # numbers in a reason may differ between equal failures
_MAX_IDENTICAL_FAILURES = 5  # if so many first trials fail for one reason, the run is ended

StepsIn = Callable[[Path, int], int]


@dataclass(frozen=True)
class Stop:
    """When a run ends.

    Attributes:
        trials: Total number of finished trials.
        seconds: Total wall time over all restarts. Trials still running at that time are ended, and come first in the
            next run.
    """

    trials: int
    seconds: float | None = None


@dataclass(frozen=True)
class Continuation:
    """How a training method continues a configuration at a larger budget.

    Attributes:
        continues: Whether a trial starts from the checkpoint of the last smaller budget.
        steps_in: Takes a configuration's folder and a seed, and returns the steps of the last checkpoint there. It is
            used for failed trials.
    """

    continues: bool
    steps_in: StepsIn | None = None


class Loop:
    """Runs trials until a limit is reached or the space is used up.

    Args:
        progress: How far the run has come.
        execution: Runs the trials.
        journal: The open journal.
        stop: When the run ends.
        output: Folder of the run.
        continuation: How trials continue from checkpoints.
        observers: They are notified of every trial.
    """

    def __init__(
        self,
        progress: Progress,
        execution: Execution,
        journal: Journal,
        stop: Stop,
        output: Path,
        continuation: Continuation,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._progress, self._execution, self._journal, self._stop = progress, execution, journal, stop
        self._output, self._continuation, self._observers = output, continuation, observers
        self._has_warned = False
        self._waiting = list(progress.pending.values())
        self._running: dict[int, tuple[Asked, int]] = {}  # number -> trial and the budget it continues from
        self._noted = time.monotonic()
        self._folders = {int(path.name) for path in (output / TRIALS).glob("*") if path.name.isdigit()}

    def run(self) -> bool:
        """Run trials.

        Returns:
            Whether the run is complete: all trials are done, or none is left. False if time ran out.

        Raises:
            TuningError: If the first trials all failed for the same reason.
        """
        while True:
            exhausted = self._fill()
            self._remove_folders(final=False)
            if not self._running:
                break
            for job, outcome in self._execution.wait(self._seconds_to_wait()):
                self._finish(job, outcome)
            self._note_alive()
            if self._seconds_left() <= 0:
                self._execution.close()
                logger.info(
                    "the walltime limit is reached: %d trials are interrupted and run first when the search continues",
                    len(self._running),
                )
                return False
        complete = exhausted or len(self._progress.trials) >= self._stop.trials
        if complete:
            self._remove_folders(final=True)
        return complete

    def _fill(self) -> bool:
        """Start trials while workers are free and limits allow; return whether the search has no more trials."""
        while len(self._running) < self._execution.capacity and self._seconds_left() > 0:
            if len(self._progress.trials) + len(self._running) >= self._stop.trials:
                return False
            asked = self._waiting.pop(0) if self._waiting else self._ask()
            if asked is None:
                return not self._running
            self._start(asked)
        return False

    def _ask(self) -> Asked | None:
        asked = self._progress.search.ask()
        if asked is not None:
            self._journal.append(EventKind.ASKED, **asdict(asked))
            self._progress.note_asked(asked)
        elif not self._running:
            logger.info("the search space is used up after %d trials", len(self._progress.trials))
        return asked

    def _start(self, asked: Asked) -> None:
        start, checkpoint = 0, None
        if self._continuation.continues:
            start, checkpoint = self._progress.checkpoint_of(asked.config_id, asked.budget)
        folder = self._output / TRIALS / str(asked.config_id)
        self._folders.add(asked.config_id)
        self._running[asked.number] = (asked, start)
        for observer in self._observers:
            observer.on_asked(asked)
        self._execution.start(Job(asked.number, asked.config, asked.seed, asked.budget, checkpoint, folder))

    def _finish(self, job: Job, outcome: Outcome) -> None:
        asked, start = self._running.pop(job.number)
        trial = _trial(asked, start, outcome, self._steps(asked, start, job.folder, outcome))
        event = finished_event(trial, outcome.checkpoint, outcome.has_model, self._output)
        with deferred_signals():  # a trial is in both the journal and the result, or in neither
            self._journal.append(EventKind.FINISHED, **event)
            self._progress.note_finished(trial, outcome.checkpoint, outcome.has_model)
        self._noted = time.monotonic()
        self._progress.search.tell(trial)
        if not trial.succeeded:
            logger.info("trial %d failed (%s): %s", trial.number, trial.status, trial.reason)
        if trial.note and not self._has_warned:
            logger.warning("trial %d: %s; further notes are in the result", trial.number, trial.note)
            self._has_warned = True
        for observer in self._observers:
            observer.on_finished(trial)
        self._abort_if_all_fail()

    def _steps(self, asked: Asked, start: int, folder: Path, outcome: Outcome) -> int:
        """Return the budget spent in a trial; for a failed trial, the part up to its last checkpoint."""
        if outcome.steps is not None:
            return outcome.steps
        if outcome.status is Status.SUCCESS:
            return asked.budget
        steps_in = self._continuation.steps_in
        return 0 if steps_in is None else max(0, steps_in(folder, asked.seed) - start)

    def _abort_if_all_fail(self) -> None:
        """Raise an error if the first trials all failed for the same reason."""
        trials = self._progress.trials
        reasons = {(trial.status, _NUMBERS.sub("#", trial.reason)) for trial in trials}
        if len(trials) == _MAX_IDENTICAL_FAILURES and len(reasons) == 1 and not trials[0].succeeded:
            raise TuningError(
                f"the first {_MAX_IDENTICAL_FAILURES} trials failed for the same reason ({trials[0].status}): "
                f"{trials[0].reason}. Their output is in {self._output / LOGS}. Correct it and start the same "
                "search again: it then starts from its first trial"
            )

    def _remove_folders(self, final: bool) -> None:
        """Remove the folders of configurations that no trial can continue; at the end all but the incumbent's."""
        best = incumbent_of(self._progress.trials)
        keep = set() if best is None else {best.config_id}
        if not final:
            keep |= self._progress.search.promotable()
            keep |= {asked.config_id for asked in self._progress.pending.values()}
        for config_id in self._folders - keep:
            remove_work_folder(self._output / TRIALS / str(config_id))
        self._folders &= keep

    def _seconds_left(self) -> float:
        return float("inf") if self._stop.seconds is None else self._stop.seconds - self._journal.seconds

    def _seconds_to_wait(self) -> float:
        return max(0.0, min(self._seconds_left(), self._noted + _ALIVE_SECONDS - time.monotonic()))

    def _note_alive(self) -> None:
        if time.monotonic() - self._noted >= _ALIVE_SECONDS:
            self._journal.append(EventKind.ALIVE)
            self._noted = time.monotonic()


def _trial(asked: Asked, start: int, outcome: Outcome, steps: int) -> Trial:
    succeeded = outcome.status is Status.SUCCESS
    reported = ("status", "started", "reason", "metrics", "worker", "tries", "note")
    return Trial(
        **vars(asked),
        **{name: getattr(outcome, name) for name in reported},
        continued_from=start,
        cost=outcome.cost if succeeded else None,
        seconds=round(outcome.seconds, 3),
        steps=steps,
    )
