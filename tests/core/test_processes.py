"""Pools of processes: jobs come back as they end, a worker that dies costs one try of one job, nothing is left over."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from graphbench.core.errors import GenerationError
from graphbench.core.processes.local import LocalPool, block_sigint
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import (
    MAX_TRIES,
    ExecutorPool,
    Handle,
    Limits,
    Pool,
    TimeLimitExceeded,
    UnusableWorker,
    WorkerLost,
    call,
    error_line,
)
from graphbench.core.processes.worker import RemoteTraceback

Start = Callable[..., LocalPool]
SECONDS = 200.0  # in which anything happens on a busy machine


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that gives a local pool, closed after the test."""
    opened: list[LocalPool] = []

    def make(workers: int = 1, function: bytes | None = None, **options: Any) -> LocalPool:
        opened.append(LocalPool(pickled(call) if function is None else function, workers, **options))
        return opened[-1]

    yield make
    for pool in opened:
        pool.close()


def all_of(pool: Pool) -> dict[str, Handle]:
    """Wait for all jobs of a pool and return them by name, in the order of their completion."""
    found: dict[str, Handle] = {}
    while ended := pool.completed(SECONDS):
        found |= {handle.name: handle for handle in ended}
    return found


def is_gone(process_id: int) -> bool:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_jobs_come_back_in_the_order_of_their_completion(start: Start, tmp_path: Path) -> None:
    def wait_for(path: Path | None) -> int:
        while path is not None and not path.exists():
            time.sleep(0.01)
        return os.getpid()

    pool = start(2)
    pool.submit(wait_for, tmp_path / "go", name="slow")
    for number in range(3):
        pool.submit(wait_for, None, name=f"quick {number}")
    early = [handle.name for _ in range(3) for handle in pool.completed(SECONDS)]
    assert early == ["quick 0", "quick 1", "quick 2"]
    (tmp_path / "go").touch()
    (slow,) = pool.completed(SECONDS)
    assert (slow.name, slow.error, slow.tries) == ("slow", None, 1)
    assert slow.value != os.getpid()
    assert pool.completed() == []


def test_an_error_comes_back_with_the_traceback_of_the_worker(start: Start) -> None:
    def fail() -> None:
        raise GenerationError("no graph")

    pool = start()
    pool.submit(fail, name="job")
    (job,) = pool.completed(SECONDS)
    assert isinstance(job.error, GenerationError)
    assert (str(job.error), job.tries, job.failure_count) == ("no graph", 1, 0)
    assert isinstance(job.error.__cause__, RemoteTraceback)
    assert 'raise GenerationError("no graph")' in str(job.error.__cause__)


def test_what_cannot_be_pickled_is_an_error_of_its_job(start: Start) -> None:
    class Odd(Exception):
        def __init__(self, first: int, second: int) -> None:
            super().__init__("odd")

    def fail() -> None:
        raise Odd(1, 2)

    pool = start()
    pool.submit(Lock, name="value")
    pool.submit(fail, name="error")
    pool.submit(len, "abc", name="next")
    found = all_of(pool)
    assert "cannot be sent by a worker" in str(found["value"].error)
    assert str(found["error"].error).startswith("Odd cannot be sent by a worker")
    assert found["next"].value == 3


