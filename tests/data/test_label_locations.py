"""Labels of solvers at nodes, edges and graphs, and labels with several columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphbench.catalog.cards import Card
from graphbench.core.errors import StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.data.store.labels import with_labels
from graphbench.data.store.layout import label_folder
from graphbench.data.store.shards import stored_samples
from graphbench.domains.co import labellers
from graphbench.verification.scoring import measured_task

FEATURES = {
    "heavy": ["meta", "edge", "mask"],
    "ends": ["meta", "edge", "scalar(2)"],
    "spot": ["meta", "node", "scalar(2)"],
    "total": ["meta", "graph", "scalar(3)"],
    "mis_failed": ["meta", "graph", "mask"],
}
COUNT = 20


def value_of(graph: Samples) -> dict[str, Any]:
    u, v = graph.edges.astype(int).T
    nodes, edges = int(graph.num_nodes[0]), int(graph.num_edges[0])
    return {
        "heavy": (u + v) % 2,
        "ends": np.stack([u, v], axis=1),
        "spot": np.stack([np.arange(nodes), np.full(nodes, nodes)], axis=1),
        "total": [nodes, edges, nodes + edges],
    }


def label(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
    return value_of(graph)


@pytest.fixture
def card(make_labelled: Callable[..., Card], monkeypatch: pytest.MonkeyPatch) -> Card:
    use_labeller(monkeypatch, label)
    tasks = {
        "heavy": {
            "title": "Heavy edges",
            "summary": "Which.",
            "labels": "co.mis",
            "outputs": ["heavy"],
            "metrics": {"primary": "f1", "also": ["f1_per_graph"]},
        },
        "ends": {
            "title": "Ends",
            "summary": "Of edges.",
            "labels": "co.mis",
            "outputs": ["ends"],
            "metrics": {"primary": "mae"},
        },
    }
    labels = {"co.mis": {"effort": {"steps": 1, "nodes": 1}, "features": FEATURES}}
    return make_labelled(labels=labels, tasks=tasks, channels={"ends": ["u", "v"]})


def use_labeller(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> None:
    def statistics(samples: Samples) -> dict[str, Any]:
        return {"nodes": samples.num_nodes.astype(float)}

    changed = replace(find("labeller", "co.mis"), label=function, check=lambda *_: [], statistics=statistics)
    monkeypatch.setattr(labellers, "LABELLERS", {**labellers.LABELLERS, "mis": changed})


def test_labels_have_a_row_per_edge_of_their_graph(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1, shard_size=7)
    graphs = stored_samples(card.graph_schema, path)
    stored = stored_samples(
        card.label_schemas[card.labellers[0]], label_folder(card, card.labellers[0], path.parent) / path.name
    )
    assert np.array_equal(stored.num_edges, graphs.num_edges) and stored.edges.shape == (0, 2)
    for i in range(COUNT):
        one, expected = (
            stored.part(card.label_schemas[card.labellers[0]], i, i + 1),
            value_of(graphs.part(card.graph_schema, i, i + 1)),
        )
        assert np.array_equal(one.values["heavy"], expected["heavy"])
        assert np.array_equal(one.values["ends"], expected["ends"])
        assert np.array_equal(one.values["spot"], expected["spot"])
        assert np.array_equal(one.values["total"][0], expected["total"])


def test_batches_have_them_in_both_directions(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    edges, ends = (GraphDataset(view, "train", path) for view in (card, card.with_task("ends")))
    (batch,), (of_ends,) = edges.batches(COUNT * 2), ends.batches(COUNT * 2)
    local = (batch.edge_index - batch.ptr[batch.batch[batch.edge_index[0]]]).sort(dim=0).values
    assert torch.equal(batch.y, local.sum(dim=0) % 2) and torch.equal(batch.y, batch.heavy)
    assert torch.equal(of_ends.y, local.T.float()) and of_ends.total.shape == (COUNT * 2, 3)
    data = ends[1]
    assert data.y.shape == (data.num_edges, 2) and data.total.shape == (1, 3)
    assert edges.content_hash == ends.content_hash


def test_neither_shards_nor_limits_change_them(card: Card, tmp_path: Path) -> None:
    whole = ensure_split(card, "train", tmp_path / "whole", workers=1, shard_size=9)
    again = ensure_split(card, "train", tmp_path / "again", workers=1)
    part = ensure_split(card, "train", tmp_path / "part", COUNT, workers=1)
    one, other = (label_folder(card, card.labellers[0], path.parent) / path.name for path in (whole, again))
    assert one.read_bytes() == other.read_bytes()
    first, own = GraphDataset(card, "train", whole, limit=COUNT), GraphDataset(card, "train", part)
    assert torch.equal(first.ends, own.ends) and first.content_hash == own.content_hash
    drawn = draw_samples(card, "train", np.arange(3))
    assert np.array_equal(
        drawn.values["ends"],
        stored_samples(card.label_schemas[card.labellers[0]], one)
        .part(card.label_schemas[card.labellers[0]], 0, 3)
        .values["ends"],
    )


def test_a_failed_graph_has_a_row_per_edge_too(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_on_nine(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
        if graph.num_nodes[0] == 9:
            raise TimeoutError("too slow")
        values = value_of(graph)
        return {**values, "ends": values["ends"][:, 0]} if graph.num_nodes[0] == 10 else values

    use_labeller(monkeypatch, fails_on_nine)
    dataset = GraphDataset(card, "train", ensure_split(card, "train", tmp_path, workers=1))
    sizes = np.diff(dataset.flat.node_ptr)
    assert dataset.failed_graphs.tolist() == np.flatnonzero(np.isin(sizes, [9, 10])).tolist() != []
    data = dataset[int(dataset.failed_graphs[0])]
    assert (data.ends == -1).all() and data.ends.shape == (data.num_edges, 2) and (data.total == -1).all()


def test_labels_of_graphs_with_other_edges_are_refused(card: Card) -> None:
    graphs, other = (draw_samples(card.graphs, split, np.arange(6)) for split in ("train", "val"))
    labels = draw_samples(card, "train", np.arange(6)).part(card.stored_schema, 0, 6)
    same_nodes = replace(labels, num_nodes=other.num_nodes)
    with_labels(card, card.labellers[0], graphs, labels)
    with pytest.raises(StoreError, match="belong to other graphs"):
        with_labels(card, card.labellers[0], other, same_nodes)


def test_trivial_predictors_of_edge_labels_know_the_graphs(card: Card, tmp_path: Path) -> None:
    heavy, ends = (measured_task(card.with_task(name), tmp_path) for name in ("heavy", "ends"))
    assert set(heavy.floor["test"]["majority"]) == {"f1", "f1_per_graph"}
    assert set(ends.floor["test"]) == {"mean", "median"}
