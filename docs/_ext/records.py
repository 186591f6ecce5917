"""The recorded runs of a dataset, read once for all pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from graphbench.catalog.cards import Card
from graphbench.core.errors import ResultError
from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard.best import BestScore, best
from graphbench.records.files import load_records
from graphbench.records.record import RunRecord


def records_of(address: str) -> Sequence[RunRecord]:
    """Return the records of a dataset (with its task, if it has several); none without a folder of results."""
    return _all_records().get(address, [])


def best_score(card: Card) -> BestScore | None:
    """Return the best mean over seeds on the test split."""
    found = _best_scores().get(card.address, [])
    sign = 1 if METRICS[card.metrics.primary].higher_is_better else -1
    return max(found, key=lambda own: sign * own.mean, default=None)


@cache
def _best_scores() -> dict[str, list[BestScore]]:
    return best(records=[record for own in _all_records().values() for record in own])


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
