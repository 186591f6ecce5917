"""Records of the scores of users' own models, measured against the budget of published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphbench.evaluation.results import RunRecord

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.dataset import GraphDataset
    from graphbench.evaluation.score import Score


@dataclass(frozen=True)
class Stated:
    """What a user says of an own model.

    Attributes:
        model: Its name.
        seed: Its seed.
        steps: Optimizer steps; None where not stated.
        batch_size: Samples per step; None where not stated.
        parameters: Trained numbers; None where not stated.
        notes: What a reader must know.
        config: What tells configurations of one name apart.
    """

    model: str
    seed: int = 0
    steps: int | None = None
    batch_size: int | None = None
    parameters: int | None = None
    notes: str = ""
    config: Mapping[str, Any] | None = None


def record_of_scores(splits: Mapping[str, GraphDataset], scores: Mapping[str, Score], stated: Stated) -> RunRecord:
    """Return the record of scores.

    Args:
        splits: The splits that were scored, by name.
        scores: Split, or part of one -> its score.
        stated: What the user says of the model.

    Raises:
        ResultError: If no split was scored, or a value is refused.
    """
    least = published_budget(next(iter(splits.values())).card) if splits else None
    return RunRecord.from_scores(splits, scores, **vars(stated), published_samples=least)


def published_budget(card: Card) -> int | None:
    """Return the training samples of the smallest budget behind published scores of a dataset; None without any."""
    from graphbench.reports.published import published
    from graphbench.training.config import published_samples

    return published_samples(card.domain, card.family) if published(card.address) else None
