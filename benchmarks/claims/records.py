"""Scores of trained models: which runs at the paper's budget are recorded, and what the missing ones would cost."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from statistics import mean
from typing import Any

import graphbench
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from benchmarks.common import RESULTS
from graphbench.catalog.resources import baselines_dir
from graphbench.evaluation.metrics import METRICS
from graphbench.records.files import load_records
from graphbench.records.published import published
from graphbench.records.record import RunRecord

_HOUR = 3600.0


@cache
def _all_records() -> list[RunRecord]:
    return load_records(records=baselines_dir() / "results")


def _records(dataset: str) -> list[RunRecord]:
    """Return the committed records of a dataset or glob, including the records of its representations (``@vg``)."""
    wanted = dataset.split("@")[0]
    return [record for record in _all_records() if fnmatchcase(record.dataset.split("@")[0], wanted)]


def _shown(records: Iterable[RunRecord], metric: str) -> str:
    """Return mean test scores of records by dataset and model, those of one budget together."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        value = record.scores.get("test", {}).get(metric)
        if value is not None:
            groups.setdefault((record.budget.label.split(", ")[0], record.dataset, record.model), []).append(value)
    budgets: dict[str, list[str]] = {}
    for (budget, dataset, model), values in sorted(groups.items()):
        seeds = f"{budget}, {len(values)} seed{'s' if len(values) > 1 else ''}"
        budgets.setdefault(seeds, []).append(f"{model} {mean(values):.3g} on {dataset}")
    return "; ".join(f"{', '.join(texts)} ({budget})" for budget, texts in budgets.items()) or "none"


@check
def printed_runs_are_not_recorded(
    datasets: Sequence[str],
    models: Sequence[str],
    metric: str,
    seeds: int = 3,
    runs: int = 0,
    small: Sequence[str] = (),
    beside: Sequence[Sequence[str]] = (),
    cost: dict[str, Any] | None = None,
) -> Outcome:
    """Runs with the printed budget of which fewer seeds are recorded than the paper has.

    It stops being true as soon as one model of one dataset has as many full-budget records as the paper has seeds: the
    row can then be settled.

    Args:
        datasets: Datasets of the rows.
        models: Configurations with the printed budget.
        metric: Metric of the scores that are shown.
        seeds: Seeds behind a printed number.
        runs: Training runs behind the rows; by default one for each dataset, model and seed.
        small: Small configurations whose scores are shown, never as a reproduction.
        beside: Other datasets, each with configurations whose scores are shown, never as a reproduction.
        cost: How the cost of a run is estimated, see :func:`_hours`.
    """
    full: dict[tuple[str, str], list[RunRecord]] = {}
    others = [record for dataset, *names in beside for record in _records(dataset) if record.model in names]
    for dataset in datasets:
        for record in _records(dataset):
            if record.model in models and record.budget.small is False:
                full.setdefault((record.dataset, record.model), []).append(record)
            elif record.model in small:
                others.append(record)
    complete = [" ".join(key) for key, found in full.items() if len({record.seed for record in found}) >= seeds]
    runs = runs or len(datasets) * len(models) * seeds
    values: dict[str, Any] = {
        "runs": runs,
        "metric": metric.replace("_", " "),
        "full": _shown((record for found in full.values() for record in found), metric),
        "small": _shown(others, metric),
    }
    if cost is not None:
        values |= _hours(cost, runs)
    return Outcome(not complete, values, f"{', '.join(complete)}: {seeds} seeds are recorded; settle the row")


def _hours(cost: dict[str, Any], runs: int) -> dict[str, float]:
    """Return hours of one run and of all.

    Args:
        cost: ``{step: <row of training.json or trajectories.json>, steps: N}`` for a measured step, with the rows of
            ``others``, whose steps are so many times as long. Or ``{record:
            [dataset, model]}``, the time of a recorded run, times a ``factor``, or in proportion to the printed
            ``steps``, ``batch`` and ``weights``. Or numbers of a transformer, see :func:`_hours_of_attention`.
        runs: Number of runs.
    """
    if "tokens" in cost:
        return _hours_of_attention(cost, runs)
    if "step" in cost:
        seconds = _seconds_of_step(cost["step"])
        hours = seconds * cost["steps"] / _HOUR
        times = {name: _seconds_of_step(what) / seconds for name, what in cost.get("others", {}).items()}
        return {"step": seconds, "hours": hours, "all_hours": hours * runs, **times}
    dataset, model = cost["record"]
    found = [r for r in _records(dataset) if r.model == model and r.wall_seconds is not None]
    recorded = mean(r.wall_seconds or 0.0 for r in found) / _HOUR
    factor = float(cost.get("factor", 1.0))
    if "steps" in cost:
        first = found[0]
        factor = cost["steps"] * cost["batch"] * cost["weights"]
        factor /= (first.steps or 1) * (first.batch_size or 1) * (first.parameters or 1)
    hours = recorded * factor
    return {"recorded": recorded, "factor": factor, "hours": hours, "all_hours": hours * runs}


