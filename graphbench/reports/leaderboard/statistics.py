"""Intervals of mean scores, tests of the difference of two models, and the ranks that follow from them.

Two sources of chance are tested apart. Over seeds, of models with at least three runs that differ: Student's t-test of
the paired differences where two models have the same seeds, Welch's test elsewhere. Over test samples: the bootstrap,
whose replicates are paired because the weights of the graphs in replicate *r* are the same for all models. Where both
tests are available a difference must pass both, so the larger p-value counts (an intersection-union test); p-values of
all pairs in a table are corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95  # of intervals
ALPHA = 0.05  # chance that a table separates any two models that do not differ
LEAST_RUNS = 3  # fewer seeds say next to nothing of the spread over seeds
_ROUNDING = 1e-9  # standard deviations below this part of the values are rounding errors
STUDENT = "student"
BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean score.

    Attributes:
        low: Lower end.
        high: Upper end.
        method: ``student``, over seeds; or ``bootstrap``, over test samples.
    """

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of one model's score.

    Attributes:
        seeds: Seed of every run.
        values: Score of every run, in the order of the seeds.
        replicates: Mean over the runs of the score under every bootstrap replicate; empty where there is no bootstrap.
    """

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    replicates: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return float(np.mean(self.values))

    @property
    def varies(self) -> bool:
        """Whether there are enough runs, and they differ: a learner that no seed changes has one run, however often."""
        spread = float(np.std(self.values)) if len(self.values) >= LEAST_RUNS else 0.0
        return spread > _ROUNDING * abs(self.mean)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tests of one pair of models.

    Attributes:
        seeds_test: ``paired`` or ``welch``; empty where a model has too few runs, or none that differ.
        seeds_p: Its two-sided p-value; None without it.
        bootstrap_p: Two-sided p-value of the paired bootstrap; None where a model has no replicates.
        p: The larger of both, corrected by Holm's method; None where no test is available.
    """

    seeds_test: str
    seeds_p: float | None
    bootstrap_p: float | None
    p: float | None

    @property
    def differs(self) -> bool:
        """Whether the models are separated."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True, slots=True)
class Rank:
    """The places that a model may have.

    Attributes:
        best: One more than the number of models that are significantly better.
        worst: The number of models minus those that are significantly worse.
    """

    best: int
    worst: int

    @property
    def middle(self) -> float:
        """Mean of both; over all models it sums up to the sum of the places."""
        return (self.best + self.worst) / 2


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of models, and how each compares with the one of the best mean.

    Attributes:
        ranks: One per model, in the order given.
        best: Position of the model with the best mean.
        against_best: One per model; None for the best itself.
        pairs: Number of pairs that could be tested.
        tested: Whether each model could be tested against any other.
    """

    ranks: tuple[Rank, ...]
    best: int
    against_best: tuple[Comparison | None, ...]
    pairs: int
    tested: tuple[bool, ...]


def interval_of(sample: Sample, lowest: float = -np.inf, highest: float = np.inf) -> Interval | None:
    """Return the 95 % interval of a mean score, within the range of the metric, or None.

    From three runs on that differ it is Student's t interval over the seeds. For fewer it goes from the 2.5 % to the
    97.5 % quantile of the bootstrap replicates; without replicates there is none.

    Args:
        sample: The scores.
        lowest: Smallest value of the metric.
        highest: Largest value of the metric.
    """
    tail = (1 - LEVEL) / 2
    if sample.varies:
        from scipy.special import stdtrit

        count = len(sample.values)
        half = float(stdtrit(count - 1, 1 - tail)) * float(np.std(sample.values, ddof=1)) / count**0.5
        return Interval(max(sample.mean - half, lowest), min(sample.mean + half, highest), STUDENT)
    if sample.replicates:
        low, high = np.quantile(sample.replicates, [tail, 1 - tail])
        return Interval(float(low), float(high), BOOTSTRAP)
    return None


