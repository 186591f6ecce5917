"""One graph as plain NumPy arrays, in the layout that DGL takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ArgumentError
from graphbench.interop.cards import card_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


class GraphArrays(NamedTuple):
    """A graph as arrays; ``dgl.graph((src, dst), num_nodes=num_nodes)`` makes one of DGL from it.

    Attributes:
        src: int64 ``[E]``, the node from which each arc starts; an undirected edge is two neighbouring arcs.
        dst: int64 ``[E]``, the node at which it ends.
        num_nodes: Number of nodes.
        ndata: Feature of nodes -> ``[N]``, or ``[N, d]`` for ``scalar(d)``; texts are a list of strings.
        edata: Feature of edges -> ``[E]`` or ``[E, d]``, one row per arc.
        gdata: Feature of the graph -> ``[1]`` or ``[1, d]``; a text is a string.
    """

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    num_nodes: int
    ndata: dict[str, Any]
    edata: dict[str, Any]
    gdata: dict[str, Any]


def to_arrays(data: Any, of: Any) -> GraphArrays:
    """Return a graph as NumPy arrays that share the memory of its tensors; hints are left out.

    Args:
        data: A PyG ``Data`` of a dataset, such as ``splits.train[0]``.
        of: The dataset: its id, its card, a split or the splits.

    Raises:
        ArgumentError: If the graph lacks a feature of the card, or has another number of rows.
    """
    card = card_of(of)
    refuse_links(card)
    columns: dict[Location, dict[str, Any]] = {location: {} for location in Location}
    edge_index = data.edge_index.detach().cpu().numpy()
    counts = {Location.NODE: int(data.num_nodes), Location.EDGE: edge_index.shape[1], Location.GRAPH: 1}
    for feature in card.stored_features:
        columns[feature.location][feature.name] = values_of(data, feature, counts[feature.location])
    return GraphArrays(
        edge_index[0], edge_index[1], counts[Location.NODE], columns[Location.NODE], columns[Location.EDGE],
        columns[Location.GRAPH],
    )  # fmt: skip


def refuse_links(card: Card) -> None:
    """Refuse samples with candidate pairs, for forms of a graph that hold nodes and edges alone.

    Raises:
        ArgumentError: If the card has links.
    """
    if card.links is not None:
        raise ArgumentError(
            f"the samples of {card.address} have candidate pairs of nodes, and this form of a graph holds nodes and "
            "edges alone; read data.edge_index, data.pair_index and data.query_batch, or export the whole dataset to "
            "Hugging Face or a hub folder, which has the hidden edges with a mask"
        )


def values_of(data: Any, feature: Feature, rows: int) -> Any:
    """Return the values of a feature of one graph: an array, a string, or a list of strings.

    Raises:
        ArgumentError: If they are missing, or there are not as many as there should be.
    """
    if feature.name not in data:
        raise ArgumentError(
            f"the graph has no field {feature.name!r}; give a graph of this dataset, with its labels, "
            "as splits.train[0] is"
        )
    value = data[feature.name]
    if feature.kind is Kind.TEXT:
        return value
    array = value.detach().cpu().numpy()
    if len(array) != rows:
        raise ArgumentError(
            f"{feature.name!r} has {len(array)} rows for {rows} {feature.location}s; give a single graph of this "
            "dataset, before any transform that changes nodes or edges"
        )
    return array
