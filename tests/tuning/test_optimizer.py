import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from smac.runhistory import StatusType

import graphbench
from graphbench.core.errors import ConfigError, TuningError
from graphbench.tuning.execution import LOGS
from graphbench.tuning.history import History
from graphbench.tuning.journal import JOURNAL, open_journal, resume
from graphbench.tuning.optimizer import Best, Optimizer
from graphbench.tuning.trial import Status, Trial
from graphbench.tuning.trials import Asked, TrialResult

from .runs import SPACE, continuing, essence, read_journal, settings


def _optimize(output: Path, method: Callable[..., Any] | None = None, **changes: Any) -> Best:
    return Optimizer(settings(output, **changes), method or continuing()).optimize(report=False)


def _plain(costs: float | None = None) -> Callable[..., float]:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        return config["lr"] if costs is None else costs

    return train


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def on_start(self, settings: Mapping[str, Any], trials: Sequence[Trial]) -> None:
        self.calls.append(("start", (settings, len(trials))))

    def on_asked(self, asked: Asked) -> None:
        self.calls.append(("asked", asked.number))

    def on_finished(self, trial: Trial) -> None:
        self.calls.append(("finished", trial.number))

    def on_end(self) -> None:
        self.calls.append(("end", None))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Best:
    """A run that ended; do not change its folder."""
    return _optimize(tmp_path_factory.mktemp("run") / "deep" / "run", continuing(fails=True), trials=45, seed=2)


def test_the_best_is_the_best_of_the_largest_budget(finished: Best) -> None:
    full = [trial for trial in finished.trials if trial.budget == 27]
    best = min(full, key=lambda trial: (trial.cost, trial.number))
    assert (finished.config, finished.cost, finished.score) == (best.config, best.cost, best.cost)
    assert [trial.number for trial in finished.trials] == list(range(45))
    assert len(full) >= 2 and best.config_id != 0


def test_the_model_is_made_in_this_process_from_the_checkpoint(finished: Best) -> None:
    assert finished.model == {"process": os.getpid(), **finished.config}
    assert os.getpid() not in {int(trial.worker.split(":")[1]) for trial in finished.trials}


def test_promoted_configurations_continue_and_the_steps_add_up(finished: Best) -> None:
    for trial in finished.trials:
        if trial.succeeded:
            assert trial.continued_from == trial.metrics["start"]
            assert trial.steps == trial.budget - trial.continued_from
    result = json.loads((finished.path / "result.json").read_text())
    alone = sum(trial.budget for trial in finished.trials)
    alone -= sum(
        trial.budget for trial in finished.trials if not trial.succeeded
    )  # those raise before their first step
    done = sum(trial.steps for trial in finished.trials)
    assert result["steps"] == {
        "done": done,
        "without_continuing": alone,
        "saved_share": pytest.approx(1 - done / alone, abs=1e-4),
    }
    assert done < alone


def test_only_the_incumbents_folder_is_left(finished: Best) -> None:
    best = next(t for t in finished.trials if t.config == finished.config and t.budget == 27)
    assert [path.name for path in (finished.path / "trials").iterdir()] == [str(best.config_id)]


def test_failed_trials_are_recorded_without_a_cost_and_with_no_steps(finished: Best) -> None:
    failed = [trial for trial in finished.trials if not trial.succeeded]
    assert failed and all(trial.status is Status.RAISED for trial in failed)
    for trial in failed:
        assert trial.reason.startswith("ValueError: diverged (runs.py:")
        assert (trial.cost, trial.steps) == (None, 0)
    written = json.loads((finished.path / "result.json").read_text())["trials"]
    assert {trial["cost"] for trial in written if trial["status"] != "success"} == {None}
    assert "ValueError: diverged" in (finished.path / LOGS / "worker-0.log").read_text()


def test_the_result_is_whole_and_reports_can_be_drawn_from_it(finished: Best) -> None:
    text = (finished.path / "result.json").read_text()
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert {*result} == {
        *("schema", "title", "what", "space", "incumbent", "default", "trials", "steps", "seconds", "hardware"),
        *("graphbench_version", "started", "finished", "largest_budget"),
    }
    assert result["schema"] == 1 and result["graphbench_version"] == graphbench.__version__
    assert result["what"] == {
        "training_method": "continuing.<locals>.train",
        **{"method": "smac", "seed": 2, "min_budget": 1, "max_budget": 27, "eta": 3},
        **{"worst_cost": None, "space_file": None},
    }
    assert result["incumbent"]["cost"] == finished.cost and result["incumbent"]["config"] == finished.config
    assert result["default"]["config_id"] == 0 and result["default"]["budget"] == 27
    assert set(result["space"]["space"]) == set(SPACE)
    assert result["seconds"]["training"] <= result["seconds"]["wall"]
    history = History(result)
    assert essence(history.trials) == essence(finished.trials)
    assert history.default_trials[-1].config_id == 0


