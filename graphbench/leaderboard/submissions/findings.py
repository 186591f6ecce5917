"""The findings of the check of a submission, dataset by dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from graphbench.core.untrusted import shown
from graphbench.records.record import RunRecord

_MOST_SHOWN = 600  # characters of a finding


class Level(StrEnum):
    """How much a finding matters: it refuses the dataset, is a remark, or is something optional that is missing."""

    REFUSED = "refused"
    REMARK = "remark"
    MISSING = "missing"


class Verdict(StrEnum):
    """The outcome of the check of the results on a dataset."""

    ACCEPTED = "accepted"
    WITH_REMARKS = "accepted with remarks"
    REFUSED = "refused"


@dataclass(frozen=True)
class Finding:
    """One finding of the check: a fault, a remark or a gap.

    Attributes:
        level: How much it matters.
        text: The fault and its remedy; every character of the text can be printed.
        file: The file with the fault, below the folder of the submission; empty if the fault concerns no single file.
    """

    level: Level
    text: str
    file: str = ""

    @classmethod
    def of(cls, level: Level, text: object, file: object = "") -> Finding:
        """Return a finding whose text and file can be printed."""
        return cls(level, shown(text, _MOST_SHOWN), shown(file, _MOST_SHOWN))

    @property
    def line(self) -> str:
        """The file and the text, in one line."""
        return f"{self.file}: {self.text}" if self.file and not self.text.startswith(self.file) else self.text


@dataclass
class SubmittedDataset:
    """The results that a submission has on one dataset.

    Attributes:
        dataset: Id of the dataset, with its task.
        findings: The findings on the dataset.
        records: The records of its runs, including the records made from predictions.
        recomputed: Seeds whose scores were computed from predictions, with the splits.
        lost: Seeds whose predictions were refused, so that the scores are without them.
        complete: Split that was scored -> whether all of its samples were, in every run.
        hashes: Split -> the source that its data hash was compared with; empty if there was no source.
        primary: Name of the metric that ranks models.
        scoreable: Number of splits that could be scored: all but the splits to train on.
    """

    dataset: str
    findings: list[Finding] = field(default_factory=list)
    records: list[RunRecord] = field(default_factory=list)
    recomputed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    complete: dict[str, bool] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    primary: str = ""
    scoreable: int = 0
    _known: set[Finding] = field(default_factory=set, repr=False)

    def add(self, level: Level, text: object, file: object = "") -> None:
        """Add a finding, once."""
        finding = Finding.of(level, text, file)
        if finding not in self._known:
            self._known.add(finding)
            self.findings.append(finding)

    def of_level(self, level: Level) -> list[Finding]:
        """Return the findings of one level."""
        return [finding for finding in self.findings if finding.level is level]

    @property
    def verdict(self) -> Verdict:
        """The outcome of the check; without records the results are refused."""
        if self.of_level(Level.REFUSED) or not self.records:
            return Verdict.REFUSED
        return Verdict.WITH_REMARKS if self.of_level(Level.REMARK) else Verdict.ACCEPTED

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs, ascending."""
        return sorted({record.seed for record in self.records})

    def values(self, split: str) -> list[float]:
        """Return the primary metric of a split, of every run that has it."""
        return [r.scores[split][self.primary] for r in self.records if self.primary in r.scores.get(split, {})]

    def by_run(self, split: str) -> dict[str, float]:
        """Return run -> primary metric of a split; a run is called by its seed, and by the draw of its data but 0."""
        return {
            f"{record.seed}{f', draw {record.data_seed}' if record.data_seed else ''}": record.scores[split][
                self.primary
            ]
            for record in self.records
            if self.primary in record.scores.get(split, {})
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "dataset": self.dataset,
            "verdict": self.verdict,
            "seeds": self.seeds,
            "lost_seeds": self.lost,
            "metric": self.primary,
            "scores": {split: self.by_run(split) for split in self.complete},
            "complete": self.complete,
            "recomputed": {str(seed): list(splits) for seed, splits in sorted(self.recomputed.items())},
            "data_hashes": self.hashes,
            "findings": _for_json(self.findings),
        }


@dataclass
class SubmissionReport:
    """The findings of the check of a submission.

    Attributes:
        folder: The folder.
        model: Name of the model; empty where the submission does not say.
        authors: Its authors.
        findings: The findings that belong to no dataset.
        datasets: The results by dataset, in the order of their ids.
        unread: Number of files that are neither description, record nor predictions.
        written: Records that were written.
    """

    folder: Path
    model: str = ""
    authors: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    datasets: list[SubmittedDataset] = field(default_factory=list)
    unread: int = 0
    written: list[Path] = field(default_factory=list)

    def add(self, level: Level, text: object, file: object = "") -> None:
        """Add a finding that belongs to no dataset."""
        self.findings.append(Finding.of(level, text, file))

    @property
    def is_refused(self) -> bool:
        """Whether something that belongs to no dataset is refused, such as a file that cannot be read."""
        return any(finding.level is Level.REFUSED for finding in self.findings)

    @property
    def accepted(self) -> bool:
        """Whether there are results and all of them are accepted."""
        if self.is_refused or not self.datasets:
            return False
        return all(dataset.verdict is not Verdict.REFUSED for dataset in self.datasets)

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "folder": str(self.folder),
            "model": self.model,
            "authors": list(self.authors),
            "accepted": self.accepted,
            "findings": _for_json(self.findings),
            "datasets": [dataset.to_dict() for dataset in self.datasets],
            "unread": self.unread,
            "written": [str(path) for path in self.written],
        }


def _for_json(findings: Sequence[Finding]) -> list[Mapping[str, str]]:
    return [{"level": f.level, "file": f.file, "text": f.text} for f in findings]
