"""Labels and their graphs: labels that contradict each other, graphs without a label, and graphs joined with labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import GenerationError, StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import find


def root_of(path: Path) -> Path:
    """Return the folder of all datasets, given the file of a split's graphs (``graphbench.data.store.layout``)."""
    return path.parents[3]


def require_agreement(card: Card, split: str, values: Mapping[str, NDArray[Any]]) -> None:
    """Refuse labels of several labellers that contradict each other.

    Args:
        card: The card of a task with labels.
        split: Name of the split.
        values: The labels of graphs by feature, of the same graphs.

    Raises:
        GenerationError: If a labeller finds a contradiction; the message names the first.
    """
    for name in card.labellers if len(card.labellers) > 1 else ():
        agreement = find("labeller", name).agreement
        problems = [] if agreement is None else agreement(values)
        if problems:
            raise GenerationError(
                f"{card.address} {split}: {problems[0]}; one of the labels is wrong, so the dataset cannot be used: "
                "please report it"
            )


def is_unlabelled(card: Card, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return which graphs lack a label of the card's task, because a labeller failed on them.

    Args:
        card: The card of a task with labels.
        values: The features of the graphs by name.

    Returns:
        bool, one value per graph.
    """
    failed = [np.asarray(values[find("labeller", name).failed]) for name in card.labellers]
    unlabelled: NDArray[np.bool_] = np.any([mask != 0 for mask in failed], axis=0)
    return unlabelled


def has_edge_labels(schema: Schema) -> bool:
    """Return whether the labels of a schema include labels of edges."""
    return any(f.location is Location.EDGE for f in schema.features)


def with_labels(card: Card, labeller: str, graphs: Samples, labels: Samples) -> Samples:
    """Return graphs with their labels, in the same order; surplus labels at the end are ignored.

    Args:
        card: The card.
        labeller: The labeller that made the labels.
        graphs: The graphs.
        labels: The labels of as many graphs, or of more.

    Raises:
        StoreError: If the labels are of other graphs.
    """
    count, schema = len(graphs), card.label_schemas[labeller]
    edges_differ = has_edge_labels(schema) and not np.array_equal(labels.num_edges[:count], graphs.num_edges)
    if edges_differ or not np.array_equal(labels.num_nodes[:count], graphs.num_nodes):
        raise StoreError(f"the labels of {card.address} belong to other graphs; delete their folder to rebuild them")
    values = labels.part(schema, 0, count).values
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, {**graphs.values, **values}, graphs.hints)
