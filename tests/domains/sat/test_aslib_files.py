"""ASlib scenarios: read from and written to their files, their costs, and malformed folders."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import StoreError
from graphbench.domains.sat.aslib_files import read_scenario, write_scenario
from graphbench.domains.sat.scenarios import STATUSES, Scenario

DESCRIPTION = """scenario_id: TOY-15
performance_measures:
- runtime
maximize:
- false
performance_type:
- runtime
algorithm_cutoff_time: 100.0
algorithm_cutoff_memory: ?
features_deterministic: f1,f2
algorithms_deterministic: fast, slow
default_steps:
- cheap
feature_steps:
  cheap:
    provides:
    - f1
  dear:
    provides:
    - f2
    requires:
    - cheap
"""
RUNS = """@RELATION runs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE\tRunTime NUMERIC
@ATTRIBUTE runstatus {ok,timeout,memout,not_applicable,crash,other}
@DATA
'a b.cnf',1,fast,1.5,ok
'a b.cnf',2,fast,?,timeout
'a b.cnf',1,slow,0,ok
2,1,fast,100.0,ok
2,1,slow,101,ok
c,1,fast,3,crash
c,1,slow,99.5,OK
"""
VALUES = """@RELATION values
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE f1 NUMERIC
@ATTRIBUTE f2 NUMERIC
@DATA
'a b.cnf',1,1,?
'a b.cnf',2,2,?
2,1,-1e3,0.5
c,1,nan,inf
"""
COSTS = VALUES.replace("f1", "cheap").replace("f2", "dear").replace("-1e3", "0.25")
FOLDS = """@RELATION cv
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE fold NUMERIC
@DATA
'a b.cnf',1,1
2,1,2
c,1,3
c,2,1
2,2,1
"""
FILES = {
    "description.txt": DESCRIPTION,
    "algorithm_runs.arff": RUNS,
    "feature_values.arff": VALUES,
    "feature_costs.arff": COSTS,
    "cv.arff": FOLDS,
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_scenario_is_read(folder):
    found = read_scenario(folder)
    assert found.name == "TOY-15" and found.instances == ("a b.cnf", "2", "c") and found.cutoff == 100
    assert found.algorithms == ("fast", "slow") and found.feature_names == ("f1", "f2")
    np.testing.assert_array_equal(found.features, [[1.5, math.nan], [-1000, 0.5], [math.nan, math.nan]])
    # of the first instance: the mean of 1.5 s and of a timeout; a time of 0; ok beyond the cutoff is a timeout
    np.testing.assert_allclose(found.costs(), [[(1.5 + 1000) / 2, 0.001], [100, 1000], [1000, 99.5]])
    np.testing.assert_allclose(found.costs(1)[2], [100, 99.5])
    assert found.used_features == ("f1",) and found.overheads().tolist() == [1.5, 0.25, 0]
    assert found.folds.tolist() == [1, 2, 3]


def test_optional_files_and_keys_may_be_missing(folder):
    (folder / "feature_costs.arff").unlink()
    (folder / "cv.arff").unlink()
    (folder / "description.txt").write_text("algorithm_cutoff_time: 7\nperformance_measures: runtime\n")
    found = read_scenario(folder)
    assert found.name == folder.name and found.used_features == ("f1", "f2") and found.cutoff == 7
    assert found.folds is None and found.overheads().tolist() == [0, 0, 0]


def scenario(seed: int) -> Scenario:
    rng = np.random.default_rng(seed)
    s, k, r, f = rng.integers(1, 6, 4)
    status = rng.integers(0, len(STATUSES), (s, k, r)).astype(np.int8)
    status[:, :, 1:][rng.random((s, k, r - 1)) < 0.3] = -1
    seconds = np.where(status == 0, rng.exponential(10, (s, k, r)), np.nan)
    features = np.where(rng.random((s, f)) < 0.2, np.nan, rng.normal(size=(s, f)) * 1e3)
    names = tuple(f"f {i}'%" for i in range(f))
    steps = {"one": names[: f // 2], "two, 2": names[f // 2 :]}
    return Scenario(
        name="S",
        instances=tuple(f"dir/i {i}" for i in range(s)),
        algorithms=tuple(f"alg-{i}" for i in range(k)),
        cutoff=float(rng.uniform(1, 50)),
        seconds=seconds,
        status=status,
        feature_names=names,
        features=features,
        steps=steps,
        step_seconds=rng.exponential(1, (s, 2)),
        step_status=rng.integers(-1, 6, (s, 2)).astype(np.int8),
        default_steps=("two, 2",),
        folds=rng.integers(1, s + 1, s),
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_a_written_scenario_is_read_back(tmp_path_factory, seed):
    place, expected = tmp_path_factory.mktemp("scenario"), scenario(seed)
    assert {path.parent for path in write_scenario(expected, place)} == {place}
    found = read_scenario(place)
    r = found.seconds.shape[2]  # later repetitions that nothing has are not written
    assert (expected.status[:, :, r:] == -1).all()
    for name in ("seconds", "status"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[:, :, :r])
    for name in ("features", "step_seconds", "step_status", "folds"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("name", "instances", "algorithms", "cutoff", "feature_names", "steps", "default_steps", "measure"):
        assert getattr(found, name) == getattr(expected, name)


def test_asf_reads_a_written_scenario(tmp_path):
    asf = pytest.importorskip("asf.scenario", exc_type=ImportError)
    rng = np.random.default_rng(1)
    seconds = rng.uniform(0, 20, (12, 3, 1))
    own = Scenario(
        name="OWN",
        instances=tuple(f"i{i}" for i in range(12)),
        algorithms=("a", "b", "c"),
        cutoff=15.0,
        seconds=np.minimum(seconds, 15),
        status=np.where(seconds > 15, 1, 0).astype(np.int8),
        feature_names=("x", "y"),
        features=rng.normal(size=(12, 2)),
        steps={"all": ("x", "y")},
        step_seconds=np.ones((12, 1)),
        step_status=np.zeros((12, 1), np.int8),
        folds=np.arange(12) % 3 + 1,
    )
    write_scenario(own, tmp_path)
    features, performance, *_ = asf.read_aslib_scenario(str(tmp_path))
    np.testing.assert_allclose(features.loc[list(own.instances), ["x", "y"]].to_numpy(), own.features)
    np.testing.assert_allclose(performance.loc[list(own.instances), list("abc")].to_numpy(), own.costs())


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("algorithm_runs.arff", "c,1,fast", "d,1,fast", r"algorithm_runs.arff, line 13: the instance 'd'"),
        ("algorithm_runs.arff", "c,1,fast,3,crash\n", "", "has no run of 'fast' on 'c'"),
        ("algorithm_runs.arff", "3,crash", "3,broken", "line 13: runstatus is 'broken'"),
        ("algorithm_runs.arff", "OK", "OKAY", r"line 14: runstatus is 'OKAY'"),
        ("algorithm_runs.arff", "99.5", "?", r"line 14.*runtime is nan"),
        ("algorithm_runs.arff", "c,1,slow", "c,1,fast", "line 14: the run of 'fast'"),
        ("algorithm_runs.arff", "c,1,slow", "c,0,slow", r"line 14: the repetition is 0"),
        ("algorithm_runs.arff", "c,1,slow", "c,1e9,slow", r"line 14: the repetition is 1e\+09"),
        ("algorithm_runs.arff", "RunTime", "cpu", r"has no attribute 'runtime'; it has .*cpu"),
        ("description.txt", "algorithm_cutoff_time: 100.0", "", "algorithm_cutoff_time.*PAR10"),
        ("description.txt", "100.0", "?", r"algorithm_cutoff_time is '\?'"),
        ("description.txt", "performance_type:\n- runtime", "performance_type: solution_quality", "scenarios of run"),
        ("description.txt", "- false", "- true", "maximize is true"),
        ("description.txt", "- f2", "- f3", "'dear' provides 'f3'"),
        ("description.txt", "- cheap\nfeature", "- chap\nfeature", "default_steps has 'chap'"),
        ("description.txt", "scenario_id: TOY-15", "scenario_id: [", r"description.txt, line \d+: not valid YAML"),
        ("description.txt", "scenario_id: TOY-15", "a: &x [1]\nb: *x", r"line 2: it has an alias \(\*x\)"),
        ("description.txt", "scenario_id: TOY-15", "a: " + "[" * 50 + "]" * 50, "nested too deeply"),
        ("feature_values.arff", "2,1,-1e3,0.5", "2,1,-1e3", r"line 9.*3 values.*4"),
        ("feature_values.arff", "'a b.cnf',2,2", "'a b.cnf',1,2", r"line 8: the instance is there twice"),
        ("feature_costs.arff", "dear", "deer", r"feature_costs.arff has no attribute 'dear'"),
        ("cv.arff", "2,1,2\n", "", "has no fold of the instance '2'"),
        ("cv.arff", "2,1,2\n", "2,1,0\n", "line 7: the fold is 0"),
        ("cv.arff", "2,1,2\n", "c,1,2\n2,1,2\n", "line 9: the instance is in two folds"),
    ],
)
def test_a_bad_scenario_is_one_clear_error(folder, file, old, new, message):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(StoreError, match=message) as caught:
        read_scenario(folder).costs()
    assert "\n" not in str(caught.value)


def test_missing_and_binary_files_are_refused(folder):
    (folder / "description.txt").write_bytes(b"\xff\xfe\x00" * 9)
    with pytest.raises(StoreError, match=r"description\.txt cannot be read"):
        read_scenario(folder)
    (folder / "description.txt").write_text("a" * (1 << 21))
    with pytest.raises(StoreError, match="larger than 1,048,576 bytes"):
        read_scenario(folder)
    (folder / "description.txt").write_text(DESCRIPTION)
    (folder / "algorithm_runs.arff").unlink()
    with pytest.raises(StoreError, match=r"algorithm_runs\.arff cannot be read"):
        read_scenario(folder)
