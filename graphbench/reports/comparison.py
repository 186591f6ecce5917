"""Which published scores runs are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from graphbench.records.aggregates import Aggregate
from graphbench.records.published import PublishedScore, published, published_score

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def architecture(runs: Aggregate) -> str:
    """Return the processor that was trained, which finds the published numbers (``gin`` for ``gin_small``)."""
    model = runs.records[0].config.get("model")
    processor = model.get("processor") if isinstance(model, Mapping) else None
    return str(processor) if processor else runs.model


def compared_with(
    runs: Aggregate, card: Card, split: str, metric: str, study: Literal["main", "ood"] = "main"
) -> PublishedScore | None:
    """Return the published score of the runs' architecture under their protocol, or None.

    If none is printed for the split, one for a split with the same parameters is used.

    Args:
        runs: The runs.
        card: The dataset's card.
        split: Name of the split.
        metric: Name of the metric.
        study: The preferred kind of table.
    """
    for name in same_splits(card, split):
        found = published_score(runs.dataset, name, architecture(runs), metric, study, runs.protocol)
        if found is not None:
            return found
    return None


def same_splits(card: Card, split: str) -> list[str]:
    """Return a split, and after it the other test splits with the same parameters."""
    known = {name: card.split(name).parameters for name in ("test", *card.ood)}
    own = known.get(split)
    return [split, *(name for name, parameters in known.items() if name != split and own == parameters)]


def scores_on_test(card: Card, dataset: str) -> list[PublishedScore]:
    """Return the published scores of a dataset's test split, in the order of their tables.

    They are from the papers' tables of results; for models in none of these, one score of another table, if it is for
    the test split or one with the same parameters. Scores that are shown for all models, such as that of a solver, are
    listed if they are for the test split itself.

    Args:
        card: The dataset's card.
        dataset: Its id, with or without a task.
    """
    splits = same_splits(card, "test")
    fitting = [
        s
        for s in published(dataset)
        if s.split in splits and s.value is not None and (not s.for_all_models or s.split == "test")
    ]
    found = [s for s in fitting if s.study == "main" and s.split == "test"]
    known = {(s.model, s.protocol, s.metric) for s in found}
    for score in sorted(fitting, key=lambda s: splits.index(s.split)):
        if (score.model, score.protocol, score.metric) not in known:
            known.add((score.model, score.protocol, score.metric))
            found.append(score)
    return found


def reference_scores(dataset: str, metric: str, splits: Iterable[str]) -> dict[str, dict[str, PublishedScore]]:
    """Return name -> split -> published score that is shown for all models, such as that of people."""
    wanted = set(splits)
    found: dict[str, dict[str, PublishedScore]] = {}
    for score in published(dataset):
        if score.for_all_models and score.metric == metric and score.split in wanted and score.value is not None:
            found.setdefault(score.model, {}).setdefault(score.split, score)
    return found


def notes_on(scores: Sequence[PublishedScore]) -> list[str]:
    """Return the notes on published scores, and why some are not comparable, each once, with the tables it is about."""
    tables: dict[str, dict[str, None]] = {}
    for score in scores:
        for note in (score.note, f"not comparable: {score.not_comparable}" if score.not_comparable else ""):
            if note:
                tables.setdefault(note, {})[score.reference] = None
    return [f"{'; '.join(references)}: {note}" for note, references in tables.items()]
