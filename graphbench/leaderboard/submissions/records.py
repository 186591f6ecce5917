"""Checks of one record: of its file, and of its content against the card and the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import GraphBenchError, ResultError
from graphbench.core.untrusted import strict_json
from graphbench.data.build.limits import limited_parameter
from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard.submissions.data import CanonicalData
from graphbench.leaderboard.submissions.findings import Level, SubmittedDataset
from graphbench.records.aggregates import absurd_number
from graphbench.records.budgets import not_stated
from graphbench.records.files import parse_record
from graphbench.records.record import DIGEST, RunRecord
from graphbench.records.stated import OWN_MODEL, require_protocol
from graphbench.training.config import list_configs, load_config

MOST_BYTES = 16 * 2**20
_WRITE_ANEW = "write it with graphbench evaluate or train, or give predictions"
_MOST_NAME = 120  # characters of the name of a split or a metric
_SHOWN = 12  # digits of a hash
_MOST_DEVIATIONS = 3  # of replicates; the committed records are within a quarter of one
_ROUNDING = 1e-6

NO_DIGEST = f"it has no digest, so an edit of it would not be noticed; {_WRITE_ANEW}"


@dataclass(frozen=True)
class SubmittedRecord:
    """A record, its file, and whether the file has a digest of its content."""

    record: RunRecord
    path: Path
    has_digest: bool


def read_submitted(path: Path) -> SubmittedRecord:
    """Return the record of a file that strangers wrote.

    Raises:
        ResultError: If the file is too large, is no strict JSON, has no format of this package, was changed after it
            was written, or has a value that is refused.
    """
    try:
        payload: Any = strict_json(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise ResultError(f"no JSON record: {error}") from error
    record = parse_record(payload, path)
    _require_numbers(payload["scores"])
    counts: list[Iterable[str]] = [record.graphs_scored, record.graphs_loaded]
    lists: list[Iterable[str]] = [record.scores, record.data_hashes, *counts, record.curves]
    for names in (*lists, *record.scores.values()):
        long = next((name for name in names if len(name) > _MOST_NAME or "\n" in name), None)
        if long is not None:
            raise ResultError(f"{long[:40]!r}... is no name of a split, metric or curve")
    return SubmittedRecord(record, path, isinstance(payload, dict) and DIGEST in payload)


def _require_numbers(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse scores that are no numbers of JSON, such as texts, though they could be read as such."""
    for split, split_scores in scores.items():
        for metric, value in split_scores.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ResultError(f"{metric} of {split} is {value!r:.40}, which is no number")


def split_of(card: Card, name: str) -> str | None:
    """Return the split that a name in a record's scores stands for: the split, or one of whose parts it is."""
    if name in card.all_splits:
        return name
    return max((split for split in card.all_splits if name.startswith(f"{split}_")), key=len, default=None)


def check_record(record: RunRecord, name: str, entry: SubmittedDataset, data: CanonicalData) -> bool:
    """Add the faults of a record to the findings of its dataset; return whether the record can be accepted.

    Args:
        record: The record.
        name: Name of its file, for messages.
        entry: The dataset.
        data: The data that it must belong to.
    """
    before = len(entry.of_level(Level.REFUSED))
    if record.seed < 0:
        entry.add(Level.REFUSED, f"its seed is {record.seed}; number the runs from 0 on", name)
    if record.verification is not None:
        entry.add(
            Level.REFUSED,
            "it says that it was verified on a sealed draw; a verification counts where it is made: give the sealed "
            "folder, for `graphbench submit verify`, and the record without it",
            name,
        )
    if number := absurd_number(record):
        entry.add(Level.REFUSED, f"{number}, with which nothing can be computed", name)
    is_own = record.config.get("kind") == OWN_MODEL
    if record.budget.small is False and is_own and (lacking := not_stated(record.steps, record.batch_size)):
        entry.add(Level.REFUSED, f"it counts as a full budget, but {lacking}", name)
    try:
        card = data.card(record)
        if record.budget.small is False and not is_own and (why := smaller_than_full(record, card)):
            entry.add(Level.REFUSED, f"it counts as a full budget, but {why}; {_WRITE_ANEW}", name)
        _check_scores(record, name, card, entry)
        if not data.is_of_files(card, record):
            require_protocol(card, record.protocol)
        _check_limit(record, name, card, entry, data)
        _check_data(record, name, card, entry, data)
    except GraphBenchError as error:
        entry.add(Level.REFUSED, error, name)
    return len(entry.of_level(Level.REFUSED)) == before


def _check_scores(record: RunRecord, name: str, card: Card, entry: SubmittedDataset) -> None:
    """Check which splits have scores, of how many samples."""
    primary = card.metrics.primary
    unknown = [scored for scored in record.scores if split_of(card, scored) is None]
    if unknown:
        known = ", ".join(card.all_splits)
        entry.add(Level.REFUSED, f"it has scores of {unknown[0]!r}, which is no split; the splits are {known}", name)
    uncounted = []
    for split in (scored for scored in record.scores if scored in card.all_splits):
        if primary not in record.scores[split]:
            entry.add(Level.REFUSED, f"{split} has no score of {primary}, the metric that ranks models", name)
        _check_names(record, split, name, entry)
        if not _fits_replicates(record.scores[split].get(primary), record.replicates.get(split, [])):
            entry.add(Level.REFUSED, f"{primary} of {split} is far from its bootstrap replicates; {_WRITE_ANEW}", name)
        full, count = card.split(split).count, record.graphs_scored.get(split)
        if count is None:
            uncounted.append(split)
        elif not 0 < count <= full:
            entry.add(Level.REFUSED, f"it says that {count:,} samples of {split} were scored, which has {full:,}", name)
        elif count < full and split in card.splits and record.budget.small is not True:
            entry.add(
                Level.REFUSED,
                f"{count:,} of {full:,} samples of {split} were scored, but it is not marked as a small run; "
                f"{_WRITE_ANEW}",
                name,
            )
        entry.complete[split] = entry.complete.get(split, True) and count == full
    if record.scores_stated:
        stated = ", ".join(record.scores_stated)
        entry.add(Level.REMARK, f"its scores of {stated} were stated as numbers; predictions would show them", name)
    if uncounted:
        entry.add(
            Level.REFUSED,
            f"it does not say how many samples of {', '.join(uncounted)} were scored; {_WRITE_ANEW}",
            name,
        )


