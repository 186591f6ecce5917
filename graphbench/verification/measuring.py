"""Measure the facts that accompany a card: hashes of the first samples, statistics, scores of trivial predictors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.families import measured_path
from graphbench.catalog.schema import Schema
from graphbench.catalog.sections import Measured, MeasuredLabels, MeasuredTask
from graphbench.core.errors import CardError
from graphbench.core.files import default_root, write_json
from graphbench.core.progress import Progress, progress_bar
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.quantisation import unpacked
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import stored_arrays
from graphbench.data.build.generation import add_labels, draw_samples, ensure_split
from graphbench.data.components.domain import find, topology_of
from graphbench.data.components.generators import Generator, Labeller
from graphbench.tasks.registry import task_of
from graphbench.verification.scoring import measured_task

FIRST = 64  # samples whose bytes, and whose labels, the card pins
_STATISTICS_NODES = 160_000
_TRAINING_STATISTICS = 10_000
_LABEL_STATISTICS_NODES = 60_000

Statistics = dict[str, tuple[float, float]]
"""Name -> (mean, standard deviation over graphs)."""


def arrays_hash(samples: Samples) -> str:
    """Return the SHA-256 of samples as they would be stored alone."""
    return samples_hash(samples.arrays())


def labels_hash(schema: Schema, samples: Samples) -> str:
    """Return the SHA-256 of the labels of some samples, given the schema of the labels."""
    return samples_hash(stored_arrays({f.name: samples.values[f.name] for f in schema.features}))


def first_samples(card: Card, split: str) -> Samples:
    """Return first draws of the samples that the card pins, with the labels of the card's task."""
    return draw_samples(card, split, np.arange(min(FIRST, card.split(split).count)))


def statistics_size(card: Card, split: str, generator: Generator, first: Samples) -> int:
    """Return the number of samples for statistics: fewer if graphs are large or slow to draw."""
    work = generator.shard_size(generator.parse(card, split))  # a number of graphs whose cost is nearly constant
    most = min(int(_STATISTICS_NODES / float(first.num_nodes.mean())), 30 * work)
    return min(card.split(split).count, max(FIRST, most))


def describe(generator: Generator, parameters: Any, samples: Samples, graph: Samples | None = None) -> Statistics:
    """Return the statistics of sizes, and the statistics that the generator defines, over the graphs that have a value.

    Args:
        generator: The generator.
        parameters: Its parameters.
        samples: The samples, not packed.
        graph: The graph that all samples of a series share; None if every sample has a separate graph.
    """
    statistics = {name: values[~np.isnan(values)] for name, values in generator.statistics(parameters, samples).items()}
    places = np.arange(len(samples)) if graph is None else np.zeros(len(samples), np.int64)
    sizes = samples if graph is None else graph
    return _summary({"nodes": sizes.num_nodes[places], "edges": sizes.num_edges[places], **statistics})


def describe_labels(labeller: Labeller, samples: Samples) -> Statistics:
    """Return the labeller's statistics, over the graphs that have a label."""
    return _summary({name: values[~np.isnan(values)] for name, values in labeller.statistics(samples).items()})


def _summary(per_graph: Mapping[str, NDArray[Any]]) -> Statistics:
    return {name: (float(np.mean(v)), float(np.std(v))) for name, v in per_graph.items() if np.size(v)}


