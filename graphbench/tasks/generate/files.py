"""Files of answers that are whole structures: a folder with one file per answer, and flat arrays of all graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import EvaluationError
from graphbench.core.ragged import offsets
from graphbench.data.components.verifiers import EDGE_INDEX, EDGES, MOST_PER_GRAPH, NODES, Verifier


def numbered_files(folder: Path, count: int, verifier: Verifier, names: Sequence[str] = ()) -> list[Path | None]:
    """Return the files of a folder by their numbers, which are their names; None for a number that no file has.

    Args:
        folder: The folder.
        count: Number of samples.
        verifier: The verifier, which knows the endings of files.
        names: Names of the files that samples were read from, if they were: an answer may have the name of its sample.

    Raises:
        EvaluationError: If the folder cannot be read, or holds a file of another name, or two files for a sample.
    """
    numbers = {str(number): number for number in range(count)} | _numbers_of_names(names[:count])
    files: list[Path | None] = [None] * count
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise EvaluationError(f"{folder} cannot be read: {error.strerror or error}") from error
    for path in paths:
        is_number = path.stem.isascii() and path.stem.isdigit()
        number = numbers.get(str(int(path.stem)) if is_number else path.stem)
        if path.suffix not in verifier.endings or number is None:
            raise EvaluationError(
                f"{path} is not expected; {verifier.answers} are files 0{verifier.endings[0]} to {count - 1}"
                f"{verifier.endings[0]} ({' or '.join(verifier.endings)}), numbered like the samples of the split "
                f"(--limit N scores the first N){', or named like the files of the samples' if len(names) else ''}"
            )
        if files[number] is not None:
            raise EvaluationError(f"{folder} has two answers to sample {number}: {files[number]} and {path}")
        files[number] = path
    return files


def _numbers_of_names(names: Sequence[str]) -> dict[str, int]:
    """Return the number of the sample by the name of its file, and by that without endings where only one has it."""
    numbers: dict[str, int] = {}
    ambiguous: set[str] = set()
    for number, name in enumerate(names):
        parts = name.split(".")
        for stem in (".".join(parts[:last]) for last in range(1, len(parts) + 1)):
            if numbers.setdefault(stem, number) != number:
                ambiguous.add(stem)
    return {stem: number for stem, number in numbers.items() if stem not in ambiguous and not stem.isdigit()}


class FlatAnswers:
    """Flat arrays of the graphs of all answers (:mod:`~.components.verifiers`); a slice covers some answers."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], path: Path, count: int, verifier: Verifier) -> None:
        """Check the arrays of a file.

        Args:
            arrays: The arrays.
            path: The file.
            count: Number of samples.
            verifier: The verifier, which names the fields of the graphs.

        Raises:
            EvaluationError: If an array is missing or has the wrong length.
        """
        missing = [name for name in (NODES, EDGES, EDGE_INDEX) if name not in arrays]
        if missing:
            raise EvaluationError(
                f"{path} has no array {missing[0]!r}; save {NODES} [S], {EDGES} [S], {EDGE_INDEX} [2, E] and the "
                f"fields of nodes and edges: {', '.join(verifier.graph_fields)}"
            )
        self._ptr = {
            Location.NODE: _offsets(arrays[NODES], f"{path}: {NODES}", count),
            Location.EDGE: _offsets(arrays[EDGES], f"{path}: {EDGES}", count),
        }
        self._counts = {name: arrays[name] for name in (NODES, EDGES)}
        locations = {EDGE_INDEX: Location.EDGE, **verifier.graph_fields}
        self._rows = {name: (arrays[name], location) for name, location in locations.items() if name in arrays}
        for name, (array, location) in self._rows.items():
            rows, expected = array.shape[-1] if name == EDGE_INDEX else len(array), int(self._ptr[location][-1])
            if rows != expected or (name == EDGE_INDEX and array.shape != (2, rows)):
                raise EvaluationError(
                    f"{path}: {name} has the shape {list(array.shape)}, but all graphs together have {expected:,} "
                    f"{location.value}s; write one row per {location.value}, and {EDGE_INDEX} as [2, E]"
                )

    def __getitem__(self, chosen: slice) -> dict[str, NDArray[Any]]:
        """Return the flat arrays of answers ``first`` to ``last - 1``."""
        first, last, _ = chosen.indices(len(self._counts[NODES]))
        arrays = {name: counts[first:last] for name, counts in self._counts.items()}
        for name, (array, location) in self._rows.items():
            rows = slice(self._ptr[location][first], self._ptr[location][last])
            arrays[name] = array[:, rows] if name == EDGE_INDEX else array[rows]
        return arrays


def _offsets(counts: NDArray[Any], name: str, expected: int) -> NDArray[np.int64]:
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise EvaluationError(f"{name} is {counts.dtype} {list(counts.shape)}; give whole numbers [S] from 0 on")
    if (largest := int(counts.max(initial=0))) > MOST_PER_GRAPH:
        raise EvaluationError(f"{name} has {largest:,}; one graph has at most {MOST_PER_GRAPH:,}")
    if len(counts) != expected:
        raise EvaluationError(
            f"{name} is of {len(counts):,} answers, the split has {expected:,} samples; write one per sample, in the "
            "order of the split (--limit N scores the first N samples)"
        )
    return offsets(counts.astype(np.int64))
