"""The data that a submission's scores must belong to: fingerprints from cards, hashes from the data on this machine."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.core.errors import GraphBenchError
from graphbench.data.build.generation import ensure_split
from graphbench.data.build.limits import apply_limit
from graphbench.data.components.domain import representation_of
from graphbench.data.components.source_choice import source_with_protocol
from graphbench.data.store.content import represented_hash
from graphbench.data.store.layout import data_fingerprint, dataset_folder, find_file, label_folder, require_data_of
from graphbench.data.store.split_files import hash_of_first
from graphbench.records.files import stored_records
from graphbench.records.record import RunRecord

HERE = "the data here"
KNOWN = "the records of graphbench"


class CanonicalData:
    """The data of datasets as the cards of this version define them.

    Attributes:
        root: Folder of all datasets.
        generate: Whether missing data are generated.
        workers: Processes that generate; None for all cores.
    """

    def __init__(self, root: Path, *, generate: bool = False, workers: int | None = None) -> None:
        self.root, self.generate, self.workers = root, generate, workers

    def card(self, record: RunRecord) -> Card:
        """Return the card of a record's data: its dataset, draw and limit.

        Raises:
            GraphBenchError: If there is no such dataset or draw, or its generator refuses the limit.
        """
        card = card_of(record.dataset).with_data_seed(record.data_seed)
        limit = record.config.get("limit")
        is_number = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
        return apply_limit(card, limit)[0] if is_number else card

    def is_limited(self, card: Card) -> bool:
        """Return whether a limit made the samples of a card smaller than the samples of the dataset."""
        whole = card_of(card.address).with_data_seed(card.data_seed)
        return self.fingerprint(card) != self.fingerprint(whole)

    def fingerprint(self, card: Card) -> str:
        """Return the fingerprint of a card's data."""
        return data_fingerprint(card)

    def is_of_files(self, card: Card, record: RunRecord) -> bool:
        """Return whether a record says that its data were read from files, for which this package has no hashes."""
        return source_with_protocol(card.domain, record.protocol) is not None

    def hash_of(self, card: Card, split: str, count: int) -> tuple[str, str] | None:
        """Return the content hash of the first samples of a split, and its source; None if no source gives it.

        Args:
            card: The card.
            split: Name of the split.
            count: Number of samples, or of stored states of a series.

        Raises:
            GraphBenchError: If the data here are damaged, or cannot be generated.
        """
        if self.generate:
            ensure_split(card, split, self.root, count, workers=self.workers)
        files = self._files(card, split, count)
        if files is None:
            return self._known_hash(card, split, count)
        content_hash, representation = hash_of_first(card, files[0], files[1:], count), representation_of(card)
        return (
            content_hash
            if representation is None
            else represented_hash(content_hash, representation.name, representation.version)
        ), HERE

    def is_here(self, card: Card, split: str, count: int) -> bool:
        """Return whether the first samples of a split, with the labels of the card's task, are on this machine."""
        return self._files(card, split, count) is not None

    def _files(self, card: Card, split: str, count: int) -> list[Path] | None:
        """Return the file of a split's graphs and the files of its labels; None where one is missing."""
        folder = dataset_folder(card, self.root)
        files: list[Path] = []
        for place in (folder, *(label_folder(card, labeller, folder) for labeller in card.labellers)):
            name = find_file(card.stored_name(split), count, place) if place.is_dir() else None
            if name is None:
                return None
            require_data_of(card, place, of_labels=place != folder)
            files.append(place / name)
        return files

    def _known_hash(self, card: Card, split: str, count: int) -> tuple[str, str] | None:
        """Return the hash that the records of the package have of the same data, if they agree on one."""
        fingerprint = self.fingerprint(card)
        hashes = {
            record.data_hashes[split]
            for record in self._known
            if record.data_fingerprint == fingerprint
            and split in record.data_hashes
            and record.graphs_scored.get(split) == count
            and record.dataset == card.address
        }
        return (hashes.pop(), KNOWN) if len(hashes) == 1 else None

    @cached_property
    def _known(self) -> tuple[RunRecord, ...]:
        """The records of the package; none where they cannot be read."""
        try:
            return tuple(record for _, record in stored_records())
        except GraphBenchError:
            return ()
