"""Graphs as they come from elsewhere, and their features: what a card says about them, and their flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.schema import Schema
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts

Array = NDArray[Any]
MOST_CLASSES = 256
"""Most classes of a column of whole numbers that is read as classes; columns with more are numbers."""

_USUAL_CLASSES = 20  # a target with more classes, some of which never occur, may be an amount
_MOST_ROUNDED = 0.9  # share of different numbers that stay different as float32
_MOST_COLUMNS_OF_CLASSES = 32
_MISSING = -1  # the stored value of a missing class or mask


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


RENAMED = {"x": "node_features", "edge_attr": "edge_features", "y": "target", "pos": "position"}
"""Names of PyG that are not names of features -> the name of the feature."""


def feature_name(name: str) -> str:
    """Return the name of the feature of a column; characters that identifiers lack become underscores."""
    renamed = RENAMED.get(name, name)
    cleaned = "".join(letter if letter.isalnum() else "_" for letter in renamed)
    cleaned = cleaned if cleaned[:1].isalpha() or cleaned[:1] == "_" else f"f_{cleaned}"
    reserved = "index" in cleaned or "batch" in cleaned or cleaned in ("face", "ptr", "edges", "num_nodes")
    return f"{cleaned.replace('index', 'number').replace('batch', 'group')}_value" if reserved else cleaned


def collect(
    parts: Mapping[str, Sequence[RawGraph]],
    columns: Sequence[Column],
    *,
    directed: bool | None = None,
    repair: bool = False,
) -> Collected:
    """Return the graphs of all splits as flat arrays with typed features.

    Types are found from the values of all splits together: booleans are masks, whole numbers from 0 on are classes if
    there are at most :data:`MOST_CLASSES`, everything else are numbers.

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
        one_way = next((graph for graph in graphs if not _is_symmetric([graph], columns)), None)
        directed = one_way is not None
        if one_way is not None:
            why = (
                "no edge has its reverse"
                if _never_reversed(graphs)
                else (f"{one_way.name} has edges without their reverse, or with other values in the two directions")
            )
            notes.append(
                f"{why}, so all edges are taken as arcs; if edges have no direction, say directed=False (--undirected)"
            )
    stored = [_with_stored_edges(graph, columns, directed, repair) for graph in graphs]
    dropped = sum(one.dropped for one in stored)
    if dropped:
        notes.append(f"{counted(dropped, 'loop or repeated edge', 'loops and repeated edges')} were dropped")
    differing = sum(one.differing for one in stored)
    if differing:
        notes.append(
            f"{counted(differing, 'edge')} had several values, such as one per direction; the first one was kept"
        )
    features, arrays, classes = _typed([one.graph for one in stored], columns, notes)
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


def _is_symmetric(graphs: Iterable[RawGraph], columns: Sequence[Column]) -> bool:
    """Return whether every arc has its reverse, with equal values; loops have no direction."""
    at_edges = [column.name for column in columns if column.location is Location.EDGE]
    for graph in graphs:
        u, v = graph.edges
        forward, backward = np.lexsort((v, u)), np.lexsort((u, v))
        if not (np.array_equal(u[forward], v[backward]) and np.array_equal(v[forward], u[backward])):
            return False
        for name in at_edges:
            values = graph.values[name]
            if not np.array_equal(values[forward], values[backward], equal_nan=values.dtype.kind == "f"):
                return False
    return True


def _never_reversed(graphs: Iterable[RawGraph]) -> bool:
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
class _Stored:
    """A graph as it is stored.

    Attributes:
        graph: The graph; its edges are sorted and stored once, ``u < v`` where undirected.
        dropped: Number of loops and repeated edges that were dropped.
        differing: Number of edges of which one of several values was kept.
    """

    graph: RawGraph
    dropped: int
    differing: int


def _with_stored_edges(graph: RawGraph, columns: Sequence[Column], directed: bool, repair: bool) -> _Stored:
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
    return _Stored(kept_graph, dropped, len({tuple(sorted(graph.edges[:, arc].tolist())) for _, arc in differing}))


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


