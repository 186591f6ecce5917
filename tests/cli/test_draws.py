"""``--data-seed``: every command speaks of the same draw of a dataset."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphbench
from graphbench.cli import main

LIMIT = ("--limit", "12", "--workers", "1")


def run(capsys, *arguments, expect=0):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert end.value.code == expect, printed
    return printed


def test_generate_info_and_verify(tmp_path, capsys):
    contents = {}
    for k in (0, 3):
        common = ("--data-seed", k, "--root", tmp_path)
        out = run(capsys, "generate", "bridges_easy", *LIMIT, "--splits", "val", "--json", *common).out
        (row,) = json.loads(out)
        contents[k] = row["content"]
        shown = json.loads(run(capsys, "info", "bridges_easy", "--json", *common).out)
        assert shown["data_seed"] == k and shown["files"]["val"]["content"] == row["content"]
        assert ("data seed 3" in run(capsys, "info", "bridges_easy", *common).out) == (k == 3)
        checks = json.loads(
            run(capsys, "verify", "bridges_easy", "--splits", "val", "--samples", 6, "--json", *common).out
        )
        details = {row["check"]: row["detail"] for row in checks[0]["rows"]}
        assert "12 of 12 graphs regenerated and equal" in details["stored file"]
        assert ("bit for bit as on the card" in details["first samples"]) == (k == 0)
    assert contents[0] != contents[3]


def test_predictions_are_for_one_draw(tmp_path, capsys):
    source = {"root": tmp_path, "limit": 12, "workers": 1}
    drawn = graphbench.Loader("bridges_easy", data_seed=3, **source).load("val").val
    np.save(tmp_path / "right.npy", np.concatenate([drawn[i].y.numpy() for i in range(12)]))
    common = ("--predictions", tmp_path / "right.npy", "--limit", 12, "--splits", "val", "--scores", "label", "--json")
    arguments = ("evaluate", "bridges_easy", *common, "--root", tmp_path)
    assert json.loads(run(capsys, *arguments, "--data-seed", 3).out)["val"]["f1"] == 1.0
    assert "items" in run(capsys, *arguments, expect=2).err


@pytest.mark.thorough
def test_train_and_report(tmp_path, capsys):
    settings = ["--set", "model.hidden=8", "--set", "model.layers=1", "--set", "training.batch_size=16"]
    arguments = ["train", "bridges_easy", "--model", "gin_small", *settings, "--steps", 2, *LIMIT, "--evaluate", "test"]
    folders = ["--root", tmp_path, "--output", tmp_path / "runs", "--records", tmp_path / "records"]
    out = run(capsys, *arguments, *folders, "--data-seed", 1, "--data-seed", 2).out
    assert "seed 0, data seed 1" in out and "seed 0, data seed 2" in out
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"draw1", "draw2"}
    names = sorted(path.name.split("-", 2)[2] for path in (tmp_path / "records").rglob("*.json"))
    assert names == ["seed0-draw1.json", "seed0-draw2.json"]
    run(capsys, "report", "--records", tmp_path / "records", "--output", tmp_path / "report.md")
    assert "2 runs (1 seed, 2 data seeds)" in (tmp_path / "report.md").read_text(encoding="utf-8")
    run_folder = tmp_path / "runs" / "draw2"
    scores = json.loads(run(capsys, "evaluate", run_folder, "--root", tmp_path, "--limit", 12, "--json").out)
    assert scores["test"] == json.loads((run_folder / "record.json").read_text())["scores"]["test"]
    assert "leave --data-seed out" in flat(run(capsys, "evaluate", run_folder, "--data-seed", 2, expect=2).err)


def flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("value", ["-1", "1.5", "three"])
@pytest.mark.parametrize("command", ["generate", "info", "verify", "train", "evaluate"])
def test_data_seeds_that_are_refused(command, value, capsys):
    assert "--data-seed" in run(capsys, command, "bridges_easy", "--data-seed", value, expect=2).err


def test_measured_facts_are_of_the_canonical_draw(capsys, monkeypatch):
    measured = []
    monkeypatch.setattr(
        "graphbench.verification.update_measured",
        lambda card, progress, root, samples, splits, tasks: measured.append((card.id, samples, splits, tasks)),
    )
    printed = run(capsys, "verify", "bridges_easy", "--update", "--data-seed", 3, expect=2).err
    assert "leave --data-seed or --update out" in flat(printed) and measured == []
    run(capsys, "verify", "bridges_easy", "--update", "--data-seed", 0)
    run(capsys, "verify", "bridges_easy", "--update", "--samples", 256)
    run(capsys, "verify", "bridges_easy", "--update", "--splits", "val,ood")
    larger = ["val", *graphbench.card("bridges_easy").ood]
    assert [samples for _, samples, *_ in measured] == [[], [256], []]
    assert [splits for _, _, splits, _ in measured] == [None, None, larger]
    assert {(name, tasks) for name, _, _, tasks in measured} == {("algoreas/bridges_easy", None)}


def test_facts_of_a_named_task_are_measured_alone(capsys, monkeypatch):
    measured = []
    monkeypatch.setattr(
        "graphbench.verification.update_measured",
        lambda card, progress, root, samples, splits, tasks: measured.append((card.id, tasks)),
    )
    run(capsys, "verify", "co/rb_small:mis", "co/rb_small:max_cut", "co/ba_small", "--update")
    run(capsys, "verify", "co/er_small:mis", "co/er_small", "--update")
    run(capsys, "verify", "sat/small:kissat@vcg", "--update")
    run(capsys, "verify", "sat/small@vcg", "--update")
    assert measured == [
        ("co/rb_small", ["mis", "max_cut"]), ("co/ba_small", None), ("co/er_small", None), ("sat/small", ["kissat"]),
        ("sat/small", None),
    ]  # fmt: skip
