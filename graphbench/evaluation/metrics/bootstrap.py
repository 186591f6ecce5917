"""Bootstrap replicates of scores: the same sums under random weights of the samples.

In replicate r, sample i counts a Poisson(1) number of times (the Poisson bootstrap: Hanley and MacGibbon, 2006;
Chamandy et al., 2012). The number is a function of a seed, r and i alone. So two models that are scored on the same
samples with the same seed have paired replicates: the spread of their differences comes from their common samples.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError

REPLICATES = 200
"""Number of replicates."""

LEAST_SAMPLES = 20
"""Fewest samples for which replicates are informative about the spread of a score."""

_SAMPLES_PER_STEP = 8192  # samples
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LIMITS = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(20)])

Floats = NDArray[np.float64]


def poisson_weights(seed: int, samples: NDArray[np.int64], replicate: int | None = None) -> Floats:
    """Return how often samples count in every replicate; float64 ``[REPLICATES, S]``.

    The bits come from SplitMix64 (Steele, Lea and Flood, 2014), mixed twice; they do not depend on the version of
    NumPy.

    Args:
        seed: Any whole number from 0 on; its lowest 64 bits count.
        samples: ``[S]``, the numbers of the samples.
        replicate: The only replicate whose weights are returned, ``[1, S]``; None for all.
    """
    chosen = np.arange(REPLICATES) if replicate is None else np.array([replicate])
    with np.errstate(over="ignore"):
        rows = _mixed(np.uint64(seed % 2**64) + (chosen + 1).astype(np.uint64) * _GOLDEN)
        bits = _mixed(rows[:, np.newaxis] + (samples.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.searchsorted(_LIMITS, uniform, side="right").astype(np.float64)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * _FACTORS[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _FACTORS[1]
    return bits ^ (bits >> np.uint64(31))


class Tally:
    """The sums of every replicate.

    Args:
        seed: Seed of the weights.
        keeps: Whether the numbers of the samples are kept instead of sums, for values that are no function of sums;
            :attr:`totals` then has the numbers of the replicates.

    Attributes:
        kept: The numbers of the samples, one array per update, where they are kept.
        samples: Number of samples so far; None once an update did not say which sample its items belong to.
        numbers: int64 ``[S]``, the numbers of the samples of the update that comes next; None for numbers that follow
            the numbers so far.
    """

    def __init__(self, seed: int, *, keeps: bool = False) -> None:
        self.seed, self.keeps = seed, keeps
        self.kept: list[NDArray[np.int64]] = []
        self.samples: int | None = 0
        self.numbers: NDArray[np.int64] | None = None
        self._totals: Floats = np.zeros((REPLICATES, 0))

    def add(self, shares: Floats | None, numbers: NDArray[np.int64] | None = None) -> None:
        """Add the contributions of some samples to the sums.

        Args:
            shares: float64 ``[S, K]``; None where the samples are unknown.
            numbers: ``[S]``, the numbers of the samples; None for :attr:`numbers`.
        """
        if shares is None or self.samples is None:
            self.samples = None
            return
        if not self._totals.shape[1]:
            self._totals = np.zeros((REPLICATES, shares.shape[1]))
        if numbers is None:
            numbers = self.numbers
        if numbers is None:
            numbers = np.arange(self.samples, self.samples + len(shares))
        elif len(numbers) != len(shares):
            self.samples = None
            return
        if self.keeps:
            self.kept.append(numbers)
            self.samples += len(shares)
            return
        for start in range(0, len(shares), _SAMPLES_PER_STEP):
            part = slice(start, start + _SAMPLES_PER_STEP)
            self._totals += poisson_weights(self.seed, numbers[part]) @ shares[part]
        self.samples += len(shares)

    @property
    def totals(self) -> Floats | None:
        """The sums, float64 ``[REPLICATES, K]``; None for too few samples, or where some were unknown."""
        if self.samples is None or self.samples < LEAST_SAMPLES:
            return None
        return np.arange(REPLICATES, dtype=np.float64)[:, np.newaxis] if self.keeps else self._totals


@runtime_checkable
class Replicable(Protocol):
    """Running sums that know the contribution of each sample.

    Attributes:
        tally: Where to add it as well; None for nowhere.
    """

    tally: Tally | None

    def shares(self, update: Any, /) -> Floats | None:
        """Return the contribution of each sample of an update, ``[samples, K]``; None where it is unknown."""

    def like(self, totals: Floats, /) -> Self:
        """Return sums of the same kind with other totals, float64 ``[K]``."""


def tallied(sums: Replicable, update: Any, numbers: NDArray[np.int64] | None = None) -> None:
    """Add an update to the tally of running sums, if they have one; sums call this wherever they take an update."""
    if sums.tally is not None:
        sums.tally.add(sums.shares(update), numbers)


def has_tally(sums: Any) -> bool:
    """Return whether updates of running sums are added to a tally."""
    return getattr(sums, "tally", None) is not None


def start_tallies(parts: Iterable[Any], seed: int) -> None:
    """Give a tally to all running sums that support one, before their first update."""
    for part in parts:
        if isinstance(part, Replicable):
            part.tally = Tally(seed, keeps=getattr(part, "keeps_samples", False))


def replicates(parts: Mapping[str, Any], value: Callable[[Mapping[str, Any]], float]) -> tuple[float, ...]:
    """Return the value of running sums in every replicate; nothing where one of them has no tally, or no value.

    Args:
        parts: Output -> running sums.
        value: Returns the value of such sums.
    """
    totals = {name: part.tally.totals for name, part in parts.items() if has_tally(part)}
    if not parts or totals.keys() != parts.keys() or any(rows is None for rows in totals.values()):
        return ()
    try:
        with np.errstate(all="ignore"):
            values = [
                value({name: parts[name].like(rows[r]) for name, rows in totals.items()}) for r in range(REPLICATES)
            ]
    except (EvaluationError, ZeroDivisionError):
        return ()
    return tuple(float(f"{v:.8g}") for v in values) if np.isfinite(values).all() else ()


def replicate_seed(dataset: str, split: str) -> int:
    """Return the seed of the replicates of a split of a dataset."""
    return int.from_bytes(hashlib.sha256(f"{dataset} {split}".encode()).digest()[:8], "big")
