"""The display of a running search: a table in a terminal, log lines elsewhere."""

from __future__ import annotations

import atexit
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from graphbench.core.afterwards import never_fatal
from graphbench.core.words import counted, human_number
from graphbench.training.fidelity import STEPS, Fidelity, recorded_fidelity
from graphbench.tuning.history import busy_seconds, rungs_of
from graphbench.tuning.parameters import config_text
from graphbench.tuning.report.sentences import title_of
from graphbench.tuning.trial import Measure, Trial, incumbent_of
from graphbench.tuning.trials import Asked

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table

logger = logging.getLogger(__name__)

_PER_SECOND = 4  # drawings; events only change counters
_MAX_SHOWN_TRIALS = 8  # running trials in the table
_LINES = 20  # approximate number of log lines of a whole run
_UNSHOWN = "the search goes on, and its trials are in its folder"
_SILENCE = 60.0  # seconds after which the end of a trial is logged in any case


@dataclass
class RunState:
    """The state of a run, from which every frame of the display is drawn.

    Attributes:
        title: The tuned model and its dataset, in one line.
        measure: How costs are shown.
        fidelity: The unit that budgets count.
        wanted: Total number of trials of the run; 0 if unknown.
        limit: Seconds the run may take; None for no limit.
        trials: Trials that ended.
        running: Trials that run, by number, with their start time.
    """

    title: str = "Tuning"
    measure: Measure = field(default_factory=Measure)
    fidelity: Fidelity = STEPS
    wanted: int = 0
    limit: float | None = None
    trials: list[Trial] = field(default_factory=list)
    running: dict[int, tuple[Asked, float]] = field(default_factory=dict)

    @property
    def incumbent(self) -> Trial | None:
        """The best trial so far."""
        return incumbent_of(self.trials)

    def best_text(self) -> str:
        """Return the incumbent's score and where it was reached."""
        if self.incumbent is None:
            return "none yet"
        score = self.measure.text(self.incumbent.measured)
        return f"{score} at {self.fidelity.text(self.incumbent.budget)} (configuration {self.incumbent.config_id})"

    def trials_text(self) -> str:
        """Return how many trials ended, run and failed."""
        total = f" of {self.wanted}" if self.wanted else ""
        failed = sum(not trial.succeeded for trial in self.trials)
        return f"{len(self.trials)}{total} done, {len(self.running)} running, {failed} failed"

    def steps_text(self) -> str:
        """Return the budget spent, and the budget saved by continuing from checkpoints."""
        steps = sum(trial.steps for trial in self.trials)
        saved = sum(trial.continued_from for trial in self.trials)
        text = f", {human_number(saved)} saved by continuing ({saved / (steps + saved):.0%})" if saved else ""
        return f"{human_number(steps)} done{text}"


