"""What a model has to beat on the test split of a dataset: the best score of every kind, and on which samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import measured_references, references_on, whole_split
from graphbench.evaluation.trivial import without_rules
from graphbench.leaderboard.model import TEST
from graphbench.records.published import published

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.leaderboard.best import BestScore

Kind = Literal["trivial", "rule", "recorded", "solver", "published"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Mark:
    """The best score of one kind.

    Attributes:
        kind: ``trivial``, the best predictor that has learned nothing; ``rule``, the best simple rule that reads the
            graph; ``recorded``, the best mean over seeds among the records; ``solver``, the best solver that knows the
            task; or ``published``, the best score that a paper prints, where the question is the same.
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
    metric, whole = card.metrics.primary, whole_split(card, TEST)
    scored = whole
    if best is not None and best.data.graphs is not None:
        scored = replace(whole, count=best.data.graphs)
    same = references_on(card, TEST, scored)
    found = same or next(iter(measured_references(card, TEST)), None)
    by_kind: dict[Kind, dict[str, float]] = {}
    if found is not None:
        plain = without_rules(found.floor, card)
        rules = {name: own for name, own in found.floor.items() if name not in plain}
        kinds: dict[Kind, Mapping[str, Mapping[str, float]]] = {
            "trivial": plain,
            "rule": rules,
            "solver": found.solvers,
        }
        for kind, predictors in kinds.items():
            by_kind[kind] = {name: own[metric] for name, own in predictors.items() if metric in own}
    apart = None if same is not None or found is None else found.samples.count
    pick = max if METRICS[metric].higher_is_better else min
    by_kind["published"] = {}
    for score in published(card.address):
        if (score.split, score.metric) == (TEST, metric) and score.value is not None and not score.not_comparable:
            known = by_kind["published"]
            known[score.model] = pick(known.get(score.model, score.value), score.value)
    marks = []
    for kind in _KINDS:
        scores = by_kind.get(kind, {})
        if kind == "recorded" and best is not None:
            marks.append(Mark(kind, best.row.model, best.mean, None if best.data.whole else best.data.graphs))
        elif scores:
            name = pick(scores, key=lambda name: scores[name])
            marks.append(Mark(kind, name, scores[name], None if kind == "published" else apart))
    return marks
