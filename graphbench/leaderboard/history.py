"""Earlier states of the leaderboard: the records of a commit of the checkout, and the changes of first places.

States are made by the present rules and cards from the records of a commit, so two states differ in their records
alone.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from graphbench.core.errors import ResultError
from graphbench.leaderboard.best import BestScore, best
from graphbench.records.files import as_confirmed, parse_record, results_dir
from graphbench.records.record import DIGEST, RunRecord

_NO_COMMIT = "name a commit, a branch or a tag of a checkout that has records"


@dataclass(frozen=True, slots=True)
class State:
    """The records of a commit.

    Attributes:
        commit: Hash of the commit.
        date: When it was made.
        records: Its records.
        unread: Files that are no records of a format that this version reads.
    """

    commit: str
    date: datetime
    records: tuple[RunRecord, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A dataset whose first place changed.

    Attributes:
        commit: Hash of the commit whose records changed it.
        date: When it was made.
        unit: Address of the dataset, with its protocol.
        metric: The primary metric.
        model: The model that has the first place.
        mean: Its mean score.
        ranked: Whether it is ranked.
        before: The model that had the first place; None for a first entry.
        mean_before: Its mean score.
    """

    commit: str
    date: datetime
    unit: str
    metric: str
    model: str
    mean: float
    ranked: bool
    before: str | None
    mean_before: float | None


def state_at(commit: str, results: Path | None = None) -> State:
    """Return the records of a commit.

    Args:
        commit: Hash, branch or tag.
        results: Folder of records in a checkout; the package's ``baselines/results`` when None.

    Raises:
        ResultError: If the folder lies in no checkout, or there is no such commit.
    """
    folder = results_dir() if results is None else results
    _git(folder, "log", "-1", "--format=%H")  # a folder without a history is named, not the commit
    commit_hash = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}").strip()
    if not commit_hash:
        raise ResultError(f"there is no commit {commit!r:.80}; {_NO_COMMIT}")
    date = datetime.fromisoformat(_git(folder, "show", "-s", "--format=%cI", commit_hash).strip())
    files = [
        name for name in _git(folder, "ls-tree", "-r", "--name-only", commit_hash, ".").splitlines() if _is_record(name)
    ]
    records, unread = [], []
    for name, text in _contents(folder, [(commit_hash, name) for name in files]):
        record = _record(text, folder / name)
        if record is None:
            unread.append(name)
        else:
            records.append(record)
    if not records:
        raise ResultError(
            f"the commit {commit_hash[:12]} has no records in {folder}; commit the folder first, or {_NO_COMMIT}"
        )
    return State(commit_hash, date, tuple(records), tuple(unread))


def first_places(results: Path | None = None, datasets: Collection[str] | None = None) -> list[Change]:
    """Return every change of a first place on a test split, the oldest first.

    Args:
        results: Folder of records in a checkout; the package's ``baselines/results`` when None.
        datasets: Only changes on these datasets; None for all.

    Raises:
        ResultError: If the folder lies in no checkout.
    """
    folder = results_dir() if results is None else results
    log = _git(
        folder, "log", "--reverse", "--format=%x00%H %cI", "--name-status", "--no-renames", "--relative", "--", "."
    )
    records: dict[str, RunRecord] = {}
    leaders: dict[str, BestScore] = {}
    changes: list[Change] = []
    for entry in log.split("\0")[1:]:
        head, *lines = [line for line in entry.splitlines() if line]
        commit, date = head.split(" ")
        touched = [line.split("\t") for line in lines if _is_record(line)]
        changed = _apply(folder, commit, touched, records)
        for dataset in sorted(changed if datasets is None else changed & {*datasets}):
            dataset_records = [record for record in records.values() if record.dataset == dataset]
            changes += _changes(commit, datetime.fromisoformat(date), dataset_records, leaders)
    return changes


def _apply(folder: Path, commit: str, touched: list[list[str]], records: dict[str, RunRecord]) -> set[str]:
    """Bring records to the state of a commit, and return the datasets whose records changed."""
    changed = {records[name].dataset for _, name in touched if name in records}
    for status, name in touched:
        if status == "D":
            records.pop(name, None)
    present = [(commit, name) for status, name in touched if status != "D"]
    for name, text in _contents(folder, present):
        record = _record(text, folder / name)
        if record is not None:
            records[name] = record
            changed.add(record.dataset)
    return changed


def _changes(commit: str, date: datetime, records: list[RunRecord], leaders: dict[str, BestScore]) -> Iterator[Change]:
    """Yield the changes of the first places of one dataset."""
    for scores in best(records=records, repeated=()).values():
        for score in scores:
            unit = f"{score.dataset} ({score.protocol})" if score.protocol else score.dataset
            before = leaders.get(unit)
            leaders[unit] = score
            if before is not None and before.row.config_hash == score.row.config_hash:
                continue
            if before is not None and before.model == score.model and before.mean == score.mean:
                continue
            yield Change(
                commit=commit,
                date=date,
                unit=unit,
                metric=score.metric,
                model=score.model,
                mean=score.mean,
                ranked=score.row.rank is not None,
                before=None if before is None else before.model,
                mean_before=None if before is None else before.mean,
            )


def _is_record(name: str) -> bool:
    return name.endswith(".json")


def _record(text: str, path: Path) -> RunRecord | None:
    """Return a record of an earlier state; None if this version reads it no more."""
    try:
        payload = json.loads(text)
        return as_confirmed(parse_record(payload, path), payload.get(DIGEST), path)
    except (ResultError, ValueError):
        return None


def _contents(folder: Path, files: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of files of commits, named relative to the folder."""
    if not files:
        return
    asked = "".join(f"{commit}:./{name}\n" for commit, name in files)
    command = ["git", "-C", str(folder), "cat-file", "--batch"]
    try:
        answer = subprocess.run(command, input=asked.encode(), capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ResultError(f"the records of a commit cannot be read: {error}") from error
    place = 0
    for _, name in files:
        end = answer.index(b"\n", place)
        head = answer[place:end].split()
        if len(head) != 3:  # missing
            place = end + 1
            continue
        size = int(head[2])
        yield name, answer[end + 1 : end + 1 + size].decode("utf-8", "replace")
        place = end + 2 + size


def _git(folder: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError as error:
        raise ResultError(f"git cannot be run: {error}; install it") from error
    if answer.returncode and "rev-parse" not in arguments:
        words = answer.stderr.strip().splitlines()
        raise ResultError(f"{folder} lies in no checkout with a history ({words[0] if words else 'git failed'})")
    return answer.stdout
