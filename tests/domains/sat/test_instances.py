import hashlib
import itertools
import math
import os
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from graphbench.core.rng import below, next_u64, seed, uniform
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.disguise import disguise, disguise_rows, renamed_model
from graphbench.domains.sat.drawing import draw_subset, draw_three
from graphbench.domains.sat.instances import FormulaParameters, draw_formula, draw_instance

KEY = np.uint64(3)
ADAPTER = TypeAdapter(FormulaParameters)
FAMILIES = {
    "community": {"variables": [300, 600], "communities": [5, 40], "ratio": [3.7, 4.5], "modularity": [0.3, 0.9]},
    "fuzz": {"inputs": [20, 40], "references": [1, 2], "clause_length": [3, 8], "clause_ratio": [0.2, 1.4]},
    "preimage": {"hash": ["md4", "sha1", "sha256"], "rounds": [16, 18], "fixed_bits": [256, 384]},
    "uniform": {"variables": [100, 200], "ratio": [4.0, 4.4]},
    "pigeonhole": {"holes": [3, 30]},
    "parity": {"variables": [40, 80], "ratio": [1.1, 1.3]},
    "coloring": {"nodes": [30, 60], "ratio": [1.5, 2.3], "colors": 3},
}


def make(family, **changes):
    return ADAPTER.validate_python({"family": family, **FAMILIES[family], **changes})


