"""Solvers: deterministic effort, guards, limits, and answers that are checked."""

import itertools
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError, SolverError
from graphbench.domains.sat import solver_client, solvers
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.solvers import SOLVERS, run_solver

pytest.importorskip("pysat")


def installed(name):
    try:
        return bool(SOLVERS[name].version)
    except ImportError:
        return False


NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(not installed(name), reason=f"{name} is not installed"))
    for name in SOLVERS
]


def random_formula(variables, clauses, seed):
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(variables, 3, replace=False) + 1 for _ in range(clauses)]
    return Cnf.from_clauses([(v * rng.choice([-1, 1], 3)).tolist() for v in chosen], variables).canonical()


def is_satisfiable(cnf):
    models = itertools.product([False, True], repeat=cnf.num_variables)
    return any(cnf.is_satisfied_by(np.array(model)) for model in models)


HARD = random_formula(260, 1107, 1)  # takes each solver more than 0.05 modelled seconds


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_brute_force(name):
    for seed in range(12):
        cnf = random_formula(9, 36 + seed, seed)
        run = run_solver(name, cnf)
        assert run.status == ("sat" if is_satisfiable(cnf) else "unsat")
        assert (run.model is not None and cnf.is_satisfied_by(run.model)) == (run.status == "sat")
        assert 0 < run.effort < 0.01 and run.cpu_seconds >= 0


@pytest.mark.parametrize("name", NAMES)
def test_formulas_that_need_no_search(name):
    assert run_solver(name, Cnf.from_clauses([])).status == "sat"
    assert run_solver(name, Cnf.from_clauses([], 3)).model.shape == (3,)
    assert run_solver(name, Cnf.from_clauses([[1], []])).status == "unsat"
    assert run_solver(name, Cnf.from_clauses([[2], [-2]], 5)).status == "unsat"
    run = run_solver(name, Cnf.from_clauses([[-2], [2, 4]], 5))
    assert run.model.tolist()[1] is False and run.model.tolist()[3] is True


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_effort_does_not_change_what_is_solved(name):
    cnf = random_formula(150, 620, 3)
    free = run_solver(name, cnf, 10)
    assert free.status != "unsolved"
    for limit in (1.001 * free.effort, 2 * free.effort, 30 * free.effort):
        run = run_solver(name, cnf, limit)
        assert (run.status, run.effort, run.counts) == (free.status, free.effort, free.counts)
    if free.effort > 0.01:
        assert run_solver(name, cnf, 0.98 * free.effort).status == "unsolved"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_needs_more_effort_is_unsolved(name):
    run = run_solver(name, HARD, 0.05)
    assert run.status == "unsolved" and run.model is None
    assert 0.05 <= run.effort < 0.5


AGAIN = """
import json, sys
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.solvers import run_solver
runs = {name: run_solver(name, read_dimacs(sys.argv[1]), 1) for name in sys.argv[2:]}
print(json.dumps({name: [run.status, run.effort, run.counts] for name, run in runs.items()}))
"""


def test_the_same_effort_under_load_and_in_other_processes(tmp_path):
    names = [name for name in SOLVERS if installed(name)]
    cnf = random_formula(180, 750, 5)
    cnf.to_dimacs(tmp_path / "a.cnf")
    others = [
        subprocess.Popen(
            [sys.executable, "-c", AGAIN, str(tmp_path / "a.cnf"), *names],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
        )
        for seed in (1, 2)
    ]
    runs = {name: run_solver(name, cnf, 1) for name in names}
    for other in others:
        found = json.loads(other.communicate()[0])
        assert found == {name: [run.status, run.effort, dict(run.counts)] for name, run in runs.items()}


def test_threads_get_their_own_answers():
    formulas = [random_formula(60, 200 + 20 * i, i) for i in range(4)]
    expected = [run_solver("minisat22", cnf) for cnf in formulas]
    found = [None] * len(formulas)

    def work(i):
        for _ in range(5):
            found[i] = run_solver("minisat22", formulas[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(formulas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(run.status, run.effort) for run in found] == [(run.status, run.effort) for run in expected]


@pytest.mark.slow
def test_more_memory_than_the_guard_allows_is_an_error():
    cnf = random_formula(60_000, 240_000, 1)
    with pytest.raises(SolverError, match=r"minisat22 on Cnf\(60,000 variables"):
        run_solver("minisat22", cnf, 5, memory_mb=64)
    assert run_solver("minisat22", Cnf.from_clauses([[1]])).status == "sat"  # the next run is not affected


@pytest.mark.parametrize("name", ["minisat22", pytest.param("kissat", marks=NAMES[0].marks)])
def test_a_run_beyond_its_guard_of_time_is_an_error_and_no_label(name, monkeypatch):
    def guarded(cnf, job):
        return solver_client.run_job(cnf, {**job, "wall_seconds": 0.05})

    monkeypatch.setattr(solvers, "run_job", guarded)
    with pytest.raises(SolverError, match=r"0\.05 s of wall time"):
        run_solver(name, random_formula(600, 2556, 1), 1000)


def test_a_solver_that_dies_is_an_error_and_the_next_run_works():
    job = {"solver": "none", "executable": "/bin/false", "options": [], "cpu_seconds": 5, "wall_seconds": 5}
    with pytest.raises(SolverError, match="exit status 1"):
        solver_client.run_job(HARD, {**job, "memory_bytes": 1 << 30})
    solver_client._CONNECTION.server.kill()
    solver_client._CONNECTION.server.wait()
    assert run_solver("minisat22", Cnf.from_clauses([[1]])).status == "sat"


def test_a_wrong_model_is_refused(monkeypatch):
    wrong = {"status": "sat", "counts": {}, "cpu_seconds": 0.0}
    monkeypatch.setattr(solvers, "run_job", lambda cnf, job: (wrong, np.array([-1], np.int32)))
    with pytest.raises(SolverError, match="minisat22 gave a wrong model"):
        run_solver("minisat22", Cnf.from_clauses([[1]]))


def test_unsatisfiable_answers_have_proofs():
    """Every clause that Glucose learns follows by unit propagation (Goldberg and Novikov 2003)."""
    from pysat.solvers import Glucose4

    for seed in range(3):
        cnf = random_formula(40, 200, seed)
        assert run_solver("glucose42", cnf).status == "unsat"
        with Glucose4(bootstrap_with=list(cnf.clauses()), with_proof=True) as solver:
            assert solver.solve() is False
            proof = [line.split() for line in solver.get_proof()]
        clauses = list(cnf.clauses())
        for words in proof:
            if words[0] == "d":
                continue
            learnt = [int(word) for word in words[:-1]]
            assert propagates_to_conflict(clauses, [-literal for literal in learnt])
            clauses.append(learnt)
        assert [] in clauses


def propagates_to_conflict(clauses, assumed):
    true = set(assumed)
    while True:
        before = len(true)
        for clause in clauses:
            if any(literal in true for literal in clause):
                continue
            free = [literal for literal in clause if -literal not in true]
            if not free:
                return True
            if len(free) == 1:
                true.add(free[0])
        if len(true) == before:
            return False


@pytest.mark.parametrize("effort", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_a_wrong_effort_is_refused(effort):
    with pytest.raises(ArgumentError, match="effort is"):
        run_solver("minisat22", Cnf.from_clauses([[1]]), effort)


def test_an_unknown_solver_is_refused():
    with pytest.raises(ArgumentError, match=r"no solver 'minisat'.*minisat22"):
        run_solver("minisat", Cnf.from_clauses([[1]]))
