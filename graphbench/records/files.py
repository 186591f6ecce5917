"""Files of records: one JSON file per run under ``baselines/results/<domain>/<dataset>/``.

The format only ever grows: a file written by an older version must still load.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphbench.catalog.resources import baselines_dir
from graphbench.core.arguments import checked_path
from graphbench.core.errors import ArgumentError, ResultError
from graphbench.core.files import load_json, write_text
from graphbench.core.validation import explain
from graphbench.records.record import _FIRST_WITH_DIGESTS, DIGEST, SCHEMA, RunRecord, _fits
from graphbench.records.verifications import FILE as VERIFICATIONS
from graphbench.records.verifications import confirmed_in

logger = logging.getLogger(__name__)

RecordFolders = str | Path | Sequence[str | Path] | None
"""A folder of records, or several; None for the package's ``baselines/results``."""

RECORD = "record.json"
"""The record in the folder of a run."""

DATASET_ID = re.compile(r"[a-z0-9_]+/[a-z0-9_.]+(:[a-z0-9_]+)?(@[a-z0-9_]+)?")


def results_dir() -> Path:
    """Return the folder of committed run records."""
    return baselines_dir() / "results"


def save_record(record: RunRecord, root: Path | None = None, path: Path | None = None) -> Path:
    """Write a record and return its path; the file appears whole or not at all.

    Args:
        record: The record. One with the same dataset, configuration, seed and data seed is replaced.
        root: Results folder; ``baselines/results`` when None.
        path: Exact file to write instead, e.g. ``record.json`` of a run folder.

    Raises:
        ResultError: If the dataset id cannot be a path, or the record or its file cannot be written.
        ArgumentError: If no file can have such a name.
    """
    if not DATASET_ID.fullmatch(record.dataset):
        raise ResultError(f"the record's dataset {record.dataset!r} is not an id like 'algoreas/mst_easy'")
    try:
        target = path if path is not None else (root if root is not None else results_dir()) / record.relative_path
        text = record.to_json()
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ResultError(f"the record of {record.dataset} cannot be written as JSON: {reason:.200}") from error
    try:
        write_text(checked_path("path", target), text)
    except OSError as error:
        raise ResultError(f"cannot write the record {target}: {error}; choose a folder you may write to") from error
    return target


def read_record(path: Path) -> RunRecord:
    """Return the record stored in one file.

    Raises:
        ResultError: If the file is absent, is not JSON, follows a newer format or none, or was changed after it was
            written; the message names key and file. A record without a digest is read, unchecked, only where its format
            is the first one, which is older than digests.
    """
    return parse_record(_payload(path), path)


def _payload(path: Path) -> Any:
    """Return the content of a file of a record, unchecked; errors as for :func:`read_record`."""
    try:
        return load_json(checked_path("path", path))
    except FileNotFoundError:
        raise ResultError(f"there is no record {path}") from None
    except ArgumentError:
        raise
    except (OSError, ValueError) as error:
        raise ResultError(f"{path} is not a JSON record: {error}") from error


