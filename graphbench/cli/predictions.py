"""Files of predictions, scored split by split, and the record of a user's model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import card as card_of
from graphbench.core.errors import EvaluationError

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits
    from graphbench.records.stated import Stated
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
    found: dict[str, Score] = {}
    for name in files:
        task.require_labels(data[name])
    for name, file in files.items():
        found |= _scores_of_file(task, file, data[name], scores)
    if stated is None or records is None:
        return found, None
    from graphbench.records.files import save_record
    from graphbench.records.record import RunRecord

    record = RunRecord.of_statement({name: data[name] for name in files}, found, stated)
    return found, save_record(record, records)


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
