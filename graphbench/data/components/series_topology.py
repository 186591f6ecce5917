"""The graph that all samples of a series share."""

from __future__ import annotations

from pydantic import ValidationError

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.core.validation import explain
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import find


def graph_of_series(card: Card) -> Samples:
    """Return the graph that all samples of a card with a series share, as its topology builds it.

    Raises:
        CardError: If the topology does not exist, or a parameter is unknown or out of range.
    """
    assert card.series is not None
    topology = find("topology", card.series.topology)
    try:
        parameters = topology.parameters.model_validate(card.series.parameters)
    except ValidationError as error:
        raise CardError(f"{card.path} ({card.id}, series): {explain(error, topology.parameters)}") from error
    return topology.build(parameters)
