"""Circuits by search without a model: every candidate of a choice is played out, and the cheapest one is taken.

The choices and the play-outs are those of :mod:`~.construction`, in which policies are trained as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.environments import CircuitBuilding

_TOGETHER = 256  # circuits that are built at once


def circuits_by_search(texts: Sequence[str], *, variants: Sequence[int] = (0,), rounds: int = 1) -> list[Aig]:
    """Return a circuit for every truth table, the smallest of several; it does not depend on the other tables.

    Args:
        texts: Truth tables as text, of at most 10 inputs.
        variants: A circuit is built for each of these numbers. Variant 0 has the inputs in their order, every other
            one in a random order that depends on the table and the number.
        rounds: Play-outs per candidate.

    Raises:
        CircuitError: If a table has more inputs.
        ValueError: If there are no variants.
    """
    if not variants:
        raise ValueError("variants is empty; give at least one number, such as 0")
    step = max(1, _TOGETHER // len(variants))
    return [circuit for i in range(0, len(texts), step) for circuit in _smallest(texts[i : i + step], variants, rounds)]


def _smallest(texts: Sequence[str], variants: Sequence[int], rounds: int) -> list[Aig]:
    building = CircuitBuilding([text for text in texts for _ in variants], [*variants] * len(texts))
    while building.advance():
        choices = building.choices()
        building.choose(choices, building.play_outs(choices, choices.options > 0, rounds).argmin(1).astype(np.int64))
    circuits, costs = building.structures()
    best = costs.reshape(len(texts), len(variants)).argmin(1)
    return [circuits[i * len(variants) + j] for i, j in enumerate(best.tolist())]
