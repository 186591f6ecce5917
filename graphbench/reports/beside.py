"""The samples behind the scores of a table, and the measured references that the table shows next to its models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphbench.evaluation.references import (
    SampleSet,
    SplitReferences,
    measured_references,
    references_on,
    samples_text,
    whole_split,
)
from graphbench.records.aggregates import Aggregate
from graphbench.records.record import RunRecord
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

APART = "other samples"
"""The mark of a row that was scored on other samples than the rest of its table."""

_SCORED = re.compile(
    r"\b(\w+) ([\d,]{1,15}) of [\d,]+"
)  # in notes of older records: "graphs scored: test 200 of 10,000"
_SCORED_NOTE = "graphs scored: "


def graphs_scored(record: RunRecord, split: str) -> int | None:
    """Return the number of graphs behind the scores of a split, or None; older records say it in their notes."""
    if split in record.graphs_scored:
        return record.graphs_scored[split]
    if _SCORED_NOTE in record.notes:
        for name, count in _SCORED.findall(record.notes.partition(_SCORED_NOTE)[2]):
            if name == split:
                return int(count.replace(",", ""))
    return None


def samples_of(record: RunRecord, card: Card, split: str) -> SampleSet:
    """Return the samples behind a record's scores of a split, or of a part of it.

    A record that does not say how many samples were scored covers the whole split, because every version that can score
    a part of a split records the number.
    """
    content, graphs = content_hash_of(record, card, split), graphs_scored(record, split)
    count = graphs if graphs is not None else _whole_count(card, split)
    return SampleSet(record.dataset_version, record.data_seed, count, content)


def content_hash_of(record: RunRecord, card: Card, split: str) -> str:
    """Return the data hash of a split in a record; a part of a split has the hash of the whole split; may be empty."""
    base = next((name for name in record.data_hashes if split.startswith(f"{name}_") and split not in card.ood), "")
    return record.data_hashes.get(split) or record.data_hashes.get(base, "")


def _whole_count(card: Card, split: str) -> int | None:
    """Return the number of samples of a split, or of a part of a split if the whole split was measured; else None."""
    if split in card.all_splits:
        return whole_split(card, split).count
    scored = card.measured_scores.scored_samples
    base = next((name for name in scored if split.startswith(f"{name}_") and name in card.all_splits), "")
    return scored.get(split) if base and scored[base] == card.split(base).count else None


@dataclass(frozen=True, slots=True)
class Beside:
    """The samples behind the scores of a split in a table, and the references that were measured on the same samples.

    Attributes:
        card: The card of the task.
        split: Name of the split, or of a part of it.
        samples: The samples of the table: among the sample sets with references, the set on which most models were
            scored; without references, the set on which most models were scored. A model with several draws of the
            data has several sets. Empty without a model.
        references: The references measured on these samples; otherwise the references measured on the most samples,
            which then stand apart; None if nothing was measured.
    """

    card: Card
    split: str
    samples: frozenset[SampleSet]
    references: SplitReferences | None

    @property
    def references_stand_apart(self) -> bool:
        """Whether the references were measured on other samples than the table's, or on unknown samples."""
        if self.references is None or not self.samples:
            return False
        return not _are_same(self.samples, frozenset([self.references.samples]))

    @property
    def reference_note(self) -> str:
        """The note behind a reference's score: ``on 64 graphs``; empty if the score is of the table's samples."""
        if self.references is None or not self.references_stand_apart:
            return ""
        return f"on {self._text(self.references.samples, min(self.samples, key=_order))}"

    def note(self, runs: Aggregate) -> str:
        """Return the note behind the score of some runs; empty if the score is of the table's samples."""
        sets = _samples_of_runs(runs, self.card, self.split)
        if not sets or _are_same(sets, self.samples):
            return ""
        than = min(self.samples, key=_order)
        return " and ".join(f"on {self._text(samples, than)}" for samples in sorted(sets, key=_order))

    def _text(self, samples: SampleSet, than: SampleSet) -> str:
        return samples_text(samples, task_of(self.card).samples, than)


def beside(card: Card, split: str, results: Sequence[Aggregate]) -> Beside:
    """Return the samples behind the scores of a split in a table of some runs, and the references next to them.

    Args:
        card: The card of the task.
        split: Name of the split, or of a part of it.
        results: The runs of the table.
    """
    measured = measured_references(card, split)
    counted = Counter(samples for runs in results if (samples := _samples_of_runs(runs, card, split)))
    for samples, _ in counted.most_common():
        for references in measured:
            if _are_same(samples, frozenset([references.samples])):
                return Beside(card, split, samples, references)
    common = next((samples for samples, _ in counted.most_common()), frozenset())
    return Beside(card, split, common, next(iter(measured), None))


def shared_references(card: Card, split: str, results: Sequence[Aggregate]) -> SplitReferences | None:
    """Return the references that were measured on the samples of all runs with a score of a split; else None.

    These references may be drawn as a line next to all of the runs. If no run has a score of the split, there is
    nothing to mix, and the function returns the references measured on the most samples.
    """
    sets = {samples for runs in results for samples in _samples_of_runs(runs, card, split)}
    if not sets:
        return next(iter(measured_references(card, split)), None)
    references = references_on(card, split, min(sets, key=_order))
    return references if references is not None and all(s.is_same(references.samples) for s in sets) else None


def _samples_of_runs(runs: Aggregate, card: Card, split: str) -> frozenset[SampleSet]:
    return frozenset(samples_of(record, card, split) for record in runs.records if split in record.scores)


def _are_same(first: frozenset[SampleSet], second: frozenset[SampleSet]) -> bool:
    """Return whether two models, of one or of several draws, were scored on the same samples."""
    pairs = zip(sorted(first, key=_order), sorted(second, key=_order), strict=False)
    return first == second or (len(first) == len(second) and all(a.is_same(b) for a, b in pairs))


def _order(samples: SampleSet) -> tuple[int, int, int, str]:
    return samples.version, samples.draw, -1 if samples.count is None else samples.count, samples.hash
