"""The display of a sweep: a table of models by datasets in a terminal, a line per finished run elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import card as find_card
from graphbench.cli.show_scores import score_text
from graphbench.core.words import duration

if TYPE_CHECKING:
    from rich.table import Table

    from graphbench.records.record import RunRecord
    from graphbench.training.sweep import Cell, CellResult

logger = logging.getLogger("graphbench.core.progress")  # whose lines are always logged


class SweepDisplay:
    """Shows which cells of a sweep have ended, with their mean test scores and the time left.

    Args:
        cells: The cells.
        workers: How many are trained at once.
        progress: True or False to force the table or lines; None shows the table in terminals only.
    """

    def __init__(self, cells: Sequence[Cell], workers: int, progress: bool | None = None) -> None:
        self._cells, self._workers = cells, max(1, workers)
        self._results: dict[int, CellResult] = {}
        self._seconds: list[float] = []
        self._started = time.monotonic()
        self._enabled = sys.stderr.isatty() if progress is None else progress
        self._live: Any = None

    def __enter__(self) -> SweepDisplay:
        if self._enabled:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(get_renderable=self.render, console=Console(stderr=True), refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, result: CellResult) -> None:
        """Add a cell that ended."""
        self._results[result.cell.number] = result
        if self._live is None and not result.kept:
            logger.info("%s: %s; %s", result.cell.name, _outcome(result), self.summary())

    def summary(self) -> str:
        """Return the number of finished, kept and failed cells, and the time left, in words."""
        ended = list(self._results.values())
        kept, failed = sum(result.kept for result in ended), sum(bool(result.error) for result in ended)
        parts = [f"{len(ended)} of {len(self._cells)} runs"]
        parts += [f"{kept} from before"] if kept else []
        parts += [f"{failed} failed"] if failed else []
        trained, left = len(ended) - kept, len(self._cells) - len(ended)
        if trained and left:
            seconds = (time.monotonic() - self._started) / trained * left
            parts.append(f"about {duration(seconds)} left")
        return ", ".join(parts)

    def render(self) -> Table:
        """Return the table of models by datasets; a cell holds the mean test score and how many seeds have ended."""
        from rich.table import Table

        datasets = list(dict.fromkeys(cell.config.dataset for cell in self._cells))
        models = list(dict.fromkeys(cell.config.model_name for cell in self._cells))
        table = Table(box=None, title=self.summary(), title_justify="left", padding=(0, 2, 0, 0))
        for head in ("model", *datasets):
            table.add_column(head, overflow="fold")
        for model in models:
            table.add_row(model, *(self._text(model, dataset) for dataset in datasets))
        return table

    def _text(self, model: str, dataset: str) -> str:
        cells = [c for c in self._cells if (c.config.model_name, c.config.dataset) == (model, dataset)]
        results = [self._results[cell.number] for cell in cells if cell.number in self._results]
        scores = [score[2] for result in results if result.record is not None and (score := _score(result.record))]
        failed = sum(bool(result.error) for result in results)
        parts = [score_text(sum(scores) / len(scores))] if scores else []
        parts.append(f"({len(results) - failed}/{len(cells)})" + (f" {failed} failed" if failed else ""))
        return " ".join(parts)


def _outcome(result: CellResult) -> str:
    if result.record is None:
        return f"failed: {result.error}"
    score = _score(result.record)
    if score is None:
        return "not scored"
    split, metric, value = score
    return f"{metric} {score_text(value)} on {split}"


def _score(record: RunRecord) -> tuple[str, str, float] | None:
    """Return split, primary metric and value of a record: of test if it was scored, else of another split."""
    metric = find_card(record.dataset).metrics.primary
    scored = (name for name in ("test", "val", *record.scores) if metric in record.scores.get(name, {}))
    return next(((name, metric, record.scores[name][metric]) for name in scored), None)
