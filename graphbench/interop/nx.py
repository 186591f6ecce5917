"""Graphs of NetworkX: typed attributes at nodes, edges and the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ArgumentError
from graphbench.interop.arrays import refuse_links, to_arrays
from graphbench.interop.cards import card_of

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data

    from graphbench.catalog.cards import Card

_DTYPES: Mapping[Kind, type[np.generic]] = {Kind.SCALAR: np.float32}  # as in ``Data``; all others are int64


def to_networkx(data: Any, of: Any, *, both_directions: bool = False) -> networkx.Graph:
    """Return a graph of NetworkX with the features of the card as attributes.

    Scalars are floats, masks bool, class numbers and node ids int, texts str, and values of ``scalar(d)`` lists of
    floats. Features of the graph are in ``graph.graph``. Hints are left out.

    Args:
        data: A PyG ``Data`` of a dataset, such as ``splits.train[0]``.
        of: The dataset: its id, its card, a split or the splits.
        both_directions: Return the two arcs of every undirected edge in a ``DiGraph``, for features whose values differ
            between the directions.

    Returns:
        ``networkx.DiGraph`` for directed datasets, ``networkx.Graph`` with one edge each for undirected ones. Nodes and
        edges are in the order of the dataset.

    Raises:
        ArgumentError: If a feature differs between the directions of an edge and ``both_directions`` is not given, an
            edge occurs several times, or the graph is none of the dataset.
    """
    import networkx

    card = card_of(of)
    arrays = to_arrays(data, card)
    features = {location: [f for f in card.stored_features if f.location is location] for location in Location}
    arcs = np.stack([arrays.src, arrays.dst], axis=1)
    chosen = np.arange(len(arcs))
    directed = card.directed or both_directions
    if not directed:
        chosen = _one_arc_each(arcs, arrays.edata)
    graph = networkx.DiGraph() if directed else networkx.Graph()
    columns = _columns(features[Location.NODE], arrays.ndata, np.arange(arrays.num_nodes))
    graph.add_nodes_from((node, row) for node, row in enumerate(_rows(columns, arrays.num_nodes)))
    columns = _columns(features[Location.EDGE], arrays.edata, chosen)
    pairs = arcs[chosen].tolist()
    graph.add_edges_from((u, v, row) for (u, v), row in zip(pairs, _rows(columns, len(pairs)), strict=True))
    if graph.number_of_edges() != len(pairs):
        raise ArgumentError(
            f"{len(pairs) - graph.number_of_edges()} edges join the same nodes as another one, which a "
            f"{type(graph).__name__} cannot hold; use graphbench.interop.to_arrays"
        )
    of_graph = _columns(features[Location.GRAPH], arrays.gdata, np.arange(1))
    graph.graph.update({name: values[0] for name, values in of_graph.items()})
    return graph


def from_networkx(graph: networkx.Graph, of: Any) -> Data:
    """Return a graph of NetworkX with the attributes that :func:`to_networkx` sets as a PyG ``Data`` of the dataset.

    The result has the fields of ``dataset[i]``, hints excepted, bit for bit: the edges are sorted as the dataset's are.

    Args:
        graph: The graph; its nodes are 0, 1, ... n - 1, in any order.
        of: The dataset: its id, its card, a split or the splits.

    Raises:
        ArgumentError: If nodes have other names, or an attribute is missing.
    """
    import torch
    from torch_geometric.data import Data

    from graphbench.data.batches.batching import standard_fields

    card = card_of(of)
    refuse_links(card)
    count = graph.number_of_nodes()
    if set(graph) != set(range(count)):
        raise ArgumentError(
            f"the nodes are named {sorted(map(str, graph))[:3]}...; name them 0 to {count - 1}, "
            "as networkx.convert_node_labels_to_integers does"
        )
    arcs, attributes = _sorted_arcs(graph, card)
    fields: dict[str, Any] = {}
    for feature in card.stored_features:
        rows = {
            Location.NODE: [graph.nodes[node] for node in range(count)],
            Location.EDGE: attributes,
            Location.GRAPH: [graph.graph],
        }[feature.location]
        fields[feature.name] = _tensor(feature, rows)
    data = Data(edge_index=torch.from_numpy(np.ascontiguousarray(arcs.T)), num_nodes=count)
    batched = {name: [value] if isinstance(value, list | str) else value for name, value in fields.items()}
    for name, value in {**fields, **standard_fields(batched, card.features)}.items():
        data[name] = value[0] if name == "y" and isinstance(value, list) else value
    return data


def _one_arc_each(arcs: NDArray[np.int64], edata: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the positions of one arc of every undirected edge, the arc from the smaller node, in their order.

    Raises:
        ArgumentError: If an arc lacks its reverse, or a feature differs between them.
    """
    first = np.flatnonzero(arcs[:, 0] < arcs[:, 1])
    back = np.flatnonzero(arcs[:, 0] > arcs[:, 1])
    loops = np.flatnonzero(arcs[:, 0] == arcs[:, 1])
    first_sorted = first[np.lexsort((arcs[first, 1], arcs[first, 0]))]
    back_sorted = back[np.lexsort((arcs[back, 0], arcs[back, 1]))]
    if not np.array_equal(arcs[first_sorted], arcs[back_sorted][:, ::-1]):
        raise ArgumentError("an edge of this undirected graph has one direction alone; give a graph of the dataset")
    for name, values in edata.items():
        if not np.array_equal(values[first_sorted], values[back_sorted]):
            raise ArgumentError(
                f"{name!r} differs between the two directions of an edge, which an undirected graph of NetworkX cannot "
                "hold; call to_networkx(..., both_directions=True)"
            )
    _, places = np.unique(arcs[loops, 0], return_index=True)  # a loop is stored in both directions, too
    return np.sort(np.concatenate([first, loops[places]]))


