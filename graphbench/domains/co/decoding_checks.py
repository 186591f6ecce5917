"""Checks and values of the solutions of a batch of graphs; this module shares no code with the decoders."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DecodingError
from graphbench.core.kernels import kernel
from graphbench.domains.co.decoding_graphs import UndirectedGraphs

_Ints = NDArray[np.int64]
_ANY = -1


def set_sizes(graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of members of an independent set of every graph, int64 ``[G]``.

    Args:
        graphs: The graphs.
        solution: Integers or booleans ``[N]``: 1 for members.

    Raises:
        DecodingError: If the solution has another form or is infeasible; the message names node or edge, and graph.
    """
    return _sizes(graphs, solution, 1, "joins two members of the independent set")


def cover_sizes(graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of members of a vertex cover of every graph, int64 ``[G]``.

    Args:
        graphs: The graphs.
        solution: Integers or booleans ``[N]``: 1 for members.

    Raises:
        DecodingError: If the solution has another form or is infeasible; the message names node or edge, and graph.
    """
    return _sizes(graphs, solution, 0, "has no member of the vertex cover")


def _sizes(graphs: UndirectedGraphs, solution: NDArray[Any], refused: int, why: str) -> NDArray[np.int64]:
    """Return the number of members of every graph; no edge may have both ends of the value ``refused``."""
    values = _checked_form(graphs, solution, highest=1)
    _refuse_edge(graphs, _first_edge_within(graphs.edge_index, values, refused), why)
    return np.bincount(graphs.graph[values == 1], minlength=len(graphs))


def clique_sizes(graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of members of a clique of every graph, int64 ``[G]``.

    Args:
        graphs: The graphs.
        solution: Integers or booleans ``[N]``: 1 for members.

    Raises:
        DecodingError: If the solution has another form or is infeasible; the message names the nodes and the graph.
    """
    values = _checked_form(graphs, solution, highest=1)
    sizes = np.bincount(graphs.graph[values == 1], minlength=len(graphs))
    source, target = graphs.edge_index
    within = (values[source] == 1) & (values[target] == 1)
    arcs = np.bincount(source[within], minlength=graphs.num_nodes)
    lonely = (values == 1) & (arcs < sizes[graphs.graph] - 1)
    if lonely.any():
        node = int(lonely.argmax())
        graph = int(graphs.graph[node])
        beside = set(target[within & (source == node)].tolist()) | {node}
        members = np.flatnonzero((values == 1) & (graphs.graph == graph)).tolist()
        other = next(member for member in members if member not in beside)
        first = graphs.ptr[graph]
        raise DecodingError(
            f"the solution is infeasible: the members {node - first} and {other - first} of graph {graph} are not "
            "joined, so they are in no clique; an infeasible solution has no score"
        )
    return sizes


def cut_sizes(graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of edges of a cut of every graph, int64 ``[G]``; the solution is the side, 0 or 1, of nodes.

    Raises:
        DecodingError: If the solution has another form; the message names node and graph.
    """
    values = _checked_form(graphs, solution, highest=1)
    return _cut_sizes(graphs.edge_index, graphs.graph, values, len(graphs))


def colour_counts(graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of colours of every graph, int64 ``[G]``; the solution is the colour of nodes, any from 0 on.

    Raises:
        DecodingError: If the solution has another form or is infeasible; the message names node or edge, and graph.
    """
    values = _checked_form(graphs, solution, highest=np.iinfo(np.int32).max)
    broken = _first_edge_within(graphs.edge_index, values, _ANY)
    _refuse_edge(graphs, broken, "joins two nodes of one colour")
    width = int(values.max()) + 1
    pairs = np.unique(graphs.graph * width + values)
    return np.bincount(pairs // width, minlength=len(graphs))


@kernel
def _cut_sizes(edge_index: _Ints, graph: _Ints, side: _Ints, graphs: int) -> _Ints:
    arcs = np.zeros(graphs, np.int64)
    for j in range(edge_index.shape[1]):
        u, v = edge_index[0, j], edge_index[1, j]
        arcs[graph[u]] += 1 if side[u] != side[v] else 0
    return arcs // 2


@kernel
def _first_edge_within(edge_index: _Ints, values: _Ints, value: int) -> int:
    """Return the first column whose nodes both have the value, or any one value if it is `_ANY`; -1 if none does."""
    for j in range(edge_index.shape[1]):
        of_source = values[edge_index[0, j]]
        if of_source == values[edge_index[1, j]] and (value == _ANY or of_source == value):
            return j
    return -1


def _checked_form(graphs: UndirectedGraphs, solution: NDArray[Any], *, highest: int) -> NDArray[np.int64]:
    if solution.shape != (graphs.num_nodes,) or solution.dtype.kind not in "biu":
        raise DecodingError(
            f"the solution is {solution.dtype} {list(solution.shape)}; give integers or booleans [{graphs.num_nodes}], "
            "one per node"
        )
    values = solution.astype(np.int64)
    outside = (values < 0) | (values > highest)
    if outside.any():
        node = int(outside.argmax())
        graph = int(graphs.graph[node])
        raise DecodingError(
            f"node {node - graphs.ptr[graph]} of graph {graph} has the entry {values[node]}; give 0 to {highest}"
        )
    return values


def _refuse_edge(graphs: UndirectedGraphs, column: int, why: str) -> None:
    if column >= 0:
        name = graphs.edge_name(*graphs.edge_index[:, column])
        raise DecodingError(f"the solution is infeasible: {name} {why}; an infeasible solution has no score")
