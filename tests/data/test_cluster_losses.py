"""Workers and schedulers of a Dask cluster that go away cost a retry, or leave a build that continues."""

import json
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphbench.catalog.cards import Card
from graphbench.core.errors import ClusterError, GenerationError
from graphbench.core.processes import cluster as cluster_module
from graphbench.core.processes import pool as pool_module
from graphbench.core.processes.cluster import connect
from graphbench.data.build import generation
from graphbench.data.build.generation import ensure_split

from .clusters import Watched, build, local_cluster, started_cluster, wait_until

distributed = pytest.importorskip("distributed")
Facts = Callable[[Path], dict[str, Any]]
StartBuild = Callable[[Path, Any], Future[Path]]


@pytest.mark.thorough
def test_a_worker_killed_within_a_shard_costs_a_retry_and_nothing_else(
    undisturbed: dict[str, Any],
    address: str,
    watched: Watched,
    tmp_path: Path,
    facts_of: Facts,
    start_build: StartBuild,
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched.hold(60)
    future = start_build(tmp_path / "killed", address)
    os.kill(watched.held(future), signal.SIGKILL)
    assert facts_of(future.result(timeout=200)) == undisturbed
    again = watched.drawn()
    assert again.count(60) == 2
    again.remove(60)
    assert again == list(range(0, 200, 20)), "more than the lost shard was drawn again"
    assert "of its workers that ran it" not in caplog.text, "dask retries by itself"


@pytest.mark.slow
def test_a_cluster_that_never_retries_is_retried_from_here(
    undisturbed: dict[str, Any],
    running: Any,
    address: str,
    watched: Watched,
    tmp_path: Path,
    facts_of: Facts,
    start_build: StartBuild,
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched.hold(60)
    before, running.scheduler.allowed_failures = running.scheduler.allowed_failures, 0
    try:
        future = start_build(tmp_path / "killed", address)
        os.kill(watched.held(future), signal.SIGKILL)
        assert facts_of(future.result(timeout=200)) == undisturbed
    finally:
        running.scheduler.allowed_failures = before
    assert watched.drawn().count(60) == 2
    assert re.search(r"samples \d+ to \d+: the Dask cluster lost 1 of its workers.*started again", caplog.text)


@pytest.mark.slow
def test_a_shard_that_kills_its_workers_is_reported(
    watched_card: Card, address: str, watched: Watched, tmp_path: Path, running: Any
) -> None:
    (watched.folder / "poison").touch()
    before, running.scheduler.allowed_failures = running.scheduler.allowed_failures, 2
    try:
        with pytest.raises(GenerationError) as failure:
            build(watched_card, tmp_path, address)
    finally:
        running.scheduler.allowed_failures = before
    # Dask blames a worker's death on the shards that wait there, too: one of them may be the first to fail three times.
    message = (
        r"^algoreas/toy train: samples \d+ to \d+ failed 3 times \(the Dask cluster lost .*give each more.*are kept"
    )
    assert re.search(message, str(failure.value))
    assert 1 <= watched.drawn().count(40) <= 3


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_reported_and_the_build_continues_anywhere(
    watched_card: Card, undisturbed: dict[str, Any], watched: Watched, tmp_path: Path, facts_of: Facts, capfd: Any
) -> None:
    watched.clear()
    watched.hold(100)
    root = tmp_path / "lost"
    with started_cluster(tmp_path) as (scheduler, place), ThreadPoolExecutor(1) as thread:
        future = thread.submit(build, watched_card, root, place)
        watched.held(future)
        wait_until(lambda: len(list(root.rglob("0*.h5"))) >= 5)
        scheduler.kill()
        with pytest.raises(ClusterError, match=r"tcp://.* went away.*run the same"):
            future.result(timeout=200)
    kept = {int(path.name[:9]) for path in root.rglob("0*.h5")}
    assert kept == {0, 20, 40, 60, 80}
    assert "Traceback" not in capfd.readouterr().err
    drawn: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        real = generation.build_shard
        patch.setattr(generation, "build_shard", lambda *a: (drawn.append(a[1]) if not a[3] else 0, real(*a))[1])
        assert facts_of(ensure_split(watched_card, "train", root, workers=1, shard_size=20)) == undisturbed
    assert drawn == [100, 120, 140, 160, 180]


@pytest.mark.slow
def test_a_scheduler_that_hangs_is_reported(
    watched_card: Card, watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_REPLY_SECONDS", 2.0)
    monkeypatch.setattr(pool_module, "HEALTH_SECONDS", 1.0)
    watched.clear()
    watched.hold(100)
    with started_cluster(tmp_path) as (scheduler, place), ThreadPoolExecutor(1) as thread:
        future = thread.submit(build, watched_card, tmp_path / "hung", place)
        watched.held(future)
        scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(ClusterError, match=r"tcp://.* went away"):
            future.result(timeout=200)
        started = time.monotonic()
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            connect(json.loads(Path(place).read_text())["address"], timeout=1)
        assert time.monotonic() - started < 30


@pytest.mark.slow
def test_workers_may_join_late_and_leave(
    watched_card: Card,
    undisturbed: dict[str, Any],
    watched: Watched,
    tmp_path: Path,
    facts_of: Facts,
    start_build: StartBuild,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(pool_module, "HEALTH_SECONDS", 0.5)
    watched.clear()
    watched.hold(60)
    with local_cluster(0) as found:
        future = start_build(tmp_path / "late", found.scheduler_address)
        wait_until(lambda: "has no workers; waiting for some" in caplog.text)
        time.sleep(2)
        assert caplog.text.count("has no workers") == 1
        found.scale(2)
        pid = watched.held(future)
        with distributed.Client(found, set_as_default=False) as client:
            leaving = next(worker for worker, there in client.run(os.getpid).items() if there == pid)
            client.retire_workers([leaving])
        watched.go_on()
        assert facts_of(future.result(timeout=200)) == undisturbed


@pytest.mark.slow
def test_an_adaptive_cluster_grows_and_shrinks(
    watched_card: Card, undisturbed: dict[str, Any], watched: Watched, tmp_path: Path, facts_of: Facts
) -> None:
    watched.clear()
    with local_cluster(0) as found:
        found.adapt(minimum=0, maximum=2, interval="200ms", wait_count=1)
        for number in range(2):
            assert facts_of(build(watched_card, tmp_path / str(number), found.scheduler_address)) == undisturbed
            wait_until(lambda: not found.scheduler.workers)
