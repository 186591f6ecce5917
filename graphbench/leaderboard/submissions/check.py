"""The check of a submission: read every file, compare, recompute scores from predictions, and report the findings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.core.arguments import checked_path
from graphbench.core.errors import GraphBenchError, ResultError
from graphbench.core.files import default_root, file_sha256
from graphbench.data.build.limits import limited_parameter
from graphbench.leaderboard.submissions.data import CanonicalData
from graphbench.leaderboard.submissions.description import Description, StatedBudget, read_description, statement_of
from graphbench.leaderboard.submissions.findings import Level, SubmissionReport, SubmittedDataset, Verdict
from graphbench.leaderboard.submissions.folder import (
    DESCRIPTION,
    Contents,
    SeedPath,
    UnsafeFolder,
    contents_of,
)
from graphbench.leaderboard.submissions.groups import check_group, difference
from graphbench.leaderboard.submissions.predictions import ScoredSeed, score_folder
from graphbench.leaderboard.submissions.records import NO_DIGEST, check_record, read_submitted
from graphbench.records.budgets import Budget
from graphbench.records.files import save_record
from graphbench.records.record import RunRecord
from graphbench.records.stated import OWN_MODEL
from graphbench.records.verifications import confirm


def check_submission(
    folder: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    generate: bool = False,
    workers: int | None = None,
    records: str | os.PathLike[str] | None = None,
) -> SubmissionReport:
    """Check a folder of records and predictions, which may come from anybody; nothing in it is run or unpickled.

    Args:
        folder: The folder: ``submission.yaml``, records (``*.json``, anywhere), and predictions in
            ``predictions/<domain>/<dataset>[-<task>]/seed<number>/``.
        root: Folder of all datasets; the default one when None.
        generate: Generate data that are needed and missing.
        workers: Processes that generate; None for all cores.
        records: Folder to write the records of accepted predictions to; None writes nothing.

    Raises:
        ResultError: If there is no such folder, or a record cannot be written.
    """
    submission_folder = checked_path("folder", folder)
    if not submission_folder.is_dir():
        raise ResultError(
            f"there is no folder {submission_folder}; `graphbench submit init` makes one for a submission"
        )
    report = SubmissionReport(submission_folder)
    try:
        contents = contents_of(submission_folder)
    except UnsafeFolder as error:
        for name, fault in error.faults.items():
            report.add(Level.REFUSED, f"{fault} (nothing was read)", name)
        return report
    root = default_root() if root is None else checked_path("root", root)
    check = _Check(report, contents, CanonicalData(root, generate=generate, workers=workers))
    check.run()
    if records is not None:
        report.written = check.write(checked_path("records", records))
    return report


class _Check:
    """The check of one submission."""

    def __init__(self, report: SubmissionReport, contents: Contents, data: CanonicalData) -> None:
        self.report, self.contents, self.data = report, contents, data
        self.description: Description | None = None
        self.budgets: dict[str, StatedBudget] = {}
        self.entries: dict[str, SubmittedDataset] = {}
        self.cards: dict[str, Card] = {}
        self.computed: list[tuple[str, RunRecord]] = []
        self.seeds: dict[tuple[str, str, str], int] = {}  # dataset, split, hash of the file -> first seed

    def run(self) -> None:
        """Check everything; the report then has the findings."""
        self.report.unread = self.contents.unread
        for name, fault in self.contents.faults.items():
            self.report.add(Level.REFUSED, fault, name)
        self._read_description()
        for path in self.contents.records:
            self._add_record(path)
        for folder in self.contents.predictions:
            self._add_predictions(folder)
        self._require_one_model()
        for dataset, entry in self.entries.items():
            entry.records.sort(key=lambda record: (record.seed, record.data_seed))
            self._require_sources(entry)
            notes = None if self.description is None else self.description.notes
            check_group(entry, self.cards[dataset], self.budgets.get(dataset), notes)
            if not entry.findings and not entry.records:
                entry.add(
                    Level.REFUSED,
                    f"{DESCRIPTION} names it, but there are neither records nor predictions of it; add them, or remove "
                    "it there",
                )
        self.report.datasets = [self.entries[name] for name in sorted(self.entries)]
        if not self.report.datasets:
            self.report.add(Level.REFUSED, "there are neither records (*.json) nor predictions in the folder")

    def write(self, folder: Path) -> list[Path]:
        """Write the records of predictions on accepted datasets, and return their files.

        Nothing is written where something of the submission as a whole is refused.
        """
        if self.description is None or self.report.is_refused:
            return []
        accepted = {name for name, entry in self.entries.items() if entry.verdict is not Verdict.REFUSED}
        written = []
        for dataset, record in self.computed:
            if dataset in accepted:
                written.append(save_record(record, folder))
                confirm(folder, record.digest)
        return written

    # ------------------------------------------------------------------------------------------------ parts

    def _read_description(self) -> None:
        try:
            description = self.description = read_description(self.contents.folder / DESCRIPTION)
        except ResultError as error:
            self.report.add(Level.REFUSED, error, DESCRIPTION)
            return
        self.report.model, self.report.authors = description.model, description.authors
        for name, budget in description.datasets.items():
            try:
                card = card_of(name)
            except GraphBenchError as error:
                self.report.add(Level.REFUSED, f"datasets: {error}", DESCRIPTION)
                continue
            if card.address in self.entries:
                self.report.add(Level.REFUSED, f"datasets: {card.address} is named twice", DESCRIPTION)
            self._entry(card)
            if budget is not None:
                self.budgets[card.address] = budget

    def _require_sources(self, entry: SubmittedDataset) -> None:
        """Refuse records that say that their scores were computed again from something that is not here."""
        for record in entry.records:
            if record.recomputed_from is not None and record.seed not in entry.recomputed:
                entry.add(
                    Level.REFUSED,
                    f"the record of seed {record.seed} says that it was computed from {record.recomputed_from}, "
                    f"which are not here; give the {record.recomputed_from} of this seed",
                )

    def _require_one_model(self) -> None:
        """Refuse records of several models if no description says which model the submission is of."""
        models = sorted({record.model for entry in self.entries.values() for record in entry.records})
        if len(models) > 1 and self.description is None:
            named = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
            self.report.add(Level.REFUSED, f"the runs are of {len(models)} models ({named}); give each one folder")

    def _entry(self, card: Card) -> SubmittedDataset:
        self.cards[card.address] = card
        entry = self.entries.setdefault(card.address, SubmittedDataset(card.address))
        entry.primary = card.metrics.primary
        entry.scoreable = sum(not split.startswith("train") for split in card.all_splits)
        return entry

    def _add_record(self, path: Path) -> None:
        name = self.contents.name_of(path)
        try:
            submitted = read_submitted(path)
            card = card_of(submitted.record.dataset)
        except GraphBenchError as error:
            self.report.add(Level.REFUSED, str(error).replace(f"{path} ", "").replace(f"{path}: ", ""), name)
            return
        record, entry = submitted.record, self._entry(card)
        if record.dataset != card.address:
            entry.add(Level.REFUSED, f"it is of {record.dataset!r}, whose full id is {card.address!r}", name)
            return
        if self.description is not None and record.model != self.description.model:
            entry.add(
                Level.REFUSED,
                f"it is of the model {record.model!r:.80}, {DESCRIPTION} names {self.description.model!r}; a "
                "submission is of one model",
                name,
            )
        if not submitted.has_digest:
            entry.add(Level.REFUSED, NO_DIGEST, name)
        check_record(record, name, entry, self.data)
        entry.records.append(record)

    def _add_predictions(self, folder: SeedPath) -> None:
        """Score the predictions of a seed; add the record of them, or compare them with the one that is given."""
        name = self.contents.name_of(folder.path)
        try:
            card = card_of(folder.dataset)
        except GraphBenchError as error:
            self.report.add(Level.REFUSED, error, name)
            return
        entry = self._entry(card)
        if self.description is None and (self.contents.folder / DESCRIPTION).exists():
            unread = f"not scored: {DESCRIPTION}, which may state a limit, cannot be read; mend it first"
            entry.add(Level.REFUSED, unread, name)
            entry.lost.append(folder.seed)
            return
        try:
            self._score(folder, card, entry, name)
        except GraphBenchError as error:
            entry.add(Level.REFUSED, str(error).replace(f"{folder.path}/", ""), name)
            entry.lost.append(folder.seed)

    def _score(self, folder: SeedPath, card: Card, entry: SubmittedDataset, name: str) -> None:
        stated = self.budgets.get(card.address, StatedBudget())
        record = next((r for r in entry.records if r.seed == folder.seed and not r.data_seed), None)
        like = record or next(iter(entry.records), None)
        scored = score_folder(folder.path, card, stated, self.data, record, like)
        entry.recomputed[folder.seed] = tuple(scored.files)
        for warning in scored.warnings:
            entry.add(Level.REMARK, warning.replace(f"{folder.path}/", ""), name)
        self._note_copies(scored.files, card.address, folder.seed, entry)
        if record is None:
            self._add_computed(scored, folder.seed, stated, entry, name)
        elif words := difference(record, scored.scores):
            entry.add(
                Level.REFUSED,
                f"{words}; give the predictions of the run that is recorded, or remove the record: --records "
                "writes one of these predictions",
                name,
            )

    def _add_computed(
        self, scored: ScoredSeed, seed: int, stated: StatedBudget, entry: SubmittedDataset, name: str
    ) -> None:
        """Add the record of scores that were computed from predictions."""
        if any(other.config.get("kind") != OWN_MODEL for other in entry.records):
            entry.add(
                Level.REFUSED,
                f"there is no record of seed {seed} that can be read, but records of other seeds; add it, or remove "
                "the predictions",
                name,
            )
            return
        config = {} if stated.limit is None else {"limit": stated.limit}
        statement = statement_of(self.description, seed, stated, config)
        computed = RunRecord.of_statement(scored.used, scored.scores, statement)
        computed = computed.model_copy(update={"budget": self._budget(computed, scored.card, stated)})
        check_record(computed, name, entry, self.data)
        computed = computed.model_copy(update={"recomputed_from": "predictions"})
        entry.records.append(computed)
        self.computed.append((entry.dataset, computed))

    def _budget(self, record: RunRecord, card: Card, stated: StatedBudget) -> Budget:
        """Return the budget of a record, which is small where a limit made the samples smaller."""
        if stated.limit is None or not self.data.is_limited(card):
            return record.budget
        limited = f"at most {stated.limit} {limited_parameter(card)} in each split"
        return Budget(small=True, label=f"{record.budget.label}, {limited}")

    def _note_copies(self, files: Mapping[str, Path], dataset: str, seed: int, entry: SubmittedDataset) -> None:
        """Remark on files that two seeds have alike, byte for byte."""
        for split, path in files.items():
            if path.is_dir():
                continue
            before = self.seeds.setdefault((dataset, split, file_sha256(path)), seed)
            if before != seed:
                entry.add(
                    Level.REMARK,
                    f"the predictions of {split} of the seeds {before} and {seed} are the same file; check that they "
                    "are two runs",
                )
