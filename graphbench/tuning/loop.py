"""The loop of a tuning run: asks the search, runs trials, writes the journal, removes what is no longer needed."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphbench.training.interrupts import deferred_signals
from graphbench.tuning.execution import Execution
from graphbench.tuning.journal import Journal
from graphbench.tuning.resume import ASKED, FINISHED, Progress, asked_event, finished_event
from graphbench.tuning.trials import Asked, Observer, Status, Trial, incumbent_of
from graphbench.tuning.worker import Job, Outcome

logger = logging.getLogger(__name__)

TRIALS = "trials"
_ALIVE = "alive"
_ALIVE_SECONDS = 60.0  # between events: what a run that is killed forgets of its time
_COST_WITHOUT_ANY = 1.0


@dataclass(frozen=True)
class Stop:
    """When a run ends.

    Attributes:
        trials: Finished trials in all.
        seconds: Wall time in all, over all restarts; trials that run then are ended, and are the first of the next run.
        worst_cost: Cost of failed trials; None for the largest cost so far.
    """

    trials: int
    seconds: float | None = None
    worst_cost: float | None = None


class Loop:
    """Runs trials until a limit is reached or the space is used up.

    Args:
        progress: Where the run stands.
        execution: Where trials run.
        journal: The open journal.
        stop: When the run ends.
        output: Folder of the run.
        continues: Whether the training method accepts checkpoints.
        observers: Who is told of every trial.
    """

    def __init__(
        self,
        progress: Progress,
        execution: Execution,
        journal: Journal,
        stop: Stop,
        output: Path,
        continues: bool,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._progress, self._execution, self._journal, self._stop = progress, execution, journal, stop
        self._output, self._continues, self._observers = output, continues, observers
        self._waiting = list(progress.pending.values())
        self._running: dict[int, tuple[Asked, int]] = {}  # number -> trial and the budget it continues from
        self._noted = time.monotonic()
        self._folders = {int(path.name) for path in (output / TRIALS).glob("*") if path.name.isdigit()}

    def run(self) -> bool:
        """Run trials.

        Returns:
            Whether the run is complete: all trials done, or none left to do. False where time ran out.
        """
        while True:
            exhausted = self._fill()
            self._remove_folders(final=False)
            if not self._running:
                break
            for job, outcome in self._execution.wait(self._patience()):
                self._finish(job, outcome)
            self._note_alive()
            if self._seconds_left() <= 0:
                logger.info("the time is up: %d trials are cut short, and come first when the run goes on", self._cut())
                return False
        complete = exhausted or len(self._progress.trials) >= self._stop.trials
        if complete:
            self._remove_folders(final=True)
        return complete

    def _fill(self) -> bool:
        """Start trials while there is room, time and need; return whether the search has no more."""
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
            self._journal.append(ASKED, **asked_event(asked))
            self._progress.note_asked(asked)
        elif not self._running:
            logger.info("the search space is used up after %d trials", len(self._progress.trials))
        return asked

    def _start(self, asked: Asked) -> None:
        start, checkpoint = 0, None
        if self._continues:
            start, checkpoint = self._progress.checkpoint_of(asked.config_id, asked.budget)
        folder = self._output / TRIALS / str(asked.config_id)
        self._folders.add(asked.config_id)
        self._running[asked.number] = (asked, start)
        for observer in self._observers:
            observer.on_asked(asked)
        self._execution.start(Job(asked.number, asked.config, asked.seed, asked.budget, checkpoint, folder))

    def _finish(self, job: Job, outcome: Outcome) -> None:
        asked, start = self._running.pop(job.number)
        trial = _trial(asked, start, outcome, self._cost(outcome))
        event = finished_event(trial, outcome.checkpoint, outcome.has_model, self._output)
        with deferred_signals():  # a trial is in the journal and in the result, or in neither
            self._journal.append(FINISHED, **event)
            self._progress.note_finished(trial, outcome.checkpoint, outcome.has_model)
        self._noted = time.monotonic()
        self._progress.search.tell(trial)
        if not trial.succeeded:
            logger.info("trial %d failed (%s): %s", trial.number, trial.status, trial.reason)
        for observer in self._observers:
            observer.on_finished(trial)

    def _cost(self, outcome: Outcome) -> float:
        """Return the cost of a trial, of one that failed the worst-case value."""
        if outcome.status is Status.SUCCESS:
            return outcome.cost
        if self._stop.worst_cost is not None:
            return self._stop.worst_cost
        known = [trial.cost for trial in self._progress.trials if trial.succeeded]
        return max(known, default=_COST_WITHOUT_ANY)

    def _remove_folders(self, final: bool) -> None:
        """Remove the folders of configurations that nobody continues; in the end all but the incumbent's."""
        best = incumbent_of(self._progress.trials)
        keep = set() if best is None else {best.config_id}
        if not final:
            keep |= self._progress.search.promotable()
            keep |= {asked.config_id for asked in self._progress.pending.values()}
        for config_id in self._folders - keep:
            shutil.rmtree(self._output / TRIALS / str(config_id), ignore_errors=True)
        self._folders &= keep

    def _cut(self) -> int:
        self._execution.close()
        return len(self._running)

    def _seconds_left(self) -> float:
        return float("inf") if self._stop.seconds is None else self._stop.seconds - self._journal.seconds

    def _patience(self) -> float:
        return max(0.0, min(self._seconds_left(), self._noted + _ALIVE_SECONDS - time.monotonic()))

    def _note_alive(self) -> None:
        if time.monotonic() - self._noted >= _ALIVE_SECONDS:
            self._journal.append(_ALIVE)
            self._noted = time.monotonic()


def _trial(asked: Asked, start: int, outcome: Outcome, cost: float) -> Trial:
    """Return the record of a trial; one that failed is charged all steps it was given."""
    if outcome.status is not Status.SUCCESS:
        steps = asked.budget - start
    else:
        steps = asked.budget if outcome.steps is None else outcome.steps
    return Trial(
        number=asked.number,
        config_id=asked.config_id,
        config=asked.config,
        budget=asked.budget,
        continued_from=start,
        seed=asked.seed,
        status=outcome.status,
        cost=cost,
        seconds=round(outcome.seconds, 3),
        steps=steps,
        started=outcome.started,
        reason=outcome.reason,
        metrics=outcome.metrics,
        worker=outcome.worker,
        tries=outcome.tries,
    )
