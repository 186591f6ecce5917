"""Databases of GBD: SQLite and CSV, and run times as a scenario whose graphs are formulas found by their hash."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import ArgumentError, StoreError
from graphbench.domains.sat import Cnf
from graphbench.domains.sat.aslib_files import write_scenario
from graphbench.domains.sat.formulas import formula_of
from graphbench.domains.sat.gbd import gbd_scenario, read_gbd

A, B, C = ("a" * 32, "b" * 32, "0123456789abcdef" * 2)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "some db?.db"
    with sqlite3.connect(path) as made:
        made.execute('CREATE TABLE features (hash TEXT UNIQUE, kissat TEXT, "min""isat" TEXT, family, filename)')
        made.executemany(
            "INSERT INTO features VALUES (?, ?, ?, ?, ?)",
            [
                (A, "1.5", "timeout", "x", "None"),
                (B, 12, "empty", None, "None"),
                (C, "6000", "0.25", "y", "None"),
            ],
        )
        made.execute("CREATE TABLE filename (hash TEXT, value TEXT)")
        made.executemany(
            "INSERT INTO filename VALUES (?, ?)", [("None", "None"), (A, "two.cnf"), (A, "one.cnf"), (C, "c.cnf")]
        )
        made.execute("CREATE TABLE __meta (name TEXT, x INT, hash TEXT)")
    made.close()
    return path


def test_a_database_is_read(database):
    before = database.read_bytes()
    found = read_gbd(database)
    assert found == {
        "kissat": {A: ("1.5",), B: ("12",), C: ("6000",)},
        'min"isat': {A: ("timeout",), C: ("0.25",)},
        "family": {A: ("x",), C: ("y",)},
        "filename": {A: ("one.cnf", "two.cnf"), C: ("c.cnf",)},
    }
    assert database.read_bytes() == before and not list(database.parent.glob("*-journal"))


def test_a_table_of_values_is_read(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f'hash,kissat,family\n{A},1.5,"x, y"\n\n{B},empty,z\n')
    assert read_gbd(path) == {"kissat": {A: ("1.5",)}, "family": {A: ("x, y",), B: ("z",)}}


def test_run_times_are_a_scenario(database):
    found = gbd_scenario(read_gbd(database), ["kissat", 'min"isat'], 5000, features=["family", "kissat"][:1])
    assert found.instances == (C, A)
    np.testing.assert_array_equal(found.costs(), [[50000, 0.25], [1.5, 50000]])
    assert np.isnan(found.features).all() and math.isnan(found.seconds[1, 1, 0])
    assert found.status[:, :, 0].tolist() == [[1, 0], [0, 1]]


def test_run_times_join_formulas_by_hash(tmp_path):
    rng = np.random.default_rng(0)
    formulas = {}
    for _ in range(6):
        clauses = [((rng.permutation(7)[:3] + 1) * rng.choice([-1, 1], 3)).tolist() for _ in range(12)]
        cnf = Cnf.from_clauses(clauses, 9)  # as written: unsorted literals, and two variables that do not occur
        formulas[cnf.gbdhash] = cnf
    rows = [f"{key},{rng.uniform(0, 9):.3f},{rng.uniform(0, 9):.3f}" for key in formulas]
    (tmp_path / "runs.csv").write_text("\n".join(["hash,fast,slow", *rows, f"{A},1,2"]) + "\n")
    scenario = gbd_scenario(read_gbd(tmp_path / "runs.csv"), ["fast", "slow"], 5.0)
    known = np.array([key in formulas for key in scenario.instances])
    keep = np.flatnonzero(known)
    parts = {"instances": tuple(scenario.instances[i] for i in keep), "seconds": scenario.seconds[keep]}
    parts |= {"status": scenario.status[keep], "features": scenario.features[keep]}
    write_scenario(type(scenario)(**{**vars(scenario), **parts}), tmp_path / "scenario")
    for number, cnf in enumerate(formulas.values()):
        cnf.to_dimacs(tmp_path / "scenario" / "formulas" / f"{number}.cnf.xz")
    loaded = graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "scenario", root=tmp_path / "root").load()
    times = {row.split(",")[0]: [float(word) for word in row.split(",")[1:]] for row in rows}
    seen = 0
    for split in ("train", "val", "test"):
        own = loaded[split].samples
        for i, key in enumerate(own.values["name"].strings()):
            expected = formulas[key].canonical().without_unused_variables()
            assert list(formula_of(own, i).clauses()) == list(expected.clauses())
            costs = [t if t <= 5 else 50 for t in times[key]]
            np.testing.assert_allclose([own.values["fast_par10"][i], own.values["slow_par10"][i]], costs, rtol=1e-6)
            seen += 1
    assert seen == 6 and not [f for f in loaded.card.inputs if f.name == "features"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no column 'hash'"),
        (b"key,x\n1,2\n", "has no column 'hash'"),
        (b"hash,x,x\n1,2,3\n", "has a column twice"),
        (f"hash,x\n{A},1\n{A},2\n".encode(), "line 3: .* is there already, on line 2"),
        (f"hash,x\n{A}\n".encode(), "line 2: the row has 1 cells, not 2"),
        (b"hash,x\nabc,1\n", "line 2: 'abc' is no gbdhash"),
        (b"hash,x\n\xff\xfe,1\n", "cannot be read as CSV"),
        (b'hash,x\n"' + b"z" * 200_000, "cannot be read as CSV"),
        (b"SQLite format 3\0" + b"\x13garbage" * 500, "cannot be read as a SQLite database"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "bad.file"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message) as caught:
        read_gbd(path)
    assert "bad.file" in str(caught.value) and "\n" not in str(caught.value)


def test_other_databases_and_missing_files_are_refused(tmp_path, database):
    with pytest.raises(StoreError, match="is no file; give a database of GBD"):
        read_gbd(tmp_path / "none.db")
    with sqlite3.connect(tmp_path / "other.db") as made:
        made.execute("CREATE TABLE features (id, x)")
    made.close()
    with pytest.raises(StoreError, match="table 'features' with a column 'hash'"):
        read_gbd(tmp_path / "other.db")
    cut = tmp_path / "cut.db"
    cut.write_bytes(database.read_bytes()[:5000])
    with pytest.raises(StoreError, match=r"cut\.db"):
        read_gbd(cut)


@pytest.mark.parametrize(
    ("solvers", "options", "error", "message"),
    [
        (["kisat"], {}, ArgumentError, "column 'kisat'.*'kissat'"),
        (["kissat", "kissat"], {}, ArgumentError, "each named once"),
        ([], {}, ArgumentError, "must be columns"),
        (["kissat"], {"cutoff": 0}, ArgumentError, "cutoff is 0"),
        (["kissat", "family"], {}, StoreError, "run of family on .* is 'y'"),
        (["filename"], {}, StoreError, "'c.cnf'; it is a time|'one.cnf, two.cnf'"),
    ],
)
def test_columns_that_are_no_runs_are_refused(database, solvers, options, error, message):
    with pytest.raises(error, match=message):
        gbd_scenario(read_gbd(database), solvers, **{"cutoff": 5000, **options})
