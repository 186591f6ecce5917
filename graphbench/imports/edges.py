"""Edges of graphs from elsewhere as they are stored: sorted, once each, with their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.imports.graphs import Array, Column, RawGraph


def is_symmetric(graph: RawGraph, columns: Sequence[Column]) -> bool:
    """Return whether every arc has its reverse, with equal values; loops have no direction."""
    u, v = graph.edges
    forward, backward = np.lexsort((v, u)), np.lexsort((u, v))
    if not (np.array_equal(u[forward], v[backward]) and np.array_equal(v[forward], u[backward])):
        return False
    at_edges = [graph.values[column.name] for column in columns if column.location is Location.EDGE]
    return all(
        np.array_equal(values[forward], values[backward], equal_nan=values.dtype.kind == "f") for values in at_edges
    )


def never_reversed(graphs: Iterable[RawGraph]) -> bool:
    """Return whether there are edges, and none has its reverse."""
    seen = False
    for graph in graphs:
        u, v = graph.edges
        pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)
        if pairs.shape[1] < np.unique(graph.edges, axis=1).shape[1]:
            return False
        seen = seen or bool(u.size)
    return seen


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A graph as it is stored.

    Attributes:
        graph: The graph; its edges are sorted and stored once, ``u < v`` where undirected.
        dropped: Number of loops and repeated edges that were dropped.
        differing: Number of edges of which one of several values was kept.
    """

    graph: RawGraph
    dropped: int
    differing: int


def stored_graph(graph: RawGraph, columns: Sequence[Column], directed: bool, repair: bool) -> StoredGraph:
    """Return a graph with its edges as they are stored; the first of several values of an edge is kept.

    Args:
        graph: The graph, with valid edges.
        columns: The columns, of which those at edges are compared.
        directed: Whether edges are arcs.
        repair: Whether to drop loops of undirected graphs and repeated edges; otherwise they are errors.

    Raises:
        DataImportError: If an undirected graph has a loop or two values for the directions of an edge, or an edge is
            repeated, and ``repair`` is not set.
    """
    u, v = graph.edges
    kept = np.arange(u.size)
    loops = np.zeros(0, np.int64)
    if not directed:
        loops = np.flatnonzero(u == v)
        kept = np.flatnonzero(u != v)
        u, v = np.minimum(u, v), np.maximum(u, v)
    if loops.size and not repair:
        node = graph.edges[0, loops[0]]
        raise DataImportError(
            f"{graph.name} has {counted(loops.size, 'loop')}, the first at node {node}; undirected graphs have none "
            "here: remove them, or say repair=True (--repair), which drops loops and repeated edges"
        )
    order = kept[np.lexsort((v[kept], u[kept]))]
    first = np.ones(order.size, bool)
    first[1:] = (u[order][1:] != u[order][:-1]) | (v[order][1:] != v[order][:-1])
    group = np.cumsum(first) - 1
    chosen = order[first]
    times = np.bincount(group, minlength=chosen.size)
    differing = _differing(graph, columns, order, chosen[group] if order.size else order)
    if differing and not directed and not repair:
        name, arc = differing[0]
        a, b = graph.edges[:, arc]
        raise DataImportError(
            f"{graph.name} has two values of {name!r} for the edge {a}-{b}, one per direction; say directed=True "
            "(--directed), or give both directions the same value"
        )
    twice = _repeated(graph.edges[:, order], group, times, directed)
    if twice.size and not repair:
        a, b = u[chosen[twice[0]]], v[chosen[twice[0]]]
        raise DataImportError(
            f"{graph.name} lists the edge {a}-{b} several times, and {counted(twice.size, 'edge')} in all are "
            "repeated; list every edge once, or say repair=True (--repair), which keeps the first of each"
        )
    at_edges = {column.name for column in columns if column.location is Location.EDGE}
    values = {name: array[chosen] if name in at_edges else array for name, array in graph.values.items()}
    directions = 1 if directed else 2
    dropped = loops.size + int(np.maximum(times - directions, 0).sum())
    kept_graph = RawGraph(graph.num_nodes, np.stack([u[chosen], v[chosen]]), values, graph.name)
    return StoredGraph(kept_graph, dropped, len({tuple(sorted(graph.edges[:, arc].tolist())) for _, arc in differing}))


def _repeated(edges: Array, group: Array, times: Array, directed: bool) -> NDArray[np.int64]:
    """Return the groups of edges that list an arc twice.

    Args:
        edges: ``[2, E]``, the arcs as they were given, in the order of the groups.
        group: ``[E]``, the stored edge of every arc.
        times: Stored edge -> number of its arcs.
        directed: Whether edges are arcs.
    """
    if directed:
        return np.flatnonzero(times > 1)
    forward = np.bincount(group, weights=edges[0] < edges[1], minlength=times.size)
    return np.flatnonzero((forward > 1) | (times - forward > 1))


def _differing(graph: RawGraph, columns: Sequence[Column], order: Array, first: Array) -> list[tuple[str, int]]:
    """Return (column, arc) of every arc whose value differs from that of the first arc of its stored edge.

    Args:
        graph: The graph.
        columns: The columns.
        order: ``[E]``, the arcs by their stored edge.
        first: ``[E]``, the first arc of the stored edge of each.
    """
    arcs: list[tuple[str, int]] = []
    for column in columns:
        if column.location is Location.EDGE:
            values = graph.values[column.name]
            other = values[order] != values[first]
            if values.dtype.kind == "f":
                other &= ~(np.isnan(values[order]) & np.isnan(values[first]))
            wrong = np.flatnonzero(other.any(axis=tuple(range(1, other.ndim))) if other.ndim > 1 else other)
            arcs += [(column.name, int(arc)) for arc in order[wrong]]
    return arcs
