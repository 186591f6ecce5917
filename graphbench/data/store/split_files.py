"""The files of an open split: one file of graphs, and one file of labels for every labeller of the task."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import StoreError
from graphbench.core.words import first_of
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.texts import stored_names_of
from graphbench.data.store.content import first_graphs_hash, labelled_hash
from graphbench.data.store.files import map_arrays
from graphbench.data.store.labels import has_edge_labels
from graphbench.data.store.layout import MANIFEST, Manifest, find_file, label_folder, require_data_of
from graphbench.data.store.shards import arrays_of_split

_LOG = logging.getLogger(__name__)
_NAMED = 5  # graphs that a message names

Arrays = dict[str, NDArray[Any]]


def find_labels(card: Card, split: str, path: Path, limit: int | None) -> tuple[Path, ...]:
    """Return the files with the labels of a split's first graphs, one per labeller of the task.

    Raises:
        StoreError: If labels are missing.
    """
    require_data_of(card, path.parent)
    if not card.labellers:
        return ()
    count = _count(arrays_of_split(card.graph_schema, path), limit)
    return tuple(_find_labels(card, labeller, split, path, count) for labeller in card.labellers)


def _find_labels(card: Card, labeller: str, split: str, path: Path, count: int) -> Path:
    folder = label_folder(card, labeller, path.parent)
    require_data_of(card, folder, of_labels=True)
    name = find_file(card.stored_name(split), count, folder)
    if name is None:
        raise StoreError(
            f"{folder} lacks the labels of the first {count:,} graphs of {split}; "
            f"`graphbench generate {card.address}` makes them, or use fewer with limit"
        )
    return folder / name


def split_arrays(card: Card, path: Path, label_paths: Sequence[Path], limit: int | None) -> tuple[int, Arrays]:
    """Return the number of graphs used, and all arrays, memory-mapped.

    Raises:
        StoreError: If an array is missing, or the labels belong to other graphs.
    """
    arrays = arrays_of_split(card.graph_schema, path)
    count = _count(arrays, limit)
    joined = dict(arrays)
    for labeller, label_path in zip(card.labellers, label_paths, strict=True):
        schema = card.label_schemas[labeller]
        labels = arrays_of_split(schema, label_path)
        shared = ("node_ptr", "edge_ptr") if has_edge_labels(schema) else ("node_ptr",)
        if not all(np.array_equal(labels[name][: count + 1], arrays[name][: count + 1]) for name in shared):
            raise StoreError(
                f"{label_path} has the labels of other graphs than {path}; delete it and it will be rebuilt"
            )
        for feature in schema.features:
            for name in stored_names_of(feature):
                joined[name] = labels[name][_rows_of(feature, name, count)]
    return count, joined


def hash_of_first(card: Card, path: Path, label_paths: Sequence[Path], count: int) -> str:
    """Return the content hash of the first graphs of a split, including labels that are in separate files.

    The files are compared with the checksums and hashes of their manifests, see :meth:`~.store.Manifest.check`.

    Raises:
        ChecksumMismatch: If a file was changed or damaged since it was built.
        StoreError: If a file is not recorded in its manifest, or the manifest describes other data.
    """
    require_data_of(card, path.parent)
    content = _hash_of_first(card.graph_schema, path, count)
    for labeller, label_path in zip(card.labellers, label_paths, strict=True):
        require_data_of(card, label_path.parent, of_labels=True)
        content = labelled_hash(content, _hash_of_first(card.label_schemas[labeller], label_path, count))
    return content


def check_files(paths: Iterable[Path]) -> None:
    """Compare files with the checksums of their manifests.

    Raises:
        ChecksumMismatch: If a file was changed or damaged since it was built.
        StoreError: If a file is not recorded in its manifest.
    """
    for path in paths:
        Manifest(path.parent).check(path.name)


def warn_unlabelled(card: Card, split: str, label_paths: Sequence[Path], failed: NDArray[np.int64]) -> None:
    """Log a warning that some graphs have no label, because a labeller failed on them."""
    if len(failed):
        _LOG.warning(
            "%d graphs of %s %s have no label, as the labeller failed on them: %s; %s says why",
            len(failed),
            card.address,
            split,
            first_numbers(failed),
            " or ".join(str(path.parent / MANIFEST) for path in label_paths),
        )


def first_numbers(graphs: NDArray[np.int64]) -> str:
    """Return the first few numbers of graphs as text, e.g. ``3, 17, ...``."""
    return first_of(graphs.tolist(), _NAMED)


def _rows_of(feature: Feature, name: str, count: int) -> slice:
    """Return the rows of an array of labels that belong to the first graphs; a file may hold labels of more graphs."""
    if feature.location is not Location.GRAPH:
        return slice(None)
    if feature.kind is Kind.TEXT:  # the characters of all texts, and one offset more than there are texts
        return slice(None) if name == feature.name else slice(count + 1)
    return slice(count)


def _count(arrays: Arrays, limit: int | None) -> int:
    count = len(arrays["node_ptr"]) - 1
    return count if limit is None else min(limit, count)


def _hash_of_first(schema: Schema, path: Path, count: int) -> str:
    arrays = map_arrays(path)
    if count < _count(arrays, None):
        Manifest(path.parent).check(path.name)
        return first_graphs_hash(schema, arrays, count)
    return str(Manifest(path.parent).check(path.name, content=_stored_hash)["content"])


def _stored_hash(path: Path) -> str:
    return samples_hash(map_arrays(path))
