"""Intervals, tests and ranks against SciPy, brute force and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.reports.leaderboard.statistics import (
    ALPHA,
    Sample,
    bootstrap_p_values,
    holm,
    interval_of,
    rank,
    seed_p_values,
)

scores = st.floats(0, 1).map(lambda value: round(value, 3))


def test_an_interval_needs_three_runs_that_differ_and_stays_within_the_metric():
    assert interval_of(Sample((0, 1), (0.1, 0.9))) is None
    assert interval_of(Sample((0, 1, 2), (0.4369,) * 3)) is None
    found = interval_of(Sample((0, 1, 2), (0.9, 0.99, 1.0)), 0.0, 1.0)
    assert found.high == 1.0 and 0.0 < found.low < 0.9
    replicates = tuple(np.linspace(0.4, 0.5, 201))
    assert interval_of(Sample((0, 1, 2), (0.45,) * 3, replicates)).method == "bootstrap"


@given(st.lists(scores, min_size=3, max_size=8).filter(lambda values: len(set(values)) > 1))
def test_the_interval_over_seeds_is_students(values):
    found = interval_of(Sample(tuple(range(len(values))), tuple(values)))
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high)) and found.method == "student"


def test_the_interval_of_one_seed_is_that_of_the_bootstrap_or_none():
    replicates = np.random.default_rng(0).normal(0.7, 0.1, 200)
    found = interval_of(Sample((0,), (0.7,), tuple(replicates)))
    assert found.method == "bootstrap"
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(replicates, [2.5, 97.5])))
    assert interval_of(Sample((0,), (0.7,))) is None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([(0, 1, 2), (0, 1), (3, 4, 5), (7,)]), st.integers(0, 10**6)), min_size=2))
def test_p_values_over_seeds_are_those_of_scipy(models):
    samples = []
    for seeds, state in models[:6]:
        values = np.random.default_rng(state).normal(0.5, 0.1, len(seeds))
        samples.append(Sample(seeds, tuple(values)))
    found = seed_p_values(samples)
    for (i, one), (j, other) in itertools.combinations(enumerate(samples), 2):
        if len(one.values) < 3 or len(other.values) < 3:
            assert np.isnan(found[i, j])
            continue
        if one.values == other.values:
            assert found[i, j] == 1
            continue
        test = stats.ttest_rel if one.seeds == other.seeds else lambda a, b: stats.ttest_ind(a, b, equal_var=False)
        assert found[i, j] == pytest.approx(test(one.values, other.values).pvalue, abs=1e-9)
        assert found[j, i] == pytest.approx(found[i, j])
    assert np.isnan(np.diag(found)).all()


def test_differences_without_spread_separate_nobody():
    seeds = (0, 1, 2)
    same = [Sample(seeds, (0.1, 0.2, 0.3)), Sample(seeds, (0.1, 0.2, 0.3)), Sample(seeds, (0.2, 0.3, 0.4))]
    found = seed_p_values(same)
    assert found[0, 1] == 1 and np.isnan(found[0, 2])
    assert rank([same[0], same[2]], True).tested == (False, False)


def test_runs_that_are_all_alike_are_one_run():
    constant = [Sample((0, 1, 2), (0.4,) * 3), Sample((0, 1, 2), (0.5,) * 3), Sample((0, 1, 2), (0.1, 0.2, 0.3))]
    assert np.isnan(seed_p_values(constant)).all()
    assert rank(constant, True).tested == (False, False, False)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_rejects_what_stepping_down_rejects(p):
    found = holm(np.array(p))
    for level in (0.01, 0.05, 0.3):
        rejected, order = set(), sorted(range(len(p)), key=p.__getitem__)
        for step, i in enumerate(order):
            if p[i] * (len(p) - step) > level:
                break
            rejected.add(i)
        assert {i for i in range(len(p)) if found[i] <= level} == rejected


def weights(graphs, replicates=200):
    """Return how often every graph is drawn in every replicate, the same for all models."""
    return np.random.default_rng(5).multinomial(graphs, np.full(graphs, 1 / graphs), size=replicates)


def bootstrapped(per_graph, drawn):
    return Sample((0,), (float(per_graph.mean()),), tuple(drawn @ per_graph / len(per_graph)))


def test_the_paired_bootstrap_agrees_with_the_paired_test_over_graphs():
    drawn, rng = weights(400), np.random.default_rng(1)
    hard = rng.normal(0, 1, 400)  # a graph is as hard for both models
    one, other = hard + rng.normal(0, 0.1, 400), hard + rng.normal(0.012, 0.1, 400)
    found = bootstrap_p_values([bootstrapped(one, drawn), bootstrapped(other, drawn)])[0, 1]
    assert found == pytest.approx(stats.ttest_rel(one, other).pvalue, rel=0.25)
    assert stats.ttest_ind(one, other).pvalue > 0.5  # what is not paired sees nothing


def test_replicates_of_other_numbers_are_not_paired():
    rng = np.random.default_rng(0)
    one, other = (Sample((0,), (0.5,), tuple(rng.normal(0.5, 0.1, count))) for count in (200, 100))
    assert np.isnan(bootstrap_p_values([one, other, Sample((0,), (0.1,))])).all()


def test_models_alike_are_seldom_separated_and_others_mostly():
    rng = np.random.default_rng(2)
    tables, wrong, found = 200, 0, 0
    for _ in range(tables):
        values = rng.normal(0.5, 0.1, (4, 5))
        same = [Sample(tuple(range(5)), tuple(row)) for row in values]
        wrong += any(place.best > 1 for place in rank(same, True).ranks)
        better = [Sample(tuple(range(5)), tuple(row + 0.6 * i)) for i, row in enumerate(values)]
        found += [place.best for place in rank(better, True).ranks] == [4, 3, 2, 1]
    assert wrong / tables <= 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
    assert found / tables > 0.8


def test_models_alike_are_seldom_separated_by_the_bootstrap():
    rng, drawn, tables = np.random.default_rng(3), weights(200), 150
    wrong = 0
    for _ in range(tables):
        hard = rng.random(200) < 0.7
        samples = [bootstrapped((hard ^ (rng.random(200) < 0.1)).astype(float), drawn) for _ in range(3)]
        wrong += any(place.best > 1 for place in rank(samples, True).ranks)
    assert wrong / tables <= 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5


def test_both_tests_must_say_so_where_both_are_available():
    seeds, rng = (0, 1, 2), np.random.default_rng(0)
    close = rng.normal(0, 1e-4, 200)
    clear = [Sample(seeds, (0.9, 0.91, 0.92), tuple(0.91 + close)), Sample(seeds, (0.8, 0.812, 0.82), (0.81,) * 200)]
    assert [place.best for place in rank(clear, True).ranks] == [1, 2]
    noisy = rng.normal(0, 1, 200)
    unsure = [clear[0], Sample(seeds, clear[1].values, tuple(0.81 + noisy))]
    ranking = rank(unsure, True)
    assert [place.best for place in ranking.ranks] == [1, 1]
    against = ranking.against_best[1]
    assert against.seeds_p < ALPHA < against.bootstrap_p and against.p == against.bootstrap_p
    assert [place.best for place in rank([Sample(s.seeds, s.values) for s in unsure], True).ranks] == [1, 2]


def test_without_a_test_nothing_is_claimed():
    ranking = rank([Sample((0,), (0.9,)), Sample((0,), (0.1,)), Sample((0, 1), (0.5, 0.51))], True)
    assert [(place.best, place.worst) for place in ranking.ranks] == [(1, 3)] * 3
    assert ranking.pairs == 0 and ranking.against_best[1].p is None and not ranking.against_best[1].differs
    assert ranking.tested == (False, False, False)
    assert rank([Sample((0,), (0.9,))], True).ranks[0].worst == 1


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(3, 5), st.integers(0, 20), st.integers(0, 9)),
        min_size=1,
        max_size=6,
        unique_by=lambda model: model[2],
    ),
    st.booleans(),
)
def test_ranks_count_the_models_that_are_significantly_better(models, higher):
    samples = []
    for count, level, state in models:
        values = level / 20 + np.random.default_rng(state).normal(0, 0.02, count)
        samples.append(Sample(tuple(range(count)), tuple(values)))
    pairs = list(itertools.combinations(range(len(samples)), 2))
    raw = seed_p_values(samples)
    corrected = dict(zip(pairs, holm(np.array([raw[pair] for pair in pairs])), strict=True)) if pairs else {}
    ranking = rank(samples, higher)
    for i, own in enumerate(samples):
        better = worse = 0
        for j, other in enumerate(samples):
            if i != j and corrected[min(i, j), max(i, j)] <= ALPHA:
                ahead = other.mean > own.mean if higher else other.mean < own.mean
                better, worse = better + ahead, worse + (not ahead)
        assert (ranking.ranks[i].best, ranking.ranks[i].worst) == (1 + better, len(samples) - worse)
    assert sum(place.middle for place in ranking.ranks) == pytest.approx(len(samples) * (len(samples) + 1) / 2)
