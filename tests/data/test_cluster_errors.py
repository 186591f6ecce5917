"""Addresses, clients and workers that cannot be used give errors with a remedy."""

import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphbench import Loader
from graphbench.catalog.cards import Card
from graphbench.core.errors import ClusterError, GenerationError, MissingDependency, StoreError
from graphbench.core.processes import dask_pool
from graphbench.core.processes.cluster import connect, connected, run_checked, shared_folder, shipped
from graphbench.data.build import workers
from graphbench.data.build.generation import ensure_split
from graphbench.data.build.workers import SAMPLES, version_measure

from .clusters import Watched, build, silent_listener, started_scheduler, started_worker

distributed = pytest.importorskip("distributed")
Facts = Callable[[Path], dict[str, Any]]


def test_an_address_where_nobody_answers() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with silent_listener() as silent:
        for address in (nobody, silent):
            started = time.monotonic()
            with pytest.raises(ClusterError, match=f"{address} within 0.5 s"):
                connect(address, timeout=0.5)
            assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("somewhere", r"'somewhere'.*number.*tcp://host:8786"),
        ("http://localhost:8787", r"'http://localhost:8787'.*scheme 'http'"),
        ("", r"cluster is ''; give the address"),
        (8786, r"cluster is 8786.*\(tcp://host:8786\)"),
        ("missing.json", r"missing.json.*\(FileNotFoundError.*dask scheduler --scheduler-file"),
    ],
)
def test_what_is_no_address(place: Any, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClusterError, match=problem):
        connect(place)


def test_a_damaged_scheduler_file(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text("{}")
    with pytest.raises(ClusterError, match=r"scheduler.json.*\(KeyError: 'address'\)"):
        connect(str(path))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependency, match=r"pip install 'distributed'"):
        connect("tcp://127.0.0.1:8786")


def test_a_cluster_stands_alone(watched_card: Card, tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match="workers 2 and cluster 'tcp://a:1'"):
        Loader("mst_easy", workers=2, cluster="tcp://a:1")
    with ThreadPoolExecutor(1) as executor, pytest.raises(GenerationError, match=r"executor <.* and cluster"):
        ensure_split(watched_card, "train", tmp_path, executor=executor, cluster="tcp://a:1")


@pytest.mark.slow
def test_workers_without_the_package_and_a_scheduler_that_needs_none(
    watched_card: Card, undisturbed: dict[str, Any], watched: Watched, tmp_path: Path, facts_of: Facts
) -> None:
    watched.clear()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "sitecustomize.py").write_text("import sys\nsys.modules['graphbench'] = None\n")
    problem = r"worker tcp://.* has no graphbench, or another version of it \(ModuleNotFoundError: .*install there"
    with started_scheduler(tmp_path, PYTHONPATH=str(bare)) as (_, place):
        with started_worker(place, PYTHONPATH=str(bare)):
            with pytest.raises(ClusterError, match=problem):
                build(watched_card, tmp_path / "bare", place)
            with connected(place) as client, shared_folder(tmp_path, version_measure(SAMPLES)) as required:
                job = shipped(run_checked, required, os.getpid)  # as on a worker that joined later
                failure = client.submit(pickle.loads, job).exception(timeout=180)
                assert isinstance(failure, ModuleNotFoundError)
                assert len(client.nthreads()) == 1, "the worker ended"
        with started_worker(place):
            assert facts_of(build(watched_card, tmp_path / "good", place)) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("joins", ["before", "later"])
def test_a_worker_on_a_machine_with_other_folders(
    watched_card: Card, watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: str
) -> None:
    own = tmp_path / "shared"
    own.mkdir()
    alone = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(own))
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to mount a folder")
    watched.clear()
    if joins == "later":  # than the check of all workers
        monkeypatch.setattr(dask_pool, "check_workers", lambda client, requirements: None)
    problem = rf"^the Dask worker tcp://.* does not see the folder {own}.*a shared file system \(--root, --output\)$"
    with (
        started_scheduler(tmp_path) as (_, place),
        started_worker(place, *alone),
        pytest.raises(ClusterError, match=problem),
    ):
        build(watched_card, own, place)
    assert not list(own.rglob("*.h5"))


def test_files_of_other_machines_may_appear_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_APPEAR_SECONDS", 0.5)
    late = tmp_path / "late.h5"
    threading.Timer(0.1, late.touch).start()
    workers.require_files([late])
    with pytest.raises(StoreError, match=r"1 of 2 files.*missing.h5.*workers"):
        workers.require_files([late, tmp_path / "missing.h5"])
