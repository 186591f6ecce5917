"""Scores of the predictions of a submission: the task reads and scores them, after their sizes were checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import EvaluationError, GraphBenchError
from graphbench.core.untrusted import shown
from graphbench.evaluation.array_headers import require_declared_sizes
from graphbench.reports.submissions.data import CanonicalData

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits
    from graphbench.tasks.base import Task

MOST_ARRAY_BYTES = 2**32
MOST_TEXT_BYTES = 2**28
MOST_FILE_BYTES = 2**24  # of a file with a single answer
_AT_ONCE = 2**20
_ARRAYS = (".npy", ".npz")


class MissingData(GraphBenchError):
    """The data that predictions are for are not on this machine."""


def require_data(card: Card, split: str, limit: int | None, data: CanonicalData) -> None:
    """Refuse to generate data that nobody asked for.

    Raises:
        MissingData: If the samples, or their labels, are not on this machine and are not to be generated.
    """
    from graphbench.data.limits import apply_limit

    own, most = apply_limit(card, limit)
    count = own.split(split).count
    count = min(count, most) if isinstance(most, int) else count
    if not data.generate and not data.is_here(own, split, count):
        raise MissingData(
            f"{split} of {card.address} is not in {data.root}, so the predictions are not scored; add --generate, "
            f"or run `graphbench generate {card.address} --splits {split}` first"
        )


def files_of_seed(task: Task, folder: Path) -> dict[str, Path]:
    """Return split -> file (or folder) of its predictions, in the card's order.

    Raises:
        EvaluationError: If the folder has another file or folder, or two of one split.
    """
    found = {name: file for name in task.card.all_splits if (file := task.find_predictions(folder, name)) is not None}
    known = set(found.values())
    for path in sorted(folder.iterdir()):
        if path in known or path.name.startswith("."):
            continue
        owner = found.get(path.stem if path.is_file() else path.name)
        if owner is not None:
            raise EvaluationError(f"{path.name} and {owner.name} are predictions of the same split; keep one")
        raise EvaluationError(
            f"{path.name} belongs to no split ({', '.join(task.card.all_splits)}); "
            f"{task.describe_files(next(iter(task.card.all_splits)))}"
        )
    return found


def score_seed(
    task: Task, files: Mapping[str, Path], splits: Splits, scores: str | None
) -> tuple[dict[str, GraphDataset], dict[str, Score], list[str]]:
    """Return the splits that were scored, the scores by name, and the warnings that were given.

    Args:
        task: The task.
        files: Split -> file of its predictions.
        splits: The data.
        scores: What floating-point predictions are.

    Raises:
        GraphBenchError: If predictions are refused; the message names the file.
    """
    used: dict[str, GraphDataset] = {}
    found: dict[str, Score] = {}
    task.read_training(splits)
    with _warnings_noted() as warnings:
        for name, file in files.items():
            split = splits[name]
            task.require_labels(split)
            require_readable(file, len(split))
            found |= _score_file(task, file, split, scores)
            used[name] = split
    return used, found, warnings


def require_readable(path: Path, samples: int) -> None:
    """Refuse a file of predictions that would take too much memory, before it is read.

    Args:
        path: The file, or a folder with a file per answer.
        samples: Number of samples of the split: a text has one line each.

    Raises:
        EvaluationError: With what is too large.
    """
    if path.is_dir():
        for file in path.iterdir():
            if file.stat().st_size > MOST_FILE_BYTES:
                raise EvaluationError(f"{path.name}/{file.name} is larger than {MOST_FILE_BYTES:,} bytes")
    elif path.suffix in _ARRAYS:
        require_declared_sizes(path, MOST_ARRAY_BYTES)
    elif path.stat().st_size > MOST_TEXT_BYTES:
        raise EvaluationError(f"{path.name} is larger than {MOST_TEXT_BYTES:,} bytes; write the answers alone")
    elif (lines := _count_lines(path)) > samples:
        raise EvaluationError(
            f"{path.name} has {lines:,} lines, the split has {samples:,} samples here; write one line per sample, in "
            "the order of the split, or state the limit that the predictions were made with in submission.yaml"
        )


def _count_lines(path: Path) -> int:
    """Return the number of lines of a file, reading a part of it at a time."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            lines, last = lines + part.count(b"\n"), part
    return lines + (not last.endswith(b"\n"))


def _score_file(task: Task, file: Path, split: GraphDataset, scores: str | None) -> dict[str, Score]:
    from graphbench.evaluation.inputs import AS_LOGITS

    try:
        return task.score_file(file, split, scores)
    except GraphBenchError as error:
        words = str(error).replace(AS_LOGITS, "write `scores: logit` for the dataset in submission.yaml")
        raise EvaluationError(words if file.name in words else f"{file.name}: {words}") from error
    except Exception as error:  # whatever a hostile file makes numpy, zlib or a judge raise
        raise EvaluationError(
            f"{file.name} cannot be scored: {type(error).__name__}: {shown(error, 200)}; write it with numpy.save, or "
            "one answer per line"
        ) from error


@contextmanager
def _warnings_noted() -> Iterator[list[str]]:
    """Collect what the library warns of, instead of logging it."""
    noted: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: Any) -> None:
            noted.append(record.getMessage())

    logger, handler = logging.getLogger("graphbench"), Collector(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield noted
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
