"""What the record of a run says of its budget and data, and which scores it keeps."""

from __future__ import annotations

import copy
import json

import pytest
import typer

import graphbench
from graphbench.catalog import resources
from graphbench.catalog.cards import Metrics
from graphbench.cli.options import limits_by_split
from graphbench.core.errors import ConfigError
from graphbench.records.files import read_record
from graphbench.tasks.registry import task_of
from graphbench.training.config import load_config
from graphbench.training.run import train
from graphbench.training.splits import split_limits


@pytest.fixture
def shipped(tiny, monkeypatch):
    """The tiny configuration as if it were one of the package's."""
    folder = resources.data_dir
    monkeypatch.setattr(resources, "data_dir", lambda name: tiny.parent if name == "baselines" else folder(name))
    return tiny


def test_a_full_run_of_a_shipped_configuration_is_not_small(toys, shipped, tmp_path):
    budget = train(data=toys, model=shipped, output=tmp_path, evaluate="test").record.budget
    assert (budget.small, budget.label) == (False, "24 steps of 16 graphs")


def test_a_run_on_less_data_is_small_however_it_was_limited(toys, make_toys, shipped, tmp_path):
    fewer = train(data=make_toys(limit=20), model=shipped, output=tmp_path / "a", evaluate="n12").record
    assert fewer.budget.small
    assert fewer.budget.label == "24 steps of 16 graphs, train 20 of 70, val 20 of 24"
    assert fewer.graphs_scored == {"n12": 10}
    chosen = make_toys()
    chosen._opened["test"] = chosen.test[3:9]
    partly = train(data=chosen, model=shipped, output=tmp_path / "b", evaluate=("val", "test")).record
    assert partly.budget.small
    assert partly.budget.label.endswith("scored on part of the graphs")
    assert partly.notes == "graphs scored: test 6 of 24"


def test_a_part_of_a_larger_split_may_be_scored_and_is_named(make_toys, shipped, tmp_path):
    data = make_toys()
    data._opened["n12"] = data["n12"][:4]
    record = train(data=data, model=shipped, output=tmp_path, evaluate=("test", "n12")).record
    assert not record.budget.small and record.budget.label == "24 steps of 16 graphs"
    assert record.notes == "graphs scored: n12 4 of 10"
    assert record.graphs_scored == {"test": 24, "n12": 4}


def test_limits_of_scored_splits_are_checked_by_name(tmp_path):
    assert limits_by_split("--eval-limit", "n384=100, n512=50") == {"n384": 100, "n512": 50}
    assert limits_by_split("--eval-limit", "100") == 100
    with pytest.raises(typer.BadParameter, match="n384:100"):
        limits_by_split("--eval-limit", "n384:100")
    for wrong, word in (({"n3840": 9}, "n3840"), ({"n384": 0}, "n384")):
        with pytest.raises(ConfigError, match=word):
            train("mst_easy", "gin_small", eval_limit=wrong, output=tmp_path / "run")


@pytest.mark.parametrize("val_split", ["val", "val_large"])
def test_one_number_limits_neither_the_validation_split_nor_val(val_split):
    task = task_of(graphbench.card("algoreas/mst_easy"))
    config = load_config("algoreas/mst_easy", "gin_small", overrides={"training.val_split": val_split})
    limits = split_limits(config, task, None, 5)
    assert set(task.card.all_splits) - set(limits) == {"train", "val", val_split}
    assert set(limits.values()) == {5}
    assert split_limits(config, task, None, {"n384": 7}) == {"n384": 7}


def test_a_split_that_is_not_there_is_told_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"training\.val_split=val_huge: algoreas/mst_easy has no split .*val_large"):
        train("mst_easy", "gin_small", overrides={"training.val_split": "val_huge"}, output=tmp_path / "run")


