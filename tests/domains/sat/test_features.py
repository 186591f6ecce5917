import importlib.util
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.feature_groups import (
    FEATURE_GROUPS,
    FEATURES,
    SOLVED,
    STRUCTURAL_GROUPS,
    base_features,
    feature_array,
    feature_report,
    feature_seconds,
    features,
)

HAS_PYSAT = importlib.util.find_spec("pysat") is not None
GROUPS = tuple(group for group in FEATURE_GROUPS if HAS_PYSAT or group != "probes")


@st.composite
def formulas(draw, most=7):
    """Formulas with empty, unit, repeated and tautological clauses, and with unused variables."""
    n = draw(st.integers(0, most))
    literal = st.integers(1, n).flatmap(lambda v: st.sampled_from([v, -v])) if n else st.nothing()
    return Cnf.from_clauses(draw(st.lists(st.lists(literal, max_size=5) if n else st.just([]), max_size=14)), n)


def random_formula(n, m, seed, lengths=(3,)):
    """Return a formula of random clauses of distinct variables."""
    rng = np.random.default_rng(seed)
    clauses = [rng.choice(n, rng.choice(lengths), replace=False) + 1 for _ in range(m)]
    return Cnf.from_clauses([(clause * rng.choice([-1, 1], len(clause))).tolist() for clause in clauses], n)


def renamed(cnf, rng):
    """Return a formula with its variables, clauses and literals in other orders."""
    number = rng.permutation(cnf.num_variables) + 1
    clauses = [[int(math.copysign(number[abs(x) - 1], x)) for x in rng.permutation(c)] for c in cnf.clauses()]
    return Cnf.from_clauses([clauses[j] for j in rng.permutation(len(clauses))], cnf.num_variables)


def is_satisfiable(cnf):
    n = cnf.num_variables
    models = (np.array([bits >> v & 1 for v in range(n)], bool) for bits in range(2**n))
    return any(cnf.is_satisfied_by(model) for model in models)


@given(formulas())
@settings(max_examples=60, deadline=None)
def test_all_features_are_finite_and_in_order(cnf):
    row = feature_array(cnf, GROUPS)
    assert row.dtype == np.float64
    assert np.isfinite(row).all()
    found = features(cnf, GROUPS)
    assert list(found) == [name for group in GROUPS for name in FEATURE_GROUPS[group]]
    assert list(found.values()) == row.tolist()


def test_names_are_distinct():
    assert len(set(FEATURES)) == len(FEATURES) == sum(map(len, FEATURE_GROUPS.values()))
    assert set(STRUCTURAL_GROUPS) < set(FEATURE_GROUPS)


