"""What a limit means for a dataset: fewer samples, or smaller ones where a split is one large graph."""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.catalog.cards import Card
from graphbench.data.domain import find_generator

Limit = int | Mapping[str, int] | None


def apply_limit(card: Card, limit: Limit) -> tuple[Card, Limit]:
    """Return the card under a limit, and the limit that remains for the number of samples.

    A limit is a number of samples, unless the generator names the parameter that it replaces
    (:attr:`~graphbench.data.samples.Generator.limited`): then the card has smaller samples, which have another
    fingerprint and lie in another folder, and no limit remains.

    Args:
        card: The card.
        limit: For all splits, or by split; None for no limit.
    """
    parameter = None if limit is None else find_generator(card.generator).limited
    if parameter is None or limit is None:
        return card, limit
    by_split = dict.fromkeys(card.all_splits, limit) if isinstance(limit, int) else limit
    return card.with_limited(parameter, by_split), None
