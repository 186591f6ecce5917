import io
import logging
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from graphbench.tuning.live import LiveDisplay, clock
from graphbench.tuning.records import settings_record
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.trial import Status, Trial
from graphbench.tuning.trials import Asked, Observer

from .report.synthetic import make_trials

WHAT = {"dataset": "algoreas/mst_easy", "model": "gin_small", "metric": "f1", "method": "smac", "seed": 3}
SETTINGS = {"what": WHAT, "space": {}, "limits": {"trials": 80, "walltime_limit": 3600.0, "workers": 1}}
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def asked(trial):
    return Asked(trial.number, trial.config_id, trial.config, trial.budget, trial.seed)


def console(width=100):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=60, color_system=None)


def shown(display, width=100):
    screen = Console(file=io.StringIO(), width=width, color_system=None)
    screen.print(display.render())
    return screen.file.getvalue()


@pytest.fixture
def display():
    with LiveDisplay(True, console()) as own:
        yield own


def test_it_is_an_observer():
    observer: Observer = LiveDisplay(False)
    assert {"on_start", "on_asked", "on_finished", "on_end"} <= set(dir(observer))


def test_a_run_in_a_terminal(display):
    trials = make_trials(60)
    display.on_start(SETTINGS, trials[:10])
    for trial in trials[10:]:
        display.on_asked(asked(trial))
        display.on_finished(trial)
    display.on_asked(Asked(60, 40, {"training.lr": 0.1}, 243, 3))
    text = shown(display)
    best = min((t for t in trials if t.succeeded and t.budget == 729), key=lambda t: t.cost)
    failed = sum(not trial.succeeded for trial in trials)
    saved = sum(trial.continued_from for trial in trials)
    steps = sum(trial.steps for trial in trials)
    assert "Tuning gin_small on algoreas/mst_easy, smac, seed 3" in text
    assert f"validation f1 {1 - best.cost:.4f} at 729 steps (configuration {best.config_id})" in text
    assert f"lr {best.config['training.lr']:.4g}, schedule {best.config['training.schedule']}" in text
    assert f"60 of 80 done, 1 running, {failed} failed" in text
    assert f"saved by continuing ({saved / (saved + steps):.0%})" in text
    assert " of 1:00:00" in text
    rows = [line.split() for line in text.splitlines()]
    for budget in (27, 81, 243, 729):
        own = [trial for trial in trials if trial.budget == budget]
        lost = sum(not trial.succeeded for trial in own)
        cells = [str(budget), *(["1"] if budget == 243 else []), str(len(own)), *([str(lost)] if lost else [])]
        score = f"{1 - min(trial.cost for trial in own if trial.succeeded):.4f}"
        assert [*cells, score] in rows
    assert ["60", "40", "243", "0:00"] in rows


def test_costs_are_shown_where_no_metric_is_known(display):
    display.on_start({"limits": {"trials": 5}}, [Trial(0, 0, {"x": 1.0}, 9, 0, 0, Status.SUCCESS, 0.25, 1.0, 9, "")])
    text = shown(display)
    assert "cost 0.2500 at 9 steps" in text and "best cost ↓" in text and "1 of 5 done" in text


def test_settings_of_a_method_of_ones_own(display):
    args = OptimizationArgs.of(
        {
            "space": {"x": {"type": "float", "range": [0, 1]}},
            "min_budget": 1,
            "max_budget": 9,
            "output": "x",
            "trials": 7,
        }
    )
    display.on_start(settings_record(args, make_trials), [])
    text = shown(display)
    assert "Tuning make_trials, smac, seed 0" in text and "0 of 7 done" in text and "none yet" in text


def test_the_time_of_earlier_runs_counts(display):
    trials = make_trials(10)
    display.on_start(SETTINGS, trials)
    assert f"{clock(sum(trial.seconds for trial in trials))} of 1:00:00" in shown(display)


def test_many_running_trials_and_narrow_terminals(display):
    display.on_start(SETTINGS, make_trials(20))
    for number in range(20, 50):
        display.on_asked(Asked(number, number, {}, 27, 3))
    text = shown(display)
    assert "22 more" in text and "30 running" in text
    assert all(len(line) <= 40 for line in shown(display, width=40).splitlines())


