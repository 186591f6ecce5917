"""A search returns its result whatever its report does, and reports can be drawn of the smallest searches."""

from __future__ import annotations

import errno
import json
import logging
import shlex
from pathlib import Path
from typing import Any

import pytest

from graphbench.cli import main
from graphbench.tuning.history import read_history
from graphbench.tuning.live import LiveDisplay
from graphbench.tuning.optimizer import Optimizer
from graphbench.tuning.report.importance import importance

from ..warm import run_python

REPORT = "graphbench.tuning.report.report"
STEPS = ("importance", "parallel_figure", "best_figure", "importance_figure", "budget_figure", "write_text")
FULL = OSError(errno.ENOSPC, "No space left on device")
ERRORS = [
    (TypeError("wrong\nshape"), "TypeError: wrong shape"),
    (FULL, "the disk is full"),
    (MemoryError(), "MemoryError"),
]
SPACES = {
    "float": {"x": {"type": "float", "range": [0.0, 1.0]}},
    "int": {"x": {"type": "int", "range": [1, 60]}},
    "choice_and_constant": {
        "x": {"type": "categorical", "choices": [*range(30)]},
        "y": {"type": "constant", "value": 3},
    },
}


def search(folder: Path, space: Any = None, **changes: Any) -> Optimizer:
    def cost(config: dict[str, Any], seed: int, budget: int) -> float:
        return abs(float(config["x"]) - 0.3) + 1 / budget

    settings = {"space": space or SPACES["float"], "min_budget": 1, "max_budget": 4, "eta": 2, "method": "random"}
    return Optimizer({**settings, "trials": 1, "output": folder, **changes}, cost)


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
def test_the_importance_of_a_single_parameter_is_one(space: str, tmp_path: Path) -> None:
    best = search(tmp_path, SPACES[space], trials=20).optimize()
    assert best.report == tmp_path / "report" / "report.html" and best.report.is_file()
    history = read_history(tmp_path)
    (effect,) = importance(history.parameters, history.trials).effects
    assert (effect.name, effect.alone, effect.total) == ("x", 1.0, 1.0)


@pytest.mark.slow
def test_a_parameter_that_is_never_active_has_no_importance(tmp_path: Path) -> None:
    space = {
        "kind": {"type": "constant", "value": "a"},
        "x": {"type": "float", "range": [0.0, 1.0]},
        "y": {"type": "float", "range": [0.0, 1.0]},
    }
    best = search(tmp_path, space, trials=20).optimize()
    assert best.report is not None
    history = read_history(tmp_path)
    effects = {effect.name: effect for effect in importance(history.parameters, history.trials).effects}
    assert effects["x"].total > 0.9 and effects["y"].total < 0.1


@pytest.mark.parametrize("space", ["float", "choice_and_constant"])
def test_the_report_of_a_single_trial(space: str, tmp_path: Path) -> None:
    assert search(tmp_path, SPACES[space]).optimize().report is not None
    history = read_history(tmp_path)
    assert importance(history.parameters, history.trials).refusal


def test_the_report_of_a_constant(tmp_path: Path) -> None:
    space = {"x": {"type": "constant", "value": 3}}
    best = search(tmp_path, space).optimize()
    assert best.report is not None and best.config == {"x": 3}
    history = read_history(tmp_path)
    assert "no parameter" in importance(history.parameters, history.trials).refusal


@pytest.mark.parametrize(("step", "error", "text"), [(s, *e) for s, e in zip(STEPS, ERRORS * 2, strict=True)])
@pytest.mark.thorough
def test_a_report_that_fails_costs_no_result(
    step: str,
    error: Exception,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*args: Any, **keywords: Any) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(f"{REPORT}.{step}", fail)
        best = search(tmp_path, trials=3).optimize()
    assert best.report is None and len(best.trials) == 3 and best.cost >= 0
    assert len(json.loads((tmp_path / "result.json").read_text())["trials"]) == 3
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "\n" not in line and text in line
    command = line[line.index("graphbench tune") :]
    with pytest.raises(SystemExit) as end:
        main(shlex.split(command)[1:])
    assert end.value.code == 0
    assert (tmp_path / "report" / "report.html").is_file()


def test_an_interrupt_of_a_report_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{REPORT}.parallel_figure", stop)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path).optimize()
    assert (tmp_path / "result.json").is_file()


@pytest.mark.parametrize("step", ["_show", "_log", "_is_time_to_log", "render"])
def test_a_display_that_fails_costs_no_trial(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("display")

    monkeypatch.setattr(LiveDisplay, step, fail)
    for shown in (True, False):
        with LiveDisplay(shown) as display:
            best = search(tmp_path / str(shown), trials=3).optimize([display], report=False)
        assert len(best.trials) == 3


@pytest.mark.slow
def test_the_command_line_ends_well_and_says_how_to_write_the_report(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "title: One hyperparameter\nmodel: algoreas/gin_small\nspace:\n"
        "  training.lr: {type: float, range: [1.0e-4, 0.1], log: true}\nbudget: {min: 1, max: 1, eta: 3}\ntrials: 1\n"
    )
    sets = [word for key in ("model.hidden=8", "model.layers=1", "training.batch_size=4") for word in ("--set", key)]
    words = ["tune", "mst_easy", "--model", "gin_small", "--space", str(tmp_path / "space.yaml"), "--limit", "4", *sets]
    words += ["--root", str(tmp_path / "data"), "--output", str(tmp_path / "run"), "--method", "random", "--json"]
    code = """
import sys
from graphbench.cli import main
from graphbench.tuning.report import report

def fail(history):
    raise TypeError("no picture")

report.parallel_figure = fail
main(sys.argv[1:])
"""
    done = run_python(["-c", code, *words, "--device", "cpu"])
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["report"] is None and answer["trials"] == 1 and Path(answer["configuration"]).is_file()
    assert "TypeError: no picture" in done.stderr and f"graphbench tune {tmp_path / 'run'}" in done.stderr
