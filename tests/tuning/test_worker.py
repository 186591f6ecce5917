"""What a worker makes of a call of a training method: its arguments, its result, and how it fails."""

import math
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphbench.core.errors import ConfigError, TrainingError
from graphbench.tuning import worker
from graphbench.tuning.execution import trial_function
from graphbench.tuning.trial import Status
from graphbench.tuning.trials import TrialResult
from graphbench.tuning.worker import Job, optional_arguments, reason_of, require_training_method, run_job, status_of


def _job(tmp_path: Path, number: int = 0, checkpoint: Path | None = None, **config: Any) -> Job:
    return Job(number, config, 5, 9, checkpoint, tmp_path / "trials" / str(number))


def test_optional_arguments_are_given_where_they_are_accepted(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def neither(config: Any, seed: int, budget: int) -> float:
        seen["neither"] = (config, seed, budget)
        return 0.0

    def both(config: Any, seed: int, budget: int, folder: Path, checkpoint: Path) -> float:
        seen["both"] = (folder, checkpoint, folder.is_dir())
        return 0.0

    def anything(*args: Any, **rest: Any) -> float:
        seen["anything"] = (args, sorted(rest))
        return 0.0

    class Method:
        def __call__(self, config: Any, seed: int, budget: int, *, checkpoint: Path | None = None) -> float:
            seen["object"] = checkpoint
            return 0.0

    checkpoint = tmp_path / "c"
    checkpoint.write_text("")
    job = _job(tmp_path, 3, checkpoint, lr=0.1)
    assert [run_job(method, job).status for method in (neither, both, anything, Method())] == [Status.SUCCESS] * 4
    assert seen == {
        "neither": ({"lr": 0.1}, 5, 9),
        "both": (job.folder, checkpoint, True),
        "anything": (({"lr": 0.1}, 5, 9), ["checkpoint", "folder"]),
        "object": checkpoint,
    }
    assert optional_arguments(neither) == frozenset()


def test_a_checkpoint_that_is_seen_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(config: Any, seed: int, budget: int, checkpoint: Path) -> float:
        return float(checkpoint.read_text())

    late = tmp_path / "late"
    Timer(0.3, late.write_text, ["7"]).start()
    assert run_job(train, _job(tmp_path, 0, late)).cost == 7.0
    monkeypatch.setattr(worker, "_APPEAR_SECONDS", 0.1)
    assert "FileNotFoundError" in run_job(train, _job(tmp_path, 0, tmp_path / "never")).reason


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, TrialResult(math.nan)])
def test_a_cost_that_is_not_finite_is_a_failure(tmp_path: Path, value: Any) -> None:
    outcome = run_job(lambda config, seed, budget: value, _job(tmp_path))
    assert outcome.status is Status.NOT_FINITE
    assert "the cost is" in outcome.reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0.5", "returns a number, or a mapping or an object with a cost; it returned '0.5'"),
        (None, "it returned None"),
        ([1.0], r"it returned \[1.0\]"),
        (SimpleNamespace(cost="0.5"), "cost: expected a number, got '0.5'"),
        (SimpleNamespace(cost=1, metrics={"f1": "b"}), r"metrics\['f1'\]: expected a number, got 'b'"),
        ({"cost": 1, "metrix": {}}, r"unknown key 'metrix' \(keys: cost, metrics, model, checkpoint, steps\)"),
        ({"metrics": {}}, "the key 'cost' is missing"),
        ({"cost": 1, "metrics": 3}, "metrics: expected a mapping from names to numbers, got 3"),
        ({"cost": 1, "checkpoint": 3}, "checkpoint: expected a path or None, got 3"),
        ({"cost": 1, "steps": 2.5}, "steps: expected a whole number or None, got 2.5"),
    ],
)
def test_a_result_of_the_wrong_type_is_a_failure_that_names_the_field(tmp_path: Path, value: Any, reason: str) -> None:
    outcome = run_job(lambda config, seed, budget: value, _job(tmp_path))
    assert outcome.status is Status.RAISED and math.isnan(outcome.cost)
    assert re.search(f"^TypeError: .*{reason}", outcome.reason)


