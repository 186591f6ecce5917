"""Statistics over runs that differ in the seed and the draw of the data alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from graphbench.core.errors import ResultError
from graphbench.records.budgets import not_stated
from graphbench.records.copies import RunKey, copied_runs, key_of
from graphbench.records.record import RunRecord, is_deterministic

logger = logging.getLogger(__name__)

COSTS = (
    "parameters", "wall_seconds", "peak_memory_bytes", "throughput_graphs_per_s", "latency_ms", "cpu_seconds",
    "threads",
)  # fmt: skip
"""The numbers of a record that state the costs of a run."""
_MAX_NUMBER = 1e100  # larger numbers overflow when they are squared


@dataclass(frozen=True, slots=True)
class Stat:
    """Mean and sample standard deviation of one number over runs.

    Attributes:
        mean: Arithmetic mean.
        std: Standard deviation with ddof=1; None for a single run, whose spread is unknown.
        n: Number of runs.
    """

    mean: float
    std: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Stat:
        """Return the statistics of at least one value."""
        numbers = [float(value) for value in values]
        if not numbers:
            raise ResultError("there is no value to average")
        largest = max(map(abs, numbers))
        mean = (
            math.fsum(numbers) / len(numbers) if largest < _MAX_NUMBER else math.fsum(x / len(numbers) for x in numbers)
        )
        if len(numbers) == 1:
            return cls(mean, None, 1)
        return cls(mean, math.hypot(*(value - mean for value in numbers)) / math.sqrt(len(numbers) - 1), len(numbers))


def student_half_width(values: Sequence[float], level: float) -> float:
    """Return half the width of Student's interval of the mean of at least two values.

    Args:
        values: One value per run.
        level: Probability that the interval covers the mean, such as 0.95.
    """
    from scipy.special import stdtrit

    runs, tail = len(values), (1 - level) / 2
    return float(stdtrit(runs - 1, 1 - tail)) * float(np.std(values, ddof=1)) / math.sqrt(runs)


def absurd_number(record: RunRecord) -> str:
    """Return which number of a record is too large to be averaged, in words; empty if none is."""
    numbers: dict[str, float | int | None] = {name: getattr(record, name) for name in COSTS}
    for split, scores in record.scores.items():
        numbers |= {f"{name} on {split}": value for name, value in scores.items()}
        numbers |= {f"a replicate of {split}": max(map(abs, record.replicates.get(split, ())), default=None)}
    for name, points in record.curves.items():
        numbers[f"the curve {name}"] = max((max(abs(step), abs(value)) for step, value in points), default=None)
    excessive = next((name for name, value in numbers.items() if value is not None and abs(value) > _MAX_NUMBER), None)
    return f"{excessive} is beyond {_MAX_NUMBER:g}" if excessive else ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Runs that differ in the seed and the draw of the data alone.

    Attributes:
        dataset: Dataset id.
        dataset_version: Version of the dataset card.
        model: Name of the model configuration.
        config_hash: Hash of the common configuration of the runs, in eight hex digits.
        small: Whether the budget is far below the published one; None if no budget is stated.
        label: The budget in words.
        protocol: Which data was trained on; None where the benchmark has one way.
        seeds: Seeds of training, ascending.
        data_seeds: Seeds of the data, ascending; 0 is the canonical draw.
        partly_scored: Whether some of the runs are scored on fewer graphs of a split than others, or than there are.
        scores: Split -> metric -> statistics over the distinct runs that have it.
        records: The runs, in the order of seed and data seed.
        copies: (seed, data seed) of every run that equals an earlier run, with the earlier run's; see
            :func:`graphbench.records.copies.copied_runs`. Copies enter no statistics.
    """

    dataset: str
    dataset_version: int
    model: str
    config_hash: str
    small: bool | None
    label: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Mapping[str, Stat]]
    records: tuple[RunRecord, ...]
    protocol: str | None = None
    data_seeds: tuple[int, ...] = (0,)
    partly_scored: bool = False
    copies: Mapping[RunKey, RunKey] = field(default_factory=dict)

    @property
    def distinct(self) -> tuple[RunRecord, ...]:
        """The runs without copies of earlier runs."""
        return tuple(record for record in self.records if key_of(record) not in self.copies)

    @property
    def deterministic(self) -> bool:
        """Whether neither seed nor chance has any influence on the scores, as far as the records say and show."""
        draws = [record.data_seed for record in self.distinct]
        return len(draws) == len(set(draws)) and all(is_deterministic(record) for record in self.records)

    @property
    def comparable(self) -> bool:
        """Whether a budget is stated, and is no smaller than the published one."""
        return self.small is False

    @property
    def mark(self) -> str:
        """The mark behind the name of runs that are not comparable, in parentheses; empty for comparable runs."""
        return f" ({self.caveat})" if self.caveat else ""

    @property
    def caveat(self) -> str:
        """Why the runs are not compared: ``small run``, or the unknown part of their budget; empty where they are."""
        if self.comparable:
            return ""
        if self.small:
            return "small run"
        first = self.records[0]
        return not_stated(first.steps, first.batch_size) or "no published budget"

    def score(self, split: str, metric: str) -> Stat | None:
        """Return the statistics of one metric on one split, or None if no run has it."""
        return self.scores.get(split, {}).get(metric)

    def measure(self, field: str) -> Stat | None:
        """Return the statistics of a numeric field such as ``wall_seconds``, or None if no run has it."""
        values = [getattr(record, field) for record in self.distinct]
        present = [value for value in values if value is not None]
        return Stat.of(present) if present else None