class LiveDisplay:
    """Shows a run in progress; an :class:`~graphbench.tuning.trials.Observer`.

    In a terminal, a thread redraws a table a few times per second. Elsewhere, a line is logged every few trials, and
    when a larger budget is first reached. As a context manager, the display restores the terminal however the block
    ends, and at the end of the process at the latest.
    """

    def __init__(self, progress: bool | None = None, console: Console | None = None) -> None:
        """Prepare the display.

        Args:
            progress: True or False to force the table or log lines; None shows the table in terminals only.
            console: Where the table is drawn; None for standard error.
        """
        self._enabled = sys.stderr.isatty() if progress is None else progress
        self._console = console
        self._live: Live | None = None
        self._lock = Lock()
        self._started = self._logged_at = time.monotonic()  # of the run, with the times of earlier starts
        self._logged = 0
        self.state = RunState()

    def __enter__(self) -> LiveDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self.on_end()

    @never_fatal("the display", _UNSHOWN)
    def on_start(self, settings: Mapping[str, Any], trials: Sequence[Trial]) -> None:
        """Set the settings and the trials of earlier runs, and show the display."""
        self._logged_at = time.monotonic()
        self._started = self._logged_at - busy_seconds(trials)
        self.state = _state_of(settings)
        self.state.trials.extend(trials)
        self._logged = len(trials)
        title, wanted = self.state.title, self.state.wanted
        if trials:
            begun = counted(len(trials), "trial")
            logger.info("%s: continued after %s; best %s", title, begun, self.state.best_text())
        if self._enabled:
            self._show()
        elif not trials:
            logger.info("%s: begun%s", title, f", {wanted} trials" if wanted else "")

    def on_asked(self, asked: Asked) -> None:
        """Add a trial that starts."""
        with self._lock:
            self.state.running[asked.number] = (asked, time.monotonic())

    @never_fatal("the display", _UNSHOWN)
    def on_finished(self, trial: Trial) -> None:
        """Add a trial that ended."""
        with self._lock:
            before = self.state.incumbent
            self.state.running.pop(trial.number, None)
            self.state.trials.append(trial)
            best = self.state.incumbent
        has_risen = before is not None and best is not None and best.budget > before.budget
        if self._live is None and (has_risen or self._is_time_to_log()):
            self._log()

    @never_fatal("the display", _UNSHOWN)
    def on_end(self) -> None:
        """Leave the last state of the table in the terminal, or log it; further calls do nothing."""
        live, self._live = self._live, None
        if live is not None:
            atexit.unregister(self.on_end)
            with suppress(OSError, ValueError):
                live.stop()  # a terminal that is gone needs no restoring
        elif len(self.state.trials) > self._logged:
            self._log()

    def _show(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = self._console or Console(stderr=True)
        self._live = Live(get_renderable=self.render, console=console, refresh_per_second=_PER_SECOND)
        atexit.register(self.on_end)
        self._live.start()

    def _is_time_to_log(self) -> bool:
        every = max(1, self.state.wanted // _LINES)
        return len(self.state.trials) - self._logged >= every or time.monotonic() - self._logged_at > _SILENCE

    def _log(self) -> None:
        self._logged, self._logged_at = len(self.state.trials), time.monotonic()
        elapsed, unit = clock(self._logged_at - self._started), self.state.fidelity.name
        trials, steps, best = self.state.trials_text(), self.state.steps_text(), self.state.best_text()
        logger.info("%s: %s; %s %s; best %s", elapsed, trials, unit, steps, best)

    def render(self) -> RenderableType:
        """Return the current content of the display."""
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            elapsed = time.monotonic() - self._started
            parts: list[RenderableType] = [Text(self.state.title, style="bold"), _facts(self.state, elapsed)]
            if self.state.trials or self.state.running:
                parts.append(_rung_table(self.state))
            if self.state.running:
                parts.append(_running_table(self.state))
        return Group(*parts)


def _state_of(settings: Mapping[str, Any]) -> RunState:
    identity, limits = settings.get("what", {}), settings.get("limits", {})
    title_parts = [title_of(identity), *([identity["method"]] if "method" in identity else [])]
    if "seed" in identity:
        title_parts.append(f"seed {identity['seed']}")
    return RunState(
        title=", ".join(title_parts),
        measure=Measure(identity.get("metric")),
        fidelity=recorded_fidelity(identity),
        wanted=limits.get("trials") or 0,
        limit=limits.get("walltime_limit"),
    )


def clock(seconds: float) -> str:
    """Return a time as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _facts(state: RunState, elapsed: float) -> Table:
    """Return the table of the best trial, the counts and the time."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_row("best so far", state.best_text())
    if state.incumbent is not None:
        table.add_row("", config_text(state.incumbent.config))
    table.add_row("trials", state.trials_text())
    table.add_row(state.fidelity.name, state.steps_text())
    table.add_row("time", clock(elapsed) + (f" of {clock(state.limit)}" if state.limit is not None else ""))
    return table


def _rung_table(state: RunState) -> Table:
    """Return the table of budgets, with the trials at each budget and the best score."""
    running = Counter(asked.budget for asked, _ in state.running.values())
    rungs = {rung.budget: rung for rung in rungs_of(state.trials)}
    rows = []
    for budget in sorted({*rungs, *running}):
        rung = rungs.get(budget)
        done, failed, best = (0, 0, None) if rung is None else (rung.trials, rung.failed, rung.best)
        score = "" if best is None else state.measure.text(best, named=False)
        rows.append((f"{budget:,}", str(running[budget] or ""), str(done), str(failed or ""), score))
    return _table(("budget", "running", "done", "failed", f"best {state.measure.head}"), rows)


def _running_table(state: RunState) -> Table:
    """Return the table of the first running trials."""
    now, running = time.monotonic(), sorted(state.running.items())
    rows = [
        (str(number), str(asked.config_id), f"{asked.budget:,}", clock(now - started))
        for number, (asked, started) in running[:_MAX_SHOWN_TRIALS]
    ]
    if len(running) > len(rows):
        rows.append(("...", f"{len(running) - len(rows)} more", "", ""))
    return _table(("trial", "configuration", "budget", "time"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
