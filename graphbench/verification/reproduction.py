"""Recorded results beside the results of a repetition, and the files of such comparisons.

Scores that do not have the same bits are compared with the 95 % interval of the recorded score over the samples of the
split, and with the interval in which one more run of the configuration lies: other bits lead to other weights, as
another seed does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from graphbench._version import __version__
from graphbench.catalog.names import card as find_card
from graphbench.catalog.resources import data_folders
from graphbench.core.errors import ResultError
from graphbench.core.files import load_json, write_json
from graphbench.core.validation import StrictModel, explain
from graphbench.evaluation.metrics import METRICS
from graphbench.records.aggregates import Stat
from graphbench.records.copies import repeatable_scores
from graphbench.records.machine import commit_of_checkout, hardware
from graphbench.records.record import RunRecord

Method = Literal["training", "weights"]
Verdict = Literal["same bits", "same weights", "within the interval", "undecided", "different"]

REPRODUCTIONS = "reproductions"
"""Name of the folder of reproductions in ``baselines/``."""

_NOT_OBTAINED = ("different", "undecided")
_MACHINE = ("cpu", "torch", "device", "gpu")  # facts of the hardware that decide bits, beside the number of threads
_LEVEL = 0.95  # that the scores of all splits of a record lie in their intervals
_LEAST_RUNS = 3
_WITHOUT_INTERVAL = 5e-3  # relative difference up to which a score without an interval counts as within it


class SplitComparison(StrictModel):
    """The primary metric of one split, as recorded and as obtained again.

    Attributes:
        metric: The metric.
        recorded: The value in the record.
        repeated: The value that was obtained again.
        low: Lower end of the recorded score's interval over the samples, or of the interval in which one more run of
            the configuration lies, if that end is lower; None where the record has no replicates and the configuration
            fewer than three runs. All splits of a record together lie in their intervals with 95 % (Bonferroni).
        high: Upper end.
        runs: Number of recorded runs of the configuration that the interval knows; None in older files.
        samples: Number of samples that were scored again, where it is smaller than that of the record; the interval is
            then that of a score of as many samples. None otherwise.
        equal: Whether every repeatable metric of the split has the same bits.
    """

    metric: str
    recorded: float
    repeated: float
    low: float | None = None
    high: float | None = None
    runs: int | None = None
    samples: int | None = None
    equal: bool

    @property
    def within(self) -> bool:
        """Whether the repeated value lies in the interval of the recorded one."""
        if self.low is None or self.high is None:
            return math.isclose(self.repeated, self.recorded, rel_tol=_WITHOUT_INTERVAL, abs_tol=1e-6)
        rounding = 1e-6 * max(1.0, abs(self.recorded))
        return self.low - rounding <= self.repeated <= self.high + rounding


class Reproduction(StrictModel):
    """A recorded result that was obtained again; one JSON file.

    Attributes:
        schema_version: Version of this format (key ``schema`` in the file).
        record: Path of the record below its folder of records.
        dataset: Its dataset.
        model: Its model.
        seed: Its seed.
        data_seed: Its draw of the data.
        started: When the recorded run was started (UTC), which tells a later record of the same name apart.
        method: ``training``: the configuration was trained again; ``weights``: the stored weights were scored.
        repeated_at: When this was done (UTC).
        wall_seconds: Time that it took, in seconds, with generation of missing data, validation and scoring.
        cpu_seconds: Processor time of all threads and processes in that time, in seconds.
        splits: Split -> its scores; empty where the weights have the recorded hash and no scores were computed.
        equal_curves: Whether every point of the training and validation curves has the same bits; None for weights.
        equal_weights: Whether the weights have the recorded hash; None where the record has none.
        hardware: This machine.
        changes: Facts that decide bits and are others than in the record, ``cpu A -> B``: of the machine, and the
            version of the package.
        graphbench_version: Version of the package.
        git_version: Commit of the checkout, if there is one.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    record: str
    dataset: str
    model: str
    seed: int
    data_seed: int = 0
    started: datetime
    method: Method
    repeated_at: datetime
    wall_seconds: float
    cpu_seconds: float
    splits: dict[str, SplitComparison]
    equal_curves: bool | None = None
    equal_weights: bool | None = None
    hardware: dict[str, str | int | float | None]
    changes: tuple[str, ...] = ()
    graphbench_version: str = __version__
    git_version: str | None = None

    @model_validator(mode="after")
    def _require_a_comparison(self) -> Reproduction:
        if not self.splits and not (self.equal_weights and self.equal_curves):
            raise ValueError("without scores of a split, weights and curves must be equal to the recorded ones")
        return self

    @property
    def verdict(self) -> Verdict:
        """What the repetition says of the record.

        ``same bits`` if all scores and whatever else was compared are equal; ``same weights`` if the weights and curves
        are equal and no scores were computed; else whether every primary score lies in its interval. A score outside of
        it is ``undecided`` where the bits may differ, because the machine or the version is another one, and there are
        too few recorded runs to know how far apart runs of the configuration are.
        """
        if not self.splits:
            return "same weights"
        compared = [split.equal for split in self.splits.values()]
        if all(compared) and self.equal_curves is not False and self.equal_weights is not False:
            return "same bits"
        outside = [split for split in self.splits.values() if not split.within]
        if not outside:
            return "within the interval"
        unknown = all(split.runs is not None and split.runs < _LEAST_RUNS for split in outside)
        return "undecided" if unknown and self.changes else "different"