def aggregate(records: Iterable[RunRecord]) -> list[Aggregate]:
    """Return mean and standard deviation over runs, grouped by data, model, configuration, budget and protocol.

    Draws of one card are one group's data if every draw has the same number of runs. Otherwise each draw is a group,
    because a mean would weigh the draws by the numbers of their runs. Two records of a group with the same seeds are
    the same run repeated: the one started last counts.
    """
    groups: dict[tuple[str, str, str, str], dict[tuple[int, int], RunRecord]] = {}
    for record in sorted(records, key=lambda r: _utc(r.started)):
        key = (record.dataset, record.model, record.config_hash, record.protocol or "")
        runs, seeds = groups.setdefault(key, {}), (record.seed, record.data_seed)
        if seeds in runs:
            logger.warning("two records of %s %s seed %d: the later counts", record.dataset, record.model, record.seed)
        runs[seeds] = record
    return [_aggregate_group(runs) for key in sorted(groups) for runs in _balanced(groups[key])]


def _balanced(runs: Mapping[tuple[int, int], RunRecord]) -> list[Mapping[tuple[int, int], RunRecord]]:
    """Return the runs of a group together if every draw of the data has as many, else the runs of each draw."""
    by_draw: dict[int, dict[tuple[int, int], RunRecord]] = {}
    for seeds in sorted(runs, key=lambda pair: (pair[1], pair[0])):
        by_draw.setdefault(seeds[1], {})[seeds] = runs[seeds]
    return [runs] if len({len(of_draw) for of_draw in by_draw.values()}) == 1 else list(by_draw.values())


def _aggregate_group(runs: Mapping[tuple[int, int], RunRecord]) -> Aggregate:
    ordered = tuple(runs[seeds] for seeds in sorted(runs))
    first = ordered[0]
    copies = copied_runs(ordered)
    values: dict[str, dict[str, list[float]]] = {}
    for record in (record for record in ordered if key_of(record) not in copies):
        for split, metrics in record.scores.items():
            for metric, value in metrics.items():
                values.setdefault(split, {}).setdefault(metric, []).append(value)
    scores = {split: {m: Stat.of(v) for m, v in metrics.items()} for split, metrics in values.items()}
    return Aggregate(
        dataset=first.dataset,
        dataset_version=first.dataset_version,
        model=first.model,
        config_hash=first.config_hash,
        small=first.budget.small,
        label=first.budget.label,
        seeds=tuple(sorted({record.seed for record in ordered})),
        data_seeds=tuple(sorted({record.data_seed for record in ordered})),
        scores=scores,
        records=ordered,
        protocol=first.protocol,
        partly_scored=_are_partly_scored(ordered),
        copies=copies,
    )


def _are_partly_scored(records: Iterable[RunRecord]) -> bool:
    counts: dict[str, set[int]] = {}
    labels = []
    for record in records:
        labels.append(record.budget.label)
        for split, count in record.graphs_scored.items():
            counts.setdefault(split, set()).add(count)
    have_different_counts = any(len(distinct) > 1 for distinct in counts.values())
    return have_different_counts or any("scored on part of" in label for label in labels)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
