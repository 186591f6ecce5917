"""Graphs as they come from elsewhere, and their named arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location, Stage

Array = NDArray[Any]

RENAMED = {"x": "node_features", "edge_attr": "edge_features", "y": "target", "pos": "position"}
"""Names of PyG that are not names of features -> the name of the feature."""


@dataclass(frozen=True)
class RawGraph:
    """One graph from elsewhere.

    Attributes:
        num_nodes: Number of nodes.
        edges: int64 ``[2, E]``, arcs from the first to the second row; an undirected edge may be given in one or in
            both directions.
        values: Name -> an array with a row per node, per column of ``edges``, or a single row for the graph.
        name: How messages name the graph.
    """

    num_nodes: int
    edges: NDArray[np.int64]
    values: Mapping[str, Array] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Column:
    """One named array of all graphs.

    Attributes:
        name: Its name in the source, such as ``x``.
        location: Whether it has a row per node, edge or graph.
        stage: ``input`` or ``output``; ``meta`` for columns that models do not read.
        type_name: The type that the user asks for, as cards write it; None finds it from the values.
    """

    name: str
    location: Location
    stage: Stage
    type_name: str | None = None


def feature_name(name: str) -> str:
    """Return the name of the feature of a column; characters that identifiers lack become underscores."""
    renamed = RENAMED.get(name, name)
    cleaned = "".join(letter if letter.isalnum() else "_" for letter in renamed)
    cleaned = cleaned if cleaned[:1].isalpha() or cleaned[:1] == "_" else f"f_{cleaned}"
    reserved = "index" in cleaned or "batch" in cleaned or cleaned in ("face", "ptr", "edges", "num_nodes")
    return f"{cleaned.replace('index', 'number').replace('batch', 'group')}_value" if reserved else cleaned
