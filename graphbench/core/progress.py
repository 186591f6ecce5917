"""Progress display: a bar with rate and remaining time in a terminal, a log line every 30 s elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from graphbench.core.words import duration, human_number

logger = logging.getLogger(__name__)

LOG_SECONDS = 30.0


class Progress(Protocol):
    """Receives the progress of long-running work."""

    def update(self, n: float = 1, **fields: object) -> None:
        """Advance by ``n`` units and show ``fields`` (e.g. ``loss=0.31``) next to the bar."""


class _NoProgress:
    def update(self, n: float = 1, **fields: object) -> None:
        """Do nothing."""


class _Log:
    """Logs progress every 30 s, for output that is not a terminal."""

    def __init__(self, total: float, label: str, unit: str) -> None:
        self._total, self._label, self._unit = total, label, unit
        self._started = self._logged = time.monotonic()
        self._first: float | None = None
        self._done = 0.0
        self._fields: dict[str, object] = {}

    def update(self, n: float = 1, **fields: object) -> None:
        """Advance, and log if 30 s have passed since the last line."""
        if self._first is None:
            self._first = n if not fields and n > 1 else 0.0  # units done before this call
        self._done += n
        self._fields |= fields
        now = time.monotonic()
        if now - self._logged < LOG_SECONDS:
            return
        self._logged = now
        rate = (self._done - self._first) / max(now - self._started, 1e-9)
        left = f", about {duration((self._total - self._done) / rate)} left" if rate > 0 else ""
        extra = "".join(f", {k} {v:.4g}" if isinstance(v, float) else f", {k} {v}" for k, v in self._fields.items())
        logger.info("%s: %d of %d %s%s%s", self._label, self._done, self._total, self._unit, extra, left)


def note(text: str) -> None:
    """Log a line that announces the work ahead and its cost."""
    logger.info("%s", text)


def announce(text: str, enabled: bool | None = None) -> None:
    """Say in one line that work begins that takes long and shows no bar.

    Args:
        text: The line.
        enabled: As for :func:`progress_bar`: True writes to standard error and False disables the line; None writes to
            standard error if it is a terminal, and logs elsewhere.
    """
    if enabled is None and not sys.stderr.isatty():
        note(text)
    elif enabled is not False:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class _Bar:
    def __init__(self, total: float, label: str, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._started = time.monotonic()
        self._done = 0.0
        self._unit = unit
        self._progress = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[extra]}", style="dim"),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(label, total=total, rate="", extra="")
        self._progress.start()

    def update(self, n: float = 1, **fields: object) -> None:
        """Advance the bar."""
        self._done += n
        elapsed = max(time.monotonic() - self._started, 1e-9)
        extra = " ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in fields.items())
        rate = f"{human_number(self._done / elapsed)} {self._unit}/s"
        changes = {"rate": rate, "extra": extra} if fields else {"rate": rate}
        self._progress.update(self._task, advance=n, **changes)  # type: ignore[arg-type]

    def stop(self) -> None:
        self._progress.stop()


@contextmanager
def progress_bar(total: float, label: str, unit: str = "steps", enabled: bool | None = None) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs.

    Args:
        total: Units of work in all.
        label: Words before the bar.
        unit: Name of the units, in the plural.
        enabled: True forces the bar and False disables all output; None shows the bar if standard error is a terminal,
            and logs a line every 30 s elsewhere.
    """
    if enabled is None and not sys.stderr.isatty():
        yield _Log(total, label, unit)
        return
    if enabled is False:
        yield _NoProgress()
        return
    bar = _Bar(total, label, unit)
    try:
        yield bar
    finally:
        bar.stop()
