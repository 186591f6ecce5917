"""Labels that cost solver time: stored next to the graphs that several tasks share, found once, the same everywhere."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import to_networkx

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError, GraphBenchError, MissingDependency, StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import label_number, stream_key
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build import generation
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.build.labelling import LabelTask, label_samples
from graphbench.data.components.domain import find
from graphbench.data.store.labels import with_labels
from graphbench.data.store.layout import Manifest, data_fingerprint, label_folder
from graphbench.data.store.shards import stored_samples
from graphbench.domains.co import labellers
from graphbench.tasks.registry import task_of

COUNT = 40
MIS = ("mis", "mis_value", "mis_bound", "mis_proved", "mis_steps", "mis_nodes", "mis_failed")

MakeCard = Callable[..., Card]


@pytest.fixture
def make(make_labelled: MakeCard) -> MakeCard:
    return make_labelled


@pytest.fixture
def card(make: MakeCard) -> Card:
    return make()


def labels_of(card: Card, path: Path) -> tuple[Path, dict[str, Any]]:
    """Return the only file of labels beside a file of graphs, and what its manifest says."""
    folder = label_folder(card, card.labellers[0], path.parent)
    (file,) = folder.glob("*.h5")
    entry = Manifest(folder).entry(file.name)
    assert entry is not None
    return file, entry


def with_labeller(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Replace parts of the labeller of independent sets for one test."""
    changed = {**labellers.LABELLERS, "mis": replace(labellers.LABELLERS["mis"], **changes)}
    monkeypatch.setattr(labellers, "LABELLERS", changed)


