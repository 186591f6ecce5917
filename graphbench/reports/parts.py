"""Scores of the test split in detail: of its parts, and of every output, for tasks that have several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphbench.catalog.cards import Card
from graphbench.evaluation.groups import split_and_size
from graphbench.records.aggregates import Aggregate
from graphbench.records.published import published
from graphbench.reports.beside import Beside, beside
from graphbench.reports.labels import Labels
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.tables import metric_head, noted, number, stat_text

_TEST = "test"
_KINDS = ("trivial", "solver")


def part_grid(card: Card, results: Sequence[Aggregate]) -> Grid | None:
    """Return the primary metric per predictor and part of the test split, the whole last; None if there is no part.

    Rows are trivial baselines, reference solvers, our runs and published runs. Sizes and lead times are no parts: they
    stand among the splits.

    Args:
        card: The dataset's card.
        results: Runs on the dataset.
    """
    metric, numbers = card.metrics.primary, published(card.address)
    named = [*card.solvers, *(name for runs in results for name in runs.scores), *(p.split for p in numbers)]
    parts = sorted({name for name in named if _is_part(name, card)})
    if not parts:
        return None
    columns, labels = [*parts, _TEST], Labels(results)
    shown = {name: beside(card, name, results) for name in columns}
    rows = [row for kind in _KINDS for row in _measured(shown, metric, kind, card)]
    for runs in results:
        cells = (noted(stat_text(runs.score(name, metric)), shown[name].note(runs)) for name in columns)
        rows.append((labels[runs] + runs.mark, "ours", *cells))
    for model in dict.fromkeys(p.model for p in numbers if p.metric == metric):
        printed = {p.split: p.value for p in numbers if p.model == model and p.metric == metric}
        rows.append((model, "published", *(_text(printed.get(name)) for name in columns)))
    heads = [name.removeprefix(f"{_TEST}_") for name in parts]
    return Grid((f"predictor ({metric_head(metric)})", "kind", *heads, "all"), tuple(rows))


def output_grid(card: Card, results: Sequence[Aggregate]) -> Grid | None:
    """Return the metrics of every output on the test split per predictor; None if the task has a single output.

    Rows are trivial baselines, reference solvers, our runs and published runs.

    Args:
        card: The dataset's card.
        results: Runs on the dataset.
    """
    outputs = [f.name for f in card.outputs]
    if len(outputs) < 2:
        return None
    metrics = (card.metrics.primary, *card.metrics.also)
    numbers = [p for p in published(card.address) if p.split == _TEST]
    scored = {name for runs in results for name in runs.scores.get(_TEST, ())} | {p.metric for p in numbers}
    columns = {f"{m}_{output}": metric_head(m).replace(" ", f" of {output} ", 1) for m in metrics for output in outputs}
    columns = {name: head for name, head in columns.items() if name in scored}
    if not columns:
        return None
    labels, rows, shown = Labels(results), [], beside(card, _TEST, results)
    for kind in _KINDS:
        for predictor, scores in _scores_of(shown, kind).items():
            if any(name in scores for name in columns):
                cells = (noted(_text(scores.get(name)), shown.reference_note) for name in columns)
                rows.append((predictor.replace("_", " "), _kind(predictor, kind, card), *cells))
    for runs in results:
        cells = (noted(stat_text(runs.score(_TEST, name)), shown.note(runs)) for name in columns)
        rows.append((labels[runs] + runs.mark, "ours", *cells))
    for model in dict.fromkeys(p.model for p in numbers if p.metric in columns):
        printed = {p.metric: p.value for p in numbers if p.model == model}
        rows.append((model, "published", *(_text(printed.get(name)) for name in columns)))
    return Grid(("predictor", "kind", *columns.values()), tuple(rows))


def _is_part(name: str, card: Card) -> bool:
    return name.startswith(f"{_TEST}_") and name not in card.all_splits and split_and_size(name)[1] is None


def _scores_of(shown: Beside, kind: str) -> Mapping[str, Mapping[str, float]]:
    """Return predictor -> metric -> score of the trivial baselines or of the solvers."""
    if shown.references is None:
        return {}
    return shown.references.floor if kind == "trivial" else shown.references.solvers


def _measured(shown: Mapping[str, Beside], metric: str, kind: str, card: Card) -> list[tuple[str, ...]]:
    """Return a row per predictor, with a cell per column."""
    scores = {column: _scores_of(beside_column, kind) for column, beside_column in shown.items()}
    names = dict.fromkeys(name for by_predictor in scores.values() for name in by_predictor)
    return [
        (
            name.replace("_", " "),
            _kind(name, kind, card),
            *(
                noted(_text(scores[column].get(name, {}).get(metric)), beside_column.reference_note)
                for column, beside_column in shown.items()
            ),
        )
        for name in names
    ]


def _kind(predictor: str, kind: str, card: Card) -> str:
    """Return the kind of a predictor: a rule of the card is among the trivial predictors, and reads the graph."""
    return "rule" if predictor in card.task.rules else kind


def _text(value: float | None) -> str:
    return ABSENT if value is None else number(value)
