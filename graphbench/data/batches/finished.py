"""Splits that lie on this machine already, for callers that must not generate any."""

from __future__ import annotations

from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.core.files import default_root
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.store.layout import dataset_folder, find_file, label_folder


def finished_split(card: Card, split: str, root: str | Path | None = None) -> GraphDataset | None:
    """Return a whole split with the labels of the card's task; None if a file of it is not on this machine.

    Args:
        card: The card.
        split: Name of the split.
        root: Folder of the datasets; None for the default one.

    Raises:
        StoreError: If a file was made by other code or cannot be read.
    """
    data_root = default_root() if root is None else Path(root).expanduser()
    count = card.split(split).count
    folder = dataset_folder(card, data_root)
    name = find_file(split, count, folder)
    if name is None or not all(
        find_file(split, count, label_folder(card, labeller, folder)) for labeller in card.labellers
    ):
        return None
    return GraphDataset(card, split, folder / name)