def _seconds_of_step(what: str) -> float:
    """Return the measured seconds of a row of training.json or trajectories.json."""
    for name in ("training", "trajectories"):
        for row in json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]:
            if row["what"] == what:
                return float(row["ours"]) / (1000.0 if row["unit"] == "ms" else 1.0)
    raise ValueError(f"no measurement is called {what!r}")


def _hours_of_attention(cost: dict[str, Any], runs: int) -> dict[str, float]:
    """Return hours on a GPU by counting operations: six for each weight and token, and those of attention.

    Args:
        cost: ``tokens`` of a sample, ``samples`` in all, ``weights``, ``layers``, ``width``, and ``tflops``, the
            operations per second that a GPU is taken to sustain.
        runs: Number of runs.
    """
    attention = 12.0 * cost["layers"] * cost["width"] * cost["tokens"] ** 2
    per_sample = 6.0 * cost["weights"] * cost["tokens"] + attention
    hours = per_sample * cost["samples"] / (1e12 * cost["tflops"]) / _HOUR
    return {"tflops": cost["tflops"], "tokens": cost["tokens"], "hours": hours, "all_hours": hours * runs}


def printed_scores(dataset: str, metric: str, split: str = "test", study: str = "main") -> dict[str, float]:
    """Return the printed scores of a dataset by model, on one split of one study."""
    rows = [row for row in published(dataset) if (row.split, row.metric, row.study) == (split, metric, study)]
    return {row.model: row.value for row in rows if row.value is not None}


@check
def recorded_models_beat_printed(
    models: dict[str, str], worse: Sequence[str], splits: Sequence[str] = ("test",), study: str = "main"
) -> Outcome:
    """Every recorded seed of some models scores better than every printed model on whole splits.

    It stops being true as soon as one seed of one model is recorded that does not, or a dataset has no record.

    Args:
        models: Dataset -> name of the configuration whose records are read: those of data seed 0, of whole splits.
        worse: Names of the printed models, of which every dataset has at least one.
        splits: The splits.
        study: The study of the printed scores.
    """
    texts: list[str] = []
    beside: list[str] = []
    problems = []
    for dataset, model in models.items():
        card = graphbench.card(dataset)
        metric = card.metrics.primary
        is_better: Callable[[float, float], bool] = operator.gt if METRICS[metric].higher_is_better else operator.lt
        for split in splits:
            where = dataset if split == "test" else f"{dataset}, {split}"
            count = card.all_splits[split].count
            whole = [r for r in _records(dataset) if r.graphs_scored.get(split) == count]
            records = [r for r in whole if (r.model, r.data_seed) == (model, 0)]
            scores = [record.scores[split][metric] for record in records]
            scores_printed = printed_scores(dataset, metric, split, study)
            printed = {name: value for name, value in scores_printed.items() if name in worse}
            if not scores or not printed:
                problems.append(f"{where}: {len(scores)} records of {model}, printed {sorted(printed)}")
                continue
            worst = [score for score in scores if not all(is_better(score, value) for value in printed.values())]
            if worst:
                problems.append(f"{where}: seeds of {model} score {worst}, printed {printed}")
            beside.append(f"{', '.join(f'{name} {value:.4g}' for name, value in printed.items())} ({where})")
            texts.append(f"{model} {mean(scores):.4f} on {where} ({_told(records)})")
    return outcome_of(problems, scores="; ".join(texts), printed="; ".join(beside))


def _told(records: Sequence[RunRecord]) -> str:
    """Return how many seeds some records are of, and what one cost."""
    seeds = f"{len(records)} seed{'s' if len(records) > 1 else ''}"
    seconds = [record.cpu_seconds for record in records if record.cpu_seconds is not None]
    cost = f", {mean(seconds) / 60:.1f} CPU minutes" if seconds else ""
    return f"{seeds}, {records[0].parameters:,} weights{cost}"


@check
def no_record_of_files(datasets: Sequence[str], cells: int, cost: dict[str, Any] | None = None) -> Outcome:
    """Datasets that are read from files which this project has not got, or models that are out of reach: no records.

    Args:
        datasets: The datasets.
        cells: Printed numbers that would be answered.
        cost: How the cost of a run is estimated, see :func:`_hours`.
    """
    found = [record.dataset for dataset in datasets for record in _records(dataset)]
    values = {"cells": cells, "datasets": len(datasets), **(_hours(cost, 1) if cost is not None else {})}
    return Outcome(not found, values, f"there are records of {sorted(set(found))}")
