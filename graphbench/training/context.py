"""The parts of a run: its datasets with their tasks and splits, its folder, and its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.progress import Progress
from graphbench.training.config import RunConfig
from graphbench.training.distributed import World

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits
    from graphbench.tasks.base import Task
    from graphbench.training.interrupts import StopRequest
    from graphbench.training.recording import Board


@dataclass(frozen=True)
class TaskRun:
    """One dataset of a run.

    Attributes:
        task: Its task.
        data: Its splits.
        train: Source of the training batches: a stored split, or data that are drawn while training.
        val: The split that models are selected on.
    """

    task: Task
    data: Splits
    train: Any
    val: GraphDataset

    @property
    def card(self) -> Card:
        """The dataset's card."""
        return self.task.card

    @property
    def train_size(self) -> int:
        """Number of training samples; for data drawn while training, the number on the card."""
        if self.task.is_stored(self.train.split):
            return len(self.train)
        return self.card.split(self.train.split).count

    @property
    def stored(self) -> dict[str, GraphDataset]:
        """The stored splits that are trained and validated on, by name."""
        splits = [self.train, self.val] if self.task.is_stored(self.train.split) else [self.val]
        return {split.split: split for split in splits}


@dataclass(frozen=True)
class RunContext:
    """A run, as a learner sees it.

    Attributes:
        config: Its configuration.
        runs: Dataset -> task and splits, in the order of the run.
        folder: Where its files go.
        world: The processes that train together.
        fingerprint: Fingerprint that stored weights must share with this run.
    """

    config: RunConfig
    runs: Mapping[str, TaskRun]
    folder: Path
    world: World
    fingerprint: str

    @property
    def name(self) -> str:
        """The run's dataset, or how many it has."""
        return next(iter(self.runs)) if len(self.runs) == 1 else f"{len(self.runs)} datasets"


@dataclass(frozen=True)
class Watch:
    """The receivers of a learner's reports while it learns.

    Attributes:
        bar: Progress.
        board: Curves.
        stop: Whether the run was asked to stop.
        recorded: Whether a record of the run will be written, so that facts for it alone are worth their time.
    """

    bar: Progress
    board: Board
    stop: StopRequest
    recorded: bool = True