def test_a_result_checks_its_types_where_it_is_made() -> None:
    with pytest.raises(TypeError, match="cost: expected a number, got 'low'"):
        TrialResult("low")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"checkpoint.*got True"):
        TrialResult(0.1, checkpoint=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("as_object", [True, False])
def test_a_mapping_or_an_object_may_be_returned(tmp_path: Path, as_object: bool) -> None:
    path = tmp_path / "checkpoint"
    path.write_text("")
    fields = {"cost": np.float32(0.25), "metrics": {"f1": np.int64(1)}, "model": 1, "checkpoint": str(path), "steps": 3}
    value = SimpleNamespace(**fields, other=1) if as_object else fields
    outcome = run_job(lambda config, seed, budget: value, _job(tmp_path))
    assert (outcome.status, outcome.cost, outcome.metrics) == (Status.SUCCESS, 0.25, {"f1": 1.0})
    assert (outcome.checkpoint, outcome.steps, outcome.has_model, outcome.note) == (path, 3, True, "")
    assert run_job(lambda config, seed, budget: {"cost": 2}, _job(tmp_path)).cost == 2.0


def test_a_checkpoint_that_does_not_exist_is_noted(tmp_path: Path) -> None:
    outcome = run_job(lambda *_: TrialResult(1.0, checkpoint=tmp_path / "none"), _job(tmp_path))
    assert outcome.status is Status.SUCCESS and outcome.checkpoint is None
    assert (
        outcome.note == f"the checkpoint {tmp_path / 'none'} does not exist, so that larger budgets start from scratch"
    )


def test_arguments_are_given_by_name_where_the_names_are_there_else_by_place(tmp_path: Path) -> None:
    def swapped(budget: int, seed: int, config: Any) -> float:
        return budget * 100 + seed * 10 + config["lr"]

    def named(*, config: Any, seed: int, budget: int, folder: Path) -> float:
        return swapped(budget, seed, config)

    def placed(values: Any, number: int, steps: int, /, factor: float = 1.0) -> float:
        return swapped(steps, number, values) * factor

    for method in (swapped, named, placed, partial(placed, factor=1.0)):
        require_training_method(method)
        assert run_job(method, _job(tmp_path, lr=1)).cost == 951


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (0.5, "method 0.5 cannot be called"),
        (
            lambda config, seed: 1.0,
            r"<lambda>\(config, seed\).*\(config, seed, budget\)",
        ),
        (lambda config, seed, budget, data: 1.0, "'data'.*defaults"),
        (lambda: 1.0, "too many positional arguments"),
    ],
)
def test_what_cannot_be_a_training_method_is_refused(method: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        require_training_method(method)


def test_the_steps_of_a_failed_trial_are_those_its_error_tells(tmp_path: Path) -> None:
    def train(config: Any, seed: int, budget: int) -> float:
        error = FloatingPointError("loss")
        error.steps = config["steps"]  # type: ignore[attr-defined]
        raise error

    outcomes = [run_job(train, _job(tmp_path, steps=steps)) for steps in (4, "many", True)]
    assert [outcome.steps for outcome in outcomes] == [4, None, None]
    assert run_job(lambda *_: math.nan, _job(tmp_path)).steps == 9  # it returned, so it did its budget


def test_the_reason_has_type_message_and_line(tmp_path: Path) -> None:
    def train(config: Any, seed: int, budget: int) -> float:
        raise KeyError("lr is missing")

    outcome = run_job(train, _job(tmp_path))
    assert outcome.reason.startswith("KeyError: 'lr is missing' (test_worker.py:")
    assert outcome.reason.endswith('in train: raise KeyError("lr is missing"))')
    assert len(reason_of(ValueError("x" * 10_000))) < 600


def test_kinds_of_failures_are_told_apart() -> None:
    torch = pytest.importorskip("torch")
    cpu = RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried")
    wrapped = TrainingError("the device ran out")
    wrapped.__cause__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    memory = [MemoryError(), cpu, wrapped, torch.OutOfMemoryError(), OSError(12, "Cannot allocate memory")]
    assert {status_of(error) for error in memory} == {Status.OUT_OF_MEMORY}
    assert status_of(FloatingPointError("loss")) is Status.NOT_FINITE
    others = [ValueError("out of memory"), RuntimeError("shape"), OSError(2, "No such file"), SystemExit(3)]
    assert {status_of(error) for error in others} == {Status.RAISED}


def test_an_allocation_that_torch_refuses_is_out_of_memory(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    outcome = run_job(lambda config, seed, budget: torch.empty(2**55), _job(tmp_path))
    assert outcome.status is Status.OUT_OF_MEMORY, outcome.reason


def test_a_worker_loads_the_plug_ins_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_plugin.py").write_text("")
    monkeypatch.setattr("graphbench.tuning.execution.plugin_targets", lambda: ("own_plugin",))
    (tmp_path / "function").write_bytes(trial_function(lambda config, seed, budget: "own_plugin" in sys.modules))
    code = (
        "import sys; from pathlib import Path; import cloudpickle; from graphbench.tuning.worker import Job\n"
        "function = cloudpickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "print(function(Job(0, {}, 0, 1, None, Path('x'))).cost)"
    )
    folders = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "function")],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1.0\n", done.stderr


def test_an_error_that_cannot_be_described_is_a_failed_trial(tmp_path: Path) -> None:
    class Speechless(RuntimeError):
        def __str__(self) -> str:
            raise GeneratorExit

        @property
        def steps(self) -> int:
            raise SystemExit

    def train(config: Any, seed: int, budget: int) -> float:
        error, other = Speechless(), ValueError()
        error.__cause__, other.__cause__ = other, error
        raise error

    outcome = run_job(train, _job(tmp_path))
    assert (outcome.status, outcome.steps) == (Status.RAISED, None)
    assert outcome.reason.startswith("Speechless: (no text: __str__ raised GeneratorExit)")


def test_a_terminal_obeys_no_reason_and_a_long_one_is_cut(tmp_path: Path) -> None:
    def train(config: Any, seed: int, budget: int) -> float:
        raise ValueError("\x1b[2J" + 10_000_000 * "x")

    reason = run_job(train, _job(tmp_path)).reason
    assert reason.startswith(r"ValueError: \x1b[2Jxxx") and "\x1b" not in reason and len(reason) < 1000
