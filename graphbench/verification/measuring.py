"""Measure the facts that accompany a card: hashes of the first samples, statistics, scores of trivial predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.families import measured_path
from graphbench.catalog.sections import Measured, MeasuredLabels, MeasuredTask
from graphbench.core.files import write_json
from graphbench.core.progress import Progress, progress_bar
from graphbench.data.domain import find_generator
from graphbench.data.generation import add_labels, draw_samples, ensure_split
from graphbench.data.hashing import samples_hash
from graphbench.data.labels import labeller_of
from graphbench.data.packing import unpacked
from graphbench.data.samples import Generator, Labeller, Samples
from graphbench.data.shared_graph import graph_of_series
from graphbench.data.store import default_root
from graphbench.data.texts import stored_arrays
from graphbench.tasks.base import Task
from graphbench.tasks.registry import task_of

FIRST = 64  # samples whose bytes, and whose labels, the card pins
_STATISTICS_NODES = 160_000
_LABEL_STATISTICS_NODES = 60_000
_FLOOR_SAMPLES = 2_000  # most graphs per split on which the trivial predictors are scored

Statistics = dict[str, tuple[float, float]]
"""Name -> (mean, standard deviation over graphs)."""


def arrays_hash(samples: Samples) -> str:
    """Return the SHA-256 of samples as they would be stored on their own."""
    return samples_hash(samples.arrays())


def labels_hash(card: Card, samples: Samples) -> str:
    """Return the SHA-256 of the labels of some samples of a task."""
    return samples_hash(stored_arrays({f.name: samples.values[f.name] for f in card.label_features}))


def first_samples(card: Card, split: str) -> Samples:
    """Return first draws of the samples that the card pins, with the labels of the card's task."""
    return draw_samples(card, split, np.arange(min(FIRST, card.split(split).count)))


def statistics_size(card: Card, split: str, generator: Generator, first: Samples) -> int:
    """Return the number of samples for statistics: fewer if graphs are large or slow to draw."""
    work = generator.shard_size(generator.parse(card, split))  # a number of graphs of about constant cost
    most = min(int(_STATISTICS_NODES / float(first.num_nodes.mean())), 30 * work)
    return min(card.split(split).count, max(FIRST, most))


def describe(generator: Generator, parameters: Any, samples: Samples, graph: Samples | None = None) -> Statistics:
    """Return the statistics of sizes, and those that the generator defines.

    Args:
        generator: The generator.
        parameters: Its parameters.
        samples: The samples, not packed.
        graph: The graph that all samples share, of a series; None where every sample has its own.
    """
    own = generator.statistics(parameters, samples)
    places = np.arange(len(samples)) if graph is None else np.zeros(len(samples), np.int64)
    sizes = samples if graph is None else graph
    return _summary({"nodes": sizes.num_nodes[places], "edges": sizes.num_edges[places], **own})


def describe_labels(labeller: Labeller, samples: Samples) -> Statistics:
    """Return the labeller's statistics, over the graphs that have a label."""
    return _summary({name: values[~np.isnan(values)] for name, values in labeller.statistics(samples).items()})


def _summary(per_graph: Mapping[str, NDArray[Any]]) -> Statistics:
    return {name: (float(np.mean(v)), float(np.std(v))) for name, v in per_graph.items() if np.size(v)}


def measure(card: Card, *, progress: bool | None = None, root: str | Path | None = None) -> Measured:
    """Measure hashes of the first samples, statistics, and scores of trivial predictors and reference solvers.

    Samples are drawn anew, except for those of simulators, whose bits depend on the machine: these are read from the
    files, whole splits.

    Args:
        card: The card.
        progress: Show a progress bar; None for terminals only.
        root: Folder of the datasets, for tasks whose scores refer to facts of the training split, which is read there,
            and for simulated datasets.
    """
    whole, card = card, card.graphs
    task = _measuring_task(whole, root, progress) if whole.outputs and not whole.tasks else None
    generator = find_generator(card.generator)
    hashes, statistics, counted, different, floor, solvers = {}, {}, {}, {}, {}, {}
    graphs: dict[str, Samples] = {}
    shared = None if whole.series is None else graph_of_series(whole)
    whole_splits = None if generator.environment is None else _stored_samples(card, root, progress)
    most = min(10_000, card.split("train").count)
    train = draw_samples(card, "train", np.arange(most)) if whole_splits is None else whole_splits["train"]
    parts = len(card.all_splits) * (1 + len(whole.labels))
    with progress_bar(parts, f"measure {card.id}", unit="splits", enabled=progress) as bar:
        for split in card.all_splits:
            parameters = generator.parse(card, split)
            if whole_splits is None:
                first = first_samples(card, split)
                size = statistics_size(card, split, generator, first)
                samples = train if split == "train" else draw_samples(card, split, np.arange(size))
            else:
                samples = whole_splits[split]
                first = samples.part(card, 0, min(FIRST, len(samples)))
            hashes[split] = arrays_hash(first)
            graphs[split], counted[split] = samples, len(samples)
            statistics[split] = describe(generator, parameters, unpacked(card, samples), shared)
            if generator.different is not None:
                different[split] = dict(generator.different(samples))
            if split != "train" and generator.solvers is not None:
                found = generator.solvers(parameters, train, samples)
                solvers[split] = {name: dict(scores) for name, scores in found.items()}
            if split != "train" and task is not None:
                few = samples.part(card, 0, min(len(samples), _FLOOR_SAMPLES))
                floor[split] = task.floors(train, few)
                if split == "test":
                    floor |= _floors_of_groups(task, train, few)
                if known := task.solvers(few):
                    solvers[split] = solvers.get(split, {}) | known
            bar.update()
        labels, tasks = measure_labels(whole, graphs, bar, root)
    return Measured(
        version=card.version,
        first_samples=hashes,
        statistics=statistics,
        statistics_samples=counted,
        different=different,
        floor=floor,
        solvers=solvers,
        training={} if task is None else dict(task.facts),
        labels=labels,
        tasks=tasks,
    )