def parse_record(payload: Any, path: Path) -> RunRecord:
    """Return the record that the content of a JSON file holds.

    Args:
        payload: The content.
        path: The file, for messages.

    Raises:
        ResultError: As for :func:`read_record`.
    """
    schema = payload.get("schema") if isinstance(payload, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise ResultError(
            f"{path} has the record format {schema}, newer than this version reads ({SCHEMA}); update graphbench"
        )
    digest = payload.get(DIGEST) if isinstance(payload, dict) else None
    if digest is None and isinstance(schema, int) and schema >= _FIRST_WITH_DIGESTS:
        raise ResultError(
            f"{path}: it has no digest, so an edit of it would not be noticed, and records of the format {schema} have "
            "one; restore the file, or run the command again that wrote it"
        )
    if isinstance(payload, dict):
        payload = {key: value for key, value in payload.items() if key != DIGEST}
    if digest is not None and not _fits(payload, digest):
        raise ResultError(
            f"{path} was changed after its run wrote it: its digest does not fit its content; restore the file, or run "
            "the command again that wrote it"
        )
    try:
        return RunRecord.model_validate(payload)
    except ValidationError as error:
        raise ResultError(f"{path}: {explain(error, RunRecord)}") from error


def load_records(
    selector: str | Sequence[str] = "*", records: RecordFolders = None, *, skip_malformed: bool = False
) -> list[RunRecord]:
    """Return the stored records whose dataset id matches, sorted by dataset, model and seed.

    Args:
        selector: A dataset id or glob (``algoreas/*``), or several; ``"*"`` takes all.
        records: Folder searched for ``*.json``, at any depth, or several folders; ``baselines/results`` when None. In
            the folder of a run, ``record.json`` alone is read.
        skip_malformed: Whether a malformed file is left out with a warning that names the file and the reason. Records
            that name another dataset are not checked.

    Raises:
        ResultError: If a folder does not exist, or a file in it is malformed and not to be left out.
    """
    return [record for _, record in stored_records(selector, records, skip_malformed=skip_malformed)]


def stored_records(
    selector: str | Sequence[str] = "*", records: RecordFolders = None, *, skip_malformed: bool = False
) -> list[tuple[Path, RunRecord]]:
    """Return the stored records with their files; arguments, order and errors as for :func:`load_records`.

    A record that says its scores were verified or recomputed counts as one whose scores are stated, with a warning,
    unless a list in one of its folders has the digest of its file (:mod:`graphbench.records.verifications`).
    """
    stored = []
    for path in (path for folder in record_folders(records) for path in sorted(folder.rglob("*.json"))):
        if path.name.startswith(".") or (path.name != RECORD and path.with_name(RECORD).is_file()):
            continue
        try:
            payload = _payload(path)
            named = payload.get("dataset") if isinstance(payload, dict) else None
            if isinstance(named, str) and not matches(named, selector):
                continue
            stored.append((path, as_confirmed(parse_record(payload, path), payload.get(DIGEST), path)))
        except ResultError as error:
            if not skip_malformed:
                raise
            logger.warning("left out: %s", error)
    return sorted(stored, key=lambda item: _order(item[1]))


def as_confirmed(record: RunRecord, digest: str | None, path: Path) -> RunRecord:
    """Return a record as one whose scores are stated, with a warning, if it says more and no list has its digest.

    Args:
        record: The record.
        digest: The digest in its file; None for a file without one.
        path: The file.
    """
    claimed = "verified" if record.verification is not None else "recomputed" if record.recomputed_from else None
    if claimed is None or (digest is not None and confirmed_in(path, digest) is not None):
        return record
    logger.warning(
        "%s says that its scores were %s, and no %s in its folders lists it; they count as stated: copy the list that "
        "`graphbench submit` wrote beside it, or let `graphbench submit` check or verify the submission again",
        path,
        claimed,
        VERIFICATIONS,
    )
    return record.model_copy(update={"verification": None, "recomputed_from": None})


def record_folders(records: RecordFolders = None) -> list[Path]:
    """Return the folders of records, each once; ``baselines/results`` when None.

    Raises:
        ResultError: If one does not exist.
    """
    several = isinstance(records, (list, tuple))
    named: Sequence[Any] = [results_dir()] if records is None else records if several else [records]  # type: ignore[assignment]
    folders = list(dict.fromkeys(checked_path("records", folder) for folder in named))
    for folder in folders:
        if not folder.is_dir():
            raise ResultError(
                f"there is no results folder {folder}; run 'graphbench train' first or name another folder"
            )
    return folders


def matches(name: str, patterns: str | Sequence[str]) -> bool:
    """Return whether a name fits a glob, or one of several."""
    return any(fnmatchcase(name, pattern) for pattern in ([patterns] if isinstance(patterns, str) else patterns))


def _order(record: RunRecord) -> tuple[str, str, str, int, int]:
    return record.dataset, record.model, record.config_hash, record.seed, record.data_seed
