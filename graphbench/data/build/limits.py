"""The effect of a limit on a dataset: fewer samples, or a smaller graph where a split is one large graph."""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.data.components.domain import find

Limit = int | Mapping[str, int] | None


def apply_limit(card: Card, limit: Limit) -> tuple[Card, Limit]:
    """Return the card under a limit, and the limit that remains for the number of samples.

    A limit is a number of samples, unless the generator names the parameter that it replaces
    (:attr:`~.generators.Generator.limited`): then the card has smaller samples, which have another
    fingerprint and lie in another folder, and no limit remains.

    Args:
        card: The card.
        limit: For all splits, or by split; None for no limit.

    Raises:
        CardError: If the generator refuses samples of that size.
    """
    if limit is None:
        return card, None
    generator = find("generator", card.generator)
    parameter = generator.limited
    if parameter is None:
        return card, limit
    by_split = dict.fromkeys(card.all_splits, limit) if isinstance(limit, int) else limit
    limited = card.with_limited(parameter, by_split)
    for split, most in by_split.items():
        try:
            generator.parse(limited, split)
        except CardError as error:
            prefix = f"limit={most} is refused, as a limit of {card.id} is its number of {parameter}"
            raise CardError(f"{prefix}: {error}") from error
    return limited, None


def limited_parameter(card: Card) -> str | None:
    """Return the parameter that a limit of a dataset replaces, or None where it is the number of samples.

    A limit is also the number of samples if the generator is unknown here, as for data that a program handed over.
    """
    try:
        return find("generator", card.generator).limited
    except CardError:
        return None
