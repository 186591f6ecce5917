"""Export recorded outcomes of labels as tables, and import them for other machines and datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.core.errors import GraphBenchError, StoreError
from graphbench.core.validation import explain
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.label_tables import (
    FOLDER,
    LabelTable,
    add_to_folder,
    find_tables,
    first_outcome,
    read_tables,
    table_head,
)
from graphbench.data.components.domain import find
from graphbench.data.components.generators import Labeller
from graphbench.data.store.layout import Manifest, dataset_folder, label_folder, library_versions
from graphbench.data.store.shards import stored_samples


def recorded_tables(cards: Iterable[Card], root: Path, splits: Sequence[str] | None = None) -> tuple[LabelTable, ...]:
    """Return the outcomes of all labels of datasets that are on this machine, one table per labeller and effort.

    Args:
        cards: The datasets; for a card of a task, the labels of the task.
        root: Folder of all datasets.
        splits: The splits; None for all splits on this machine.

    Raises:
        StoreError: If this machine has no labels of these datasets with recorded outcomes.
    """
    tables: dict[str, LabelTable] = {}
    addresses = []
    for card in cards:
        addresses.append(card.address)
        for labeller in (find("labeller", name) for name in card.labellers):
            if labeller.recorded is None:
                continue
            for table in _tables_of(card, labeller, dataset_folder(card, root), splits or tuple(card.all_splits)):
                name = table.head.name
                tables[name] = tables[name].with_rows(table) if name in tables else table
    if not tables:
        raise StoreError(
            f"{root} holds no labels of {', '.join(addresses)} whose outcomes are recorded; "
            "`graphbench generate` makes them"
        )
    return tuple(tables.values())


def _tables_of(card: Card, labeller: Labeller, folder: Path, splits: Sequence[str]) -> Iterable[LabelTable]:
    files = Manifest(label_folder(card, labeller.name, folder)).read()["files"]
    graphs = Manifest(folder).read()["files"]
    for name, facts in files.items():
        split = facts.get("split")
        if split not in splits or name not in graphs:
            continue
        drawn = stored_samples(card.graph_schema, folder / name)
        rows = {_key(labeller, card, drawn, int(i)): tuple(row) for i, row in facts.get("outcomes", {}).items()}
        yield LabelTable(
            table_head(labeller, labeller.parse(card, split), {"libraries": dict(library_versions())}), rows
        )


def _key(labeller: Labeller, card: Card, graphs: Samples, index: int) -> str:
    assert labeller.recorded is not None
    return labeller.recorded.key(graphs.part(card.graph_schema, index, index + 1))


def import_tables(path: Path, root: Path) -> list[dict[str, Any]]:
    """Import the tables of a file, so that labels are read from them; return a summary of each table.

    A summary holds ``labeller``, ``new``, the number of new outcomes, ``file``, and ``datasets``, the addresses of the
    datasets that read their labels from the table. An existing outcome stays. All tables are checked before the first
    table is added.

    Raises:
        StoreError: If the file holds no tables, a table is of no labeller with recorded outcomes or of another version,
            an outcome is not possible or gives another label than the existing outcome, or the folder cannot be
            written.
    """
    tables = read_tables(path)
    for table in tables:
        _require_possible(table, path, root)
    summaries = []
    for table in tables:
        target = root / FOLDER / table.head.name
        old_keys = set(read_tables(target)[0].rows) if target.is_file() else set()
        new = len(set(table.rows) - old_keys)
        file, datasets = add_to_folder(table, root / FOLDER), _served(table)
        summaries.append({"labeller": table.head.labeller, "new": new, "file": str(file), "datasets": datasets})
    return summaries


def _require_possible(table: LabelTable, path: Path, root: Path) -> None:
    """Refuse a table that the labeller cannot have written, or that contradicts the existing tables."""
    head, where = table.head, f"{path}, table of {table.head.labeller}"
    try:
        labeller = find("labeller", head.labeller)
        effort = labeller.effort.model_validate(head.effort)
    except ValidationError as error:
        raise StoreError(f"{where}: {explain(error, labeller.effort)}") from error
    except GraphBenchError as error:
        raise StoreError(f"{where}: {error}") from error
    recorded = labeller.recorded
    if recorded is None:
        raise StoreError(f"{where}: no labels of this labeller are recorded")
    if (head.version, head.columns) != (labeller.version, recorded.columns):
        current = f"version {labeller.version} with {', '.join(recorded.columns)}"
        raise StoreError(f"{where}: it is of version {head.version} with {', '.join(head.columns)}, not of {current}")
    tables = find_tables(labeller, effort, root)
    for key, row in table.rows.items():
        outcome = dict(zip(head.columns, row, strict=True))
        if problem := recorded.problem(effort, key, outcome):
            raise StoreError(f"{where}, key {key}: {problem}")
        other = first_outcome(tables, key)
        if other is not None and recorded.label(effort, other) != recorded.label(effort, outcome):
            raise StoreError(
                f"{where}, key {key}: the outcome {outcome} contradicts the recorded one, {other}; the same program "
                "gives both labels, so one is wrong: compute the label again to see which"
            )


def _served(table: LabelTable) -> list[str]:
    """Return the addresses of the datasets with a labeller that reads a table."""
    cards = [card.with_task(task) for card in catalog().cards.values() for task in card.tasks]
    return [card.address for card in cards if any(_reads(card, name, table) for name in card.labellers)]


def _reads(card: Card, name: str, table: LabelTable) -> bool:
    labeller = find("labeller", name)
    if labeller.name != table.head.labeller:
        return False
    return any(table_head(labeller, labeller.parse(card, split)).name == table.head.name for split in card.all_splits)
