"""Measure what stands beside the labels and tasks of a card: hashes, statistics, scores of simple rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.sections import MeasuredLabels, MeasuredTask, Numbers
from graphbench.core.progress import Progress
from graphbench.data.generation import draw_samples
from graphbench.data.hashing import samples_hash
from graphbench.data.labels import labeller_of
from graphbench.data.samples import Labeller, Samples
from graphbench.evaluation.floors import trivial_scores
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.metrics.solutions import SolutionSums, SolvedGraphs
from graphbench.evaluation.solutions import PROBLEMS

FIRST_LABELS = 64  # samples whose labels the card pins
_STATISTICS_NODES = 60_000
_MEASURED_BY_CLOCK = "seconds_per_graph"


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
    splits = [split for split in samples if split != "train"]
    if card.task.type != "solve":
        return MeasuredTask(floor={split: _trivial(card, samples["train"], samples[split]) for split in splits})
    rules = {split: labeller_of(card).baselines(samples[split]) for split in splits}
    label = PROBLEMS[str(card.task_name)].label
    return MeasuredTask(
        floor={s: {name: _scores(card, samples[s], values) for name, values in rules[s].items()} for s in splits},
        solvers={s: {"labels": _scores(card, samples[s], samples[s].values[label])} for s in splits},
    )


def _trivial(card: Card, train: Samples, samples: Samples) -> Numbers:
    output = card.outputs[0].name
    known, truth = (s.values[output][labelled(card, s)] for s in (train, samples))
    return trivial_scores(card.outputs[0], known, truth, None, (card.metrics.primary, *card.metrics.also))


def labelled(card: Card, samples: Samples) -> NDArray[np.bool_]:
    """Return which graphs have a label, bool ``[S]``."""
    known: NDArray[np.bool_] = samples.values[labeller_of(card).failed] == 0
    return known


def _scores(card: Card, samples: Samples, objectives: NDArray[Any]) -> dict[str, float]:
    """Return the scores of solutions that have these objectives, of the graphs that have a label."""
    problem, known = PROBLEMS[str(card.task_name)], labelled(card, samples)
    values, labels, bounds = (
        np.asarray(array)[known].astype(np.int64)
        for array in (objectives, samples.values[problem.label], samples.values[problem.bound])
    )
    sums = SolutionSums()
    sums.add(SolvedGraphs(values, problem.maximise, labels, bounds))
    names = (card.metrics.primary, *card.metrics.also)
    return {name: METRICS[name].value(sums) for name in names if name != _MEASURED_BY_CLOCK}