def test_a_worker_that_dies_costs_a_try_of_its_job_alone(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    def die(file: Path | None = None) -> str:
        if file is not None and file.exists():
            return "alive"
        if file is not None:
            file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    pool = start(2)
    pool.submit(die, name="always")
    for number in range(4):
        pool.submit(time.sleep, 0.2, name=str(number))
    found = all_of(pool)
    assert {name: handle.tries for name, handle in found.items()} == {"always": MAX_TRIES} | dict.fromkeys("0123", 1)
    error = found["always"].error
    assert isinstance(error, WorkerLost) and found["always"].failure_count == MAX_TRIES
    assert error_line(error) == "the worker was ended by SIGKILL, perhaps by the system for lack of memory"
    assert error.worker.startswith(f"{os.uname().nodename}:")
    logged = [record.getMessage() for record in caplog.records]
    assert logged == [f"always: {error}; it is started again"] * (MAX_TRIES - 1)


def test_a_job_that_is_lost_once_is_done_at_the_second_try(start: Start, tmp_path: Path) -> None:
    def die_once(file: Path) -> str:
        if not file.exists():
            file.touch()
            os._exit(9)
        return "done"

    pool = start()
    pool.submit(die_once, tmp_path / "died", name="job")
    job = all_of(pool)["job"]
    assert (job.value, job.error, job.tries) == ("done", None, 2)


def test_a_pool_decides_which_errors_are_tried_again(start: Start, tmp_path: Path) -> None:
    def fail(file: Path) -> None:
        with file.open("a") as log:
            log.write("x")
        raise OSError("the server is away")

    pool = start(retries=lambda error: isinstance(error, OSError))
    pool.submit(fail, tmp_path / "starts", name="job")
    job = all_of(pool)["job"]
    assert isinstance(job.error, OSError) and job.failure_count == MAX_TRIES
    assert (tmp_path / "starts").read_text() == "x" * MAX_TRIES


def test_a_limit_ends_a_job_and_all_it_started_and_is_not_tried_again(start: Start, tmp_path: Path) -> None:
    def hang(file: Path) -> None:
        child = os.fork()
        if child:
            file.write_text(f"{os.getpid()} {child}")
        time.sleep(600)

    pool = start(limits=Limits(seconds=1.0))
    pool.submit(hang, tmp_path / "processes", name="job")
    job = all_of(pool)["job"]
    assert isinstance(job.error, TimeLimitExceeded) and str(job.error) == "not done after 1 s"
    assert job.tries == 1 and job.error.seconds >= 1.0
    assert all(is_gone(int(process)) for process in (tmp_path / "processes").read_text().split())


def test_a_worker_without_memory_is_replaced(start: Start) -> None:
    def fail() -> None:
        raise MemoryError

    pool = start()
    pool.submit(os.getpid, name="before")
    pool.submit(fail, name="failure")
    pool.submit(os.getpid, name="after")
    found = all_of(pool)
    assert isinstance(found["failure"].error, MemoryError)
    assert found["before"].value != found["after"].value
    assert is_gone(found["before"].value)


class Broken:
    def __reduce__(self) -> Any:
        return int, ("not a number",)


def test_a_function_that_cannot_be_loaded_ends_the_pool(start: Start) -> None:
    pool = start(function=pickled(Broken()))
    for _ in range(2):
        pool.submit(name="job")
    for _ in range(2):
        with pytest.raises(UnusableWorker, match="ValueError: invalid literal"):
            pool.completed(SECONDS)


def test_idle_processes_serve_the_next_pool_of_the_same_kind(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def process_of(pool: LocalPool) -> int:
        pool.submit(os.getpid, name="job")
        (job,) = pool.completed(SECONDS)
        pool.close()
        return int(job.value)

    first = process_of(start(idle_seconds=300.0))
    assert process_of(start(idle_seconds=300.0)) == first
    limited = process_of(start(idle_seconds=300.0, limits=Limits(seconds=99.0)))
    monkeypatch.setenv("SOMETHING_THAT_A_JOB_MAY_READ", "1")
    other = process_of(start(idle_seconds=300.0))
    alone = process_of(start())
    assert len({first, limited, other, alone}) == 4
    assert is_gone(alone)
    for process in (first, limited, other):
        os.kill(process, signal.SIGKILL)
    assert process_of(start(idle_seconds=300.0)) != other, "a dead process was used"


def test_an_idle_process_ends_by_itself(start: Start) -> None:
    pool = start(idle_seconds=0.5)
    pool.submit(os.getpid, name="job")
    (job,) = pool.completed(SECONDS)
    pool.close()
    assert is_gone(job.value)


def test_closing_ends_what_runs_and_drops_what_waits(start: Start, tmp_path: Path) -> None:
    def hang(file: Path) -> None:
        file.write_text(str(os.getpid()))
        time.sleep(600)

    pool = start(idle_seconds=300.0)
    for number in range(2):
        pool.submit(hang, tmp_path / str(number), name=str(number))
    assert pool.completed(0.1) == []
    while not (tmp_path / "0").exists() or not (tmp_path / "0").read_text():
        time.sleep(0.01)
    pool.close()
    assert is_gone(int((tmp_path / "0").read_text()))
    assert not (tmp_path / "1").exists() and pool.completed() == []


def test_workers_do_not_see_ctrl_c(start: Start) -> None:
    def interrupt() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "unharmed"

    pool = start()
    pool.submit(interrupt, name="job")
    assert all_of(pool)["job"].value == "unharmed"


def test_an_interrupt_waits_until_processes_are_started() -> None:
    passed = False
    with pytest.raises(KeyboardInterrupt), block_sigint():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        passed = True
    assert passed
    held: list[bool] = []
    thread = threading.Thread(target=lambda: held.append(block_sigint().__enter__() is None))
    thread.start()
    thread.join()
    assert held == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def test_an_executor_of_the_user_stays_open() -> None:
    with ThreadPoolExecutor(2) as executor:
        with closing(ExecutorPool(pickled(call), executor)) as pool:
            for number in range(200):
                pool.submit(abs, -number, name=str(number))
            assert {name: handle.value for name, handle in all_of(pool).items()} == {str(n): n for n in range(200)}
        assert executor.submit(abs, -1).result() == 1


def test_an_executor_that_breaks_is_told_once_for_all_its_jobs(caplog: pytest.LogCaptureFixture) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        pool = ExecutorPool(pickled(call), executor, retries=lambda error: isinstance(error, Exception))
        for number in range(5):
            pool.submit(os._exit, 1, name=f"job {number}")
        with caplog.at_level(logging.WARNING, "graphbench"):
            first = pool.completed(SECONDS)[0]
        pool.close()
    assert first.failure_count == MAX_TRIES
    assert error_line(first.error or OSError()).startswith("BrokenProcessPool: ")
    assert len(caplog.records) <= 2 * MAX_TRIES


def test_errors_without_a_text_and_values_that_cannot_be_shown_are_errors_of_their_jobs(start: Start) -> None:
    class Speechless(BaseException):
        def __str__(self) -> str:
            raise GeneratorExit

    class Unsent(Exception):
        def __reduce__(self) -> Any:
            raise Speechless

        def __bool__(self) -> bool:
            raise Speechless

        __str__ = Speechless.__str__

    class Hidden:
        def __reduce__(self) -> Any:
            raise SystemExit(3)

        def __repr__(self) -> str:
            raise Speechless

    def fail(kind: type[BaseException]) -> None:
        raise kind

    pool = start()
    pool.submit(fail, Speechless, name="speechless")
    pool.submit(fail, Unsent, name="unsent")
    pool.submit(Hidden, name="hidden")
    pool.submit(len, "abc", name="next")
    found = all_of(pool)
    assert [found[name].failure_count for name in ("speechless", "unsent", "hidden")] == [0, 0, 0]
    assert type(found["speechless"].error).__name__ == "Speechless"
    assert error_line(found["speechless"].error).startswith("Speechless: ")  # type: ignore[arg-type]
    assert "Unsent" in str(found["unsent"].error) and "SystemExit" in str(found["hidden"].error)
    assert found["next"].value == 3


def test_what_jobs_print_is_no_part_of_the_output_of_their_parent(start: Start, capfd: Any) -> None:
    def speak() -> None:
        print("printed by Python")
        os.write(1, b"written to the descriptor\n")

    pool = start()
    pool.submit(speak, name="speaks")
    assert all_of(pool)["speaks"].error is None
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "printed by Python" in shown.err and "written to the descriptor" in shown.err


LOST_PARENT = """
import os, signal, sys, tempfile, time
from pathlib import Path

from graphbench.core.processes.local import LocalPool
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import call

folder = Path(sys.argv[1])


def work(how):
    parent = os.getppid()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        (folder / f"{how}.started").touch()
        if how == "sleeps":
            time.sleep(10_000)
        while os.getppid() == parent:
            pass
    return bytes(10_000_000)


pool = LocalPool(pickled(call), 3, idle_seconds=1000.0)
pool.submit(len, "abc", name="idle")
pool.completed()
for how in ("sleeps", "replies"):
    pool.submit(work, how, name=how)
while len(list(folder.glob("*.started"))) < 2:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_of_a_killed_parent_end_without_a_word_and_leave_no_files(tmp_path: Path) -> None:
    script = [sys.executable, "-c", LOST_PARENT, str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=SECONDS)  # until all have ended
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["replies.started", "sleeps.started"]
