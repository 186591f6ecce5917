"""Whether solutions of a batch of graphs are feasible, and what they are worth; shares no code with the decoders."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.errors import DecodingError


def solution_values(problem: str, graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return the objective of a feasible solution of every graph, int64 ``[G]``.

    That is the number of members of an independent set, of edges of a cut, or of colours of a colouring.

    Args:
        problem: ``mis``, ``max_cut`` or ``coloring``.
        graphs: The graphs.
        solution: Integers or booleans ``[N]``: 1 for members, or the side (0, 1), or the colour (any number from 0).

    Raises:
        DecodingError: If the solution has another form or is infeasible; the message names node or edge, and graph.
    """
    values = _checked_form(problem, graphs, solution)
    source, target = graphs.edge_index
    of_source, of_target = values[source], values[target]
    if problem == "max_cut":
        return np.bincount(graphs.graph[source[of_source != of_target]], minlength=len(graphs)) // 2
    if problem == "mis":
        both = (of_source & of_target) == 1
        _refuse_edge(graphs, both, "joins two members of the independent set")
        return np.bincount(graphs.graph[values == 1], minlength=len(graphs))
    _refuse_edge(graphs, of_source == of_target, "joins two nodes of one colour")
    width = int(values.max()) + 1
    pairs = np.unique(graphs.graph * width + values)
    return np.bincount(pairs // width, minlength=len(graphs))


def _checked_form(problem: str, graphs: UndirectedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    if solution.shape != (graphs.num_nodes,) or solution.dtype.kind not in "biu":
        raise DecodingError(
            f"the solution is {solution.dtype} {list(solution.shape)}; give integers or booleans [{graphs.num_nodes}], "
            "one per node"
        )
    values = solution.astype(np.int64)
    highest = np.iinfo(np.int32).max if problem == "coloring" else 1
    outside = (values < 0) | (values > highest)
    if outside.any():
        node = int(outside.argmax())
        graph = int(graphs.graph[node])
        raise DecodingError(
            f"node {node - graphs.ptr[graph]} of graph {graph} has the entry {values[node]}; give 0 to {highest}"
        )
    return values


def _refuse_edge(graphs: UndirectedGraphs, broken: NDArray[np.bool_], why: str) -> None:
    if broken.any():
        name = graphs.edge_name(*graphs.edge_index[:, broken.argmax()])
        raise DecodingError(f"the solution is infeasible: {name} {why}; an infeasible solution has no score")
