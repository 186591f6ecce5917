"""`graphbench tune`: what it hands on, what it prints, and how it is interrupted and continued."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from graphbench.cli import main
from graphbench.tuning.journal import JOURNAL

from ..warm import run_python

COMMAND = [sys.executable, "-m", "graphbench"]
SPACE = """
title: Two hyperparameters of a tiny model
model: algoreas/gin_small
space:
  training.lr: {type: float, range: [1.0e-4, 0.1], log: true}
  model.dropout: {type: float, range: [0.0, 0.5]}
budget: {min: 3, max: 27, eta: 3}
trials: 12
"""
SMALL = ("model.hidden=16", "model.layers=1", "training.batch_size=16")
FACTS = ("number", "config_id", "config", "budget", "continued_from", "seed", "status", "cost", "steps", "metrics")


@pytest.fixture
def tune(tmp_path):
    """Return a function that gives the words of a small search in a folder of the test's own."""
    (tmp_path / "space.yaml").write_text(SPACE)
    sets = [word for setting in SMALL for word in ("--set", setting)]
    common = [*("--model", "gin_small", "--space", str(tmp_path / "space.yaml"), "--limit", "30", "--device", "cpu")]
    root = ["--root", str(tmp_path / "data")]

    def words(*more, output="run"):
        return [*COMMAND, "tune", "mst_easy", *common, *sets, *root, "--output", str(tmp_path / output), *more]

    return words


def run(command, expect=0):
    done = run_python(command[1:])
    assert done.returncode == expect, f"{command} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def facts(folder):
    trials = json.loads((folder / "result.json").read_text())["trials"]
    return [{key: trial[key] for key in FACTS} for trial in trials]


@pytest.mark.thorough
def test_a_search_from_the_command_to_the_trained_incumbent(tune, tmp_path):
    found = json.loads(run(tune("--method", "hyperband", "--json")).stdout)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (found["trials"], found["failed"], found["steps"]) == (12, 0, result["steps"])
    best = min((t for t in result["trials"] if t["budget"] == found["incumbent"]["budget"]), key=lambda t: t["cost"])
    assert found["incumbent"]["config"] == best["config"] and found["incumbent"]["score"] == best["metrics"]["val_f1"]
    assert found["default"]["config"]["training.lr"] == pytest.approx(1e-3)
    assert not list((tmp_path / "data").rglob("test*"))
    page = tmp_path / "run" / "report" / "report.html"
    assert (found["result"], found["report"]) == (str(tmp_path / "run" / "result.json"), str(page))

    page.unlink()
    run(tune("--method", "hyperband", "--no-report"))
    assert not page.exists()
    assert f"wrote {page}" in run([*COMMAND, "tune", str(tmp_path / "run")]).stdout and page.exists()

    words = shlex.split(found["command"])
    assert words[:3] == ["graphbench", "train", "algoreas/mst_easy"]
    extra = ["--evaluate", "val", "--device", "cpu", "--json", "--output", str(tmp_path / "train")]
    (record,) = json.loads(run([*COMMAND, *words[1:], *extra]).stdout)
    assert record["steps"] == found["incumbent"]["budget"] == best["budget"] > 3
    assert record["scores"]["val"]["f1"] == pytest.approx(found["incumbent"]["score"])


