"""The training loop for trajectories: one model, one algorithm or several in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from graphbench.catalog.cards import Card
from graphbench.data.dataset import GraphDataset
from graphbench.data.stream import TrajectoryStream
from graphbench.data.trajectory_batch import TrajectoryBatch
from graphbench.data.trajectory_inputs import InputRule, order_is_constant
from graphbench.models.trajectory.model import TrajectoryModel
from graphbench.training.config import RunConfig
from graphbench.training.distributed import World
from graphbench.training.loop import TrainingLoop
from graphbench.training.trajectory_scores import score_trajectories

_SEED_STRIDE = 2**32


@dataclass(frozen=True)
class Task:
    """One algorithm to train on.

    Attributes:
        card: Its card.
        train: What batches come from: a stored split, or an endless stream.
        val: The split models are selected on.
        rule: How batches become inputs.
    """

    card: Card
    train: GraphDataset | TrajectoryStream
    val: GraphDataset
    rule: InputRule

    @property
    def constant(self) -> bool:
        """Whether the order hint of the algorithm never changes."""
        return order_is_constant(self.card.features)


class TrajectoryLoop(TrainingLoop):
    """Trains a model on algorithms in turn: update t is on algorithm t modulo their number.

    Args:
        tasks: Id -> algorithm, in the order of the turns.
        Others: As for ``TrainingLoop``.
    """

    model: TrajectoryModel

    def __init__(
        self,
        config: RunConfig,
        tasks: Mapping[str, Task],
        model: TrajectoryModel,
        world: World,
        folder: Path,
        fingerprint: str,
    ) -> None:
        first = next(iter(tasks.values()))
        self.tasks = dict(tasks)
        train: Any = first.train
        super().__init__(config, first.card, train, first.val, model, world, folder, fingerprint, True)

    def _batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield (id, parts of this process) of every batch from the current step on, for ever."""
        settings, world, number = self.settings, self.world, len(self.tasks)
        parts = world.size * settings.accumulate
        ids = list(self.tasks)
        turn = self.state.step
        sources = {
            id_: [
                self._source(task, settings, (turn - place + number - 1) // number, (share, parts))
                for share in range(world.rank, parts, world.size)
            ]
            for place, (id_, task) in enumerate(self.tasks.items())
        }
        while True:
            id_ = ids[turn % number]
            yield tuple((id_, next(source)) for source in sources[id_])
            turn += 1

    def _source(self, task: Task, settings: Any, start: int, share: tuple[int, int]) -> Iterator[TrajectoryBatch]:
        """Yield the shares of a task's batches from number ``start`` on, as the model sees them."""
        number = start
        for batch in _endless(task.train, settings.batch_size, settings.seed, start, share):
            generator = torch.Generator().manual_seed((settings.seed * _SEED_STRIDE + number) * share[1] + share[0])
            yield task.rule.batch(batch, task.constant, generator)
            number += 1

    def _backward(self, parts: Sequence[Any]) -> Tensor:
        """Add the gradients of this process's parts of a batch, weighted by their share of its samples."""
        device = self.world.device
        counts = torch.tensor([float(batch.num_graphs) for _, batch in parts], device=device)
        weights = counts / self.world.sum(counts.sum())
        total = torch.zeros((), device=device)
        for (id_, batch), weight in zip(parts, weights, strict=True):
            share = self._loss(id_, batch.to(device)) * weight
            share.backward()
            total += share.detach()
        return total

    def _loss(self, id_: str, batch: TrajectoryBatch) -> Tensor:
        from graphbench.training.scoring import autocast

        with autocast(self.world.device, self.precision):
            return self.model.loss(batch, id_)

    def _validation_score(self) -> float:
        scores = [
            score_trajectories(
                self.model, id_, task.val, task.rule, self.world.device, self.precision, randomise=True
            ).primary
            for id_, task in self.tasks.items()
        ]
        return sum(scores) / len(scores)

    def _graphs_per_update(self) -> int:
        return self.settings.batch_size


def _endless(
    train: GraphDataset | TrajectoryStream, size: int, seed: int, start: int, share: tuple[int, int]
) -> Iterator[TrajectoryBatch]:
    """Yield shares of batches for ever: of a stream, or of a stored split epoch after epoch."""
    if isinstance(train, TrajectoryStream):
        yield from cast(TrajectoryStream, train).batches(size, start, share)
        return
    epoch, first = divmod(start, max(1, len(train) // size))
    while True:
        whole = len(train) >= size
        yield from train.batches(size, shuffle=True, seed=seed, epoch=epoch, drop_last=whole, start=first, share=share)
        epoch, first = epoch + 1, 0
