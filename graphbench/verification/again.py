"""Recorded results scored by further metrics, from kept predictions or from weights: nothing is trained again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as find_card
from graphbench.core.errors import CardError, ResultError, UnknownModel
from graphbench.core.files import file_sha256
from graphbench.data.batches.dataset import GraphDataset
from graphbench.evaluation.metrics import metric
from graphbench.loader import Loader, Splits
from graphbench.records.kept import kept_predictions
from graphbench.records.record import RunRecord
from graphbench.tasks.registry import task_of
from graphbench.training.evaluate import open_run
from graphbench.training.scoring import score_split
from graphbench.training.trained import task_for
from graphbench.training.weights.check import agree
from graphbench.training.weights.load import rebuilt
from graphbench.verification.repeat import limits_of_record, weights_of_record

if TYPE_CHECKING:
    from graphbench.evaluation.score import Score


def score_again(
    record: RunRecord,
    path: Path,
    metrics: Sequence[str],
    splits: str | None = None,
    *,
    run: Path | None = None,
    predictions: Path | None = None,
    scores: str | None = None,
    root: str | Path | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> RunRecord:
    """Return a record with the scores of further metrics.

    The predictions are those that are kept beside the record, or given again; else they are computed from the weights
    of the run, or from the stored weights that name the record. Their primary score must be the recorded one.

    Args:
        record: The record.
        path: Its file.
        metrics: Names of registered metrics that fit the dataset's task.
        splits: Names of the splits to score, separated by commas; all that the record has scores of when None.
        run: Folder of the run, if it is there.
        predictions: The file of predictions that was scored, or the folder with a file per split.
        scores: Kind of floating-point predictions, of kept predictions; None for the default of the task.
        root: Folder of the datasets.
        workers: Processes that generate missing data.
        progress: Show progress bars; None shows them in a terminal.

    Raises:
        ResultError: If a metric does not fit, there are neither predictions nor weights, or these are of another run.
        EvaluationError: If a metric is not registered.
        CardError: If the dataset has no such split.
    """
    card = find_card(record.dataset).with_data_seed(record.data_seed)
    names = card.select_splits(splits) or [name for name in record.scores if name in card.all_splits]
    if missing := [name for name in names if name not in record.scores]:
        raise ResultError(f"the record of {record.model} on {record.dataset} has no scores of {', '.join(missing)}")
    wider = _with_metrics(card, metrics)
    config_limit = record.config.get("limit")
    limits = limits_of_record(record, card, config_limit if isinstance(config_limit, int) else None)
    options: dict[str, Any] = {"root": root, "workers": workers, "progress": progress}
    data: Splits = Loader(card.address, limit=limits, data_seed=record.data_seed, **options).load(())
    scored = {name: data.labelled(name) for name in names}
    for name, split in scored.items():
        if record.data_hashes.get(name, split.content_hash) != split.content_hash:
            raise ResultError(f"the samples of {name} here are others than in the record of {record.dataset}")
    files = {
        name: _given(record, predictions, name, wider) if predictions else kept_predictions(record, path, name)
        for name in names
    }
    if all(files.values()):
        split_scores = _from_predictions(record, wider, data, scored, files, scores)
    else:
        split_scores = _from_weights(record, path, wider, data, scored, run, progress)
    return _merged(record, card, split_scores, metrics)


def _given(record: RunRecord, place: Path, split: str, card: Card) -> Path:
    """Return the file of a split's predictions that is given again, which must be the one that was scored."""
    file = place if place.is_file() else task_of(card).find_predictions(place, split)
    if file is None:
        raise ResultError(f"{place} has no predictions of {split}; give the file or the folder that was scored")
    if split not in record.predictions:
        raise ResultError(f"the record does not say which predictions of {split} were scored; score them anew")
    if file_sha256(file) != record.predictions[split]:
        one_of_several = place.is_file() and len(record.predictions) > 1
        several = f"; give the folder with the files of {', '.join(record.predictions)}" if one_of_several else ""
        raise ResultError(
            f"{file} is not the file whose scores of {split} are recorded: its hash is another one{several}"
        )
    return file


def is_score_of(name: str, metrics: Sequence[str]) -> bool:
    """Return whether a score is of one of some metrics, or of a part or output of it, as ``mae_temperature``."""
    return any(name == metric or name.startswith(f"{metric}_") for metric in metrics)


def _with_metrics(card: Card, names: Sequence[str]) -> Card:
    """Return a card that reports further metrics.

    Raises:
        ResultError: If a metric does not fit the task.
    """
    for name in names:
        metric(name)
    also = tuple(dict.fromkeys((*card.metrics.also, *names)))
    wider = card.model_copy(update={"metrics": card.metrics.model_copy(update={"also": also})})
    try:
        task_of(wider)
    except CardError as error:
        raise ResultError(f"{', '.join(names)} does not fit {card.address}: {error}") from error
    return wider


def _from_predictions(
    record: RunRecord,
    card: Card,
    data: Splits,
    splits: Mapping[str, GraphDataset],
    files: Mapping[str, Any],
    scores: str | None,
) -> dict[str, Score]:
    training = record.config.get("training")
    options = training.get("task") if isinstance(training, Mapping) else None
    task = task_of(card, options)
    task.read_training(data)
    split_scores: dict[str, Score] = {}
    for name, split in splits.items():
        split_scores |= task.score_file(files[name], split, scores)
    return split_scores


def _from_weights(
    record: RunRecord,
    path: Path,
    card: Card,
    data: Splits,
    splits: Mapping[str, GraphDataset],
    run: Path | None,
    progress: bool | None,
) -> dict[str, Score]:
    split_scores: dict[str, Score] = {}
    if run is not None:
        finished = open_run(run)
        task = finished.task(card, data)
        for name, split in splits.items():
            split_scores |= finished.learner.score(task, card.address, split, name, "auto", progress)
        return split_scores
    import torch

    try:
        file = weights_of_record(record, record.relative_path.as_posix())
    except UnknownModel as error:
        large = " (its predictions were too large to be kept beside it)" if record.predictions else ""
        raise ResultError(
            f"there are neither predictions nor weights of {path.name}{large}; give the predictions that were scored "
            f"(--predictions), or the folder of its run; {error}"
        ) from error
    model = rebuilt(file)
    task = task_for(model, card)
    for name, split in splits.items():
        split_scores |= score_split(model, task, split, name=name, device=torch.device("cpu"), progress=progress)
    return split_scores


def _merged(record: RunRecord, card: Card, found: Mapping[str, Score], metrics: Sequence[str]) -> RunRecord:
    primary, scores = card.metrics.primary, {name: dict(recorded) for name, recorded in record.scores.items()}
    for name, score in found.items():
        if name not in scores:
            continue
        before = scores[name].get(primary)
        if before is not None and not agree(before, score[primary]):
            raise ResultError(
                f"{primary} on {name} is {score[primary]:g} now and {before:g} in the record: the predictions or "
                "weights are of another run; give those of the recorded run"
            )
        fresh = {key: value for key, value in score.items() if is_score_of(key, metrics)}
        if not fresh:
            whys = [f": {score.undefined[one]}" for one in metrics if one in score.undefined]
            raise ResultError(f"{', '.join(metrics)} has no value on {name} of {card.address}{''.join(whys[:1])}")
        scores[name] |= fresh
    try:
        return RunRecord.model_validate({**record.model_dump(by_alias=True), "scores": scores})
    except ValueError as error:
        raise ResultError(f"the scores are refused: {error}") from error
