import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphbench.core.errors import ClusterError, MissingDependency
from graphbench.core.processes import cluster, dask_pool
from graphbench.core.processes.cluster import Requirements
from graphbench.core.processes.dask_pool import DaskPool
from graphbench.core.processes.pool import MAX_TRIES, Handle, Limits
from graphbench.tuning.execution import Execution, make_execution
from graphbench.tuning.optimizer import Optimizer
from graphbench.tuning.trial import Status
from graphbench.tuning.worker import Job, Outcome

from .runs import continuing, essence, read_journal, settings

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local, distributed.Client(local, set_as_default=False) as found:
        yield found


@pytest.fixture
def start(client: Any, tmp_path: Path) -> Iterator[Callable[..., Execution]]:
    """Return a function that gives an execution on the cluster, closed after the test."""
    opened: list[Execution] = []

    def make(method: Callable[..., Any], limits: Limits | None = None) -> Execution:
        opened.append(make_execution(method, 1, client, limits or Limits(), tmp_path))
        return opened[-1]

    yield make
    for execution in opened:
        execution.close()


def _job(tmp_path: Path, number: int = 0, **config: Any) -> Job:
    return Job(number, config, 5, 9, None, tmp_path / "trials" / str(number))


def _ended(execution: Execution, count: int = 1, seconds: float = 200.0) -> dict[int, Outcome]:
    found: dict[int, Outcome] = {}
    deadline = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {sorted(found)} ended"
        found |= {job.number: outcome for job, outcome in execution.wait(1.0)}
    return found


