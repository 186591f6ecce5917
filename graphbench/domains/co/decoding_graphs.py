"""The graphs of a batch as flat arrays, checked once, for the kernels that decode scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DecodingError
from graphbench.core.kernels import kernel

_Ints = NDArray[np.int64]
_FINE, _TWICE, _ALONE = 0, 1, 2


@dataclass(frozen=True)
class UndirectedGraphs:
    """Undirected graphs without loops and weights, one after the other.

    Attributes:
        ptr: int64 ``[G + 1]``, first node of each graph.
        edge_index: int64 ``[2, E]``, both directions of every edge; node ids count through the batch.
    """

    ptr: _Ints
    edge_index: _Ints

    @classmethod
    def checked(cls, ptr: NDArray[Any], edge_index: NDArray[Any]) -> UndirectedGraphs:
        """Return the graphs.

        Edges in the order of ``GraphDataset.batches`` (``u < v``, sorted, each followed by its reverse) are checked in
        one pass; any other order is sorted first.

        Raises:
            DecodingError: If an array has the wrong form, or an edge names no node, is a loop, joins two graphs, is
                given twice or lacks its reverse; the message names the edge and its graph.
        """
        graphs = cls(_checked_ptr(ptr), _checked_form(edge_index))
        if not _is_in_order(graphs.ptr, graphs.edge_index):
            graphs._refuse_bad_edges()
        return graphs

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.ptr[-1])

    @cached_property
    def graph(self) -> _Ints:
        """int64 ``[N]``, the graph of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    @cached_property
    def neighbours(self) -> tuple[_Ints, NDArray[np.int32]]:
        """``first int64[N + 1]`` and ``node int32[E]``: rows ``first[v]`` to ``first[v + 1] - 1`` are next to ``v``."""
        return _grouped(self.num_nodes, self.edge_index[0], self.edge_index[1])

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.ptr) - 1

    def edge_name(self, u: int, v: int) -> str:
        """Return e.g. "edge 1-2 of graph 3"; the node ids of the text count within the graph."""
        first = self.ptr[self.graph[u]]
        return f"edge {u - first}-{v - first} of graph {self.graph[u]}"

    def _refuse_bad_edges(self) -> None:
        source, target = self.edge_index
        outside = ((self.edge_index < 0) | (self.edge_index >= self.num_nodes)).any(axis=0)
        if outside.any():
            u, v = self.edge_index[:, outside.argmax()]
            raise DecodingError(f"the edge {u}-{v} names a node beyond the {self.num_nodes} of the batch")
        loops = source == target
        if loops.any():
            name = self.edge_name(*self.edge_index[:, loops.argmax()])
            raise DecodingError(f"{name} is a self-loop; remove it with torch_geometric.utils.remove_self_loops")
        apart = self.graph[source] != self.graph[target]
        if apart.any():
            u, v = self.edge_index[:, apart.argmax()]
            raise DecodingError(
                f"the edge {u}-{v} joins graph {self.graph[u]} to graph {self.graph[v]}; "
                "make the batch with Batch.from_data_list"
            )
        fault, u, v = _first_fault(self.num_nodes, source, target)
        if fault == _TWICE:
            raise DecodingError(f"{self.edge_name(u, v)} is given twice; merge its copies with Data.coalesce")
        if fault == _ALONE:
            raise DecodingError(
                f"{self.edge_name(u, v)} lacks its reverse, but the problem is one of undirected graphs; "
                "add the reverses with torch_geometric.utils.to_undirected"
            )


def _checked_ptr(ptr: NDArray[Any]) -> _Ints:
    if ptr.ndim != 1 or len(ptr) < 2 or ptr[0] != 0 or (np.diff(ptr) < 1).any():
        raise DecodingError(
            f"the first nodes of the graphs are {ptr.tolist()!s:.80}; they start at 0 and rise: there is at least one "
            "graph, and each has a node"
        )
    return np.ascontiguousarray(ptr, np.int64)


def _checked_form(edge_index: NDArray[Any]) -> _Ints:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise DecodingError(
            f"edge_index is {edge_index.dtype} {list(edge_index.shape)}; give integers of the shape [2, E]"
        )
    return np.ascontiguousarray(edge_index, np.int64)


@kernel
def _is_in_order(ptr: _Ints, edge_index: _Ints) -> bool:
    """Return whether columns 2j and 2j + 1 are (u, v) and (v, u), u < v within one graph, with (u, v) rising."""
    graph, last_u, last_v = 0, -1, -1
    if edge_index.shape[1] % 2:
        return False
    for column in range(0, edge_index.shape[1], 2):
        u, v = edge_index[0, column], edge_index[1, column]
        if edge_index[1, column + 1] != u or edge_index[0, column + 1] != v or u >= v:
            return False
        if u < last_u or (u == last_u and v <= last_v):
            return False
        while graph < ptr.shape[0] - 1 and u >= ptr[graph + 1]:
            graph += 1
        if u < 0 or graph == ptr.shape[0] - 1 or v >= ptr[graph + 1]:
            return False
        last_u, last_v = u, v
    return True


@kernel
def _grouped(num_nodes: int, key: NDArray[Any], value: NDArray[Any]) -> tuple[_Ints, NDArray[np.int32]]:
    """Return the start of each key's values, ``[num_nodes + 1]``, and the values, stably sorted by key."""
    first = np.zeros(num_nodes + 2, np.int64)
    for j in range(key.shape[0]):
        first[key[j] + 2] += 1
    for v in range(num_nodes):
        first[v + 2] += first[v + 1]
    node = np.empty(key.shape[0], np.int32)
    for j in range(key.shape[0]):
        node[first[key[j] + 1]] = value[j]
        first[key[j] + 1] += 1
    return first[: num_nodes + 1].copy(), node


@kernel
def _first_fault(num_nodes: int, source: _Ints, target: _Ints) -> tuple[int, int, int]:
    """Return the first fault of the arcs and its arc: an arc is given twice, or has no reverse.

    In the sorted heads of all nodes, the tails of each node appear in the order of its heads.
    """
    first, tails = _grouped(num_nodes, target, source)
    heads_of = np.empty(source.shape[0], np.int32)
    for v in range(num_nodes):
        heads_of[first[v] : first[v + 1]] = v
    first, node = _grouped(num_nodes, tails, heads_of)
    for v in range(num_nodes):
        for row in range(first[v] + 1, first[v + 1]):
            if node[row - 1] == node[row]:
                return _TWICE, v, node[row]
    due = first.copy()
    for v in range(num_nodes):
        for row in range(first[v], first[v + 1]):
            u = node[row]
            at = due[u]
            if at == first[u + 1] or node[at] > v:
                return _ALONE, v, u
            if node[at] < v:
                return _ALONE, u, node[at]
            due[u] += 1
    for u in range(num_nodes):
        if due[u] < first[u + 1]:
            return _ALONE, u, node[due[u]]
    return _FINE, 0, 0
