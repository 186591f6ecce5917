import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from graphbench.core.errors import TuningError
from graphbench.core.processes.local import LocalPool, memory_of
from graphbench.core.processes.pool import MAX_TRIES, Limits
from graphbench.tuning.execution import LOGS, Execution, make_execution, trial_function
from graphbench.tuning.trial import Status
from graphbench.tuning.trials import TrialResult
from graphbench.tuning.worker import Job, Outcome

Start = Callable[..., Execution]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that gives a local execution, closed after the test."""
    opened: list[Execution] = []

    def make(method: Callable[..., Any], workers: int = 1, limits: Limits | None = None) -> Execution:
        opened.append(make_execution(method, workers, None, limits or Limits(), tmp_path))
        return opened[-1]

    yield make
    for execution in opened:
        execution.close()


def _job(tmp_path: Path, number: int = 0, checkpoint: Path | None = None, **config: Any) -> Job:
    return Job(number, config, 5, 9, checkpoint, tmp_path / "trials" / str(number))


def _ended(execution: Execution, count: int = 1, seconds: float = 200.0) -> dict[int, Outcome]:
    """Wait for as many trials and return their outcomes by number."""
    found: dict[int, Outcome] = {}
    deadline = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {sorted(found)} ended"
        found |= {job.number: outcome for job, outcome in execution.wait(1.0)}
    return found


def _gone(process_id: int, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process_id}/stat").read_text().split(")")[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_cost_or_a_result_comes_back_but_never_the_model(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> Any:
        if config["plain"]:
            return budget / seed
        Path(config["file"]).write_text("")
        return TrialResult(0.5, {"f1": 0.75}, model=(part for part in ()), checkpoint=config["file"], steps=3)

    execution = start(train)
    execution.start(_job(tmp_path, 0, plain=True))
    plain = _ended(execution)[0]
    assert (plain.status, plain.cost, plain.has_model, plain.steps, plain.tries) == (
        Status.SUCCESS,
        1.8,
        False,
        None,
        1,
    )
    execution.start(_job(tmp_path, 1, plain=False, file=str(tmp_path / "checkpoint")))
    rich = _ended(execution)[1]
    assert (rich.cost, rich.metrics, rich.steps, rich.has_model) == (0.5, {"f1": 0.75}, 3, True)
    assert rich.checkpoint is not None and rich.checkpoint.is_absolute()
    assert not hasattr(rich, "model")
    assert plain.worker == rich.worker  # the process lives on
    assert plain.worker != f"{os.uname().nodename}:{os.getpid()}"


def test_whatever_is_raised_ends_one_trial_and_not_the_worker(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["how"] == "exit":
            sys.exit(3)
        if config["how"] == "interrupt":
            raise KeyboardInterrupt
        return 1.0

    execution = start(train)
    workers = set()
    for number, (how, status) in enumerate(
        [("exit", Status.RAISED), ("interrupt", Status.RAISED), ("well", Status.SUCCESS)]
    ):
        execution.start(_job(tmp_path, number, how=how))
        outcome = _ended(execution)[number]
        assert (outcome.status, outcome.tries) == (status, 1)
        workers.add(outcome.worker)
    assert len(workers) == 1
    assert "SystemExit: 3" in (tmp_path / LOGS / "worker-0.log").read_text()


@pytest.mark.thorough
def test_a_trial_beyond_its_time_is_killed_with_all_it_started_and_no_other(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["slow"]:
            child = subprocess.Popen(["sleep", "600"])
            Path(config["file"]).write_text(f"{os.getpid()} {child.pid}")
            time.sleep(600)
        return float(os.getpid())

    execution = start(train, workers=2, limits=Limits(seconds=4.0))
    file = tmp_path / "processes"
    execution.start(_job(tmp_path, 0, slow=True, file=str(file)))
    execution.start(_job(tmp_path, 1, slow=False))
    ended = _ended(execution, 2)
    assert ended[0].status is Status.TIMEOUT and "4 s (trial_limit)" in ended[0].reason
    assert 4.0 <= ended[0].seconds < 600.0 and ended[0].tries == 1
    assert ended[1].status is Status.SUCCESS
    assert all(_gone(int(process)) for process in file.read_text().split())
    execution.start(_job(tmp_path, 2, slow=False))
    assert _ended(execution)[2].status is Status.SUCCESS


def test_the_time_of_a_trial_begins_when_its_worker_is_ready(start: Start, tmp_path: Path) -> None:
    class Slow:
        def __reduce__(self) -> Any:
            return _slowly, ()

        def __call__(self, config: Any, seed: int, budget: int) -> float:
            return 1.0

    def _slowly() -> Any:
        time.sleep(2.5)
        return lambda config, seed, budget: 1.0

    execution = start(Slow(), limits=Limits(seconds=2.0))
    execution.start(_job(tmp_path))
    assert _ended(execution)[0].status is Status.SUCCESS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "exit code 7"),
        ("segmentation", "SIGSEGV"),
        ("kill", "SIGKILL, perhaps by the system for lack of memory"),
    ],
)
def test_a_worker_that_dies_costs_retries_and_no_other_trial(
    start: Start, tmp_path: Path, how: str, reason: str
) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        with Path(config["file"]).open("a") as file:
            file.write(f"{config['how']}\n")
        time.sleep(0.3)
        if config["how"] == "exit":
            os._exit(7)
        if config["how"] == "segmentation":
            ctypes.string_at(0)
        if config["how"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1.5)
        return 1.0

    execution = start(train, workers=2)
    file = tmp_path / "starts"
    execution.start(_job(tmp_path, 0, how=how, file=str(file)))
    execution.start(_job(tmp_path, 1, how="well", file=str(file)))
    ended = _ended(execution, 2)
    assert (ended[0].status, ended[0].tries) == (Status.WORKER_DIED, MAX_TRIES)
    assert reason in ended[0].reason
    assert (ended[1].status, ended[1].tries) == (Status.SUCCESS, 1)
    assert sorted(file.read_text().split()) == sorted([how] * MAX_TRIES + ["well"])


def test_a_trial_whose_worker_died_once_succeeds_at_the_second_try(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        file = Path(config["file"])
        if not file.exists():
            file.write_text("")
            os._exit(1)
        return 1.0

    execution = start(train)
    execution.start(_job(tmp_path, file=str(tmp_path / "died")))
    outcome = _ended(execution)[0]
    assert (outcome.status, outcome.tries) == (Status.SUCCESS, 2)


def test_a_trial_beyond_its_memory_is_killed_and_no_other(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        kept = []
        for _ in range(config["megabytes"]):
            kept.append(bytearray(os.urandom(1)) * 2**20)
            time.sleep(0.002)
        time.sleep(0.5)
        return float(len(kept))

    execution = start(train, workers=2, limits=Limits(memory=0.25))
    execution.start(_job(tmp_path, 0, megabytes=1000))
    execution.start(_job(tmp_path, 1, megabytes=50))
    ended = _ended(execution, 2)
    assert ended[0].status is Status.OUT_OF_MEMORY and ended[0].tries == 1
    assert "0.25 GiB are allowed (memory_limit)" in ended[0].reason
    assert ended[1].status is Status.SUCCESS and ended[1].cost == 50


def test_memory_counts_children_and_not_mapped_files(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * 200 * 2**20)
    holds = "x = bytearray(b'y') * (100 * 2**20); print(1, flush=True); input()"
    code = (
        "import mmap, sys, subprocess\n"
        f"f = open({str(file)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); sum(m[::4096])\n"
        f"c = subprocess.Popen([sys.executable, '-c', {holds!r}], stdin=subprocess.PIPE)\n"
        "input()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline()
        assert 100 * 2**20 < memory_of(process.pid) < 180 * 2**20
    finally:
        process.kill()
        process.wait()
    assert memory_of(process.pid) == 0


def test_a_worker_that_ran_out_of_memory_is_replaced(start: Start, tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["fails"]:
            raise MemoryError
        return 1.0

    execution = start(train)
    execution.start(_job(tmp_path, 0, fails=True))
    first = _ended(execution)[0]
    execution.start(_job(tmp_path, 1, fails=False))
    second = _ended(execution)[1]
    assert first.status is Status.OUT_OF_MEMORY
    assert (second.status, second.tries) == (Status.SUCCESS, 1)
    assert first.worker != second.worker


def test_workers_use_one_thread_and_what_they_print_goes_to_a_file(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        print("hello from", "a trial")
        os.system("echo and from its child >&2")
        return float(os.environ["OMP_NUM_THREADS"])

    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    execution = start(train)
    execution.start(_job(tmp_path))
    assert _ended(execution)[0].cost == 1.0
    execution.close()
    assert capfd.readouterr() == ("", "")
    log = (tmp_path / LOGS / "worker-0.log").read_text()
    assert "hello from a trial" in log and "and from its child" in log


def test_a_method_that_cannot_travel_is_a_clear_error(start: Start, tmp_path: Path) -> None:
    lock = Lock()
    with pytest.raises(TuningError, match="cannot be sent to a worker"):
        trial_function(lambda config, seed, budget: lock.locked())

    class Broken:
        def __reduce__(self) -> Any:
            return int, ("not a number",)

        def __call__(self, config: Any, seed: int, budget: int) -> float:
            return 1.0

    execution = start(Broken())
    execution.start(_job(tmp_path))
    with pytest.raises(TuningError, match=r"cannot load.*ValueError"):
        _ended(execution)


def test_waiting_ends_in_time(start: Start, tmp_path: Path) -> None:
    def train(config: Any, seed: int, budget: int) -> float:
        time.sleep(600)
        return 1.0

    execution = start(train)
    execution.start(_job(tmp_path))
    started = time.monotonic()
    assert execution.wait(0.5) == []
    assert time.monotonic() - started > 0.4
    execution.close()
    assert time.monotonic() - started < 600


def test_without_a_cluster_trials_run_on_this_machine(tmp_path: Path) -> None:
    execution = make_execution(lambda config, seed, budget: 1.0, 3, None, Limits(), tmp_path)
    assert isinstance(execution._pool, LocalPool) and execution.capacity == 3


_UNGUARDED = """
import os, sys, time
from pathlib import Path
from graphbench.core.processes.pool import Limits
from graphbench.tuning.execution import make_execution
from graphbench.tuning.worker import Job
with open("imported", "a") as file:
    file.write("x")
FACTOR = 3
def helper(value):
    return value * FACTOR
def train(config, seed, budget):
    Path("worker").write_text(str(os.getpid()))
    time.sleep(config["seconds"])
    return helper(budget)
here = Path.cwd()
execution = make_execution(train, 1, None, Limits(), here)
execution.start(Job(0, {"seconds": float(sys.argv[1])}, 0, 5, None, here / "trials" / "0"))
print("started", flush=True)
while not (ended := execution.wait(1.0)):
    pass
print(ended[0][1].cost)
execution.close()
"""


def test_a_script_needs_no_main_guard_and_is_not_imported_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_UNGUARDED)
    answer = subprocess.run(
        [sys.executable, str(script), "0"], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert answer.stdout.split() == ["started", "15.0"], answer.stderr
    assert (tmp_path / "imported").read_text() == "x"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.thorough
def test_workers_end_with_their_parent_however_it_ends(tmp_path: Path, number: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(_UNGUARDED)
    parent = subprocess.Popen([sys.executable, str(script), "600"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (tmp_path / "worker").exists() or not (tmp_path / "worker").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process = int((tmp_path / "worker").read_text())
    parent.send_signal(number)
    assert parent.wait(timeout=60) != 0
    assert _gone(process)