def same(one, other):
    return (
        one.num_variables == other.num_variables
        and np.array_equal(one.literals, other.literals)
        and np.array_equal(one.ptr, other.ptr)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_formula_depends_on_parameters_key_index_and_attempt_alone(family):
    parameters = make(family)
    forward = [draw_formula(parameters, KEY, i, 0) for i in range(6)]
    backward = [draw_formula(parameters, KEY, i, 0) for i in reversed(range(6))][::-1]
    assert all(map(same, forward, backward))
    others = [draw_formula(parameters, KEY, i, 1) for i in range(6)]
    others += [draw_formula(parameters, np.uint64(4), i, 0) for i in range(6)]
    assert not any(same(a, b) for a, b in itertools.combinations(forward + others, 2))


DIGESTS = """
import hashlib, sys
import numpy as np
from pydantic import TypeAdapter
from graphbench.domains.sat.drawing import draw_subset, draw_three
from graphbench.domains.sat.instances import FormulaParameters, draw_formula
for parameters in TypeAdapter(list[FormulaParameters]).validate_json(sys.argv[1]):
    for i in (2, 0):
        f = draw_formula(parameters, np.uint64(3), i, 0)
        print(hashlib.sha256(f.literals.tobytes() + f.ptr.tobytes()).hexdigest())
"""


def test_another_process_draws_the_same_bytes():
    families = [make(family) for family in FAMILIES]
    text = TypeAdapter(list[FormulaParameters]).dump_json(families).decode()
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    run = subprocess.run(
        [sys.executable, "-c", DIGESTS, text], env=environment, capture_output=True, text=True, check=True
    )
    formulas = [draw_formula(parameters, KEY, i, 0) for parameters in families for i in (2, 0)]
    ours = [hashlib.sha256(f.literals.tobytes() + f.ptr.tobytes()).hexdigest() for f in formulas]
    assert run.stdout.split() == ours


@pytest.mark.parametrize("family", FAMILIES)
def test_clauses_have_distinct_variables_in_order(family):
    for i in range(5):
        formula = draw_formula(make(family), KEY, i, 0)
        assert formula.literals.dtype == np.int32
        assert formula.ptr.dtype == np.int64
        assert formula.ptr[0] == 0
        assert formula.ptr[-1] == len(formula.literals)
        assert formula.lengths.min() >= 1
        assert np.abs(formula.literals).max() <= formula.num_variables
        assert same(formula, formula.canonical())


@pytest.mark.parametrize("family", FAMILIES)
def test_models_satisfy_their_formulas(family):
    for i in range(12):
        instance = draw_instance(make(family), KEY, i, 0)
        if instance.model is not None:
            assert instance.satisfiable
            assert instance.formula.is_satisfied_by(instance.model)
        else:
            assert not instance.satisfiable


def test_known_answers_are_those_of_a_solver():
    solvers = pytest.importorskip("pysat.solvers")
    known = Counter()
    for family, changes in {
        "preimage": {"hash": "md4", "rounds": [16, 20], "fixed_bits": [490, 500]},
        "pigeonhole": {"holes": [2, 6]},
        "parity": {"variables": [10, 30]},
    }.items():
        for i in range(10):
            instance = draw_instance(make(family, **changes), KEY, i, 0)
            with solvers.Cadical153(bootstrap_with=list(instance.formula.clauses())) as solver:
                assert solver.solve() == instance.satisfiable
            known[family, instance.satisfiable] += 1
    assert set(known) == {("preimage", True), ("pigeonhole", False), ("parity", True), ("parity", False)}


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("community", {"variables": [119, 600]}, "119 variables.*120"),
        ("community", {"communities": [2, 40]}, r"\[2, 40\].*3 communities"),
        ("community", {"ratio": [4.5, 3.7]}, r"\[4.5, 3.7\].*lower"),
        ("community", {"modularity": [0.3, 1.1]}, "less than or equal to 1"),
        ("community", {"modularity": [float("nan"), 1.0]}, "modularity"),
        ("community", {"clause_length": 33}, "less than or equal to 32"),
        ("community", {"size": 3}, "Extra inputs are not permitted"),
        ("fuzz", {"inputs": [7, 40]}, r"inputs \[7, 40\].*8 inputs"),
        ("fuzz", {"references": [0, 2]}, "greater than or equal to 1"),
        ("preimage", {"rounds": [16, 49]}, "but md4 has 48; lower the upper end"),
        ("preimage", {"hash": "sha1", "rounds": [16, 81]}, "but sha1 has 80; lower the upper end"),
        ("preimage", {"hash": []}, "at least 1 item"),
        ("preimage", {"hash": "md5"}, "md4"),
        ("preimage", {"fixed_bits": [0, 512]}, r"fixed_bits \[0, 512\].*give 0 to 511"),
        ("preimage", {"fixed_bits": [-1, 5]}, r"fixed_bits \[-1, 5\].*give 0 to 511"),
        ("uniform", {"variables": [2, 200]}, "give 3 variables or more"),
        ("pigeonhole", {"holes": [0, 3]}, "give 1 to 200 holes"),
        ("parity", {"ratio": [1.0, 1.3]}, "give a ratio above 1 or flipped 0"),
        ("parity", {"width": [3, 13]}, "at most 12"),
        ("parity", {"variables": [4, 10]}, "at most the number of variables"),
        ("coloring", {"nodes": [30, 10_001]}, "at most 10000 nodes"),
        ("coloring", {"colors": 0}, "greater than or equal to 1"),
    ],
)
def test_bad_parameters_are_refused(family, changes, message):
    with pytest.raises(ValidationError, match=message):
        make(family, **changes)


def test_parameters_do_not_change():
    parameters = make("uniform")
    with pytest.raises(ValidationError, match="frozen"):
        parameters.clause_length = 4


# --- clauses of one length --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["community", "uniform"])
def test_sizes_are_drawn_from_their_ranges(family):
    p = make(family)
    formulas = [draw_formula(p, KEY, i, 0) for i in range(200)]
    sizes = np.array([f.num_variables for f in formulas])
    ratios = np.array([f.num_clauses / f.num_variables for f in formulas])
    assert ratios.min() >= p.ratio[0] - 0.5 / sizes.min()
    assert ratios.max() <= p.ratio[1] + 0.5 / sizes.min()
    low, high = p.variables
    assert stats.kstest(sizes, stats.randint(low, high + 1).cdf).pvalue > 1e-3
    assert stats.kstest(ratios, stats.uniform(p.ratio[0], p.ratio[1] - p.ratio[0]).cdf).pvalue > 1e-3
    assert all((f.lengths == 3).all() for f in formulas)


@njit
def two_draws_of_three(state, other, n):
    chosen = np.empty(3, np.int64)
    draw_subset(state, n, chosen)
    x, y, z = draw_three(other, n)
    return chosen, (x, y, z)


