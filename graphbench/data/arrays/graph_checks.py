"""Check the structure of graphs before the graphs are stored, whether a generator or a reader of files made them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.schema import Schema
from graphbench.core.kernels import kernel
from graphbench.data.arrays.samples import Samples

_OUTSIDE, _LOOKING_BACK, _UNSORTED = 1, 2, 3
_WORDS = {
    _OUTSIDE: "names a node that the graph does not have; node ids count from 0 in every graph, and it has {} nodes",
    _LOOKING_BACK: "is not of the form u < v; an undirected edge is stored once, and a loop is not stored",
    _UNSORTED: "is given twice or out of order; sort the edges of every graph by (u, v)",
}


def graph_problem(schema: Schema, samples: Samples, indices: NDArray[np.int64] | None = None) -> str:
    """Return the first problem with the structure of graphs; an empty string if they can be stored.

    Args:
        schema: The schema, which says whether edges are arcs and graphs are complete.
        samples: The graphs.
        indices: int64 ``[S]``, the positions of the graphs in their split, by which messages name them; if given, there
            must be one graph for each. None for 0, 1, 2, ...
    """
    nodes, counts, edges = samples.num_nodes, samples.num_edges, samples.edges
    array: Any
    for name, array in (("num_nodes", nodes), ("num_edges", counts), ("edges", edges)):
        if not isinstance(array, np.ndarray) or (array.dtype.kind not in "iu" and array.size):
            kind = f"the dtype {array.dtype}" if isinstance(array, np.ndarray) else f"the type {type(array).__name__}"
            return f"{name} has {kind}; give a NumPy array of integers"
    count = len(nodes) if indices is None else len(indices)
    if nodes.shape != (count,) or counts.shape != (count,):
        return (
            f"num_nodes has the shape {list(nodes.shape)} and num_edges {list(counts.shape)}; {count} graphs are asked "
            "for: num_nodes and num_edges have one entry per graph"
        )
    nodes, counts = nodes.astype(np.int64, copy=False), counts.astype(np.int64, copy=False)
    numbers = np.arange(count) if indices is None else indices
    few = np.flatnonzero((nodes < 1) | (counts < 0))
    if few.size:
        return (
            f"graph {numbers[few[0]]} has num_nodes {nodes[few[0]]} and num_edges {counts[few[0]]}; every graph has a "
            "node, and no graph fewer than 0 edges"
        )
    sparse = np.flatnonzero(counts != nodes**2) if schema.complete else few
    if sparse.size:
        return f"graph {numbers[sparse[0]]} is complete, so its num_edges is {nodes[sparse[0]] ** 2}"
    if edges.shape != (0 if schema.complete else int(counts.sum()), 2):
        why = "complete graphs list none" if schema.complete else f"num_edges says that there are {int(counts.sum())}"
        return f"edges has the shape {list(edges.shape)}, but {why}"
    if not len(edges):
        return ""
    native = np.ascontiguousarray(edges, edges.dtype.newbyteorder("="))
    graph, edge, code = _first_wrong_edge(nodes, counts, native, schema.directed)
    if not code:
        return ""
    return f"edge {edges[edge, 0]}-{edges[edge, 1]} of graph {numbers[graph]} {_WORDS[code].format(nodes[graph])}"


@kernel
def _first_wrong_edge(
    num_nodes: NDArray[Any], num_edges: NDArray[Any], edges: NDArray[Any], directed: bool
) -> tuple[int, int, int]:
    """Return graph, edge and problem of the first edge that cannot be stored; problem 0 if all can be."""
    e = 0
    for g in range(num_nodes.shape[0]):
        nodes = np.int64(num_nodes[g])
        before_u, before_v = np.int64(-1), np.int64(-1)
        for _ in range(num_edges[g]):
            u, v = np.int64(edges[e, 0]), np.int64(edges[e, 1])
            if u < 0 or v < 0 or u >= nodes or v >= nodes:
                return g, e, _OUTSIDE
            if u >= v and not directed:
                return g, e, _LOOKING_BACK
            if u < before_u or (u == before_u and v <= before_v):
                return g, e, _UNSORTED
            before_u, before_v = u, v
            e += 1
    return 0, 0, 0