def smaller_than_full(record: RunRecord, card: Card) -> str | None:
    """Return why a run of ``graphbench train`` has no full budget, by its configuration; None if it has one.

    The budget of the configuration that is shipped under the model's name counts, not the one that the record states.
    """
    config, training = record.config, record.config.get("training")
    domain, asked = card.id.partition("/")[0], record.steps_asked or 0
    if f"{domain}/{record.model}" not in list_configs(domain):  # never a file that the name may lead to
        return f"{record.model} is none of graphbench's configurations"
    shipped = load_config(card.id, record.model, family=card.family)
    together = config.get("datasets")
    stated = {
        "limit": config.get("limit"),
        "overridden": config.get("overridden"),
        "datasets": together if isinstance(together, list) else (),
        "training": shipped.training.model_copy(update={"steps": asked}),
    }
    if why := shipped.model_copy(update=stated).why_small:
        return why[:_MOST_NAME]
    may_stop = isinstance(training, Mapping) and training.get("patience") is not None
    if record.steps is not None and record.steps < asked and not may_stop:
        return f"it took {record.steps:,} of {asked:,} steps"
    return None


def _check_names(record: RunRecord, split: str, name: str, entry: SubmittedDataset) -> None:
    """Refuse scores of a split that are of no metric; metrics of single outputs or channels have a longer name."""
    for metric in record.scores[split]:
        if metric not in METRICS and not any(metric.startswith(f"{known}_") for known in METRICS):
            entry.add(Level.REFUSED, f"it has a score {metric!r} of {split}, which is no metric", name)


def _fits_replicates(score: float | None, replicates: Sequence[float]) -> bool:
    """Return whether a score is within a few deviations of the mean of its bootstrap replicates, as true ones are."""
    if score is None or not replicates:
        return True
    return abs(score - fmean(replicates)) <= _MOST_DEVIATIONS * pstdev(replicates) + _ROUNDING


def _check_limit(record: RunRecord, name: str, card: Card, entry: SubmittedDataset, data: CanonicalData) -> None:
    """Mark the results on samples that are smaller than the samples of the dataset, such as a smaller network."""
    if not data.is_limited(card):
        return
    limit = f"{record.config['limit']:,} {limited_parameter(card)}"
    if record.budget.small is not True:
        entry.add(Level.REFUSED, f"its data are limited to {limit}, but it is not marked as a small run", name)
    entry.add(Level.REMARK, f"the data were limited to {limit}: it stands among the small runs")
    entry.complete |= dict.fromkeys(entry.complete, False)


def _check_data(record: RunRecord, name: str, card: Card, entry: SubmittedDataset, data: CanonicalData) -> None:
    """Compare version, fingerprint and hashes of the data."""
    if record.dataset_version != card.version:
        entry.add(
            Level.REFUSED,
            f"it is of version {record.dataset_version} of {card.id}, whose version is {card.version}: scores of "
            "different versions are not comparable; train or evaluate again",
            name,
        )
        return
    if data.is_of_files(card, record):
        entry.add(Level.REMARK, f"its data were read from files ({record.protocol}), which are not compared", name)
        return
    expected = data.fingerprint(card)
    if record.data_fingerprint != expected:
        entry.add(
            Level.REFUSED,
            f"its data have the fingerprint {record.data_fingerprint or 'none'!r:.80}, but {card.address} has "
            f"{expected!r:.80}: another generator, other parameters or labels, or a limit; use the data that "
            f"`graphbench generate {card.address}` makes",
            name,
        )
        return
    for split in record.scores:
        if split in card.all_splits and 0 < record.graphs_scored.get(split, 0) <= card.split(split).count:
            _check_hash(record, name, card, split, entry, data)


def _check_hash(
    record: RunRecord, name: str, card: Card, split: str, entry: SubmittedDataset, data: CanonicalData
) -> None:
    stated, count = record.data_hashes.get(split), record.graphs_scored[split]
    if stated is None:
        entry.add(
            Level.REFUSED,
            f"it has no hash of the data of {split}, so which were scored cannot be checked; {_WRITE_ANEW}",
            name,
        )
        return
    hash_and_place = data.hash_of(card, split, count)
    if hash_and_place is None:
        entry.hashes.setdefault(split, "")
        return
    known, where = hash_and_place
    entry.hashes[split] = where
    if stated != known:
        entry.add(
            Level.REFUSED,
            f"the data hash of {split} is {stated[:_SHOWN]!r}, but {where} have {known[:_SHOWN]!r} for the first "
            f"{count:,} samples: other data were scored, or in another order; score the data that "
            f"`graphbench generate {card.address}` makes",
            name,
        )
