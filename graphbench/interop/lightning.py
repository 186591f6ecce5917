"""A dataset as a ``LightningDataModule``.

This module imports Lightning, whose ``LightningDataModule`` is the base class; ``graphbench.interop.DataModule`` loads
the module on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.data.batches.dataset import GraphDataset
from graphbench.loader import Loader, Splits

try:
    from lightning.pytorch import LightningDataModule
except ImportError as error:
    raise MissingDependency(
        f"a LightningDataModule needs lightning ({error}); install it: pip install 'graphbench[lightning]'"
    ) from error


class EpochBatches:
    """The batches of a split, for Lightning: every iteration is one epoch, each in a new order.

    With several processes each takes its share of every batch, so the graphs of a split are divided among them.

    Args:
        module: The data module, whose trainer knows epoch and processes.
        split: The split.
        batch_size: Graphs per batch and process.
        shuffle: Whether each epoch has a random order, a function of (seed, epoch) alone.
        seed: Seed of the order.
    """

    def __init__(self, module: LightningDataModule, split: GraphDataset, batch_size: int, shuffle: bool, seed: int):
        self._module, self._split, self._size, self._shuffle, self._seed = module, split, batch_size, shuffle, seed

    def __len__(self) -> int:
        """Return the number of batches of an epoch; training leaves out a last, smaller one."""
        return len(self._plan())

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the trainer's current epoch."""
        return iter(self._plan())

    def _plan(self) -> Any:
        trainer = self._module.trainer
        rank, world, epoch = (0, 1, 0) if trainer is None else (
            trainer.global_rank, trainer.world_size, trainer.current_epoch
        )  # fmt: skip
        size = self._size * world
        drop = self._shuffle and len(self._split) >= size
        return self._split.batches(size, self._shuffle, self._seed, epoch=epoch, drop_last=drop, share=(rank, world))


class DataModule(LightningDataModule):  # type: ignore[misc]
    """A dataset for Lightning's ``Trainer``: ``trainer.fit(model, datamodule=DataModule("algoreas/mst_easy"))``.

    Batches are PyG ``Batch`` objects of the fast path, ``GraphDataset.batches``. Missing data are generated in
    ``prepare_data``, in one process per node. Lightning's samplers and ``reload_dataloaders_every_n_epochs`` are not
    needed: order and share follow the trainer's epoch and processes.

    Args:
        dataset: The name of one dataset, or its ``Splits``.
        batch_size: Graphs per batch and process.
        eval_batch_size: The same for validation and test; ``batch_size`` if None.
        test: The splits that ``trainer.test`` scores; one dataloader each.
        seed: Seed of the order of training.
        **options: Further arguments of ``Loader``, where a name is given: ``root``, ``limit``, ``transform`` ...

    Raises:
        MissingDependency: If Lightning is not installed.
        ArgumentError: If a number is not whole, or ``options`` are given beside ``Splits``.
    """

    def __init__(
        self,
        dataset: str | Splits,
        batch_size: int = 256,
        *,
        eval_batch_size: int | None = None,
        test: str | Sequence[str] = ("test",),
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.eval_batch_size = self.batch_size
        if eval_batch_size is not None:
            self.eval_batch_size = whole_number("eval_batch_size", eval_batch_size, 1)
        self.seed = whole_number("seed", seed, 0)
        self.test_splits = (test,) if isinstance(test, str) else tuple(test)
        self._loader: Loader | None = None
        if isinstance(dataset, Splits):
            if options:
                raise ArgumentError(
                    f"{', '.join(options)} belong to Loader; give them to the one that loaded the splits"
                )
            self.splits = dataset
        else:
            self._loader = Loader(dataset, **options)
            self.splits = self._loader.load(())  # builds none

    def prepare_data(self) -> None:
        """Generate missing data."""
        if self._loader is not None:
            self._loader.load(list(dict.fromkeys((*CORE_SPLITS, *self.test_splits))))

    def train_dataloader(self) -> EpochBatches:
        """Return the training batches, in another order every epoch."""
        return EpochBatches(self, self.splits.train, self.batch_size, True, self.seed)

    def val_dataloader(self) -> EpochBatches:
        """Return the validation batches."""
        return EpochBatches(self, self.splits.val, self.eval_batch_size, False, self.seed)

    def test_dataloader(self) -> EpochBatches | list[EpochBatches]:
        """Return the batches of the test splits: one dataloader, or a list of several."""
        loaders = [
            EpochBatches(self, self.splits[name], self.eval_batch_size, False, self.seed) for name in self.test_splits
        ]
        return loaders[0] if len(loaders) == 1 else loaders

    predict_dataloader = test_dataloader
