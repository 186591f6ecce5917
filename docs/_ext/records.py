"""The recorded runs of a dataset, read once for all pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from graphbench.catalog.cards import Card
from graphbench.core.errors import ResultError
from graphbench.evaluation.aggregates import aggregate
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.results import RunRecord, load_records


@dataclass(frozen=True)
class Best:
    """The best recorded model of a dataset: its name, mean score, runs, and why it is not comparable ("" if it is)."""

    model: str
    score: float
    runs: int
    caveat: str


def records_of(address: str) -> Sequence[RunRecord]:
    """Return the records of a dataset (with its task, if it has several); none without a folder of results."""
    return _all_records().get(address, [])


def best_record(card: Card, split: str = "test") -> Best | None:
    """Return the best mean over seeds in the primary metric, of comparable budgets where there are any."""
    metric = card.metrics.primary
    sign = 1 if METRICS[metric].higher_is_better else -1
    found = []
    for run in aggregate(records_of(card.address)):
        score = run.score(split, metric)
        if score is not None and run.dataset_version == card.version:
            found.append((run.comparable, sign * score.mean, Best(run.model, score.mean, score.n, run.caveat)))
    return max(found, key=lambda item: item[:2])[2] if found else None


@cache
def _all_records() -> dict[str, list[RunRecord]]:
    try:
        records = load_records()
    except ResultError:  # no folder of results in this checkout
        return {}
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        found.setdefault(record.dataset, []).append(record)
    return found
