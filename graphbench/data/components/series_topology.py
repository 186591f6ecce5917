"""The graph that all samples of a series share."""

from __future__ import annotations

from pydantic import ValidationError

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.core.validation import explain
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import find_structure


def graph_of_series(card: Card) -> Samples:
    """Return the graph that all samples of a card with a series share, as its structure builds it.

    Raises:
        CardError: If the structure does not exist, or a parameter is unknown or out of range.
    """
    assert card.series is not None
    structure = find_structure(card.series.structure)
    try:
        parameters = structure.parameters.model_validate(card.series.parameters)
    except ValidationError as error:
        raise CardError(f"{card.path} ({card.id}, series): {explain(error, structure.parameters)}") from error
    return structure.build(parameters)
