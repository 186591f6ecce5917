"""Export recorded outcomes of labels as tables, and import them for other machines and datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import StoreError
from graphbench.data.label_tables import FOLDER, LabelTable, add_to_folder, read_tables, table_head
from graphbench.data.labels import labeller_of
from graphbench.data.layout import dataset_folder, label_folder, library_versions
from graphbench.data.samples import Labeller, Samples
from graphbench.data.shards import stored_samples
from graphbench.data.store import Manifest


def recorded_tables(cards: Iterable[Card], root: Path, splits: Sequence[str] | None = None) -> tuple[LabelTable, ...]:
    """Return the outcomes of all labels of datasets that are on this machine, one table per labeller and effort.

    Args:
        cards: The datasets; of one with tasks, the labels of its task.
        root: Folder of all datasets.
        splits: The splits; None for all that are there.

    Raises:
        StoreError: If no labels of these datasets with recorded outcomes are there.
    """
    found: dict[str, LabelTable] = {}
    addresses = []
    for card in cards:
        addresses.append(card.address)
        for layer in card.layers:
            if labeller_of(layer).recorded is None:
                continue
            for table in _tables_of(layer, dataset_folder(card, root), splits or tuple(card.all_splits)):
                name = table.head.name
                found[name] = found[name].with_rows(table) if name in found else table
    if not found:
        raise StoreError(
            f"{root} holds no labels of {', '.join(addresses)} whose outcomes are recorded; "
            "`graphbench generate` makes them"
        )
    return tuple(found.values())


def _tables_of(card: Card, folder: Path, splits: Sequence[str]) -> Iterable[LabelTable]:
    labeller, own = labeller_of(card), label_folder(card, folder)
    files, graphs = Manifest(own).read()["files"], Manifest(folder).read()["files"]
    for name, facts in files.items():
        split = facts.get("split")
        if split not in splits or name not in graphs:
            continue
        drawn = stored_samples(card.graphs, folder / name)
        rows = {_key(labeller, card, drawn, int(i)): tuple(row) for i, row in facts.get("outcomes", {}).items()}
        yield LabelTable(
            table_head(labeller, labeller.parse(card, split), {"libraries": dict(library_versions())}), rows
        )


def _key(labeller: Labeller, card: Card, graphs: Samples, index: int) -> str:
    assert labeller.recorded is not None
    return labeller.recorded.key(graphs.part(card.graphs, index, index + 1))


def import_tables(path: Path, root: Path) -> list[dict[str, Any]]:
    """Add the tables of a file to those that labels are read from; return labeller, new outcomes and file of each.

    An outcome that is there already stays.

    Raises:
        StoreError: If the file holds no tables, or the folder cannot be written.
    """
    found = []
    for table in read_tables(path):
        place = root / FOLDER / table.head.name
        known = set(read_tables(place)[0].rows) if place.is_file() else set()
        file = add_to_folder(table, root / FOLDER)
        found.append({"labeller": table.head.labeller, "new": len(set(table.rows) - known), "file": str(file)})
    return found