def failing_on(wrong: Callable[[Samples], bool], failure: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return a labeller's function that does otherwise on some graphs."""
    real = find("labeller", "co.mis").label

    def label(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
        values = dict(real(effort, number, graph))
        return failure(values) if wrong(graph) else values  # type: ignore[no-any-return]

    return label


def test_both_tasks_share_graphs_and_labels(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    file, entry = labels_of(card, path)
    assert path.parent.parent.name == "toy" and file.parent.name.startswith("labels-mis-")
    assert (entry["count"], entry["split"], entry["edges"]) == (COUNT, "train", 0)
    assert entry["seconds"] > 0 and "failed" not in entry
    monkeypatch.setattr(generation.SplitBuilder, "build", lambda *_: pytest.fail("built again"))
    size, solution = (
        GraphDataset(view, "train", ensure_split(view, "train", tmp_path)) for view in (card, card.with_task("mis"))
    )
    assert size.label_paths == solution.label_paths == (file,)
    assert torch.equal(size.y, size.mis_value) and size.y.dtype == torch.float32
    assert torch.equal(solution.y, solution.mis) and solution.y.dtype == torch.int64
    assert size.content_hash == solution.content_hash


def test_graphs_alone_cost_no_labels(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_labeller(monkeypatch, label=lambda *_: pytest.fail("labelled"))
    path = ensure_split(card.graphs, "train", tmp_path, workers=1)
    assert not list(path.parent.glob("labels-*"))
    assert GraphDataset(card.graphs, "train", path).flat.values == {}


def test_labels_are_solutions_of_the_stored_graphs(card: Card, tmp_path: Path) -> None:
    dataset = GraphDataset(card.with_task("mis"), "train", ensure_split(card, "train", tmp_path, workers=1))
    for data in dataset:
        graph = to_networkx(data, node_attrs=["mis"], to_undirected=True)
        assert graph.number_of_edges() == data.num_edges // 2
        members = [v for v, inside in graph.nodes(data="mis") if inside]
        assert len(members) == data.mis_value.item() <= data.mis_bound.item()
        assert graph.subgraph(members).number_of_edges() == 0
        best = max(map(len, nx.find_cliques(nx.complement(graph))))
        assert data.mis_bound.item() >= best
        assert (data.mis_proved.item() == 1) == (data.mis_value.item() == data.mis_bound.item())
        assert not data.mis_proved.item() or data.mis_value.item() == best


@pytest.mark.parametrize(("workers", "shard_size"), [(1, 7), (2, 9), (2, None)])
@pytest.mark.thorough
def test_bytes_depend_neither_on_workers_nor_on_shards(
    card: Card, tmp_path: Path, workers: int, shard_size: int | None
) -> None:
    one = labels_of(card, ensure_split(card, "train", tmp_path / "one", workers=1))[0]
    other = labels_of(card, ensure_split(card, "train", tmp_path / "other", workers=workers, shard_size=shard_size))[0]
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.thorough
def test_a_cluster_finds_the_same_labels(card: Card, tmp_path: Path, address: str) -> None:
    pytest.importorskip("distributed")
    one = labels_of(card, ensure_split(card, "train", tmp_path / "one", workers=1))[0]
    path = ensure_split(card, "train", tmp_path / "other", cluster=address, shard_size=10)
    file, entry = labels_of(card, path)
    assert one.read_bytes() == file.read_bytes()
    assert entry["seconds"] > 0


def test_the_first_labels_are_those_of_a_limit(card: Card, tmp_path: Path) -> None:
    whole = GraphDataset(card, "train", ensure_split(card, "train", tmp_path / "whole", workers=1), limit=15)
    part = GraphDataset(card, "train", ensure_split(card, "train", tmp_path / "part", 15, workers=1))
    assert [path.name for path in part.label_paths] == ["train-first15.h5"]
    assert len(part) == len(whole) == 15
    assert part.content_hash == whole.content_hash != whole[:14].content_hash
    assert torch.equal(part.mis, whole.mis)


def test_more_graphs_than_labels_are_used_up_to_the_limit(card: Card, tmp_path: Path) -> None:
    ensure_split(card.graphs, "train", tmp_path, workers=1)
    path = ensure_split(card, "train", tmp_path, 12, workers=1)
    assert path.name == "train.h5"
    assert len(GraphDataset(card, "train", path, limit=12)) == 12
    with pytest.raises(StoreError, match=r"first 40 graphs.*generate co/toy:mis_size"):
        GraphDataset(card, "train", path)


def test_an_interrupted_labelling_continues(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = labels_of(card, ensure_split(card, "train", tmp_path / "clean", workers=1))[0].read_bytes()
    real, drawn = generation.build_shard, []

    def killed_at_the_third(task: Any, first: int, *rest: Any) -> int:
        if first == 20 and isinstance(task, LabelTask):
            raise KeyboardInterrupt
        return real(task, first, *rest)

    monkeypatch.setattr(generation, "build_shard", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        ensure_split(card, "train", tmp_path, workers=1, shard_size=10)
    monkeypatch.setattr(generation, "build_shard", lambda *a: (drawn.append(a[1]), real(*a))[1])
    path = ensure_split(card, "train", tmp_path, workers=1, shard_size=10)
    assert drawn == [20, 30]
    file, entry = labels_of(card, path)
    assert file.read_bytes() == expected
    assert entry["seconds"] > 0
    assert not [p for p in path.parent.rglob("*") if p.suffix == ".tmp" or p.name.startswith(".build-")]


def test_a_fresh_draw_has_the_stored_labels(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    assert Manifest(path.parent).read()["files"]["train.h5"]["redrawn"] == 0
    labels = stored_samples(card.label_schemas[card.labellers[0]], labels_of(card, path)[0])
    drawn = draw_samples(card, "train", [3, 30])
    for place, index in enumerate((3, 30)):
        one = labels.part(card.label_schemas[card.labellers[0]], index, index + 1)
        own = drawn.part(card.stored_schema, place, place + 1)
        for name, values in one.values.items():
            assert values.dtype == own.values[name].dtype
            np.testing.assert_array_equal(values, own.values[name])


def test_another_effort_lies_beside_the_old_one(card: Card, make: MakeCard, tmp_path: Path) -> None:
    path = ensure_split(card, "val", tmp_path, workers=1)
    harder = make(effort={"steps": 300, "nodes": 50})
    assert ensure_split(harder, "val", tmp_path, workers=1) == path
    assert len(list(path.parent.glob("labels-mis-*"))) == 2
    assert data_fingerprint(harder) != data_fingerprint(card) == GraphDataset(card, "val", path).data_fingerprint


def test_splits_may_have_efforts_of_their_own(
    card: Card, make_labelled: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"co.mis": card.labels["co.mis"].model_dump(mode="json") | {"splits": {"val": {"steps": 7}}}}
    labels["co.mis"]["features"] = {f.name: [f.stage, f.location, f.type_name] for f in card.label_features}
    other = make_labelled(labels=json.loads(json.dumps(labels)))
    seen = []
    real = find("labeller", "co.mis").label
    with_labeller(monkeypatch, label=lambda effort, *rest: (seen.append(effort), real(effort, *rest))[1])
    for split in ("train", "val"):
        label_samples(other, other.labellers[0], split, np.arange(1), draw_samples(other.graphs, split, [0]))
    assert [(effort.steps, effort.nodes) for effort in seen] == [(200, 50), (7, 50)]
    assert data_fingerprint(other) != data_fingerprint(card)
    labels["co.mis"]["splits"] = {"vla": {}}
    with pytest.raises(CardError, match=r"splits \['vla'\]"):
        make_labelled(labels=json.loads(json.dumps(labels)))


def test_names_of_data_end_in_their_draw(card: Card, tmp_path: Path) -> None:
    other = card.with_data_seed(3)
    dataset = GraphDataset(other, "val", ensure_split(other, "val", tmp_path, workers=1))
    assert dataset.data_fingerprint == data_fingerprint(other) == data_fingerprint(card) + "-draw3"
    assert not torch.equal(
        dataset[0].edge_index, GraphDataset(card, "val", ensure_split(card, "val", tmp_path))[0].edge_index
    )


def test_effort_is_checked(make: MakeCard, tmp_path: Path) -> None:
    card = make(effort={"stesp": 3})
    with pytest.raises(CardError, match=r"co/toy, labels co\.mis\): unknown key 'stesp'.*'steps'"):
        ensure_split(card, "val", tmp_path, workers=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [("co.msi", "coloring, max_clique, max_cut, mis, vertex_cover"), ("cow.mis", "unknown domain 'cow'")],
)
def test_unknown_labellers(make: MakeCard, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(CardError, match=words):
        ensure_split(make(labeller=name), "val", tmp_path, workers=1)


def test_numbers_of_labels_are_of_sample_and_split() -> None:
    keys = [stream_key("co/toy", 1, split) for split in ("train|co.mis", "val|co.mis", "train|co.max_cut")]
    numbers = {label_number(key, i) for key in keys for i in range(50)}
    assert len(numbers) == 150
    assert all(0 <= number < 2**63 for number in numbers)
    assert label_number(keys[0], 7) == label_number(keys[0], 7)


def test_labels_use_their_own_random_numbers(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """The label of graph i depends on i and the split, not on its place among the graphs that are labelled with it."""
    seen: dict[int, list[int]] = {}

    def label(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
        seen.setdefault(int(graph.num_nodes[0]), []).append(number)
        return dict.fromkeys(set(MIS) - {"mis", "mis_failed"}, 0) | {"mis": np.zeros(graph.num_nodes[0], int)}

    with_labeller(monkeypatch, label=label, check=lambda *_: [])
    graphs = draw_samples(card.graphs, "train", range(6))
    label_samples(card, card.labellers[0], "train", np.arange(6), graphs)
    whole = {n: list(numbers) for n, numbers in seen.items()}
    seen.clear()
    for index in (5, 0, 3, 1, 4, 2):
        label_samples(card, card.labellers[0], "train", np.array([index]), graphs, np.array([index]))
    assert {n: sorted(numbers) for n, numbers in seen.items()} == {n: sorted(v) for n, v in whole.items()}
    assert len({number for numbers in seen.values() for number in numbers}) == 6


# Failures


def overfull(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "mis": np.ones_like(values["mis"]), "mis_value": len(values["mis"])}


def out_of_time(values: dict[str, Any]) -> dict[str, Any]:
    raise TimeoutError("more than 10 seconds")


def misshapen(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "mis": values["mis"][:-1]}


def incomplete(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "mis_steps"}


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (out_of_time, "TimeoutError: more than 10 seconds"),
        (overfull, "are joined by an edge"),
        (misshapen, "mis has the shape"),
        (incomplete, "the label has mis, mis_bound"),
    ],
)
def test_a_failure_on_one_graph_is_recorded(
    card: Card,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Callable[..., Any],
    why: str,
) -> None:
    sizes = draw_samples(card.graphs, "train", range(COUNT)).num_nodes
    wrong = np.flatnonzero(sizes == 9)
    assert 0 < len(wrong) < COUNT
    with_labeller(monkeypatch, label=failing_on(lambda graph: graph.num_nodes[0] == 9, failure))
    path = ensure_split(card, "train", tmp_path, workers=1, shard_size=10)
    file, entry = labels_of(card, path)
    assert sorted(map(int, entry["failed"])) == wrong.tolist()
    assert all(why in text for text in entry["failed"].values())
    with caplog.at_level(logging.WARNING):
        dataset = GraphDataset(card, "train", path)
    assert f"{len(wrong)} graphs of co/toy:mis_size train have no label" in caplog.text
    assert f"{wrong[0]}, " in caplog.text and str(file.parent / "manifest.json") in caplog.text
    assert dataset.failed_graphs.tolist() == wrong.tolist()
    for i in wrong.tolist():
        data = dataset[i]
        assert data.mis_failed.item() == 1
        assert data.y.item() == data.mis_bound.item() == data.mis_proved.item() == -1
        assert (data.mis == -1).all() and len(data.mis) == 9
    assert int((dataset.mis_failed == 0).sum()) == COUNT - len(wrong)


def test_graphs_without_a_label_are_refused_where_it_is_to_be_predicted(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_labeller(monkeypatch, label=failing_on(lambda graph: graph.num_nodes[0] == 9, out_of_time))
    path = ensure_split(card, "train", tmp_path, workers=1)
    dataset = GraphDataset(card, "train", path)
    with pytest.raises(GraphBenchError, match=rf"co/toy:mis_size train.*: {dataset.failed_graphs[0]}.*pre_filter"):
        task_of(card).require_labels(dataset)
    kept = GraphDataset(card, "train", path, pre_filter=lambda data: data.mis_failed.item() == 0)
    task_of(card).require_labels(kept)
    assert len(kept) == COUNT - len(dataset.failed_graphs)
    solved = card.with_task("mis")
    task_of(solved).require_labels(GraphDataset(solved, "train", path))


def test_a_missing_solver_stops_the_work(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def label(*_: Any) -> Mapping[str, Any]:
        raise MissingDependency("the solver kamis needs chszlablib: pip install chszlablib")

    with_labeller(monkeypatch, label=label)
    with pytest.raises(MissingDependency, match="pip install chszlablib"):
        ensure_split(card, "train", tmp_path, workers=1)


# Opened


def test_batches_take_graphs_and_labels_from_the_files(card: Card, tmp_path: Path) -> None:
    dataset = GraphDataset(card.with_task("mis"), "train", ensure_split(card, "train", tmp_path, workers=1))
    assert isinstance(dataset.flat.edges, np.memmap) and isinstance(dataset.flat.values["mis"], np.memmap)
    again = pickle.loads(pickle.dumps(dataset))
    for ours, theirs in zip(dataset.batches(16, shuffle=True), again.batches(16, shuffle=True), strict=True):
        assert torch.equal(ours.y, theirs.mis)
        parts = ours.to_data_list()
        assert [len(part.mis) for part in parts] == [part.num_nodes for part in parts]
        assert torch.equal(torch.cat([part.mis_value for part in parts]), ours.mis_value)
    assert repr(dataset) == "GraphDataset(co/toy:mis, split=train, graphs=40)"


def test_labels_of_other_graphs_are_refused(card: Card, make: MakeCard, tmp_path: Path) -> None:
    path = ensure_split(card, "val", tmp_path, workers=1)
    other = ensure_split(make(parameters={"nodes": [7, 15], "p": 0.3}), "val", tmp_path, workers=1)
    graphs = stored_samples(card.graph_schema, path)
    labels = stored_samples(card.label_schemas[card.labellers[0]], labels_of(card, other)[0])
    assert with_labels(
        card, card.labellers[0], graphs, stored_samples(card.label_schemas[card.labellers[0]], labels_of(card, path)[0])
    ).values.keys() == set(MIS)
    with pytest.raises(StoreError, match=r"co/toy:mis_size.*other graphs"):
        with_labels(card, card.labellers[0], graphs, labels)
    file = labels_of(card, path)[0]
    file.write_bytes(labels_of(card, other)[0].read_bytes())
    with pytest.raises(StoreError, match="has the labels of other graphs"):
        GraphDataset(card, "val", path)
