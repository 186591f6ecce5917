"""Which datasets can be trained on in parts of one large graph. This module loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.catalog.features import Location, Stage, select

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def why_not_in_parts(card: Card) -> str:
    """Return why a dataset cannot be trained on in parts, as far as its card tells; empty if it can."""
    reasons = {
        "its graphs are undirected": not card.directed,
        "an output is not of nodes": any(f.location is not Location.NODE for f in select(card.features, Stage.OUTPUT)),
        "its graphs are representations or complete": card.representation is not None
        or card.complete
        or card.series is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