def _columns(features: Sequence[Feature], arrays: Mapping[str, Any], chosen: NDArray[np.int64]) -> dict[str, list[Any]]:
    """Return feature -> the chosen values as objects of Python."""
    columns: dict[str, list[Any]] = {}
    for feature in features:
        values = arrays[feature.name]
        if feature.kind is Kind.TEXT:
            columns[feature.name] = [values] if isinstance(values, str) else list(values)
            continue
        if feature.kind in (Kind.MASK, Kind.MASK_ONE) and values.min(initial=0) >= 0:
            values = values.astype(bool)
        columns[feature.name] = values[chosen].tolist()
    return columns


def _rows(columns: Mapping[str, list[Any]], count: int) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _sorted_arcs(graph: networkx.Graph, card: Card) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """Return the arcs in the order of a dataset, int64 ``[E, 2]``, and the attributes of each.

    Raises:
        ArgumentError: If the graph has parallel edges, or edges without a direction where the dataset has arcs, or
            arcs without their reverse where it has none.
    """
    if graph.is_multigraph():
        raise ArgumentError("the graph is a multigraph; give a Graph or DiGraph, which has no parallel edges")
    if card.directed:
        if not graph.is_directed():
            raise ArgumentError(f"the graphs of {card.address} have arcs; give a DiGraph")
        edges = sorted(graph.edges(data=True), key=lambda edge: edge[:2])
        return _pairs([(u, v) for u, v, _ in edges]), [row for *_, row in edges]
    undirected = {(min(u, v), max(u, v)) for u, v in graph.edges()}
    arcs = [arc for u, v in sorted(undirected) for arc in ((u, v), (v, u))]
    if lacking := next((arc for arc in arcs if not graph.has_edge(*arc)), None):
        raise ArgumentError(
            f"the graphs of {card.address} have no directions, but the arc {lacking} is missing; give a Graph, or both"
        )
    return _pairs(arcs), [graph.edges[arc] for arc in arcs]


def _pairs(arcs: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(arcs, np.int64).reshape(-1, 2)


def _tensor(feature: Feature, rows: Sequence[Mapping[str, Any]]) -> Any:
    import torch

    try:
        values = [row[feature.name] for row in rows]
    except KeyError:
        raise ArgumentError(
            f"the attribute {feature.name!r} is missing at some {feature.location}s; set it at all of them"
        ) from None
    if feature.kind is Kind.TEXT:
        return values[0] if feature.location is Location.GRAPH else values
    try:
        array = np.array(values, _DTYPES.get(feature.kind, np.int64)).reshape(-1, *feature.row_shape)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"the attribute {feature.name!r} is no {feature.type_name}: {error}") from error
    return torch.from_numpy(array)
