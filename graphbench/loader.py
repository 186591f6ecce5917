"""One loader for all datasets: it returns the splits of a named dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphbench.catalog.cards import CORE_SPLITS, Card, draw_suffix
from graphbench.catalog.names import Selector, catalog
from graphbench.core.arguments import checked_path, whole_number
from graphbench.core.errors import CardError
from graphbench.core.files import default_root
from graphbench.data.build.generation import ensure_split
from graphbench.data.build.limits import apply_limit
from graphbench.data.build.workers import require_one_place, worker_count
from graphbench.data.components.file_sources import Reader
from graphbench.data.components.source_choice import GENERATED, sourced_card

if TYPE_CHECKING:
    from distributed import Client

    from graphbench.data.batches.dataset import GraphDataset


@dataclass
class Splits:
    """The splits of one dataset, built and opened on first access.

    Attributes:
        card: The dataset's card.
        ood: Mapping of out-of-distribution splits, e.g. ``splits.ood["n256"]``.
    """

    card: Card
    _open: Callable[..., GraphDataset]
    _opened: dict[str, GraphDataset] = field(default_factory=dict)
    _limits: Mapping[str, int] = field(default_factory=dict)  # split -> most graphs
    _unlabelled: frozenset[str] = frozenset()
    _labelled: dict[str, GraphDataset] = field(default_factory=dict)

    def labelled(self, name: str) -> GraphDataset:
        """Return a split by name with its labels, even if it was loaded without them."""
        if name not in self._unlabelled:
            return self[name]
        if name not in self._labelled:
            self._labelled[name] = self._open(name)
        return self._labelled[name]

    def __getitem__(self, name: str) -> GraphDataset:
        """Return a split by name, out-of-distribution splits included."""
        self.card.split(name)
        if name not in self._opened:
            self._opened[name] = self._open(name, labels=False) if name in self._unlabelled else self._open(name)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all splits."""
        return iter(self.card.all_splits)

    def keys(self) -> KeysView[str]:
        """Return the names of all splits; ``dict(splits)`` builds and opens every split."""
        return self.card.all_splits.keys()

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

    if not TYPE_CHECKING:  # else type checkers would accept every attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse the attribute; the message says how to access a split of that name."""
            card = self.__dict__.get("card")
            if card is None or name not in card.all_splits:
                hint = "" if card is None else f"; its splits are {', '.join(card.all_splits)}"
                raise AttributeError(f"Splits has no attribute {name!r}{hint}")
            where = f"splits[{name!r}]" + (f" or splits.ood[{name!r}]" if name in card.ood else "")
            raise AttributeError(f"Splits has no attribute {name!r}; the split of that name is {where}")

    def __repr__(self) -> str:
        """Return id, draw and split sizes: actual sizes of open splits, else the sizes from the card and the limit."""
        sizes = ", ".join(f"{name}={self._size(name)}" for name in self.card.all_splits)
        return f"Splits({self.card.address}{draw_suffix(self.card.data_seed)}: {sizes})"

    def _size(self, name: str) -> int:
        if name in self._opened:
            return len(self._opened[name])
        count = self.card.split(name).count
        return min(count, self._limits.get(name, count))


