"""Files of predictions: arrays of numbers (``.npy``, ``.npz``) and lines of text (``.jsonl``, ``.txt``)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import FileFault, limited_lines
from graphbench.core.errors import EvaluationError
from graphbench.core.files import atomic_path, write_text
from graphbench.core.untrusted import open_regular_text
from graphbench.evaluation.array_files import LEAST_ARRAY_BYTES

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

logger = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]

OF_WORDS = (".txt", ".jsonl")  # endings of files of texts
SAME_LIMIT = "give the --limit that the predictions were made with, or none"
SINGLE = "y_pred"  # name of the array of a single output
MOST_ANSWER = 1 << 25
"""Characters of a line with an answer: structures are lines of some megabytes, texts of language models far less."""

SPARE = 4
"""How many times as large as float64 numbers of all outputs the arrays of a file may be, together with others in it."""


def are_words(path: Path) -> bool:
    """Return whether a file holds texts, by its ending."""
    return path.suffix in OF_WORDS


def most_array_bytes(split: GraphDataset, *, items: int | None = None, columns: int = 0) -> int:
    """Return the most bytes that arrays of predictions for a split can plausibly have.

    They hold one row per graph, node or edge for every output, with a column per class or channel.

    Args:
        split: The split.
        items: Number of rows of all graphs together; None for one per graph and node, and two per edge.
        columns: Number of columns of all outputs together, where the outputs' types do not say it.
    """
    samples = split.samples
    if items is None:
        items = len(samples) + int(samples.num_nodes.sum()) + 2 * int(samples.num_edges.sum())
    width = sum(feature.width * max(feature.classes or 1, 1) for feature in split.card.outputs)
    return LEAST_ARRAY_BYTES + SPARE * np.dtype(np.float64).itemsize * items * max(width, columns, 1)


def rows_of_output(arrays: Arrays, names: Sequence[str], path: Path) -> Arrays:
    """Return output -> array; the array of a single output may be named ``y_pred``.

    Raises:
        EvaluationError: If an output is missing.
    """
    if len(names) == 1 and names[0] not in arrays and SINGLE in arrays:
        return {names[0]: arrays[SINGLE]}
    missing = [name for name in names if name not in arrays]
    if missing and len(names) == 1:
        raise EvaluationError(f"{path} holds {', '.join(arrays) or 'nothing'}; name the array {SINGLE}")
    if missing:
        raise EvaluationError(
            f"{path} has no array {', '.join(map(repr, missing))}, only {', '.join(map(repr, arrays)) or 'nothing'}; "
            f"save one array per output: numpy.savez(file, {', '.join(f'{name}=...' for name in names)})"
        )
    return {name: arrays[name] for name in names}


def rows_of_batches(
    arrays: Arrays, batches: Iterable[Any], wrong_rows: Callable[[], EvaluationError]
) -> Iterator[tuple[Any, Arrays]]:
    """Yield every batch with its rows of the arrays, which hold one row per item, batch after batch.

    Args:
        arrays: Output -> rows.
        batches: Batches that hold the outputs.
        wrong_rows: Returns the error of arrays that have another number of rows.

    Raises:
        EvaluationError: If they have, from ``wrong_rows``.
    """
    taken = dict.fromkeys(arrays, 0)
    for batch in batches:
        stops = {name: first + len(batch[name]) for name, first in taken.items()}
        if any(stop > len(arrays[name]) for name, stop in stops.items()):
            raise wrong_rows()
        yield batch, {name: arrays[name][first : stops[name]] for name, first in taken.items()}
        taken = stops
    if any(count != len(arrays[name]) for name, count in taken.items()):
        raise wrong_rows()


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write arrays to ``<path>.npz``, which appears whole or not at all, and return that path."""
    target = path.with_name(f"{path.name}.npz")
    with atomic_path(target) as aside, aside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return target


def write_texts(path: Path, texts: Sequence[str]) -> Path:
    """Write texts to ``<path>.jsonl``, one JSON string per line, and return that path."""
    target = path.with_name(f"{path.name}.jsonl")
    write_text(target, "".join(json.dumps(text) + "\n" for text in texts))
    return target


def read_texts(path: Path, *, null: str | None = None) -> list[str]:
    """Return the texts of a ``.jsonl`` file, whose lines are strings or objects, or of a ``.txt`` file.

    The text of an object is its ``output``, or else its ``answer``. In a ``.txt`` file every line is a text as it
    stands.

    Args:
        path: The file.
        null: The text that stands for ``null`` in a ``.jsonl`` file; None refuses it.

    Raises:
        EvaluationError: If the file cannot be read, has another ending, or a line is no text.
    """
    if path.suffix not in OF_WORDS:
        raise EvaluationError(f"{path} has no texts; write one answer per line into a .jsonl or .txt file")
    try:
        with open_regular_text(path, newline="\n") as file:  # a carriage return alone ends no line
            lines = [line.removesuffix("\n").removesuffix("\r") for line in limited_lines(file, MOST_ANSWER)]
    except FileNotFoundError:
        raise EvaluationError(f"cannot read answers from {path}: the file does not exist") from None
    except FileFault as error:
        raise EvaluationError(f"{path} {error}; write one answer per line") from error
    except (OSError, ValueError) as error:
        raise EvaluationError(f"cannot read answers from {path}: {error}; write UTF-8, one answer per line") from error
    if lines in ([], [""]):
        raise EvaluationError(f"the answers {path} are an empty file; write one answer per line")
    if path.suffix == ".txt":
        return lines
    return [_output_of(line, f"{path}, line {number}", null) for number, line in enumerate(lines, 1)]


def _output_of(line: str, where: str, null: str | None) -> str:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{where} is no JSON: {error}; write a string, or an object with 'output' or 'answer'"
        ) from error
    text = content.get("output", content.get("answer")) if isinstance(content, dict) else content
    if content is None and null is not None:
        return null
    if not isinstance(text, str):
        raise EvaluationError(
            f"{where} is {line!r:.80}; write a string, or an object whose 'output' or 'answer' is one"
        )
    return text


def require_lines(path: Path, lines: int, expected: int, split: str, sample: str) -> None:
    """Refuse a file that has not one line per sample.

    Raises:
        EvaluationError: With both numbers.
    """
    if lines != expected:
        raise EvaluationError(
            f"{path} has {lines:,} answers, {split} has {expected:,} {sample}s; write one line per {sample}, in the "
            f"order of the split, and {SAME_LIMIT}"
        )
