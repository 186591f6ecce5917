"""What the rows of a feature stand for in a batch: their graphs and their number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphbench.catalog.features import Feature, Kind, Location


def item_graphs(batch: Any, location: Location) -> Tensor:
    """Return the graph number of every node, edge (column of ``edge_index``) or graph of a batch, int64 [items]."""
    owner: Tensor = batch.batch
    if location is Location.NODE:
        return owner
    if location is Location.EDGE:
        return owner[batch.edge_index[0]]
    return torch.arange(batch.num_graphs, device=owner.device)


def loss_items(batch: Any, feature: Feature, kind: str = "predict") -> int:
    """Return over how many items the loss of a feature averages: its rows, or the graphs.

    The graphs for ``mask_one``, and of tasks of the kind ``solve``, whose losses are of whole solutions.
    """
    if kind == "solve" or feature.kind is Kind.MASK_ONE or feature.location is Location.GRAPH:
        return int(batch.num_graphs)
    return int(batch.edge_index.shape[1] if feature.location is Location.EDGE else batch.batch.shape[0])
