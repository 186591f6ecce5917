"""Families of formulas with shares, as cards write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field

Share = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Weight of a family; shares need not add up to 1."""


class Shared(Protocol):
    """A family with a share."""

    @property
    def share(self) -> float:
        """Weight of the family."""


F = TypeVar("F", bound=Shared)


def read_families(value: Any) -> Any:
    """Read ``families: {<family>: {share: .., <parameters>}}``, the notation of cards.

    Returns:
        The parameters with a list ``[{share: .., parameters: {family: .., ..}}, ..]`` as their ``families``; what is
        not in the notation is returned as it is.

    Raises:
        ValueError: If a family has no share.
    """
    families = value.get("families") if isinstance(value, Mapping) else None
    if not isinstance(families, Mapping):
        return value
    shares = []
    for name, spec in families.items():
        if not isinstance(spec, Mapping) or "share" not in spec:
            raise ValueError(f"families.{name} is {spec!r}; give its share and its parameters")
        rest = {key: entry for key, entry in spec.items() if key != "share"}
        shares.append({"share": spec["share"], "parameters": {"family": name, **rest}})
    return {**value, "families": shares}


def chosen(families: Sequence[F], number: float) -> F:
    """Return the family that a number from [0, 1) falls on, each family taking its share."""
    total = sum(family.share for family in families)
    for family in families:
        number -= family.share / total
        if number < 0:
            return family
    return families[-1]
