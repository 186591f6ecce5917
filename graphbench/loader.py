"""One loader for every dataset: a name goes in, splits come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.names import Selector, catalog
from graphbench.data.generation import ensure_split
from graphbench.data.store import default_root
from graphbench.errors import CardError

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset


@dataclass
class Splits:
    """The splits of one dataset, built and opened when first asked for.

    Attributes:
        card: The dataset's card.
        ood: Mapping of out-of-distribution splits, e.g. ``splits.ood["n256"]``.
    """

    card: Card
    _open: Callable[[str], GraphDataset]
    _opened: dict[str, GraphDataset] = field(default_factory=dict)

    def __getitem__(self, name: str) -> GraphDataset:
        """Return a split by name, out-of-distribution splits included."""
        self.card.split(name)
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all splits."""
        return iter(self.card.all_splits)

    def __len__(self) -> int:
        """Return the number of splits."""
        return len(self.card.all_splits)

    @property
    def train(self) -> GraphDataset:
        """The training split."""
        return self["train"]

    @property
    def val(self) -> GraphDataset:
        """The validation split, on which models are selected."""
        return self["val"]

    @property
    def test(self) -> GraphDataset:
        """The test split."""
        return self["test"]

    @property
    def ood(self) -> OodSplits:
        """The out-of-distribution splits, as a mapping."""
        return OodSplits(self)

    def __repr__(self) -> str:
        """Return id and split sizes."""
        sizes = ", ".join(f"{name}={spec.count}" for name, spec in self.card.all_splits.items())
        return f"Splits({self.card.id}: {sizes})"


class OodSplits(Mapping[str, "GraphDataset"]):
    """Mapping name -> dataset of the out-of-distribution splits; each is built on first access."""

    def __init__(self, splits: Splits) -> None:
        self._splits = splits

    def __getitem__(self, name: str) -> GraphDataset:
        """Return one out-of-distribution split."""
        if name not in self._splits.card.ood:
            known = ", ".join(self._splits.card.ood) or "none"
            raise CardError(f"{self._splits.card.id} has no ood split {name!r}; it has {known}")
        return self._splits[name]

    def __contains__(self, name: object) -> bool:
        """Return whether there is a split of that name (without building it)."""
        return name in self._splits.card.ood

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._splits.card.ood)

    def __len__(self) -> int:
        """Return the number of out-of-distribution splits."""
        return len(self._splits.card.ood)


class Loader:
    """Load one or several datasets, generating on this machine what is not there yet.

    Args:
        dataset_name: An id (``algoreas/mst_easy``), alias, group, glob, or a list of these.
        pre_filter: ``Data -> bool``; keeps the graphs for which it is True. Decided once, at loading.
        pre_transform: ``Data -> Data``; applied once to every graph at loading, kept in memory.
        transform: ``Data -> Data``; applied at every access.
        root: Folder of all datasets; default ``$GRAPHBENCH_ROOT``, else the user's cache folder.
        limit: Take (and generate) the first ``limit`` samples of each split only; or a mapping split -> number, where
            splits not named are taken whole.
        workers: Processes that generate; default all cores.
        executor: Any ``concurrent.futures`` executor to generate on instead.
        progress: Show progress bars; default only in a terminal.

    Raises:
        UnknownDataset: If a name matches nothing; the message suggests the nearest.
        CardError: If ``limit`` names a split that no dataset has.
        ValueError: If a limit is below 1.
    """

    def __init__(
        self,
        dataset_name: Selector,
        pre_filter: Callable[[Any], bool] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        root: str | Path | None = None,
        limit: int | Mapping[str, int] | None = None,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: bool | None = None,
    ) -> None:
        self.ids = catalog().resolve(dataset_name)
        self._single = catalog().is_single(dataset_name)
        self.root = default_root() if root is None else Path(root).expanduser()
        self.limit = limit
        for number in limit.values() if isinstance(limit, Mapping) else () if limit is None else (limit,):
            if number < 1:
                raise ValueError(f"limit must be at least 1, got {number}")
        for split in limit if isinstance(limit, Mapping) else ():
            if not any(split in catalog().cards[id_].all_splits for id_ in self.ids):
                raise CardError(f"limit names the split {split!r}, which none of {', '.join(self.ids)} has")
        self._pre_filter, self._pre_transform, self._transform = pre_filter, pre_transform, transform
        self._workers, self._executor, self._progress = workers, executor, progress

    def load(self, splits: Sequence[str] = CORE_SPLITS) -> Any:
        """Generate what is missing, and return the splits.

        Args:
            splits: Splits to have ready on return. Others, such as the large out-of-distribution ones, are built when
                first accessed; ``()`` builds nothing yet.

        Returns:
            :class:`Splits` for a single name; ``{id: Splits}`` for a list, group or glob.
        """
        loaded = {id_: self._load(id_, splits) for id_ in self.ids}
        return loaded[self.ids[0]] if self._single else loaded

    def _load(self, id_: str, names: Sequence[str]) -> Splits:
        card = catalog().cards[id_]
        splits = Splits(card, lambda name: self._open(card, name))
        for name in names:
            splits[name]
        return splits

    def _open(self, card: Card, split: str) -> GraphDataset:
        from graphbench.data.dataset import GraphDataset

        limit = self.limit.get(split) if isinstance(self.limit, Mapping) else self.limit
        path = ensure_split(
            card,
            split,
            self.root,
            limit,
            workers=self._workers,
            executor=self._executor,
            progress=self._progress,
        )
        return GraphDataset(
            card,
            split,
            path,
            limit=limit,
            transform=self._transform,
            pre_transform=self._pre_transform,
            pre_filter=self._pre_filter,
        )