@pytest.mark.parametrize("n", [3, 4, 5, 30, 3000])
def test_three_numbers_are_drawn_as_a_subset(n):
    states = seed(KEY, n, 0, 0), seed(KEY, n, 0, 0)
    drawn = set()
    for _ in range(500):
        subset, three = two_draws_of_three(*states, n)
        assert subset.tolist() == list(three)
        drawn.add(three)
    np.testing.assert_array_equal(*states)
    assert len(drawn) == math.comb(n, 3) if n <= 5 else len(drawn) > 400


def plain_community(key, n, c, ratio, q, k):
    """Return the clauses of `draw_community` for sizes that are given, with the numbers of the same generator."""
    state = seed(key, 0, 0, 0)
    below(state, 1), below(state, 1), uniform(state), uniform(state)  # the sizes
    members = [part.tolist() for part in np.array_split(np.arange(1, n + 1), c)]

    def subset(numbers, size):
        chosen = []
        for top in range(len(numbers) - size, len(numbers)):
            pick = below(state, top + 1)
            chosen.append(numbers[top] if numbers[pick] in chosen else numbers[pick])
        return sorted(chosen)

    clauses = []
    for _ in range(round(ratio * n)):
        if uniform(state) < q + 1 / c:
            variables = subset(members[below(state, c)], k)
        else:
            variables = [part[below(state, len(part))] for part in subset(members, k)]
        signs = int(next_u64(state))
        clauses.append([v if signs >> i & 1 else -v for i, v in enumerate(variables)])
    return clauses


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize(("n", "c", "q"), [(100, 7, 0.3), (23, 5, 0.0), (90, 20, 0.9)])
def test_clauses_by_community_attachment_are_those_of_the_plain_form(n, c, q, k):
    p = make("community", variables=[n, n], communities=[c, c], ratio=[4, 4], modularity=[q, q], clause_length=k)
    assert list(draw_formula(p, KEY, 0, 0).clauses()) == plain_community(KEY, n, c, 4, q, k)


def test_both_ends_of_a_range_are_drawn():
    sizes = {draw_formula(make("uniform", variables=[5, 7]), KEY, i, 0).num_variables for i in range(40)}
    assert sizes == {5, 6, 7}


def test_uniform_clauses_are_equally_likely():
    formula = draw_formula(make("uniform", variables=[5, 5], ratio=[1000, 1000]), KEY, 0, 0)
    counts = Counter(map(tuple, formula.clauses()))
    assert len(counts) == math.comb(5, 3) * 2**3
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def community_clauses(n, c, m, p, k, rng):
    """Return m clauses by community attachment, from the definition."""
    members = [part.tolist() for part in np.array_split(np.arange(1, n + 1), c)]
    clauses = []
    for _ in range(m):
        if rng.random() < p:
            variables = rng.sample(rng.choice(members), k)
        else:
            variables = [rng.choice(part) for part in rng.sample(members, k)]
        clauses.append([rng.choice([-1, 1]) * v for v in sorted(variables)])
    return clauses


def counts_of(clauses, n, c):
    """Return the numbers of clauses per community, those between communities, and the occurrences of each literal."""
    part = np.repeat(np.arange(c), [len(p) for p in np.array_split(np.arange(n), c)])
    clauses = np.array(clauses)
    communities = part[np.abs(clauses) - 1]
    distinct = np.array([len(set(row)) for row in communities.tolist()])
    assert set(distinct.tolist()) <= {1, clauses.shape[1]}
    inside = np.bincount(communities[distinct == 1, 0], minlength=c)
    outside = np.bincount(communities[distinct > 1].ravel(), minlength=c)
    return inside, outside, np.bincount((clauses + n).ravel(), minlength=2 * n + 1)[np.r_[:n, n + 1 : 2 * n + 1]]


