"""A split as a PyG dataset: fields, directions, selections, transforms."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops
from torch_geometric.utils import to_networkx

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.core.errors import GraphBenchError
from graphbench.data.batches.batching import FlatGraphs
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.layout import Manifest
from graphbench.data.store.shards import stored_samples

Open = Callable[..., GraphDataset]


@pytest.fixture(scope="session")
def shared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture(scope="session")
def open_shipped(shared_root: Path) -> Open:
    """Return a function that opens the first 40 training graphs of a shipped dataset."""

    def open_(name: str, limit: int = 40, **options: Any) -> GraphDataset:
        card = catalog().cards[f"algoreas/{name}_easy"]
        path = ensure_split(card, "train", shared_root, 40, workers=1)
        return GraphDataset(card, "train", path, limit=limit, **options)

    return open_


@pytest.fixture(scope="session")
def trees(open_shipped: Open) -> GraphDataset:
    return open_shipped("mst")


def has_even_edges(data: Data) -> bool:
    return data.num_edges % 4 == 0


def count_degree(data: Data) -> Data:
    data.degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    return data


def same(first: Data, second: Data) -> bool:
    a, b = first.to_dict(), second.to_dict()
    return a.keys() == b.keys() and all(
        torch.equal(a[k], b[k]) if isinstance(a[k], torch.Tensor) else a[k] == b[k] for k in a
    )


def test_fields_of_a_graph(trees: GraphDataset) -> None:
    samples = stored_samples(trees.card.graph_schema, trees.path)
    for i in (0, 1, 39):
        data, edges = trees[i], int(samples.num_edges[i])
        assert type(data) is Data
        assert data.num_nodes == 16
        assert data.edge_index.shape == (2, 2 * edges)
        assert {key: (value.dtype, tuple(value.shape)) for key, value in data if key != "num_nodes"} == {
            "edge_index": (torch.int64, (2, 2 * edges)),
            "weight": (torch.float32, (2 * edges,)),
            "in_tree": (torch.int64, (2 * edges,)),
            "model": (torch.int64, (1,)),
            "edge_attr": (torch.float32, (2 * edges, 1)),
            "y": (torch.int64, (2 * edges,)),
        }
        assert data.validate()
        assert data.is_undirected()
        assert not data.has_self_loops()
        assert not data.is_coalesced()  # the order is by stored edge, not by source


def test_both_directions_are_neighbours_and_equal(trees: GraphDataset) -> None:
    samples = stored_samples(trees.card.graph_schema, trees.path)
    ptr = samples.edge_ptr
    for i in range(len(trees)):
        data, rows = trees[i], slice(ptr[i], ptr[i + 1])
        there, back = data.edge_index[:, 0::2], data.edge_index[:, 1::2]
        assert torch.equal(there, back.flip(0))
        assert np.array_equal(there.T.numpy(), samples.edges[rows])
        assert (there[0] < there[1]).all()
        for name in ("weight", "in_tree"):
            assert np.array_equal(data[name][0::2].numpy(), samples.values[name][rows])
            assert torch.equal(data[name][0::2], data[name][1::2])
        assert torch.equal(data.edge_attr[:, 0], data.weight)
        assert torch.equal(data.y, data.in_tree)
        assert int(data.y.sum()) == 2 * 15


def test_flow_has_a_capacity_per_direction(open_shipped: Open) -> None:
    flow = open_shipped("flow")
    samples = stored_samples(flow.card.graph_schema, flow.path)
    data, edges = flow[0], int(samples.num_edges[0])
    capacity = samples.values["capacity"][:edges]
    assert capacity.shape == (edges, 2)
    assert np.array_equal(data.capacity[0::2].numpy(), capacity[:, 0])
    assert np.array_equal(data.capacity[1::2].numpy(), capacity[:, 1])
    assert not torch.equal(data.capacity[0::2], data.capacity[1::2])
    assert data.edge_attr.shape == (2 * edges, 1)
    assert torch.equal(data.edge_attr[:, 0], data.capacity)
    assert data.x.dtype == torch.float32
    assert torch.equal(data.x, torch.stack([data.source, data.sink], dim=1).float())
    assert data.x.sum(dim=0).tolist() == [1, 1]
    assert data.y.shape == (1,)
    assert data.y.dtype == torch.float32
    assert torch.equal(data.y, data.value)


def test_directed_graphs_hold_every_arc_once(open_shipped: Open) -> None:
    orders = open_shipped("topological_sort")
    samples = stored_samples(orders.card.graph_schema, orders.path)
    for i in (0, 39):
        data = orders[i]
        rows = slice(samples.edge_ptr[i], samples.edge_ptr[i + 1])
        assert np.array_equal(data.edge_index.T.numpy(), samples.edges[rows])
        assert nx.is_directed_acyclic_graph(to_networkx(data))
        assert data.x.shape == (16, 1)
        assert torch.equal(data.x[:, 0], data.priority)
        assert torch.equal(data.y, data.rank)
        assert data.edge_attr is None
    batch = next(iter(orders.batches(40)))
    assert batch.num_edges == samples.edges.shape[0]


def test_no_inputs_no_x(open_shipped: Open) -> None:
    data = open_shipped("bridges")[0]
    assert data.x is None
    assert data.edge_attr is None
    assert data.num_nodes == 16


class TestConventions:
    """Data made by hand: one-hot classes, several outputs, pointers."""

    FEATURES: ClassVar[dict[str, Any]] = {
        "size": ["input", "node", "scalar"],
        "colour": ["input", "node", "categorical(3)"],
        "parent": ["output", "node", "pointer"],
        "depth": ["output", "node", "scalar"],
        "total": ["output", "graph", "scalar"],
    }

    @pytest.fixture
    def dataset(self, make_card: Callable[..., Card], tmp_path: Path) -> GraphDataset:
        from graphbench.data.store.files import write_arrays

        arrays = {
            "node_ptr": np.array([0, 2, 5]),
            "edge_ptr": np.array([0, 1, 1]),  # the second graph has no edges
            "edges": np.array([[0, 1]], np.uint8),
            "size": np.arange(5, dtype=np.float32),
            "colour": np.array([0, 2, 1, 1, 0], np.uint8),
            "parent": np.array([1, 1, 0, 0, 2], np.uint8),
            "depth": np.array([0.5, 1, 2, 3, 4], np.float32),
            "total": np.array([7, 8], np.float32),
        }
        write_arrays(tmp_path / "train.h5", arrays)
        return GraphDataset(make_card(2, features=self.FEATURES), "train", tmp_path / "train.h5")

    def test_classes_become_columns(self, dataset: GraphDataset) -> None:
        assert dataset[1].x.tolist() == [[2, 0, 1, 0], [3, 0, 1, 0], [4, 1, 0, 0]]
        assert dataset.num_node_features == 4

    def test_outputs_of_the_first_location_become_columns_of_y(self, dataset: GraphDataset) -> None:
        assert dataset[0].y.tolist() == [[1, 0.5], [1, 1]]
        assert dataset[0].total.tolist() == [7]

    def test_pointers_stay_local(self, dataset: GraphDataset) -> None:
        (batch,) = dataset.batches(2)
        assert batch.parent.tolist() == [1, 1, 0, 0, 2]
        assert torch.equal(batch.parent, Batch.from_data_list([dataset[0], dataset[1]]).parent)

    def test_a_graph_without_edges(self, dataset: GraphDataset) -> None:
        assert dataset[1].edge_index.shape == (2, 0)
        (batch,) = dataset.batches(2)
        assert batch[1].num_nodes == 3
        assert batch.edge_index.tolist() == [[0, 1], [1, 0]]

    def test_flat_graphs_count(self, dataset: GraphDataset) -> None:
        assert isinstance(dataset.flat, FlatGraphs)
        assert len(dataset.flat) == len(dataset) == 2


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (slice(2, 5), [2, 3, 4]),
        (slice(None, None, 10), [0, 10, 20, 30]),
        (slice(-2, None), [38, 39]),
        ([3, 1, 3], [3, 1, 3]),
        (torch.tensor([5, 2]), [5, 2]),
        (torch.arange(40) < 2, [0, 1]),
        (np.array([7, 7]), [7, 7]),
        (np.arange(40) > 37, [38, 39]),
        ((4, 0), [4, 0]),
        (range(1, 3), [1, 2]),
        ([i in (3, 5) for i in range(40)], [3, 5]),
        ((np.arange(40) == 6).tolist(), [6]),
        ([], []),
    ],
)
def test_selections(trees: GraphDataset, chosen: Any, expected: list[int]) -> None:
    part = trees[chosen]
    assert type(part) is GraphDataset
    assert len(part) == len(expected)
    for data, i in zip(part, expected, strict=True):
        assert same(data, trees[i])
    found = [data for batch in part.batches(100) for data in batch.to_data_list()]
    assert all(same(a, trees[i]) for a, i in zip(found, expected, strict=True))
    assert len(trees) == 40


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ([True, False], "2 truth values.*40 graphs"),
        (torch.ones(39, dtype=torch.bool), "39 truth values.*40 graphs"),
        (np.ones(41, bool), "41 truth values.*40 graphs"),
        ((True,) * 39 + (1,), "mixes truth values and numbers"),
    ],
)
def test_wrong_truth_values_are_no_selection(trees: GraphDataset, chosen: Any, words: str) -> None:
    with pytest.raises(IndexError, match=words):
        trees[chosen]


def test_selection_of_a_selection(trees: GraphDataset) -> None:
    part = trees[10:30][torch.tensor([1, 0])][[1]]
    assert same(part[0], trees[10])
    assert part.graph_numbers is not None
    assert part.graph_numbers.tolist() == [10]
    assert trees.graph_numbers is None


@pytest.mark.parametrize("index", [3, -1, np.int64(4), torch.tensor(5)])
def test_single_graphs(trees: GraphDataset, index: Any) -> None:
    assert same(trees[index], trees[int(index) % 40])


def test_index_out_of_range(trees: GraphDataset) -> None:
    for index in (40, -41):
        with pytest.raises(IndexError):
            trees[index]


def test_shuffle_gives_a_permutation(trees: GraphDataset) -> None:
    torch.manual_seed(0)
    shuffled, order = trees.shuffle(return_perm=True)
    assert sorted(order.tolist()) == list(range(40))
    assert order.tolist() != list(range(40))
    assert all(same(shuffled[i], trees[int(order[i])]) for i in range(40))


def test_limit_takes_the_first_graphs(open_shipped: Open) -> None:
    whole, few = open_shipped("mst"), open_shipped("mst", limit=7)
    assert len(few) == 7
    assert all(same(a, b) for a, b in zip(few, whole[:7], strict=True))
    assert [batch.num_graphs for batch in few.batches(5)] == [5, 2]
    assert len(open_shipped("mst", limit=1000)) == 40
    with pytest.raises(IndexError):
        few[7]


def test_a_graph_is_a_copy(trees: GraphDataset) -> None:
    trees[0].weight[:] = -1
    assert (trees[0].weight > 0).all()


def test_facts_that_pyg_asks_for(open_shipped: Open, trees: GraphDataset) -> None:
    assert trees.num_node_features == trees.num_features == 0
    assert trees.num_edge_features == 1
    assert trees.num_classes == 2
    assert open_shipped("flow").num_node_features == 2
    assert open_shipped("steiner_tree").num_node_features == 1
    assert repr(trees) == "GraphDataset(algoreas/mst_easy, split=train, graphs=40)"
    assert trees.get_summary().num_graphs == 40
    assert torch.equal(trees._data.y, torch.cat([data.y for data in trees]))
    part = trees[:3]
    assert torch.equal(part._data.y, torch.cat([trees[i].y for i in range(3)]))


def test_fields_of_all_graphs_at_once(open_shipped: Open, trees: GraphDataset) -> None:
    whole = Batch.from_data_list(list(trees))
    for name in ("y", "weight", "model", "edge_index", "edge_attr"):
        assert torch.equal(getattr(trees, name), whole[name])
    assert torch.equal(trees[[4, 2]].weight, torch.cat([trees[4].weight, trees[2].weight]))
    changed = open_shipped("mst", pre_transform=count_degree, transform=AddSelfLoops())
    assert torch.equal(changed.edge_index, whole.edge_index)
    for name in ("x", "colour", "_nothing"):
        assert not hasattr(trees, name)


def test_networkx(trees: GraphDataset) -> None:
    graph = to_networkx(trees[0], to_undirected=True, edge_attrs=["weight", "in_tree"])
    tree = {tuple(sorted(edge)) for edge in nx.minimum_spanning_edges(graph, data=False)}
    assert {(u, v) for u, v, chosen in graph.edges(data="in_tree") if chosen} == tree
    assert graph.number_of_nodes() == 16


def test_transform_acts_at_every_access(open_shipped: Open, trees: GraphDataset) -> None:
    calls: list[int] = []

    def add(data: Data) -> Data:
        calls.append(1)
        return AddSelfLoops()(data)

    dataset = open_shipped("mst", transform=add)
    assert calls == []
    assert dataset[0].num_edges == trees[0].num_edges + 16
    assert dataset[0].num_edges == trees[0].num_edges + 16
    assert len(calls) == 2
    batch = next(iter(dataset.batches(4)))
    assert batch.num_edges == sum(trees[i].num_edges + 16 for i in range(4))
    assert len(calls) == 6


def test_pre_transform_acts_once(open_shipped: Open, trees: GraphDataset) -> None:
    calls: list[int] = []

    def note(data: Data) -> Data:
        calls.append(1)
        return count_degree(data)

    dataset = open_shipped("mst", limit=6, pre_transform=note)
    assert len(calls) == 6
    assert dataset[5].degree.sum() == trees[5].num_edges
    batches = list(dataset.batches(4))
    assert [batch.num_graphs for batch in batches] == [4, 2]
    assert torch.equal(batches[1].degree, torch.cat([dataset[4].degree, dataset[5].degree]))
    assert len(calls) == 6
    dataset[0].degree[:] = 99
    assert dataset[0].degree.max() < 99


def test_pre_filter_is_decided_on_what_the_card_gives(open_shipped: Open, trees: GraphDataset) -> None:
    kept = [i for i in range(40) if has_even_edges(trees[i])]
    assert 0 < len(kept) < 40
    dataset = open_shipped("mst", pre_filter=has_even_edges)
    assert len(dataset) == len(kept)
    assert all(same(data, trees[i]) for data, i in zip(dataset, kept, strict=True))
    edges = torch.cat([batch.weight for batch in dataset.batches(5)])
    assert torch.equal(edges, torch.cat([trees[i].weight for i in kept]))
    shuffled = torch.cat([batch.weight for batch in dataset.batches(5, shuffle=True)])
    assert torch.equal(shuffled.sort().values, edges.sort().values)
    assert not torch.equal(shuffled, edges)


def test_filter_then_pre_transform_then_transform(open_shipped: Open, trees: GraphDataset) -> None:
    def double(data: Data) -> Data:
        data.weight = data.weight * 2
        return data

    def add_one(data: Data) -> Data:
        data.weight = data.weight + 1
        return data

    kept = [i for i in range(40) if has_even_edges(trees[i])]
    dataset = open_shipped("mst", pre_filter=has_even_edges, pre_transform=double, transform=add_one)
    assert len(dataset) == len(kept)
    expected = torch.cat([trees[i].weight * 2 + 1 for i in kept])
    assert torch.equal(torch.cat([data.weight for data in dataset]), expected)
    assert torch.equal(torch.cat([batch.weight for batch in dataset.batches(3)]), expected)
    assert torch.equal(dataset[2:4][1].weight, trees[kept[3]].weight * 2 + 1)


def test_filter_that_keeps_nothing(open_shipped: Open) -> None:
    dataset = open_shipped("mst", pre_filter=lambda data: False)
    assert len(dataset) == 0
    assert list(dataset.batches(4)) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_pyg_loader(trees: GraphDataset, workers: int) -> None:
    batches = list(DataLoader(trees, batch_size=16, num_workers=workers))
    assert [batch.num_graphs for batch in batches] == [16, 16, 8]
    for ours, theirs in zip(trees.batches(16), batches, strict=True):
        assert torch.equal(ours.edge_index, theirs.edge_index)
        assert torch.equal(ours.y, theirs.y)


@pytest.mark.slow
def test_pyg_loader_with_spawned_workers(trees: GraphDataset) -> None:
    batches = list(DataLoader(trees[:8], batch_size=4, num_workers=1, multiprocessing_context="spawn"))
    assert torch.equal(torch.cat([batch.y for batch in batches]), torch.cat([trees[i].y for i in range(8)]))


@pytest.mark.parametrize(
    "options",
    [{}, {"transform": count_degree}, {"pre_transform": count_degree}, {"pre_filter": has_even_edges}, {"limit": 5}],
)
def test_pickling_sends_the_path_not_the_pages(open_shipped: Open, options: dict[str, Any]) -> None:
    dataset = open_shipped("mst", **options)
    dataset._data  # noqa: B018  # collated data must not travel
    text = pickle.dumps(dataset)
    assert "pre_transform" in options or len(text) - len(pickle.dumps(dataset.card)) < 1_000
    again = pickle.loads(text)
    assert len(again) == len(dataset)
    assert all(same(a, b) for a, b in zip(again, dataset, strict=True))
    part = pickle.loads(pickle.dumps(dataset[1:3]))
    assert same(part[1], dataset[2])


def test_copies_share_the_map(trees: GraphDataset) -> None:
    assert copy.copy(trees).flat is trees.flat
    assert trees[3:5].flat is trees.flat


def test_copy_holds_graphs_in_memory(trees: GraphDataset) -> None:
    twin = trees.copy([3, 1])
    assert len(twin) == 2
    assert same(twin[0], trees[3])
    assert same(twin[1], trees[1])
    assert len(trees.copy()) == 40
    assert [batch.num_graphs for batch in twin.batches(2)] == [2]


def test_moving_to_a_device_is_refused_with_the_remedy(trees: GraphDataset) -> None:
    with pytest.raises(GraphBenchError, match=r"batches\(\.\.\., device='cuda'\)"):
        trees.to("cuda")
    with pytest.raises(GraphBenchError):
        trees.cpu()


def test_arrays_cannot_be_replaced(trees: GraphDataset) -> None:
    with pytest.raises(AttributeError, match="use transform or pre_transform"):
        trees.data = Data()


def test_content_hash_is_that_of_the_manifest(trees: GraphDataset) -> None:
    assert len(trees.content_hash) == 64
    entry = Manifest(trees.path.parent).entry(trees.path.name)
    assert entry is not None
    assert trees.content_hash == entry["content"]
