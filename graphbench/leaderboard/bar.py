"""What a model has to beat on the test split of a dataset: the best score of every kind, and on which samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import nearest_references, whole_split
from graphbench.evaluation.trivial import best_of, without_rules
from graphbench.leaderboard.model import TEST
from graphbench.records.published import published

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.catalog.sections import Numbers
    from graphbench.leaderboard.best import BestScore

Kind = Literal["trivial", "rule", "search", "recorded", "solver", "published"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Mark:
    """The best score of one kind.

    Attributes:
        kind: ``trivial``, the best predictor that has learned nothing; ``rule``, the best simple rule that reads the
            graph; ``search``, the best record of a rule, search or solver; ``recorded``, the best mean over seeds among
            the records of trained models; ``solver``, the best reference solver; or ``published``, the best
            score that a paper prints, where the question is the same.
        name: Name of the predictor or model.
        value: The score.
        samples: Number of samples behind the score, where it is not that of the split, or of the recorded model.
    """

    kind: Kind
    name: str
    value: float
    samples: int | None = None


def bar(card: Card, best: BestScore | None) -> list[Mark]:
    """Return the best score of every kind that has one, by the primary metric on the test split.

    Args:
        card: The card of the dataset.
        best: The best recorded model; measured scores of the same samples are taken where there are any.
    """
    metric, scored = card.metrics.primary, whole_split(card, TEST)
    if best is not None and best.data.graphs is not None:
        scored = replace(scored, count=best.data.graphs)
    measured, apart = nearest_references(card, TEST, scored)
    marks = []
    if measured is not None:
        plain = without_rules(measured.floor, card)
        rules = {name: scores for name, scores in measured.floor.items() if name not in plain}
        count = measured.samples.count if apart else None
        kinds: dict[Kind, Numbers] = {"trivial": plain, "rule": rules, "solver": measured.solvers}
        best_ones = ((kind, best_of(predictors, metric)) for kind, predictors in kinds.items())
        marks = [Mark(kind, *leader, count) for kind, leader in best_ones if leader is not None]
    if best is not None:
        scored_graphs = None if best.data.whole else best.data.graphs
        if best.search is not None:
            marks.append(Mark("search", best.search.model, best.search.mean, scored_graphs))
        if best.row.trained:
            marks.append(Mark("recorded", best.row.model, best.mean, scored_graphs))
    printed = [
        Mark("published", score.model, score.value)
        for score in published(card.address)
        if (score.split, score.metric) == (TEST, metric) and score.value is not None and not score.not_comparable
    ]
    if printed:
        pick = max if METRICS[metric].higher_is_better else min
        marks.append(pick(printed, key=lambda mark: mark.value))
    return sorted(marks, key=lambda mark: _KINDS.index(mark.kind))