@pytest.mark.parametrize(("n", "c", "q", "k"), [(100, 7, 0.3, 3), (64, 5, 0.6, 3), (90, 20, 0.9, 4), (40, 12, 0.0, 2)])
def test_clauses_follow_community_attachment(n, c, q, k):
    p = make("community", variables=[n, n], communities=[c, c], ratio=[200, 200], modularity=[q, q], clause_length=k)
    formula = draw_formula(p, KEY, 1, 0)
    m = formula.num_clauses
    assert m == 200 * n
    ours = counts_of(list(formula.clauses()), n, c)
    theirs = counts_of(community_clauses(n, c, m, q + 1 / c, k, random.Random(5)), n, c)
    assert stats.binomtest(int(ours[0].sum()), m, q + 1 / c).pvalue > 1e-3
    for mine, twin in zip(ours, theirs, strict=True):
        assert stats.chi2_contingency([mine + 1, twin + 1]).pvalue > 1e-3


def test_a_probability_above_one_leaves_no_clause_between_communities():
    p = make("community", communities=[5, 5], modularity=[0.9, 0.9])
    formula = draw_formula(p, KEY, 0, 0)
    inside, outside, _ = counts_of(list(formula.clauses()), formula.num_variables, 5)
    assert outside.sum() == 0
    assert inside.sum() == formula.num_clauses


# --- renaming ---------------------------------------------------------------------------------------------------------

SMALL = Cnf.from_clauses([[1, -2], [2, 3, -4], [-3], [4, 1, 2]])


@pytest.mark.parametrize("flip", [False, True])
def test_disguise_renames_the_variables(flip):
    literals, ptr, names = disguise(seed(KEY, 0, 0, 1), 4, SMALL.literals, SMALL.ptr, flip)
    assert sorted(np.abs(names[1:])) == [1, 2, 3, 4]
    expected = [sorted(int(np.sign(x) * names[abs(x)]) for x in clause) for clause in SMALL.clauses()]
    renamed = Cnf(4, literals, ptr)
    assert sorted(expected) == sorted(sorted(clause) for clause in renamed.clauses())
    for values in itertools.product([False, True], repeat=4):
        model = np.array(values)
        assert renamed.is_satisfied_by(renamed_model(names, model)) == SMALL.is_satisfied_by(model)


def test_disguises_are_equally_likely():
    names, orders, negated = Counter(), Counter(), 0
    trials = 2400
    for i in range(trials):
        literals, ptr, given = disguise(seed(KEY, i, 0, 1), 4, SMALL.literals, SMALL.ptr, True)
        names[tuple(np.abs(given[1:]).tolist())] += 1
        negated += int((given < 0).sum())
        back = {int(abs(given[v])): v for v in range(1, 5)}
        clauses = [frozenset(back[abs(x)] for x in clause) for clause in Cnf(4, literals, ptr).clauses()]
        orders[tuple(clauses)] += 1
    assert len(names) == len(orders) == 24
    assert stats.chisquare(list(names.values())).pvalue > 1e-3
    assert stats.chisquare(list(orders.values())).pvalue > 1e-3
    assert stats.binomtest(negated, 4 * trials).pvalue > 1e-3


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.data())
def test_rows_of_four_literals_are_disguised_as_clauses(n, data):
    clauses = data.draw(st.lists(st.lists(st.integers(1, n), min_size=1, max_size=4, unique=True), max_size=60))
    clauses = [[data.draw(st.sampled_from([v, -v])) for v in clause] for clause in clauses]
    cnf = Cnf.from_clauses(clauses, n)
    rows = np.array([clause + [0] * (4 - len(clause)) for clause in clauses], np.int32).reshape(-1, 4)
    key = np.uint64(data.draw(st.integers(0, 2**64 - 1)))
    states = seed(key, 0, 0, 1), seed(key, 0, 0, 1)
    plain = disguise(states[0], n, cnf.literals, cnf.ptr, False)
    for expected, array in zip(plain, disguise_rows(states[1], n, rows), strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(*states)


@pytest.mark.parametrize("family", ["pigeonhole", "coloring"])
def test_signs_that_mean_something_are_kept(family):
    formula = draw_formula(make(family), KEY, 0, 0)
    assert {len({x > 0 for x in clause}) for clause in formula.clauses()} == {1}
