"""Scores that stand beside the models of a table: trivial predictors, reference solvers, published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphbench.data.domain import rules_of
from graphbench.evaluation.floors import best_floor
from graphbench.evaluation.metrics import METRICS
from graphbench.reports.comparison import reference_scores, same_splits, scores_on_test
from graphbench.reports.labels import named
from graphbench.reports.leaderboard.model import TEST, Reference
from graphbench.reports.published import PublishedScore, published

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def references(
    card: Card, dataset: str, protocol: str | None, split: str, *, whole: bool = True
) -> tuple[Reference, ...]:
    """Return the best trivial predictor, the reference solvers and the published scores of a split, best first.

    Args:
        card: The dataset's card.
        dataset: Its address.
        protocol: Published scores are those of this protocol, and those that are shown for all models.
        split: Name of the split.
        whole: Whether the models beside them were scored on the whole split, as the references are.
    """
    metric, basis = card.metrics.primary, "" if whole else "; of the whole split, the models of a part"
    found = []
    if floor := best_floor(card, split, metric):
        rule = rules_of(card).get(floor[0])
        why = f"the best of the trivial predictors{basis}" + (f": {rule.description.rstrip('.')}" if rule else "")
        found.append(Reference("trivial", _in_words(floor[0]), floor[1], None, why))
    for name, scores in card.solvers.get(split, {}).items():
        if metric in scores:
            found.append(Reference("solver", _in_words(name), scores[metric], None, f"knows the task{basis}"))
    for score in _published(card, dataset, split):
        if score.value is not None and (score.protocol == protocol or score.for_all_models):
            name = named(_in_words(score.model), score.protocol)
            why = f"; not comparable: {score.not_comparable}" if score.not_comparable else ""
            about = score.reference + why
            found.append(Reference("published", name, score.value, score.std, about, not score.not_comparable))
    sign = -1 if METRICS[metric].higher_is_better else 1
    return tuple(sorted(found, key=lambda reference: (sign * reference.value, reference.name)))


def anchors(card: Card, split: str = TEST) -> tuple[float, float] | None:
    """Return the scores that count as 0 and as 1 of a split's primary metric, or None.

    0 is the best trivial predictor, rules that the card names left out: such a rule reads the graph as models do, and
    one that is nearly right would leave no scale. 1 is the best reference solver, where one is better than 0;
    elsewhere the best possible value of the metric, where there is a finite one.
    """
    name = card.metrics.primary
    metric, floor = METRICS[name], best_floor(card, split, name, rules=False)
    if floor is None:
        return None
    sign = 1 if metric.higher_is_better else -1
    solved = [sign * scores[name] for scores in card.solvers.get(split, {}).values() if name in scores]
    ideal = sign * (metric.highest if metric.higher_is_better else metric.lowest)
    worst = sign * floor[1]
    for top in (max(solved, default=worst), ideal):
        if worst < top < float("inf"):
            return floor[1], sign * top
    return None


def _published(card: Card, dataset: str, split: str) -> Iterator[PublishedScore]:
    metric = card.metrics.primary
    if split == TEST:
        yield from (score for score in scores_on_test(card, dataset) if score.metric == metric)
        return
    seen = set()
    for name in same_splits(card, split) if split in card.ood else [split]:
        for score in published(dataset):
            key = score.model, score.protocol
            if score.split == name and score.metric == metric and not score.for_all_models and key not in seen:
                seen.add(key)
                yield score
    for scores in reference_scores(dataset, metric, [split]).values():
        yield from scores.values()


def _in_words(name: str) -> str:
    return name.replace("_", " ")
