"""Measure what stands beside a card: hashes of the first samples, statistics, scores of trivial predictors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.families import measured_path
from graphbench.catalog.sections import Measured, Numbers
from graphbench.core.files import write_json
from graphbench.core.progress import progress_bar
from graphbench.data.generation import draw_samples
from graphbench.data.hashing import samples_hash
from graphbench.data.samples import Generator, Samples, find_generator
from graphbench.tasks.registry import task_of
from graphbench.verification.measuring_labels import measure_labels

FIRST = 64  # samples whose bytes the card pins
_STATISTICS_NODES = 160_000


def arrays_hash(samples: Samples) -> str:
    """Return the SHA-256 of samples as they would be stored on their own."""
    return samples_hash(samples.arrays())


def first_samples(card: Card, split: str) -> Samples:
    """Return first draws of the samples whose bytes the card pins."""
    return draw_samples(card, split, np.arange(min(FIRST, card.split(split).count)))


def statistics_size(card: Card, split: str, generator: Generator, first: Samples) -> int:
    """Return of how many samples statistics are taken: fewer where graphs are large or slow to draw.

    Args:
        card: The dataset.
        split: Name of the split.
        generator: Its generator.
        first: Its first samples.
    """
    work = generator.shard_size(generator.parse(card, split))  # graphs that cost about the same, whatever their size
    most = min(int(_STATISTICS_NODES / float(first.num_nodes.mean())), 30 * work)
    return min(card.split(split).count, max(FIRST, most))


def describe(generator: Generator, parameters: Any, samples: Samples) -> dict[str, tuple[float, float]]:
    """Return name -> (mean, standard deviation over graphs) of sizes and of the generator's own statistics."""
    per_graph: Mapping[str, NDArray[Any]] = {
        "nodes": samples.num_nodes,
        "edges": samples.num_edges,
        **generator.statistics(parameters, samples),
    }
    return {name: (float(np.mean(v)), float(np.std(v))) for name, v in per_graph.items()}


def measure(card: Card, *, floor_samples: int = 2_000, progress: bool | None = None) -> Measured:
    """Measure what stands beside the card: hashes of the first samples, statistics, scores of trivial predictors.

    Args:
        card: The dataset.
        floor_samples: Most graphs per split on which the trivial predictors are scored.
        progress: Show a progress bar; None for terminals only.
    """
    whole, card = card, card.graphs
    generator = find_generator(card.generator)
    hashes, statistics, counted, different, floor, solvers = {}, {}, {}, {}, {}, {}
    train = draw_samples(card, "train", np.arange(min(10_000, card.split("train").count)))
    parts = len(card.all_splits) * (1 + len(whole.labels))
    with progress_bar(parts, f"measure {card.id}", unit="split", enabled=progress) as bar:
        for split in card.all_splits:
            parameters, first = generator.parse(card, split), first_samples(card, split)
            hashes[split] = arrays_hash(first)
            size = statistics_size(card, split, generator, first)
            samples = train if split == "train" else draw_samples(card, split, np.arange(size))
            counted[split] = len(samples)
            statistics[split] = describe(generator, parameters, samples)
            if generator.different is not None:
                different[split] = dict(generator.different(samples))
            if split != "train" and generator.solvers is not None:
                found = generator.solvers(parameters, train, samples)
                solvers[split] = {name: dict(scores) for name, scores in found.items()}
            if split != "train" and card.outputs:
                floor[split] = _floor(card, train, samples, floor_samples)
            bar.update()
        labels, tasks = measure_labels(whole, bar)
    return Measured(
        version=card.version,
        first_samples=hashes,
        statistics=statistics,
        statistics_samples=counted,
        different=different,
        floor=floor,
        solvers=solvers,
        labels=labels,
        tasks=tasks,
    )


def _floor(card: Card, train: Samples, samples: Samples, most: int) -> Numbers:
    """Return predictor -> scores of trivial predictors on at most ``most`` samples."""
    return task_of(card).floors(train, samples.part(card, 0, min(len(samples), most)))


def update_measured(card: Card, progress: bool | None = None) -> Path:
    """Measure a dataset and write the result beside its card; return the file."""
    path = measured_path(card.path, card.id.split("/", 1)[1])
    found = measure(card, progress=progress)
    without = (set() if card.tasks else {"labels", "tasks"}) | (set() if found.different else {"different"})
    write_json(path, rounded(found.model_dump(mode="json", exclude=without)))
    return path


def rounded(value: Any) -> Any:
    """Return a JSON value with floats cut to six significant digits, so that files are stable and readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value
