"""Predictions that are kept beside the record of their scores, so that a further metric needs no model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from graphbench.core.errors import ResultError
from graphbench.core.files import atomic_path, file_sha256
from graphbench.records.record import RunRecord

MOST_BYTES = 1_000_000
"""Most bytes of a file of predictions that is kept; of a larger one the record has the hash alone."""


def hashes_of_predictions(files: Mapping[str, Path]) -> dict[str, str]:
    """Return split -> SHA-256 of its file of predictions; folders of answers have none."""
    return {name: file_sha256(path) for name, path in files.items() if path.is_file()}


def keep_predictions(record: Path, files: Mapping[str, Path]) -> list[Path]:
    """Copy small files of predictions to the place beside a record, and return the copies.

    Args:
        record: The file of the record.
        files: Split -> file.
    """
    kept = []
    for name, path in files.items():
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            target = _place(record, name, path.suffix)
            with atomic_path(target) as aside:
                shutil.copyfile(path, aside)
            kept.append(target)
    return kept


def kept_predictions(record: RunRecord, path: Path, split: str) -> Path | None:
    """Return the kept file of a split's predictions; None if there is none.

    Args:
        record: The record.
        path: Its file.
        split: The split.

    Raises:
        ResultError: If the file is not the one that was scored.
    """
    expected = record.predictions.get(split)
    if expected is None:
        return None
    for file in sorted(path.parent.glob(f"{path.stem}.{split}.*")):
        if file_sha256(file) != expected:
            raise ResultError(
                f"{file} was changed after it was scored: its hash is not the record's; restore it, or remove it"
            )
        return file
    return None


def _place(record: Path, split: str, suffix: str) -> Path:
    return record.with_name(f"{record.stem}.{split}{suffix}")
