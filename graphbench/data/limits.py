"""What a limit means for a dataset: fewer samples, or smaller ones where a split is one large graph."""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
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

    Raises:
        CardError: If the generator refuses samples of that size.
    """
    generator = None if limit is None else find_generator(card.generator)
    parameter = None if generator is None else generator.limited
    if generator is None or parameter is None or limit is None:
        return card, limit
    by_split = dict.fromkeys(card.all_splits, limit) if isinstance(limit, int) else limit
    limited = card.with_limited(parameter, by_split)
    for split, most in by_split.items():
        try:
            generator.parse(limited, split)
        except CardError as error:
            what = f"limit={most} is refused, as a limit of {card.id} is its number of {parameter}"
            raise CardError(f"{what}: {error}") from error
    return limited, None