def test_the_settings_are_written_and_shown_to_observers(tmp_path: Path) -> None:
    recorder = Recorder()
    Optimizer(settings(tmp_path, trials=3, method="random"), _plain()).optimize([recorder], report=False)
    written = json.loads((tmp_path / "settings.json").read_text())
    (kind, (shown, known)), *calls = recorder.calls
    assert kind == "start" and known == 0 and json.loads(json.dumps(shown)) == written
    assert calls == [(kind, number) for number in range(3) for kind in ("asked", "finished")] + [("end", None)]
    assert written["limits"]["trials"] == 3 and written["limits"]["cluster"] is None
    again = Recorder()
    Optimizer(settings(tmp_path, trials=4, method="random"), _plain()).optimize([again], report=False)
    assert again.calls[0][1][1] == 3
    assert again.calls[1:] == [("asked", 3), ("finished", 3), ("end", None)]


def test_observers_know_of_the_end_after_an_error_and_the_result_is_written(tmp_path: Path) -> None:
    class Failing(Recorder):
        def on_finished(self, trial: Trial) -> None:
            super().on_finished(trial)
            if trial.number == 1:
                raise RuntimeError("display")

    recorder = Failing()
    with pytest.raises(RuntimeError, match="display"):
        Optimizer(settings(tmp_path, method="random"), _plain()).optimize([recorder], report=False)
    assert recorder.calls[-1] == ("end", None)
    assert len(json.loads((tmp_path / "result.json").read_text())["trials"]) == 2


@pytest.mark.thorough
def test_the_report_is_written_unless_it_is_not_wanted(tmp_path: Path) -> None:
    optimizer = Optimizer(settings(tmp_path, trials=3, method="random"), _plain())
    optimizer.optimize(report=False)
    assert not (tmp_path / "report").exists()
    optimizer.optimize()
    assert (tmp_path / "report" / "report.html").is_file()


def test_settings_may_be_a_dataclass_or_an_object(tmp_path: Path) -> None:
    values = settings(tmp_path / "a", trials=2, method="random")
    Arguments = dataclasses.make_dataclass("Arguments", list(values))
    first = Optimizer(Arguments(**values), _plain()).optimize(report=False)
    second = Optimizer(SimpleNamespace(**values | {"output": tmp_path / "b"}), _plain()).optimize(report=False)
    assert essence(first.trials) == essence(second.trials)
    with pytest.raises(ConfigError, match="optimization_args"):
        Optimizer({"space": SPACE}, _plain())


def test_the_interface_of_the_design_runs_as_printed(tmp_path: Path) -> None:
    optimization_args, training_method = settings(tmp_path, trials=2, method="random"), _plain(0.5)
    optimizer = graphbench.Optimizer(optimization_args, training_method)
    opt_model = optimizer.optimize()
    assert opt_model.cost == 0.5 and opt_model.model is None


@pytest.mark.slow
@pytest.mark.parametrize("method", ["smac", "hyperband"])
def test_the_same_seed_gives_the_same_trials_and_another_one_others(tmp_path: Path, method: str) -> None:
    seeds = enumerate((0, 0, 1))
    runs = [Optimizer(settings(tmp_path / f"{n}", method=method, seed=seed), continuing()) for n, seed in seeds]
    first, again, other = (essence(run.optimize(report=False).trials) for run in runs)
    assert first == again
    assert [trial[2] for trial in other] != [trial[2] for trial in first]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "what.seed was 0, is now 1"),
        ({"method": "hyperband"}, "what.method was 'random', is now 'hyperband'"),
        ({"max_budget": 9}, "what.max_budget was 27, is now 9"),
        ({"eta": 2}, "what.eta was 3, is now 2"),
        ({"worst_cost": 2.0}, "what.worst_cost was None, is now 2.0"),
        (
            {"space": SPACE | {"layers": {"type": "int", "range": [1, 7]}}},
            r"space.space.layers.range was \[1, 6\]",
        ),
        ({"space": {"lr": SPACE["lr"]}}, "space.space.layers was .*, is now 'nothing'"),
    ],
)
def test_another_search_in_the_same_folder_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    run = settings(tmp_path, method="random", trials=2)
    Optimizer(run, _plain()).optimize(report=False)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(ConfigError, match=f"{named}.*Choose another output folder"):
        Optimizer(run | change, _plain()).optimize(report=False)
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_limits_workers_and_trials_may_change(tmp_path: Path) -> None:
    run = {"method": "random"}
    first = Optimizer(settings(tmp_path, trials=4, **run), _plain()).optimize(report=False)
    more = {"trials": 9, "workers": 2, "walltime_limit": 60, "trial_limit": 30, "memory_limit": 4}
    second = Optimizer(settings(tmp_path, **run, **more), _plain()).optimize(report=False)
    assert len(second.trials) == 9 and essence(second.trials)[:4] == essence(first.trials)
    third = Optimizer(settings(tmp_path, trials=2, **run), _plain()).optimize(report=False)
    assert essence(third.trials) == essence(second.trials)