@pytest.mark.slow
def test_the_last_lines_name_scores_counts_and_files(tune, tmp_path):
    text = run(tune("--method", "random", "--trials", "2", "--no-report")).stdout
    lines = dict(line.split("  ", 1) for line in text.splitlines() if not line.startswith(" "))
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    score = 1 - result["incumbent"]["cost"]
    assert lines["validation f1 ↑"].strip() == f"{score:.4f} at 27 steps"
    assert lines["default"].strip() == f"{1 - result['default']['cost']:.4f} at 27 steps"
    assert (lines["trials"].strip(), lines["optimizer steps"].strip()) == ("2", "54")
    assert "report" not in lines and not (tmp_path / "run" / "report" / "report.html").exists()
    incumbent = lines["incumbent"].strip()
    assert f"--model {incumbent} --seed 0 --limit 30" in lines["train it"]
    assert "dropout" in (tmp_path / "run" / "report" / "incumbent.yaml").read_text()
    assert "training.lr" in text and "model.dropout" in text


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on_and_goes_on_to_the_same_trials(tune, tmp_path):
    quick = ("--no-report", "--trials", "9")
    process = subprocess.Popen(
        tune(*quick),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    journal = tmp_path / "run" / JOURNAL
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if journal.is_file() and journal.read_text().count('"finished"') >= 3:
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    *told, last = errors.splitlines()  # a search that takes some seconds tells how far it is
    assert (output, last) == ("", "interrupted; run the same command again to continue")
    assert all(line.startswith("INFO graphbench.tuning.live: ") for line in told), told
    assert 3 <= len(facts(tmp_path / "run")) < 9
    run(tune(*quick))
    run(tune(*quick, output="undisturbed"))
    assert len(facts(tmp_path / "run")) == 9
    assert facts(tmp_path / "run") == facts(tmp_path / "undisturbed")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mst_esy"], "did you mean"),
        (["clrs30"], "one dataset is tuned at a time, 'clrs30' stands for 30; name one"),
        (["mst_easy", "--model", "gin_smal"], "did you mean 'gin_small'"),
        (["mst_easy", "--space", "gimp"], "unknown search space 'algoreas/gimp'"),
        (["mst_easy", "--method", "grid"], "method = 'grid' is refused"),
        (["mst_easy", "--walltime", "-1"], "walltime_limit = -1.0 is refused"),
        (["mst_easy", "--set", "training.lr=0.1"], "training.lr is tuned and set to 0.1 at once"),
        (["mst_easy", "--set", "training.steps=9"], "training.steps cannot be tuned or set here"),
        (["mst_easy", "--workers", "2", "--cluster", "tcp://127.0.0.1:1"], "exclude each other"),
    ],
)
def test_mistakes_exit_with_2_and_a_remedy(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["tune", *words])
    assert end.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ") and message in errors and len(errors.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_options_of_a_search_are_refused_where_a_report_is_written_again(tmp_path, capsys):
    (tmp_path / "result.json").write_text("{}")
    for words, named in (
        (["--trials", "9"], "leave out --trials, or name the dataset and --output"),
        (["--no-report", "--seed", "0"], "leave out --seed, --report, or"),
        (["--retry-failed", "--root", "x"], "leave out --retry-failed, --root, or"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["tune", str(tmp_path), *words])
        assert end.value.code == 2 and named in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.slow
def test_a_budget_that_was_not_reached_is_told_in_the_terminal_and_in_json_and_trains_to_the_same_score(tune, tmp_path):
    few = ("--method", "hyperband", "--trials", "2")
    done = run(tune(*few, "--json"))
    found = json.loads(done.stdout)
    (warning,) = found["warnings"]
    assert warning == "largest budget reached: 3 of 27 steps, after 2 trials; about 13 trials are needed"
    assert warning in done.stderr and found["largest_budget"] == {"budget": 27, "reached": 3, "trials_needed": 13}
    text = run(tune(*few)).stdout
    assert " at 3 of 27 steps" in text
    words = shlex.split(found["command"])
    extra = ["--evaluate", "val", "--device", "cpu", "--json", "--output", str(tmp_path / "train")]
    (record,) = json.loads(run([*COMMAND, *words[1:], *extra]).stdout)
    assert record["steps"] == 3
    assert record["scores"]["val"]["f1"] == pytest.approx(found["incumbent"]["score"])


def test_a_damaged_result_is_an_error_where_a_report_is_written_again(tmp_path, capsys):
    (tmp_path / "result.json").write_text('{"schema": 1, ')
    with pytest.raises(SystemExit) as end:
        main(["tune", str(tmp_path)])
    assert end.value.code == 2
    assert f"cannot read {tmp_path / 'result.json'}" in capsys.readouterr().err


@pytest.mark.parametrize("given", [False, True])
def test_options_reach_the_search_and_those_left_out_are_left_to_the_space(given, monkeypatch, tmp_path):
    asked = {}

    def search(dataset, model, *, report, **settings):
        asked.update(dataset=dataset, model=model, report=report, **settings)
        raise SystemExit(0)

    monkeypatch.setattr("graphbench.cli.tuning.search", search)
    options = {
        "--space": ("space", "mine", "mine"),
        "--trials": ("trials", "7", 7),
        "--min-budget": ("min_budget", "2", 2),
        "--max-budget": ("max_budget", "8", 8),
        "--eta": ("eta", "2", 2),
        "--walltime": ("walltime_limit", "60", 60.0),
        "--trial-limit": ("trial_limit", "9.5", 9.5),
        "--memory-limit": ("memory_limit", "4", 4.0),
        "--cluster": ("cluster", "tcp://here:1", "tcp://here:1"),
        "--output": ("output", str(tmp_path), tmp_path),
        "--retry-failed": ("retry_failed", None, True),
    }
    words = [word for option, (_, text, _) in options.items() for word in (option, text) if word] if given else []
    words += ["--workers", "3", "--seed", "5", "--method", "random", "--no-report", "--root", "data"] if given else []
    with pytest.raises(SystemExit):
        main(["tune", "mst_easy", "--set", "model.hidden=4", "--set", "model.layers=1", *words])
    always = {"dataset": "mst_easy", "model": None, "limit": None, "device": "auto"}
    always["overrides"] = ["model.hidden=4", "model.layers=1"]
    changed = {"workers": 1, "seed": 0, "method": "smac", "report": True, "root": None}
    if given:
        changed = {"workers": 3, "seed": 5, "method": "random", "report": False, "root": asked["root"]}
        changed |= {name: value for name, _, value in options.values()}
        assert str(asked["root"]) == "data"
    assert asked == always | changed


def test_help_needs_no_docs():
    text = run([*COMMAND, "tune", "--help"]).stdout
    assert "Usage" in text and "--trial-limit" in text and "--no-report" in text
