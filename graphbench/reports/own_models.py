"""Records of the scores of users' own models, measured against the budget of published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import ResultError
from graphbench.evaluation.results import RunRecord
from graphbench.tasks.registry import task_of

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
        protocol: Which data was trained on, where a benchmark has several ways; None for the dataset's split ``train``.
    """

    model: str
    seed: int = 0
    steps: int | None = None
    batch_size: int | None = None
    parameters: int | None = None
    notes: str = ""
    config: Mapping[str, Any] | None = None
    protocol: str | None = None


def record_of_scores(splits: Mapping[str, GraphDataset], scores: Mapping[str, Score], stated: Stated) -> RunRecord:
    """Return the record of scores.

    Args:
        splits: The splits that were scored, by name.
        scores: Split, or part of one -> its score.
        stated: What the user says of the model.

    Raises:
        ResultError: If no split was scored, the dataset does not have the protocol, or a value is refused.
    """
    if splits and stated.protocol is not None:
        require_protocol(next(iter(splits.values())).card, stated.protocol)
    least = published_budget(next(iter(splits.values())).card) if splits else None
    return RunRecord.from_scores(splits, scores, **vars(stated), published_samples=least)


def require_protocol(card: Card, protocol: str | None) -> None:
    """Refuse a protocol that runs on generated data of a dataset cannot have.

    Raises:
        ResultError: With those that they can have.
    """
    known = task_of(card).protocols
    if protocol not in known:
        stated = "no protocol" if protocol is None else f"the protocol {protocol!r:.60}"
        own = " or ".join(f"{name}" for name in known if name is not None) or "none"
        raise ResultError(f"{stated} is stated; runs on {card.address} have {own}")


def published_budget(card: Card) -> int | None:
    """Return the training samples of the smallest budget behind published scores of a dataset; None without any."""
    from graphbench.reports.published import published
    from graphbench.training.config import published_samples

    return published_samples(card.domain, card.family) if published(card.address) else None