def _typed(
    graphs: Sequence[RawGraph], columns: Sequence[Column], notes: list[str]
) -> tuple[list[Feature], dict[str, list[Array]], dict[str, list[str]]]:
    """Return the features of the columns, feature -> its array in every graph, and feature -> names of its classes."""
    features: list[Feature] = []
    arrays: dict[str, list[Array]] = {}
    classes: dict[str, list[str]] = {}
    for column in columns:
        values = [graph.values[column.name] for graph in graphs]
        if any(array.dtype.kind in "UO" for array in values):
            feature, feature_arrays, names = _feature_of_texts(column, values)
            typed_features: Iterable[tuple[Feature, list[Array]]] = [(feature, feature_arrays)]
            classes |= {feature.name: names} if names else {}
        else:
            typed_features = _features_of_numbers(column, values, notes)
        for feature, feature_arrays in typed_features:
            if feature.name in arrays:
                raise DataImportError(f"two columns become the feature {feature.name!r}; rename one of them")
            features.append(feature)
            arrays[feature.name] = feature_arrays
    return features, arrays, classes


def _feature_of_texts(column: Column, values: list[Array]) -> tuple[Feature, list[Array], list[str]]:
    """Return the feature of a column of texts, its arrays, and the names of its classes; no names where it is a text.

    Texts with at most :data:`MOST_CLASSES` different values are classes; an empty text is a missing class of a target.
    """
    texts = [["" if text is None else str(text) for text in array.reshape(-1)] for array in values]
    names = sorted(
        {text for graph_texts in texts for text in graph_texts} - ({""} if column.stage is Stage.OUTPUT else set())
    )
    if column.type_name == "text" or (column.type_name is None and len(names) > MOST_CLASSES):
        if column.location is Location.EDGE:
            raise DataImportError(f"{column.name!r} is a text at edges, which is not supported; leave it out")
        return _feature(column, "text"), [np.array(graph_texts, object) for graph_texts in texts], []
    if column.type_name not in (None, "categorical"):
        raise DataImportError(f"{column.name!r} has texts such as {names[0]!r:.80}, which are no {column.type_name}")
    if len(names) < 2:
        raise DataImportError(
            f"{column.name!r} is {names[0]!r:.80} everywhere; leave it out"
            if names
            else (f"{column.name!r} has no value in any graph; leave it out")
        )
    number = {name: i for i, name in enumerate(names)} | ({"": _MISSING} if "" not in names else {})
    whole = [np.array([number[text] for text in graph_texts], np.int64) for graph_texts in texts]
    return _feature(column, f"categorical({len(names)})"), whole, names


def _features_of_numbers(
    column: Column, values: list[Array], notes: list[str]
) -> Iterable[tuple[Feature, list[Array]]]:
    """Return the features of a column of numbers: one, or one per column where these are masks or classes."""
    shapes = {array.shape[1:] for array in values}
    if len(shapes) > 1 or len(shape := shapes.pop()) > 1:
        raise DataImportError(
            f"{column.name!r} has rows of the shapes {sorted(map(str, {a.shape[1:] for a in values}))}; give every "
            "graph the same number of columns"
        )
    width = shape[0] if shape else 1
    if width == 0:
        raise DataImportError(f"{column.name!r} has no columns; leave it out")
    table = np.concatenate([array.reshape(len(array), width) for array in values])
    type_name = column.type_name or _type_of(table, column)
    if type_name.startswith("scalar"):
        _refuse_missing(column, table)
        _compare_rounded(column, table, notes)
        flat = [array.reshape(len(array), width)[:, 0] if width == 1 else array for array in values]
        feature = _feature(column, "scalar" if width == 1 else f"scalar({width})")
        return [(feature, [array.astype(np.float32) for array in flat])]
    typed_features = []
    for j in range(width):
        of_column = type_name
        if type_name == "categorical":
            classes = max(2, int(np.nanmax(table[:, j], initial=0)) + 1)
            of_column = f"categorical({classes})"
        feature = _feature(column, of_column, f"_{j}" if width > 1 else "")
        feature_arrays = [_whole(array.reshape(len(array), width)[:, j], feature, column) for array in values]
        typed_features.append((feature, feature_arrays))
        if column.stage is Stage.OUTPUT:
            _note_labels(feature, np.concatenate(feature_arrays), table, notes)
    if type_name == "categorical" and column.type_name is None and _may_be_amounts(column, typed_features):
        which = f"the {width} columns of {column.name!r} are" if width > 1 else f"{column.name!r} is"
        notes.append(
            f"{which} read as classes, as the values are whole numbers; if they are amounts, say "
            f"types={{{column.name!r}: 'scalar'}} (--type {column.name}=scalar)"
        )
    return typed_features


