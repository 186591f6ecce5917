"""Datasets in the layout of the Open Graph Benchmark: objects of the package ``ogb``, and folders of raw files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.damage import damage_named
from graphbench.core.errors import DataImportError
from graphbench.core.ragged import offsets
from graphbench.core.untrusted import require_regular
from graphbench.imports.dataset import Imported, import_graphs
from graphbench.imports.graphs import RawGraph
from graphbench.imports.options import ImportOptions, settings_of
from graphbench.imports.pyg import USUAL_INPUTS, raw_graphs
from graphbench.imports.tables import opened

_METRICS = {"rocauc": "roc_auc", "ap": "average_precision", "acc": "accuracy", "rmse": "rmse", "mae": "mae"}
_SPLITS = {"train": "train", "valid": "val", "test": "test"}


def from_ogb(name: str, source: Any, *, scheme: str | None = None, **options: Unpack[ImportOptions]) -> Imported:
    """Make a dataset of an object of ``ogb``, or of a folder in the layout of its raw files; nothing is downloaded.

    The splits and the metric are OGB's. A folder has ``raw/edge.csv.gz``, ``raw/num-node-list.csv.gz``,
    ``raw/num-edge-list.csv.gz``, ``raw/graph-label.csv.gz`` or ``raw/node-label.csv.gz``, and may have
    ``raw/node-feat.csv.gz`` and ``raw/edge-feat.csv.gz``; its splits are ``split/<scheme>/train.csv.gz``,
    ``valid.csv.gz`` and ``test.csv.gz``. The files may be unpacked (``.csv``).

    Args:
        name: As for ``from_pyg``.
        source: A ``PygGraphPropPredDataset`` or ``PygNodePropPredDataset``, or the folder.
        scheme: Name of the folder of the splits; may be left out where there is a single one.
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Raises:
        DataImportError: As for ``from_pyg``; or if the folder does not say whether edges have directions.
        ArgumentError: If an argument is unknown.
    """
    if isinstance(source, (str, Path)):
        graphs, numbers = _of_folder(checked_path("source", source), scheme)
        settings = settings_of(options)
        if settings.directed is None:
            raise DataImportError(
                "the raw files of OGB do not say whether edges have directions; say directed=False (--undirected) for "
                "datasets whose inverse edges OGB adds, such as molecules, or directed=True (--directed)"
            )
    else:
        if not hasattr(source, "get_idx_split"):
            raise DataImportError(
                f"from_ogb takes a dataset of ogb or the path of a folder, got {type(source).__name__}"
            )
        graphs = raw_graphs([source[i] for i in range(len(source))], type(source).__name__)
        numbers = {split: np.asarray(source.get_idx_split()[ogb_name]) for ogb_name, split in _SPLITS.items()}
        metric = _METRICS.get(str(getattr(source, "eval_metric", "")))
        settings = settings_of(options, **({} if metric is None else {"metric": metric}))
    return import_graphs(name, _divided(graphs, numbers), settings, USUAL_INPUTS)


def _divided(
    graphs: Sequence[RawGraph], numbers: Mapping[str, NDArray[Any]]
) -> dict[str, list[RawGraph]] | list[RawGraph]:
    """Return split -> its graphs; a single graph, whose nodes are divided, with masks."""
    count = len(graphs) if len(graphs) > 1 else graphs[0].num_nodes
    for split, chosen in numbers.items():
        if chosen.size and (chosen.min() < 0 or chosen.max() >= count):
            raise DataImportError(f"the split {split} has the number {chosen.max()}, and there are {count} samples")
    if len(graphs) > 1:
        return {split: [graphs[i] for i in chosen.reshape(-1)] for split, chosen in numbers.items()}
    (graph,) = graphs
    masks = {f"{split}_mask": np.isin(np.arange(count), chosen) for split, chosen in numbers.items()}
    return [RawGraph(graph.num_nodes, graph.edges, {**graph.values, **masks}, graph.name)]


def _of_folder(folder: Path, scheme: str | None) -> tuple[list[RawGraph], dict[str, NDArray[Any]]]:
    raw = folder / "raw"
    if not raw.is_dir():
        raise DataImportError(f"{folder} has no folder 'raw'; give the folder of one dataset of OGB")
    edges = _numbers(_found(raw, "edge")).astype(np.int64)
    nodes = _numbers(_found(raw, "num-node-list")).astype(np.int64).reshape(-1)
    counts = _numbers(_found(raw, "num-edge-list")).astype(np.int64).reshape(-1)
    if len(nodes) != len(counts) or counts.sum() != len(edges):
        raise DataImportError(
            f"{raw} has {len(nodes)} numbers of nodes, {len(counts)} numbers of edges with the sum {counts.sum()}, and "
            f"{len(edges)} edges; get the files again"
        )
    rows = {
        "node-feat": ("x", offsets(nodes)),
        "edge-feat": ("edge_attr", offsets(counts)),
        "graph-label": ("y", np.arange(len(nodes) + 1)),
        "node-label": ("y", offsets(nodes)),
    }
    tables: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    for stem, (key, ptr) in rows.items():
        path = _found(raw, stem, needed=False)
        if path is not None:
            tables[key] = _numbers(path), ptr
            if len(tables[key][0]) != ptr[-1]:
                raise DataImportError(f"{path} has {len(tables[key][0])} rows, and {ptr[-1]} are needed; get it again")
    first = offsets(counts)
    graphs = []
    for i, count in enumerate(nodes.tolist()):
        values = {key: table[ptr[i] : ptr[i + 1]] for key, (table, ptr) in tables.items()}
        graphs.append(RawGraph(count, edges[first[i] : first[i + 1]].T, values, f"graph {i}"))
    return graphs, _splits(folder / "split", scheme)


def _splits(folder: Path, scheme: str | None) -> dict[str, NDArray[Any]]:
    schemes = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if scheme is None and len(schemes) == 1:
        scheme = schemes[0]
    if scheme not in schemes:
        there = ", ".join(schemes) or "none"
        raise DataImportError(f"the splits of {folder} are {there}, not {scheme!r}; name one with scheme= (--scheme)")
    chosen = {split: _found(folder / str(scheme), ogb_name) for ogb_name, split in _SPLITS.items()}
    return {split: _numbers(path).astype(np.int64).reshape(-1) for split, path in chosen.items()}


def _found(folder: Path, stem: str, needed: bool = True) -> Any:
    for ending in (".csv.gz", ".csv"):
        if (folder / f"{stem}{ending}").is_file():
            return folder / f"{stem}{ending}"
    if needed:
        raise DataImportError(f"{folder} has no {stem}.csv.gz; give the folder of one dataset of OGB")
    return None


def _numbers(path: Path) -> NDArray[Any]:
    """Return the numbers in a file without headings, ``[rows, columns]``, nan where missing; int64 if all are whole."""
    with damage_named(path, DataImportError):
        require_regular(path)
        with opened(path) as file:
            rows = [row for row in csv.reader(file) if row]
        table = np.array([[np.nan if cell.strip() in ("", "nan") else float(cell) for cell in row] for row in rows])
    whole = not np.isnan(table).any() and bool((table == np.floor(table)).all()) and "." not in "".join(rows[0] or [])
    return table.astype(np.int64) if whole else table
