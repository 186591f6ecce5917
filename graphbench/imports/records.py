"""Datasets of records: rows of Hugging Face's graph datasets, and a folder with ``dataset.pt`` and ``splits.csv``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.damage import damage_named
from graphbench.core.errors import DataImportError, MissingDependency
from graphbench.core.untrusted import require_regular
from graphbench.core.words import counted
from graphbench.imports.dataset import Imported, import_graphs
from graphbench.imports.graphs import RawGraph
from graphbench.imports.options import ImportOptions, settings_of
from graphbench.imports.pyg import USUAL_INPUTS, array_of, raw_graphs
from graphbench.imports.splits import usual_split
from graphbench.imports.tables import read_table

_STRUCTURE = ("edge_index", "num_nodes")
_RENAMED = {"node_feat": "x", "edge_feat": "edge_attr", "labels": "y", "label": "y"}


def from_hf(name: str, source: Any, **options: Unpack[ImportOptions]) -> Imported:
    """Make a dataset of a graph dataset of Hugging Face; nothing is downloaded.

    A row is a graph: ``edge_index`` ([2, edges]), ``num_nodes``, and any of ``node_feat``, ``edge_attr`` and ``y``.

    Args:
        name: As for ``from_pyg``.
        source: A ``DatasetDict`` with splits, a ``Dataset``, a list of rows, a mapping split -> rows, or the folder
            that ``save_to_disk`` wrote (this needs the package ``datasets``).
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Raises:
        DataImportError: As for ``from_pyg``.
        MissingDependency: If a folder is given and the package ``datasets`` is absent.
        ArgumentError: If an argument is unknown.
    """
    settings = settings_of(options)
    rows = _loaded(checked_path("source", source)) if isinstance(source, (str, Path)) else source
    if isinstance(rows, Mapping):
        given = {usual_split(str(split)): _of_rows(part, str(split)) for split, part in rows.items()}
        return import_graphs(name, given, settings, USUAL_INPUTS)
    return import_graphs(name, _of_rows(rows, "row"), settings, USUAL_INPUTS)


def _loaded(folder: Path) -> Any:
    try:
        from datasets import load_from_disk
    except ImportError as error:
        raise MissingDependency("a folder of Hugging Face needs the package datasets: pip install datasets") from error
    if not folder.is_dir():
        raise DataImportError(f"{folder} is no folder; give the folder that save_to_disk wrote")
    with damage_named(folder, DataImportError, "write it again with save_to_disk"):
        return load_from_disk(str(folder))


def _of_rows(rows: Iterable[Any], where: str) -> list[RawGraph]:
    return [_of_row(row, f"{where}[{i}]") for i, row in enumerate(rows)]


def _of_row(row: Any, where: str) -> RawGraph:
    if not isinstance(row, Mapping) or "edge_index" not in row:
        raise DataImportError(f"{where} has no edge_index; a row is a mapping with edge_index and num_nodes")
    edges = np.asarray(row["edge_index"], np.int64).reshape(2, -1)
    values: dict[str, NDArray[Any]] = {}
    for key, value in row.items():
        array = None if key in _STRUCTURE or value is None else array_of(value, f"{where}.{key}")
        if array is not None:
            values[_RENAMED.get(str(key), str(key))] = array
    count = row.get("num_nodes")
    if count is None:
        count = len(values["x"]) if "x" in values else int(edges.max(initial=-1)) + 1
    return RawGraph(int(count), edges, _of_graphs(values, int(count), edges.shape[1]), where)


def _of_graphs(values: dict[str, NDArray[Any]], nodes: int, edges: int) -> dict[str, NDArray[Any]]:
    """Return the values, a list of several labels of the graph as one row."""
    label = values.get("y")
    if label is not None and label.ndim == 1 and len(label) not in (1, nodes, edges):
        values["y"] = label[np.newaxis]
    return values


def from_folder(name: str, source: str | Path, **options: Unpack[ImportOptions]) -> Imported:
    """Make a dataset of a folder with ``dataset.pt`` and, where the splits are given, ``splits.csv``.

    ``dataset.pt`` is a list of PyG ``Data`` objects, or of dictionaries of tensors with the same keys, that
    ``torch.save`` wrote. It is read without running code (``weights_only=True``). ``splits.csv`` has the columns
    ``number`` (of the object in the list, from 0) and ``split``.

    Args:
        name: As for ``from_pyg``.
        source: The folder.
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Raises:
        DataImportError: As for ``from_pyg``; or if the file holds anything but tensors and PyG objects.
        ArgumentError: If an argument is unknown.
    """
    place, settings = checked_path("source", source), settings_of(options)
    path = place / "dataset.pt"
    if not path.is_file():
        raise DataImportError(f"{place} has no dataset.pt; write torch.save(list_of_data, {str(path)!r})")
    graphs = _of_objects(_read_objects(path))
    table = place / "splits.csv"
    given = _by_split(graphs, table) if table.is_file() else graphs
    return import_graphs(name, given, settings, USUAL_INPUTS)


def _read_objects(path: Path) -> list[Any]:
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

    safe = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, NodeStorage, EdgeStorage]
    with damage_named(path, DataImportError, "save a list of Data objects, or of dictionaries of tensors"):
        require_regular(path)
        with torch.serialization.safe_globals(safe):
            objects = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(objects, (list, tuple)):
        raise DataImportError(f"{path} holds a {type(objects).__name__}; save a list of graphs")
    return list(objects)


def _of_objects(objects: list[Any]) -> list[RawGraph]:
    converted_graphs = []
    for i, item in enumerate(objects):
        if isinstance(item, Mapping) and not hasattr(item, "to_dict"):
            converted_graphs.append(_of_row(item, f"graph {i}"))
        else:
            converted_graphs += raw_graphs([item], f"graph {i} of the list, item")
    return converted_graphs


def _by_split(graphs: list[RawGraph], path: Path) -> dict[str, list[RawGraph]]:
    table = read_table(path)
    for name in ("number", "split"):
        if name not in table.columns:
            raise DataImportError(
                f"{path} has no column {name!r}; it needs 'number' (of the graph in dataset.pt, from 0) and 'split'"
            )
    numbers, splits = table.columns["number"], table.columns["split"]
    parts: dict[str, list[RawGraph]] = {}
    seen = set()
    for line, (number, split) in enumerate(zip(numbers, splits, strict=True), start=2):
        if not number.isdigit() or int(number) >= len(graphs):
            raise DataImportError(f"{path} has the number {number!r} in line {line}; the list has {len(graphs)} graphs")
        if int(number) in seen:
            raise DataImportError(f"{path} has the number {number} twice; a graph is in one split")
        seen.add(int(number))
        parts.setdefault(usual_split(split), []).append(graphs[int(number)])
    if len(seen) < len(graphs):
        lacking = next(i for i in range(len(graphs)) if i not in seen)
        raise DataImportError(
            f"{path} names {counted(len(seen), 'graph')} of {len(graphs):,} (graph {lacking} is missing; they count "
            "from 0); name every graph, or leave the others out of dataset.pt"
        )
    return parts
