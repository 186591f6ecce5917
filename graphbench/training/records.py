"""The record of a run on one dataset, made in one place for every kind of task and of learner."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from graphbench._version import __version__
from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.core.errors import ResultError
from graphbench.core.validation import explain
from graphbench.data.build.limits import limited_parameter
from graphbench.evaluation.score import Score, replicates_of
from graphbench.records.budgets import Budget
from graphbench.records.classes import FINE_TUNED
from graphbench.records.files import read_record
from graphbench.records.machine import commit_of_checkout, hardware
from graphbench.records.record import RunRecord
from graphbench.training.checkpoint import weights_hash
from graphbench.training.config import RunConfig
from graphbench.training.context import RunContext, TaskRun
from graphbench.training.folders import record_path, stated_source
from graphbench.training.learners.base import FitSummary, Learner

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

logger = logging.getLogger(__name__)


def record_of(
    context: RunContext,
    id_: str,
    learner: Learner,
    summary: FitSummary,
    splits: Mapping[str, GraphDataset],
    scores: Mapping[str, Score],
) -> RunRecord:
    """Return the record of a run on one of its datasets; scores in an earlier record of the same weights are kept.

    Args:
        context: The run.
        id_: The dataset.
        learner: The trained learner.
        summary: Summary of the training.
        splits: The splits that were scored.
        scores: Their scores, by name.

    Raises:
        ResultError: If a value is refused, such as one that is not finite.
    """
    run, config, several = context.runs[id_], context.config, len(context.runs) > 1
    card = run.card
    alone, together = learner.latencies_ms(run, id_)
    weights: dict[str, Any] = {
        "dataset": card.address,
        "dataset_version": card.version,
        "data_fingerprint": run.val.data_fingerprint,
        "data_seed": card.data_seed,
        "seed": config.training.seed,
        "steps": summary.steps,
        "best_step": summary.best_step,
        "curves": dict(summary.curves),
    }
    earlier = _earlier_record(record_path(context.folder, id_ if several else None), **weights)
    results = _merged_results(card, splits, scores, earlier)
    fields: dict[str, Any] = dict(
        **weights,
        scores=results["scores"],
        graphs_scored=results["graphs_scored"],
        graphs_loaded={name: split.stored_graphs for name, split in run.stored.items()},
        replicates=results["replicates"],
        data_hashes={**{name: split.content_hash for name, split in run.stored.items()}, **results["data_hashes"]},
        model=config.model_name,
        config=_stated_config(config.model_copy(update={"dataset": id_}) if several else config),
        parameters=summary.parameters,
        batch_size=summary.batch_size,
        budget=_budget(context, run, summary, results["graphs_scored"]),
        hardware={**hardware(), "device": str(learner.device), "processes": context.world.size},
        graphbench_version=__version__,
        git_version=commit_of_checkout(),
        started=datetime.fromisoformat(summary.started),
        wall_seconds=summary.wall_seconds,
        cpu_seconds=summary.cpu_seconds,
        operations=summary.operations,
        threads=summary.threads,
        deterministic=summary.deterministic,
        peak_memory_bytes=summary.peak_memory_bytes,
        throughput_graphs_per_s=summary.samples_per_second,
        latency_ms=alone,
        latency_ms_batched=together,
        protocol=protocol_of_run(run.task.protocol(config.training.train_split), config),
        weights_hash=weights_hash(learner.model),
        notes=_notes(context, run, learner, summary, results, earlier),
    )
    try:
        return RunRecord(**fields)
    except ValidationError as error:
        raise ResultError(f"the record of the run on {id_} is refused: {explain(error, RunRecord)}") from error


def protocol_of_run(protocol: str | None, config: RunConfig) -> str | None:
    """Return the protocol of a run: a run that starts from other weights has one of its own, and no common ranking.

    Args:
        protocol: The protocol of its data.
        config: Its configuration.
    """
    if config.training.start is None:
        return protocol
    return FINE_TUNED if protocol is None else f"{protocol}:{FINE_TUNED}"


def _stated_config(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as a record holds it, which names no folder of the machine."""
    start = config.training.start
    if start is None:
        return config.to_dict()
    stated = start.model_copy(update={"source": stated_source(start.source)})
    return config.model_copy(update={"training": config.training.model_copy(update={"start": stated})}).to_dict()


def _merged_results(
    card: Card, splits: Mapping[str, GraphDataset], scores: Mapping[str, Score], earlier: RunRecord | None
) -> dict[str, dict[str, Any]]:
    """Return scores, samples and hashes of every split scored now or earlier, in the card's order."""
    sized = {name: score.graphs for name, score in scores.items() if name not in splits}
    results: dict[str, dict[str, Any]] = {
        "scores": {name: score.to_dict() for name, score in scores.items()},
        "graphs_scored": {**{name: split.stored_graphs for name, split in splits.items()}, **sized},
        "replicates": replicates_of(scores),
        "data_hashes": {name: split.content_hash for name, split in splits.items()},
    }
    if earlier is None:
        return results
    kept = {key: _of_splits(getattr(earlier, key), card.all_splits.keys() - splits.keys()) for key in results}
    merged = {key: kept[key] | values for key, values in results.items()}
    return {key: _of_splits(values, card.all_splits) for key, values in merged.items()}