def _until(condition: Callable[[], Any], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.thorough
def test_a_search_on_a_cluster_uses_all_its_workers_and_leaves_the_client_open(client: Any, tmp_path: Path) -> None:
    run = settings(tmp_path / "far", method="hyperband", trials=40)
    best = Optimizer(run | {"cluster": client}, continuing(0.02)).optimize(report=False)
    workers = {int(trial.worker.split(":")[1]) for trial in best.trials}
    assert len(workers) == 2 and os.getpid() not in workers
    assert best.model == {"process": os.getpid(), **best.config}
    assert any(trial.continued_from for trial in best.trials)
    assert len(best.trials) == 40 == len({trial.number for trial in best.trials})
    assert client.status == "running"
    here = Optimizer(run | {"output": tmp_path / "near"}, continuing()).optimize(report=False)
    assert essence(here.trials)[:20] == essence(best.trials)[:20]  # the first rung does not depend on results


@pytest.mark.slow
def test_time_and_death_are_handled_beside_the_clusters_worker(start: Callable[..., Execution], tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        if config["how"] == "slow":
            time.sleep(60)
        if config["how"] == "die":
            os._exit(5)
        if config["how"] == "raise":
            raise ValueError("bad")
        return 1.0

    execution = start(train, Limits(seconds=2.0))
    assert execution.capacity == 2
    for number, how in enumerate(("slow", "die", "raise", "well")):
        execution.start(_job(tmp_path, number, how=how))
    ended = _ended(execution, 4)
    kinds = [Status.TIMEOUT, Status.WORKER_DIED, Status.RAISED, Status.SUCCESS]
    assert [ended[number].status for number in range(4)] == kinds
    assert ended[1].tries == MAX_TRIES and "exit code 5" in ended[1].reason


@pytest.mark.thorough
def test_a_worker_killed_in_a_trial_costs_a_retry_which_is_counted_and_told(
    client: Any, start: Callable[..., Execution], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        with Path(config["file"]).open("a") as file:
            file.write(f"{config['which']} {os.getpid()} {os.getppid()}\n")
        while not Path(config["killed"]).exists():
            time.sleep(0.05)
        return float(config["which"])

    execution, file, killed = start(train), tmp_path / "starts", tmp_path / "killed"
    for number in range(2):
        execution.start(_job(tmp_path, number, which=number, file=str(file), killed=str(killed)))
    _until(lambda: file.exists() and len(file.read_text().splitlines()) == 2)
    lost, process, worker = (int(word) for word in file.read_text().splitlines()[0].split())
    os.kill(worker, signal.SIGKILL)
    killed.touch()
    ended = _ended(execution, 2)
    assert {number: outcome.cost for number, outcome in ended.items()} == {0: 0.0, 1: 1.0}
    _until(lambda: not _is_alive(process))  # it ends by itself, soon after its worker
    starts = [int(line.split()[0]) for line in file.read_text().splitlines()]
    assert sorted(starts) == sorted([0, 1, lost])
    assert {number: outcome.tries for number, outcome in ended.items()} == {lost: 2, 1 - lost: 1}
    told = [record.getMessage() for record in caplog.records if record.name == dask_pool.__name__]
    assert len(told) == 1 and told[0].startswith(f"trial {lost}: its Dask worker was lost; it is started again on tcp:")
    client.wait_for_workers(2, timeout=120)


@pytest.mark.thorough
def test_a_cluster_without_workers_is_told_once_and_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_pool, "_COUNT_SECONDS", 0.0)
    options = {"processes": True, "n_workers": 0, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local, distributed.Client(local, set_as_default=False) as empty:
        execution = make_execution(lambda *_: 1.0, 1, empty, Limits(), tmp_path)
        try:
            assert [execution.capacity for _ in range(3)] == [1, 1, 1]
            execution.start(_job(tmp_path))
            assert execution.wait(0.5) == [] and execution.capacity == 1
            told = [record.getMessage() for record in caplog.records if record.name == dask_pool.__name__]
            assert told == [f"the Dask cluster at {empty.scheduler.address} has no workers; waiting for some"]
            local.scale(1)
            assert _ended(execution)[0].status is Status.SUCCESS
        finally:
            execution.close()


def test_cancelled_trials_end(client: Any, start: Callable[..., Execution], tmp_path: Path) -> None:
    def train(config: dict[str, Any], seed: int, budget: int) -> float:
        Path(config["file"]).write_text(str(os.getpid()))
        time.sleep(600)
        return 1.0

    execution, file = start(train), tmp_path / "process"
    execution.start(_job(tmp_path, file=str(file)))
    _until(lambda: file.exists() and file.read_text())
    execution.close()
    _until(lambda: not _is_alive(int(file.read_text())))
    assert client.status == "running"


def test_a_folder_that_workers_do_not_see_is_a_clear_error(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def unseen(folder: Path, measure: Any) -> Iterator[Requirements]:
        yield Requirements(measure(), folder / "elsewhere" / "token", measure)

    monkeypatch.setattr(dask_pool, "shared_folder", unseen)
    monkeypatch.setattr(cluster, "_RETRY_SECONDS", (0.0,))
    with pytest.raises(ClusterError, match=r"does not see the folder .*elsewhere"):
        make_execution(lambda *_: 1.0, 1, client, Limits(), tmp_path)
    assert client.status == "running"


def test_what_ended_is_handed_out_before_an_error_is_raised(
    start: Callable[..., Execution], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = start(lambda *_: 1.0)
    pool, errors = execution._pool, iter([None, ClusterError("lost")])
    assert isinstance(pool, DaskPool)

    def read(self: DaskPool, handle: Handle, future: Any) -> None:
        handle.value, handle.error = Outcome(Status.SUCCESS, 0.0, "", ""), next(errors)

    monkeypatch.setattr(DaskPool, "_read", read)
    for number in range(2):
        execution.start(_job(tmp_path, number))
    _until(lambda: pool._done.qsize() == 2)
    assert len(execution.wait(1.0)) == 1
    for _ in range(2):
        with pytest.raises(ClusterError, match="lost"):
            execution.wait(1.0)


def test_no_scheduler_and_no_dask_are_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.connect, "__defaults__", (1.0,))  # seconds that a scheduler has to answer
    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9"):
        make_execution(lambda *_: 1.0, 1, "tcp://127.0.0.1:9", Limits(), tmp_path)
    with pytest.raises(ClusterError, match=r"nowhere\.json is no scheduler file"):
        make_execution(lambda *_: 1.0, 1, str(tmp_path / "nowhere.json"), Limits(), tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependency, match="pip install"):
        make_execution(lambda *_: 1.0, 1, "tcp://127.0.0.1:9", Limits(), tmp_path)
    assert not list(tmp_path.iterdir())


_RUN = """
import json, os, sys, time
from pathlib import Path
import graphbench

STARTS, SECONDS = sys.argv[3], float(sys.argv[4])

def train(config, seed, budget):
    with open(STARTS, "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(SECONDS)
    return config["lr"]

space = {"lr": {"type": "float", "range": [1e-4, 0.1], "log": True}}
settings = {"space": space, "min_budget": 1, "max_budget": 9, "output": sys.argv[1], "method": "random", "trials": 12}
settings |= {} if sys.argv[2] == "here" else {"cluster": sys.argv[2]}
best = graphbench.Optimizer(settings, train).optimize(report=False)
print(json.dumps([trial.number for trial in best.trials]))
"""


@pytest.fixture
def cluster_of_processes() -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Give the address of a scheduler with one worker, and the scheduler's process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, quiet = f"tcp://127.0.0.1:{port}", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    scheduler = subprocess.Popen([*command, "--dashboard-address", "127.0.0.1:0"], **quiet)  # type: ignore[call-overload]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen([*command, "--death-timeout", "20"], **quiet)  # type: ignore[call-overload]
    yield address, scheduler
    for process in (worker, scheduler):
        process.terminate()
        process.wait(timeout=30)


Run = Callable[[str, float], "subprocess.Popen[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Return a function that starts a search on the cluster of an address, or ``here``."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "run.py").write_text(_RUN)

    def start(address: str, seconds: float) -> "subprocess.Popen[str]":
        command = [sys.executable, "run.py", str(tmp_path / "run"), address, str(tmp_path / "starts"), str(seconds)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=tmp_path, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _started(folder: Path) -> list[int]:
    file = folder / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_a_clear_error_and_the_run_can_go_on(
    cluster_of_processes: tuple[str, "subprocess.Popen[bytes]"], run: Run, tmp_path: Path
) -> None:
    address, scheduler = cluster_of_processes
    process = run(address, 0.5)
    _until(lambda: len(_started(tmp_path)) >= 3)
    scheduler.kill()
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert re.search(
        "ClusterError: the Dask scheduler at .* went away; finished work is kept: run the same command", errors
    )
    done = [event for event in read_journal(tmp_path / "run") if event["event"] == "finished"]
    assert 2 <= len(done) < 12
    assert len(json.loads((tmp_path / "run" / "result.json").read_text())["trials"]) == len(done)
    answer, errors = run("here", 0.0).communicate(timeout=200)
    assert json.loads(answer) == list(range(12)), errors


@pytest.mark.slow
def test_trials_of_a_killed_run_end_on_the_cluster(
    cluster_of_processes: tuple[str, "subprocess.Popen[bytes]"], run: Run, tmp_path: Path
) -> None:
    process = run(cluster_of_processes[0], 600)
    _until(lambda: _started(tmp_path))
    trial = _started(tmp_path)[0]
    assert _is_alive(trial)
    process.kill()
    process.communicate()
    _until(lambda: not _is_alive(trial))