@dataclass(frozen=True)
class Row:
    """A record to repeat.

    Attributes:
        path: Path of the record below its folder of records.
        record: The record.
        others: Records of further seeds of the same configuration on the same draw.
    """

    path: str
    record: RunRecord
    others: tuple[RunRecord, ...] = ()

    @property
    def minutes(self) -> float:
        """CPU minutes of the record's training, of older records the minutes on the clock; inf if unknown."""
        seconds = self.record.cpu_seconds if self.record.cpu_seconds is not None else self.record.wall_seconds
        return math.inf if seconds is None else seconds / 60


@dataclass(frozen=True)
class Outcome:
    """Scores that were obtained again, and the facts that are compared beside them.

    Attributes:
        scores: Split -> metric -> value; None where the weights are the recorded ones and no scores were computed.
        data_hashes: Split -> content hash of its samples.
        device: The device that computed.
        curves: The curves of the training; None for stored weights.
        weights_hash: Hash of the weights; None for models without tensors.
        graphs: Split -> number of samples that were scored.
    """

    scores: Mapping[str, Mapping[str, float]] | None
    data_hashes: Mapping[str, str]
    device: str = "cpu"
    curves: Mapping[str, Any] | None = None
    weights_hash: str | None = None
    graphs: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_run(cls, record: RunRecord) -> Outcome:
        """Return the outcome of a repeated run."""
        device = str(record.hardware.get("device"))
        known = (record.scores, record.data_hashes, device, record.curves, record.weights_hash)
        return cls(*known, graphs=record.graphs_scored)


def save_reproduction(reproduction: Reproduction, folder: Path) -> Path:
    """Write a reproduction to ``<folder>/<method>/<path of its record>`` and return its file.

    Raises:
        StoreError: If the file cannot be written.
    """
    path = folder / reproduction.method / reproduction.record
    write_json(path, reproduction.model_dump(mode="json", by_alias=True))
    return path


def load_reproductions(folder: Path) -> list[Reproduction]:
    """Return the reproductions below a folder, sorted by their records; none where there is no such folder.

    Raises:
        ResultError: If a file cannot be read.
    """
    reproductions = []
    for path in sorted(folder.rglob("*.json")) if folder.is_dir() else []:
        try:
            reproductions.append(Reproduction.model_validate(load_json(path)))
        except (OSError, ValueError) as error:
            words = explain(error) if isinstance(error, ValidationError) else error
            raise ResultError(f"{path} is no reproduction of a result: {words}; restore or delete it") from error
    return reproductions


