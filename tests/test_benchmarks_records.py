"""The plan of the small runs: every run of it can be configured, and one that has a record is not trained again."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graphbench.core.errors import UnknownDataset
from graphbench.records.files import load_records, save_record

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
records = importlib.import_module("benchmarks.records")


def test_every_run_of_the_plan_can_be_configured(tmp_path):
    runs = list(records.planned())
    assert len(set(map(repr, runs))) == len(runs)
    (tmp_path / "none").mkdir()
    assert records.missing(iter(runs), tmp_path / "none") == runs  # which loads every configuration
    assert {run.dataset.split("/")[0] for run in runs} >= {"algoreas", "clrs", "clrs_text", "clutrr", "co", "social"}


def test_a_run_with_a_record_is_not_missing(tmp_path):
    run = next(run for run in records.planned() if run.dataset == "algoreas/mst_easy")
    steps = run.options["steps"]
    (first,) = [
        record
        for record in load_records(run.dataset)
        if (record.model, record.seed, record.steps_asked) == (run.model, run.seed, steps)
    ]
    save_record(first, tmp_path)
    other = replace(run, seed=7)
    assert records.missing(iter([run, other]), tmp_path) == [other]
    for options in ({"steps": steps + 1}, {"steps": steps, "limit": 50}):
        assert records.missing(iter([changed := replace(run, options=options)]), tmp_path) == [changed]
    config = {**first.config, "training": {**first.config["training"], "seed": 7}}
    save_record(first.model_copy(update={"seed": 7, "config": config, "dataset_version": 99}), tmp_path)
    assert records.missing(iter([other]), tmp_path) == [other]
    save_record(first.model_copy(update={"seed": 7, "config": config}), tmp_path)
    assert records.missing(iter([other]), tmp_path) == []


def test_a_run_is_trained_and_its_record_kept(tmp_path, monkeypatch, capsys):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "- {datasets: [algoreas/mst_easy], models: [gin_small], seeds: [0, 1], options: "
        "{steps: 2, limit: 40, evaluate: 'test,n32'}}\n"
    )
    monkeypatch.setattr(records, "SCRATCH", tmp_path)
    planned = records.planned
    monkeypatch.setattr(records, "planned", lambda: planned(plan))
    options = ["--records", str(tmp_path / "records"), "--root", str(tmp_path / "root")]
    (tmp_path / "records").mkdir()
    records.main(["--part", "1/2", *options])
    (record,) = load_records(records=tmp_path / "records")
    assert (record.seed, record.steps, list(record.scores)) == (1, 2, ["test"])  # n32 is no split of trees
    records.main(["--list", *options])
    assert capsys.readouterr().out.split("\n")[0] == "algoreas/mst_easy, gin_small, seed 0"
    records.main(["--list", "clrs", *options])
    assert "nothing is missing" in capsys.readouterr().out


def test_runs_of_tasks_are_chosen_by_dataset_group_and_task():
    def chosen(*names: str) -> set[str]:
        return {run.dataset for run in records._chosen(records.planned(), names)}

    tasks = {"co/ba_small:mis", "co/ba_small:max_cut"}
    assert chosen(*tasks) == tasks
    assert chosen("co/ba_small") > tasks and chosen("co") > chosen("co/ba_small")
    assert "circuits/converters_7:both" in chosen("circuits")


def test_wrong_words_are_refused(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("- {datasets: [algoreas/nothing], models: [gin_small], seeds: [0]}\n")
    with pytest.raises(UnknownDataset):
        list(records.planned(plan))
    with pytest.raises(SystemExit):
        records.main(["--part", "2/2"])