@given(formulas(), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
@pytest.mark.thorough
def test_other_orders_of_small_formulas_change_no_structural_feature(cnf, seed):
    groups = [group for group in STRUCTURAL_GROUPS if group != "community"]
    assert features(cnf, groups) == features(renamed(cnf, np.random.default_rng(seed)), groups)


def test_other_orders_of_large_formulas_change_only_samples_and_heuristics():
    cnf = random_formula(500, 2100, 1, (2, 3, 3, 5))
    other = renamed(cnf, np.random.default_rng(2))
    exact = [group for group in STRUCTURAL_GROUPS if group not in ("distance", "community")]
    assert features(cnf, exact) == features(other, exact)
    mine, theirs = features(cnf, ["distance", "community"]), features(other, ["distance", "community"])
    for name in ("log_components", "largest_component_share"):
        assert mine[name] == theirs[name]
    assert mine["distance_mean"] == pytest.approx(theirs["distance_mean"], rel=0.05)
    assert mine["modularity"] == pytest.approx(theirs["modularity"], abs=0.03)


@pytest.mark.skipif(not HAS_PYSAT, reason="needs python-sat")
@given(formulas(5))
@settings(max_examples=60, deadline=None)
@pytest.mark.thorough
def test_probes_tell_what_they_decide(cnf):
    """A formula this small is decided by complete solvers; incomplete probes may only claim what is true."""
    found = features(cnf, ("propagation", "walksat", "breakout", "probes"))
    marks = {name.removeprefix(SOLVED): value for name, value in found.items() if name.startswith(SOLVED)}
    assert marks.keys() == {
        "propagation", "walksat", "breakout", "minisat22_500", "minisat22_2000", "cadical195_500",
    }  # fmt: skip
    satisfiable = is_satisfiable(cnf)
    assert marks["minisat22_500"] == marks["minisat22_2000"] == marks["cadical195_500"] == 1
    assert marks["walksat"] == marks["breakout"] == satisfiable


def test_steps_are_repeatable_and_have_a_price():
    cnf = random_formula(300, 1250, 3)
    first, second = feature_report(cnf, GROUPS), feature_report(cnf, GROUPS)
    assert (first.values, first.steps, first.seconds) == (second.values, second.steps, second.seconds)
    assert list(first.steps) == list(GROUPS)
    assert all(isinstance(steps, int) and steps > 0 for steps in first.steps.values())
    double = feature_seconds({group: 2 * steps for group, steps in first.steps.items()})
    assert all(0 < first.seconds[group] < double[group] <= 2 * first.seconds[group] for group in GROUPS)
    assert sum(first.seconds.values()) < 0.3


def test_steps_stay_what_they_are():
    """Steps follow from all random choices and searches: a change here changes features, and stored ones are stale."""
    clauses, number = [], 9
    for j in range(500):
        clause = []
        for _ in range(2 + j % 3):
            number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
            clause.append((1 + (number >> 33) % 120) * (-1) ** (number >> 63))
        clauses.append(clause)
    cnf = Cnf.from_clauses(clauses, 120)
    steps = feature_report(cnf, [group for group in GROUPS if group != "probes"]).steps
    assert steps == {
        "size": 2_119,
        "balance": 2_119,
        "horn": 2_119,
        "degrees": 2_119,
        "variable_graph": 61_893,
        "clause_graph": 26_158,
        "distance": 51_982,
        "community": 32_018,
        "propagation": 12_197,
        "walksat": 623_070,
        "breakout": 1_548_333,
    }


def test_single_groups_are_parts_of_all():
    cnf = random_formula(60, 200, 4)
    together = feature_report(cnf, GROUPS)
    for group in GROUPS:
        alone = feature_report(cnf, [group])
        assert alone.values == {name: together.values[name] for name in FEATURE_GROUPS[group]}
        assert alone.steps == {group: together.steps[group]}


def test_unknown_groups_are_named():
    with pytest.raises(ArgumentError, match=r"'sise'.*size, balance"):
        features(Cnf.from_clauses([[1]]), ["size", "sise"])


@pytest.mark.parametrize("literal", [0, 3, -3])
def test_literals_without_a_variable_are_named(literal):
    with pytest.raises(ArgumentError, match=f"the literal {literal} at position 1"):
        features(Cnf(2, np.array([1, literal], np.int32), np.array([0, 2])), ["size"])


def test_missing_packages_are_named_with_their_remedy(monkeypatch):
    cnf = Cnf.from_clauses([[1, 2]])
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    monkeypatch.setitem(sys.modules, "gbdc", None)
    with pytest.raises(MissingDependency, match=r"'probes'.*pip install 'graphbench\[sat\]'"):
        features(cnf)
    with pytest.raises(MissingDependency, match=r"gbdc: pip install 'graphbench\[sat\]'"):
        base_features(cnf)


def test_probes_count_what_the_solvers_count():
    solvers = pytest.importorskip("pysat.solvers")
    cnf = random_formula(250, 1060, 7)
    found = features(cnf, ["probes"])
    for name, conflicts in (("minisat22", 500), ("minisat22", 2000), ("cadical195", 500)):
        with solvers.Solver(name, bootstrap_with=list(cnf.clauses())) as solver:
            solver.conf_budget(conflicts)
            answer = solver.solve_limited()
            counts = solver.accum_stats()
        for count, value in counts.items():
            assert found[f"{name}_{conflicts}_log_{count}"] == pytest.approx(math.log10(1 + value))
        assert found[f"{SOLVED}{name}_{conflicts}"] == (answer is not None)
    assert found[f"{SOLVED}minisat22_500"] == 0  # the formula is no trivial one


@pytest.mark.parametrize("seed", range(4))
def test_gbdc_agrees_where_its_features_are_defined_alike(seed):
    """Its entropies are divided by the logarithm of the number of distinct values, and those of ours are not."""
    pytest.importorskip("gbdc")
    cnf = random_formula(40 + 60 * seed, 150 + 100 * seed, seed, (1, 2, 3, 4)).canonical().without_unused_variables()
    theirs = {name.removeprefix("gbdc_"): value for name, value in base_features(cnf).items()}
    assert len(theirs) == 58
    own = features(cnf, ["size", "balance", "horn", "degrees"])
    m = cnf.num_clauses
    shares = {"unit": "cls1", "binary": "cls2", "ternary": "cls3", "horn": "horn", "reverse_horn": "invhorn"}
    for name, other in shares.items():
        assert own[f"{name}_clause_share"] == pytest.approx(theirs[other] / m)
    assert own["positive_clause_share"] == pytest.approx(theirs["positive"] / m)
    assert own["negative_clause_share"] == pytest.approx(theirs["negative"] / m)
    assert 10 ** own["log_variables"] - 1 == pytest.approx(theirs["variables"])
    counts = {
        "horn_occurrences": "hornvars",
        "reverse_horn_occurrences": "invhornvars",
        "variable_degree": "vcg_vdegree",
        "clause_degree": "vcg_cdegree",
    }
    for name, other in counts.items():
        mean = theirs[f"{other}_mean"]
        for statistic in ("mean", "min", "max"):
            assert 10 ** own[f"{name}_log_{statistic}"] - 1 == pytest.approx(theirs[f"{other}_{statistic}"], abs=1e-9)
        assert own[f"{name}_cv"] == pytest.approx(math.sqrt(theirs[f"{other}_variance"]) / mean)
    for statistic in ("mean", "min", "max"):
        assert own[f"clause_balance_{statistic}"] == pytest.approx(theirs[f"balancecls_{statistic}"], abs=1e-9)


@pytest.mark.parametrize("clauses", [[], [[]], [[1, 2], []]])
def test_formulas_that_gbdc_cannot_read_are_refused(clauses):
    pytest.importorskip("gbdc")
    with pytest.raises(ArgumentError, match="its features are not defined"):
        base_features(Cnf.from_clauses(clauses, 2))
