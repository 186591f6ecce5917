"""Portfolios of algorithms and their knee, beside brute force and a direct evaluation of Kneedle's definition."""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.cli import main
from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.data.build.label_tables import LabelTable, TableHead, write_tables
from graphbench.tasks.select import best_portfolios, knee


def costs_of(seed, instances=30, algorithms=7):
    rng = np.random.default_rng(seed)
    return np.round(10 ** rng.uniform(-1, 2, (instances, algorithms)), 2)


def brute_force(costs, size):
    return min(costs[:, list(chosen)].min(axis=1).mean() for chosen in combinations(range(costs.shape[1]), size))


@pytest.mark.parametrize("seed", range(6))
def test_up_to_eleven_algorithms_the_portfolios_are_the_best(seed):
    costs = costs_of(seed, algorithms=11 if seed == 0 else 3 + seed)
    names = [f"a{k}" for k in range(costs.shape[1])]
    found = best_portfolios(costs, names)
    assert [len(best.algorithms) for best in found] == list(range(1, costs.shape[1] + 1))
    for size, best in enumerate(found, 1):
        assert best.exact and best.cost == pytest.approx(brute_force(costs, size), rel=1e-12)
        columns = [names.index(name) for name in best.algorithms]
        assert costs[:, columns].min(axis=1).mean() == pytest.approx(best.cost, rel=1e-12)


def test_a_narrow_beam_says_where_it_is_not_exhaustive():
    # b and c together are perfect, but a alone is the best of its size, and a beam of one goes on from it
    costs = [[4.0, 1.0, 99.0], [4.0, 99.0, 1.0]]
    greedy, whole = (best_portfolios(costs, "abc", beam=width) for width in (1, 3))
    assert greedy[1].algorithms == ("a", "b") and greedy[1].cost == 2.5
    assert whole[1].algorithms == ("b", "c") and whole[1].cost == 1.0
    assert [best.exact for best in greedy] == [True, False, False] and all(best.exact for best in whole)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.permutations(range(6)), st.integers(1, 4))
def test_the_order_of_the_columns_does_not_matter(seed, order, beam):
    costs = np.round(costs_of(seed, 8, 6) / 40) + 1  # many ties
    names = list("abcdef")
    own = best_portfolios(costs, names, beam=beam)
    other = best_portfolios(costs[:, order], [names[k] for k in order], beam=beam)
    assert [(set(p.algorithms), p.cost) for p in own] == [(set(p.algorithms), p.cost) for p in other]
    assert all(a.cost >= b.cost for a, b in pairwise(own))


def kneedle(values, sensitivity):
    """Follow the steps of the paper one point after the other, with a threshold that is kept while walking."""
    n = len(values)
    low, high = min(values), max(values)
    d = [(high - v) / (high - low) - i / (n - 1) for i, v in enumerate(values)]
    threshold, top = None, None
    for i in range(1, n):
        if threshold is not None and d[i] < threshold:
            return top
        if i < n - 1 and d[i] > d[i - 1] and d[i] >= d[i + 1]:
            threshold, top = d[i] - sensitivity / (n - 1), i
        elif threshold is not None and d[i] > d[i - 1]:
            threshold = top = None
    return None


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 40), min_size=3, max_size=9, unique=True), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_knee_is_that_of_the_definition(values, sensitivity):
    curve = sorted((v * v for v in values), reverse=True)
    assert knee(curve, sensitivity) == kneedle(curve, sensitivity)


def test_known_knees():
    # 1/x + 5 is the example of the paper, whose knee at S = 0 is where the slope of the scaled curve is -1
    x = np.linspace(0.1, 1.0, 91)
    scaled = np.gradient(1 / x / (10 - 1), x / 0.9)
    assert knee(list(1 / x + 5), 0.0) == pytest.approx(int(np.abs(scaled + 1).argmin()), abs=1)
    assert knee([100, 60, 12, 10, 9, 8.5]) == 2
    assert knee([5, 5, 5]) is None and knee([3, 2]) is None and knee([4, 3, 2, 1]) is None and knee([1, 2, 3]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], ["a"]), r"2 columns of costs and the names \['a'\]"),
        (([[1.0, 2.0]], ["a", "a"]), "give one for each"),
        (([[0.0, 2.0]], ["a", "b"]), "a cost is a number above 0"),
        (([[np.nan, 2.0]], ["a", "b"]), "costs"),
    ],
)
def test_bad_costs_are_refused(arguments, message):
    with pytest.raises(EvaluationError, match=message):
        best_portfolios(*arguments)
    with pytest.raises(ArgumentError, match="beam must be at least 1"):
        best_portfolios([[1.0]], ["a"], beam=0)
    with pytest.raises(EvaluationError, match="the sensitivity -1"):
        knee([3.0, 2.0, 1.0], -1)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, capsys.readouterr()

    return call


def test_the_command_on_a_dataset(tmp_path, run):
    code, shown = run("portfolio", "sat/aslib", "--limit", 300, "--root", tmp_path, "--workers", 1, "--json")
    assert code == 0, shown
    found = json.loads(shown.out)
    import graphbench

    train = graphbench.Loader("sat/aslib", root=tmp_path, limit=300, workers=1).load().train
    names = [f.name for f in train.card.outputs]
    costs = np.stack([np.asarray(train.flat.values[name], np.float64)[:300] for name in names], axis=1)
    assert found["instances"] == 300 and [row["size"] for row in found["portfolios"]] == [1, 2, 3, 4, 5]
    for row in found["portfolios"]:
        assert row["cost"] == pytest.approx(brute_force(costs, row["size"]))
    code, shown = run("portfolio", "sat/aslib", "--limit", 300, "--root", tmp_path, "--workers", 1)
    assert code == 0 and "knee" in shown.out and "300 instances" in shown.out
    code, shown = run("portfolio", "algoreas/mst_easy", "--root", tmp_path, "--limit", 3)
    assert code == 2 and "no selection of algorithms" in shown.err


def test_the_command_on_tables_of_labels(tmp_path, run):
    solvers = ["kissat", "cadical195", "minisat22", "glucose42", "ergo", "mergesat3"]
    rng = np.random.default_rng(0)
    seconds = rng.uniform(0.1, 3, (20, 6))
    tables = []
    for k, solver in enumerate(solvers):
        head = TableHead(
            labeller=f"sat.{solver}",
            version=1,
            effort={"cutoff": 2.0, "solver_version": "1"},
            columns=("status", "nanoseconds", "cpu_microseconds"),
        )
        rows = {
            f"key{i}": (0 if t < 2 else 2, int(min(t, 2) * 10**9), 1)
            for i, t in enumerate(seconds[:, k].tolist())
            if (i, k) != (7, 3)  # without this outcome the formula has not all of them
        }
        tables.append(LabelTable(head, rows))
    write_tables(tables, tmp_path / "runs.csv.xz")
    code, shown = run("portfolio", "sat/small:select", "--tables", tmp_path / "runs.csv.xz", "--json")
    assert code == 0, shown
    found = json.loads(shown.out)
    costs = np.delete(np.where(seconds < 2, seconds, 20), 7, axis=0)
    assert found["instances"] == 19
    for row in found["portfolios"]:
        assert row["cost"] == pytest.approx(brute_force(costs, row["size"]))
    write_tables(tables[:4], tmp_path / "few.csv.xz")
    code, shown = run("portfolio", "sat/small:select", "--tables", tmp_path / "few.csv.xz")
    assert code == 2 and "no table gives ergo_par10" in shown.err
