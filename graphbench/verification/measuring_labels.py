"""Measure what stands beside the labels and tasks of a card: hashes, statistics, scores of simple rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.sections import MeasuredLabels, MeasuredTask
from graphbench.core.progress import Progress
from graphbench.data.generation import draw_samples
from graphbench.data.hashing import samples_hash
from graphbench.data.labels import labeller_of
from graphbench.data.samples import Labeller, Samples
from graphbench.tasks.registry import task_of

FIRST_LABELS = 64  # samples whose labels the card pins
_STATISTICS_NODES = 60_000


def labels_hash(card: Card, samples: Samples) -> str:
    """Return the SHA-256 of the labels of some samples of a task."""
    return samples_hash({f.name: samples.values[f.name] for f in card.label_features})


def labelled_first(card: Card, split: str, most: int | None = None) -> Samples:
    """Return first draws of the samples whose labels the card pins, with their labels; of ``most`` at most."""
    return draw_samples(card, split, np.arange(min(most or FIRST_LABELS, FIRST_LABELS, card.split(split).count)))


def describe_labels(labeller: Labeller, samples: Samples) -> dict[str, tuple[float, float]]:
    """Return name -> (mean, standard deviation) of the labeller's statistics, over the graphs that have a label."""
    found = {}
    for name, values in labeller.statistics(samples).items():
        known = values[~np.isnan(values)]
        if len(known):
            found[name] = float(np.mean(known)), float(np.std(known))
    return found


def measure_labels(card: Card, bar: Progress) -> tuple[dict[str, MeasuredLabels], dict[str, MeasuredTask]]:
    """Return what is measured of all labels and all tasks of a card.

    Args:
        card: The card.
        bar: Moves on with every split of every labeller.
    """
    labels, tasks = {}, {}
    for name in card.labels:
        views = [card.with_task(task) for task, spec in card.tasks.items() if spec.labels == name]
        labels[name], samples = _measured_labels(views[0], bar)
        for view in views:
            tasks[str(view.task_name)] = _measured_task(view, samples)
    return labels, {task: tasks[task] for task in card.tasks}


def _measured_labels(card: Card, bar: Progress) -> tuple[MeasuredLabels, dict[str, Samples]]:
    labeller, found = labeller_of(card), {}
    hashes, statistics, counted = {}, {}, {}
    for split in card.all_splits:
        first = draw_samples(card.graphs, split, np.arange(1))
        most = min(4 * FIRST_LABELS, int(_STATISTICS_NODES / float(first.num_nodes.mean())))
        size = min(card.split(split).count, max(FIRST_LABELS, most))
        found[split] = samples = draw_samples(card, split, np.arange(size))
        hashes[split] = labels_hash(card, samples.part(card, 0, min(FIRST_LABELS, size)))
        statistics[split], counted[split] = describe_labels(labeller, samples), size
        bar.update()
    return MeasuredLabels(first_samples=hashes, statistics=statistics, statistics_samples=counted), found


def _measured_task(card: Card, samples: Mapping[str, Samples]) -> MeasuredTask:
    task, splits = task_of(card), [split for split in samples if split != "train"]
    solvers = {split: found for split in splits if (found := task.solvers(samples[split]))}
    return MeasuredTask(
        floor={split: task.floors(samples["train"], samples[split]) for split in splits}, solvers=solvers
    )


def labelled(card: Card, samples: Samples) -> NDArray[np.bool_]:
    """Return which graphs have a label, bool ``[S]``."""
    known: NDArray[np.bool_] = samples.values[labeller_of(card).failed] == 0
    return known
