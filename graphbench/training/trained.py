"""The origin of a model that was rebuilt from stored weights, and the task that it is scored by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.tasks.base import Task
from graphbench.tasks.registry import task_of
from graphbench.training.config import RunConfig


@dataclass(frozen=True)
class Trained:
    """The origin of a model that was rebuilt from stored weights: the attribute ``trained`` of the model.

    Attributes:
        path: The file of its weights.
        config: The configuration of its run.
        records: Dataset -> path of the run's record below ``baselines/results``.
        scores: Dataset -> the primary metric on the validation split.
        training_facts: Dataset -> facts of the training split that scores refer to.
    """

    path: Path
    config: RunConfig
    records: Mapping[str, str]
    scores: Mapping[str, float]
    training_facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that the model was trained on; the names of its tasks."""
        return tuple(self.records)


def task_for(model: Any, card: Card, task_options: Mapping[str, Any] | None = None) -> Task:
    """Return the task of a card, with the settings of the training if the model was rebuilt from stored weights.

    Args:
        model: The model that is scored, of any kind.
        card: The card of the samples.
        task_options: Options of the kind of task; None takes the options of the training, if they are there.
    """
    trained = getattr(model, "trained", None)
    if not isinstance(trained, Trained) or card.address not in trained.datasets:
        return task_of(card, task_options)
    task = task_of(card, trained.config.training.task if task_options is None else task_options)
    task.configure(trained.config.model)
    if facts := trained.training_facts.get(card.address):
        task.facts = facts
    return task