def _of_splits(values: Mapping[str, Any], splits: Iterable[str]) -> dict[str, Any]:
    """Return the values of some splits, in their order, each followed by the values of its parts (``test_n16``)."""
    names = set(splits)

    def owner(name: str) -> str:
        return name if name in names else max((s for s in names if name.startswith(f"{s}_")), key=len, default="")

    return {name: value for split in splits for name, value in values.items() if owner(name) == split}


def _budget(context: RunContext, run: TaskRun, summary: FitSummary, scored: Mapping[str, int]) -> Budget:
    """Return the budget of a run, measured against its configuration file and the card.

    A run is small if it trained on, was selected on or was tested on a part of a split. Of the other splits a part may
    be scored: every table that shows such a score compares it with scores on the same samples alone.
    """
    config, samples = context.config, run.task.samples
    together = f" over {len(config.datasets)} datasets" if config.datasets else ""
    used = {name: split.stored_graphs for name, split in run.stored.items()}
    if summary.steps is None:
        words = [f"{used.get(config.training.train_split, 0):,} training {samples}{together}"]
    else:
        words = [f"{summary.steps} steps of {config.training.batch_size} {samples}{together}"]
    limited = limited_parameter(run.card)
    partly_used, partly_scored = partial_splits(run.card, used), partial_splits(run.card, scored)
    partly_scored = {name: text for name, text in partly_scored.items() if name in run.card.splits}
    if config.limit is not None and limited is not None:
        words.append(f"at most {config.limit:,} {limited} in each split")
    elif config.limit is not None and any(
        spec.count > config.limit for name, spec in run.card.all_splits.items() if name in {*used, *scored}
    ):
        words.append(f"first {config.limit:,} samples of each split")
    words += [text for name, text in partly_used.items() if config.limit is None or used[name] < config.limit]
    if any(config.limit is None or (limited is None and scored[name] < config.limit) for name in partly_scored):
        words.append(f"scored on part of the {samples}")
    if config.reference_steps is None and summary.steps is not None:
        words.append("a configuration of one's own")
    elif config.overridden:
        changed = ", ".join(_without_parts(config.overridden))
        words.append(f"a configuration of one's own ({config.model_name} with another {changed})")
    return Budget(small=config.is_small or bool(partly_used or partly_scored), label=", ".join(words))


def _without_parts(keys: Sequence[str]) -> list[str]:
    """Return the dotted keys without the keys that lie in another one of them."""
    return [key for key in keys if not any(key.startswith(f"{other}.") for other in keys)]


def partial_splits(card: Card, graphs: Mapping[str, int]) -> dict[str, str]:
    """Return split -> e.g. ``val 100 of 10,000``, for the splits with fewer samples than the card states."""
    full = {name: spec.count for name, spec in card.all_splits.items() if name in graphs}
    return {name: f"{name} {graphs[name]:,} of {full[name]:,}" for name in graphs if graphs[name] < full.get(name, 0)}


def _notes(
    context: RunContext,
    run: TaskRun,
    learner: Learner,
    summary: FitSummary,
    results: Mapping[str, Mapping[str, Any]],
    earlier: RunRecord | None,
) -> str:
    """Return the facts that a reader of the scores must know, in sentences."""
    card, config = run.card, context.config
    scored = [name for name in results["graphs_scored"] if name in card.all_splits]
    notes = [f"trained on {len(context.runs)} datasets, {_mixture_words(config)}"] if len(context.runs) > 1 else []
    if learner.started and config.training.start is not None:
        notes.append(f"starts from {stated_source(config.training.start.source)} ({learner.started})")
    notes += run.task.notes(learner.model, run.data, config.training, scored)
    if config.training.val_split != CORE_SPLITS[1]:
        notes.append(f"selected on {config.training.val_split}")
    notes += summary.notes
    partly = partial_splits(card, results["graphs_scored"])
    if partly:
        notes.append(f"{run.task.samples} scored: {', '.join(partly.values())}")
    undefined = [
        f"{m} of {name}" for name, values in results["scores"].items() for m in card.metrics.also if m not in values
    ]
    if undefined:
        notes.append(f"undefined and left out: {', '.join(undefined)}")
    if earlier is not None and results["scores"].keys() > results["graphs_scored"].keys():
        notes.append(earlier.notes)  # of a version that did not count the graphs
    return "; ".join(dict.fromkeys(note for note in notes if note))


def _mixture_words(config: RunConfig) -> str:
    mixture = config.training.mixture
    if mixture == "turns":
        return "one update each in turn"
    if mixture == "proportional":
        return "updates in proportion to their training samples"
    return f"updates by weight ({', '.join(f'{name} {weight:g}' for name, weight in mixture.items())})"


def _earlier_record(path: Path, **shared: Any) -> RunRecord | None:
    """Return the record that an earlier scoring of the same weights left, or None.

    Args:
        path: The record's file.
        shared: Fields that must have the same value; a record with another number of steps has other weights.
    """
    try:
        record = read_record(path)
    except ResultError as error:
        if path.exists():
            logger.warning("the scores of an earlier record are lost: %s", error)
        return None
    return record if all(getattr(record, name) == value for name, value in shared.items()) else None
