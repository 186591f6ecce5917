"""Measures of sets of nodes: the largest clique that a set contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.components.measures import Measure


def largest_clique(
    node_ptr: NDArray[np.int64], edge_index: NDArray[Any], chosen: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the number of nodes of the largest clique among the chosen nodes of every graph.

    The search is that of the labels: exact, unless it reaches its limit of search nodes on a large dense graph. There
    the largest clique that it met counts.

    Args:
        node_ptr: int64 ``[G + 1]``, the first node of each graph.
        edge_index: int ``[2, E]``, numbers of nodes that count through all graphs, in one direction or both.
        chosen: bool ``[N]``.

    Returns:
        int64 ``[G]``, 0 where no node is chosen.
    """
    from graphbench.domains.algoreas.max_clique import DEFAULT_NODE_LIMIT, maximum_clique

    kept = edge_index[:, chosen[edge_index[0]] & chosen[edge_index[1]]]
    number = np.concatenate([[0], np.cumsum(chosen)])  # of a chosen node among all chosen nodes
    first = number[node_ptr]
    graph = np.searchsorted(node_ptr, kept[0], side="right") - 1
    order = np.argsort(graph, kind="stable")
    edges = (number[kept] - first[graph]).T[order].astype(np.int32)
    edge_ptr = np.searchsorted(graph[order], np.arange(len(node_ptr)))
    sizes = np.diff(first)
    for i in np.flatnonzero(sizes > 1):
        members, _ = maximum_clique(int(sizes[i]), edges[edge_ptr[i] : edge_ptr[i + 1]], DEFAULT_NODE_LIMIT)
        sizes[i] = members.sum()
    return sizes


MEASURES: Mapping[str, Measure] = {
    "largest_clique": Measure("The largest clique, a set of nodes every two of which are joined.", largest_clique),
}
