"""Scores away from the training distribution: one table and one plot per dataset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import ResultError
from graphbench.data.components.domain import domain_of
from graphbench.evaluation.groups import split_and_size
from graphbench.evaluation.trivial import best_of
from graphbench.records.aggregates import Aggregate, aggregate
from graphbench.records.published import PublishedScore
from graphbench.records.record import RunRecord
from graphbench.reports.beside import shared_references
from graphbench.reports.comparison import architecture, compared_with, reference_scores, same_splits
from graphbench.reports.labels import Labels, named
from graphbench.reports.ood_plots import OODRow, Reference, Series, SizeAxis, kinds_figure, size_figure
from graphbench.reports.plots import PUBLISHED, SOLVER, simplest
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.catalog.cards import Card

_LARGE = ("large", "larger")
_NUMBERED = re.compile(r"([A-Za-z_]*[A-Za-z])_?(\d+)")  # the name of a split: n256, k7
_NODES = "n"  # before a number of nodes


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
        metric: Metric shown; :func:`ood_metric` of the card if None.
        splits: The splits of the rows; :func:`ood_splits` of the card and the runs if None.
    """
    runs = aggregate([result])[0] if isinstance(result, RunRecord) else result
    card = card if card is not None else dataset_card(runs.dataset)
    metric = metric if metric is not None else ood_metric(card)
    return [_row(runs, card, metric, split) for split in splits or ood_splits(card, [runs])]


def _row(runs: Aggregate, card: Card, metric: str, split: str) -> OODRow:
    score = runs.score(split, metric)
    printed = compared_with(runs, card, split, metric, study="ood")
    measured = shared_references(card, split, [runs])
    floor = None if measured is None else best_of(measured.floor, metric)
    return OODRow(
        split=split,
        nodes=split_nodes(card, split),
        mean=score.mean if score else None,
        std=score.std if score else None,
        published=printed.value if printed else None,
        floor=floor[1] if floor else None,
    )


def ood_metric(card: Card) -> str:
    """Return the metric that is compared across splits: the primary metric; for problems to solve, the ratio to labels.

    The sizes of sets, cuts and colourings would grow with the graph for every model.
    """
    return task_of(card).report_metric


def ood_splits(card: Card, results: Iterable[Aggregate] = ()) -> list[str]:
    """Return the test split, the out-of-distribution splits, the scored further tests, and the sizes of test samples.

    A further test is an additional split that selects no model, such as ``long_cycles``; it is listed where a run was
    scored on it.

    Args:
        card: The dataset's card.
        results: Runs; runs on texts have scores of single problem sizes (``test_n16``), forecasts have scores of lead
            times (``test_h24``).
    """
    scored = {name: split_and_size(name) for runs in results for name in runs.scores}
    sizes = {name: size for name, (split, size) in scored.items() if split == "test" and size is not None}
    further = [name for name in _further_tests(card) if name in scored]
    return ["test", *card.ood, *further, *sorted(sizes, key=lambda name: sizes[name])]


def _further_tests(card: Card) -> list[str]:
    """Return the additional splits that are neither trained on nor select models."""
    task = task_of(card)
    taken = {name for role in ("train", "val") for name in task.splits_for(role)}
    return [name for name in card.additional if name not in taken]


def plotted_splits(card: Card, results: Iterable[Aggregate]) -> list[str]:
    """Return the splits of :func:`ood_splits` without the further tests, which grow in no order."""
    return [name for name in ood_splits(card, results) if name not in card.additional]


def split_nodes(card: Card, split: str) -> float | None:
    """Return the size of a split's samples, e.g. nodes or hours ahead; None if the samples have several sizes."""
    size = split_and_size(split)[1]
    return float(size) if size is not None and split not in card.all_splits else task_of(card).sample_size(split)


def dataset_card(dataset: str) -> Card:
    """Return the card of a record's dataset and task.

    Raises:
        ResultError: If the catalogue does not have the dataset any more.
    """
    from graphbench.catalog.names import card
    from graphbench.core.errors import UnknownDataset

    try:
        return card(dataset)
    except UnknownDataset as error:
        raise ResultError(f"a record is of the dataset {dataset!r}, which has no card: {error}; remove it") from error


def known_cards(datasets: Iterable[str], cards: Mapping[str, Card] | None = None) -> tuple[dict[str, Card], list[str]]:
    """Return the cards of the datasets of records, by address, and the addresses that have no card any more.

    Args:
        datasets: Addresses.
        cards: Address -> card; the catalogue's where it has none.
    """
    known, unknown = dict[str, "Card"](), list[str]()
    for dataset in sorted(set(datasets)):
        try:
            known[dataset] = cards[dataset] if cards is not None and dataset in cards else dataset_card(dataset)
        except ResultError:
            unknown.append(dataset)
    return known, unknown


