"""Files of predictions, scored split by split, and the record of a user's model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import card as card_of
from graphbench.core.errors import EvaluationError

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits
    from graphbench.records.record import RunRecord
    from graphbench.records.stated import Stated, StatedCost
    from graphbench.tasks.base import Task


def score_predictions(
    dataset: str,
    splits: str | None,
    path: Path,
    scores: str | None = None,
    *,
    limit: int | None,
    stated: Stated | None = None,
    records: Path | None = None,
    **source: Any,
) -> tuple[dict[str, Score], Path | None]:
    """Score files of predictions in the order of their splits; return the scores by name, and where the record lies.

    Args:
        dataset: Id or alias.
        splits: Names of the splits, separated by commas; None for ``test``, or for all that a folder has files of.
        path: A file for one split, or a folder with a file per split.
        scores: Kind of floating-point predictions (``logit``, ...); None for the default of the kind of task.
        limit: Samples of each split.
        stated: The user's statements on the model, for the record; None for no record.
        records: Folder of the record.
        source: Where the data are: further arguments of :class:`graphbench.loader.Loader`.
    """
    from graphbench.loader import Loader
    from graphbench.tasks.registry import task_of

    data: Splits = Loader(card_of(dataset).address, limit=limit, **source).load(())
    task = task_of(data.card)
    files = _files(path, splits, task)
    task.read_training(data)
    scores_by_name: dict[str, Score] = {}
    for name in files:
        task.require_labels(data[name])
    for name, file in files.items():
        scores_by_name |= _scores_of_file(task, file, data[name], scores)
    if stated is None or records is None:
        return scores_by_name, None
    from dataclasses import replace

    from graphbench.records.files import save_record
    from graphbench.records.kept import hashes_of_predictions, keep_predictions
    from graphbench.records.record import RunRecord

    stated = replace(stated, predictions=hashes_of_predictions(files))
    record = RunRecord.of_statement({name: data[name] for name in files}, scores_by_name, stated)
    path = save_record(record, records)
    keep_predictions(path, files)
    return scores_by_name, path


def stated_cost(
    file: Path | None,
    seconds: float | None,
    cpu_seconds: float | None,
    memory: float | None,
    cpu: str | None,
    gpu: str | None,
) -> StatedCost | None:
    """Return the stated cost of a training; None where nothing is stated.

    Args:
        file: The file of a measured cost.
        seconds: Time on the clock.
        cpu_seconds: Processor time.
        memory: Peak memory in MB.
        cpu: Name of the processor.
        gpu: Name of the GPU.

    Raises:
        ResultError: If the file holds no cost, or other options state the cost too.
    """
    from graphbench.core.errors import ResultError
    from graphbench.records.stated import StatedCost, stated_machine

    nothing_else = (seconds, cpu_seconds, memory, cpu, gpu) == (None,) * 5
    if file is not None:
        if not nothing_else:
            raise ResultError(
                "--cost gives a measured cost; leave --train-seconds, --cpu-seconds, --memory, --cpu and --gpu out"
            )
        return StatedCost.load(file)
    if nothing_else:
        return None
    peak = None if memory is None else round(1e6 * memory)
    return StatedCost(seconds, cpu_seconds, peak_memory_bytes=peak, hardware=stated_machine(cpu, gpu))


def add_metrics(
    target: Path,
    metrics: Sequence[str],
    splits: str | None,
    *,
    records: Path | None,
    root: Path | None,
    scores: str | None = None,
    predictions: Path | None = None,
) -> list[tuple[RunRecord, Path]]:
    """Add the scores of further metrics to the record of a run, or to a record, and return records with their files.

    Args:
        target: Folder of a run, or file of a record.
        metrics: Names of metrics.
        splits: Names of splits, separated by commas; None for all that have scores.
        records: Folder that the records are written to; None replaces their files.
        root: Folder of the datasets.
        scores: Kind of floating-point predictions, of kept predictions.
        predictions: The predictions that were scored, where none are kept.
    """
    from graphbench.records.files import RECORD, read_record, save_record
    from graphbench.records.verifications import confirm, confirmed_in
    from graphbench.training.folders import RECORDS
    from graphbench.verification.again import score_again

    run = target if target.is_dir() else None
    files = [target] if run is None else [*sorted((target / RECORDS).rglob("*.json")), *target.glob(RECORD)]
    if not files or not files[0].is_file():
        raise EvaluationError(f"{target} is neither a record nor the folder of a finished run")
    written = []
    for path in files:
        how: dict[str, Any] = {"run": run, "root": root, "scores": scores, "predictions": predictions}
        known = read_record(path)
        listed_in = confirmed_in(path, known.digest)
        record = score_again(known, path, metrics, splits, **how)
        place = save_record(record, path=path) if records is None else save_record(record, records)
        if listed_in is not None:
            confirm(listed_in if records is None else records, record.digest)
        written.append((record, place))
    return written


def _scores_of_file(task: Task, file: Path, split: GraphDataset, scores: str | None) -> dict[str, Score]:
    """Return the scores of one file.

    Raises:
        EvaluationError: If the predictions are refused; the message names the file, and options of the command line.
    """
    from graphbench.evaluation.inputs import AS_LOGITS

    try:
        return task.score_file(file, split, scores)
    except EvaluationError as error:
        words = str(error).replace(AS_LOGITS, "add --scores logit")
        raise type(error)(words if str(file) in words else f"{file} ({split.split}): {words}") from error


def _files(path: Path, splits: str | None, task: Task) -> dict[str, Path]:
    """Return split -> file of its predictions.

    Raises:
        EvaluationError: If there is no file for a split, or a file for several.
    """
    card = task.card
    chosen = card.select_splits(splits)
    if task.is_one_split(path):
        names = chosen or ["test"]
        if len(names) > 1:
            raise EvaluationError(
                f"{path} is one file for {len(names)} splits; give a folder with one file per split ({names[0]}.npz)"
            )
        return {names[0]: path}
    known = chosen or tuple(card.all_splits)
    files = {name: file for name in known if (file := task.find_predictions(path, name)) is not None}
    missing = [name for name in chosen if name not in files]
    if missing or not files:
        what = missing[0] if missing else next(iter(card.all_splits))
        raise EvaluationError(
            f"{path} has no predictions of {missing[0] if missing else 'any split'}; {task.describe_files(what)}"
        )
    return files
