"""Sample i is a function of (id, version, split, i): workers, shards and limits change no byte."""

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.core.errors import ArgumentError, CardError, GenerationError
from graphbench.data.arrays.graph_checks import graph_problem
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import sample_generator, stream_key
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build import generation
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.data.components.generators import Generator
from graphbench.data.store import shards
from graphbench.data.store.layout import Manifest, dataset_folder, library_versions
from graphbench.data.store.shards import stored_samples
from graphbench.tasks.trace.stream import TrajectoryStream
from graphbench.verification import verify

Facts = Callable[[Path], dict[str, Any]]
MakeCard = Callable[..., Card]


def all_samples(card: Card, path: Path) -> Samples:
    return stored_samples(card.graph_schema, path)


@pytest.fixture
def crowded(make_card: MakeCard) -> Card:
    """A card of 300 of the 728 connected graphs on five nodes: duplicates abound."""
    return make_card(300, {"nodes": 5, "models": {"er": {"p": 0.5}}})


@contextmanager
def no_executor() -> Iterator[None]:
    yield None


def test_additional_splits_lie_beside_the_others_and_are_built_anew_for_other_parameters(
    make_card: MakeCard, tmp_path: Path
) -> None:
    card = make_card(4)
    train = ensure_split(card, "train", tmp_path, workers=1)

    def with_nodes(nodes: int) -> Card:
        spec = card.split("train")
        larger = spec.model_copy(update={"count": 3, "parameters": {**spec.parameters, "nodes": nodes}})
        return card.model_copy(update={"additional": {"val_large": larger}})

    paths = [ensure_split(with_nodes(nodes), "val_large", tmp_path, workers=1) for nodes in (20, 30, 20)]
    assert paths[0] == paths[2] != paths[1]
    assert {path.parent for path in paths} == {train.parent}
    for path, nodes in zip(paths, (20, 30, 20), strict=True):
        split = GraphDataset(with_nodes(nodes), "val_large", path)
        assert [split[i].num_nodes for i in range(len(split))] == [nodes] * 3


EXECUTORS: dict[str, Callable[[], Any]] = {
    "this process": no_executor,
    "threads": lambda: ThreadPoolExecutor(3),
    "processes": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
}


@pytest.mark.parametrize("shard_size", [1, 7, 100, None])
def test_shard_size_changes_no_byte(crowded: Card, tmp_path: Path, facts_of: Facts, shard_size: int | None) -> None:
    first = facts_of(ensure_split(crowded, "train", tmp_path / "a", 110, workers=1))
    assert first["redrawn"] > 3
    again = facts_of(ensure_split(crowded, "train", tmp_path / "b", 110, workers=1, shard_size=shard_size))
    assert first == again
    assert first["sha256"] == first["sha256 now"]


@pytest.mark.parametrize("name", ["threads", "processes"])
@pytest.mark.thorough
def test_any_executor_writes_the_same_bytes(crowded: Card, tmp_path: Path, facts_of: Facts, name: str) -> None:
    facts = {}
    for kind in ("this process", name):
        with EXECUTORS[kind]() as executor:
            workers = 1 if executor is None else None
            path = ensure_split(crowded, "train", tmp_path / kind, workers=workers, executor=executor, shard_size=70)
        facts[kind] = facts_of(path)
    assert facts["this process"] == facts[name]


def test_local_pool_writes_the_same_bytes(crowded: Card, tmp_path: Path, facts_of: Facts) -> None:
    one, two = (
        facts_of(ensure_split(crowded, "train", tmp_path / str(workers), workers=workers, shard_size=40))
        for workers in (1, 2)
    )
    assert one == two


def test_executor_gets_the_shards(make_card: MakeCard, tmp_path: Path) -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *arguments: Any, **options: Any) -> Any:
            self.submitted += 1
            return super().submit(*arguments, **options)

    draw_samples(make_card(50), "train", [0])  # compiles the kernels, which would be jobs of their own
    with Counting(2) as executor:
        ensure_split(make_card(50), "train", tmp_path, executor=executor, shard_size=10)
    assert executor.submitted == 5