def described(**about: Any) -> Any:
    """Return a training method with all it may say about itself."""

    class Described:
        worst_cost = 3.5

        def __init__(self) -> None:
            self.description = {"dataset": "toy", "model": "net", **about}
            self.prepared: list[Any] = []

        def prepare(self, config: Mapping[str, Any]) -> None:
            self.prepared.append(dict(config))

        def score_of(self, cost: float) -> float:
            return 1 - cost

        def baseline(self, config: Mapping[str, Any], budget: int) -> dict[str, Any]:
            return {"training": {"lr": config["lr"], "steps": budget}}

        def __call__(self, config: Mapping[str, Any], seed: int, budget: int) -> float:
            if config["kind"] == "b":
                raise ValueError("no b")
            return float(config["lr"])

    return Described()


def test_what_a_training_method_says_of_itself_is_used(tmp_path: Path) -> None:
    method = described(limit=10)
    best = Optimizer(settings(tmp_path, method="random", trials=12), method).optimize(report=False)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["title"] == "Tuning net on toy" and result["what"]["limit"] == 10
    assert result["baseline"] == {"training": {"lr": best.config["lr"], "steps": 27}}
    assert best.score == 1 - best.cost
    assert len(method.prepared) == 1 and set(method.prepared[0]) == set(SPACE)
    failed = [trial for trial in best.trials if not trial.succeeded]
    assert failed
    with pytest.raises(ConfigError, match=r"what\.limit was 10, is now 20"):
        Optimizer(settings(tmp_path, method="random", trials=12), described(limit=20)).optimize(report=False)


def test_what_failed_trials_cost_is_told_to_the_search_the_settings_before_the_methods(tmp_path: Path) -> None:
    for given, told in ((None, 3.5), (9.0, 9.0)):
        run = settings(tmp_path / str(given), trials=12, worst_cost=given)
        optimizer = Optimizer(run, described())
        optimizer.optimize(report=False)
        with open_journal(tmp_path / str(given)) as journal:
            progress = resume(journal, optimizer._make_search, tmp_path / str(given))
        costs = progress.search._smac.runhistory.values()  # type: ignore[attr-defined]
        assert {value.cost for value in costs if value.status != StatusType.SUCCESS} == {told}


def test_a_run_in_which_nothing_succeeds_says_why(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match=r"3 trials.*cost is nan.*/logs"):
        Optimizer(settings(tmp_path, method="random", trials=3), _plain(float("nan"))).optimize(report=False)
    result = json.loads((tmp_path / "result.json").read_text())
    assert [trial["cost"] for trial in result["trials"]] == [None] * 3
    assert result["incumbent"] is None and result["default"] is None


