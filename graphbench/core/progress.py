"""The one progress display: a bar with rate and time left, silent when the output is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """What long work reports to."""

    def update(self, n: float = 1, **fields: object) -> None:
        """Advance by ``n`` units and show ``fields`` (e.g. ``loss=0.31``) beside the bar."""


class _Silent:
    def update(self, n: float = 1, **fields: object) -> None:
        """Do nothing."""


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


def human_number(value: float) -> str:
    """Return ``value`` in at most four characters and a suffix, e.g. ``12.3k``."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def human_bytes(count: float) -> str:
    """Return a number of bytes for people, e.g. ``188 MB`` (powers of 1000)."""
    for limit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {suffix}"
    return f"{count:.0f} B"


@contextmanager
def progress_bar(total: float, label: str, unit: str = "step", enabled: bool | None = None) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs.

    Args:
        total: Units of work in all.
        label: Words before the bar.
        unit: Name of one unit, shown in the rate.
        enabled: True or False to force; None shows it only when standard error is a terminal.
    """
    if enabled is None:
        enabled = sys.stderr.isatty()
    if not enabled:
        yield _Silent()
        return
    bar = _Bar(total, label, unit)
    try:
        yield bar
    finally:
        bar.stop()
