"""Scores of the predictions of a submission: the task reads and scores them, after their sizes were checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import EvaluationError, GraphBenchError, ResultError
from graphbench.core.untrusted import open_regular, shown
from graphbench.data.build.limits import limited_parameter
from graphbench.evaluation.array_headers import require_declared_sizes
from graphbench.leaderboard.submissions.data import CanonicalData
from graphbench.leaderboard.submissions.description import StatedBudget
from graphbench.records.earlier_names import config_in_current_names
from graphbench.records.record import RunRecord
from graphbench.training.overrides import flat

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.tasks.base import Task

MOST_ARRAY_BYTES = 2**32
LEAST_ARRAY_BYTES = 2**22  # size that is allowed for every split
SPARE = 32  # times the size of one float64 number per item and column
MOST_TEXT_BYTES = 2**28
MOST_FILE_BYTES = 2**24  # of a file with a single answer
MOST_DECODING = 1000  # of a number among a decoder's settings
MOST_LINE_BYTES = 2**20  # lists and mappings of one line of JSON take twenty times as much memory
_ARRAYS = (".npy", ".npz")


class MissingData(GraphBenchError):
    """The data that predictions are for are not on this machine."""


@dataclass
class ScoredSeed:
    """The scores of a seed's predictions.

    Attributes:
        card: The card of the data, with its limit.
        files: Split -> file of its predictions.
        used: Split -> the data.
        scores: Split, or part of one -> its score.
        warnings: The warnings that the library logged.
    """

    card: Card
    files: dict[str, Path]
    used: dict[str, GraphDataset] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def require_data(card: Card, split: str, limit: int | None, data: CanonicalData) -> None:
    """Refuse to generate data that nobody asked for.

    Raises:
        MissingData: If the samples, or their labels, are not on this machine and are not to be generated.
    """
    from graphbench.data.build.limits import apply_limit

    limited_card, most = apply_limit(card, limit)
    count = limited_card.split(split).count
    count = min(count, most) if isinstance(most, int) else count
    if not data.generate and not data.is_here(limited_card, split, count):
        raise MissingData(
            f"{split} of {card.address} is not in {data.root}, so the predictions are not scored; add --generate, "
            f"or run `graphbench generate {card.address} --splits {split}` first"
        )


def files_of_seed(task: Task, folder: Path) -> dict[str, Path]:
    """Return split -> file (or folder) of its predictions, in the card's order.

    Raises:
        EvaluationError: If the folder has another file or folder, or two of one split.
    """
    files = {name: file for name in task.card.all_splits if (file := task.find_predictions(folder, name)) is not None}
    used = set(files.values())
    for path in sorted(folder.iterdir()):
        if path in used or path.name.startswith("."):
            continue
        owner = files.get(path.stem if path.is_file() else path.name)
        if owner is not None:
            raise EvaluationError(f"{path.name} and {owner.name} are predictions of the same split; keep one")
        raise EvaluationError(
            f"{path.name} belongs to no split ({', '.join(task.card.all_splits)}); "
            f"{task.describe_files(next(iter(task.card.all_splits)))}"
        )
    return files


def score_folder(
    folder: Path,
    card: Card,
    stated: StatedBudget,
    data: CanonicalData,
    record: RunRecord | None = None,
    like: RunRecord | None = None,
) -> ScoredSeed:
    """Return the scores of a seed's predictions.

    Args:
        folder: The folder of the files.
        card: The card of the dataset.
        stated: The statements of the submission: a limit, and the kind of floating-point predictions.
        data: The data.
        record: The record of the same run, if there is one, with whose decoder scores become solutions.
        like: A record whose samples were scored; the first ones of each split where no limit is stated.

    Raises:
        GraphBenchError: If predictions are refused, or the data are missing; the message names the file.
    """
    from graphbench.loader import Loader
    from graphbench.tasks.registry import task_of

    limit = _limit(card, stated, like)
    options: dict[str, Any] = {"root": data.root, "workers": data.workers}
    splits = Loader(card.address, limit=limit, **options).load(())
    task = task_of(splits.card, _settings_of(record))
    files = files_of_seed(task, folder)
    needed = ["train"] * (task.reads_training and not task.facts)
    for split in (*files, *needed):
        require_data(card, split, limit.get(split) if isinstance(limit, dict) else limit, data)
    task.read_training(splits)
    scored = ScoredSeed(splits.card, files)
    with _warnings_noted() as scored.warnings:
        for name, file in files.items():
            split = splits[name]
            task.require_labels(split)
            require_readable(file, len(split), most_array_bytes(split))
            file_scores = _score_file(task, file, split, stated.scores)
            scored.warnings += [
                f"{name}: {n:,} answers are wrong: {why}" for why, n in file_scores[name].failures.items()
            ]
            scored.scores |= file_scores
            scored.used[name] = split
    return scored


def _limit(card: Card, stated: StatedBudget, record: RunRecord | None) -> int | dict[str, int] | None:
    """Return how many samples the predictions are of: as stated, or as the record beside them says."""
    if stated.limit is not None or record is None:
        return stated.limit
    whole = record.config.get("limit")
    if limited_parameter(card) is not None or card.series is not None:
        return whole if isinstance(whole, int) and not isinstance(whole, bool) and whole > 0 else None
    full = {name: spec.count for name, spec in card.all_splits.items()}
    counts = {name: count for name, count in record.graphs_scored.items() if 0 < count < full.get(name, 0)}
    return counts or None


def _settings_of(record: RunRecord | None) -> dict[str, Any]:
    """Return the options of the task of a recorded run, with which its predictions are scored.

    Raises:
        ResultError: If scoring could take for ever with them.
    """
    training = {} if record is None else config_in_current_names(record.config).get("training")
    task = training.get("task") if isinstance(training, Mapping) else None
    if not isinstance(task, Mapping):
        return {}
    for name, value in flat(task).items():
        if isinstance(value, int | float) and not name.endswith("seed") and abs(value) > MOST_DECODING:
            raise ResultError(
                f"the record has training.task.{name} = {value}, more than the {MOST_DECODING:,} with which scores "
                "are recomputed; remove the predictions, or decode with less"
            )
    return dict(task)


def most_array_bytes(split: GraphDataset) -> int:
    """Return the largest allowed size in bytes of arrays of predictions for a split, a multiple of the usual size.

    They need one row per graph, node or edge for every output, as float64 numbers; rollouts have one per lead time.
    """
    samples, outputs = split.samples, split.card.outputs
    items = len(samples) + int(samples.num_nodes.sum()) + 2 * int(samples.num_edges.sum())
    width = sum(feature.width * max(feature.classes or 1, 1) for feature in outputs)
    return min(MOST_ARRAY_BYTES, LEAST_ARRAY_BYTES + SPARE * 8 * items * max(width, 1))


def require_readable(path: Path, samples: int, most_bytes: int = MOST_ARRAY_BYTES) -> None:
    """Refuse a file of predictions that would take too much memory, before it is read.

    Args:
        path: The file, or a folder with a file per answer.
        samples: Number of samples of the split: a text has one line each.
        most_bytes: The largest size of arrays.

    Raises:
        EvaluationError: If a file is too large; the message names the file.
    """
    if path.is_dir():
        for file in path.iterdir():
            if file.stat().st_size > MOST_FILE_BYTES:
                raise EvaluationError(f"{path.name}/{file.name} is larger than {MOST_FILE_BYTES:,} bytes")
    elif path.suffix in _ARRAYS:
        require_declared_sizes(path, most_bytes)
    elif path.stat().st_size > MOST_TEXT_BYTES:
        raise EvaluationError(f"{path.name} is larger than {MOST_TEXT_BYTES:,} bytes; write the answers alone")
    elif (counted := _lines_of(path))[1] > MOST_LINE_BYTES:
        raise EvaluationError(f"{path.name} has a line of more than {MOST_LINE_BYTES:,} bytes; write the answers alone")
    elif (lines := counted[0]) > samples:
        raise EvaluationError(
            f"{path.name} has {lines:,} lines, the split has {samples:,} samples here; write one line per sample, in "
            "the order of the split, or state the limit that the predictions were made with in submission.yaml"
        )


def _lines_of(path: Path) -> tuple[int, int]:
    """Return the number of lines of a file and the bytes of the longest that does not lie within one part.

    A part is as long as a line may be, so lines within one are short enough and need not be looked at one by one.
    """
    lines = longest = begun = 0
    with open_regular(path) as file:
        while part := file.read(MOST_LINE_BYTES):
            lines += part.count(b"\n")
            if (first := part.find(b"\n")) < 0:
                begun += len(part)
            else:
                longest = max(longest, begun + first + 1)
                begun = len(part) - part.rfind(b"\n") - 1
    return lines + (begun > 0), max(longest, begun)


def _score_file(task: Task, file: Path, split: GraphDataset, scores: str | None) -> dict[str, Score]:
    from graphbench.evaluation.inputs import AS_LOGITS
    from graphbench.tasks.files import SAME_LIMIT

    try:
        return task.score_file(file, split, scores)
    except GraphBenchError as error:
        words = str(error).replace(AS_LOGITS, "write `scores: logit` for the dataset in submission.yaml")
        words = words.replace(
            SAME_LIMIT, "write `limit:` for the dataset in submission.yaml if they are of its first samples alone"
        )
        raise EvaluationError(words if file.name in words else f"{file.name}: {words}") from error
    except Exception as error:  # hostile files make numpy, zlib and verifiers raise errors of any class
        raise EvaluationError(
            f"{file.name} cannot be scored: {type(error).__name__}: {shown(error, 200)}; write it with numpy.save, or "
            "one answer per line"
        ) from error


@contextmanager
def _warnings_noted() -> Iterator[list[str]]:
    """Collect the warnings of the library instead of logging them."""
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
