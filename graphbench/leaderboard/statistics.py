"""Intervals of mean scores, tests of the difference of two models, and the ranks that follow from them.

A difference of two models has two sources of chance. The first source is the seed of training: a model that draws
random numbers has runs with the seeds 0, 1, 2, ... The second source is the draw of the test samples: the
paired bootstrap measures it, because the weights of the samples in replicate *r* are the same for all models. One test
covers both sources (:func:`p_value`): it adds the variances, each weighted by the quantile of Student's distribution
that its degrees of freedom ask for, and holds its level for all variances (Mickey and Brown, Annals of
Mathematical Statistics 37, 1966).

Nobody gains by choosing runs. The runs of a learner count in the order of their seeds, from seed 0 up to the first
missing seed. Two models are compared after 3, 5, 10, 20, ... common seeds, and each of these looks has a share of the
level (2/3, 2/9, 2/27, ...), as in a group-sequential trial. So a further run of a model never takes a difference of
this model back, removing a run never creates one, and the level holds for anyone who adds seeds until a test succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import numpy as np
from numpy.typing import NDArray

from graphbench.records.aggregates import student_half_width

Floats = NDArray[np.float64]

LEVEL = 0.95  # of intervals
ALPHA = 0.05  # chance that a table separates any two models that do not differ
LEAST_RUNS = 3  # fewer seeds say next to nothing of the spread over seeds
_FIRST_LOOKS = (LEAST_RUNS, 5)  # numbers of seeds; every later look has twice the seeds of the look before
_SHARE_OF_REST = 2 / 3  # every look gets this share of the level that earlier looks left
_LEAST_P = 1e-15  # smaller p-values are given as this
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
    """The runs of one model on one split.

    Attributes:
        seeds: Seed of every run, ascending.
        values: Score of every run, in the order of the seeds.
        replicates: For every run the score under every bootstrap replicate; a run without bootstrap has an empty tuple.
            No runs at all stand for runs without bootstrap.
        deterministic: Whether no random number has any influence on the score: solvers, closed forms, neighbours.
        test_samples: Number of test samples behind the scores; None if no record gives the number.
    """

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    replicates: tuple[tuple[float, ...], ...] = ()
    deterministic: bool = False
    test_samples: int | None = None

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return float(np.mean(self.values))

    @property
    def varies(self) -> bool:
        """Whether there are enough runs for an interval over seeds, and their scores differ."""
        spread = float(np.std(self.values)) if len(self.values) >= LEAST_RUNS else 0.0
        return spread > _ROUNDING * abs(self.mean)

    @property
    def mean_replicates(self) -> tuple[float, ...]:
        """Mean of the bootstrap replicates over the runs; empty where a run has none, or another number of them."""
        return tuple(_mean_replicates(self.replicates, len(self.values)).tolist())

    @property
    def counted(self) -> int:
        """Number of runs that count in tests: 1 if deterministic, else the runs of seed 0 to the first missing seed."""
        if self.deterministic:
            return min(1, len(self.values))
        return next(seed for seed in count() if seed >= len(self.seeds) or self.seeds[seed] != seed)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The test of one pair of models.

    Attributes:
        seeds: Number of common seeds after which the difference was clearest; 1 for two deterministic models; 0 where
            the two models cannot be compared.
        bootstrap: Whether the test covers the draw of the test samples.
        difference: Mean score minus the best model's mean score, over the compared runs; None where ``raw_p`` is.
        raw_p: Two-sided p-value of the pair, corrected for the looks; None where the models cannot be compared.
        p: ``raw_p`` corrected by Holm's method for the number of pairs of ranked models; None where ``raw_p`` is.
    """

    seeds: int
    bootstrap: bool
    difference: float | None
    raw_p: float | None
    p: float | None

    @property
    def differs(self) -> bool:
        """Whether the models are separated."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True, slots=True)
class Rank:
    """The ranks that a model may have among the ranked models.

    Attributes:
        best: One more than the number of models that are significantly better.
        worst: The number of ranked models minus the number of models that are significantly worse.
    """

    best: int
    worst: int

    @property
    def middle(self) -> float:
        """Mean of both ends; over all ranked models it sums up to the sum of the ranks."""
        return (self.best + self.worst) / 2


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of models, and how each compares with the ranked model of the best mean.

    Attributes:
        ranks: One per model, in the order given; None for a model that cannot be compared with any other.
        best: Position of the ranked model with the best mean; of all models where none is ranked.
        against_best: One per model; None for the best model itself.
        pairs: Number of pairs that could be compared.
    """

    ranks: tuple[Rank | None, ...]
    best: int
    against_best: tuple[Comparison | None, ...]
    pairs: int


