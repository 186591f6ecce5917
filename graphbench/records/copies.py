"""Runs of one model that are one run under several seeds: copied records say nothing of the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from graphbench.evaluation.metrics import METRICS
from graphbench.records.record import RunRecord

_ROUNDING = 1e-6  # relative difference: two trainings differ in more than the last digits of a float32 number

RunKey = tuple[int, int]
"""Seed and data seed of a run."""


def copied_runs(records: Sequence[RunRecord]) -> dict[RunKey, RunKey]:
    """Return (seed, data seed) of every run that equals an earlier run of the same model, with the earlier run's.

    Two runs are equal if all scores and all bootstrap replicates are equal, up to a relative difference of 1e-6, on
    every split that both have, times aside.
    Two trainings that differ seldom agree so far, except where there is nothing to disagree on: every test sample has
    the same score (all graphs solved). There the runs must also agree in their training curves, or without curves in
    the moment they were started.

    Args:
        records: The runs of one model with one configuration, in the order of their seeds.
    """
    distinct: list[RunRecord] = []
    copies: dict[RunKey, RunKey] = {}
    for record in records:
        original = next((earlier for earlier in distinct if _is_copy(record, earlier)), None)
        if original is None:
            distinct.append(record)
        else:
            copies[key_of(record)] = key_of(original)
    return copies


def key_of(record: RunRecord) -> RunKey:
    """Return seed and data seed of a run."""
    return record.seed, record.data_seed


def _is_copy(record: RunRecord, earlier: RunRecord) -> bool:
    splits = [split for split in record.scores if split in earlier.scores]
    if not splits or key_of(record) == key_of(earlier):
        return False
    equal = all(
        _are_equal(repeatable_scores(record.scores[split]), repeatable_scores(earlier.scores[split]))
        and _are_equal(_numbered(record, split), _numbered(earlier, split))
        for split in splits
    )
    if not equal or not all(_is_saturated(record, split) for split in splits):
        return equal
    if record.curves or earlier.curves:
        return record.curves == earlier.curves
    return record.started == earlier.started


def _are_equal(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether two mappings have the same keys and, up to rounding, the same numbers."""
    return one.keys() == other.keys() and all(
        math.isclose(value, other[key], rel_tol=_ROUNDING, abs_tol=_ROUNDING**2) for key, value in one.items()
    )


def _numbered(record: RunRecord, split: str) -> dict[str, float]:
    return {str(number): value for number, value in enumerate(record.replicates.get(split, ()))}


def repeatable_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of a split that a second evaluation repeats; times are left out."""
    return {name: value for name, value in scores.items() if name not in METRICS or METRICS[name].repeatable}


def _is_saturated(record: RunRecord, split: str) -> bool:
    """Return whether every test sample has the same score, as far as replicates or the metrics' bounds tell."""
    if replicates := record.replicates.get(split):
        return float(np.ptp(replicates)) == 0.0
    bounded = [(METRICS[name], value) for name, value in record.scores[split].items() if name in METRICS]
    return bool(bounded) and all(value in (metric.lowest, metric.highest) for metric, value in bounded)
