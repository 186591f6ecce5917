"""Shared by the tests of generation and storage."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphbench.catalog.cards import Card
from graphbench.core.files import file_sha256
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.layout import Manifest
from graphbench.data.store.shards import SplitTask

from .clusters import Watched, build, local_cluster, watched_domain


@pytest.fixture(scope="session")
def facts_of() -> Callable[[Path], dict[str, Any]]:
    """Return a function that gives what the manifest records of a finished file, and its checksum now."""

    def facts(path: Path) -> dict[str, Any]:
        entry = Manifest(path.parent).entry(path.name)
        assert entry is not None
        return {**entry, "sha256 now": file_sha256(path)}

    return facts


@pytest.fixture(scope="session")
def leftovers() -> Callable[[Path], list[str]]:
    """Return a function that lists temporary files and build folders below a folder."""

    def find(folder: Path) -> list[str]:
        return sorted(
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.suffix == ".tmp" or path.name.startswith(".build-")
        )

    return find


@pytest.fixture(scope="session")
def graphs_of() -> Callable[[Samples], list[bytes]]:
    """Return a function that gives, per graph, its nodes, edges and feature values as comparable bytes."""

    def take_apart(card: Card, samples: Samples) -> list[bytes]:
        graphs = []
        for i in range(len(samples)):
            part = samples.part(card.stored_schema, i, i + 1)
            arrays = (part.num_nodes, part.edges.astype(np.int64), *(part.values[n] for n in sorted(part.values)))
            graphs.append(b"|".join(np.ascontiguousarray(array).tobytes() for array in arrays))
        return graphs

    return take_apart


@pytest.fixture(scope="session")
def serial_reference() -> Callable[[Card, str, int], tuple[list[int], Samples]]:
    """Return the rule of uniqueness spelled out: each sample takes its first attempt that no earlier sample took."""

    def draw(card: Card, split: str, count: int) -> tuple[list[int], Samples]:
        task, seen, chosen = SplitTask(card, split), set(), []
        for i in range(count):
            attempt = 0
            while True:
                sample = task.draw(np.array([i]), np.array([attempt]))
                graph = (int(sample.num_nodes[0]), sample.edges.tobytes())
                if graph not in seen:
                    break
                attempt += 1
            seen.add(graph)
            chosen.append(attempt)
        return chosen, task.draw(np.arange(count), np.array(chosen))

    return draw


@pytest.fixture(scope="session")
def assert_equal_batches() -> Callable[[Batch, Batch], None]:
    """Return a function that compares two PyG batches: fields, sizes and the tables that take them apart."""

    def compare(ours: Batch, theirs: Batch) -> None:
        assert type(ours) is type(theirs)
        assert set(ours.keys()) == set(theirs.keys())
        for key in theirs.keys():  # noqa: SIM118
            a, b = ours[key], theirs[key]
            if isinstance(b, torch.Tensor):
                assert a.dtype == b.dtype, key
                assert torch.equal(a, b), key
            else:
                assert a == b, key
        assert ours.num_graphs == theirs.num_graphs
        assert ours.num_nodes == theirs.num_nodes
        assert ours.num_edges == theirs.num_edges
        assert set(ours._slice_dict) == set(theirs._slice_dict)
        for key, slices in theirs._slice_dict.items():
            assert torch.equal(torch.as_tensor(ours._slice_dict[key]), torch.as_tensor(slices)), key

    return compare


@pytest.fixture(scope="session")
def in_a_fork() -> Callable[[Callable[[], object]], int]:
    """Return a function that runs another one in a forked child and gives the child's wait status."""

    def run(work: Callable[[], object]) -> int:
        child = os.fork()
        if child == 0:
            try:
                work()
                os._exit(0)
            except BaseException:
                os._exit(1)
        return os.waitpid(child, 0)[1]

    return run


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The folder through which the domain ``watched`` is watched."""
    with watched_domain(tmp_path_factory.mktemp("plugins"), tmp_path_factory.mktemp("watched")) as folder:
        yield folder


@pytest.fixture(scope="module")
def running(watched: Watched) -> Iterator[Any]:
    """A Dask cluster of two worker processes with one thread each."""
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def address(running: Any, watched: Watched) -> str:
    """The address of its scheduler; nothing is watched yet."""
    watched.clear()
    return str(running.scheduler_address)


@pytest.fixture
def watched_card(make_card: Callable[..., Card], watched: Watched) -> Card:
    """200 graphs by the watched generator, some of them redrawn."""
    return make_card(200, {"nodes": 5, "models": {"er": {"p": 0.5}}}, generator="watched.mst")


@pytest.fixture
def undisturbed(watched_card: Card, tmp_path: Path, facts_of: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """The facts of that card's training split, built by this process alone."""
    return facts_of(ensure_split(watched_card, "train", tmp_path / "undisturbed", workers=1))


@pytest.fixture
def start_build(watched_card: Card) -> Iterator[Callable[[Path, Any], Future[Path]]]:
    """Return a function that builds that split on a cluster, beside the test."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda root, place: thread.submit(build, watched_card, root, place)