def test_the_first_samples_are_the_small_dataset(
    crowded: Card, tmp_path: Path, graphs_of: Callable[..., list[bytes]]
) -> None:
    whole = graphs_of(crowded, all_samples(crowded, ensure_split(crowded, "train", tmp_path / "whole", workers=1)))
    for limit in (1, 13, 299):
        part = ensure_split(crowded, "train", tmp_path / "part", limit, workers=1, shard_size=11)
        assert graphs_of(crowded, all_samples(crowded, part)) == whole[:limit]


def test_limits_share_the_smallest_sufficient_file(make_card: MakeCard, tmp_path: Path) -> None:
    card = make_card(100)

    def name(limit: int | None) -> str:
        return ensure_split(card, "train", tmp_path, limit, workers=1).name

    assert name(10) == "train-first10.h5"
    assert name(40) == "train-first40.h5"
    assert name(20) == "train-first40.h5"
    assert name(7) == "train-first10.h5"
    assert name(None) == name(100) == name(5000) == "train.h5"
    assert name(60) == "train.h5"


def test_all_graphs_differ_and_redraws_follow_the_rule(
    crowded: Card,
    tmp_path: Path,
    facts_of: Facts,
    graphs_of: Callable[..., list[bytes]],
    serial_reference: Callable[..., tuple[list[int], Samples]],
) -> None:
    path = ensure_split(crowded, "train", tmp_path, workers=1, shard_size=64)
    samples = all_samples(crowded, path)
    structures = {samples.part(crowded, i, i + 1).edges.tobytes() for i in range(300)}
    assert len(structures) == 300
    attempts, expected = serial_reference(crowded, "train", 300)
    assert max(attempts) > 1
    assert graphs_of(crowded, samples) == graphs_of(crowded, expected)
    assert facts_of(path)["redrawn"] == np.count_nonzero(attempts)


def test_redraws_can_exhaust_the_space(
    make_card: MakeCard,
    tmp_path: Path,
    graphs_of: Callable[..., list[bytes]],
    serial_reference: Callable[..., tuple[list[int], Samples]],
) -> None:
    card = make_card(38, {"nodes": 4, "models": {"er": {"p": 0.5}}})  # all connected graphs on four nodes
    path = ensure_split(card, "train", tmp_path, workers=1, shard_size=5)
    assert graphs_of(card, all_samples(card, path)) == graphs_of(card, serial_reference(card, "train", 38)[1])


def test_too_few_different_graphs(make_card: MakeCard, tmp_path: Path) -> None:
    card = make_card(5, {"nodes": 3, "models": {"er": {"p": 0.5}}})  # there are four connected graphs
    problem = r"^algoreas/toy train: sample 4 repeats .* too few different graphs for 5"
    with pytest.raises(GenerationError, match=problem):
        ensure_split(card, "train", tmp_path, workers=1)
    assert not list(tmp_path.rglob("train*.h5"))


def test_duplicates_stay_where_the_generator_allows_them(
    make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts_of: Facts
) -> None:
    relaxed = replace(find("generator", "algoreas.mst"), unique=False)
    monkeypatch.setattr(shards, "find", lambda kind, name: relaxed)
    card = make_card(20, {"nodes": 3, "models": {"er": {"p": 0.5}}})
    assert facts_of(ensure_split(card, "train", tmp_path, workers=1))["redrawn"] == 0


def test_samples_depend_on_index_split_id_and_version(
    make_card: MakeCard, graphs_of: Callable[..., list[bytes]]
) -> None:
    card = make_card()
    drawn = graphs_of(card, draw_samples(card, "train", range(20)))
    assert len(set(drawn)) == 20
    assert graphs_of(card, draw_samples(card, "train", [3, 17, 3])) == [drawn[3], drawn[17], drawn[3]]
    assert graphs_of(card, draw_samples(card, "val", range(20))) != drawn
    assert graphs_of(card, draw_samples(make_card(version=2), "train", range(20))) != drawn
    other = make_card(name="other")
    assert graphs_of(other, draw_samples(other, "train", range(20))) != drawn


