"""Generation on a Dask cluster of separate processes writes the same bytes, and leaves nothing behind."""

import asyncio
import json
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphbench import Loader
from graphbench.catalog.cards import Card
from graphbench.cli.app import main
from graphbench.core.errors import ClusterError
from graphbench.core.processes import cluster as cluster_module
from graphbench.core.processes import dask_pool
from graphbench.core.processes.cluster import Requirements, check_workers, connect, connected
from graphbench.core.processes.dask_pool import DaskPool
from graphbench.core.processes.pool import Handle
from graphbench.data.build.generation import ensure_split
from graphbench.data.build.workers import SAMPLES, version_measure, worker_pool
from graphbench.data.store.shards import is_whole

from .clusters import Watched, build, wait_until

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests
Facts = Callable[[Path], dict[str, Any]]


@pytest.mark.thorough
def test_a_cluster_writes_the_same_bytes(
    watched_card: Card, undisturbed: dict[str, Any], address: str, watched: Watched, tmp_path: Path, facts_of: Facts
) -> None:
    found = facts_of(build(watched_card, tmp_path / "cluster", address))
    assert found == undisturbed
    assert found["redrawn"] > 3
    assert watched.drawn() == list(range(0, 200, 20)), "the workers did not draw the shards"


def test_a_client_and_its_executor_write_the_same_bytes(
    watched_card: Card, undisturbed: dict[str, Any], running: Any, tmp_path: Path, facts_of: Facts
) -> None:
    with distributed.Client(running, set_as_default=False) as client:
        assert facts_of(build(watched_card, tmp_path / "client", client)) == undisturbed
        with client.get_executor() as executor:
            path = ensure_split(watched_card, "train", tmp_path / "executor", executor=executor, shard_size=20)
            assert facts_of(path) == undisturbed
        assert client.status == "running"


def test_threads_of_one_worker_write_the_same_bytes_and_are_reported(
    watched_card: Card, undisturbed: dict[str, Any], tmp_path: Path, facts_of: Facts, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"processes": False, "dashboard_address": ":0", "set_as_default": False}
    with distributed.Client(n_workers=1, threads_per_worker=4, **options) as client:
        assert facts_of(build(watched_card, tmp_path / "threads", client)) == undisturbed
    assert re.search("the Dask worker .* has 4 threads: one per worker is faster", caplog.text)