def measure(
    card: Card,
    *,
    progress: bool | None = None,
    root: str | Path | None = None,
    samples: Sequence[int] = (),
    splits: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
) -> Measured:
    """Measure hashes of the first samples, statistics, and scores of trivial predictors and reference solvers.

    Hashes and statistics are measured on samples that are drawn anew. The bits of simulators depend on the machine, so
    their samples are read from the files, whole splits. Scores are measured on the samples of files, as models are
    scored.

    Args:
        card: The card.
        progress: Show a progress bar; None for terminals only.
        root: Folder of the datasets, where files are built that are missing. None builds them in a temporary folder,
            except for simulated datasets and for tasks whose scores refer to facts of the training split: their files
            are read from the usual folder.
        samples: Numbers of samples to score trivial predictors and solvers on, beside the usual number; see ``Counts``.
        splits: The splits to measure; None for all.
        tasks: The tasks whose labels and scores are measured, beside the graphs; None for all.
    """
    whole, card = card, card.graphs
    named = list(whole.tasks) if tasks is None else list(tasks)
    labellers = [name for name in whole.labels if any(name in whole.with_task(task).labellers for task in named)]
    chosen = list(card.all_splits) if splits is None else card.select_splits(splits)
    generator = find("generator", card.generator)
    hashes, statistics, counted, different = {}, {}, {}, {}
    graphs: dict[str, Samples] = {}
    shared = None if whole.series is None else topology_of(whole)
    views = [whole.with_task(task) for task in named] or [whole] * bool(whole.outputs)
    steps = len(chosen) * (1 + len(labellers)) + len(views) * len([split for split in chosen if split != "train"])
    with (
        _data_folder(generator, views, root) as place,
        progress_bar(steps, f"measure {card.id}", unit="splits", enabled=progress) as bar,
    ):
        whole_splits = None if generator.environment is None else _stored_samples(card, chosen, place, progress)
        for split in chosen:
            parameters = generator.parse(card, split)
            if whole_splits is None:
                first = first_samples(card, split)
                most = min(_TRAINING_STATISTICS, card.split(split).count)
                size = most if split == "train" else statistics_size(card, split, generator, first)
                drawn = draw_samples(card, split, np.arange(size))
            else:
                drawn = whole_splits[split]
                first = drawn.part(card.graph_schema, 0, min(FIRST, len(drawn)))
            hashes[split] = arrays_hash(first)
            graphs[split], counted[split] = drawn, len(drawn)
            statistics[split] = describe(generator, parameters, unpacked(card.graph_schema, drawn), shared)
            if generator.different is not None:
                different[split] = dict(generator.different(drawn))
            bar.update()
        labels = measure_labels(whole, labellers, graphs, bar)
        scores = [measured_task(view, place, samples, splits=chosen, bar=bar, progress=progress) for view in views]
    by_task = dict(zip(named, scores, strict=True)) if whole.tasks else {}
    sole_task = scores[0] if scores and not whole.tasks else MeasuredTask()
    return Measured(
        version=card.version,
        first_samples=hashes,
        statistics=statistics,
        statistics_samples=counted,
        different=different,
        labels=labels,
        tasks=by_task,
        **{name: getattr(sole_task, name) for name in MeasuredTask.model_fields},
    )


@contextmanager
def _data_folder(generator: Generator, views: Sequence[Card], root: str | Path | None) -> Iterator[Path]:
    """Yield the folder in which the files of splits lie or are built."""
    if root is not None or generator.environment is not None or any(task_of(view).reads_training for view in views):
        yield (default_root() if root is None else Path(root).expanduser())
        return
    with TemporaryDirectory(prefix="graphbench-") as folder:
        yield Path(folder)


def _stored_samples(card: Card, splits: Sequence[str], root: Path, progress: bool | None) -> dict[str, Samples]:
    """Return split -> its samples from the files, which are built where they are missing: a simulation takes long."""
    from graphbench.data.batches.dataset import GraphDataset

    paths = {split: ensure_split(card, split, root, progress=progress) for split in splits}
    return {split: GraphDataset(card, split, path).samples for split, path in paths.items()}


def measure_labels(
    card: Card, labellers: Iterable[str], graphs: Mapping[str, Samples], bar: Progress
) -> dict[str, MeasuredLabels]:
    """Return the measurements of labels of a card.

    Args:
        card: The card, without a chosen task.
        labellers: The labellers.
        graphs: Split -> first draws of its first samples, without labels.
        bar: Is advanced once for every labeller and split.
    """
    first = {split: _graphs_to_label(card.graphs, split, samples) for split, samples in graphs.items()}
    return {name: _measured_labels(card, name, first, bar) for name in labellers}


def _graphs_to_label(card: Card, split: str, samples: Samples) -> Samples:
    """Return the graphs of a split whose labels are measured, more than have been drawn if need be."""
    most = min(4 * FIRST, int(_LABEL_STATISTICS_NODES / float(samples.num_nodes[:1].mean())))
    size = min(card.split(split).count, max(FIRST, most))
    return (
        samples.part(card.graph_schema, 0, size) if len(samples) >= size else draw_samples(card, split, np.arange(size))
    )


