"""Runs on draws of a dataset: each knows its own, and none continues on another."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import graphbench
from graphbench.catalog.names import card
from graphbench.core.errors import CardError, CheckpointError, ConfigError
from graphbench.domains.clrs import sample
from graphbench.domains.clrs_text import Renderer
from graphbench.records.aggregates import aggregate
from graphbench.records.files import read_record
from graphbench.tasks.text.language import dataset_prompts
from graphbench.training.config import load_config
from graphbench.training.evaluate import evaluate_run
from graphbench.training.folders import default_output, load_config_of_run
from graphbench.training.run import train

SMALL = {"model.hidden": 8, "model.layers": 1, "training.batch_size": 16}
TINY = {"model.hidden": 8, "training.batch_size": 4, "training.train_split": "train_multi_size"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("root")


def run(root, output, data_seed, dataset="bridges_easy", **changes):
    options = {"steps": 2, "limit": 16, "evaluate": "test", "workers": 1, "device": "cpu", "overrides": SMALL}
    return train(dataset, "gin_small", data_seed=data_seed, root=root, output=output, **{**options, **changes})


@pytest.fixture(scope="module")
def canonical(root, tmp_path_factory):
    return run(root, tmp_path_factory.mktemp("canonical"), None)


@pytest.fixture(scope="module")
def drawn(root, tmp_path_factory):
    return run(root, tmp_path_factory.mktemp("drawn"), 3)


def test_records_name_the_draw(canonical, drawn):
    assert (canonical.record.data_seed, drawn.record.data_seed) == (0, 3)
    assert drawn.record.data_fingerprint == f"{canonical.record.data_fingerprint}-draw3"
    for split in ("train", "val", "test"):
        assert canonical.record.data_hashes[split] != drawn.record.data_hashes[split]
    assert read_record(drawn.path / "record.json") == drawn.record
    assert "data_seed" not in (canonical.path / "config.json").read_text()  # as in older runs
    assert [runs.data_seeds for runs in aggregate([canonical.record, drawn.record])] == [(0, 3)]


def test_a_run_is_scored_on_its_own_draw(canonical, drawn, root, caplog):
    for result in (canonical, drawn):
        assert evaluate_run(result.path, "test", root=root, limit=16, device="cpu") == result.scores
    assert load_config_of_run(drawn.path).data_seed == 3
    other = graphbench.Loader("bridges_easy", root=root, limit=16, workers=1).load(())
    with caplog.at_level(logging.WARNING):
        assert evaluate_run(drawn.path, "test", data=other, device="cpu") != drawn.scores
    assert "-draw3, these data are algoreas/bridges_easy" in caplog.text and "or another draw" in caplog.text


def test_a_run_does_not_continue_on_another_draw(canonical, drawn, root):
    for result, data_seed, change in ((canonical, 3, "0 -> 3"), (drawn, None, "3 -> 0"), (drawn, 4, "3 -> 4")):
        with pytest.raises(CheckpointError, match=f"another run.*data_seed {change}, training.steps 2 -> 4"):
            run(root, result.path, data_seed, steps=4)
    assert read_record(drawn.path / "record.json") == drawn.record


def test_loaded_data_say_which_draw_they_are(drawn, root, tmp_path):
    data = graphbench.Loader("bridges_easy", root=root, limit=16, workers=1, data_seed=3).load(())
    same = train(data=data, model="gin_small", steps=2, output=tmp_path, overrides=SMALL, evaluate="test", limit=16)
    assert same.record.data_seed == 3 and same.scores == drawn.scores
    for data_seed in (0, 4):
        with pytest.raises(ConfigError, match=f"data_seed={data_seed}.*data seed 3"):
            train(data=data, model="gin_small", data_seed=data_seed, output=tmp_path)


@pytest.mark.parametrize("bad", [-1, 0.5, True])
def test_data_seeds_that_are_refused(bad, tmp_path):
    with pytest.raises(CardError, match=f"data_seed must be .*got {bad!r}"):
        train("bridges_easy", "gin_small", data_seed=bad, output=tmp_path)
    with pytest.raises(CardError, match=f"data_seed must be .*got {bad!r}"):
        train(["clrs/minimum", "clrs/bfs"], data_seed=bad, output=tmp_path)
    with pytest.raises(ConfigError, match="data_seed"):
        load_config("algoreas/mst_easy", "gin", data_seed=-1)


def test_folders_and_configurations_of_draws():
    plain, other = (load_config("algoreas/mst_easy", "gin", seed=2, data_seed=k) for k in (0, 3))
    names = [default_output(config).name for config in (plain, other)]
    assert re.fullmatch(r"gin-[0-9a-f]{8}-seed2", names[0]) and re.fullmatch(r"gin-[0-9a-f]{8}-seed2-draw3", names[1])
    assert {default_output(config).parent for config in (plain, other)} == {Path("runs/algoreas/mst_easy")}
    assert other.to_dict() == plain.to_dict() | {"data_seed": 3}
    assert other.overridden == () and not other.is_small


@pytest.mark.slow
def test_endless_data_of_another_draw_do_not_continue_a_run(root, tmp_path):
    options = {"steps": 2, "root": root, "workers": 1, "device": "cpu", "overrides": TINY, "evaluate": "none"}
    first = train(["clrs/minimum"], "mpnn", data_seed=1, output=tmp_path, **options)["clrs/minimum"]
    assert first.record.data_seed == 1 and first.record.data_fingerprint.endswith("-draw1")
    with pytest.raises(CheckpointError, match=r"another run.*data_seed 1 -> 2"):
        train(["clrs/minimum"], "mpnn", data_seed=2, output=tmp_path, **{**options, "steps": 3})
    assert evaluate_run(first.path, "val", root=root, device="cpu").keys() == {"val"}


def test_prompts_of_another_draw_are_those_of_its_seeds(root):
    splits = graphbench.Loader("clrs_text/minimum", root=root, limit=12, workers=1, data_seed=2).load("val")
    for prompt in dataset_prompts(splits.val):
        (*_, arguments) = sample("minimum", prompt.size, prompt.index + 1, prompt.seed)
        (texts,) = Renderer("minimum", prompt.use_hints).render_all([arguments])
        assert texts == (prompt.prompt, prompt.reference)
    assert {prompt.seed for prompt in dataset_prompts(splits.val)} != {1}
    assert card("clrs_text/minimum").split("val").parameters["seeds"] == [1]
