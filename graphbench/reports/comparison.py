"""The published scores with which runs are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from graphbench.records.aggregates import Aggregate
from graphbench.records.published import PublishedScore, published, published_score

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def architecture(runs: Aggregate) -> str:
    """Return the processor that was trained (``gin`` for ``gin_small``), by which published scores are looked up."""
    model = runs.records[0].config.get("model")
    processor = model.get("processor") if isinstance(model, Mapping) else None
    return str(processor) if processor else runs.model


def compared_with(
    runs: Aggregate, card: Card, split: str, metric: str, study: Literal["main", "ood"] = "main"
) -> PublishedScore | None:
    """Return the published score of the runs' architecture under their protocol, or None.

    If no score is printed for the split, the score of a split with the same parameters is used.

    Args:
        runs: The runs.
        card: The dataset's card.
        split: Name of the split.
        metric: Name of the metric.
        study: The preferred kind of table.
    """
    for name in same_splits(card, split):
        score = published_score(runs.dataset, name, architecture(runs), metric, study, runs.protocol)
        if score is not None:
            return score
    return None


def same_splits(card: Card, split: str) -> list[str]:
    """Return a split, and after it the other test splits with the same parameters."""
    parameters_of = {name: card.split(name).parameters for name in ("test", *card.ood)}
    wanted = parameters_of.get(split)
    return [split, *(name for name, parameters in parameters_of.items() if name != split and wanted == parameters)]


def scores_on_test(card: Card, dataset: str) -> list[PublishedScore]:
    """Return the published scores of a dataset's test split, in the order of their tables.

    The scores come from the papers' tables of results. A model in none of these tables has one score of another table,
    if that score is for the test split or for a split with the same parameters. Scores that are shown for all models
    (e.g. the score of a solver) are listed if they are for the test split itself.

    Args:
        card: The dataset's card.
        dataset: The dataset's id, with or without a task.
    """
    splits = same_splits(card, "test")
    fitting = [
        s
        for s in published(dataset)
        if s.split in splits and s.value is not None and (not s.for_all_models or s.split == "test")
    ]
    scores = [s for s in fitting if s.study == "main" and s.split == "test"]
    listed = {(s.model, s.protocol, s.metric) for s in scores}
    for score in sorted(fitting, key=lambda s: splits.index(s.split)):
        if (score.model, score.protocol, score.metric) not in listed:
            listed.add((score.model, score.protocol, score.metric))
            scores.append(score)
    return scores


def reference_scores(dataset: str, metric: str, splits: Iterable[str]) -> dict[str, dict[str, PublishedScore]]:
    """Return name -> split -> published score that is shown for all models, e.g. the score of people."""
    wanted = set(splits)
    scores: dict[str, dict[str, PublishedScore]] = {}
    for score in published(dataset):
        if score.for_all_models and score.metric == metric and score.split in wanted and score.value is not None:
            scores.setdefault(score.model, {}).setdefault(score.split, score)
    return scores


def notes_on(scores: Sequence[PublishedScore]) -> list[str]:
    """Return the notes on published scores and the reasons why some are not comparable.

    Each note appears once, after the names of its tables.
    """
    tables: dict[str, dict[str, None]] = {}
    for score in scores:
        for note in (score.note, f"not comparable: {score.not_comparable}" if score.not_comparable else ""):
            if note:
                tables.setdefault(note, {})[score.reference] = None
    return [f"{'; '.join(references)}: {note}" for note, references in tables.items()]
