"""Score trivial baselines and reference solvers on the samples that models are scored on: the samples of the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphbench.catalog.cards import Card
from graphbench.catalog.sections import MeasuredScores, MeasuredTask, Numbers
from graphbench.core.progress import Progress
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.tasks.base import Task
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_WHOLE = 50_000  # samples: larger splits are scored in part
_LABEL_SHARDS = 8  # units of work of a labeller per split, where labels are costly and not recorded
_LEAST_LABELLED, _MOST_LABELLED = 256, 512
_TRAINING = 10_000  # most training samples that trivial predictors see
_SCORED_OF_TRAINING = 2_000  # of splits to train on, which no model is compared on

_TEST = "test"


@dataclass(frozen=True)
class Counts:
    """On how many samples of a split scores are measured.

    Attributes:
        most: The first ``most`` samples of every split, or the whole split if it has fewer.
        also: Further numbers: splits with more samples are scored on the first ones besides.
        before: Split -> number of samples that its scores on the card are of, where this is more than ``most``.
    """

    most: int
    also: tuple[int, ...] = ()
    before: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, card: Card, samples: Iterable[int] = ()) -> Counts:
        """Return the numbers for a task: the usual one, the numbers on the card, and further ones.

        Args:
            card: The card of the task.
            samples: Further numbers.
        """
        measured = card.measured_scores
        numbers = {usual_count(card), *samples, *measured.scores_on_first}
        most = max(numbers)
        counts = {split: measured.scored_samples.get(split, 0) for split in _scored_splits(card)}
        before = {split: count for split, count in counts.items() if count > most}
        return cls(most, tuple(sorted({*samples, *measured.scores_on_first})), before)

    def of_split(self, card: Card, split: str) -> int:
        """Return the number of samples of a split."""
        most = self.most if split in _scored_splits(card) else min(self.most, _SCORED_OF_TRAINING)
        return min(card.split(split).count, max(most, self.before.get(split, 0)))


def usual_count(card: Card) -> int:
    """Return the number of samples on which a task is scored if nothing else is said: fewer where labels are costly."""
    costly = [labeller for labeller in (find("labeller", name) for name in card.labellers) if labeller.recorded is None]
    shards = [labeller.shard_size(labeller.parse(card, _TEST)) for labeller in costly]
    return min([_WHOLE, *(min(max(_LEAST_LABELLED, _LABEL_SHARDS * size), _MOST_LABELLED) for size in shards)])


def measured_task(
    card: Card,
    root: Path,
    samples: Iterable[int] = (),
    *,
    splits: Iterable[str] | None = None,
    bar: Progress | None = None,
    progress: bool | None = False,
) -> MeasuredTask:
    """Return the scores of the trivial predictors and reference solvers of a task.

    The samples come from the files, which are built where they are missing.

    Args:
        card: The card of the task.
        root: Folder of the datasets.
        samples: Numbers of samples to measure on besides the usual one; see :class:`Counts`.
        splits: The splits to score; None for all. ``train`` is never scored.
        bar: Is advanced once for every split.
        progress: Show progress bars of builds; None for terminals only.
    """
    task, counts = task_of(card), Counts.of(card, samples)
    if task.reads_training:
        from graphbench.data.batches.dataset import GraphDataset  # with PyTorch Geometric, which checks do without

        path = ensure_split(card, "train", root, progress=progress)
        task.facts = task.training_facts(GraphDataset(card, "train", path))
    train = _training_samples(card, root, counts, progress)
    most, parts = _Scores(), {number: _Scores() for number in counts.also}
    for split in card.all_splits if splits is None else splits:
        if split == "train":
            continue
        size = counts.of_split(card, split)
        data = _open(card, split, root, size, progress)
        most.add(card, task, train, data)
        for number in counts.also:
            if number < size:
                parts[number].add(card, task, train, _open(card, split, root, number, progress))
        if bar is not None:
            bar.update()
    facts = most.measured
    return MeasuredTask(
        floor=facts.floor,
        solvers=facts.solvers,
        scored_samples=facts.scored_samples,
        scored_hashes=facts.scored_hashes,
        scores_on_first={number: part.measured for number, part in parts.items() if part.samples},
        training=dict(task.facts),
    )


def _scored_splits(card: Card) -> list[str]:
    """Return the splits on which models are compared: all but the splits to train on."""
    training = set(task_of(card).splits_for("train")) | {"train"}
    return [split for split in card.all_splits if split not in training]


def _training_samples(card: Card, root: Path, counts: Counts, progress: bool | None) -> Samples:
    """Return the training samples that trivial predictors see: drawn anew, unless they are costly to draw."""
    most = max([counts.most, *counts.before.values()])
    size = min(card.split("train").count, _TRAINING, most if card.labellers else _TRAINING)
    if card.labellers or find("generator", card.generator).environment is not None:
        size = card.split("train").count if not card.labellers else size
        return _open(card, "train", root, size, progress).samples
    return draw_samples(card, "train", np.arange(size))


def _open(card: Card, split: str, root: Path, size: int, progress: bool | None) -> GraphDataset:
    from graphbench.data.batches.dataset import GraphDataset

    limit = None if size == card.split(split).count else size
    path = ensure_split(card, split, root, limit, workers=1, progress=progress)
    return GraphDataset(card, split, path, limit=limit)


@dataclass
class _Scores:
    """Scores that are collected split by split."""

    floor: dict[str, Numbers] = field(default_factory=dict)
    solvers: dict[str, Numbers] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> MeasuredScores:
        """The scores as the card has them."""
        return MeasuredScores(
            floor=self.floor, solvers=self.solvers, scored_samples=self.samples, scored_hashes=self.hashes
        )

    def add(self, card: Card, task: Task, train: Samples, data: GraphDataset) -> None:
        """Score a split, and the parts and groups of the test split."""
        split, samples = data.split, data.samples
        generator = find("generator", card.generator)
        solved: dict[str, Mapping[str, float]] = dict(task.solvers(samples))
        if generator.solvers is not None and not card.labellers:
            solved = dict(generator.solvers(generator.parse(card, split), train, samples)) | solved
        self._put(split, data.stored_graphs, task.floors(train, samples), solved)
        if generator.environment is not None:
            self.hashes[split] = data.content_hash
        if split != _TEST:
            return
        for group, floors in task.group_floors(train, samples).items():
            self._put(f"{_TEST}_{group}", task.further_batches(data, 1).samples, floors, {})
        for part, numbers in task.parts(samples).items():
            part_samples = samples.take(card.stored_schema, numbers)
            self._put(f"{_TEST}_{part}", len(numbers), task.floors(train, part_samples), task.solvers(part_samples))

    def _put(self, name: str, count: int, floors: Numbers, solved: Mapping[str, Mapping[str, float]]) -> None:
        if not floors and not solved:
            return
        self.floor[name], self.samples[name] = {key: dict(scores) for key, scores in floors.items()}, count
        if solved:
            self.solvers[name] = {key: dict(scores) for key, scores in solved.items()}
