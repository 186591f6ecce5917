"""The folder of a run: its name, its lock, whose weights it holds, and what lies in it."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys

import pytest
from filelock import FileLock

from graphbench.core import progress as progress_module
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.progress import progress_bar
from graphbench.training.config import load_config
from graphbench.training.evaluate import evaluate_run, load_run
from graphbench.training.folders import default_output
from graphbench.training.loop import TrainingLoop
from graphbench.training.run import fit, train

HOLDS = """
import sys
from pathlib import Path
from graphbench.training.folders import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def run(toys, tiny, output, lr=1e-2, **changes):
    options = {"steps": 8, "evaluate": "test", "device": "cpu", "progress": False, **changes}
    return train(data=toys, model=tiny, output=output, overrides=[f"training.lr={lr}"], **options)


def test_runs_side_by_side_with_other_settings_have_folders_of_their_own(toys, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slow, fast = (run(toys, tiny, None, lr=lr) for lr in (1e-9, 1e-2))
    assert slow.path != fast.path and slow.path.parent == fast.path.parent
    assert slow.path.name.startswith("tiny-") and slow.path.name.endswith("-seed0")
    for result in (slow, fast):
        assert evaluate_run(result.path, "test", data=toys, device="cpu") == result.scores
    assert slow.scores != fast.scores


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"steps": 9}, False),
        ({"limit": 5}, False),
        ({"overrides": ["model.hidden=9"]}, False),
        ({"overrides": ["training.seed=0"]}, True),
        ({"overrides": ["training.log_every=3", "training.checkpoint_every=5"]}, True),
    ],
)
def test_the_digits_of_a_default_folder_change_with_what_decides_the_result(tiny, changes, same):
    plain, other = (load_config("toys/heavy", tiny, family="toy", **own) for own in ({}, changes))
    assert (default_output(plain) == default_output(other)) is same
    assert default_output(plain) == default_output(load_config("toys/heavy", tiny, family="toy"))


def test_seeds_share_the_digits(tiny):
    first, second = (default_output(load_config("toys/heavy", tiny, seed=seed)).name for seed in (0, 1))
    assert first.removesuffix("-seed0") == second.removesuffix("-seed1")


def test_a_folder_in_use_is_refused(toys, tiny, tmp_path):
    config = load_config("toys/heavy", tiny, family="toy", steps=4)
    with FileLock(tmp_path / ".lock"):
        with pytest.raises(ConfigError, match="in use by another run"):
            run(toys, tiny, tmp_path)
        with pytest.raises(ConfigError, match="is in use by another run"):
            fit(config, toys, tmp_path, device="cpu")
    assert list(tmp_path.glob("[!.]*")) == [tiny]
    assert run(toys, tiny, tmp_path).record.steps == 8


def test_a_folder_in_use_by_another_process_is_refused_until_it_ends(toys, tiny, tmp_path):
    script = tmp_path / "holds.py"
    script.write_text(HOLDS)
    command = [sys.executable, str(script), str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="is in use by another run"):
            run(toys, tiny, tmp_path / "run")
        other.kill()
    assert run(toys, tiny, tmp_path / "run").record.steps == 8


@pytest.fixture
def pair(toys, tiny, tmp_path):
    """Two runs that differ in the learning rate; the first has the best weights of the second."""
    first, second = (run(toys, tiny, tmp_path / name, lr=lr) for name, lr in (("first", 1e-9), ("second", 1e-2)))
    shutil.copy(second.path / "best.safetensors", first.path / "best.safetensors")
    return first, second


def test_weights_of_another_run_are_refused_wherever_they_are_read(pair, toys, tiny, tmp_path):
    first, second = pair
    record = (first.path / "record.json").read_text()
    refused = pytest.raises(CheckpointError, match=r"best\.safetensors belongs to another run")
    with refused:
        run(toys, tiny, first.path, lr=1e-9)
    with refused:
        evaluate_run(first.path, "test", data=toys, device="cpu")
    with refused:
        load_run(first.path, toys.card)
    assert (first.path / "record.json").read_text() == record
    assert evaluate_run(second.path, "test", data=toys, device="cpu") == second.scores


@pytest.mark.parametrize("file", ["best.safetensors", "checkpoint.safetensors"])
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seed": 3}, r"of seed 3, the run is of seed 0"),
        ({"steps": 4}, r"training\.steps 4.*training\.steps 8"),
        ({"lr": 0.5}, r"training\.lr 0\.5.*training\.lr 0\.01"),
    ],
)
def test_copied_weights_of_another_run_are_named_as_that(toys, tiny, tmp_path, file, changes, told):
    first, second = run(toys, tiny, tmp_path / "first"), run(toys, tiny, tmp_path / "second", **changes)
    shutil.copy(second.path / file, first.path / file)
    with pytest.raises(CheckpointError, match=rf"{file} belongs to another run.*{told}"):
        run(toys, tiny, first.path)
    if file == "best.safetensors":
        with pytest.raises(CheckpointError, match=rf"these weights are .*{told}"):
            evaluate_run(first.path, "test", data=toys, device="cpu")