@pytest.mark.thorough
def test_all_kinds_of_failure_leave_the_run_going(tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["how"] == "raise":
            raise ValueError("bad")
        if config["how"] == "nan":
            return float("nan")
        if config["how"] == "slow":
            time.sleep(60)
        if config["how"] == "memory":
            raise MemoryError
        if config["how"] == "grow":
            kept = [bytearray(b"x") * 2**20 * 20 for _ in range(20)]
            time.sleep(20)
            return float(len(kept))
        if config["how"] == "die":
            os._exit(5)
        return 0.5

    hows = ["well", "raise", "nan", "slow", "memory", "grow", "die"]
    run = settings(tmp_path, space={"how": {"type": "categorical", "choices": hows}}, method="random", trials=20)
    run |= {"trial_limit": 3.0, "memory_limit": 0.3, "workers": 2}
    best = Optimizer(run, train).optimize(report=False)
    assert {trial.config["how"]: trial.status for trial in best.trials} == {
        "well": Status.SUCCESS,
        "raise": Status.RAISED,
        "nan": Status.NOT_FINITE,
        "slow": Status.TIMEOUT,
        "memory": Status.OUT_OF_MEMORY,
        "grow": Status.OUT_OF_MEMORY,
        "die": Status.WORKER_DIED,
    }
    assert best.config == {"how": "well"}


def test_without_a_model_nothing_is_trained_again(tmp_path: Path) -> None:
    counter = tmp_path / "calls"

    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        with counter.open("a") as file:
            file.write("x")
        return float(config["lr"])

    best = Optimizer(settings(tmp_path / "run", method="random", trials=4), train).optimize(report=False)
    assert best.model is None and counter.read_text() == "xxxx"


def test_no_model_is_made_where_none_is_wanted(tmp_path: Path) -> None:
    best = Optimizer(settings(tmp_path, method="random", trials=2), continuing()).optimize(report=False, refit=False)
    assert best.model is None


def test_a_model_that_cannot_be_made_is_a_clear_error_after_the_result(tmp_path: Path) -> None:
    here = os.getpid()

    def train(config: dict[str, Any], seed: int, budget: int) -> TrialResult:
        if os.getpid() == here:
            raise OSError("no device")
        return TrialResult(1.0, model=1)

    with pytest.raises(TuningError, match="could not be made: OSError: no device"):
        Optimizer(settings(tmp_path, method="random", trials=2), train).optimize(report=False)
    assert len(json.loads((tmp_path / "result.json").read_text())["trials"]) == 2


@pytest.mark.slow
def test_time_runs_over_restarts_and_cuts_trials_that_run(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        with calls.open("a") as file:
            file.write("x")
        time.sleep(600 if calls.stat().st_size == 3 else 0.4)  # the second trial of the run is the one that is cut
        return float(config["lr"])

    started = time.monotonic()
    Optimizer(settings(tmp_path / "before", method="random", trials=1), train).optimize(report=False)
    limit = 2.5 * (time.monotonic() - started) + 1.0  # a busy machine needs seconds to start a process
    run = settings(tmp_path / "run", method="random", trials=500)
    first = Optimizer(run | {"walltime_limit": limit}, train).optimize(report=False)
    assert len(first.trials) == 1
    events = [event["event"] for event in read_journal(tmp_path / "run")]
    assert events.count("asked") == events.count("finished") + 1

    with open_journal(tmp_path / "run") as journal:
        assert journal.seconds > 0.95 * limit
    again = Optimizer(run | {"walltime_limit": limit}, train).optimize(report=False)
    assert essence(again.trials) == essence(first.trials)
    more = Optimizer(run | {"walltime_limit": 2 * limit}, train).optimize(report=False)
    assert len(first.trials) < len(more.trials) <= 2 * limit / 0.4
    assert essence(more.trials)[: len(first.trials)] == essence(first.trials)
    assert [trial.number for trial in more.trials] == list(range(len(more.trials)))


@pytest.mark.thorough
def test_a_stopped_run_keeps_the_checkpoints_that_are_needed(tmp_path: Path) -> None:
    whole = _optimize(tmp_path / "whole", trials=45)
    output = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        Optimizer(settings(output, trials=45), continuing()).optimize([_Interrupt(31)], report=False)
    kept = {int(path.name) for path in (output / "trials").iterdir()}
    needed = {t.config_id for t in whole.trials[32:] if t.continued_from and t.config_id <= 26}
    assert needed and needed <= kept
    assert len(kept) < 27
    assert essence(_optimize(output, trials=45).trials) == essence(whole.trials)


class _Interrupt(Recorder):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def on_finished(self, trial: Trial) -> None:
        if trial.number == self.number:
            raise KeyboardInterrupt


@pytest.mark.thorough
def test_a_checkpoint_that_is_gone_means_from_scratch(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Optimizer(settings(tmp_path, trials=45), continuing()).optimize([_Interrupt(28)], report=False)
    shutil.rmtree(tmp_path / "trials")
    best = _optimize(tmp_path, trials=45)
    later = [trial for trial in best.trials[30:] if trial.budget == 3 and trial.config_id < 27]
    assert later and all(trial.continued_from == 0 and trial.steps == 3 for trial in later)
    assert any(trial.continued_from for trial in best.trials[30:])


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    with open_journal(tmp_path), pytest.raises(TuningError, match="another process tunes in"):
        _optimize(tmp_path)


def test_the_overhead_of_trials_is_a_part_of_the_time(finished: Best) -> None:
    result = json.loads((finished.path / "result.json").read_text())
    seconds, trials = result["seconds"], len(result["trials"])
    rounding = 0.001 * trials
    assert 0 < seconds["overhead_per_trial"] * trials <= seconds["wall"] - seconds["training"] + rounding


def test_the_package_loads_neither_smac_nor_dask_for_tuning_to_be_there() -> None:
    code = (
        "import sys, graphbench; graphbench.Optimizer; import graphbench.tuning.search\n"
        "slow = ('smac', 'ConfigSpace', 'distributed', 'sklearn', 'cloudpickle')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr
