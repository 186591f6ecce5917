"""Configurations, records and run folders with the names of earlier versions are read, and their digests stay."""

from __future__ import annotations

import json

import pytest

from graphbench.core.errors import CardError, ConfigError
from graphbench.records.earlier_names import card_in_current_names, config_for_digests, config_in_current_names
from graphbench.records.files import load_records
from graphbench.training.config import load_config, run_config_from_json


def test_sections_of_the_task_move_and_empty_ones_go():
    before = {"training": {"steps": 3, "surrogate": {"beta": 2.0}, "decoding": {}}, "model": {"kind": "graph"}}
    now = config_in_current_names(before)
    assert now == {"training": {"steps": 3, "task": {"surrogate": {"beta": 2.0}}}, "model": {"kind": "graph"}}
    assert config_in_current_names(now) == now
    assert config_for_digests(now) == before


@pytest.mark.parametrize(
    ("kind", "before", "now"), [("builder", "builder", "environment"), ("speller", "spelling", "tokenizer")]
)
def test_models_that_generate_structures_have_other_keys(kind, before, now):
    old = {"model": {"kind": kind, before: "chip_design.any"}}
    assert config_in_current_names(old) == {"model": {"kind": kind, now: "chip_design.any"}}
    assert config_for_digests(config_in_current_names(old)) == old


def test_cards_of_earlier_identities_have_the_current_names():
    task = {"type": "solve", "problem": "co.mis", "judge": None, "options": {}}
    card = {"task": task, "spellings": {"a": "b"}, "view": "sat.vg", "series": {"structure": "weather.mesh"}}
    assert card_in_current_names(card) == {
        "task": {"type": "solve", "options": {"problem": "co.mis"}},
        "class_aliases": {"a": "b"},
        "representation": "sat.vg",
        "series": {"topology": "weather.mesh"},
    }


def test_committed_records_have_the_hash_in_the_names_of_their_files():
    """The configuration of a record, read and written by this version, has the hash that names the record's file."""
    checked = 0
    for record in load_records():
        if "model" in record.config and "training" in record.config and record.config.get("model_name"):
            config = run_config_from_json(json.dumps(record.config), "record").to_dict()
            written = config_for_digests(config)
            if all(written[part].keys() == record.config[part].keys() for part in ("model", "training")):
                assert record.model_copy(update={"config": config}).config_hash == record.config_hash
                checked += 1  # others were written before an option existed
    assert checked > 50


def test_files_and_overrides_with_earlier_keys_are_read(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("model: {processor: gin, layers: 1}\ntraining: {steps: 5, decoding: {restarts: 3}}\n")
    config = load_config("co/rb_small:mis", path, overrides=["training.surrogate.beta=1.5"])
    assert config.training.task == {"decoding": {"restarts": 3}, "surrogate": {"beta": 1.5}}


def test_overridden_keys_have_one_digest():
    before = {"training": {"decoding": {"restarts": 3}, "surrogate": {}}, "overridden": ["training.decoding.restarts"]}
    now = config_in_current_names(before)
    assert now["overridden"] == ["training.task.decoding.restarts"]
    assert config_for_digests(now) == before
    model = {"model": {"kind": "builder", "environment": "a.b"}, "overridden": ["model.environment"]}
    assert config_for_digests(model)["overridden"] == ["model.builder"]
    select = {"training": {"task": {"overhead": 0.5}}, "overridden": ["training.task.overhead"]}
    assert config_for_digests(select)["training"]["decoding"] == {"overhead": 0.5}
    assert config_for_digests(select)["overridden"] == ["training.decoding.overhead"]


def test_earlier_and_current_names_are_merged_and_contradictions_refused(tmp_path):
    both = ["training.decoding.restarts=3", "training.task.decoding.seed=2"]
    assert load_config("co/rb_small:mis", "gin_small", overrides=both).training.task == {
        "decoding": {"restarts": 3, "seed": 2}
    }
    path = tmp_path / "mine.yaml"
    path.write_text(
        "model: {processor: gin, layers: 1}\ntraining: {steps: 5, decoding: {restarts: 4}}\n"
        "tasks: {rb: {training: {task: {decoding: {seed: 1}}}}}\n"
    )
    assert load_config("co/rb_small:mis", path, family="rb").training.task == {"decoding": {"restarts": 4, "seed": 1}}
    with pytest.raises(ConfigError, match=r"training\.decoding\.restarts = 3 and .* = 4"):
        load_config(
            "co/rb_small:mis",
            "gin_small",
            overrides=["training.decoding.restarts=3", "training.task.decoding.restarts=4"],
        )
    with pytest.raises(ConfigError, match=r"model\.builder = 'a\.b'"):
        config_in_current_names({"model": {"builder": "a.b", "environment": "a.c"}})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"views": {}}, "'views'.*representations"),
        ({"spellings": {}}, "'spellings'.*class_aliases"),
        ({"task": {"type": "generate", "judge": "a.b"}}, r"'task\.judge'.*verifier"),
        ({"series": {"structure": "a.b"}}, r"'series\.structure'.*topology"),
        ({"representations": {"vg": {"view": "a.b"}}}, r"'representations\.vg\.view'.*derived_by"),
    ],
)
def test_cards_with_earlier_keys_say_the_present_name(write_family, changes, words):
    with pytest.raises(CardError, match=words):
        write_family(**changes)
