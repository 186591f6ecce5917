"""Generated circuits given as PyG graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphbench.core.errors import EvaluationError
from graphbench.domains.chip_design.graph_kernels import GATES
from graphbench.domains.chip_design.submissions import MISSING, UNREADABLE, Submission

_NO_GATE = -1
_Arrays = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]


def submission_of_graphs(graphs: Iterable[Data | None]) -> Submission:
    """Read circuits that are given as PyG graphs, one per function; None where there is no circuit.

    A graph has ``edge_index`` ``[2, E]`` from driver to driven. The kinds of its nodes are ``gate`` ``[N]`` or, without
    it, ``x`` ``[N, 3]`` or ``[N, 4]``, one-hot (input, AND, output, constant false). Inversions of its arcs are
    ``inverted`` ``[E]`` or, without it, ``edge_attr`` ``[E]`` or ``[E, 1]``. A graph without these fields, or with
    fields of other shapes, counts as one that cannot be read; it raises no error.
    """
    nothing = (np.empty((0, 2), np.int64), np.empty(0), np.empty(0))
    parts: list[_Arrays] = []
    faults, details = {}, {}
    for i, graph in enumerate(graphs):
        found = nothing
        if graph is None:
            faults[i] = MISSING
        else:
            try:
                found = _arrays_of(graph)
            except EvaluationError as error:
                faults[i], details[i] = UNREADABLE, str(error)
        parts.append(found)
    joined = [np.concatenate([nothing[k], *(part[k] for part in parts)]) for k in range(3)]
    nodes = np.array([len(gates) for _, gates, _ in parts], np.int64)
    arcs = np.array([len(edges) for edges, _, _ in parts], np.int64)
    read = Submission.of_graphs(nodes, arcs, joined[0].astype(np.int64), joined[1], joined[2])
    own = read.faults.copy()
    for i, fault in faults.items():
        own[i] = fault
    return replace(read, faults=own, details=details)


def _arrays_of(graph: Data) -> _Arrays:
    """Return edges ``[E, 2]``, gates ``[N]`` and inversions ``[E]`` of one graph.

    Raises:
        EvaluationError: If a field is missing or has another shape.
    """
    edges = _numbers(graph, "edge_index")
    if edges.ndim != 2 or len(edges) != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise EvaluationError(f"edge_index is {edges.dtype} {list(edges.shape)}, not integers [2, E]")
    if "gate" in graph:
        gates = _numbers(graph, "gate")
    else:
        x = _numbers(graph, "x")
        if x.ndim != 2 or x.shape[1] not in (len(GATES) - 1, len(GATES)):
            raise EvaluationError(f"x has the shape {list(x.shape)}, not [N, 3] or [N, 4]; or give gate [N]")
        one_hot = ((x == 0) | (x == 1)).all(axis=1) & (x.sum(axis=1) == 1)
        gates = np.where(one_hot, x.argmax(axis=1), _NO_GATE)
    inverted = _numbers(graph, "inverted" if "inverted" in graph else "edge_attr")
    if inverted.ndim == 2 and inverted.shape[1] == 1:
        inverted = inverted[:, 0]
    if gates.ndim != 1 or inverted.shape != (edges.shape[1],):
        raise EvaluationError(
            f"gate has the shape {list(gates.shape)} and the inversions {list(inverted.shape)}, not [N] and "
            f"[{edges.shape[1]}]"
        )
    return edges.T.astype(np.int64), gates.astype(np.float64), inverted.astype(np.float64)


def _numbers(graph: Data, name: str) -> NDArray[Any]:
    if name not in graph:
        raise EvaluationError(f"the graph has no {name}")
    value = graph[name]
    found = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if found.dtype.kind not in "biuf":
        raise EvaluationError(f"{name} is {found.dtype}, not numbers")
    return found
