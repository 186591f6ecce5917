"""Runs that start from the weights of other runs: what is taken, what is trained, and where their records stand."""

from __future__ import annotations

import pytest
import torch

import graphbench
from graphbench.core.errors import ConfigError
from graphbench.models.transfer import Part, take
from graphbench.records.aggregates import aggregate
from graphbench.records.classes import core_seconds
from graphbench.records.files import save_record
from graphbench.training.weights.check import check_weights
from graphbench.training.weights.export import export_weights

TINY = {"model.hidden": 8, "model.layers": 2, "training.batch_size": 4, "training.eval_every": 4}


def run(dataset, folder, root, model="gin_small", **options):
    about = {"steps": 4, "limit": 12, "evaluate": ["val"], "progress": False, "workers": 1, "overrides": TINY}
    return graphbench.train(dataset, model, output=folder, root=root, **(about | options))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory, root):
    return run("mst_easy", tmp_path_factory.mktemp("runs") / "mst", root)


def part(model, kind):
    return {p.name: p for p in model.parts() if p.kind == kind}


def test_the_processor_and_what_agrees_are_taken_and_the_rest_is_new(pretrained, root, tmp_path):
    start = {"init_from": pretrained.path, "overrides": TINY | {"training.lr": 1e-30, "training.weight_decay": 0.0}}
    tuned = run("bridges_easy", tmp_path / "tuned", root, **start)
    named = f"algoreas/mst_easy/gin_small-{pretrained.record.config_hash}-seed0"
    assert tuned.record.protocol == "fine_tuned" and f"starts from {named} (" in tuned.record.notes
    assert tuned.record.config["training"]["start"]["source"] == named
    assert str(tmp_path.parent) not in tuned.record.to_json()  # a record names no folder of the machine
    assert "processor gin (" in tuned.record.notes and "decoder of is_bridge (edge mask)" in tuned.record.notes
    (mine,), (theirs,) = (part(m, "processor").values() for m in (tuned.model, pretrained.model))
    for name, tensor in theirs.module.state_dict().items():
        torch.testing.assert_close(mine.module.state_dict()[name], tensor)  # nothing is learned with such a rate
    again = run("bridges_easy", tmp_path / "again", root, **start)
    assert again.record.weights_hash == tuned.record.weights_hash
    scratch = run("bridges_easy", tmp_path / "scratch", root)
    assert scratch.record.protocol is None and scratch.record.config_hash != tuned.record.config_hash
    assert len(aggregate([scratch.record, tuned.record])) == 2
    start_seconds = tuned.record.config["training"]["start"]["core_seconds"]
    assert core_seconds(tuned.record) == pytest.approx(tuned.record.cpu_seconds + start_seconds)
    assert "start" not in scratch.record.config["training"]
    later = {
        "training": tuned.record.config["training"]
        | {"start": tuned.record.config["training"]["start"] | {"core_seconds": 9.0}}
    }
    assert (
        tuned.record.model_copy(update={"config": tuned.record.config | later}).config_hash == tuned.record.config_hash
    )


def test_the_same_task_takes_all_parts_and_frozen_ones_stay(pretrained, root, tmp_path):
    tuned = run(
        "mst_easy", tmp_path / "tuned", root, init_from=pretrained.path, freeze=["processor", "encoders"], seed=3
    )
    assert "new: nothing" in tuned.record.notes and "not trained: processor gin" in tuned.record.notes
    before, after = pretrained.model.state_dict(), tuned.model.state_dict()
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed <= {"decoders", "edge_readout"} and "decoders" in changed


def test_an_interrupted_run_goes_on_with_the_same_bits(pretrained, root, tmp_path):
    start = {"init_from": pretrained.path}
    whole = run("bridges_easy", tmp_path / "whole", root, steps=8, **start)
    cut = TINY | {"training.schedule_steps": 8, "training.warmup": whole.record.config["training"]["warmup"]}
    run("bridges_easy", tmp_path / "cut", root, overrides=cut, **start)
    resumed = run("bridges_easy", tmp_path / "cut", root, overrides=cut, steps=8, **start)
    assert resumed.record.weights_hash == whole.record.weights_hash


@pytest.mark.thorough
def test_algorithms_and_joint_models_share_processors(root, tmp_path):
    small = {"model.hidden": 8, "training.batch_size": 4, "training.eval_every": 4}
    options = {"model": "mpnn_small", "overrides": small, "limit": 8}
    joint = run(["clrs/bfs", "clrs/minimum"], tmp_path / "joint", root, **options)
    tuned = run(
        "clrs/bellman_ford", tmp_path / "tuned", root, init_from=tmp_path / "joint", freeze=["processor"], **options
    )
    assert tuned.record.protocol == "canonical:fine_tuned"
    (mine,), (theirs,) = (part(m, "processor").values() for m in (tuned.model, joint["clrs/bfs"].model))
    assert all(torch.equal(a, b) for a, b in zip(mine.module.parameters(), theirs.module.parameters(), strict=True))


