"""Which dataset an update is on, where one model is trained on several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from graphbench.core.errors import ConfigError

Mixture = Literal["turns", "proportional"] | dict[str, Annotated[float, Field(allow_inf_nan=True)]]


class MixtureSchedule:
    """A fixed order of datasets: update ``t`` is on the one that is furthest behind its share; ties go in order.

    With equal weights that is one after the other, in turn.

    Args:
        weights: Dataset -> weight, above 0, in the order of ties.
        start: Number of the first update.
    """

    def __init__(self, weights: Mapping[str, float], start: int = 0) -> None:
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items()}
        self.counts = dict.fromkeys(weights, 0)
        self.step = 0
        self._equal = len(set(weights.values())) == 1
        if self._equal:  # the counts of any update are known at once
            names = list(weights)
            self.step = start
            self.counts = {name: (start - i + len(names) - 1) // len(names) for i, name in enumerate(names)}
        else:
            for _ in range(start):
                self.take()

    def take(self) -> str:
        """Return the dataset of the next update."""
        self.step += 1
        names = list(self.shares)
        if self._equal:
            chosen = names[(self.step - 1) % len(names)]
        else:
            behind = {name: share * self.step - self.counts[name] for name, share in self.shares.items()}
            chosen = max(names, key=lambda name: round(behind[name], 9))
        self.counts[chosen] += 1
        return chosen


def mixture_weights(mixture: Mixture, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return dataset -> weight of its updates.

    Args:
        mixture: ``turns`` (all alike), ``proportional`` (to the number of training samples), or dataset -> weight.
        sizes: Dataset -> training samples, in the order of the run.

    Raises:
        ConfigError: If a mapping lacks a dataset, names one that is not trained on, or has a weight that is no positive
            number.
    """
    if mixture == "turns":
        return dict.fromkeys(sizes, 1.0)
    if mixture == "proportional":
        return {name: float(size) for name, size in sizes.items()}
    differing: Sequence[str] = sorted(set(mixture) ^ set(sizes))
    if differing:
        raise ConfigError(f"training.mixture names {', '.join(mixture)}, the run trains on {', '.join(sizes)}")
    for name, weight in mixture.items():
        if not 0 < weight < math.inf:
            raise ConfigError(f"training.mixture: the weight of {name} is {weight:g}; give a finite number above 0")
    return {name: float(mixture[name]) for name in sizes}
