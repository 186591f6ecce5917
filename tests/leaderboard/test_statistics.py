"""Intervals, tests and ranks against SciPy, brute force and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.leaderboard.statistics import (
    ALPHA,
    Sample,
    clearest_look,
    holm,
    interval_of,
    looks,
    p_value,
    rank,
)

scores = st.floats(0, 1).map(lambda value: round(value, 3))


def test_an_interval_needs_three_runs_that_differ_and_stays_within_the_metric():
    assert interval_of(Sample((0, 1), (0.1, 0.9))) is None
    assert interval_of(Sample((0, 1, 2), (0.4369,) * 3)) is None
    found = interval_of(Sample((0, 1, 2), (0.9, 0.99, 1.0)), 0.0, 1.0)
    assert found.high == 1.0 and 0.0 < found.low < 0.9
    replicates = tuple(np.linspace(0.4, 0.5, 201))
    assert interval_of(Sample((0, 1, 2), (0.45,) * 3, (replicates,) * 3)).method == "bootstrap"


@given(st.lists(scores, min_size=3, max_size=8).filter(lambda values: len(set(values)) > 1))
def test_the_interval_over_seeds_is_students(values):
    found = interval_of(Sample(tuple(range(len(values))), tuple(values)))
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high)) and found.method == "student"


def test_the_interval_of_one_seed_is_that_of_the_bootstrap_or_none():
    replicates = np.random.default_rng(0).normal(0.7, 0.1, 200)
    found = interval_of(Sample((0,), (0.7,), (tuple(replicates),)))
    assert found.method == "bootstrap"
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(replicates, [2.5, 97.5])))
    assert interval_of(Sample((0,), (0.7,))) is None


class TestPValue:
    """The p-value of a difference with several independent errors."""

    @given(st.floats(0.01, 5), st.floats(0.01, 4), st.integers(1, 30))
    def test_of_one_error_it_is_students(self, difference, variance, freedom):
        expected = 2 * stats.t.sf(difference / variance**0.5, freedom)
        assert p_value(difference, [(variance, freedom)]) == pytest.approx(max(expected, 1e-15), rel=1e-6)
        assert p_value(-difference, [(variance, freedom)]) == p_value(difference, [(variance, freedom)])

    @given(st.lists(st.tuples(st.floats(0.01, 4), st.integers(2, 30)), min_size=1, max_size=3), st.floats(0.5, 4))
    def test_it_grows_with_every_error(self, parts, difference):
        whole = p_value(difference, parts)
        assert all(p_value(difference, [part]) <= whole + 1e-12 for part in parts)
        assert whole >= 2 * stats.norm.sf(difference / sum(variance for variance, _ in parts) ** 0.5) - 1e-12

    @pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 1.0])
    @pytest.mark.parametrize("level", [0.05, 0.01])
    def test_it_holds_its_level_whatever_the_true_variances_are(self, share, level):
        """Seeds with 2 degrees of freedom, samples with 199; the test that adds variances at 2 or 201 does not."""
        rng, draws = np.random.default_rng(round(100 * share)), 4000
        differences = rng.normal(0, 1, draws)
        seeds = share * rng.chisquare(2, draws) / 2
        samples = (1 - share) * rng.chisquare(199, draws) / 199
        critical = seeds * stats.t.isf(level / 2, 2) ** 2 + samples * stats.t.isf(level / 2, 199) ** 2
        rejected = float(np.mean(differences**2 > critical))
        assert rejected <= level + 3 * (level * (1 - level) / draws) ** 0.5
        for i in range(20):  # the p-value is at most the level exactly where the statistic is beyond this bound
            parts = [(v, f) for v, f in ((float(seeds[i]), 2), (float(samples[i]), 199)) if v > 0]
            assert (p_value(float(differences[i]), parts) <= level) == (differences[i] ** 2 >= critical[i])


def test_looks_come_after_three_five_and_doubled_seeds_and_share_the_level():
    assert [seeds for seeds, _ in looks(50)] == [3, 5, 10, 20, 40]
    assert list(looks(2)) == [] and sum(share for _, share in looks(10**6)) <= 1.0
    assert [share for _, share in looks(5)] == pytest.approx([2 / 3, 2 / 9])


def test_two_learners_after_three_seeds():
    one, other = Sample((0, 1, 2), (0.9, 0.91, 0.93)), Sample((0, 1, 2), (0.8, 0.83, 0.81))
    look = clearest_look(one, other)
    error = ((np.var(one.values, ddof=1) + np.var(other.values, ddof=1)) / 3) ** 0.5
    assert look.p == pytest.approx(1.5 * 2 * stats.t.sf((one.mean - other.mean) / error, 2))
    assert (look.seeds, look.bootstrap) == (3, False) and look.difference == pytest.approx(one.mean - other.mean)


def test_a_learner_and_a_deterministic_model_are_compared_over_the_learners_seeds():
    values = (0.9, 0.91, 0.93, 0.9, 0.92)
    look = clearest_look(Sample(tuple(range(5)), values), Sample((7,), (0.8,), deterministic=True))
    three = 1.5 * stats.ttest_1samp(values[:3], 0.8).pvalue
    five = 4.5 * stats.ttest_1samp(values, 0.8).pvalue
    assert look.p == pytest.approx(min(three, five)) and look.seeds == (3 if three < five else 5)


def test_runs_count_from_seed_zero_to_the_first_gap():
    values = (0.9, 0.91, 0.93)
    other = Sample((0, 1, 2), (0.1, 0.12, 0.11))
    for seeds in ((1, 2, 3), (0, 1, 3), (0, 2, 3), (41, 42, 43)):
        assert clearest_look(Sample(seeds, values), other) is None
    assert clearest_look(Sample((0, 1, 2, 4, 5), (*values, 0.2, 0.3)), other) == clearest_look(
        Sample((0, 1, 2), values), other
    )


def test_runs_without_spread_are_no_clearer_than_a_permutation_test():
    for count, learners in ((3, 2 / 20), (5, 2 / 252)):
        seeds = tuple(range(count))
        same = Sample(seeds, (1.0,) * count), Sample(seeds, (0.0,) * count)
        share = 1.5 if count == 3 else 4.5
        assert clearest_look(*same).p == pytest.approx(min(1.5 * 0.1, share * learners))
        solved = clearest_look(same[0], Sample((0,), (0.0,), deterministic=True))
        assert solved.p == pytest.approx(min(1.5 * 0.25, share * 2.0 ** (1 - count)))
    assert clearest_look(Sample((0,), (1.0,), deterministic=True), Sample((0,), (0.0,), deterministic=True)) is None


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
    """Return a deterministic model of these scores of the graphs."""
    return learner([per_graph], drawn, deterministic=True)


def learner(runs, drawn, **changes):
    """Return a model with a run for every row of scores of the graphs."""
    values = tuple(float(run.mean()) for run in runs)
    replicates = tuple(tuple(drawn @ run / drawn.sum(axis=1)) for run in runs)
    return Sample(tuple(range(len(values))), values, replicates, test_samples=len(runs[0]), **changes)


def test_the_paired_bootstrap_agrees_with_the_paired_test_over_graphs():
    drawn, rng = weights(400), np.random.default_rng(1)
    hard = rng.normal(0, 1, 400)  # a graph is as hard for both models
    one, other = hard + rng.normal(0, 0.1, 400), hard + rng.normal(0.012, 0.1, 400)
    look = clearest_look(bootstrapped(one, drawn), bootstrapped(other, drawn))
    assert look.p == pytest.approx(stats.ttest_rel(one, other).pvalue, rel=0.25) and look.bootstrap
    assert stats.ttest_ind(one, other).pvalue > 0.5  # what is not paired sees nothing


def test_replicates_of_other_numbers_are_not_paired():
    rng = np.random.default_rng(0)
    one, other = (
        Sample((0,), (0.5,), (tuple(rng.normal(0.5, 0.1, count)),), deterministic=True) for count in (200, 100)
    )
    assert clearest_look(one, other) is None
    assert rank([one, other], True).ranks == (None, None)


def test_bootstrap_is_asked_for_where_it_is_needed():
    seeds = (0, 1, 2)
    models = [Sample(seeds, (0.9, 0.91, 0.92)), Sample(seeds, (0.8, 0.81, 0.82))]
    assert [place.best for place in rank(models, True).ranks] == [1, 2]
    assert rank(models, True, needs_bootstrap=True).ranks == (None, None)


def test_both_sources_of_chance_count():
    seeds, rng = (0, 1, 2), np.random.default_rng(0)
    values = (0.9, 0.91, 0.92), (0.8, 0.812, 0.82)
    for spread, separated in ((1e-4, True), (1.0, False)):
        replicates = [tuple((value + rng.normal(0, spread, 200),) * 3) for value in (0.91, 0.81)]
        models = [Sample(seeds, own, tuple(map(tuple, drawn))) for own, drawn in zip(values, replicates, strict=True)]
        assert rank(models, True).against_best[1].differs is separated


def mst_easy(*seeds):
    """Return the two models of the finding: three seeds of one, some seeds of the other, with their replicates."""
    from graphbench.records.files import load_records

    stored = load_records("algoreas/mst_easy")
    models = []
    for name, chosen in (("gt_small", (0, 1, 2)), ("gin_small", seeds)):
        runs = sorted((r for r in stored if r.model == name and r.seed in chosen), key=lambda r: r.seed)
        assert [run.seed for run in runs] == list(chosen)
        models.append(
            Sample(
                tuple(run.seed for run in runs),
                tuple(run.scores["test"]["f1"] for run in runs),
                tuple(tuple(run.replicates["test"]) for run in runs),
            )
        )
    return models


@pytest.mark.slow
def test_deleting_seeds_of_a_committed_model_does_not_separate_it():
    whole = clearest_look(*mst_easy(0, 1, 2))
    assert whole.p > ALPHA
    for kept in ((0,), (1,), (2,), (0, 1), (1, 2)):
        ranking = rank(mst_easy(*kept), True, needs_bootstrap=True)
        assert ranking.ranks == (None, None) and ranking.pairs == 0


@st.composite
def tables(draw):
    """Return models whose scores differ by little or by much, most of them learners of up to eight seeds."""
    drawn = weights(40, 60)
    models = []
    for _ in range(draw(st.integers(2, 4))):
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        fixed, runs = draw(st.booleans()), draw(st.integers(1, 8))
        level, spread = draw(st.sampled_from([0.2, 0.5, 0.52, 0.9])), draw(st.sampled_from([0.0, 0.002, 0.1]))
        rows = [
            level + 0.05 * rng.normal(size=40) + spread * rng.normal() for _ in range(1 if fixed and runs < 3 else runs)
        ]
        models.append(learner(rows, drawn, deterministic=len(rows) == 1))
    return models


def without_runs(sample, removed):
    kept = [i for i, seed in enumerate(sample.seeds) if seed not in removed]
    return Sample(
        tuple(sample.seeds[i] for i in kept),
        tuple(sample.values[i] for i in kept),
        tuple(sample.replicates[i] for i in kept),
        sample.deterministic,
        sample.test_samples,
    )


def significant(samples):
    """Return the pairs (better, worse) that a table separates, by position."""
    found = set()
    for i, place in enumerate(rank(samples, True).ranks):
        for j in range(len(samples)):
            pair = rank([samples[i], samples[j]], True) if i != j and place is not None else None
            if pair is not None and pair.ranks[1] is not None and pair.ranks[1].best == 2:
                found.add((i, j))
    return found


def separations(samples):
    """Return how many models are significantly better than each model, and how many are worse."""
    ranking = rank(samples, True)
    ranked = sum(place is not None for place in ranking.ranks)
    return [(0, 0) if r is None else (r.best - 1, ranked - r.worst) for r in ranking.ranks]


@settings(max_examples=150, deadline=None)
@given(tables(), st.data())
@pytest.mark.thorough
def test_removing_runs_never_makes_a_difference_significant(samples, data):
    """Neither between two models alone, nor in a table whose ranked models stay the same."""
    fewer = []
    for sample in samples:
        removable = sorted(sample.seeds)
        removed = data.draw(st.sets(st.sampled_from(removable), max_size=len(removable) - 1))
        fewer.append(without_runs(sample, removed))
    for i, j in itertools.combinations(range(len(samples)), 2):
        before, after = clearest_look(samples[i], samples[j]), clearest_look(fewer[i], fewer[j])
        assert after is None or after.p >= before.p
    assert significant(fewer) <= significant(samples)
    if [place is None for place in rank(samples, True).ranks] != [place is None for place in rank(fewer, True).ranks]:
        return  # fewer models are ranked, so there are fewer pairs to correct for
    for before, after in zip(separations(samples), separations(fewer), strict=True):
        assert after[0] <= before[0] and after[1] <= before[1]


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 60))
def test_models_without_a_rank_make_no_test_stricter(samples, unranked):
    single = Sample((0,), (0.99,))
    alone, among = rank(samples, True), rank([*samples, *[single] * unranked], True)
    assert among.ranks == (*alone.ranks, *[None] * unranked)


@settings(max_examples=40, deadline=None)
@given(tables(), st.randoms())
def test_the_order_of_the_models_changes_nothing(samples, random):
    order = list(range(len(samples)))
    random.shuffle(order)
    usual, shuffled = rank(samples, True), rank([samples[i] for i in order], True)
    assert [shuffled.ranks[order.index(i)] for i in range(len(samples))] == list(usual.ranks)
    turned = rank([Sample(s.seeds, tuple(-v for v in s.values), tuple(tuple(-x for x in r) for r in s.replicates),
                          s.deterministic, s.test_samples) for s in samples], False)  # fmt: skip
    assert turned.ranks == usual.ranks and turned.pairs == usual.pairs


@pytest.mark.parametrize("runs", [3, 5])
@pytest.mark.parametrize(
    ("over_seeds", "over_samples"), [((0.05,), 0.02), ((0.05, 0.001), 0.3), ((0.01, 0.0001), 1.0), ((0.0,), 0.3)]
)
def test_models_alike_are_seldom_separated(runs, over_seeds, over_samples):
    """Both sources of chance are drawn: every model is as good as any other over all seeds and all samples."""
    rng, drawn, count, wrong = np.random.default_rng(runs), weights(100), 120, 0
    for _ in range(count):
        models = []
        for i in range(3):
            own = rng.normal(0, over_samples, 100)
            fixed = i == 2
            rows = [
                0.5 + own + (0 if fixed else rng.normal(0, over_seeds[i % len(over_seeds)]) + rng.normal(0, 0.01, 100))
                for _ in range(1 if fixed else runs)
            ]
            models.append(learner(rows, drawn, deterministic=fixed))
        wrong += any(place is not None and place.best > 1 for place in rank(models, True).ranks)
    assert wrong / count <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / count) ** 0.5


def test_adding_seeds_until_a_test_succeeds_does_not_pay():
    rng, tables, wrong = np.random.default_rng(0), 400, 0
    for _ in range(tables):
        values = rng.normal(0.5, 0.1, (2, 20))
        stopped = [
            clearest_look(*(Sample(tuple(range(n)), tuple(own[:n])) for own in values)).p <= ALPHA
            for n in (3, 5, 10, 20)
        ]
        wrong += any(stopped)
        assert stopped == sorted(stopped)
    assert wrong / tables <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / tables) ** 0.5


def test_models_that_differ_are_mostly_separated():
    rng, tables, right = np.random.default_rng(2), 60, 0
    for _ in range(tables):
        values = rng.normal(0.5, 0.1, (4, 5))
        better = [Sample(tuple(range(5)), tuple(row + 1.2 * i)) for i, row in enumerate(values)]
        right += [place.best for place in rank(better, True).ranks] == [4, 3, 2, 1]
    assert right / tables > 0.8


def test_without_a_test_nothing_is_claimed():
    ranking = rank([Sample((0,), (0.9,)), Sample((0,), (0.1,)), Sample((0, 1), (0.5, 0.51))], True)
    assert ranking.ranks == (None, None, None)
    assert ranking.pairs == 0 and ranking.against_best[1].p is None and not ranking.against_best[1].differs
    assert rank([Sample((0,), (0.9,))], True).ranks == (None,)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 20), st.integers(0, 9)),
        min_size=1,
        max_size=6,
        unique_by=lambda model: model[2],
    ),
    st.booleans(),
)
def test_ranks_count_the_models_that_are_significantly_better(models, higher):
    samples = []
    for runs, level, state in models:
        values = level / 20 + np.random.default_rng(state).normal(0, 0.02, runs)
        samples.append(Sample(tuple(range(runs)), tuple(values)))
    pairs = list(itertools.combinations(range(len(samples)), 2))
    tests = {pair: clearest_look(samples[pair[0]], samples[pair[1]]) for pair in pairs}
    ranked = {i for pair, look in tests.items() if look is not None for i in pair}
    counted = list(itertools.combinations(sorted(ranked), 2))
    raw = np.array([1.0 if tests[pair] is None else tests[pair].p for pair in counted])
    corrected = dict(zip(counted, holm(raw), strict=True)) if counted else {}  # pairs without a test count as pairs
    ranking = rank(samples, higher)
    for i in range(len(samples)):
        better = worse = 0
        for pair, look in tests.items():
            if i in pair and look is not None and corrected[pair] <= ALPHA:
                leads = (look.difference > 0) == (pair[0] == i)
                better, worse = better + (leads != higher), worse + (leads == higher)
        place = ranking.ranks[i]
        assert (place is None) == (i not in ranked)
        assert place is None or (place.best, place.worst) == (1 + better, len(ranked) - worse)
    middles = [place.middle for place in ranking.ranks if place is not None]
    assert sum(middles) == pytest.approx(len(ranked) * (len(ranked) + 1) / 2)
