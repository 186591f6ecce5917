import json
import logging
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from graphbench.tuning.journal import JOURNAL, EventKind, Progress, open_journal, resume
from graphbench.tuning.loop import Continuation, Loop, Stop
from graphbench.tuning.search import Search, make_search
from graphbench.tuning.settings import Method
from graphbench.tuning.trial import Trial

from .runs import RUNGS, InProcess, continuing, essence, read_journal, settings

TRIALS = 45
RUNS = [(method, capacity) for method in ("smac", "hyperband", "random") for capacity in (1, 3)]


def _make_search(method: Method, seed: int = 0) -> Search:
    from graphbench.tuning.settings import OptimizationArgs

    space = OptimizationArgs.of(settings(Path("x"))).space
    return make_search(method, space, RUNGS, 3, seed)


def _go_on(folder: Path, method: Method, trials: int = TRIALS, capacity: int = 1, seed: int = 0) -> list[Trial]:
    """Run or continue a search in this process."""
    with open_journal(folder) as journal:
        journal.append("opened")
        progress = resume(journal, lambda: _make_search(method, seed), folder)
        execution = InProcess(continuing(fails=True), capacity)
        Loop(progress, execution, journal, Stop(trials), folder, Continuation(True)).run()
    return progress.trials


def _cut(folder: Path, lines: int) -> None:
    path = folder / JOURNAL
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


@pytest.mark.parametrize(
    ("method", "capacity"),
    [RUNS[0], *(pytest.param(*run, marks=pytest.mark.slow) for run in RUNS[1:])],
)
@pytest.mark.thorough
def test_a_run_cut_anywhere_ends_as_an_undisturbed_one(tmp_path: Path, method: Method, capacity: int) -> None:
    whole = essence(_go_on(tmp_path / "whole", method, capacity=capacity))
    content = (tmp_path / "whole" / JOURNAL).read_bytes().splitlines(keepends=True)
    assert len(content) == 2 * TRIALS + 1
    for lines in random.Random(1).sample(range(1, len(content)), 4):
        folder = tmp_path / f"cut{lines}"
        folder.mkdir()
        (folder / JOURNAL).write_bytes(b"".join(content[:lines]))
        again = essence(_go_on(folder, method, capacity=capacity))
        assert len(again) == TRIALS
        if capacity == 1:  # with more, what the search knows when it is asked depends on which trial is done first
            assert _without_checkpoints(again) == _without_checkpoints(whole)