def test_keys_and_generators_of_plain_python() -> None:
    key = stream_key("algoreas/toy", 1, "train")
    assert key == stream_key("algoreas/toy", 1, "train")
    assert key.dtype == np.uint64
    assert int(key) == 0xBA7E94A8562CEC2A
    keys = {stream_key(i, v, s) for i in ("a/b", "a/c") for v in (1, 2) for s in ("train", "val")}
    assert len(keys) == 8
    draws = {sample_generator(key, index, attempt).random() for index in range(10) for attempt in range(3)}
    assert len(draws) == 30
    assert sample_generator(key, 4, 1).random() == sample_generator(key, 4, 1).random()


def test_manifest_tells_the_whole_story(make_card: MakeCard, tmp_path: Path) -> None:
    card = make_card(30)
    path = ensure_split(card, "train", tmp_path, workers=1)
    ensure_split(card, "val", tmp_path, 5, workers=1)
    folder = tmp_path / "algoreas" / "toy" / f"v1-{card.fingerprint(1)}"
    assert path.parent == folder == dataset_folder(card, tmp_path)
    content = json.loads((folder / "manifest.json").read_text())
    assert set(content["files"]) == {"train.h5", "val-first5.h5"}
    assert content["files"]["train.h5"]["count"] == 30
    assert content["files"]["train.h5"]["nodes"] == 240
    assert content["files"]["train.h5"]["bytes"] == path.stat().st_size
    assert content["generator"] == {"name": "algoreas.mst", "version": 1}
    assert content["card"]["features"][0]["name"] == "weight"
    assert content["libraries"] == library_versions()
    assert "path" not in content["card"]


def test_changed_parameters_build_beside_the_old_data(make_card: MakeCard, tmp_path: Path) -> None:
    old = ensure_split(make_card(10), "train", tmp_path, workers=1)
    new = ensure_split(make_card(10, {"nodes": 9}), "train", tmp_path, workers=1)
    assert old.parent != new.parent
    assert old.is_file()
    assert new.is_file()


def test_deleted_file_is_rebuilt_bit_for_bit(make_card: MakeCard, tmp_path: Path, facts_of: Facts) -> None:
    card = make_card(30)
    path = ensure_split(card, "train", tmp_path, workers=1)
    before = facts_of(path)
    path.unlink()
    assert facts_of(ensure_split(card, "train", tmp_path, workers=1)) == before


