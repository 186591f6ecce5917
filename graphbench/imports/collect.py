"""Graphs of all splits as flat arrays with typed features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.schema import Schema
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.imports.column_types import typed_features_of
from graphbench.imports.edges import is_symmetric, never_reversed, stored_graph
from graphbench.imports.graphs import Array, Column, RawGraph


@dataclass
class Collected:
    """Graphs of all splits as flat arrays, and what was found out about them.

    Attributes:
        features: The features, inputs first.
        classes: Feature -> the names of its classes, for columns of texts that name classes.
        directed: Whether edges are arcs.
        samples: Split -> its graphs.
        notes: What the user should know, one sentence each.
    """

    features: tuple[Feature, ...]
    classes: dict[str, list[str]]
    directed: bool
    samples: dict[str, Samples]
    notes: list[str]

    @property
    def schema(self) -> Schema:
        """The schema of the samples."""
        return Schema(self.features, self.directed)


def collect(
    parts: Mapping[str, Sequence[RawGraph]],
    columns: Sequence[Column],
    *,
    directed: bool | None = None,
    repair: bool = False,
) -> Collected:
    """Return the graphs of all splits as flat arrays with typed features.

    Types are found from the values of all splits together: booleans are masks, whole numbers from 0 on are classes if
    there are at most :data:`~graphbench.imports.column_types.MOST_CLASSES`, everything else are numbers.

    Args:
        parts: Split -> its graphs.
        columns: The columns that become features.
        directed: Whether edges are arcs; None finds it out: graphs are undirected if every arc has its reverse, with
            equal values.
        repair: Whether to drop loops of undirected graphs and repeated edges; otherwise they are errors.

    Raises:
        DataImportError: If an array has a wrong shape, a value is not finite, an edge names a node that is not there,
            is repeated or is a loop of an undirected graph, or the directions of an undirected edge differ.
    """
    notes: list[str] = []
    graphs = [graph for part in parts.values() for graph in part]
    _check(graphs, columns)
    if directed is None:
        one_way = next((graph for graph in graphs if not is_symmetric(graph, columns)), None)
        directed = one_way is not None
        if one_way is not None:
            why = (
                "no edge has its reverse"
                if never_reversed(graphs)
                else (f"{one_way.name} has edges without their reverse, or with other values in the two directions")
            )
            notes.append(
                f"{why}, so all edges are taken as arcs; if edges have no direction, say directed=False (--undirected)"
            )
    stored = [stored_graph(graph, columns, directed, repair) for graph in graphs]
    dropped = sum(one.dropped for one in stored)
    if dropped:
        notes.append(f"{counted(dropped, 'loop or repeated edge', 'loops and repeated edges')} were dropped")
    differing = sum(one.differing for one in stored)
    if differing:
        notes.append(
            f"{counted(differing, 'edge')} had several values, such as one per direction; the first one was kept"
        )
    features, arrays, classes = typed_features_of([one.graph for one in stored], columns, notes)
    samples, first = {}, 0
    for split, part in parts.items():
        samples[split] = _samples([one.graph for one in stored[first : first + len(part)]], features, arrays, first)
        first += len(part)
    return Collected(tuple(features), classes, directed, samples, notes)


def _check(graphs: Iterable[RawGraph], columns: Sequence[Column]) -> None:
    for graph in graphs:
        edges, nodes = graph.edges, graph.num_nodes
        if nodes < 1:
            raise DataImportError(f"{graph.name} has {nodes} nodes; leave graphs without nodes out")
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise DataImportError(f"{graph.name} has edges of shape {list(edges.shape)}; give [2, edges]")
        outside = np.flatnonzero(((edges < 0) | (edges >= nodes)).any(axis=0))
        if outside.size:
            u, v = edges[:, outside[0]]
            raise DataImportError(
                f"{graph.name} has the edge {u}-{v}, but {nodes} nodes; nodes count from 0 in every graph, and "
                "num_nodes covers all of them"
            )
        for column in columns:
            values = graph.values.get(column.name)
            if values is None:
                raise DataImportError(
                    f"{graph.name} has no {column.name!r} at its {column.location}s, as other graphs have; give it to "
                    "all graphs, or leave it out"
                )
            rows = {Location.NODE: nodes, Location.EDGE: edges.shape[1], Location.GRAPH: 1}[column.location]
            if len(values) != rows:
                raise DataImportError(
                    f"{graph.name} has {len(values)} rows of {column.name!r} and {counted(rows, column.location)}; "
                    f"give one row per {column.location}"
                )
            if values.dtype.kind == "f" and column.stage is not Stage.OUTPUT and not np.isfinite(values).all():
                raise DataImportError(
                    f"{graph.name} has values of {column.name!r} that are not finite; replace them, and say which ones "
                    "in a column of their own if they matter"
                )


def _samples(
    graphs: Sequence[RawGraph], features: Sequence[Feature], arrays: Mapping[str, Sequence[Array]], first: int
) -> Samples:
    values: dict[str, Any] = {}
    for feature in features:
        feature_arrays = arrays[feature.name][first : first + len(graphs)]
        if feature.kind is Kind.TEXT:
            values[feature.name] = Texts.of([str(text) for array in feature_arrays for text in array])
        else:
            values[feature.name] = np.concatenate(feature_arrays)
    return Samples(
        np.array([graph.num_nodes for graph in graphs], np.int64),
        np.array([graph.edges.shape[1] for graph in graphs], np.int64),
        np.concatenate([graph.edges.T for graph in graphs]).astype(np.int64),
        values,
    )