def _without_checkpoints(trials: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out where trials continued from: the checkpoints of a folder that was cut are not there."""
    return [(*trial[:4], *trial[5:]) for trial in trials]


def test_trials_in_flight_are_run_again_first(tmp_path: Path) -> None:
    _go_on(tmp_path, "hyperband", capacity=4)
    events = read_journal(tmp_path)
    cut = next(
        place
        for place in range(20, len(events))
        if sum(event["event"] == EventKind.ASKED for event in events[:place])
        - sum(event["event"] == EventKind.FINISHED for event in events[:place])
        == 4
    )
    before = events[:cut]
    done = {event["trial"]["number"] for event in before if event["event"] == EventKind.FINISHED}
    asked = [event["number"] for event in before if event["event"] == EventKind.ASKED]
    in_flight = [number for number in asked if number not in done]
    _cut(tmp_path, cut)
    _go_on(tmp_path, "hyperband", capacity=4)
    after = read_journal(tmp_path)[cut:]
    finished = [event["trial"]["number"] for event in after if event["event"] == EventKind.FINISHED]
    assert finished[:4] == in_flight
    assert not {event["number"] for event in after if event["event"] == EventKind.ASKED} & set(in_flight)


def test_more_or_fewer_trials_than_before(tmp_path: Path) -> None:
    whole = essence(_go_on(tmp_path / "a", "smac", 40))
    assert essence(_go_on(tmp_path / "b", "smac", 25)) == whole[:25]
    assert essence(_go_on(tmp_path / "b", "smac", 10)) == whole[:25]
    again = essence(_go_on(tmp_path / "b", "smac", 40))
    assert _without_checkpoints(again) == _without_checkpoints(whole)


class _Other:
    """A search of another version: it answers otherwise from some question on."""

    def __init__(self, search: Search, place: int) -> None:
        self._search, self._left = search, place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def ask(self) -> Any:
        self._left -= 1
        if self._left == 0:
            self._search.ask()
        return self._search.ask()


def test_a_search_that_answers_otherwise_is_told_all_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = _go_on(tmp_path, "hyperband", 35)

    def go_on(trials: int) -> Progress:
        with open_journal(tmp_path) as journal:
            progress = resume(journal, lambda: _Other(_make_search("hyperband"), 20), tmp_path)  # type: ignore[arg-type, return-value]
            Loop(progress, InProcess(continuing(fails=True)), journal, Stop(trials), tmp_path, Continuation(True)).run()
        return progress

    with caplog.at_level(logging.WARNING):
        progress = go_on(45)
    assert len(caplog.records) == 1 and "another version" in caplog.text
    assert essence(progress.trials[:35]) == essence(before)
    assert [trial.number for trial in progress.trials] == list(range(45))
    pairs = Counter((trial.config_id, trial.budget) for trial in progress.trials)
    assert max(pairs.values()) == 1
    assert [event["event"] for event in read_journal(tmp_path)].count(EventKind.REPLACED) == 1
    content = (tmp_path / JOURNAL).read_bytes()

    caplog.clear()
    longer = go_on(55)
    assert not caplog.records and (tmp_path / JOURNAL).read_bytes().startswith(content)
    (tmp_path / JOURNAL).write_bytes(content)
    _cut(tmp_path, len(content.splitlines()) - 7)
    assert _without_checkpoints(essence(go_on(55).trials)) == _without_checkpoints(essence(longer.trials))


def test_checkpoints_are_found_again_also_in_a_folder_that_was_moved(tmp_path: Path) -> None:
    _go_on(tmp_path / "old", "hyperband", 30)
    (tmp_path / "old").rename(tmp_path / "new")
    with open_journal(tmp_path / "new") as journal:
        progress = resume(journal, lambda: _make_search("hyperband"), tmp_path / "new")
    kept = [config_id for config_id in progress.checkpoints if progress.checkpoint_of(config_id, 27)[1] is not None]
    assert len(kept) == 1
    budget, path = progress.checkpoint_of(kept[0], 27)
    assert path is not None and path.is_relative_to(tmp_path / "new") and path.read_text() == str(budget)
    assert progress.checkpoint_of(kept[0], 0) == (0, None)


_SCRIPT = """
import json, os, random, sys, time
from pathlib import Path
import graphbench
from graphbench.tuning.trials import TrialResult

def train(config, seed, budget, checkpoint=None, folder=None):
    start = 0 if checkpoint is None else int(checkpoint.read_text())
    time.sleep(random.Random(str(config) + str(budget)).random() * 0.08)
    if config["lr"] > 0.05:
        raise ValueError("diverged")
    (folder / "steps").write_text(str(budget))
    return TrialResult(abs(config["lr"] - 0.01) + 1 / budget, checkpoint=folder / "steps", steps=budget - start)

space = {"lr": {"type": "float", "range": [1e-4, 0.1], "log": True}, "k": {"type": "int", "range": [1, 5]}}
settings = {"space": space, "min_budget": 1, "max_budget": 27, "output": sys.argv[1], "method": sys.argv[2]}
settings |= {"trials": int(sys.argv[3]), "workers": int(sys.argv[4]), "seed": 3}
best = graphbench.Optimizer(settings, train).optimize(report=False)
print(json.dumps([(t.number, t.config_id, t.config, t.budget, str(t.status), t.cost) for t in best.trials]))
"""


def _script(folder: Path) -> Path:
    path = folder / "script.py"
    path.write_text(_SCRIPT)
    return path


def _start(script: Path, output: Path, method: str, trials: int, workers: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(script), str(output), method, str(trials), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(process: "subprocess.Popen[str]") -> list[Any]:
    answer, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    found: list[Any] = json.loads(answer)
    return found


def _kill_often(
    folder: Path, output: Path, method: str, trials: int, workers: int, kills: int, number: signal.Signals
) -> list[Any]:
    """Start the same command again and again; each but the last is ended at a random moment after it got further."""
    chance, script = random.Random(kills), _script(folder)
    for _ in range(kills):
        before = _size(output)
        process = _start(script, output, method, trials, workers)
        while _size(output) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.random() * 0.6)
        process.send_signal(number)
        process.communicate(timeout=30)
    return _finish(_start(script, output, method, trials, workers))


def _size(output: Path) -> int:
    path = output / JOURNAL
    return path.stat().st_size if path.exists() else 0


def _check_counted_once(output: Path, trials: int) -> None:
    events = read_journal(output)
    assert Counter(e["trial"]["number"] for e in events if e["event"] == EventKind.FINISHED) == Counter(range(trials))
    assert Counter(e["number"] for e in events if e["event"] == EventKind.ASKED) == Counter(range(trials))


@pytest.mark.slow
def test_a_run_killed_three_times_has_the_trials_of_an_undisturbed_one(tmp_path: Path) -> None:
    whole = _finish(_start(_script(tmp_path), tmp_path / "whole", "random", 40, 1))
    killed = _kill_often(tmp_path, tmp_path / "killed", "random", 40, 1, 3, signal.SIGKILL)
    assert killed == whole
    _check_counted_once(tmp_path / "killed", 40)
    assert sum(event["event"] == "opened" for event in read_journal(tmp_path / "killed")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_killed_ten_times_has_the_trials_of_an_undisturbed_one(tmp_path: Path, workers: int) -> None:
    killed = _kill_often(tmp_path, tmp_path / "killed", "smac", 60, workers, 10, signal.SIGKILL)
    _check_counted_once(tmp_path / "killed", 60)
    assert [trial[0] for trial in killed] == list(range(60))
    if workers == 1:
        assert killed == _finish(_start(_script(tmp_path), tmp_path / "whole", "smac", 60, 1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.thorough
def test_ctrl_c_ends_promptly_and_the_run_can_go_on(tmp_path: Path, number: signal.Signals) -> None:
    output, script = tmp_path / "run", _script(tmp_path)
    process = _start(script, output, "random", 4000, 2)
    deadline = time.monotonic() + 60
    while _size(output) < 6000:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=200)
    assert process.returncode != 0
    finished = [event for event in read_journal(output) if event["event"] == EventKind.FINISHED]
    assert len(finished) < 4000
    if number == signal.SIGINT:
        assert errors.strip().endswith("KeyboardInterrupt")
        assert len(json.loads((output / "result.json").read_text())["trials"]) == len(finished)
    again = _finish(_start(script, output, "random", len(finished) + 5, 2))
    assert len(again) == len(finished) + 5
