"""Datasets with several tasks on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphbench.catalog.names import catalog
from graphbench.cli import app as commands
from graphbench.cli import generated, show


@pytest.fixture
def toy(make_labelled, monkeypatch):
    card = make_labelled()
    monkeypatch.setitem(catalog().cards, card.id, card)
    return card


def lines_with(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


def test_list_has_a_line_for_every_task(toy, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    show.datasets(["co/toy", "mst_easy"], tmp_path, as_json=False)
    text = capsys.readouterr().out
    assert lines_with(text, "co/toy:mis_size ")[0].split()[:4] == ["co/toy:mis_size", "graph", "scalar", "mae"]
    assert lines_with(text, "co/toy:mis ")[0].split()[:4] == ["co/toy:mis", "node", "mask", "set_size"]
    assert "2 datasets; graphs" in text
    show.datasets(["co/toy:mis"], tmp_path, as_json=False)
    text = capsys.readouterr().out
    assert not lines_with(text, "mis_size") and "1 dataset; graphs" in text


def test_list_as_json_names_the_tasks(toy, capsys, tmp_path):
    show.datasets(["co/toy", "co/toy:mis", "mst_easy"], tmp_path, as_json=True)
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == ["co/toy", "co/toy:mis", "algoreas/mst_easy"]
    assert rows["co/toy"]["tasks"] == ["mis_size", "mis"] and "tasks" not in rows["algoreas/mst_easy"]
    assert (rows["co/toy"]["metric"], rows["co/toy:mis"]["metric"]) == ("mae", "set_size")


def test_info_shows_the_tasks_and_marks_its_own(toy, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    show.card("co/toy:mis", tmp_path, as_json=False)
    text = capsys.readouterr().out
    assert text.startswith("co/toy:mis  version 1")
    assert "co/toy:mis *" in text and "co/toy:mis_size *" not in text
    assert "effort on every graph: steps 200, nodes 50" in text
    assert re.search(r"co/toy:mis \* +Set +solve ", text) and "Which." in text
    show.card("co/toy", tmp_path, as_json=True)
    content = json.loads(capsys.readouterr().out)
    assert (content["task_name"], list(content["tasks"])) == ("mis_size", ["mis_size", "mis"])
    assert content["task"]["type"] == "predict"


def test_generated_labels_are_told(toy, capsys, tmp_path):
    (row,) = generated.generate_one(toy.with_task("mis"), ["val"], tmp_path, 5, 1)
    assert (row["dataset"], row["graphs"], row["failed"]) == ("co/toy:mis", 5, 0)
    assert row["label_seconds"] >= 0 and [Path(file).name for file in row["labels"]] == ["val-first5.h5"]
    (graphs,) = generated.generate_one(toy.graphs, ["test"], tmp_path, None, 1)
    assert graphs["dataset"] == "co/toy" and "labels" not in graphs
    generated.generated([{**row, "failed": 2}], as_json=False)
    assert "co/toy:mis val: 2 graphs have no label" in capsys.readouterr().out
    show.card("co/toy:mis_size", tmp_path, as_json=False)
    text = capsys.readouterr().out
    assert "5 labelled" in lines_with(text, "val ")[0] and "labelled" not in lines_with(text, "test ")[0]


def test_commands_take_tasks(toy, capsys, tmp_path):
    options = ["--root", str(tmp_path), "--workers", "1", "--limit", "4", "--json"]
    for arguments in (["co/toy:*", "--splits", "val"], ["co/toy", "--graphs-only", "--splits", "test"]):
        commands.app(["generate", *arguments, *options], standalone_mode=False)
        rows = json.loads(capsys.readouterr().out)
        expected = ["co/toy"] if "--graphs-only" in arguments else ["co/toy:mis_size", "co/toy:mis"]
        assert [row["dataset"] for row in rows] == expected
        assert all(("labels" in row) == ("--graphs-only" not in arguments) for row in rows)
    commands.app(["verify", "co/toy:mis", "--root", str(tmp_path), "--json"], standalone_mode=False)
    (outcome,) = json.loads(capsys.readouterr().out)
    assert outcome["id"] == "co/toy:mis" and outcome["passed"]
    commands.app(["verify", "co/toy:*", "--update"], standalone_mode=False)
    assert capsys.readouterr().out.count("wrote") == 1


def test_a_report_of_an_id_takes_the_records_of_all_its_tasks(toy, monkeypatch):
    from types import SimpleNamespace

    from graphbench.cli import runs
    from graphbench.records import files as record_files

    names = ["co/toy:mis", "co/toy:mis_size", "algoreas/mst_easy"]
    monkeypatch.setattr(
        record_files, "load_records", lambda *_, **__: [SimpleNamespace(dataset=name) for name in names]
    )

    def reported(selector):
        return [record.dataset for record in runs.chosen_records(selector, None, baselines=False)]

    assert reported(["co/toy"]) == names[:2]
    assert reported(["co/toy:mis"]) == names[:1]
    assert reported(None) == names