def rank(samples: Sequence[Sample], higher_is_better: bool) -> Ranking:
    """Return the ranks of at least one model.

    A model's rank is one more than the number of models that are significantly better: better in the mean, and
    separated by the tests.
    """
    means = np.array([sample.mean for sample in samples])
    goodness = means if higher_is_better else -means
    seeds_p, bootstrap_p = seed_p_values(samples), bootstrap_p_values(samples)
    raw = np.fmax(seeds_p, bootstrap_p)  # the larger one; the other where one is nan
    p = _holm_of_pairs(raw)
    separated = p <= ALPHA
    better = (separated & (goodness[None, :] > goodness[:, None])).sum(axis=1)
    worse = (separated & (goodness[None, :] < goodness[:, None])).sum(axis=1)
    first = int(np.argmax(goodness))
    against = tuple(
        None if i == first else _comparison(samples[i], samples[first], seeds_p, bootstrap_p, p, i, first)
        for i in range(len(samples))
    )
    ranks = tuple(Rank(1 + int(b), len(samples) - int(w)) for b, w in zip(better, worse, strict=True))
    tested = tuple(bool(row.any()) for row in np.isfinite(raw))
    return Ranking(ranks, first, against, int(np.isfinite(raw).sum()) // 2, tested)


def _comparison(
    one: Sample, other: Sample, seeds_p: Floats, bootstrap_p: Floats, p: Floats, i: int, j: int
) -> Comparison:
    known = _known(seeds_p[i, j])
    test = "" if known is None else "paired" if one.seeds == other.seeds else "welch"
    return Comparison(test, known, _known(bootstrap_p[i, j]), _known(p[i, j]))


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def seed_p_values(samples: Sequence[Sample]) -> Floats:
    """Return the two-sided p-value of every pair over seeds; float64 ``[models, models]``, nan where not testable.

    The test is Student's, of the paired differences, for models with the same seeds; Welch's for others. Models with
    fewer than three runs, or whose runs are all alike, and paired differences that are all equal are not testable.
    """
    p = np.full((len(samples), len(samples)), np.nan)
    several = [i for i, sample in enumerate(samples) if sample.varies]
    counts = np.array([len(samples[i].values) for i in several], dtype=np.float64)
    means = np.array([samples[i].mean for i in several])
    variances = np.array([np.var(samples[i].values, ddof=1) for i in several])
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, i in enumerate(several):
        groups.setdefault(samples[i].seeds, []).append(place)
    for row, i in enumerate(several):
        squares = variances / counts
        total = squares + squares[row]
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = total**2 / (squares**2 / (counts - 1) + squares[row] ** 2 / (counts[row] - 1))
        difference = means - means[row]
        mates = groups[samples[i].seeds]
        paired = np.array([samples[several[m]].values for m in mates]) - np.array(samples[i].values)
        total[mates] = np.var(paired, axis=1, ddof=1) / counts[row]
        freedom[mates] = counts[row] - 1
        difference[mates] = paired.mean(axis=1)
        scale = np.maximum(np.abs(means), abs(means[row]))
        found = _two_sided(difference, np.sqrt(total), scale, partial(_student_tails, freedom))
        p[i, several] = found
        p[i, i] = np.nan
    return p


def _student_tails(freedom: Floats, t: Floats) -> Floats:
    """Return the probability of at least a distance ``t`` from 0 under Student's distribution."""
    from scipy.special import stdtr

    return np.asarray(2 * stdtr(freedom, -t), dtype=np.float64)


def _normal_tails(z: Floats) -> Floats:
    """Return the probability of at least a distance ``z`` from 0 under the normal distribution."""
    from scipy.special import ndtr

    return np.asarray(2 * ndtr(-z), dtype=np.float64)


def bootstrap_p_values(samples: Sequence[Sample]) -> Floats:
    """Return the two-sided p-value of every pair over test samples; float64 ``[models, models]``, nan where untestable.

    The difference of the means is divided by the standard deviation of its replicates and compared with the normal
    distribution.
    """
    p = np.full((len(samples), len(samples)), np.nan)
    groups: dict[int, list[int]] = {}
    for i, sample in enumerate(samples):
        if len(sample.replicates) > 1:
            groups.setdefault(len(sample.replicates), []).append(i)
    for own in groups.values():
        replicates = np.array([samples[i].replicates for i in own])
        means = np.array([samples[i].mean for i in own])
        for row, i in enumerate(own):
            spread = np.std(replicates - replicates[row], axis=1, ddof=1)
            scale = np.maximum(np.abs(means), abs(means[row]))
            p[i, own] = _two_sided(means - means[row], spread, scale, _normal_tails)
            p[i, i] = np.nan
    return p


def _two_sided(difference: Floats, error: Floats, scale: Floats, tail: Callable[[Floats], Floats]) -> Floats:
    """Return p-values of differences with standard errors; nan where a difference has no spread, 1 where it is 0.

    Equal differences say nothing of the error of their mean: scores of few samples are steps that are often equal.
    """
    constant = error <= _ROUNDING * scale
    with np.errstate(invalid="ignore", divide="ignore"):
        found = tail(np.abs(difference) / np.where(constant, 1.0, error))
    same = np.abs(difference) <= _ROUNDING * scale
    return np.where(constant, np.where(same, 1.0, np.nan), found)


def holm(p: Floats) -> Floats:
    """Return p-values corrected by Holm's step-down method (1979), in the order given; float64 ``[pairs]``."""
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    corrected = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    result = np.empty_like(corrected)
    result[order] = corrected
    return result


def _holm_of_pairs(raw: Floats) -> Floats:
    """Return a symmetric matrix of p-values with every pair corrected once; nan stays."""
    rows, columns = np.triu_indices(len(raw), k=1)
    known = np.isfinite(raw[rows, columns])
    rows, columns = rows[known], columns[known]
    corrected = np.full_like(raw, np.nan)
    corrected[rows, columns] = corrected[columns, rows] = holm(raw[rows, columns])
    return corrected
