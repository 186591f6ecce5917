"""Measured scores of trivial predictors and reference solvers, and whether they are of the samples of other scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphbench.catalog.sections import MeasuredScores, Numbers

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The samples of a split, or of a part of it, that scores are of.

    Attributes:
        version: Version of the dataset.
        draw: Which draw of the dataset; 0 is the canonical one.
        count: Number of samples, the first ones of the split; None where it is unknown.
        hash: Content hash of the samples; empty where it is unknown.
    """

    version: int
    draw: int
    count: int | None
    hash: str = ""

    def is_same(self, other: SampleSet) -> bool:
        """Return whether two sets hold the same samples, judged by their attributes.

        Version, draw and number must agree, and neither number may be None. Hashes must agree if both sets have one.
        """
        if self.count is None or (self.version, self.draw, self.count) != (other.version, other.draw, other.count):
            return False
        return not self.hash or not other.hash or self.hash == other.hash


@dataclass(frozen=True, slots=True)
class SplitReferences:
    """Scores of trivial predictors and reference solvers on a split, or on a part of it.

    Attributes:
        samples: The samples that they were measured on.
        floor: Trivial predictor -> metric -> score.
        solvers: Reference solver -> metric -> score.
    """

    samples: SampleSet
    floor: Numbers
    solvers: Numbers


def whole_split(card: Card, split: str) -> SampleSet:
    """Return the set of all samples of a split of the card's version and draw; of a part, whose number is unknown."""
    spec = card.all_splits.get(split)
    return SampleSet(card.version, card.data_seed, None if spec is None else spec.count)


def measured_references(card: Card, split: str) -> tuple[SplitReferences, ...]:
    """Return the measured references of a split or a part: first on the most samples, then on fewer.

    Args:
        card: The card of the task.
        split: Name of the split, or of a part of the test split such as ``test_n16``.
    """
    measured = card.measured_scores
    blocks = [measured, *(block for _, block in sorted(measured.scores_on_first.items(), reverse=True))]
    return tuple(_of_block(card, block, split) for block in blocks if split in block.floor or split in block.solvers)


def references_on(card: Card, split: str, samples: SampleSet) -> SplitReferences | None:
    """Return the references measured on exactly these samples of a split or part; None if there are none.

    Args:
        card: The card of the task.
        split: Name of the split or part.
        samples: The samples, such as the samples that a model was scored on.
    """
    same = (measured for measured in measured_references(card, split) if measured.samples.is_same(samples))
    return next(same, None)


def nearest_references(card: Card, split: str, samples: SampleSet) -> tuple[SplitReferences | None, bool]:
    """Return the references measured on exactly these samples, or else on the most, and whether the samples differ.

    Arguments are those of :func:`references_on`.
    """
    same = references_on(card, split, samples)
    return (same, False) if same is not None else (next(iter(measured_references(card, split)), None), True)


def samples_text(samples: SampleSet, noun: str, than: SampleSet | None = None) -> str:
    """Return a set of samples in words: ``64 graphs``, and how it differs from another set.

    Args:
        samples: The set.
        noun: The noun for samples, in the plural.
        than: The other set; None names the number alone.
    """
    if samples.count is None:
        count = f"an unknown number of {noun}"
    else:
        count = "1 sample" if samples.count == 1 else f"{samples.count:,} {noun}"
    if than is None:
        return count
    parts = [f"version {samples.version}"] * (samples.version != than.version)
    parts += [f"data seed {samples.draw}"] * (samples.draw != than.draw)
    alike = replace(samples, hash="").is_same(replace(than, hash=""))
    parts += ["other content"] * (alike and not samples.is_same(than))
    return ", ".join([count, *parts])


def _of_block(card: Card, block: MeasuredScores, split: str) -> SplitReferences:
    samples = SampleSet(card.version, 0, block.scored_samples.get(split), _hash_of(card, block.scored_hashes, split))
    return SplitReferences(samples, block.floor.get(split, {}), block.solvers.get(split, {}))


def _hash_of(card: Card, hashes: Mapping[str, str], split: str) -> str:
    """Return the hash of a split, or of the split that a part is of; unknown for representations."""
    if card.representation is not None:
        return ""
    base = next((name for name in hashes if split.startswith(f"{name}_") and split not in card.all_splits), "")
    return hashes.get(split) or hashes.get(base, "")