def reproductions_dir() -> Path:
    """Return the folder of the package's reproductions, which need not exist."""
    return data_folders("baselines")[0].path / REPRODUCTIONS


def repeated_runs(folder: Path | None = None) -> frozenset[tuple[str, datetime]]:
    """Return (path of the record, start of the run) of every recorded run that was obtained again.

    Args:
        folder: Folder of the reproductions; the package's when None.
    """
    reproductions = load_reproductions(reproductions_dir() if folder is None else folder)
    return frozenset((one.record, one.started) for one in reproductions if one.verdict not in _NOT_OBTAINED)


def compared(row: Row, method: Method, outcome: Outcome, spent: Mapping[str, Any]) -> Reproduction:
    """Return a record beside the scores that were obtained again.

    Args:
        row: The record.
        method: How the scores were obtained.
        outcome: The scores, and the facts beside them.
        spent: ``repeated_at``, ``wall_seconds`` and ``cpu_seconds``.

    Raises:
        ResultError: If the repeated run had other data, or no split was scored in both.
    """
    record, scores = row.record, outcome.scores or {}
    _require_same_data(record, outcome.data_hashes)
    runs = (record, *row.others)
    scored = [name for name in record.scores if name in scores]
    tail = (1 - _LEVEL) / 2 / max(len(scored), 1)
    splits = {name: _of_split(record, name, scores[name], runs, outcome.graphs.get(name), tail) for name in scored}
    if not splits and outcome.scores is not None:
        raise ResultError(f"{row.path} and the repeated run have no scored split in common")
    machine = {**hardware(), "device": outcome.device}
    hashed = record.weights_hash is not None and outcome.weights_hash is not None
    names = {name: getattr(record, name) for name in ("dataset", "model", "seed", "data_seed", "started")}
    return Reproduction(
        record=row.path,
        method=method,
        splits=splits,
        equal_curves=None if outcome.curves is None else dict(outcome.curves) == dict(record.curves),
        equal_weights=outcome.weights_hash == record.weights_hash if hashed else None,
        hardware=machine,
        changes=_changes(record, machine),
        git_version=commit_of_checkout(),
        **names,
        **spent,
    )


def _require_same_data(record: RunRecord, hashes: Mapping[str, str]) -> None:
    """Refuse other samples than those in the record; a split without a hash was not loaded again."""
    for name, digest in record.data_hashes.items():
        now = hashes.get(name, digest)
        if now != digest:
            raise ResultError(
                f"the split {name} of {record.dataset} has the hash {now}, and {digest} in the record: the data are "
                "other data, so the scores are not compared; `graphbench verify` says which samples differ"
            )


def _of_split(
    record: RunRecord,
    name: str,
    repeated: Mapping[str, float],
    runs: Sequence[RunRecord],
    graphs: int | None,
    tail: float,
) -> SplitComparison:
    """Return the comparison of a split.

    Args:
        record: The record.
        name: The split.
        repeated: Its repeated scores.
        runs: All runs of the configuration.
        graphs: Number of samples that were scored again; None if it is unknown.
        tail: Probability on either side of the interval.
    """
    recorded, total = record.scores[name], record.graphs_scored.get(name)
    primary = find_card(record.dataset).metrics.primary
    metric = primary if primary in recorded and primary in repeated else next(iter(recorded))
    if metric not in repeated:
        raise ResultError(f"the repeated run has no {metric} on {name}, and the record has")
    fewer = graphs if graphs and total and graphs < total else None
    growth = 1.0 if fewer is None or total is None else math.sqrt(total / fewer)
    replicates = record.replicates.get(name) if metric == primary else None
    known, reach = [], 0.0
    if replicates:
        low, high = (float(end) for end in np.quantile(replicates, [tail, 1 - tail]))
        low, high = (recorded[metric] + growth * (end - recorded[metric]) for end in (low, high))
        known.append((low, high))
        reach = (high - low) / 2 if fewer is not None else 0.0
    values = [run.scores[name][metric] for run in runs if metric in run.scores.get(name, {})]
    if (one_more := _of_one_more_run(values, tail, reach)) is not None:
        known.append(one_more)
    lowest, highest = (METRICS[metric].lowest, METRICS[metric].highest) if metric in METRICS else (-math.inf, math.inf)
    return SplitComparison(
        metric=metric,
        recorded=recorded[metric],
        repeated=repeated[metric],
        low=min((max(low, lowest) for low, _ in known), default=None),
        high=max((min(high, highest) for _, high in known), default=None),
        runs=len(values),
        samples=fewer,
        equal=repeatable_scores(recorded) == repeatable_scores(repeated),
    )


