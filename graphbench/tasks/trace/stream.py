"""Endless training data: samples are generated on demand and never stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphbench.catalog.cards import Card
from graphbench.core.arguments import whole_number
from graphbench.core.errors import CardError
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, batch_of_samples
from graphbench.data.store.shards import SplitTask

_SEED_STRIDE = 2**32  # samples of one size that belong to one seed


class TrajectoryStream:
    """A split of several problem sizes as an endless sequence of batches, each of one size.

    Sample ``i`` is a function of the card, the split and ``i`` alone, and has the size ``lengths[i % len(lengths)]``.
    Batch ``t`` of seed ``s`` holds samples of the size ``lengths[t % len(lengths)]`` that no other batch holds.

    Args:
        card: A card with hints.
        split: A split whose parameters have ``lengths``.
        seed: Part of the endless data to use.

    Raises:
        CardError: If the split has one size only.
    """

    def __init__(self, card: Card, split: str, seed: int = 0) -> None:
        self.card, self.split, self.seed = card, split, whole_number("seed", seed, 0)
        self._task = SplitTask(card, split)
        self.lengths: tuple[int, ...] = tuple(card.split(split).parameters.get("lengths", ()))
        if not self.lengths:
            raise CardError(f"the split {split!r} of {card.id} has no lengths, so it is stored, not streamed")

    def batch(self, number: int, batch_size: int, share: tuple[int, int] = (0, 1)) -> TrajectoryBatch:
        """Return one batch, or the samples ``rank``, ``rank + world``, ... of it for ``share = (rank, world)``."""
        batch_size = whole_number("batch_size", batch_size, 1)
        turn, which = divmod(whole_number("number", number, 0), len(self.lengths))
        samples = self.seed * _SEED_STRIDE + np.arange(turn * batch_size, (turn + 1) * batch_size)[share[0] :: share[1]]
        indices = samples * len(self.lengths) + which
        return batch_of_samples(self._task.draw(indices, np.zeros_like(indices)), self.card.features)

    def batches(self, batch_size: int, start: int = 0, share: tuple[int, int] = (0, 1)) -> Iterator[TrajectoryBatch]:
        """Yield batches, or shares of them, from number ``start`` on, without end."""
        number = start
        while True:
            yield self.batch(number, batch_size, share)
            number += 1
