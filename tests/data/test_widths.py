"""Scalars with a width: their columns are stored, hashed, batched and checked like single values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, parse_features
from graphbench.catalog.names import card as card_of
from graphbench.core.errors import CardError, GenerationError
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.batches.trajectory_batch import batch_of_samples
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.data.store import shards
from graphbench.data.store.shards import stored_samples
from graphbench.tasks.registry import task_of

FEATURES = {
    "place": ["input", "node", "scalar(3)"],
    "size": ["input", "node", "scalar"],
    "length": ["input", "edge", "scalar(2)"],
    "slope": ["input", "edge", "scalar(2)"],
    "one_way": ["input", "edge", "scalar"],
    "wind": ["output", "graph", "scalar(2)"],
    "warm": ["output", "graph", "mask"],
}
COUNT = 12

MakeCard = Callable[..., Card]


def with_columns(samples: Samples) -> Samples:
    """Return the graphs of samples with values that are functions of nodes, edges and sizes alone."""
    node = np.concatenate([np.arange(n) for n in samples.num_nodes]).astype(float)
    u, v = samples.edges.astype(float).T
    sizes = samples.num_edges.astype(float)
    values = {
        "place": np.stack([node, 10 + node, 20 + node], axis=1),
        "size": node,
        "length": np.stack([u + v, u * v], axis=1),
        "slope": np.stack([np.stack([u, v], axis=1), np.stack([v, u], axis=1)], axis=1),  # one row per direction
        "one_way": np.stack([u - v, v - u], axis=1),
        "wind": np.stack([sizes, -sizes], axis=1),
        "warm": samples.num_edges % 2,
    }
    return replace(samples, values=values)


@pytest.fixture
def use_generator(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Samples], Samples]], None]:
    real = find("generator", "algoreas.mst")

    def use(change: Callable[[Samples], Samples]) -> None:
        changed = replace(real, generate=lambda *arguments: change(real.generate(*arguments)))
        monkeypatch.setattr(shards, "find", lambda kind, name: changed)

    return use


@pytest.fixture
def card(make_card: MakeCard, use_generator: Callable[..., None]) -> Card:
    use_generator(with_columns)
    return make_card(COUNT, features=FEATURES, metrics={"primary": "mae"})


@pytest.fixture
def dataset(card: Card, tmp_path: Path) -> GraphDataset:
    return GraphDataset(card, "train", ensure_split(card, "train", tmp_path, workers=1, shard_size=5))


def test_columns_are_stored_as_they_are_drawn(card: Card, dataset: GraphDataset) -> None:
    drawn, stored = draw_samples(card, "train", np.arange(COUNT)), stored_samples(card.graph_schema, dataset.path)
    for name, shape in {"place": (3,), "length": (2,), "slope": (2, 2), "one_way": (2,), "wind": (2,)}.items():
        assert stored.values[name].shape[1:] == shape
        assert stored.values[name].dtype == np.float32
    for name in FEATURES:
        assert np.array_equal(stored.values[name], drawn.values[name])


def test_batches_have_a_row_per_item_and_a_column_per_channel(dataset: GraphDataset) -> None:
    (batch,) = dataset.batches(COUNT)
    (u, v), edges = batch.edge_index, batch.num_edges
    local = (u - batch.ptr[batch.batch[u]]).float(), (v - batch.ptr[batch.batch[v]]).float()
    assert batch.place.shape == (batch.num_nodes, 3) and batch.length.shape == (edges, 2)
    assert torch.equal(batch.length, torch.stack([local[0] + local[1], local[0] * local[1]], dim=1))
    assert torch.equal(batch.slope, torch.stack(local, dim=1))  # that of its own direction
    assert torch.equal(batch.one_way, local[0] - local[1])
    assert batch.wind.shape == (COUNT, 2) and batch.warm.shape == (COUNT,)


def test_standard_fields_have_the_columns_side_by_side(dataset: GraphDataset) -> None:
    (batch,) = dataset.batches(COUNT)
    assert torch.equal(batch.x, torch.cat([batch.place, batch["size"][:, None]], dim=1))
    assert torch.equal(batch.edge_attr, torch.cat([batch.length, batch.slope, batch.one_way[:, None]], dim=1))
    assert torch.equal(batch.y, torch.cat([batch.wind, batch.warm[:, None].float()], dim=1))
    data = dataset[3]
    assert data.x.shape == (8, 4) and data.y.shape == (1, 3) and data.wind.shape == (1, 2)


def test_one_output_keeps_its_width(make_card: MakeCard, use_generator: Callable[..., None], tmp_path: Path) -> None:
    use_generator(lambda s: replace(s, values={"wind": np.stack([s.num_edges, -s.num_edges], axis=1)}))
    card = make_card(COUNT, features={"wind": ["output", "graph", "scalar(2)"]}, metrics={"primary": "mae"})
    dataset = GraphDataset(card, "train", ensure_split(card, "train", tmp_path, workers=1))
    (batch,) = dataset.batches(COUNT)
    assert torch.equal(batch.y, batch.wind) and batch.y.shape == (COUNT, 2)


def test_batches_equal_those_of_pyg_and_come_apart(
    dataset: GraphDataset, assert_equal_batches: Callable[..., None]
) -> None:
    (batch,) = dataset[2:9].batches(7, shuffle=False)
    assert_equal_batches(batch, Batch.from_data_list([dataset[i] for i in range(2, 9)]))
    assert torch.equal(batch[3].slope, dataset[5].slope)


def test_first_graphs_hash_like_a_file_of_their_own(card: Card, dataset: GraphDataset, tmp_path: Path) -> None:
    short = GraphDataset(card, "train", ensure_split(card, "train", tmp_path / "short", 7, workers=1))
    assert GraphDataset(card, "train", dataset.path, limit=7).content_hash == short.content_hash
    assert dataset.content_hash != short.content_hash


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("place", lambda a: a[:, :2], ["place (scalar(3) at nodes)", "2]; the card asks for [rows, 3] (one row"]),
        ("place", lambda a: a[:, 0], ["place (scalar(3) at nodes)"]),
        ("size", lambda a: a[:, None], ["size (scalar at nodes)", "1]; the card asks for [rows] (one row per item)"]),
        ("length", lambda a: a[:, :1], ["[rows, 2] (one row per item) or [rows, 2, 2] (a value per direction)"]),
        ("one_way", lambda a: np.stack([a, a], axis=2), ["[rows] (one row per item) or [rows, 2] (a value per"]),
        ("wind", lambda a: a[:, None], ["wind (scalar(2) at graphs)"]),
        ("warm", lambda a: a + 0.5, ["warm", "outside 0 to 1"]),
        ("warm", lambda a: a * 0.5, ["warm is a mask and has values that are not whole numbers"]),
        ("size", lambda a: a.astype(object), ["size has the dtype object"]),
    ],
)
def test_another_width_than_the_cards_is_refused(
    card: Card, use_generator: Callable[..., None], tmp_path: Path, name: str, change: Any, words: list[str]
) -> None:
    def changed(samples: Samples) -> Samples:
        right = with_columns(samples)
        return replace(right, values={**right.values, name: change(right.values[name])})

    use_generator(changed)
    with pytest.raises(GenerationError, match=r"algoreas/toy train: algoreas\.mst") as caught:
        ensure_split(card, "train", tmp_path, workers=1)
    for word in [*words, "fault of the generator"]:
        assert word in str(caught.value)


def test_edges_that_are_not_counted_are_refused(card: Card, use_generator: Callable[..., None], tmp_path: Path) -> None:
    use_generator(lambda s: replace(with_columns(s), edges=s.edges[:-1]))
    with pytest.raises(GenerationError, match=r"edges has the shape.*num_edges"):
        ensure_split(card, "train", tmp_path, workers=1)


def test_arcs_have_one_value_each(make_card: MakeCard, use_generator: Callable[..., None], tmp_path: Path) -> None:
    use_generator(lambda s: replace(s, values={"one_way": with_columns(s).values["one_way"]}))
    card = make_card(COUNT, features={"one_way": ["output", "edge", "scalar"]}, directed=True)
    with pytest.raises(GenerationError, match=r"\[rows\] \(one row per item\)"):
        ensure_split(card, "train", tmp_path, workers=1)


def test_all_samples_have_rows_of_one_shape(card: Card, use_generator: Callable[..., None], tmp_path: Path) -> None:
    def changed(samples: Samples) -> Samples:
        right = with_columns(samples)
        both_ways = right.values["slope"]
        return replace(right, values={**right.values, "slope": both_ways if len(samples) > 4 else both_ways[:, 0]})

    use_generator(changed)
    with pytest.raises(GenerationError, match="slope has rows of the shape"):
        ensure_split(card, "train", tmp_path, workers=1, shard_size=5)


def with_features(card: Card, features: dict[str, list[str]]) -> Card:
    return card.with_features((*card.features, *parse_features(features)))


def test_trajectories_take_inputs_with_a_width(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    card = card_of("clrs/bfs")
    real, splits = find("generator", card.generator), {"train": card.split("train").model_copy(update={"count": 4})}

    def widened(samples: Samples) -> Samples:
        rows = {"place": samples.num_nodes.sum(), "flow": samples.num_edges.sum(), "wind": len(samples)}
        wide = {name: np.arange(2.0 * count).reshape(count, 2) for name, count in rows.items()}
        return replace(samples, values={**samples.values, **wide})

    changed = replace(real, generate=lambda *arguments: widened(real.generate(*arguments)))
    monkeypatch.setattr(shards, "find", lambda kind, name: changed)
    wide = {"place": "node", "flow": "edge", "wind": "graph"}
    card = with_features(card, {name: ["input", at, "scalar(2)"] for name, at in wide.items()})
    card = card.model_copy(update={"splits": {**card.splits, **splits}})
    drawn = batch_of_samples(draw_samples(card, "train", np.arange(4)), card.features)
    dataset = GraphDataset(card, "train", ensure_split(card, "train", tmp_path, workers=1))
    (stored,) = dataset.batches(4)
    nodes = stored.num_nodes
    for name, shape in {"place": (4, nodes, 2), "flow": (4, nodes, nodes, 2), "wind": (4, 2)}.items():
        values = stored[name].numpy()
        assert np.array_equal(values[0].ravel(), np.arange(values[0].size))
        assert drawn[name].shape == shape == values.shape
    assert dataset[1].flow.shape == (nodes * nodes, 2) and torch.equal(dataset[1].place, stored["place"][1])


def test_outputs_of_a_trace_have_one_value_each() -> None:
    card = with_features(card_of("clrs/bfs"), {"place": ["output", "node", "scalar(2)"]})
    with pytest.raises(CardError, match=r"output 'place'.*scalar\(2\)"):
        task_of(card)


def test_hints_have_one_value_each() -> None:
    assert Feature.parse("h", ["hint", "node", "scalar(1)"]).row_shape == ()
    with pytest.raises(CardError, match=r"'h': scalar\(2\).*exactly 1"):
        Feature.parse("h", ["hint", "node", "scalar(2)"])