def test_weights_that_another_run_wrote_meanwhile_are_not_restored(toys, tiny, tmp_path, monkeypatch):
    other = run(toys, tiny, tmp_path / "other", lr=1e-9)
    real = TrainingLoop.restore_best

    def swapped(self):
        shutil.copy(other.path / "best.safetensors", self.folder / "best.safetensors")
        real(self)

    monkeypatch.setattr(TrainingLoop, "restore_best", swapped)
    with pytest.raises(CheckpointError, match=r"best\.safetensors belongs to another run"):
        run(toys, tiny, tmp_path / "run")
    assert not (tmp_path / "run" / "record.json").exists()


def test_best_weights_that_are_missing_are_an_error(toys, tiny, tmp_path):
    result = run(toys, tiny, tmp_path / "run")
    (result.path / "best.safetensors").unlink()
    missing = pytest.raises(CheckpointError, match=r"best\.safetensors is missing.*put the file back")
    with missing:
        run(toys, tiny, result.path)
    with missing:
        evaluate_run(result.path, "test", data=toys, device="cpu")
    with missing:
        load_run(result.path, toys.card)
    again = run(toys, tiny, result.path, resume=False)
    assert again.scores == result.scores


def test_a_run_that_never_validated_is_scored_by_its_last_weights(toys, make_toys, tiny, tmp_path):
    data = make_toys()
    data._opened["val"] = data.val[[]]
    result = run(data, tiny, tmp_path / "run")
    assert not (result.path / "best.safetensors").exists()
    assert evaluate_run(result.path, "test", data=toys, device="cpu") == result.scores


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o027, 0o640), (0o002, 0o664)])
def test_files_have_the_rights_of_the_umask(toys, tiny, tmp_path, mask, expected):
    before = os.umask(mask)
    try:
        result = run(toys, tiny, tmp_path / "run", steps=2)
    finally:
        os.umask(before)
    for name in ("best.safetensors", "checkpoint.safetensors", "config.json", "data.json", "record.json"):
        assert stat.S_IMODE((result.path / name).stat().st_mode) == expected, name


def test_what_killed_processes_left_is_removed_at_the_next_start(toys, tiny, tmp_path):
    strays = [tmp_path / f".{name}.x1y2.tmp" for name in ("best.safetensors", "checkpoint.safetensors", "record.json")]
    kept = tmp_path / "notes.tmp"
    for path in (*strays, kept):
        path.write_text("half")
    run(toys, tiny, tmp_path, steps=2)
    assert not any(path.exists() for path in strays) and kept.exists()


def test_equal_runs_write_equal_bytes(toys, tiny, tmp_path):
    first, second = (run(toys, tiny, tmp_path / name) for name in ("first", "second"))
    for name in ("best.safetensors", "config.json", "data.json"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name


def test_a_log_line_of_progress_without_a_terminal(monkeypatch, caplog):
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: False, raising=False)
    caplog.set_level(logging.INFO)
    with progress_bar(100, "quiet on toys") as bar:
        bar.update(10)
    assert not caplog.records
    monkeypatch.setattr(progress_module, "LOG_SECONDS", 0.0)
    with progress_bar(100, "gin on toys") as bar:
        bar.update(20)  # done before
        bar.update(1)
        bar.update(0, loss=0.5)
    assert "gin on toys: 21 of 100 steps, loss 0.5, about " in caplog.text and " left" in caplog.text


@pytest.mark.thorough
def test_a_run_says_how_long_it_will_take_and_what_it_scores(toys, tiny, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.setattr(progress_module, "LOG_SECONDS", 0.0)
    caplog.set_level(logging.INFO)
    told = run(toys, tiny, tmp_path / "told", steps=20, progress=None, evaluate=("val", "test", "ood"))
    assert "tiny on toys/heavy: about " in caplog.text and " of training ahead, validations not counted" in caplog.text
    assert "tiny on toys/heavy: 20 of 20 steps, loss " in caplog.text
    assert "scoring val (24), test (24), n12 (10) of toys/heavy" in caplog.text
    assert "scoring test: 24 of 24 graphs" in caplog.text
    caplog.clear()
    silent = run(toys, tiny, tmp_path / "silent", steps=20, evaluate=("val", "test", "ood"))
    assert "training ahead" not in caplog.text and "of 20 steps" not in caplog.text
    assert (silent.path / "best.safetensors").read_bytes() == (told.path / "best.safetensors").read_bytes()
    assert silent.record.curves == told.record.curves
