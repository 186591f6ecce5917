"""The commands ``weights list``, ``weights export`` and ``weights check``."""

from __future__ import annotations

import json

import pytest

from graphbench.cli.app import main
from graphbench.records.files import results_dir
from graphbench.training import checkpoint
from graphbench.training.weights.files import weights_dir, weights_path

DATASET, MODEL = "clutrr/gen_23", "gat_small"
SHIPPED = weights_dir() / weights_path([DATASET], MODEL)


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs a command and gives its exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        found = capsys.readouterr()
        return end.value.code or 0, found.out, found.err

    return call


def test_the_list_shows_datasets_and_models(run):
    code, out, _ = run("weights", "list", "clutrr")
    assert code == 0
    assert ["clutrr/gen_23", "gat_small", "0"] in [line.split()[:3] for line in out.splitlines() if line.strip()]
    rows = json.loads(run("weights", "list", "gen_23", "--json")[1])
    (row,) = (row for row in rows if row["model"] == MODEL)
    assert (row["dataset"], row["file"], row["bytes"]) == (DATASET, str(SHIPPED), SHIPPED.stat().st_size)
    assert (results_dir() / row["record"]).is_file()
    assert "there are no weights of these datasets" in run("weights", "list", "social")[1]


def test_info_names_the_models_with_weights(run, tmp_path):
    assert "gat_small (seed 0" in run("info", DATASET, "--root", tmp_path)[1]
    content = json.loads(run("info", DATASET, "--json", "--root", tmp_path)[1])
    assert {"model": MODEL, "seed": 0, "file": str(SHIPPED)} in content["weights"]


def test_a_check_ends_with_1_where_weights_are_not_those_of_the_record(run, tmp_path):
    root = tmp_path / "data"
    assert run("weights", "check", SHIPPED, "--root", root)[:2] == (0, f"{SHIPPED}: ok\n")
    tensors, facts = checkpoint.load_tensors(SHIPPED)
    other = tmp_path / "other.safetensors"
    checkpoint.save_tensors(other, {name: -tensor for name, tensor in tensors.items()}, facts)
    code, out, _ = run("weights", "check", other, "--root", root)
    assert code == 1 and "accuracy of the first 4 samples of val" in out
    other.write_bytes(SHIPPED.read_bytes()[:-7])
    code, out, _ = run("weights", "check", other, "--json", "--root", root)
    assert code == 1 and "restore the file" in json.loads(out)[str(other)][0]


def test_what_is_no_run_is_an_error(run, tmp_path):
    code, _, errors = run("weights", "export", tmp_path)
    assert code == 2 and "no run folder" in errors
    code, _, errors = run("weights", "export", tmp_path, "--dtype", "int8")
    assert code == 2 and "auto, float16, float32" in errors
