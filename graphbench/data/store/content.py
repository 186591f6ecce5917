"""Content hashes of graphs of a split, independent of the file that contains them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import GraphBenchError
from graphbench.core.ragged import pointer_dtype, smallest_integer
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.texts import POINTER, stored_value
from graphbench.data.arrays.trajectories import HintLayout
from graphbench.data.store.shards import stored_trajectories

Array = NDArray[Any]

_NODE_IDS = (Kind.POINTER, Kind.PERMUTATION)


def first_graphs_hash(schema: Schema, arrays: Mapping[str, Array], count: int) -> str:
    """Return the content hash that a file of the first ``count`` graphs of a longer file has."""
    node_ptr, edge_ptr = arrays["node_ptr"][: count + 1], arrays["edge_ptr"][: count + 1]
    rows = {Location.NODE: int(node_ptr[-1]), Location.EDGE: int(edge_ptr[-1]), Location.GRAPH: count}
    nodes = int(np.diff(node_ptr).max(initial=1))
    ids = smallest_integer(nodes - 1)
    chosen = {
        "node_ptr": _smallest_pointer(node_ptr),
        "edge_ptr": _smallest_pointer(edge_ptr),
        "edges": arrays["edges"][: rows[Location.EDGE] if schema.lists_edges else 0].astype(ids, copy=False),
    }
    for feature in schema.stored_features:
        if feature.kind is Kind.TEXT:
            texts = stored_value(feature, arrays)[: rows[feature.location]]
            chosen |= {feature.name: texts.content, feature.name + POINTER: _smallest_pointer(texts.ptr)}
            continue
        values = arrays[feature.name][: rows[feature.location]]
        chosen[feature.name] = values.astype(ids, copy=False) if feature.kind in _NODE_IDS else values
    hints = stored_trajectories(arrays)
    if hints is not None:
        hint_arrays = hints.take(np.arange(count)).compact(HintLayout(schema.hints, nodes)).arrays()
        chosen |= {name: _smallest_pointer(a) if name.endswith("ptr") else a for name, a in hint_arrays.items()}
    return samples_hash(chosen)


def labelled_hash(graphs: str, labels: str) -> str:
    """Return the hash of graphs and labels that are in separate files, from the hashes of both."""
    return hashlib.sha256(f"labelled|{graphs}|{labels}".encode()).hexdigest()


def represented_hash(stored: str, representation: str, version: int | str) -> str:
    """Return the hash of samples that are derived from stored graphs, from the hash of the stored graphs.

    Args:
        stored: The hash of the stored graphs.
        representation: Name of the graph representation, or of another rule that derives samples.
        version: Version of the rule.
    """
    return hashlib.sha256(f"view|{representation}|{version}|{stored}".encode()).hexdigest()


def selection_hash(first_graphs: str, numbers: Array) -> str:
    """Return the hash of selected graphs, from their numbers and the hash of graphs 0 to the largest number."""
    digest = hashlib.sha256(f"selection|{first_graphs}|".encode())
    digest.update(np.ascontiguousarray(numbers, "<i8").data)
    return digest.hexdigest()


def objects_hash(graphs: Iterable[Any]) -> str:
    """Return the hash of PyG ``Data`` objects held in memory.

    Raises:
        GraphBenchError: If a graph has a field that is no tensor, array, number, string, or list of these.
    """
    digest = hashlib.sha256(b"objects|")
    for graph in graphs:
        for name, value in sorted(graph.to_dict().items()):
            digest.update(f"{name}|".encode())
            _add_value(digest, name, value)
        digest.update(b"end|")
    return digest.hexdigest()


def _add_value(digest: Any, name: str, value: Any) -> None:
    torch = sys.modules.get("torch")  # a tensor exists only where torch was imported
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().to_dense() if value.layout != torch.strided else value.detach()
        value = value.float().cpu().numpy() if value.dtype == torch.bfloat16 else value.cpu().numpy()
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        digest.update(samples_hash({"": np.asarray(value)}).encode())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        digest.update(f"{len(value)} items|".encode())
        for item in value:
            _add_value(digest, name, item)
    elif value is None or isinstance(value, str | int | float):
        digest.update(f"{value!r}|".encode())
    else:
        raise GraphBenchError(
            f"the field {name!r} that pre_transform leaves is a {type(value).__name__}, whose content cannot be "
            "compared between runs; leave tensors, numbers or strings"
        )


def _smallest_pointer(pointer: Array) -> Array:
    return pointer.astype(pointer_dtype(int(pointer[-1])), copy=False)
