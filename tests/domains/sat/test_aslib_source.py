"""ASlib scenarios as a source of the dataset sat/aslib: its card, splits and samples, training and scores."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest

import graphbench
from graphbench.catalog.features import MEANING_CHARACTERS
from graphbench.cli import main
from graphbench.core.errors import CardError, FormulaError, StoreError
from graphbench.data.build.generation import ensure_split
from graphbench.data.components.source_choice import source_with_protocol
from graphbench.data.store.shards import stored_samples
from graphbench.domains.sat import Cnf
from graphbench.domains.sat.aslib_files import write_scenario
from graphbench.domains.sat.aslib_source import split_rows
from graphbench.domains.sat.formulas import formula_of
from graphbench.domains.sat.scenario_samples import output_names, scenario_features
from graphbench.domains.sat.scenarios import Scenario
from graphbench.tasks.select import closed_gap
from graphbench.training.config import list_configs, load_config


def scenario(count: int = 40, folds: int | None = 4, seed: int = 0) -> Scenario:
    """Each of three algorithms is the fastest one where its feature is the smallest."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3))
    seconds = 10.0 ** (features + 0.5)
    unsolved = seconds > 20
    features[rng.random(features.shape) < 0.03] = np.nan
    return Scenario(
        name="TOY",
        instances=tuple(f"dir/i{i}.cnf" for i in range(count)),
        algorithms=("Alpha 1.0", "beta-batch", "2gamma"),
        cutoff=20.0,
        seconds=np.where(unsolved, np.nan, seconds)[:, :, None],
        status=unsolved[:, :, None].astype(np.int8),
        feature_names=("x", "y", "z"),
        features=features,
        steps={"base": ("x", "y", "z")},
        step_seconds=rng.uniform(0, 0.01, (count, 1)),
        folds=None if folds is None else rng.permutation(np.arange(count) % folds) + 1,
    )


OUTPUTS = ("alpha_1_0_par10", "algorithm_1_par10", "algorithm_2_2gamma_par10")


def stored(folder, root, split, **options):
    card = graphbench.Loader("sat/aslib", source="aslib", folder=folder, root=root, **options)._cards["sat/aslib"]
    return card, stored_samples(card.graph_schema, ensure_split(card, split, root, workers=1, progress=False))


def test_every_feature_of_a_scenario_says_what_it_means(tmp_path):
    hostile = replace(scenario(), algorithms=("a\x1b[2Jb", "beta", "gamma" * 40))
    features = scenario_features(hostile, formulas=True)
    assert all(f.meaning and f.meaning.isprintable() and len(f.meaning) <= MEANING_CHARACTERS for f in features)
    assert features[1].meaning == "mean time of beta, 10 times the cutoff if unsolved; seconds"
    meanings = {f.name: f.meaning for f in graphbench.card("sat/small").features}
    assert all(f.meaning == meanings[f.name] for f in features if f.name in ("is_clause", "negated"))


def test_the_samples_are_the_instances_of_the_files(tmp_path):
    own = scenario()
    write_scenario(own, tmp_path / "files")
    train = np.flatnonzero(~np.isin(own.folds, [1, 2]))
    medians = [np.median([v for v in own.features[train, k] if v == v]) for k in range(3)]
    seen = []
    for split, folds in (("train", (3, 4)), ("val", (2,)), ("test", (1,))):
        rows = np.flatnonzero(np.isin(own.folds, folds))
        card, samples = stored(tmp_path / "files", tmp_path / "root", split)
        assert samples.values["name"].strings() == [own.instances[i] for i in rows]
        costs = np.where(own.status[rows, :, 0] == 0, own.seconds[rows, :, 0], 200)
        for k, name in enumerate(OUTPUTS):
            np.testing.assert_allclose(samples.values[name], costs[:, k], rtol=1e-6)
        expected = np.where(np.isnan(own.features[rows]), medians, own.features[rows])
        np.testing.assert_allclose(samples.values["features"], expected, rtol=1e-6)
        np.testing.assert_allclose(samples.values["missing_share"], np.isnan(own.features[rows]).mean(axis=1))
        np.testing.assert_allclose(samples.values["features_seconds"], own.step_seconds[rows, 0], rtol=1e-6)
        seen += rows.tolist()
    assert sorted(seen) == list(range(40)) and card.channels == {"features": ("x", "y", "z")}
    assert tuple(f.name for f in card.outputs) == OUTPUTS and card.protocol == "aslib:TOY"
    assert source_with_protocol("sat", card.protocol).name == "sat.aslib"


def test_every_draw_tests_on_another_fold(tmp_path):
    own = scenario()
    write_scenario(own, tmp_path / "files")
    tested = []
    for draw in range(4):
        _, samples = stored(tmp_path / "files", tmp_path / "root", "test", data_seed=draw)
        names = samples.values["name"].strings()
        assert {int(own.folds[own.instances.index(name)]) for name in names} == {draw + 1}
        tested += names
    assert sorted(tested) == sorted(own.instances)
    assert [len(rows) for rows in split_rows(own, 4).values()] == [20, 10, 10]
    np.testing.assert_array_equal(split_rows(own, 4)["val"], np.flatnonzero(own.folds == 1))
    with pytest.raises(CardError, match=r"data_seed=4.*0 to 3"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "files", data_seed=4)


