"""Datasets of networkx graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DataImportError
from graphbench.imports.dataset import Imported, import_graphs
from graphbench.imports.graphs import RawGraph
from graphbench.imports.options import ImportOptions, settings_of
from graphbench.imports.pyg import array_of, parts_or_all


def from_networkx(
    name: str,
    data: Any = None,
    *,
    train: Iterable[Any] | None = None,
    val: Iterable[Any] | None = None,
    test: Iterable[Any] | None = None,
    ood: Mapping[str, Iterable[Any]] | None = None,
    **options: Unpack[ImportOptions],
) -> Imported:
    """Make a dataset of networkx graphs: attributes of nodes, edges and graphs are the columns.

    The target is the attribute ``y``, or the one that ``target=`` names. All other attributes that every node, edge or
    graph has are inputs, unless ``inputs=`` names some. Texts with few different values are classes with these names.

    Args:
        name: As for ``from_pyg``.
        data: All graphs, which a rule divides, or a single graph, whose nodes are divided.
        train: The training graphs, if the splits are given.
        val: The validation graphs.
        test: The test graphs.
        ood: Name -> graphs of further test splits.
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Raises:
        DataImportError: As for ``from_pyg``.
        ArgumentError: If an argument is unknown.
    """
    settings = settings_of(options)
    return import_graphs(name, parts_or_all(data, train, val, test, ood, raw_graphs), settings)


def raw_graphs(graphs: Any, where: str) -> list[RawGraph]:
    """Return networkx graphs, or a single one, as graphs with arrays; nodes are numbered in their order.

    Args:
        graphs: A graph or several.
        where: How messages name them.
    """
    if hasattr(graphs, "adj") and hasattr(graphs, "is_directed"):
        return [_raw_graph(graphs, where)]
    converted_graphs = []
    for i, graph in enumerate(graphs):
        if not (hasattr(graph, "adj") and hasattr(graph, "is_directed")):
            raise DataImportError(f"{where}[{i}] is a {type(graph).__name__}; give networkx graphs")
        converted_graphs.append(_raw_graph(graph, f"{where}[{i}]"))
    return converted_graphs


def _raw_graph(graph: Any, where: str) -> RawGraph:
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = [(number[u], number[v]) for u, v in graph.edges()]
    arcs = np.array(pairs, np.int64).reshape(-1, 2).T
    values: dict[str, NDArray[Any]] = {}
    at_nodes, at_edges = (
        (attributes for _, attributes in graph.nodes(data=True)),
        (a for *_, a in graph.edges(data=True)),
    )
    directed = graph.is_directed()
    for items, what, count in ((list(at_nodes), "nodes", len(number)), (list(at_edges), "edges", arcs.shape[1])):
        for key in dict.fromkeys(key for attributes in items for key in attributes):
            column = _column([attributes.get(key) for attributes in items], str(key), what, where)
            if column is not None and len(column) == count:
                values[str(key)] = np.concatenate([column, column]) if what == "edges" and not directed else column
    for key, value in graph.graph.items():
        array = array_of([value] if isinstance(value, (str, int, float, bool)) else value, f"{where}.graph[{key!r}]")
        if array is not None and str(key) not in values and str(key) != "name":
            values[str(key)] = array if array.ndim == 2 or len(array) == 1 else array[np.newaxis]
    edges = arcs if directed else np.concatenate([arcs, arcs[::-1]], axis=1)
    return RawGraph(len(number), edges, values, where)


def _column(items: list[Any], key: str, what: str, where: str) -> NDArray[Any] | None:
    """Return an attribute of all nodes or edges as an array; an attribute that some lack must be a text or absent."""
    lacking = sum(item is None for item in items)
    if lacking and not all(isinstance(item, str | None) for item in items):
        raise DataImportError(
            f"{lacking} of the {len(items)} {what} of {where} have no attribute {key!r}; give it to all, with -1 or "
            "nan where a label is missing, or delete it"
        )
    return array_of(items, f"{key!r} at the {what} of {where}")