def test_nothing_is_drawn_twice(make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = make_card(30)
    ensure_split(card, "train", tmp_path, workers=1)
    monkeypatch.setattr(generation.SplitBuilder, "build", lambda *_: pytest.fail("built again"))
    ensure_split(card, "train", tmp_path, workers=1)
    ensure_split(card, "train", tmp_path, 10, workers=1)


@pytest.mark.parametrize("name", ["workers", "limit", "shard_size"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3"])
def test_impossible_counts(make_card: MakeCard, tmp_path: Path, name: str, value: Any) -> None:
    problem = "at least 1" if type(value) is int else "a whole number"
    with pytest.raises(GenerationError, match=f"{name} must be {problem}, got {value!r}"):
        ensure_split(make_card(), "train", tmp_path, **{name: value})
    assert not list(tmp_path.rglob("*.h5"))


def test_counts_that_are_truth_values(make_card: MakeCard, tmp_path: Path) -> None:
    card = make_card(5)
    path = ensure_split(card, "train", tmp_path, workers=1)
    stream = TrajectoryStream(card_of("clrs/minimum"), "train_multi_size")
    for call in (
        lambda: GraphDataset(card, "train", path, limit=True),
        lambda: TrajectoryStream(stream.card, stream.split, seed=True),
        lambda: stream.batch(True, 2),
        lambda: stream.batch(0, True),
        lambda: verify("mst_easy", root=tmp_path, samples=True),
    ):
        with pytest.raises(ArgumentError, match="must be a whole number, got True"):
            call()


def test_unknown_split(make_card: MakeCard, tmp_path: Path) -> None:
    with pytest.raises(CardError, match="no split 'trian'"):
        ensure_split(make_card(), "trian", tmp_path)


def with_generator(monkeypatch: pytest.MonkeyPatch, change: Callable[[Samples], Samples]) -> None:
    """Let the generator of the toy card return changed samples."""
    real = find("generator", "algoreas.mst")

    def generate(*arguments: Any) -> Samples:
        return change(real.generate(*arguments))

    broken: Generator = replace(real, generate=generate)
    monkeypatch.setattr(shards, "find", lambda kind, name: broken)


def failing(samples: Samples) -> Samples:
    raise ZeroDivisionError("no nodes left")


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Samples], Samples]:
    return lambda samples: replace(samples, values={**samples.values, name: change(samples.values[name])})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            failing,
            [
                "algoreas/toy train: the generator algoreas.mst failed on samples 0 to 7",
                "ZeroDivisionError: no nodes left",
            ],
        ),
        (lambda s: replace(s, values={}), ["returned []", "in_tree"]),
        (changed("weight", lambda w: w[1:]), ["weight has", "rows"]),
        (changed("in_tree", lambda t: t + 1), ["in_tree has values from 1 to 2", "outside 0 to 1"]),
        (changed("model", lambda m: m.astype(int) + 300), ["model has values from 300", "outside 0 to 5"]),
        (changed("weight", lambda w: w * np.nan), ["weight", "not finite"]),
    ],
)
@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_faults_of_a_generator_are_reported(
    make_card: MakeCard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Samples], Samples],
    words: list[str],
    executor: Executor | None,
) -> None:
    with_generator(monkeypatch, change)
    with pytest.raises(GenerationError) as caught:
        ensure_split(make_card(30), "train", tmp_path, workers=1, executor=executor, shard_size=8)
    for word in words:
        assert word in str(caught.value)
    assert not Manifest(dataset_folder(make_card(30), tmp_path)).read()["files"]


def edges_changed(change: Callable[[Any], Any]) -> Callable[[Samples], Samples]:
    def apply(samples: Samples) -> Samples:
        edges = samples.edges.astype(np.int64)
        change(edges)
        return replace(samples, edges=edges)

    return apply


def swapped(edges: Any) -> None:
    edges[[3, 4]] = edges[[4, 3]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: None, ["algoreas.mst returned NoneType, not graphbench.data.arrays.samples.Samples"]),
        (lambda s: replace(s, num_nodes=s.num_nodes[:-1], num_edges=s.num_edges[:-1]), ["[7]", "8 graphs are asked"]),
        (lambda s: replace(s, num_nodes=s.num_nodes.tolist()), ["num_nodes has the type list", "array of integers"]),
        (lambda s: replace(s, num_nodes=s.num_nodes * 0), ["graph 0 has num_nodes 0", "every graph has a node"]),
        (lambda s: replace(s, num_edges=-s.num_edges), ["graph 0 has num_nodes", "fewer than 0 edges"]),
        (lambda s: replace(s, edges=s.edges + 0.5), ["edges has the dtype float64"]),
        (lambda s: replace(s, edges=s.edges[:-1]), ["edges has the shape", "but num_edges says that there are"]),
        (edges_changed(lambda e: e.__setitem__((0, 1), 999)), ["edge 0-999 of graph 0 names a node", "it has 8 nodes"]),
        (edges_changed(lambda e: e.__setitem__((-1, 0), -1)), ["edge -1-", "of graph 7 names a node"]),
        (edges_changed(lambda e: e.__setitem__(0, (4, 4))), ["edge 4-4 of graph 0 is not of the form u < v", "a loop"]),
        (edges_changed(lambda e: e.__setitem__(0, (4, 2))), ["edge 4-2 of graph 0 is not of the form u < v"]),
        (
            edges_changed(lambda e: e.__setitem__(1, e[0])),
            ["of graph 0 is given twice or out of order; sort the edges"],
        ),
        (edges_changed(swapped), ["of graph 0 is given twice or out of order"]),
    ],
)
def test_wrong_graphs_of_a_generator_are_refused(
    make_card: MakeCard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Samples], Samples],
    words: list[str],
) -> None:
    with_generator(monkeypatch, change)
    with pytest.raises(GenerationError) as caught:
        ensure_split(make_card(30), "train", tmp_path, workers=1, shard_size=8)
    for word in [*words, "the generator algoreas.mst returned", "this is a fault of the generator, please report it"]:
        assert word in str(caught.value)


