"""The card behind the argument of an adapter: an id, a card, a split or ``Splits``."""

from __future__ import annotations

from typing import Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError


def card_of(of: Any) -> Card:
    """Return the card of a dataset, given its id or alias, the card itself, a split or ``Splits``.

    Raises:
        ArgumentError: If it is none of these.
        UnknownDataset: If no dataset has that name.
    """
    if isinstance(of, Card):
        return of
    if isinstance(of, str):
        from graphbench.catalog.names import card

        return card(of)
    attribute = getattr(of, "card", None)
    if isinstance(attribute, Card):
        return attribute
    raise ArgumentError(
        f"the dataset is given as {of!r:.80}; give its id such as 'algoreas/mst_easy', its card, a split or the splits"
    )


def card_of_rows(card: Card) -> Card:
    """Return the card whose features are the columns of a dataset's tables: of a series the stored states."""
    return card if card.series is None else card.graphs


def card_of_shared_graph(card: Card) -> Card:
    """Return the card whose features are those of the graph that all samples of a card with a series share."""
    assert card.series is not None
    return card.graphs.with_features(f for f in card.features if f.name in card.series.fixed)
