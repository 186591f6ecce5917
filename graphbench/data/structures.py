"""Structures: graphs that all samples of a dataset share, built from parameters and never stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.core.validation import explain
from graphbench.data.compacting import compact
from graphbench.data.domain import find_generator, find_structure
from graphbench.data.samples import Samples
from graphbench.data.structure import graph_problem


@dataclass(frozen=True)
class Structure:
    """A registered structure.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        parameters: Pydantic model (unknown keys forbidden) that validates its parameters.
        build: ``parameters -> samples``: a pure function; one graph, with the values of its fixed features.
    """

    name: str
    parameters: type[BaseModel]
    build: Callable[[Any], Samples]


def build_structure(card: Card) -> Samples:
    """Return the graph that all samples of a card with a series share, checked against the card.

    Raises:
        CardError: If a parameter is unknown or out of range, or the graph does not fit the card.
    """
    assert card.series is not None
    structure = find_structure(card.series.structure)
    try:
        parameters = structure.parameters.model_validate(card.series.parameters)
    except ValidationError as error:
        raise CardError(f"{card.path} ({card.id}, series): {explain(error, structure.parameters)}") from error
    built = structure.build(parameters)
    fixed = tuple(f for f in card.features if f.name in card.series.fixed)
    own = card.model_copy(update={"features": fixed, "series": None, "packed": {}})
    problem = "" if {f.name for f in fixed} == set(built.values) else f"it gives {', '.join(sorted(built.values))}"
    problem = problem or ("" if len(built) == 1 else f"it gives {len(built)} graphs") or graph_problem(own, built)
    if problem:
        raise CardError(f"{card.path} ({card.id}): the structure {structure.name} does not fit the card: {problem}")
    return compact(own, built, find_generator(card.generator))
