"""Datasets of formulas written as DIMACS files and ASlib scenarios, and read back."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphbench
from graphbench.cli import main
from graphbench.core.errors import ArgumentError, StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.export import export_samples, find_exporter
from graphbench.domains.sat import Cnf, read_dimacs
from graphbench.domains.sat.aslib_files import read_scenario
from graphbench.domains.sat.exporters import scenario_of
from graphbench.domains.sat.feature_labellers import COLUMNS
from graphbench.domains.sat.formula_files import read_formulas
from graphbench.domains.sat.formulas import formulas_as_samples

SOLVERS = ("kissat", "cadical195", "minisat22", "glucose42", "ergo", "mergesat3")
CUTOFF = 2.0


def formula(seed: int) -> Cnf:
    rng = np.random.default_rng(seed)
    clauses = [(rng.permutation(9)[:3] + 1) * rng.choice([-1, 1], 3) for _ in range(48)]
    return Cnf.from_clauses([clause.tolist() for clause in clauses]).canonical().without_unused_variables()


def labelled(seeds) -> Samples:
    """Formulas with made-up labels: the fourth solver fails on the second formula, and so do the probes."""
    rng = np.random.default_rng(min(seeds))
    formulas, count = [formula(seed) for seed in seeds], len(seeds)
    graphs = formulas_as_samples(formulas, np.zeros(count, np.int64))
    values = dict(graphs.values)
    for k, solver in enumerate(SOLVERS):
        seconds = rng.uniform(0, 1.5 * CUTOFF, count)
        failed = (np.arange(count) == 1) & (k == 3)
        values[f"{solver}_failed"] = failed.astype(np.uint8)
        values[f"{solver}_status"] = np.where(failed, -1, np.where(seconds > CUTOFF, 2, k % 2)).astype(np.int8)
        values[f"{solver}_seconds"] = np.where(failed, -1, np.minimum(seconds, CUTOFF)).astype(np.float32)
        values[f"{solver}_par10"] = np.where(seconds > CUTOFF, 10 * CUTOFF, seconds).astype(np.float32)
    for name in ("structure", "probes"):
        failed = (np.arange(count) == 1) & (name == "probes")
        values[f"{name}_failed"] = failed.astype(np.uint8)
        table = rng.normal(size=(count, len(COLUMNS[name]))).astype(np.float32)
        values[name] = np.where(failed[:, None], -1, table).astype(np.float32)
        values[f"{name}_seconds"] = np.where(failed, -1, rng.uniform(0, 1, count)).astype(np.float32)
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, values)


@pytest.fixture
def splits():
    return {"train": labelled(range(6)), "val": labelled(range(10, 12)), "test": labelled(range(20, 23))}


CARD = "sat/small:select"


def test_a_dataset_is_an_aslib_scenario(splits, tmp_path):
    card = graphbench.card(CARD)
    export_samples(find_exporter(card, "aslib"), card, splits, tmp_path / "scenario")
    found = read_scenario(tmp_path / "scenario")
    seeds = [*range(6), 10, 11, 20, 21, 22]
    assert found.instances == tuple(formula(seed).gbdhash for seed in seeds)
    assert found.algorithms == SOLVERS and found.cutoff == CUTOFF
    assert found.folds.tolist() == [3] * 6 + [2] * 2 + [1] * 3
    assert found.feature_names == COLUMNS["structure"] + COLUMNS["probes"]

    def column(name):
        return np.concatenate([own.values[name] for own in splits.values()])

    for k, solver in enumerate(SOLVERS):
        failed = column(f"{solver}_failed") == 1
        expected = np.where(failed, 10 * CUTOFF, column(f"{solver}_par10").astype(np.float64))
        np.testing.assert_allclose(found.costs()[:, k], np.maximum(expected, 0.001), rtol=1e-6)
    assert (found.status == 4).sum() == 3 and found.status[1, 3, 0] == 4
    width = len(COLUMNS["structure"])
    np.testing.assert_array_equal(found.features[:, :width], column("structure").astype(np.float64))
    failed = column("probes_failed") == 1
    assert np.isnan(found.features[failed, width:]).all() and failed.sum() == 3
    np.testing.assert_array_equal(found.features[~failed, width:], column("probes")[~failed].astype(np.float64))
    np.testing.assert_array_equal(found.step_status, np.stack([np.zeros(11), 4 * failed], axis=1))
    np.testing.assert_allclose(
        found.overheads(), column("structure_seconds").astype(float) + np.where(failed, 0, column("probes_seconds"))
    )


def test_an_exported_scenario_is_a_dataset_again(splits, tmp_path):
    card = graphbench.card(CARD)
    export_samples(find_exporter(card, "aslib"), card, splits, tmp_path / "scenario")
    loader = graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "scenario", root=tmp_path / "root")
    loaded = loader.load()
    for split, samples in splits.items():
        own = loaded[split].samples
        assert own.values["name"].strings() == [
            formula(s).gbdhash for s in {"train": range(6), "val": (10, 11), "test": (20, 21, 22)}[split]
        ]
        for solver in SOLVERS:
            failed = samples.values[f"{solver}_failed"] == 1
            expected = np.where(failed, 10 * CUTOFF, samples.values[f"{solver}_par10"])
            np.testing.assert_allclose(own.values[f"{solver}_par10"], np.maximum(expected, 1e-3), rtol=1e-6)


def test_a_dataset_is_a_folder_of_formulas(splits, tmp_path):
    card = graphbench.card(CARD)
    exporter = find_exporter(card, "cnf")
    export_samples(exporter, card, {**splits, "dense": labelled(range(30, 32))}, tmp_path / "cnf")
    found = read_formulas(tmp_path / "cnf")
    assert {name: len(own) for name, own in found.items()} == {"train": 6, "val": 2, "test": 3, "dense": 2}
    read = [list(cnf.clauses()) for cnf in found["train"].values()]
    assert read == [list(formula(seed).clauses()) for seed in range(6)]
    assert all(read_dimacs(path).gbdhash in path.name for path in (tmp_path / "cnf").glob("*/*"))
    with pytest.raises(StoreError, match="already and not empty"):
        export_samples(exporter, card, splits, tmp_path / "cnf")


def test_what_no_format_holds_is_refused(splits, tmp_path):
    card = graphbench.card(CARD)
    with pytest.raises(ArgumentError, match=r"'asslib'.*'aslib'"):
        find_exporter(card, "asslib")
    with pytest.raises(ArgumentError, match="known are 'all': of all domains"):
        find_exporter(graphbench.card("algoreas/mst_easy"), "cnf", {"all": "of all domains"})
    with pytest.raises(ArgumentError, match="the split 'dense' is out of distribution"):
        scenario_of(card, {**splits, "dense": labelled(range(30, 32))})
    with pytest.raises(ArgumentError, match="a formula is in two splits"):
        scenario_of(card, {**splits, "val": labelled(range(2))})
    with pytest.raises(ArgumentError, match="sat/aslib holds no formulas"):
        scenario_of(graphbench.card("sat/aslib"), splits)
    effort = dict(card.labels["sat.ergo"].effort, cutoff=3.0)
    labels = {**card.labels, "sat.ergo": card.labels["sat.ergo"].model_copy(update={"effort": effort})}
    with pytest.raises(ArgumentError, match=r"cutoffs \[2\.0, 3\.0\]"):
        scenario_of(card.model_copy(update={"labels": labels}), splits)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, capsys.readouterr()

    return call


def is_satisfiable(cnf: Cnf) -> bool:
    models = ((np.arange(2**9)[:, None] >> np.arange(9)) & 1).astype(bool)
    value = {sign * (v + 1): models[:, v] == (sign > 0) for v in range(9) for sign in (1, -1)}
    clauses = [np.logical_or.reduce([value[literal] for literal in clause]) for clause in cnf.clauses()]
    return bool(np.logical_and.reduce(clauses).any())


@pytest.mark.thorough
def test_the_command_writes_files_and_scenarios(tmp_path, run):
    """The labels are those of the solver, which runs on the files."""
    pytest.importorskip("pysat")
    for split, seeds in (("train", range(3)), ("val", [10]), ("test", [20, 21])):
        for seed in seeds:
            formula(seed).to_dimacs(tmp_path / "in" / split / f"{seed}.cnf")
    place = ("--source", "files", "--folder", tmp_path / "in", "--root", tmp_path / "root", "--workers", 1, "--json")
    code, shown = run("export", "sat/small", "--format", "cnf", "--output", tmp_path / "cnf", *place)
    assert code == 0, shown
    assert json.loads(shown.out)["splits"] == {"train": 3, "val": 1, "test": 2}
    read = [cnf.gbdhash for own in read_formulas(tmp_path / "cnf").values() for cnf in own.values()]
    assert sorted(read) == sorted(formula(seed).gbdhash for seed in (0, 1, 2, 10, 20, 21))
    assert not list((tmp_path / "root").glob("**/*kissat*"))  # the labels are not needed
    code, shown = run("export", "sat/small:minisat22", "--format", "aslib", "--output", tmp_path / "scenario", *place)
    assert code == 0, shown
    scenario = read_scenario(tmp_path / "scenario")
    assert scenario.algorithms == ("minisat22",) and len(scenario.instances) == 6
    own = graphbench.Loader(
        "sat/small:minisat22", source="files", folder=tmp_path / "in", root=tmp_path / "root", workers=1
    ).load()
    expected = [float(data.minisat22_par10) for split in ("train", "val", "test") for data in own[split]]
    np.testing.assert_allclose(scenario.costs()[:, 0], np.maximum(expected, 1e-3), rtol=1e-6)
    for split, seeds in (("train", (0, 1, 2)), ("val", (10,)), ("test", (20, 21))):
        assert [data.name for data in own[split]] == [f"{seed}.cnf" for seed in seeds]
        assert [int(data.minisat22_status) for data in own[split]] == [
            int(not is_satisfiable(formula(s))) for s in seeds
        ]
    code, shown = run("export", "sat/small", "--format", "cnf", "--output", tmp_path / "cnf", *place)
    assert code == 2 and "give a new folder" in shown.err
