"""Comparisons of scores on the known and the sealed draw, and of true and shuffled weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphbench.evaluation.score import Score

_QUANTILE = 2.576  # of the normal distribution: an honest entry is refused by chance in 1 of 100 cases
_LEVEL = 0.95


def interval(score: Score) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval over test samples; None twice for a score without replicates."""
    if not score.replicates:
        return None, None
    ends = np.quantile(score.replicates, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(ends[0]), float(ends[1])


def _deviation(replicates: Sequence[float]) -> float:
    return float(np.std(replicates, ddof=1)) if len(replicates) > 1 else math.nan


def why_apart(before: Score, now: Score, where: str) -> str:
    """Return why scores on the sealed draw and on another one differ by more than chance; empty if they do not."""
    sign = 1.0 if now.higher_is_better else -1.0
    lost = sign * (before.primary - now.primary)
    spread = math.hypot(_deviation(before.replicates), _deviation(now.replicates))
    if math.isnan(spread):
        spread = 0.01 * max(abs(before.primary), 1e-9)
    if abs(lost) <= _QUANTILE * spread + 1e-9:
        return ""
    told = f"{now.primary_name} is {now.primary:.4g} on the sealed draw and {before.primary:.4g} on {where}"
    if lost < 0:
        return f"{told}, a gain that chance does not allow for samples of one distribution"
    errors = f", a loss of {lost / spread:.1f} standard errors" if spread > 0 else ""
    return f"{told}{errors}: the weights know the samples of {where}"


def are_apart(stated: float, score: Score, replicates: Sequence[float]) -> bool:
    """Return whether a stated score of other samples is farther from a score than chance explains."""
    spread = math.hypot(_deviation(replicates), _deviation(score.replicates))
    if math.isnan(spread):
        return not math.isclose(stated, score.primary, rel_tol=0.01)
    return abs(stated - score.primary) > _QUANTILE * spread + 1e-9


def is_better(true: Score, scrambled: Score) -> bool:
    """Return whether the true weights are better than shuffled ones, by the paired bootstrap where there is one."""
    sign = 1.0 if true.higher_is_better else -1.0
    gain = sign * (true.primary - scrambled.primary)
    if not true.replicates or not scrambled.replicates:
        return gain > 0.01 * max(abs(true.primary), 1e-9)
    gains = sign * (np.asarray(true.replicates) - np.asarray(scrambled.replicates))
    return gain > 0 and float(np.mean(gains <= 0)) < (1 - _LEVEL) / 2
