"""Samples as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.catalog.schema import Schema
from graphbench.core.ragged import offsets
from graphbench.data.arrays.texts import stored_arrays, take_rows
from graphbench.data.arrays.trajectories import Trajectories

Array = NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """Consecutive graphs as flat arrays: each array holds the rows of one graph after the other.

    Attributes:
        num_nodes: int64 ``[S]``, nodes per graph.
        num_edges: int64 ``[S]``, stored edges per graph: every undirected edge once, every arc once.
        edges: integer ``[E, 2]``, node ids local to the graph; ``u < v`` where undirected, sorted by (u, v).
        values: One array per feature of the card, with one row per node, stored edge or graph: ``[rows]``, or
            ``[rows, d]`` for ``scalar(d)``. An edge feature of undirected graphs may have one value per direction:
            ``[rows, 2]``, or ``[rows, 2, d]`` for ``scalar(d)``, with ``[:, 0]`` for u -> v and ``[:, 1]`` back.
            Texts are ``graphbench.data.arrays.texts.Texts``. Hints are not among the values.
        hints: The hints over time, for cards with hints.
        facts: Facts for the manifest, e.g. CPU seconds; they are not part of the data.

    Complete graphs (``complete: true`` on the card) store no edges: ``edges`` is empty, ``num_edges`` is the square of
    ``num_nodes``, and row ``u * n + v`` of an edge feature is the pair (u, v).
    """

    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: Array
    values: Mapping[str, Any] = field(default_factory=dict)
    hints: Trajectories | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.num_nodes)

    @cached_property
    def node_ptr(self) -> NDArray[np.int64]:
        """int64 ``[S + 1]``: the nodes of graph ``i`` are rows ``node_ptr[i]:node_ptr[i + 1]``."""
        return offsets(self.num_nodes)

    @cached_property
    def edge_ptr(self) -> NDArray[np.int64]:
        """int64 ``[S + 1]``: the stored edges of graph ``i`` are rows ``edge_ptr[i]:edge_ptr[i + 1]``."""
        return offsets(self.num_edges)

    def rows(self, location: Location, first: int, last: int) -> slice:
        """Return the rows that hold graphs ``first`` to ``last - 1`` at a location."""
        if location is Location.GRAPH:
            return slice(first, last)
        ptr = self.node_ptr if location is Location.NODE else self.edge_ptr
        return slice(int(ptr[first]), int(ptr[last]))

    def part(self, schema: Schema, first: int, last: int) -> Samples:
        """Return graphs ``first`` to ``last - 1``, as views."""
        values = {f.name: self.values[f.name][self.rows(f.location, first, last)] for f in schema.stored_features}
        edges = self.edges[self.rows(Location.EDGE, first, last)]
        hints = None if self.hints is None else self.hints.take(np.arange(first, last))
        return Samples(self.num_nodes[first:last], self.num_edges[first:last], edges, values, hints)

    def take(self, schema: Schema, indices: NDArray[np.int64]) -> Samples:
        """Return graphs in any order, as copies."""
        nodes, edges = self.num_nodes[indices], self.num_edges[indices]
        first = {Location.NODE: self.node_ptr[indices], Location.EDGE: self.edge_ptr[indices], Location.GRAPH: indices}
        ptr = {
            Location.NODE: offsets(nodes),
            Location.EDGE: offsets(edges),
            Location.GRAPH: np.arange(len(indices) + 1),
        }

        def taken(value: Any, at: Location) -> Any:
            return take_rows(value, first[at], ptr[at])

        values = {
            f.name: taken(self.values[f.name], f.location) for f in schema.stored_features if f.name in self.values
        }
        stored = taken(self.edges, Location.EDGE) if schema.lists_edges else self.edges
        hints = None if self.hints is None else self.hints.take(indices)
        return Samples(nodes, edges, stored, values, hints)

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name: hints are ``hint.<name>``; a text is the arrays ``<name>`` and ``<name>.ptr``."""
        value_arrays = stored_arrays(self.values)
        shared = {"num_nodes": self.num_nodes, "num_edges": self.num_edges, "edges": self.edges, **value_arrays}
        return shared if self.hints is None else {**shared, **self.hints.arrays()}