@dataclass(frozen=True, slots=True)
class Look:
    """The test of one pair of models at one number of seeds.

    Attributes:
        p: Two-sided p-value, corrected for the share of the level that this look has.
        difference: Difference of the means of the runs that were compared.
        seeds: Number of seeds; 1 for two deterministic models.
        bootstrap: Whether the test covers the draw of the test samples.
    """

    p: float
    difference: float
    seeds: int
    bootstrap: bool


def looks(most: int) -> Iterator[tuple[int, float]]:
    """Yield after how many seeds two models are compared, and the share of the level at this look.

    Args:
        most: Largest number of seeds.
    """
    seeds, following, left = (*_FIRST_LOOKS, 1.0)
    while seeds <= most:
        yield seeds, left * _SHARE_OF_REST
        seeds, following, left = following, following * 2, left * (1 - _SHARE_OF_REST)


def interval_of(sample: Sample, lowest: float = -np.inf, highest: float = np.inf) -> Interval | None:
    """Return the 95 % interval of a mean score, within the range of the metric, or None.

    From three runs on that differ it is Student's t interval over the seeds. For fewer runs it goes from the 2.5 % to
    the 97.5 % quantile of the bootstrap replicates; without replicates there is none.

    Args:
        sample: The scores.
        lowest: Smallest value of the metric.
        highest: Largest value of the metric.
    """
    tail = (1 - LEVEL) / 2
    if sample.varies and not sample.deterministic:
        half = student_half_width(sample.values, LEVEL)
        return Interval(max(sample.mean - half, lowest), min(sample.mean + half, highest), STUDENT)
    if replicates := sample.mean_replicates:
        low, high = np.quantile(replicates, [tail, 1 - tail])
        return Interval(float(low), float(high), BOOTSTRAP)
    return None


def rank(samples: Sequence[Sample], higher_is_better: bool, *, needs_bootstrap: bool = False) -> Ranking:
    """Return the ranks of at least one model.

    A model's rank is one more than the number of models that are significantly better. A model that cannot be compared
    with any other model of the table has no rank. Holm's correction counts all pairs of ranked models, also pairs that
    cannot be compared. Models without a rank are not counted, so that a table with many single runs is tested no more
    strictly than the same table without these runs.

    Args:
        samples: The models.
        higher_is_better: Direction of the metric.
        needs_bootstrap: Whether pairs without bootstrap replicates cannot be compared. Where the metric has no
            replicates, or the split too few samples for them, the test takes the test samples as given.
    """
    count_of_models = len(samples)
    tests = {
        (i, j): look
        for i, j in combinations(range(count_of_models), 2)
        if (look := clearest_look(samples[i], samples[j], needs_bootstrap=needs_bootstrap)) is not None
    }
    ranked = sorted({i for pair in tests for i in pair})
    pairs = math.comb(len(ranked), 2)
    corrected = dict(zip(tests, _holm_of_tested([look.p for look in tests.values()], pairs), strict=True))
    better, worse = [0] * count_of_models, [0] * count_of_models
    for (i, j), p in corrected.items():
        if p <= ALPHA:
            winner, loser = (i, j) if (tests[i, j].difference > 0) == higher_is_better else (j, i)
            better[loser] += 1
            worse[winner] += 1
    goodness = [sample.mean if higher_is_better else -sample.mean for sample in samples]
    first = max(ranked or range(count_of_models), key=goodness.__getitem__)
    ranks = tuple(Rank(1 + better[i], len(ranked) - worse[i]) if i in ranked else None for i in range(count_of_models))
    against = tuple(None if i == first else _comparison(tests, corrected, i, first) for i in range(count_of_models))
    return Ranking(ranks, first, against, len(tests))


def _comparison(
    tests: Mapping[tuple[int, int], Look], corrected: Mapping[tuple[int, int], float], model: int, best: int
) -> Comparison:
    pair = min(model, best), max(model, best)
    look = tests.get(pair)
    if look is None:
        return Comparison(0, False, None, None, None)
    difference = look.difference if model < best else -look.difference
    return Comparison(look.seeds, look.bootstrap, difference, look.p, corrected[pair])


def clearest_look(one: Sample, other: Sample, *, needs_bootstrap: bool = False) -> Look | None:
    """Return the look at two models with the smallest p-value; None where the two models cannot be compared.

    Two learners are compared after common seeds, a learner and a deterministic model after the seeds of the learner,
    and two deterministic models once, by the bootstrap alone.

    Args:
        one: The first model.
        other: The second model.
        needs_bootstrap: As for :func:`rank`.
    """
    learners = [sample.counted for sample in (one, other) if not sample.deterministic]
    plan = looks(min(learners)) if learners else [(1, 1.0)]
    tests = [look for runs, share in plan if (look := _look(one, other, runs, share, needs_bootstrap)) is not None]
    return min(tests, key=lambda look: look.p, default=None)