@pytest.mark.thorough
def test_the_folder_may_be_given_relative_to_this_process(
    watched_card: Card,
    undisturbed: dict[str, Any],
    address: str,
    tmp_path: Path,
    facts_of: Facts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert facts_of(build(watched_card, Path("here"), address)) == undisturbed
    assert (tmp_path / "here").is_dir()


def test_nothing_of_a_build_stays(
    watched_card: Card, running: Any, address: str, tmp_path: Path, leftovers: Callable[[Path], list[str]]
) -> None:
    build(watched_card, tmp_path, address)
    assert leftovers(tmp_path) == []
    assert not list(tmp_path.rglob(".token*"))
    wait_until(lambda: not [c for c in running.scheduler.clients if c.startswith("graphbench")])
    wait_until(lambda: not running.scheduler.tasks)


def test_graphs_never_go_through_the_scheduler(
    watched_card: Card, running: Any, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    class Plugin(distributed.SchedulerPlugin):  # type: ignore[misc,name-defined]
        sizes: dict[str, int]

        def transition(self, key: str, start: str, finish: str, *_: Any, **options: Any) -> None:
            if finish == "memory":
                self.sizes[key] = running.scheduler.tasks[key].nbytes

    plugin = Plugin()
    plugin.sizes = {}
    real_submit, real_completed = DaskPool.submit, DaskPool.completed

    def submit(self: DaskPool, *arguments: Any, name: str) -> Handle:
        sent.append(len(pickle.dumps(arguments)))
        return real_submit(self, *arguments, name=name)

    def completed(self: DaskPool) -> list[Handle]:
        ended = real_completed(self)
        sent.extend(len(pickle.dumps(handle.value)) for handle in ended)
        return ended

    monkeypatch.setattr(DaskPool, "submit", submit)
    monkeypatch.setattr(DaskPool, "completed", completed)
    running.scheduler.add_plugin(plugin, name="sizes")
    try:
        path = build(watched_card, tmp_path, address)
    finally:
        running.scheduler.remove_plugin("sizes")
    assert len(plugin.sizes) >= 10
    assert all(0 < size < 100 for size in plugin.sizes.values())
    assert len(sent) >= 20
    assert max(sent) < 8_000 < path.stat().st_size


def test_workers_load_compiled_kernels_from_the_cache(
    watched_card: Card, running: Any, address: str, tmp_path: Path
) -> None:
    build(watched_card, tmp_path, address)
    with connected(address) as client:
        for hits, misses in client.run(kernel_cache).values():
            assert hits > 0
            assert misses == 0


def kernel_cache() -> tuple[int, int]:
    from graphbench.domains.algoreas.mst import label_shard

    stats = label_shard.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_numeric_libraries_use_one_thread_in_a_job(address: str, tmp_path: Path) -> None:
    pool = worker_pool(None, None, address, tmp_path)
    assert isinstance(pool, DaskPool)
    with closing(pool):
        pool.submit(threads, name="threads")
        (ended,) = pool.completed()
    pools, limits = ended.value
    assert set(limits.values()) == {"1"}
    assert pools
    assert set(pools) == {1}


def threads() -> tuple[list[int], dict[str, str]]:
    import numpy as np
    from threadpoolctl import threadpool_info

    np.dot(np.ones((9, 9)), np.ones((9, 9)))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return [pool["num_threads"] for pool in threadpool_info()], {name: os.environ[name] for name in names}


def test_loader_and_command_line_take_a_cluster(
    address: str, tmp_path: Path, watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[Any] = []
    real = DaskPool.submit
    monkeypatch.setattr(DaskPool, "submit", lambda *a, **o: (submitted.append(a[1:]), real(*a, **o))[1])
    limit = {"test": 600}  # three shards
    data = Loader("mst_easy", root=tmp_path / "loader", limit=limit, cluster=address).load("test").test
    assert len(data) == 600
    assert len(submitted) == 3
    words = ["generate", "mst_easy", "--splits", "test", "--limit", "600", "--cluster", address, "--json"]
    with pytest.raises(SystemExit) as end:
        main([*words, "--root", str(tmp_path / "command")])
    assert end.value.code == 0
    assert len(submitted) == 6
    (row,) = json.loads(capsys.readouterr().out)
    assert Path(row["file"]).read_bytes() == data.path.read_bytes()


def test_ctrl_c_takes_back_what_is_handed_out(
    watched_card: Card,
    undisturbed: dict[str, Any],
    running: Any,
    address: str,
    watched: Watched,
    tmp_path: Path,
    facts_of: Facts,
) -> None:
    def interrupt() -> None:
        watched.held()
        wait_until(lambda: len(list(tmp_path.rglob("0*.h5"))) >= 1)
        os.kill(os.getpid(), signal.SIGINT)

    watched.hold(20)
    with distributed.Client(running, set_as_default=False) as client:  # an open client does not let go by itself
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            build(watched_card, tmp_path / "stopped", client)
        thread.join()
        wait_until(lambda: not running.scheduler.tasks)
        watched.go_on()
        finished = [path for path in (tmp_path / "stopped").rglob("0*.h5") if is_whole(path)]
        assert 1 <= len(finished) < 10
        assert facts_of(build(watched_card, tmp_path / "stopped", client)) == undisturbed


# What cannot be used


def test_the_address_of_a_worker(running: Any, address: str) -> None:
    worker = next(iter(running.scheduler.workers))
    with pytest.raises(ClusterError, match=f"{worker}.*{address}"):
        connect(worker)


def test_clients_that_cannot_be_used(running: Any) -> None:
    client = distributed.Client(running, set_as_default=False)
    client.close()
    with pytest.raises(ClusterError, match="client is closed"):
        connect(client)

    async def connect_in_a_loop() -> None:
        async with distributed.Client(running.scheduler_address, asynchronous=True, set_as_default=False) as waiting:
            connect(waiting)

    with pytest.raises(ClusterError, match="asynchronous; create it without"):
        asyncio.run(connect_in_a_loop())


def test_other_versions_on_the_workers(
    watched_card: Card, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tuple((name, "0.0" if name == "numpy" else wanted) for name, wanted in version_measure(SAMPLES)())

    @contextmanager
    def requiring(folder: Path, measure: Any) -> Iterator[Requirements]:
        with cluster_module.shared_folder(folder, measure) as found:
            yield Requirements(other, found.token, measure)

    monkeypatch.setattr(dask_pool, "shared_folder", requiring)
    with pytest.raises(ClusterError, match=r"numpy [\d.]+, this machine has 0.0.*install"):
        build(watched_card, tmp_path, address)
    assert not list(tmp_path.rglob("*.h5"))


def test_a_worker_that_does_not_see_the_folder(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_RETRY_SECONDS", (0.0,))
    elsewhere = tmp_path / "elsewhere"
    problem = rf"the Dask worker tcp://.* does not see the folder {elsewhere}; all workers must share it"
    with connected(address) as client, pytest.raises(ClusterError, match=problem):
        measure = version_measure(SAMPLES)
        check_workers(client, Requirements(measure(), elsewhere / ".token", measure))