@pytest.mark.thorough
def test_models_of_graphs_and_of_trajectories_share_the_layer_of_pairs(root, tmp_path):
    options = {"closure": 0, "triangle": 4, "minima": 0.0, "pools": ["max"]}
    small = {"model.hidden": 8, "training.batch_size": 4, "training.eval_every": 4, "training.lr": 1e-30}
    traces = small | {"model.options": options, "training.train_split": "train", "training.val_split": "val"}
    first = run("clrs/bfs", tmp_path / "first", root, model="pairs", overrides=traces)
    graphs = small | {"model.layers": 1, "model.options": options | {"recurrent": True}}
    tuned = run("bridges_easy", tmp_path / "tuned", root, model="pairs", overrides=graphs, init_from=first.path)
    assert "taken: layer of pairs (" in tuned.record.notes
    assert "new: the rest of processor pairs (" in tuned.record.notes
    mine, theirs = (part(m, "processor")["layer of pairs"].module for m in (tuned.model, first.model))
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(mine.state_dict()[name], tensor)  # nothing is learned with such a rate
    whole = run("mst_easy", tmp_path / "whole", root, model="pairs", overrides=graphs, init_from=tuned.path)
    assert "taken: processor pairs (" in whole.record.notes and "layer of pairs" not in whole.record.notes


def test_stored_weights_are_named(root, tmp_path):
    from graphbench.training.weights.files import rows

    small = next((id_, f) for id_, f in rows() if f.facts.model == "gat_small")
    dataset = small[0]
    tuned = run(
        dataset, tmp_path / "run", root, model="gat_small", overrides={}, init_from=f"{dataset}/gat_small", steps=1
    )
    assert "new: nothing" in tuned.record.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init_from": "nowhere"}, "neither the folder of a finished run"),
        ({"init_from": "mst_easy/gin_smal"}, r"init_from='mst_easy/gin_smal'"),
        ({"init_from": "/nowhere/at/all"}, "does not exist; give the folder of a run"),
        ({"init_from": __file__}, "is a file; give the folder of a run"),
        ({"freeze": ["processor"]}, "needs init_from"),
        ({"init_from": True, "freeze": ["head"]}, "freeze names 'head'"),
        ({"init_from": True, "freeze": ["decoders"]}, "none was taken"),
        ({"init_from": True, "overrides": TINY | {"model.hidden": 16}}, "the processors differ in"),
        ({"init_from": True, "model": "gt_small"}, "its processor is processor gt, the other one processor gin"),
        ({"init_from": True, "model": "random_forest", "overrides": {}, "steps": None}, "cannot start"),
    ],
)
def test_what_does_not_fit_is_named(pretrained, root, tmp_path, options, message):
    given = options | ({"init_from": pretrained.path} if options.get("init_from") is True else {})
    with pytest.raises(ConfigError, match=message):
        run("bridges_easy", tmp_path / "run", root, **given)


def test_changed_weights_are_noticed(root, tmp_path):
    first = run("mst_easy", tmp_path / "first", root)
    run("bridges_easy", tmp_path / "tuned", root, init_from=first.path)
    run("mst_easy", tmp_path / "first", root, seed=1, resume=False)
    from graphbench.training.folders import load_config_of_run
    from graphbench.training.start import started

    config = load_config_of_run(tmp_path / "tuned")
    with pytest.raises(ConfigError, match="changed since this run began"):
        started(first.model, config.training.start)


def test_the_weights_of_a_tuned_run_are_stored_under_the_name_of_the_other_run(root, tmp_path):
    first = run("mst_easy", tmp_path / "first", root)
    tuned = run("bridges_easy", tmp_path / "tuned", root, init_from=first.path)
    save_record(tuned.record, tmp_path / "results")
    where = {"results": tmp_path / "results", "root": root}
    file = export_weights(tmp_path / "tuned", output=tmp_path / "weights", progress=False, **where)
    named = f"algoreas/mst_easy/gin_small-{first.record.config_hash}-seed0"
    assert file.facts.identity.config["training"]["start"]["source"] == named
    assert str(tmp_path).encode() not in file.path.read_bytes()
    assert check_weights(file, **where) == []


def test_nothing_is_taken_where_shapes_differ():
    with pytest.raises(ConfigError, match="has no processor that could be shared"):
        take([], [Part("processor", "processor gin", torch.nn.Linear(2, 2))], "elsewhere")
