"""Runs that go wrong: nothing succeeds, time runs out, checkpoints are missing; and how they go on."""

import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphbench.core.errors import ConfigError, StoreError, TuningError
from graphbench.tuning.journal import JOURNAL, EventKind
from graphbench.tuning.optimizer import Best, Optimizer
from graphbench.tuning.trial import Status
from graphbench.tuning.trials import TrialResult

from .runs import continuing, essence, read_journal, settings


def _optimize(output: Path, train: Callable[..., Any], **changes: Any) -> Best:
    return Optimizer(settings(output, **changes), train).optimize(report=False)


def _named(method: Callable[..., float]) -> Callable[..., float]:
    """Return a method, of functions inside functions, which travel with their code, under one name."""
    method.__qualname__ = "train"
    return method


def _mended() -> Callable[..., float]:
    return _named(lambda config, seed, budget: float(config["lr"]))


def _broken() -> Callable[..., float]:
    def fail(config: dict[str, Any], seed: int, budget: int) -> float:
        time.sleep(0.2)
        raise ValueError(f"no data for {config['lr']}")

    return _named(fail)


def _trials(output: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((output / "result.json").read_text())["trials"]
    return found


@pytest.mark.slow
def test_a_run_whose_first_five_trials_fail_for_one_reason_ends_and_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = r"the first 5 trials failed for the same reason \(raised\): ValueError: no data for .*logs\. Correct it and"
    for _ in range(2):
        with pytest.raises(TuningError, match=words):
            _optimize(tmp_path / "run", _broken())
        assert [trial["number"] for trial in _trials(tmp_path / "run")] == list(range(5))
    best = _optimize(tmp_path / "run", _mended())
    assert essence(best.trials) == essence(_optimize(tmp_path / "whole", _mended()).trials)
    events = [event["event"] for event in read_journal(tmp_path / "run")]
    assert events.count(EventKind.RESTARTED) == 2 and events.count("finished") == 40
    again = _optimize(tmp_path / "run", _mended(), trials=33)
    assert essence(again.trials)[:30] == essence(best.trials)
    seconds = json.loads((tmp_path / "run" / "result.json").read_text())["seconds"]
    assert 0 < seconds["overhead_per_trial"] * 33 < seconds["wall"] - 2 * 5 * 0.2 + 33 * 0.001  # of rounding


def test_failures_of_several_kinds_or_a_success_let_a_run_go_on(tmp_path: Path) -> None:
    def several(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["kind"] == "a":
            raise KeyError("one")
        raise ValueError("another")

    with pytest.raises(TuningError, match="none of 12 trials succeeded; the first: "):
        _optimize(tmp_path / "several", several, trials=12)

    def once(config: dict[str, Any], seed: int, budget: int) -> float:
        if math.isclose(config["lr"], 10**-2.5):  # the default
            return 1.0
        raise ValueError("another")

    assert len(_optimize(tmp_path / "once", once, trials=12, method="random").trials) == 12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["smac", "hyperband", "random"])
def test_failed_trials_are_run_again_where_that_is_asked_for(tmp_path: Path, method: str) -> None:
    first = _optimize(tmp_path, continuing(fails=True), method=method)
    failed = {trial.number for trial in first.trials if not trial.succeeded}
    assert failed
    same = _optimize(tmp_path, continuing(), method=method)
    assert essence(same.trials) == essence(first.trials)
    mended = _optimize(tmp_path, continuing(), method=method, retry_failed=True)
    assert [trial.number for trial in mended.trials] == list(range(30))
    assert all(trial.succeeded for trial in mended.trials)
    assert [t for t in essence(mended.trials) if t[0] not in failed] == [
        t for t in essence(first.trials) if t[0] not in failed
    ]
    (noted,) = [event for event in read_journal(tmp_path) if event["event"] == EventKind.RETRIED]
    assert set(noted["numbers"]) == failed
    more = _optimize(tmp_path, continuing(), method=method, trials=45, retry_failed=True)
    assert essence(more.trials)[:30] == essence(mended.trials) and len(more.trials) == 45
    assert len({(trial.config_id, trial.budget) for trial in more.trials}) == 45


@pytest.mark.slow
def test_a_run_with_retried_trials_that_is_cut_anywhere_goes_on_alike(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _optimize(tmp_path / "whole", continuing(fails=True), trials=20)
    whole = _optimize(tmp_path / "whole", continuing(), trials=45, retry_failed=True)
    lines = (tmp_path / "whole" / JOURNAL).read_bytes().splitlines(keepends=True)
    retried = next(place for place, line in enumerate(lines) if b'"retried"' in line)
    for cut in (retried + 1, retried + 2, retried + 12):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / JOURNAL).write_bytes(b"".join(lines[:cut]))
        again = _optimize(folder, continuing(), trials=45)
        assert [(*t[:4], *t[5:]) for t in essence(again.trials)] == [(*t[:4], *t[5:]) for t in essence(whole.trials)]
    assert "another version" not in caplog.text


@pytest.mark.thorough
def test_a_retried_configuration_of_an_open_rung_can_be_promoted(tmp_path: Path) -> None:
    def best_fails(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["kind"] == "b":
            raise ValueError("b")
        return float(config["lr"]) + 1

    def best_works(config: dict[str, Any], seed: int, budget: int) -> float:
        return float(config["lr"]) + (config["kind"] != "b")

    first = _optimize(tmp_path, _named(best_fails), trials=20, method="hyperband")
    failed = {trial.config_id for trial in first.trials if not trial.succeeded}
    second = _optimize(tmp_path, _named(best_works), trials=45, method="hyperband", retry_failed=True)
    assert failed & {trial.config_id for trial in second.trials if trial.budget > 1}


def test_a_walltime_that_ends_before_the_first_trial_says_so_and_the_run_goes_on(tmp_path: Path) -> None:
    def slow(config: dict[str, Any], seed: int, budget: int) -> float:
        time.sleep(1.5)
        return float(config["lr"])

    run: dict[str, Any] = {"method": "random", "trials": 1}
    words = (
        r"the walltime limit of 1 s, .*, ended before the first trial ended; raise it and start the same search again"
    )
    with pytest.raises(TuningError, match=words):
        _optimize(tmp_path, slow, walltime_limit=1, **run)
    assert _trials(tmp_path) == []
    assert len(_optimize(tmp_path, slow, walltime_limit=60, **run).trials) == 1


def test_a_missing_checkpoint_is_told_once_and_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def forgetful(config: dict[str, Any], seed: int, budget: int, checkpoint: Path | None = None) -> TrialResult:
        assert checkpoint is None
        return TrialResult(config["lr"], checkpoint=Path("/nowhere/state"))

    best = _optimize(tmp_path, forgetful, trials=35)
    told = [record.getMessage() for record in caplog.records if "/nowhere" in record.getMessage()]
    assert told == [
        "trial 0: the checkpoint /nowhere/state does not exist, so that larger budgets start from scratch; "
        "further notes are in the result"
    ]
    assert all(trial.succeeded and "/nowhere/state does not exist" in trial.note for trial in best.trials)
    assert all("/nowhere/state" in trial["note"] for trial in _trials(tmp_path))
    assert {trial.continued_from for trial in best.trials} == {0}


@pytest.mark.thorough
def test_a_run_began_when_it_was_first_opened(tmp_path: Path) -> None:
    def slow(config: dict[str, Any], seed: int, budget: int) -> float:
        time.sleep(1.2)
        return 1.0

    _optimize(tmp_path, slow, method="random", trials=1)
    first = json.loads((tmp_path / "result.json").read_text())
    opened = next(event["time"] for event in read_journal(tmp_path) if event["event"] == "opened")
    assert first["started"] == opened < first["finished"]
    _optimize(tmp_path, slow, method="random", trials=2)
    second = json.loads((tmp_path / "result.json").read_text())
    assert second["started"] == opened and second["finished"] > first["finished"]


@pytest.mark.thorough
def test_what_was_not_reached_is_told_with_the_trials_it_takes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    few = _optimize(tmp_path, _mended(), trials=9)
    about = json.loads((tmp_path / "result.json").read_text())["largest_budget"]
    assert (about["budget"], about["reached"]) == (27, 1) and {trial.budget for trial in few.trials} == {1}
    words = f"largest budget reached: 1 of 27 steps, after 9 trials; about {about['trials_needed']} trials are needed"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [words]
    caplog.clear()
    one_less = _optimize(tmp_path, _mended(), trials=about["trials_needed"] - 1)
    enough = _optimize(tmp_path, _mended(), trials=about["trials_needed"] + 2)  # the default may climb besides the best
    assert 27 not in {t.budget for t in one_less.trials} and 27 in {t.budget for t in enough.trials}


def test_what_a_search_found_is_shown_in_short(tmp_path: Path) -> None:
    best = _optimize(tmp_path, continuing(fails=True))
    failed = sum(not trial.succeeded for trial in best.trials)
    assert len(repr(best)) < 400
    assert repr(best).startswith(f"Best(score={best.score:.6g}, config={{'kind': ")
    assert f"trials=<30 trials, {failed} failed>, model=dict, path=" in repr(best)


def test_a_training_method_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"<lambda>\(config\).*\(config, seed, budget\)"):
        Optimizer(settings(tmp_path / "run"), lambda config: 1.0)
    with pytest.raises(ConfigError, match="'train' cannot be called"):
        Optimizer(settings(tmp_path / "run"), "train")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("inner", ["", "deep/run"])
def test_an_output_that_is_a_file_is_named(tmp_path: Path, inner: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=rf"\({tmp_path / 'file'}\).*another output folder$"):
        _optimize(tmp_path / "file" / inner, _mended())


def test_an_output_without_permission_has_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=r"read-only.*another output folder$"):
        _optimize(tmp_path / "run", _mended())


