"""Datasets whose answers are texts: their samples as strings, and scores of a split and of every problem size in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import Evaluator, Score

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.dataset import GraphDataset

_SIZED = re.compile(r"(.+)_n(\d+)")
_AT_ONCE = 4096


@dataclass(frozen=True)
class TextSamples:
    """The samples of a split as strings, in its order.

    Attributes:
        prompts: What a model reads.
        references: The right answers.
        sizes: Problem sizes, the number of nodes.
    """

    prompts: list[str]
    references: list[str]
    sizes: list[int]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.prompts)

    def take(self, numbers: Iterable[int]) -> TextSamples:
        """Return some of the samples."""
        chosen = list(numbers)
        columns = (self.prompts, self.references, self.sizes)
        return TextSamples(*([column[i] for i in chosen] for column in columns))  # type: ignore[arg-type]

    @classmethod
    def of(cls, dataset: GraphDataset) -> TextSamples:
        """Return the samples of a split.

        Raises:
            EvaluationError: If the dataset has no text to read, or its answers are no texts.
        """
        prompt, reference = _text(dataset.card, dataset.card.inputs), _text(dataset.card, dataset.card.outputs)
        found = cls([], [], [])
        for batch in dataset.batches(_AT_ONCE) if len(dataset) else ():
            found.prompts.extend(batch[prompt])
            found.references.extend(batch[reference])
            found.sizes.extend(np.diff(batch.ptr.numpy()).tolist())
        return found


def asks_for_text(card: Card) -> bool:
    """Return whether the answers of a dataset are texts."""
    return card.outputs[0].kind is Kind.TEXT


def _text(card: Card, features: Iterable[Feature]) -> str:
    for feature in features:
        if feature.kind is Kind.TEXT and feature.location is Location.GRAPH:
            return feature.name
    raise EvaluationError(f"{card.address} has no text in and text out, one each per sample; choose one of clrs_text")


def sized_split(split: str, size: int) -> str:
    """Return the name under which the scores of one problem size of a split stand, e.g. ``test_n16``."""
    return f"{split}_n{size}"


def split_and_size(name: str) -> tuple[str, int | None]:
    """Return split and problem size of a name of :func:`sized_split`; the size of a whole split is None."""
    match = _SIZED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def text_scores(card: Card, split: str, samples: TextSamples, outputs: Sequence[str]) -> dict[str, Score]:
    """Return the score of a model's answers to a split, and, as ``<split>_n<size>``, of every problem size in it.

    Args:
        card: The dataset's card.
        split: Name of the split.
        samples: The prompts that were answered.
        outputs: The answers, in the same order.

    Raises:
        EvaluationError: If there is no sample, or not one answer per prompt.
    """
    evaluator = Evaluator(card)
    scores = {split: evaluator.evaluate(samples.references, list(outputs))}
    groups: dict[int, list[int]] = {}
    for number, size in enumerate(samples.sizes):
        groups.setdefault(size, []).append(number)
    for size, members in sorted(groups.items()):
        answers = [outputs[i] for i in members]
        scores[sized_split(split, size)] = evaluator.evaluate(samples.take(members).references, answers)
    return scores


def by_size(
    scores: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, Mapping[str, float]], dict[int, dict[str, Mapping[str, float]]]]:
    """Return the scores of whole splits by name, and those of problem sizes as size -> split -> score, ascending."""
    whole: dict[str, Mapping[str, float]] = {}
    sizes: dict[int, dict[str, Mapping[str, float]]] = {}
    for name, own in scores.items():
        split, size = split_and_size(name)
        if size is None or split not in scores:
            whole[name] = own
        else:
            sizes.setdefault(size, {})[split] = own
    return whole, dict(sorted(sizes.items()))