def _stored_samples(card: Card, root: str | Path | None, progress: bool | None) -> dict[str, Samples]:
    """Return split -> its samples from the files, which are built where they are missing: a simulation takes long."""
    from graphbench.data.dataset import GraphDataset

    place = default_root() if root is None else Path(root).expanduser()
    paths = {split: ensure_split(card, split, place, progress=progress) for split in card.all_splits}
    return {split: GraphDataset(card, split, path).samples for split, path in paths.items()}


def _measuring_task(card: Card, root: str | Path | None, progress: bool | None = False) -> Task:
    """Return the task of a card, with new facts of the training split where its scores refer to any."""
    task = task_of(card)
    if task.reads_training:
        from graphbench.data.dataset import GraphDataset

        place = default_root() if root is None else Path(root).expanduser()
        path = ensure_split(card, "train", place, progress=progress)
        task.facts = task.training_facts(GraphDataset(card, "train", path))
    return task


def measure_labels(
    card: Card, graphs: Mapping[str, Samples], bar: Progress, root: str | Path | None = None
) -> tuple[dict[str, MeasuredLabels], dict[str, MeasuredTask]]:
    """Return the measurements of all labels and all tasks of a card.

    Args:
        card: The card, without a chosen task.
        graphs: Split -> first draws of its first samples, without labels.
        bar: Is advanced once for every labeller and split.
        root: Folder of the datasets; see :func:`measure`.
    """
    first = {split: _graphs_to_label(card.graphs, split, samples) for split, samples in graphs.items()}
    views = [card.with_task(task) for task in card.tasks]
    layers = {name: layer for view in reversed(views) for name, layer in zip(view.labellers, view.layers, strict=True)}
    labels, found = {}, {}
    for name in card.labels:
        labels[name], found[name] = _measured_labels(layers[name], first, bar)
    tasks = {}
    for view in views:
        samples = {split: _joined([found[name][split] for name in view.labellers]) for split in view.all_splits}
        tasks[str(view.task_name)] = _measured_task(view, samples, root)
    return labels, tasks


def _joined(parts: Sequence[Samples]) -> Samples:
    """Return graphs with the labels of several labellers, each of which has labelled the same graphs."""
    return replace(parts[0], values={name: value for part in parts for name, value in part.values.items()})


def _graphs_to_label(card: Card, split: str, samples: Samples) -> Samples:
    """Return the graphs of a split whose labels are measured, more than have been drawn if need be."""
    most = min(4 * FIRST, int(_LABEL_STATISTICS_NODES / float(samples.part(card, 0, 1).num_nodes.mean())))
    size = min(card.split(split).count, max(FIRST, most))
    return samples.part(card, 0, size) if len(samples) >= size else draw_samples(card, split, np.arange(size))


def _measured_labels(
    card: Card, graphs: Mapping[str, Samples], bar: Progress
) -> tuple[MeasuredLabels, dict[str, Samples]]:
    labeller, found = labeller_of(card), {}
    hashes, statistics, counted = {}, {}, {}
    for split, drawn in graphs.items():
        size = len(drawn)
        found[split] = samples = add_labels(card, split, np.arange(size), drawn)
        hashes[split] = labels_hash(card, samples.part(card, 0, min(FIRST, size)))
        statistics[split], counted[split] = describe_labels(labeller, samples), size
        bar.update()
    return MeasuredLabels(first_samples=hashes, statistics=statistics, statistics_samples=counted), found


def _measured_task(card: Card, samples: Mapping[str, Samples], root: str | Path | None) -> MeasuredTask:
    task, splits = _measuring_task(card, root), [split for split in samples if split != "train"]
    solvers = {split: found for split in splits if (found := task.solvers(samples[split]))}
    floor = {split: task.floors(samples["train"], samples[split]) for split in splits}
    floor |= _floors_of_groups(task, samples["train"], samples["test"])
    for part, rows in task.parts(samples["test"]).items():
        own = samples["test"].take(card, rows)
        solvers[f"test_{part}"], floor[f"test_{part}"] = task.solvers(own), task.floors(samples["train"], own)
    return MeasuredTask(floor=floor, solvers=solvers, training=dict(task.facts))


def _floors_of_groups(task: Task, train: Samples, test: Samples) -> dict[str, Any]:
    return {f"test_{group}": found for group, found in task.group_floors(train, test).items()}


def update_measured(card: Card, progress: bool | None = None, root: str | Path | None = None) -> Path:
    """Measure a dataset, and write the result next to its card; return the file.

    Args:
        card: The card.
        progress: Show a progress bar; None for terminals only.
        root: Folder of the datasets; see :func:`measure`.
    """
    path = measured_path(card.path, card.id.split("/", 1)[1])
    found = measure(card, progress=progress, root=root)
    content = found.model_dump(mode="json", exclude=set() if card.tasks else {"labels", "tasks"})
    for part in (content, *content.get("tasks", {}).values()):
        for name in ("different", "training"):  # few datasets have any
            if not part.get(name, True):
                del part[name]
    write_json(path, _rounded(content))
    return path


def _rounded(value: Any) -> Any:
    """Return a JSON value with floats cut to six significant digits, so that files are stable and readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return value
