"""Batches of graphs without their labels, for models that must not see them."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Batch, Data

from graphbench.catalog.cards import Card
from graphbench.catalog.links import PAIRS, QUERIES

_STRUCTURE = ("edge_index", "batch", "ptr", "num_nodes", "x", "edge_attr", PAIRS, QUERIES)
_GRAPHS = "num_graphs"


def fields_without_labels(batch: Any, card: Card) -> dict[str, Any] | None:
    """Return the fields of a batch that a model may read: structure and inputs; None if it is no batch of graphs.

    Args:
        batch: A batch of :meth:`.GraphDataset.batches`.
        card: The card of its dataset.

    Returns:
        Name -> tensor, number or list of strings, without outputs, hints, meta features and ids of samples; and
        ``num_graphs``.
    """
    if not isinstance(batch, Data):
        return None
    kept = {*_STRUCTURE, *(feature.name for feature in card.inputs)}
    fields = {name: value for name, value in batch.to_dict().items() if name in kept}
    return {**fields, _GRAPHS: int(batch.num_graphs)}


def batch_of_fields(fields: dict[str, Any]) -> Batch:
    """Return a PyG ``Batch`` of the fields that :func:`fields_without_labels` returned."""
    batch = Batch(_base_cls=Data)
    for name, value in fields.items():
        if name != _GRAPHS:
            batch[name] = value
    batch._num_graphs = fields[_GRAPHS]
    return batch