def test_without_folds_the_names_decide(tmp_path):
    write_scenario(scenario(folds=None), tmp_path / "files")
    sizes = [len(rows) for rows in split_rows(scenario(folds=None), None).values()]
    assert sizes == [32, 4, 4]
    with pytest.raises(CardError, match=r"data_seed=1.*TOY has no folds"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "files", data_seed=1)
    write_scenario(scenario(folds=2), tmp_path / "two")
    with pytest.raises(StoreError, match=r"2 folds.*at least 3"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "two")


def test_names_of_algorithms_become_names_of_outputs():
    assert output_names(("Alpha 1.0", "beta-batch", "2gamma")) == OUTPUTS
    assert output_names(("a.b", "a-b", "é")) == ("a_b_par10", "a_b_1_par10", "algorithm_2_par10")


def test_formulas_beside_a_scenario_are_its_graphs(tmp_path):
    own = scenario(count=9, folds=3)
    formulas = []
    for i in range(9):
        rng = random.Random(i)
        formulas.append(
            Cnf.from_clauses([[rng.choice([-1, 1]) * v for v in rng.sample(range(1, 8), 3)] for _ in range(12)])
        )
    instances = (*(f"dir/i{i}.cnf" for i in range(8)), formulas[8].gbdhash)
    write_scenario(Scenario(**{**vars(own), "instances": instances}), tmp_path)
    for i, cnf in enumerate(formulas):
        cnf.to_dimacs(tmp_path / "formulas" / f"i{i}.cnf.gz")
    card, samples = stored(tmp_path, tmp_path / "root", "train")
    rows = np.flatnonzero(own.folds == 3)
    for place, i in enumerate(rows):
        expected = formulas[i].canonical().without_unused_variables()
        assert list(formula_of(samples, place).clauses()) == list(expected.clauses())
    assert {f.name for f in card.inputs} == {"features", "missing_share", "is_clause", "negated"}
    (tmp_path / "formulas" / "i3.cnf.gz").unlink()
    with pytest.raises(FormulaError, match=r"instance 'dir/i3.cnf'"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path)


def test_other_datasets_and_bad_folders_are_refused(tmp_path):
    with pytest.raises(CardError, match="sat/aslib, not as sat/small:select"):
        graphbench.Loader("sat/small:select", source="aslib", folder=tmp_path)
    with pytest.raises(StoreError, match="not a folder"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path / "none")
    with pytest.raises(StoreError, match=r"description\.txt cannot be read"):
        graphbench.Loader("sat/aslib", source="aslib", folder=tmp_path)


@pytest.mark.parametrize("name", [name for name in list_configs() if name.startswith("sat/")])
def test_models_of_the_domain_name_inputs_that_the_scenario_has(name):
    card = graphbench.card("sat/aslib")
    config = load_config(card.id, name.partition("/")[2], family=card.family)
    assert set(getattr(config.model, "ignore", ())) <= {f.name for f in card.inputs}


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, capsys.readouterr()

    return call


@pytest.mark.parametrize("draw", [0, 2])
@pytest.mark.thorough
def test_a_selector_is_trained_and_scored_on_a_fold(tmp_path, run, draw):
    own = scenario(count=160, folds=4)
    write_scenario(own, tmp_path / "files")
    place = ("--source", "aslib", "--folder", tmp_path / "files", "--root", tmp_path / "root")
    model = ("--model", "rf_pairwise_regression", "--set", "model.options.n_estimators=20", "--data-seed", draw)
    code, shown = run("train", "sat/aslib", *place, *model, "--output", tmp_path / "run", "--json")
    assert code == 0, shown
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    rows = split_rows(own, draw + 1)
    costs = own.costs()
    test, train = costs[rows["test"]], costs[rows["train"]]
    overhead = own.step_seconds[rows["test"], 0]
    score = record["scores"]["test"]
    # the mean cost exceeds that of the virtual best algorithm by the regret, which the overhead is a part of
    assert score["par10"] - score["regret"] == pytest.approx(test.min(axis=1).mean(), rel=1e-5)
    gap = closed_gap(test, test.argmin(axis=1), train, overhead)
    single = test[:, train.mean(axis=0).argmin()].mean()
    expected = (single - score["par10"]) / (single - test.min(axis=1).mean())
    assert 0.5 < score["closed_gap"] <= gap + 1e-6 and score["closed_gap"] == pytest.approx(expected, rel=1e-4)
    assert (record["protocol"], record["dataset"], record["data_seed"]) == ("aslib:TOY", "sat/aslib", draw)
    code, shown = run("evaluate", tmp_path / "run", "--root", tmp_path / "root", "--splits", "test", "--json")
    assert code == 0, shown
    assert f"{score['closed_gap']:.6f}"[:7] in shown.out