def _look(one: Sample, other: Sample, runs: int, share: float, needs_bootstrap: bool) -> Look | None:
    """Return the test of two models after so many runs of every learner; None where there is no test."""
    over_samples = _variance_over_samples(one, other, runs)
    learners = [sample for sample in (one, other) if not sample.deterministic]
    if over_samples is None and (needs_bootstrap or not learners):
        return None
    difference = _mean_of_first(one, runs) - _mean_of_first(other, runs)
    over_seeds = sum(float(np.var(sample.values[:runs], ddof=1)) / runs for sample in learners)
    rounding = _ROUNDING * max(abs(one.mean), abs(other.mean))
    parts = [(over_seeds, runs - 1)] if learners else []
    if over_samples is not None:
        parts.append((over_samples, _freedom_over_samples(one, other)))
    parts = [(variance, freedom) for variance, freedom in parts if variance > rounding**2]
    if abs(difference) <= rounding:
        p = 1.0
    elif not parts and not learners:  # the models differ equally in every replicate, which says nothing of the error
        return None
    else:
        p = p_value(difference, parts) if parts else 0.0
        if learners and over_seeds <= rounding**2:
            p = max(p, _least_p_of_permutations(runs, len(learners)))
    return Look(min(1.0, p / share), difference, runs, over_samples is not None)


def _mean_of_first(sample: Sample, runs: int) -> float:
    return float(np.mean(sample.values[: 1 if sample.deterministic else runs]))


def _variance_over_samples(one: Sample, other: Sample, runs: int) -> float | None:
    """Return the variance of the difference over draws of the test samples; None without paired replicates."""
    first, second = (_mean_replicates(s.replicates, 1 if s.deterministic else runs) for s in (one, other))
    return float(np.var(first - second, ddof=1)) if first.size and first.size == second.size else None


def _freedom_over_samples(one: Sample, other: Sample) -> int:
    """Return the degrees of freedom of the variance over test samples: one fewer than samples and replicates."""
    counts = [sample.test_samples for sample in (one, other) if sample.test_samples is not None]
    return max(1, min([*counts, len(one.replicates[0])]) - 1)


def _mean_replicates(replicates: Sequence[Sequence[float]], runs: int) -> Floats:
    """Return the mean replicates of the first runs, ``[replicates]``; empty where a run has none or another number."""
    chosen = replicates[:runs]
    if len(chosen) < runs or len({len(of_run) for of_run in chosen}) != 1 or len(chosen[0]) < 2:
        return np.zeros(0)
    return np.asarray(np.mean(chosen, axis=0), dtype=np.float64)


def _least_p_of_permutations(runs: int, learners: int) -> float:
    """Return the least p-value that runs without spread can have: of swapped signs, or of exchanged groups."""
    return 2.0 ** (1 - runs) if learners == 1 else 2 / math.comb(2 * runs, runs)


def p_value(difference: float, parts: Sequence[tuple[float, int]]) -> float:
    """Return a two-sided p-value of a difference whose error is the sum of independent normal errors.

    It is the p that solves ``difference**2 = sum(t(p)**2 * variance)``, where ``t(p)`` is the two-sided quantile of
    Student's distribution with the degrees of freedom of each variance. The p-value is never too small, for all true
    variances: the probability that a normal number exceeds the root of x is convex in x, so by Jensen's
    inequality the level of the weighted sum is at most the mean of the levels, and each of them is p. (Mickey and
    Brown, 1966, for two means.)

    Args:
        difference: The observed difference.
        parts: (estimated variance of the mean, its degrees of freedom) of every error; at least one, above 0.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    def excess(log_p: float) -> float:
        squares = (variance * float(stdtrit(freedom, math.exp(log_p) / 2)) ** 2 for variance, freedom in parts)
        return math.fsum(squares) - difference**2

    low, high = math.log(_LEAST_P), 0.0
    return _LEAST_P if excess(low) <= 0 else float(math.exp(brentq(excess, low, high, xtol=1e-12)))


def holm(p: Floats) -> Floats:
    """Return p-values corrected by Holm's step-down method (1979), in the order given; float64 ``[pairs]``."""
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    corrected = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    result = np.empty_like(corrected)
    result[order] = corrected
    return result


def _holm_of_tested(p: Sequence[float], pairs: int) -> list[float]:
    """Return p-values corrected for all pairs of ranked models, of which only some were tested."""
    return [float(value) for value in holm(np.array([*p, *[1.0] * (pairs - len(p))]))[: len(p)]]