def test_mistakes_of_settings_have_no_second_traceback(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Optimizer(settings(tmp_path, trials=0), _mended())
    assert caught.value.__suppress_context__ and caught.value.__cause__ is None


@pytest.mark.thorough
def test_steps_of_trials_that_are_ended_are_those_of_their_last_checkpoint(tmp_path: Path) -> None:
    class Slow:
        def __call__(self, config: dict[str, Any], seed: int, budget: int, folder: Path) -> float:
            (folder / f"{seed}").write_text("20")
            time.sleep(30 if config["kind"] == "b" else 0)
            return 1.0

        def steps_in(self, folder: Path, seed: int) -> int:
            return int((folder / f"{seed}").read_text())

    space = {"kind": {"type": "categorical", "choices": ["a", "b"]}}
    best = _optimize(tmp_path, Slow(), space=space, method="random", trial_limit=3.0, seed=3)
    assert {trial.config["kind"]: (trial.status, trial.steps) for trial in best.trials} == {
        "a": (Status.SUCCESS, 27),
        "b": (Status.TIMEOUT, 20),
    }
    assert json.loads((tmp_path / "result.json").read_text())["steps"]["done"] == 47


def test_a_failure_is_no_success_of_any_cost(tmp_path: Path) -> None:
    best = _optimize(tmp_path, continuing(fails=True), method="random", trials=20)
    lost = [trial for trial in best.trials if trial.status is Status.RAISED]
    assert lost
    with pytest.raises(ValueError, match=f"trial {lost[0].number} failed and has no cost"):
        _ = lost[0].measured