def test_a_trial_that_is_asked_again_runs_once(display):
    display.on_start(SETTINGS, [])
    for _ in range(2):
        display.on_asked(Asked(0, 0, {}, 27, 3))
    assert "0 of 80 done, 1 running, 0 failed" in shown(display)


def test_events_are_quick(display):
    trials = make_trials(300)
    display.on_start(SETTINGS, [])
    durations = []
    for trial in trials:
        started = time.process_time()
        display.on_asked(asked(trial))
        display.on_finished(trial)
        durations.append((time.process_time() - started) / 2)
    assert sum(durations) / len(durations) < 0.005


def test_the_cursor_comes_back():
    screen = console()
    display = LiveDisplay(True, screen)
    with pytest.raises(RuntimeError), display:
        display.on_start(SETTINGS, make_trials(5))
        assert HIDE in screen.file.getvalue() and SHOW not in screen.file.getvalue()
        raise RuntimeError
    assert screen.file.getvalue().rindex(SHOW) > screen.file.getvalue().rindex(HIDE)
    written = screen.file.getvalue()
    display.on_end()
    assert screen.file.getvalue() == written


def test_a_terminal_that_is_gone_is_no_error():
    screen = console()
    display = LiveDisplay(True, screen)
    display.on_start(SETTINGS, [])
    screen.file.close()
    display.on_end()


def test_log_lines_elsewhere(caplog, capsys):
    caplog.set_level(logging.INFO, "graphbench.tuning.live")
    trials = make_trials(60)
    display = LiveDisplay(False)
    display.on_start(SETTINGS, trials[:10])
    for trial in trials[10:]:
        display.on_asked(asked(trial))
        display.on_finished(trial)
    display.on_end()
    lines = [record.getMessage() for record in caplog.records]
    assert "continued after 10 trials; best validation f1" in lines[0]
    every = 80 // 20
    assert 50 / every <= len(lines) <= 50 / every + 5
    assert "60 of 80 done, 0 running" in lines[-1]
    assert "best validation f1" in lines[-1]
    assert capsys.readouterr() == ("", "")


def test_a_larger_budget_and_the_end_are_logged_at_once(caplog):
    caplog.set_level(logging.INFO, "graphbench.tuning.live")
    display = LiveDisplay(False)
    display.on_start({"limits": {"trials": 1000}}, [])
    for number, budget in enumerate((9, 9, 27, 27)):
        display.on_finished(Trial(number, number, {}, budget, 0, 0, Status.SUCCESS, 0.5, 1.0, budget, ""))
    lines = [record.getMessage() for record in caplog.records]
    assert lines.pop(0) == "Tuning: begun, 1000 trials"
    assert len(lines) == 1 and "3 of 1000 done" in lines[0] and "at 27 steps" in lines[0]
    display.on_end()
    assert "4 of 1000 done" in caplog.records[-1].getMessage()
    display.on_end()
    assert len(caplog.records) == 3


def test_tests_have_no_terminal(caplog):
    display = LiveDisplay()
    display.on_start(SETTINGS, [])
    assert display._live is None


SCRIPT = """
import os, sys
from graphbench.tuning.live import LiveDisplay
from graphbench.tuning.records import settings_record
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.trials import Asked
display = LiveDisplay()
display.on_start({"limits": {"trials": 3}}, [])
display.on_asked(Asked(0, 0, {"x": 1}, 9, 0))
if sys.argv[1] == "raise":
    raise RuntimeError("in the middle")
"""


@pytest.mark.parametrize("how", ["raise", "end"])
@pytest.mark.thorough
def test_a_real_terminal_is_restored_though_nobody_ends_the_display(how, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ours, theirs = pty.openpty()
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, str(script), how], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    assert process.wait(60) == (1 if how == "raise" else 0)
    os.close(ours)
    text = written.decode()
    assert "0 of 3 done, 1 running" in text
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert ("in the middle" in text) == (how == "raise")


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.9, 61, 3600, 36061)] == ["0:00", "0:59", "1:01", "1:00:00", "10:01:01"]