class OodSplits(Mapping[str, "GraphDataset"]):
    """Mapping name -> dataset of the out-of-distribution splits; each is built on first access."""

    def __init__(self, splits: Splits) -> None:
        self._splits = splits

    def __getitem__(self, name: str) -> GraphDataset:
        """Return one out-of-distribution split."""
        if name not in self._splits.card.ood:
            names = ", ".join(self._splits.card.ood) or "none"
            raise CardError(f"{self._splits.card.address} has no ood split {name!r}; it has {names}")
        return self._splits[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return one out-of-distribution split, or ``default`` if there is none of that name."""
        if name not in self:
            return default
        return self[name]

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
    """Load one or several datasets; missing data are generated, on this machine or on a cluster.

    Args:
        dataset_name: An id (``algoreas/mst_easy``), alias, group, glob, or a list of these; each may be followed by a
            task (``co/rb_small:mis``); the default is the card's first task.
        pre_filter: ``Data -> bool``; keeps the graphs for which it is True. Applied once, at loading.
        pre_transform: ``Data -> Data``; applied once to every graph at loading, kept in memory.
        transform: ``Data -> Data``; applied at every access.
        root: Folder of all datasets; default ``$GRAPHBENCH_ROOT``, else the user's cache folder.
        limit: Take (and generate) the first ``limit`` samples of each split only; or a mapping split -> number, where
            other splits are loaded completely. For datasets with one large graph per split, it limits the
            size of the graph instead, e.g. the users of a social network.
        workers: Processes that generate; default all cores.
        executor: Any ``concurrent.futures`` executor to generate on instead.
        cluster: A running Dask cluster to generate on instead: the address of its scheduler (``tcp://host:8786``), its
            scheduler file, or a ``dask.distributed.Client``. The connection is made if data are
            missing; its workers must have access to ``root``.
        progress: Show progress bars; default only in a terminal.
        source: ``generated`` on this machine, or the name of a source of files: of the dataset's domain, e.g.
            ``official`` for published files, or ``<domain>.<name>``; or your reader, a function ``folder ->
            {split: Samples}``. The card then describes the files: their splits, their counts.
        folder: Folder of the files.
        download: Download the files of the source, where it registers a download, into a folder below the root;
            downloaded files are found again without ``folder``.
        data_seed: Which draw of the datasets: 0 is the canonical one; with any other number everything random in them
            is regenerated.
        keeps_choices: Whether another draw than 0 has further samples of the canonical dataset: what that holds out of
            training is held out, see :meth:`graphbench.catalog.cards.Card.with_data_seed`.
        unlabelled: Splits for which no labels are computed or read, for tasks with labellers: training with a loss
            without targets needs no labels.

    Raises:
        UnknownDataset: If a name matches nothing; the message suggests the nearest.
        CardError: If ``limit`` or ``unlabelled`` names a split that no dataset has, or ``data_seed`` is not a whole
            number from 0 on, or not 0 for files.
        StoreError: If ``folder`` does not hold the files of the source, or they cannot be downloaded.
        ArgumentError: If a limit or ``workers`` is not a whole number from 1 on, ``root`` is no path, a source is
            unknown, or ``source``, ``folder`` and ``download`` do not go together.
        GenerationError: If ``workers`` is below 1, or given together with ``cluster``.
        ClusterError: When generating: if the cluster cannot be reached or used, or is lost.
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
        cluster: str | Client | None = None,
        progress: bool | None = None,
        source: str | Reader = GENERATED,
        folder: str | Path | None = None,
        download: bool = False,
        data_seed: int = 0,
        keeps_choices: bool = False,
        unlabelled: str | Sequence[str] = (),
    ) -> None:
        self.ids = catalog().resolve(dataset_name)
        unlabelled = (unlabelled,) if isinstance(unlabelled, str) else tuple(unlabelled)
        cards = {id_: catalog().card(id_).with_data_seed(data_seed, keeps_choices=keeps_choices) for id_ in self.ids}
        self.root = default_root() if root is None else checked_path("root", root)
        files: dict[str, Any] = {"download": download, "root": self.root, "progress": progress}
        self._cards = {id_: sourced_card(card, source, folder, **files) for id_, card in cards.items()}
        self._single = catalog().is_single(dataset_name)
        self.limit = _checked_limit(limit)
        for name, of in (("limit", self.limit if isinstance(self.limit, dict) else ()), ("unlabelled", unlabelled)):
            for split in of:
                if not any(split in card.all_splits for card in self._cards.values()):
                    raise CardError(f"{name} names the split {split!r}, which none of {', '.join(self.ids)} has")
        self._pre_filter, self._pre_transform, self._transform = pre_filter, pre_transform, transform
        self._workers = None if workers is None else whole_number("workers", workers, otherwise="None for all cores")
        self._executor, self._cluster, self._progress = executor, cluster, progress
        self._unlabelled = frozenset(unlabelled)
        require_one_place(self._workers, executor, cluster)
        worker_count(self._workers)

    def __repr__(self) -> str:
        """Return the datasets and the folder of their files, in a line."""
        names = ", ".join(self.ids[:3]) + (f", ... ({len(self.ids)} datasets)" if len(self.ids) > 3 else "")
        limit = "" if self.limit is None else f"; limit={self.limit}"
        return f"Loader({names}; root={str(self.root)!r}{limit})"

    def load(self, splits: str | Sequence[str] = CORE_SPLITS) -> Any:
        """Generate missing data, and return the splits.

        Args:
            splits: Splits to build before returning, one or several; ``ood`` means all out-of-distribution ones,
                ``all`` means all. Others are built on first access; ``()`` builds none.

        Returns:
            :class:`Splits` for a single name; ``{name: Splits}`` for a list, group or glob, where a name is an id, or
            ``id:task`` if a task was named.
        """
        loaded = {id_: self._load(id_, splits) for id_ in self.ids}
        return loaded[self.ids[0]] if self._single else loaded

    def _load(self, id_: str, names: str | Sequence[str]) -> Splits:
        card, limit = apply_limit(self._cards[id_], self.limit)
        limits = dict.fromkeys(card.all_splits, limit) if isinstance(limit, int) else limit or {}
        unlabelled = self._unlabelled if card.labellers else frozenset()
        splits = Splits(card, partial(self._open, card, limits), _limits=limits, _unlabelled=unlabelled)
        for name in card.select_splits(names):  # unknown names are refused before any work
            splits[name]
        return splits

    def _open(self, card: Card, limits: Mapping[str, int], split: str, *, labels: bool = True) -> GraphDataset:
        from graphbench.data.batches.dataset import GraphDataset

        limit = limits.get(split)
        if not labels:
            card = card.graphs if card.representation is None else card.graphs.with_representation(card.representation)
        path = ensure_split(
            card,
            split,
            self.root,
            limit,
            workers=self._workers,
            executor=self._executor,
            cluster=self._cluster,
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


def _checked_limit(limit: Any) -> int | dict[str, int] | None:
    if limit is None:
        return None
    if not isinstance(limit, Mapping):
        return whole_number("limit", limit, 1, "None takes every sample, a mapping split -> number limits some splits")
    return {split: whole_number("limit", n, 1, f"leave {split!r} out to take it whole") for split, n in limit.items()}