def _measured_labels(card: Card, name: str, graphs: Mapping[str, Samples], bar: Progress) -> MeasuredLabels:
    labeller, schema = find("labeller", name), card.label_schemas[name]
    hashes, statistics, counted = {}, {}, {}
    for split, drawn in graphs.items():
        size = len(drawn)
        samples = add_labels(card, split, np.arange(size), drawn, (name,))
        stored = replace(card.graph_schema, features=(*card.graph_features, *schema.features))
        hashes[split] = labels_hash(schema, samples.part(stored, 0, min(FIRST, size)))
        statistics[split], counted[split] = describe_labels(labeller, samples), size
        bar.update()
    return MeasuredLabels(first_samples=hashes, statistics=statistics, statistics_samples=counted)


def update_measured(
    card: Card,
    progress: bool | None = None,
    root: str | Path | None = None,
    samples: Sequence[int] = (),
    splits: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
) -> Path:
    """Measure a dataset, and write the result next to its card; return the file.

    Args:
        card: The card.
        progress: Show a progress bar; None for terminals only.
        root: Folder of the datasets; see :func:`measure`.
        samples: Numbers of samples to score trivial predictors and solvers on; see :func:`measure`.
        splits: The splits to measure; the file keeps the facts of the others. None for all.
        tasks: The tasks to measure; the file keeps the facts of the others. None for all, as are measured where the
            file has no facts of this version of the card to keep.

    Raises:
        CardError: If splits are named, and the file has no facts of this version of the card to keep.
    """
    path = measured_path(card.path, card.id.split("/", 1)[1])
    before = card.measured
    if before is None or before.version != card.version:
        tasks = None
        if splits is not None:
            state = "nothing is measured yet" if before is None else f"its measurements are of version {before.version}"
            raise CardError(
                f"{card.id}: only {', '.join(splits)} should be measured, but {state}, so no facts of the other splits "
                "can be kept; measure all splits"
            )
    facts = measure(card, progress=progress, root=root, samples=samples, splits=splits, tasks=tasks)
    if before is not None and splits is not None:
        facts = _with_facts_of_other_splits(before, facts, card.all_splits)
    if before is not None and tasks is not None:
        kept = {"labels": {**before.labels, **facts.labels}, "tasks": {**before.tasks, **facts.tasks}}
        facts = facts.model_copy(update=kept)
    content = facts.model_dump(mode="json", exclude=set() if card.tasks else {"labels", "tasks"})
    for part in (content, *content.get("tasks", {}).values()):
        for name in ("different", "training", "scores_on_first", "scored_hashes"):  # few datasets have any
            if not part.get(name, True):
                del part[name]
    write_json(path, _rounded(content))
    return path


def _with_facts_of_other_splits(before: Measured, now: Measured, splits: Iterable[str]) -> Measured:
    """Return the facts that were measured now, and the earlier facts of the splits that were not measured.

    Args:
        before: The earlier facts.
        now: The facts of some splits.
        splits: Names of all splits of the card.
    """
    names = sorted(splits, key=len, reverse=True)

    def is_measured(key: Any) -> bool:
        """Return whether a key names a split that was measured now, or a part of one, such as ``test_n16``."""
        owner = next((name for name in names if key == name or str(key).startswith(f"{name}_")), None)
        return owner in now.first_samples

    return Measured.model_validate(_updated(before.model_dump(), now.model_dump(), is_measured))


def _updated(before: Any, now: Any, is_measured: Callable[[Any], bool]) -> Any:
    """Return a section of facts with its earlier entries for splits that were not measured, at any depth."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return now
    updated = {key: value for key, value in before.items() if not is_measured(key)}
    for key, value in now.items():
        updated[key] = value if is_measured(key) else _updated(before.get(key), value, is_measured)
    return updated


def _rounded(value: Any) -> Any:
    """Return a JSON value with floats cut to six significant digits, so that files are stable and readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return value
