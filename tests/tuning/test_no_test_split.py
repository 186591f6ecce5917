"""Tuning sees training and validation alone: the test split and the shifted ones are never opened, nor generated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphbench
from graphbench import Loader
from graphbench.data.build import generation
from graphbench.tuning.method import DatasetMethod, _opened

# Every process that finds this module writes down each path it opens: memory maps of splits are opened by Python.
WITNESS = """
import os, sys
record = os.open(os.environ["OPENED_PATHS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def witness(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        os.write(record, f"{os.getpid()} {os.fsdecode(arguments[0])}\\n".encode())

sys.addaudithook(witness)
"""

TUNE = """
import sys
from graphbench import Optimizer

if __name__ == "__main__":
    root, output = sys.argv[1:]
    small = {"model.hidden": 16, "model.layers": 1, "training.batch_size": 16}
    settings = {"overrides": small, "limit": 30, "root": root, "output": output, "device": "cpu"}
    settings |= {"model": "gin_small", "min_budget": 2, "max_budget": 6}
    first = Optimizer.for_dataset("mst_easy", trials=4, **settings).optimize(report=False)
    again = Optimizer.for_dataset("mst_easy", trials=6, **settings).optimize()  # continued, with processes of its own
    assert (len(first.trials), len(again.trials)) == (4, 6) and again.model is not None
"""

SCORE_TEST = """
import sys
from graphbench import train

root, output = sys.argv[1:]
small = {"model.hidden": 16, "model.layers": 1, "training.batch_size": 16}
train("mst_easy", "gin_small", steps=2, overrides=small, limit=30, root=root, output=output, evaluate="test")
"""

SHIFTED = re.compile(r"(test|n192|n256|n384|n512)([.\-].*)?")


@pytest.fixture
def opened(tmp_path):
    """Return a function that runs a script and gives the paths below its root that any of its processes opened."""
    (tmp_path / "witness").mkdir()
    (tmp_path / "witness" / "sitecustomize.py").write_text(WITNESS)

    def run(source, root, output):
        record = tmp_path / "opened.txt"
        (tmp_path / "script.py").write_text(source)
        package = Path(graphbench.__file__).resolve().parents[1]
        path = os.pathsep.join([str(tmp_path / "witness"), str(package)])
        environment = {**os.environ, "PYTHONPATH": path, "OPENED_PATHS": str(record)}
        command = [sys.executable, str(tmp_path / "script.py"), str(root), str(output)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
        lines = [line.partition(" ") for line in record.read_text().splitlines()]
        return {(int(process), Path(path)) for process, _, path in lines if Path(path).is_relative_to(root)}

    return run


def of_other_splits(paths):
    """Return the paths that belong to a split but train and val: files, locks, folders of unfinished builds."""
    return [
        path
        for _, path in paths
        if any(SHIFTED.fullmatch(part.lstrip(".").removeprefix("build-")) for part in path.parts)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("there", [True, False])
def test_no_process_of_a_search_opens_or_generates_a_test_split(there, opened, tmp_path):
    root, files = tmp_path / "data", ["train-first30.h5", "val-first30.h5"]
    if there:
        Loader("mst_easy", root=root, limit=30, workers=1).load(("train", "val", "test", "n192"))
    found = opened(TUNE, root, tmp_path / "run")
    assert of_other_splits(found) == []
    if not there:
        assert sorted(path.name for path in root.rglob("*.h5")) == files
    for name in files:  # the searching process and the worker of each search: all are watched
        assert len({process for process, path in found if path.name == name}) >= 3


@pytest.mark.slow
def test_the_witness_sees_a_test_split_that_is_generated_and_opened(opened, tmp_path):
    found = {path.name for path in of_other_splits(opened(SCORE_TEST, tmp_path / "data", tmp_path / "run"))}
    assert {".test.lock", "test-first30.h5"} <= found


@pytest.mark.parametrize(
    ("dataset", "model", "splits"),
    [
        ("algoreas/mst_easy", "gin_small", ["train", "val"]),
        ("clrs/minimum", "mpnn_small", ["train", "val"]),
        ("clrs/minimum", "mpnn_generalist", ["val_multi_size"]),  # what is trained on is drawn without end
        ("clrs_text/minimum", "transformer_small", ["train", "val"]),
        ("clutrr/gen_23", "bilstm_small", ["train", "val"]),
    ],
)
def test_a_method_works_where_nothing_but_train_and_val_can_be_had(dataset, model, splits, tmp_path, monkeypatch):
    small = {"model.hidden": 16, "training.batch_size": 4}
    method = DatasetMethod(dataset, model, budgets=(1, 2), overrides=small, limit=12, root=tmp_path, device="cpu")
    real, built = generation.SplitBuilder.build, []

    def build(builder, *arguments):
        assert builder.split in splits, f"{builder.split} is generated"
        built.append(builder.split)
        return real(builder, *arguments)

    monkeypatch.setattr(generation.SplitBuilder, "build", build)
    method.prepare({}, workers=1, progress=False)
    monkeypatch.setattr(generation.SplitBuilder, "build", None)
    _opened.cache_clear()
    first = method({}, 0, 1, None, tmp_path / "run")
    assert method({}, 0, 2, first.checkpoint, tmp_path / "run").steps == 1
    assert built == splits
