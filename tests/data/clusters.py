"""Clusters of separate processes for the tests, and a domain whose generator can be watched and held on them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphbench.domains
from graphbench.catalog.cards import Card
from graphbench.core.processes.cluster import connected
from graphbench.data.build.generation import ensure_split

PACKAGE = Path(graphbench.domains.__file__).parents[2]

# A domain whose generator writes down what it draws, and waits in the shard that the file ``hold`` names: once, and in
# a worker alone.
WATCHED = """
import os, time
from dataclasses import replace
from pathlib import Path
from graphbench.domains.algoreas.generators import GENERATORS as REAL

FOLDER = Path(os.environ["WATCHED_FOLDER"])

def generate(parameters, key, indices, attempts):
    in_worker = os.getpid() != int(os.environ["WATCHED_MAIN"])
    if in_worker:
        with (FOLDER / "drawn").open("a") as log:
            log.write(f"{indices[0]} {attempts.any():d}\\n")
    hold = FOLDER / "hold"
    if in_worker and hold.exists() and indices[0] == int(hold.read_text()) and not list(FOLDER.glob("held-*")):
        (FOLDER / f"held-{os.getpid()}").touch()
        while hold.exists():
            time.sleep(0.01)
    if in_worker and (FOLDER / "poison").exists() and indices[0] == 40:
        os.kill(os.getpid(), 9)
    return REAL["mst"].generate(parameters, key, indices, attempts)

GENERATORS = {"mst": replace(REAL["mst"], generate=generate)}
"""
DOMAIN = """
from graphbench.data.components.domain import Domain

DOMAIN = Domain("watched", generators="graphbench.domains.watched.generators:GENERATORS")
"""
EXTEND = """
from pathlib import Path
import graphbench.domains
graphbench.domains.__path__.append(str(Path(__file__).parent / "domains"))
"""


class Watched:
    """The folder through which a test watches the generator on the workers, and holds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()

    def hold(self, first: int) -> None:
        """Let the worker that draws the shard that begins with this sample wait in it."""
        (self.folder / "hold").write_text(str(first))

    def go_on(self) -> None:
        (self.folder / "hold").unlink()

    def held(self, building: Future[Path] | None = None) -> int:
        """Return the process that waits, once one does; raise what ends the build before."""

        def waits() -> bool:
            if building is not None and building.done():
                building.result()
            return bool(list(self.folder.glob("held-*")))

        wait_until(waits)
        return int(next(self.folder.glob("held-*")).name.removeprefix("held-"))

    def drawn(self) -> list[int]:
        """Return the first samples of the shards that workers drew or began to draw, without those drawn again."""
        lines = [line.split() for line in (self.folder / "drawn").read_text().splitlines()]
        return sorted(int(first) for first, again in lines if again == "0")


def wait_until(condition: Callable[[], object], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


def build(card: Card, root: Path, place: Any) -> Path:
    """Build the training split on a cluster, in shards of 20."""
    return ensure_split(card, "train", root, cluster=place, shard_size=20)


@contextmanager
def watched_domain(plugins: Path, folder: Path) -> Iterator[Watched]:
    """Make the domain ``watched`` known to this process and to every process started in the block."""
    domain = plugins / "domains" / "watched"
    domain.mkdir(parents=True)
    (domain / "__init__.py").touch()
    (domain / "generators.py").write_text(WATCHED)
    (domain / "domain.py").write_text(DOMAIN)
    (plugins / "sitecustomize.py").write_text(EXTEND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(plugins), str(PACKAGE)]))
        patch.setenv("WATCHED_FOLDER", str(folder))
        patch.setenv("WATCHED_MAIN", str(os.getpid()))
        patch.setattr(graphbench.domains, "__path__", [*graphbench.domains.__path__, str(domain.parent)])
        yield Watched(folder)


@contextmanager
def local_cluster(count: int) -> Iterator[Any]:
    """Yield a cluster whose scheduler is in this process; its workers are processes with one thread, and nannies."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=count, worker_dashboard_address=None, **options) as found:
        yield found


@contextmanager
def started_cluster(folder: Path, **options: Any) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Yield the scheduler process of a cluster of one worker, and its scheduler file."""
    with started_scheduler(folder) as (scheduler, place), started_worker(place, **options):
        yield scheduler, place


@contextmanager
def started_scheduler(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    path = folder / f"scheduler{time.monotonic_ns()}.json"
    words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with process(*words, "--scheduler-file", str(path), environment=environment) as scheduler:
        wait_until(lambda: path.is_file() and path.read_text().rstrip().endswith("}"))
        yield scheduler, str(path)


@contextmanager
def started_worker(place: str, *before: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    words = ["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    with process(*words, "--scheduler-file", place, before=before, environment=environment) as worker:
        with connected(place) as client:
            client.wait_for_workers(1, timeout=180)
        yield worker


@contextmanager
def process(*words: str, before: tuple[str, ...] = (), environment: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [*before, sys.executable, "-m", *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **environment}, **quiet) as running:  # type: ignore[call-overload]
        try:
            yield running
        finally:
            running.kill()


@contextmanager
def silent_listener() -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