@pytest.mark.thorough
def test_a_limit_is_named_where_it_leaves_samples_out(make_toys, shipped, tmp_path):
    def label(limit: int, name: str, chosen=None) -> str:
        data = make_toys(limit=limit)
        if chosen is not None:
            data._opened["test"] = data.test[chosen]
        options = {"model": shipped, "limit": limit, "output": tmp_path / name, "evaluate": ("val", "test")}
        return train(data=data, **options).record.budget.label

    assert label(1000, "all") == "24 steps of 16 graphs"
    assert label(1000, "part", slice(3, 9)) == "24 steps of 16 graphs, scored on part of the graphs"
    assert label(24, "first") == "24 steps of 16 graphs, first 24 samples of each split"
    assert label(24, "both", slice(3, 9)).endswith("first 24 samples of each split, scored on part of the graphs")


def test_a_configuration_of_ones_own_is_not_comparable(toys, tiny, tmp_path):
    budget = train(data=toys, model=tiny, output=tmp_path, evaluate="test").record.budget
    assert (budget.small, budget.label) == (True, "24 steps of 16 graphs, a configuration of one's own")


def test_a_changed_configuration_is_ones_own(toys, shipped, tmp_path):
    options = {"overrides": ["model.hidden=8", "training.seed=1"], "evaluate": "test"}
    record = train(data=toys, model=shipped, output=tmp_path, **options).record
    assert record.budget.small
    assert record.budget.label == "24 steps of 16 graphs, a configuration of one's own (tiny with another model.hidden)"
    assert record.config["overridden"] == ["model.hidden"]
    assert json.loads((tmp_path / "config.json").read_text()) == record.config


@pytest.mark.parametrize("nothing", [None, "none", (), ["none"]])
def test_a_finished_run_keeps_its_scores(toys, tiny, tmp_path, nothing):
    options = {"model": tiny, "output": tmp_path, "steps": 6}
    first = train(data=toys, evaluate=("test", "n12"), **options).record
    again = train(data=toys, evaluate=nothing, **options)
    assert again.scores == {}
    assert again.record.scores == first.scores
    assert again.record.data_hashes == first.data_hashes
    assert read_record(tmp_path / "record.json") == again.record
    more = train(data=toys, evaluate="val", **options).record
    assert list(more.scores) == ["val", "test", "n12"]
    assert more.graphs_scored == {"val": 24, "test": 24, "n12": 10}


def test_scores_of_other_weights_are_not_kept(toys, tiny, tmp_path):
    fixed = ["training.schedule_steps=24"]
    train(data=toys, model=tiny, steps=6, output=tmp_path, overrides=fixed, evaluate="test")
    assert train(data=toys, model=tiny, steps=12, output=tmp_path, overrides=fixed, evaluate=()).record.scores == {}
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="test", resume=False)
    anew = train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate=None, resume=False)
    assert anew.record.scores == {}


def test_scores_of_a_record_that_did_not_count_graphs_are_kept_with_their_notes(toys, tiny, tmp_path):
    path = tmp_path / "record.json"
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="test")
    old = json.loads(path.read_text())
    del old["graphs_scored"], old["digest"]
    old["schema"] = 1
    old["notes"] = "graphs scored: test 6 of 24"
    path.write_text(json.dumps(old))
    again = train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val").record
    assert again.scores.keys() == {"val", "test"}
    assert again.notes == "graphs scored: test 6 of 24"
    path.write_text("{")
    assert train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate=()).record.scores == {}


def test_an_undefined_secondary_metric_is_left_out_with_a_note(make_toys, tiny, tmp_path):
    data = make_toys("total")
    data.card = data.card.model_copy(update={"metrics": Metrics(primary="mae", also=("r2", "rmse"))})
    data._opened["test"] = copy.copy(data.test)[:1]
    data._opened["test"].card = data.card
    record = train(data=data, model=tiny, steps=4, output=tmp_path, evaluate="test").record
    assert list(record.scores["test"]) == ["mae", "rmse"]
    assert "undefined and left out: r2 of test" in record.notes
