"""Recorded results obtained again: by training the recorded configuration, or from the stored weights of the row.

A repeated run takes everything from the record: configuration, seeds, draw, budget, the number of threads, and how many
samples of each split were scored. On a processor of the same kind, with the same version of torch, its scores have the
same bits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from graphbench.catalog.names import card as find_card
from graphbench.core.errors import GraphBenchError, ResultError, UnknownModel
from graphbench.data.build.limits import apply_limit, limited_parameter
from graphbench.data.store.layout import data_fingerprint
from graphbench.loader import Loader, Splits
from graphbench.records.classes import is_on_gpu
from graphbench.records.earlier_names import config_in_current_names
from graphbench.records.machine import processor_seconds
from graphbench.records.record import RunRecord
from graphbench.tasks.base import Task
from graphbench.training.checkpoint import weights_hash
from graphbench.training.config import RunConfig, run_config_from_json
from graphbench.training.evaluate import evaluate_splits
from graphbench.training.folders import run_name
from graphbench.training.run import RunPlan, checked_tasks, execute
from graphbench.training.splits import choose_splits
from graphbench.training.weights.files import WeightsFile, find_weights, weights_files
from graphbench.training.weights.load import rebuilt
from graphbench.verification.reproduction import Method, Outcome, Reproduction, Row, compared

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset


def reproduce(
    rows: Sequence[Row],
    folder: Path,
    *,
    root: str | Path | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    weights_suffice: bool = False,
    samples: int | None = None,
) -> Iterator[tuple[Row, Reproduction | GraphBenchError]]:
    """Train the configurations of some records again and yield each record with its comparison, or with the error.

    Records of one run on several datasets are repeated by one run. A run that was interrupted goes on where it was.

    Args:
        rows: The records.
        folder: Folder of the runs.
        root: Folder of the datasets; None for the default root.
        workers: Processes that generate missing data.
        progress: Show a progress bar; None shows it in a terminal.
        weights_suffice: Compute no scores where all weights and curves of the run are the recorded ones: the scores of
            the same weights on the same data follow.
        samples: Most samples of a split that are scored; None for as many as in the record. Splits that models are
            selected on, and splits without replicates in the record, are scored whole.

    Yields:
        Every row with its reproduction, or with the error that its record or run raised.
    """
    for together in _runs(rows):
        spent = _stopwatch()
        try:
            plan = _plan([row.record for row in together], folder)
            with _threads(together[0].record.threads):
                how: dict[str, Any] = {"root": root, "workers": workers, "progress": progress}
                outcomes = _outcomes(together, plan, how, weights_suffice, samples)
        except GraphBenchError as error:
            yield from ((row, error) for row in together)
            continue
        times = spent()
        for row in together:
            yield row, _compared_or_error(row, "training", outcomes[row.record.dataset], times)


def _outcomes(
    rows: Sequence[Row], plan: RunPlan, how: Mapping[str, Any], weights_suffice: bool, samples: int | None
) -> dict[str, Outcome]:
    """Carry out the plan of some records and return dataset -> outcome, without scores where the weights suffice.

    A run that was trained without scores and has other weights than recorded is scored afterwards.

    Args:
        rows: The records of the run.
        plan: The plan.
        how: How data are loaded and progress is shown.
        weights_suffice: As for :func:`reproduce`.
        samples: As for :func:`reproduce`.
    """

    def outcome(known: RunRecord, repeated: RunRecord) -> Outcome:
        unread = _unread_splits(known, plan.tasks[known.dataset], plan.config)
        of_run = Outcome.of_run(repeated)
        hashes = {name: digest for name, digest in of_run.data_hashes.items() if name not in unread}
        return replace(of_run, data_hashes=hashes)

    def run(part: RunPlan) -> dict[str, Outcome]:
        results = execute(part, device=_device(rows[0].record), **how)
        return {row.record.dataset: outcome(row.record, results[row.record.dataset].record) for row in rows}

    if weights_suffice and all(row.record.weights_hash is not None for row in rows):
        outcomes = run(replace(plan, scored={id_: () for id_ in plan.scored}))
        if all(_has_recorded_weights(row.record, outcomes[row.record.dataset]) for row in rows):
            whole = _of_whole_splits(outcomes, plan, how)
            return {id_: replace(outcome, scores=None) for id_, outcome in whole.items()}
    return run(plan) if samples is None else _of_whole_splits(run(_of_samples(plan, rows, samples)), plan, how)


def _of_samples(plan: RunPlan, rows: Sequence[Row], samples: int) -> RunPlan:
    """Return a plan that scores at most some samples of each split, see :func:`reproduce`."""
    wanted, settings = {row.record.dataset: row.record for row in rows}, plan.config.training
    limits = dict(plan.limits)
    for id_, card in plan.cards.items():
        known = limits[id_]
        if limited_parameter(card) is not None:
            continue
        by_split = dict(known) if isinstance(known, Mapping) else {}
        for name in plan.scored[id_]:
            if name not in (settings.train_split, settings.val_split) and wanted[id_].replicates.get(name):
                by_split[name] = min(by_split.get(name, card.all_splits[name].count), samples)
        limits[id_] = by_split or None
    return replace(plan, limits=limits)


def _has_recorded_weights(record: RunRecord, outcome: Outcome) -> bool:
    return record.weights_hash == outcome.weights_hash and dict(record.curves) == dict(outcome.curves or {})


def _of_whole_splits(outcomes: Mapping[str, Outcome], plan: RunPlan, how: Mapping[str, Any]) -> dict[str, Outcome]:
    """Return the outcomes of a run that scored no or fewer samples, with the hashes of the samples of its records."""
    whole = {}
    for id_, outcome in outcomes.items():
        splits = _opened(plan.cards[id_], plan.limits[id_], plan.scored[id_], how)
        whole[id_] = replace(outcome, data_hashes={**outcome.data_hashes, **_hashes(splits)})
    return whole


def _opened(
    card: Card, limits: int | Mapping[str, int] | None, names: Sequence[str], how: Mapping[str, Any]
) -> dict[str, GraphDataset]:
    """Return some splits of the draw of a card; ``how`` holds further arguments of the loader."""
    loader = Loader(card.address, limit=limits, data_seed=card.data_seed, **how)
    return choose_splits(cast(Splits, loader.load(())), names)


def _hashes(splits: Mapping[str, GraphDataset]) -> dict[str, str]:
    return {name: split.content_hash for name, split in splits.items()}


def rescore(
    rows: Iterable[Row], *, root: str | Path | None = None, workers: int | None = None, progress: bool | None = None
) -> Iterator[tuple[Row, Reproduction | GraphBenchError]]:
    """Score the stored weights of some records and yield each record with its comparison, or with the error.

    Args:
        rows: The records.
        root: Folder of the datasets; None for the default root.
        workers: Processes that generate missing data.
        progress: Show a progress bar; None shows it in a terminal.

    Yields:
        Every row with its reproduction, or with the error: ``UnknownModel`` where the record's run has no weights.
    """
    for row in rows:
        spent = _stopwatch()
        try:
            outcome = _outcome_of_weights(row, root, workers, progress)
        except GraphBenchError as error:
            yield row, error
            continue
        yield row, _compared_or_error(row, "weights", outcome, spent())


def rows_with_weights(rows: Iterable[Row]) -> list[Row]:
    """Return the records whose weights are stored.

    Raises:
        CheckpointError: If a file of weights cannot be read.
    """
    stored = {facts.record for file in weights_files() for facts in file.facts.datasets.values()}
    return [row for row in rows if row.path in stored]


def _stopwatch() -> Callable[[], dict[str, Any]]:
    """Return a function that gives the start, and the time since then on the clock and of the processors."""
    start, wall, cpu = datetime.now(UTC), time.monotonic(), processor_seconds()

    def spent() -> dict[str, Any]:
        seconds = {"wall_seconds": time.monotonic() - wall, "cpu_seconds": processor_seconds() - cpu}
        return {"repeated_at": start, **seconds}

    return spent


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows by run: those of datasets that were trained together are one run."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        config = row.record.config
        key = row.path
        if config.get("datasets"):
            shared = {name: value for name, value in config.items() if name != "dataset"}
            key = json.dumps([shared, row.record.started.isoformat()], sort_keys=True)
        runs.setdefault(key, []).append(row)
    return list(runs.values())


def _config(record: RunRecord) -> RunConfig:
    if "training" not in record.config:
        raise ResultError(
            f"the scores of {record.model} on {record.dataset} were stated and belong to no run of this package, so "
            "there is nothing to train; choose a record that `graphbench train` wrote"
        )
    config = config_in_current_names(record.config)
    return run_config_from_json(json.dumps(config), f"the record of {record.model} on {record.dataset}")


def _plan(records: Sequence[RunRecord], folder: Path) -> RunPlan:
    """Return the plan of the run that wrote some records, one per dataset.

    Raises:
        ResultError: If the scores belong to no run, or the data of the run cannot be made again.
    """
    first = records[0]
    config = _config(first)
    ids = config.datasets or (config.dataset,)
    if config.datasets:
        config = config.model_copy(update={"dataset": ids[0]})
    cards = {id_: find_card(id_).with_data_seed(config.data_seed) for id_ in ids}
    for record in records:
        _require_data(record, cards[record.dataset], config)
    tasks = checked_tasks(config, cards)
    wanted = {record.dataset: record for record in records}
    scored = {
        id_: [name for name in card.all_splits if id_ in wanted and name in wanted[id_].scores]
        for id_, card in cards.items()
    }
    limits = {id_: _limits(wanted.get(id_, first), card, config, tasks[id_]) for id_, card in cards.items()}
    name = "-and-more" if config.datasets else ""
    parts = ids[0].replace(":", "-").split("/")
    return RunPlan(
        config, cards, tasks, scored, limits, folder.joinpath(*parts[:-1], parts[-1] + name, run_name(config))
    )


def _require_data(record: RunRecord, card: Card, config: RunConfig) -> None:
    """Refuse a record of another version of its dataset, or of published files."""
    limited, _ = apply_limit(card, config.limit)
    if record.dataset_version != card.version:
        raise ResultError(
            f"the record of {record.model} on {record.dataset} is of version {record.dataset_version} of the dataset, "
            f"and the card has version {card.version}; install graphbench {record.graphbench_version}"
        )
    if record.data_fingerprint not in ("", data_fingerprint(limited)):
        raise ResultError(
            f"{record.model} on {record.dataset} was trained on other data ({record.data_fingerprint}) than the card "
            f"describes ({data_fingerprint(limited)}), such as published files; train on these files with `graphbench "
            "train --source`"
        )


def _unread_splits(record: RunRecord, task: Task, config: RunConfig) -> set[str]:
    """Return the splits of a run that nothing depends on, whose labels may take hours.

    Where nothing was trained, these are the validation split, and the training split unless the task reads it. A split
    of which the record has a score is read.
    """
    if not record.untrained or limited_parameter(task.card) is not None:
        return set()
    unread = {config.training.val_split}
    if not task.reads_training:
        unread.add(config.training.train_split)
    return unread - record.scores.keys()


def _limits(record: RunRecord, card: Card, config: RunConfig, task: Task | None = None) -> int | dict[str, int] | None:
    """Return the limits that the splits of a run were loaded with, and 1 for splits that nothing depends on.

    Args:
        record: The record of the run.
        card: The card of its draw.
        config: Its configuration.
        task: Its task, if the run is carried out again; None if the scored splits alone are read.
    """
    limits, settings = limits_of_record(record, card, config.limit), config.training
    if limited_parameter(card) is not None:
        return limits
    by_split = dict(limits) if isinstance(limits, dict) else {}
    if settings.train_limit is not None:
        train = settings.train_split
        by_split[train] = min(by_split.get(train, settings.train_limit), settings.train_limit)
    if task is not None:
        by_split |= dict.fromkeys(_unread_splits(record, task, config), 1)
    return by_split or None


def limits_of_record(record: RunRecord, card: Card, limit: int | None) -> int | dict[str, int] | None:
    """Return the limits with which the samples of a record are loaded.

    Args:
        record: The record.
        card: The card of its draw.
        limit: The limit of all splits of the run; None where it had none.
    """
    if limited_parameter(card) is not None:
        return limit
    limits = {} if limit is None else dict.fromkeys(card.all_splits, limit)
    counts = {name: spec.count for name, spec in card.all_splits.items()}
    loaded = {**record.graphs_loaded, **record.graphs_scored}
    limits |= {name: graphs for name, graphs in loaded.items() if graphs < counts.get(name, 0)}
    return limits or None


def _device(record: RunRecord) -> str:
    """Return the kind of device that the record was trained on, where this machine has one."""
    return "auto" if is_on_gpu(record) else "cpu"


def times_count_here(row: Row) -> bool:
    """Return whether this machine has the kind of device on which the record's training took its time."""
    return not is_on_gpu(row.record) or torch.cuda.is_available()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Let torch compute with a number of threads while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weights_of_record(record: RunRecord, path: str) -> WeightsFile:
    """Return the file of the stored weights of a record's run.

    Args:
        record: The record.
        path: Its path below the folder of records, which the file of the weights names.

    Raises:
        UnknownModel: If there are no weights of the run.
        CheckpointError: If their file cannot be read.
    """
    file = find_weights(record.dataset, record.model, record.seed)
    if (stored := file.facts.datasets[record.dataset].record) != path:
        raise UnknownModel(
            f"the weights of {record.model} on {record.dataset} belong to the record {stored}, not to {path}; "
            "choose that record, or train the model again without --weights"
        )
    return file


def _outcome_of_weights(row: Row, root: str | Path | None, workers: int | None, progress: bool | None) -> Outcome:
    """Return the scores of the stored weights of a record, on the splits that the record has scores of.

    Raises:
        UnknownModel: If there are no weights of this run.
        ConfigError: If the weights belong to other data or code.
        CheckpointError: If their file is damaged.
    """
    record = row.record
    file = weights_of_record(record, row.path)
    config = _config(record)
    card = find_card(record.dataset).with_data_seed(config.data_seed)
    _require_data(record, card, config)
    limits, names = _limits(record, card, config), [name for name in card.all_splits if name in record.scores]
    splits = _opened(card, limits, names, {"root": root, "workers": workers, "progress": progress})
    model = rebuilt(file)
    with _threads(record.threads):
        scores = evaluate_splits(model, splits, config.training.eval_batch_size, "cpu", progress=progress)
    return Outcome(scores, _hashes(splits), weights_hash=weights_hash(model))


def _compared_or_error(
    row: Row, method: Method, outcome: Outcome, spent: Mapping[str, Any]
) -> Reproduction | ResultError:
    try:
        return compared(row, method, outcome, spent)
    except ResultError as error:
        return error
