"""How scores change away from the training distribution: one table and one plot per dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphbench.errors import ResultError
from graphbench.evaluation.floors import best_floor
from graphbench.evaluation.labels import Labels, named
from graphbench.evaluation.plots import Series, size_figure
from graphbench.evaluation.published import PublishedScore, published_score
from graphbench.evaluation.results import Aggregate, RunRecord, aggregate
from graphbench.evaluation.texts import asks_for_text, sized_split, split_and_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.catalog.cards import Card


@dataclass(frozen=True, slots=True)
class OODRow:
    """One split of an out-of-distribution table.

    Attributes:
        split: Split name; ``test`` comes first.
        nodes: Number of nodes of its graphs, mean if they differ, or the problem size of its texts; None if the card
            does not say.
        mean: Mean score over seeds; None if the split was not evaluated.
        std: Standard deviation over seeds; None for one seed.
        published: The same architecture's published score under the same protocol; None if there is none.
        floor: Score of the best trivial predictor; None if not measured.
    """

    split: str
    nodes: float | None
    mean: float | None
    std: float | None
    published: float | None
    floor: float | None


def ood_table(
    result: RunRecord | Aggregate,
    card: Card | None = None,
    metric: str | None = None,
    splits: Sequence[str] | None = None,
) -> list[OODRow]:
    """Return the rows of one model: the test split, then the card's out-of-distribution splits in order.

    Args:
        result: A run, or several runs aggregated.
        card: The dataset's card; looked up if None.
        metric: Metric shown; the card's primary one if None.
        splits: The splits of the rows; those of :func:`ood_splits` if None.
    """
    runs = aggregate([result])[0] if isinstance(result, RunRecord) else result
    card = card if card is not None else dataset_card(runs.dataset)
    metric = metric if metric is not None else card.metrics.primary
    return [_row(runs, card, metric, split) for split in splits or ood_splits(card, [runs])]


def _row(runs: Aggregate, card: Card, metric: str, split: str) -> OODRow:
    score = runs.score(split, metric)
    printed = compared_with(runs, split, metric, study="ood")
    floor = best_floor(card, split, metric)
    return OODRow(
        split=split,
        nodes=split_nodes(card, split),
        mean=score.mean if score else None,
        std=score.std if score else None,
        published=printed.value if printed else None,
        floor=floor[1] if floor else None,
    )


def ood_splits(card: Card, results: Iterable[Aggregate] = ()) -> list[str]:
    """Return ``test`` and the out-of-distribution splits, in the card's order, and the sizes of the test's texts.

    Args:
        card: The dataset's card.
        results: Runs, of which those on texts have scores of single problem sizes (``test_n16``).
    """
    scored = [split_and_size(name) for runs in results for name in runs.scores]
    sizes = {size for split, size in scored if split == "test" and size is not None}
    return ["test", *card.ood, *(sized_split("test", size) for size in sorted(sizes))]


def split_nodes(card: Card, split: str) -> float | None:
    """Return the nodes of a split's graphs, or the problem size of its texts; None where it has several sizes."""
    size = split_and_size(split)[1]
    if asks_for_text(card):
        return None if size is None else float(size)
    return card.nodes(split)


def architecture(runs: Aggregate) -> str:
    """Return the processor that was trained, which finds the published numbers (``gin`` for ``gin_small``)."""
    model = runs.records[0].config.get("model")
    processor = model.get("processor") if isinstance(model, Mapping) else None
    return str(processor) if processor else runs.model


def compared_with(
    runs: Aggregate, split: str, metric: str, study: Literal["main", "ood"] = "main"
) -> PublishedScore | None:
    """Return the published score of the runs' architecture under their protocol, or None."""
    return published_score(runs.dataset, split, architecture(runs), metric, study, runs.protocol)


def dataset_card(dataset: str) -> Card:
    """Return the card of a record's dataset, with or without ``:task``.

    Raises:
        ResultError: If the catalogue has no such dataset any more.
    """
    from graphbench.catalog.names import card
    from graphbench.errors import UnknownDataset

    try:
        return card(dataset.split(":")[0])
    except UnknownDataset as error:
        raise ResultError(f"a record is of the dataset {dataset!r}, which has no card: {error}; remove it") from error


def plot_ood(
    results: Sequence[Aggregate],
    card: Card | None = None,
    metric: str | None = None,
    labels: Labels | None = None,
) -> Figure:
    """Return a figure of the metric against graph size or problem size (log2), for the runs of one dataset.

    Ours are solid with error bars of one standard deviation, published ones dashed in the same colour, the best
    trivial predictor dotted.

    Args:
        results: Aggregated runs of one dataset.
        card: The dataset's card; looked up if None.
        metric: Metric shown; the card's primary one if None.
        labels: Names of the runs; None names them among themselves.

    Raises:
        ResultError: If there are no runs, runs of several datasets, or no split whose size is known.
    """
    datasets = sorted({runs.dataset for runs in results})
    if len(datasets) != 1:
        raise ResultError(f"a plot shows the runs of one dataset, got {datasets or 'none'}; select one")
    card = card if card is not None else dataset_card(datasets[0])
    metric = metric if metric is not None else card.metrics.primary
    splits = ood_splits(card, results)
    tables = [(runs, ood_table(runs, card, metric, splits)) for runs in results]
    if all(row.nodes is None for row in tables[0][1]):
        raise ResultError(f"the card of {card.id} names no ``nodes`` of its splits; there is nothing to plot")
    label = "problem size" if asks_for_text(card) else "nodes per graph"
    names = labels if labels is not None else Labels(results)
    series = [
        Series(names[runs], named(architecture(runs), runs.protocol), runs.small, tuple(rows)) for runs, rows in tables
    ]
    return size_figure(series, tables[0][1], metric, label, _trained(card))


def _trained(card: Card) -> Sequence[int]:
    """Return the problem sizes of the training texts; nothing of graphs."""
    sizes = card.split("train").parameters.get("sizes") if asks_for_text(card) else None
    return sizes if isinstance(sizes, list | tuple) else ()