def plot_ood(
    results: Sequence[Aggregate],
    card: Card | None = None,
    metric: str | None = None,
    labels: Labels | None = None,
) -> Figure:
    """Return a figure of the metric away from training, for the runs of one dataset.

    If the splits differ in size (see :func:`size_axis`), every model is a line, with error bars of one standard
    deviation. Published scores are dashed in the same colour, solvers and people are dashed in grey, and the best
    trivial baseline is dotted. If the splits are kinds, every model is a bar per split. The further tests of
    :func:`ood_splits` are left out.

    Args:
        results: Aggregated runs of one dataset.
        card: The dataset's card; looked up if None.
        metric: Metric shown; :func:`ood_metric` of the card if None.
        labels: Names of the runs; None derives the names from these runs alone.

    Raises:
        ResultError: If there are no runs, runs of several datasets, or no split with a size of graphs.
    """
    datasets = sorted({runs.dataset for runs in results})
    if len(datasets) != 1:
        raise ResultError(f"a plot shows the runs of one dataset, got {datasets or 'none'}; select one")
    card = card if card is not None else dataset_card(datasets[0])
    metric = metric if metric is not None else ood_metric(card)
    splits = plotted_splits(card, results)
    names = labels if labels is not None else Labels(results)
    series = [
        Series(names[runs], named(architecture(runs), runs.protocol), runs.caveat, tuple(rows))
        for runs, rows in ((runs, ood_table(runs, card, metric, splits)) for runs in results)
    ]
    references = _references(card, results, metric, splits)
    axis = size_axis(card, splits)
    if axis is None:
        kinds = [split for split in splits if split in card.ood or len(same_splits(card, split)) == 1]
        return kinds_figure(series, references, metric, kinds)
    if not axis.sizes:
        raise ResultError(f"the card of {card.address} names no ``nodes`` of its splits; there is nothing to plot")
    return size_figure(series, references, metric, axis)


def size_axis(card: Card, splits: Sequence[str]) -> SizeAxis | None:
    """Return the quantity that grows from split to split, or None if the splits are kinds.

    If the task names a quantity (e.g. the problem size of texts), the axis shows it. If the out-of-distribution splits
    are named after their number of nodes (``n256``), the axis shows the nodes; otherwise it shows the number in the
    names of the splits (``k7``). Splits with samples of several sizes are left out.

    Args:
        card: The dataset's card.
        splits: The splits that are shown.
    """
    axis = task_of(card).size_axis
    if axis is not None:
        label, trained = axis
        return SizeAxis(label, _known_sizes(card, splits), _numbers(trained), task_of(card).size_grows_by_factors)
    matches = {name: _NUMBERED.fullmatch(name) for name in card.ood}
    letters = {match[1] if match else "" for match in matches.values()}
    if letters <= {_NODES}:
        return SizeAxis("nodes per graph", _known_sizes(card, [s for s in splits if not _is_mixed(card, s)]))
    if len(letters) > 1 or "" in letters:
        return None
    sizes = {name: float(match[2]) for name, match in matches.items() if match}
    grown = _grown_parameter(card, sizes)
    trained = _numbers(card.split("train").parameters.get(grown)) if grown else ()
    letter = letters.pop()
    label = f"{domain_of(card).words.get(grown, grown)} ({letter})" if grown else letter
    return SizeAxis(label, sizes, trained, logarithmic=False)


def grown_splits(card: Card) -> set[str]:
    """Return the out-of-distribution splits that differ from the test split in their size alone, by their names.

    They are named after a number, as ``n256`` or ``k7`` (of several letters, the most frequent one), or ``large`` or
    ``larger``. All others are kinds: their samples are drawn in another way, and may have another size as well.
    """
    matches = {name: match[1] for name in card.ood if (match := _NUMBERED.fullmatch(name))}
    letter = max(matches.values(), key=list(matches.values()).count, default="")
    return {name for name in card.ood if matches.get(name) == letter or name in _LARGE}


def _known_sizes(card: Card, splits: Iterable[str]) -> dict[str, float]:
    return {split: nodes for split in splits if (nodes := split_nodes(card, split)) is not None}


def _is_mixed(card: Card, split: str) -> bool:
    """Return whether the graphs of the test split were measured to be of several sizes."""
    measured = card.measured.statistics.get(split, {}).get("nodes") if card.measured is not None else None
    is_said = "nodes" in card.split(split).parameters
    return split == "test" and not is_said and measured is not None and measured[1] > 0


def _grown_parameter(card: Card, sizes: Mapping[str, float]) -> str | None:
    """Return the parameter that holds the number of every split's name: ``lengths`` where ``k7`` has ``[7]``."""
    names = dict.fromkeys(name for split in sizes for name in card.split(split).parameters)
    for name in names:
        if all(_numbers(card.split(split).parameters.get(name)) == (size,) for split, size in sizes.items()):
            return name
    return None


def _numbers(value: Any) -> tuple[float, ...]:
    """Return the number or the list of numbers of a parameter as a tuple; an empty tuple for other values."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(values) if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values) else ()


def _references(card: Card, results: Sequence[Aggregate], metric: str, splits: Sequence[str]) -> list[Reference]:
    """Return the references of all models: solvers, published scores, the best trivial predictor or rule.

    A measured reference is drawn on the splits where it was measured on the samples of all models.
    """
    people = [
        Reference(f"{name.replace('_', ' ')}{PUBLISHED}", _values(printed), "published")
        for name, printed in reference_scores(results[0].dataset, metric, splits).items()
    ]
    by_split = {split: shared_references(card, split, results) for split in splits}
    shared = {split: measured for split, measured in by_split.items() if measured is not None}
    solved: dict[str, dict[str, float]] = {}
    for split, measured in shared.items():
        for solver, scores in measured.solvers.items():
            if metric in scores:
                solved.setdefault(f"{solver.replace('_', ' ')}{SOLVER}", {})[split] = scores[metric]
    best = {split: best_of(measured.floor, metric) for split, measured in shared.items()}
    floors = {split: floor[1] for split, floor in best.items() if floor is not None}
    return [
        *people,
        *(Reference(label, scores, "solver") for label, scores in solved.items()),
        Reference(simplest(card), floors, "trivial"),
    ]


def _values(printed: Mapping[str, PublishedScore]) -> dict[str, float]:
    return {split: score.value for split, score in printed.items() if score.value is not None}
