"""Reference scores of a table: trivial baselines, reference solvers, published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from graphbench.data.components.domain import rules_of
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import SampleSet, nearest_references, references_on, samples_text
from graphbench.evaluation.trivial import best_of, without_rules
from graphbench.leaderboard.model import TEST, Reference
from graphbench.records.published import PublishedScore, published
from graphbench.reports.comparison import reference_scores, same_splits, scores_on_test
from graphbench.reports.labels import named
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def references(card: Card, dataset: str, protocol: str | None, split: str, samples: SampleSet) -> tuple[Reference, ...]:
    """Return the best trivial baseline, the best rule, the solvers and the published scores of a split, best first.

    Scores measured on other samples than the models' samples come last. These scores name their samples and are not
    comparable.

    Args:
        card: The dataset's card.
        dataset: The dataset's address.
        protocol: Protocol of the published scores; published scores that are shown for all models are added.
        split: Name of the split.
        samples: The samples that the models were scored on.
    """
    metric = card.metrics.primary
    collected = [*_measured(card, split, metric, samples)]
    whole = card.all_splits[split].count if split in card.all_splits else None
    part = ""
    if whole is not None and samples.count is not None and samples.count < whole:
        part = f"the models were scored on {samples.count:,} of {whole:,} {task_of(card).samples}"
    for score in _published(card, dataset, split):
        if score.value is not None and (score.protocol == protocol or score.for_all_models):
            name = named(_in_words(score.model), score.protocol)
            why = score.not_comparable or part
            basis = score.reference + (f"; not comparable: {why}" if why else "")
            collected.append(Reference("published", name, score.value, score.std, basis, not why))
    sign = -1 if METRICS[metric].higher_is_better else 1
    return tuple(sorted(collected, key=lambda entry: (entry.apart, sign * entry.value, entry.name)))


def _measured(card: Card, split: str, metric: str, samples: SampleSet) -> Iterator[Reference]:
    """Yield the best trivial baseline, the best rule and the solvers.

    They were measured on the models' samples, or else on the most samples.
    """
    measured, apart = nearest_references(card, split, samples)
    note = ""
    if measured is None:
        return
    noun = task_of(card).samples
    if apart:
        reference_samples = samples_text(measured.samples, noun, samples)
        model_samples = samples_text(samples, noun, samples)
        note = f"; measured on {reference_samples}, the models were scored on {model_samples}"
    count = measured.samples.count
    plain = without_rules(measured.floor, card)
    if floor := best_of(plain, metric):
        basis = f"the best of the trivial predictors{note}"
        yield Reference("trivial", _in_words(floor[0]), floor[1], None, basis, not apart, apart, count)
    rules = {name: rule_scores for name, rule_scores in measured.floor.items() if name not in plain}
    if floor := best_of(rules, metric):
        rule = rules_of(card).get(floor[0])
        basis = f"a rule that reads the graph{note}" + (f": {rule.description.rstrip('.')}" if rule else "")
        yield Reference("rule", _in_words(floor[0]), floor[1], None, basis, not apart, apart, count)
    task = task_of(card)
    kind: Literal["solver", "bound"] = "bound" if task.solvers_given else "solver"
    for name, scores in measured.solvers.items():
        if metric in scores:
            basis = f"{task.solver_basis()}{note}"
            yield Reference(kind, _in_words(name), scores[metric], None, basis, not apart, apart, count)


def anchors(card: Card, samples: SampleSet, split: str = TEST) -> tuple[float, float] | None:
    """Return the scores that count as 0 and as 1 of a split's primary metric, or None.

    0 is the score of the best trivial baseline, without the rules that the card names: rules read the graph as models
    do, and a rule that is nearly right would leave no scale. 1 is the score of the best reference solver if a solver is
    better than 0; otherwise it is the best possible value of the metric, if that value is finite. Both were measured on
    the samples that the models were scored on; if nothing was measured on these samples, there are no anchors.

    Args:
        card: The dataset's card.
        samples: The samples that the models were scored on.
        split: Name of the split.
    """
    name, measured = card.metrics.primary, references_on(card, split, samples)
    floor = None if measured is None else best_of(without_rules(measured.floor, card), name)
    if measured is None or floor is None:
        return None
    metric = METRICS[name]
    sign = 1 if metric.higher_is_better else -1
    solved = [sign * scores[name] for scores in measured.solvers.values() if name in scores]
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