def _may_be_amounts(column: Column, typed_features: Sequence[tuple[Feature, list[Array]]]) -> bool:
    """Return whether classes that were found from values should be named: inputs, and many classes with gaps."""
    return column.stage is Stage.INPUT or any(
        feature.classes > max(_USUAL_CLASSES, len(np.unique(np.concatenate(arrays))))
        for feature, arrays in typed_features
    )


def _note_labels(feature: Feature, labels: Array, table: Array, notes: list[str]) -> None:
    """Say how many labels are missing; refuse labels of -1 and 1, of which -1 would be read as missing."""
    missing = int((labels == _MISSING).sum())
    known = np.unique(labels[labels != _MISSING])
    if missing and known.size == 1 and table.dtype.kind != "f":
        raise DataImportError(
            f"the target {feature.name!r} is {known[0]} everywhere but at {counted(missing, 'label')} of -1, which "
            "marks a missing label; if -1 is a class, write 0 for it"
        )
    if missing:
        notes.append(
            f"{missing:,} of {counted(labels.size, 'label')} of {feature.name!r} are missing (-1 or nan), and count in "
            "no loss and no score"
        )
    if known.size == 1:
        notes.append(f"all known labels of {feature.name!r} are {known[0]}")


def _compare_rounded(column: Column, table: Array, notes: list[str]) -> None:
    """Say where different numbers become equal as float32, in which numbers are stored; refuse it where all do."""
    exact, rounded = (len(np.unique(values)) for values in (table, table.astype(np.float32)))
    if exact > 1 and rounded == 1:
        raise DataImportError(
            f"the {exact:,} different numbers of {column.name!r} are all {np.float32(table.flat[0])} as float32; "
            "subtract their mean"
        )
    if rounded < _MOST_ROUNDED * exact:
        notes.append(
            f"{column.name!r} has {exact:,} different numbers, and {rounded:,} as float32, in which they are stored; "
            "subtract their mean if the difference matters"
        )


def _type_of(table: Array, column: Column) -> str:
    """Return the type of a table of all rows of a column: ``mask``, ``categorical`` or ``scalar``."""
    known = table[~np.isnan(table)] if table.dtype.kind == "f" else table
    if table.dtype.kind == "b":
        return "mask" if table.shape[1] == 1 or column.stage is Stage.OUTPUT else "scalar"
    if not known.size:
        raise DataImportError(f"{column.name!r} has no value in any graph; leave it out")
    if table.dtype.kind == "f":
        binary = column.stage is Stage.OUTPUT and bool(np.isin(known, (0, 1)).all())
        return "mask" if binary else "scalar"
    most = int(known.max())
    lowest = int(known.min())
    if column.stage is Stage.OUTPUT:
        lowest = max(lowest, 0) if lowest == _MISSING else lowest  # -1 is the usual mark of a missing label
    if lowest < 0 or most >= MOST_CLASSES or table.shape[1] > _MOST_COLUMNS_OF_CLASSES:
        return "scalar"
    return "mask" if most <= 1 and column.stage is Stage.OUTPUT else "categorical"


def _whole(values: Array, feature: Feature, column: Column) -> Array:
    """Return a column of masks or classes as int64, missing values as -1."""
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if (values[~missing] != np.floor(values[~missing])).any():
            wrong = values[~missing & (values != np.floor(values))][0]
            raise DataImportError(f"{column.name!r} holds {wrong}, which is no {feature.type_name}; call it a scalar")
        values = np.where(missing, _MISSING, values)
    whole = values.astype(np.int64)
    most = 1 if feature.kind is Kind.MASK else feature.classes - 1
    least = _MISSING if feature.stage is Stage.OUTPUT else 0
    wrong = whole[(whole < least) | (whole > most)]
    if wrong.size:
        raise DataImportError(f"{column.name!r} holds {wrong[0]}; a {feature.type_name} has values from 0 to {most}")
    return whole


def _refuse_missing(column: Column, table: Array) -> None:
    wrong = ~np.isfinite(table) if table.dtype.kind == "f" else np.zeros(table.shape, bool)
    if wrong.any():
        raise DataImportError(
            f"{column.name!r} has {counted(int(wrong.sum()), 'value')} of numbers that are not finite; leave these "
            "samples out (labels may be missing where they are masks and classes, not where they are numbers)"
        )


def _feature(column: Column, type_name: str, ending: str = "") -> Feature:
    words = [column.stage.value, column.location.value, type_name]
    return Feature.parse(feature_name(column.name) + ending, words)


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
