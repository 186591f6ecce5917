"""Graphs that callers hand in: PyG batches, single graphs and lists of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.catalog.links import QUERIES
from graphbench.core.errors import EvaluationError
from graphbench.data.components.domain import find


def is_graphs(value: Any) -> bool:
    """Return whether a value is a PyG ``Batch`` or ``Data``, or a list of ``Data``."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(hasattr(graph, "edge_index") for graph in value)
    return hasattr(value, "edge_index")


def refuse_unlabelled(value: Any, labellers: Sequence[str]) -> None:
    """Refuse graphs on which a labeller failed, whose targets are no labels.

    Args:
        value: PyG graphs or a batch; anything else is accepted.
        labellers: Names of the labellers behind the targets; they are looked up once there are graphs to check.

    Raises:
        EvaluationError: If there are any.
    """
    if not labellers or not is_graphs(value):
        return
    graphs = value if isinstance(value, (list, tuple)) else [value]
    for name in (find("labeller", labeller).failed for labeller in labellers):
        failed = sum(int((mask != 0).sum()) for graph in graphs if (mask := getattr(graph, name, None)) is not None)
        if failed:
            raise EvaluationError(
                f"{failed} of the graphs have no label, as the labeller failed on them ({name} is 1); leave them out "
                f"with Loader(..., pre_filter=lambda data: data.{name}.item() == 0)"
            )


def one_batch(graphs: Any) -> Any:
    """Return a PyG ``Batch`` or ``Data``; a list of ``Data`` becomes a ``Batch``."""
    if not isinstance(graphs, (list, tuple)):
        return graphs
    from torch_geometric.data import Batch

    return Batch.from_data_list(list(graphs))


def item_owners(graphs: Any, location: Location) -> NDArray[np.int64]:
    """Return the graph of every node, edge (column of ``edge_index``) or graph of a batch, int64 ``[items]``.

    Candidate pairs belong to their query: it is what metrics rank them within.

    Raises:
        EvaluationError: If an edge joins two graphs.
    """
    if location is Location.PAIR:
        queries: NDArray[np.int64] = graphs[QUERIES].detach().cpu().numpy()
        return queries
    nodes = int(graphs.num_nodes or 0)
    owner = getattr(graphs, "batch", None)
    owners = np.zeros(nodes, np.int64) if owner is None else owner.detach().cpu().numpy()
    if location is Location.NODE:
        return owners
    if location is Location.EDGE:
        ends = owners[graphs.edge_index.detach().cpu().numpy()]
        if (ends[0] != ends[1]).any():
            raise EvaluationError("an edge of the batch joins nodes of two graphs; check how the batch was made")
        edge_owners: NDArray[np.int64] = ends[0]
        return edge_owners
    count = getattr(graphs, "num_graphs", None)
    return np.arange(1 if count is None else int(count))