def _of_one_more_run(values: Sequence[float], tail: float, further: float) -> tuple[float, float] | None:
    """Return the interval with the probability ``tail`` of one more run on either side; None for too few runs.

    It is ``mean -+ t s sqrt(1 + 1 / n)`` of n runs with the deviation s, for normal scores. ``further`` is half of an
    interval for another cause, such as the choice of fewer samples, which is independent of the run.
    """
    from scipy.stats import t as student

    if len(values) < _LEAST_RUNS:
        return None
    stat = Stat.of(values)
    reach = float(student.ppf(1 - tail, stat.n - 1)) * (stat.std or 0.0) * math.sqrt(1 + 1 / stat.n)
    reach = math.hypot(reach, further)
    return stat.mean - reach, stat.mean + reach


def rows_of_records(stored: Sequence[tuple[str, RunRecord]]) -> list[Row]:
    """Return records as rows, each with the further seeds of its configuration on its draw.

    Args:
        stored: (path below the folder of records, record).
    """
    groups: dict[tuple[str, str, int], list[RunRecord]] = {}
    for _, record in stored:
        groups.setdefault((record.dataset, record.config_hash, record.data_seed), []).append(record)
    return [
        Row(
            path,
            record,
            tuple(
                other
                for other in groups[record.dataset, record.config_hash, record.data_seed]
                if other.seed != record.seed
            ),
        )
        for path, record in stored
    ]


def finished_of(rows: Sequence[Row], outcomes: Sequence[Reproduction], method: Method) -> dict[str, Reproduction]:
    """Return path -> outcome of the records that were repeated with a method; outcomes of older records do not count.

    Args:
        rows: The records.
        outcomes: All outcomes.
        method: How results were obtained again.
    """
    started = {row.path: row.record.started for row in rows}
    return {
        outcome.record: outcome
        for outcome in outcomes
        if started.get(outcome.record) == outcome.started and outcome.method == method
    }


def one_of_each(rows: Sequence[Row], finished: Iterable[str] = ()) -> list[Row]:
    """Return one row of every dataset and configuration: a finished one if there is any, else the shortest.

    Args:
        rows: The rows; seeds and draws of one configuration on one dataset stand for each other.
        finished: Paths of the records that were repeated.
    """
    done = frozenset(finished)
    chosen: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: (row.path not in done, row.minutes)):
        chosen.setdefault((row.record.dataset, row.record.config_hash), row)
    return list(chosen.values())


def _changes(record: RunRecord, machine: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts that decide bits and differ from the record: of the machine, ``cpu A -> B``, and the version."""
    changes = [
        f"{name} {record.hardware[name]} -> {machine.get(name)}"
        for name in _MACHINE
        if name in record.hardware and record.hardware[name] != machine.get(name)
    ]
    if record.graphbench_version != __version__:
        changes.append(f"graphbench {record.graphbench_version} -> {__version__}")
    return tuple(changes)