def test_wrong_graphs_are_named_by_their_index_in_the_split(
    make_card: MakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_generator(monkeypatch, edges_changed(lambda e: e.__setitem__((0, 1), 999)))
    with pytest.raises(GenerationError, match=r"edge 0-999 of graph 17 names a node"):
        draw_samples(make_card(30), "train", [17, 4])


@pytest.mark.parametrize("dtype", ["uint8", "int32", ">i8", "uint64"])
def test_arcs_may_be_loops_and_go_both_ways_in_any_dtype(make_card: MakeCard, dtype: str) -> None:
    arcs = np.array([[0, 0], [0, 1], [1, 0], [0, 1]]).astype(dtype)
    samples = Samples(np.array([2, 3]), np.array([3, 1]), arcs)
    card = make_card()
    assert graph_problem(card.model_copy(update={"directed": True}), samples) == ""
    assert "edge 0-0 of graph 0 is not" in graph_problem(card.graph_schema, samples)
    complete = card.model_copy(update={"directed": True, "complete": True})
    assert "graph 0 is complete, so its num_edges is 4" in graph_problem(complete, samples)
    assert graph_problem(complete, replace(samples, num_edges=np.array([4, 9]), edges=np.empty((0, 2)))) == ""
    assert "complete graphs list none" in graph_problem(complete, replace(samples, num_edges=np.array([4, 9])))


@pytest.mark.parametrize("dataset", ["algoreas/topological_sort_easy", "clrs/bfs", "clrs_text/bfs", "clutrr/gen_23"])
def test_shipped_graphs_are_as_their_cards_say(dataset: str) -> None:
    assert len(draw_samples(card_of(dataset).graphs, "test", range(20))) == 20


def interrupted(samples: Samples) -> Samples:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        raise SystemError("a kernel returned a result with an exception set") from interrupt


def test_an_interrupt_inside_a_kernel_is_no_fault(
    make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_generator(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure_split(make_card(30), "train", tmp_path, workers=1, shard_size=8)


def test_a_fault_in_a_later_shard_is_reported_with_its_samples(
    make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find("generator", "algoreas.mst")

    def generate(parameters: Any, key: Any, indices: Any, attempts: Any) -> Samples:
        if 20 in indices:
            raise IndexError("sample 20")
        return real.generate(parameters, key, indices, attempts)

    monkeypatch.setattr(shards, "find", lambda kind, name: replace(real, generate=generate))
    with ThreadPoolExecutor(2) as executor, pytest.raises(GenerationError, match=r"samples 16 to 23.*sample 20"):
        ensure_split(make_card(30), "train", tmp_path, executor=executor, shard_size=8)


@pytest.mark.thorough
def test_a_split_may_have_more_shards_than_a_process_may_open_files(tmp_path: Path, facts_of: Facts) -> None:
    code = """
import resource, sys
from pathlib import Path
import graphbench
from graphbench.data.build.generation import ensure_split
for name in sys.argv[2:]:  # modules and kernels are loaded
    ensure_split(graphbench.card(name), "val", Path(sys.argv[1]) / "warm", 4, workers=1, shard_size=1)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for name in sys.argv[2:]:
    ensure_split(graphbench.card(name), "val", Path(sys.argv[1]) / "small", 100, workers=1, shard_size=1)
"""
    chosen = ("algoreas/mst_easy", "clrs/bfs")
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *chosen], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    for name in chosen:
        whole = ensure_split(graphbench.card(name), "val", tmp_path / "large", 100, workers=1)
        (small,) = (tmp_path / "small").glob(f"{name}/*/val*.h5")
        assert small.read_bytes() == whole.read_bytes()
