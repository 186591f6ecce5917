"""Shared by all tests: custom cards in a temporary folder, and scripts run by a fresh interpreter."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family
from graphbench.core import plugins
from graphbench.core.errors import MissingDependency

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in a script's background jobs; tests press Ctrl-C in children
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread per test worker and per process that a test starts; PyTorch reads this when it is imported, after this.
os.environ["OMP_NUM_THREADS"] = "1"

# Ten thousand tests and PyTorch are millions of objects that live as long as the session: the garbage collector need
# not walk through them while they are made, nor during every test.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave all that collection has made out of later garbage collections."""
    gc.freeze()
    gc.enable()


FAMILY: dict[str, Any] = {
    "version": 1,
    "title": "Toy trees",
    "summary": "Which edges belong to the minimum spanning tree.",
    "generator": "algoreas.mst",
    "features": {
        "weight": ["input", "edge", "scalar"],
        "in_tree": ["output", "edge", "mask"],
        "model": ["meta", "graph", "categorical(6)"],
    },
    "parameters": {"nodes": 8, "models": {"er": {"p": 0.3}}, "mixture": {"er": 1}},
    "splits": {
        "train": {"count": 120},
        "val": {"count": 20, "like": "train"},
        "test": {"count": 20, "parameters": {"nodes": 12}, "shift": "larger graphs"},
    },
    "metrics": {"primary": "f1"},
    "licence": "Apache-2.0",
    "source": {"paper": "Toy"},
}

MIS: dict[str, list[str]] = {
    "mis": ["meta", "node", "mask"],
    "mis_value": ["meta", "graph", "scalar"],
    "mis_bound": ["meta", "graph", "scalar"],
    "mis_proved": ["meta", "graph", "mask"],
    "mis_steps": ["meta", "graph", "scalar"],
    "mis_nodes": ["meta", "graph", "scalar"],
    "mis_failed": ["meta", "graph", "mask"],
}
LABELLED: dict[str, Any] = {
    "version": 1,
    "title": "Toy graphs",
    "summary": "Independent sets.",
    "generator": "co.er",
    "features": {},
    "parameters": {"nodes": [6, 14], "p": 0.3},
    "tasks": {
        "mis_size": {
            "title": "Size",
            "summary": "How many.",
            "type": "predict",
            "outputs": ["mis_value"],
            "metrics": {"primary": "mae"},
        },
        "mis": {
            "title": "Set",
            "summary": "Which.",
            "type": "solve",
            "options": {"problem": "co.mis"},
            "outputs": ["mis"],
            "metrics": {"primary": "set_size"},
        },
    },
    "splits": {"train": {"count": 40}, "val": {"count": 10}, "test": {"count": 10}},
    "licence": "Apache-2.0",
    "source": {"paper": "Toy"},
}

# Datasets of the user's own are no part of the tests, whatever this machine has.
os.environ["GRAPHBENCH_OWN"] = str(Path(__file__).parent / "no_own_data")

WriteFamily = Callable[..., tuple[Card, ...]]


@pytest.fixture(autouse=True, scope="module")
def own_plugins() -> Iterator[None]:
    """What the tests of a module load as plug-ins is forgotten after them.

    A generator that a test registers counts as one as soon as a shard is drawn, and workers must then load its module.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins._STATE, "loaded", dict(plugins._STATE.loaded))
        yield


@pytest.fixture(scope="session")
def committed_board() -> Any:
    """The leaderboard of the package's records, made once per worker."""
    from graphbench.leaderboard import leaderboard_of
    from graphbench.records.files import load_records

    return leaderboard_of(load_records())


@pytest.fixture
def write_family(tmp_path: Path) -> WriteFamily:
    """Return a function that writes a family file and loads it.

    Keyword arguments replace top-level keys (None removes one); ``text`` replaces the whole file.
    """

    def write(name: str = "toy", text: str | None = None, **changes: Any) -> tuple[Card, ...]:
        path = tmp_path / "cards" / "algoreas" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {key: value for key, value in {**FAMILY, **changes}.items() if value is not None}
        path.write_text(yaml.safe_dump(content, sort_keys=False) if text is None else text)
        return load_family(path)

    return write


@pytest.fixture
def make_card(write_family: WriteFamily) -> Callable[..., Card]:
    """Return a function that gives the toy card with other top-level keys, generator parameters or train count."""

    def make(count: int = 120, parameters: dict[str, Any] | None = None, **changes: Any) -> Card:
        splits = {**FAMILY["splits"], "train": {"count": count}}
        merged = {**FAMILY["parameters"], **(parameters or {})}
        return write_family(**{"splits": splits, "parameters": merged, **changes})[0]

    return make


@pytest.fixture
def make_labelled(tmp_path: Path) -> Callable[..., Card]:
    """Return a function that gives the card ``co/toy``, two tasks on small graphs that share a labeller."""

    def make(effort: dict[str, Any] | None = None, labeller: str = "co.mis", **changes: Any) -> Card:
        path = tmp_path / "cards" / "co" / "toy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        labels = {labeller: {"effort": effort or {"steps": 200, "nodes": 50}, "features": MIS}}
        tasks = {name: {**task, "labels": labeller} for name, task in LABELLED["tasks"].items()}
        path.write_text(yaml.safe_dump({**LABELLED, "labels": labels, "tasks": tasks, **changes}, sort_keys=False))
        return load_family(path)[0]

    return make


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return a function that starts a script in a fresh interpreter that finds this graphbench."""
    package = Path(graphbench.__file__).resolve().parent.parent
    number = iter(range(1000))

    def start(source: str, *arguments: object, path: Path | None = None) -> subprocess.Popen[str]:
        script = tmp_path / f"script{next(number)}.py"
        script.write_text(source)
        folders = [str(folder) for folder in (path, package) if folder is not None]
        return subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def output_of() -> Callable[[subprocess.Popen[str]], str]:
    """Return a function that waits for a script and gives its standard output; it must succeed."""

    def wait(process: subprocess.Popen[str]) -> str:
        output, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
        return output

    return wait


@pytest.fixture
def needs_installed() -> Callable[[], AbstractContextManager[None]]:
    """A block that skips the test where an optional package that draws or labels a dataset is not installed."""

    @contextmanager
    def skipping() -> Iterator[None]:
        try:
            yield
        except MissingDependency as error:
            pytest.skip(str(error))

    return skipping
