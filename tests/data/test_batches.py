"""The fast path gives what PyG's own collation gives, in an order that depends on (seed, epoch) alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.core.errors import ArgumentError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split

COUNT = 53
SameBatches = Callable[[Batch, Batch], None]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batches")


def open_split(name: str, root: Path, **options: Any) -> GraphDataset:
    card = catalog().cards[f"algoreas/{name}_easy"]
    return GraphDataset(card, "val", ensure_split(card, "val", root, COUNT, workers=1), **options)


@pytest.fixture(scope="module")
def trees(root: Path) -> GraphDataset:
    return open_split("mst", root)


@pytest.fixture
def numbered(make_card: Callable[..., Card], tmp_path: Path) -> GraphDataset:
    """A dataset whose graph i has i as its label, to see which graphs a batch holds."""
    from graphbench.data.store.files import write_arrays

    arrays = {
        "node_ptr": np.arange(COUNT + 1) * 2,
        "edge_ptr": np.arange(COUNT + 1),
        "edges": np.tile(np.array([[0, 1]], np.uint8), (COUNT, 1)),
        "number": np.arange(COUNT, dtype=np.float32),
    }
    write_arrays(tmp_path / "train.h5", arrays)
    card = make_card(COUNT, features={"number": ["output", "graph", "scalar"]})
    return GraphDataset(card, "train", tmp_path / "train.h5")


def order_of(dataset: GraphDataset, batch_size: int = 10, **options: Any) -> list[int]:
    return [int(n) for batch in dataset.batches(batch_size, **options) for n in batch.number]


@pytest.mark.parametrize("name", ["mst", "flow", "bridges", "topological_sort", "steiner_tree"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_equal_those_of_pyg(name: str, shuffle: bool, root: Path, assert_equal_batches: SameBatches) -> None:
    dataset = open_split(name, root)
    rng = np.random.Generator(np.random.Philox(key=3, counter=2 << 128))
    order = rng.permutation(COUNT) if shuffle else np.arange(COUNT)
    batches = list(dataset.batches(20, shuffle=shuffle, seed=3, epoch=2))
    assert [batch.num_graphs for batch in batches] == [20, 20, 13]
    for i, ours in enumerate(batches):
        chosen = order[20 * i : 20 * (i + 1)]
        assert_equal_batches(ours, Batch.from_data_list([dataset[int(g)] for g in chosen]))


@pytest.mark.parametrize("name", ["mst", "flow", "topological_sort"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_come_apart_again(name: str, shuffle: bool, root: Path, assert_equal_batches: SameBatches) -> None:
    dataset = open_split(name, root)
    batch = list(dataset.batches(20, shuffle=shuffle))[1]
    theirs = Batch.from_data_list(batch.to_data_list())
    assert_equal_batches(batch, theirs)
    assert set(batch[3].keys()) == set(dataset[0].keys())
    assert torch.equal(batch[3].edge_index, theirs[3].edge_index)
    assert torch.equal(batch[19].y, theirs[19].y)
    assert batch[3].num_nodes == 16
    assert batch[3].edge_index.max() < 16
    assert len(batch[2:5]) == 3
    assert [data.num_edges for data in batch.index_select([4, 1])] == [batch[4].num_edges, batch[1].num_edges]
    if not shuffle:
        for i in range(20):
            for key, value in dataset[20 + i]:
                assert torch.equal(torch.as_tensor(batch[i][key]), torch.as_tensor(value)), key


def test_collating_batches_of_pieces(trees: GraphDataset, assert_equal_batches: SameBatches) -> None:
    (whole,) = trees.batches(COUNT)
    again = Batch.from_data_list(whole.to_data_list()[:20])
    assert_equal_batches(next(iter(trees.batches(20))), again)


def test_batches_can_be_cloned_and_moved(trees: GraphDataset) -> None:
    batch = next(iter(trees.batches(5, device="cpu")))
    assert torch.equal(batch.clone().to("cpu")[4].y, trees[4].y)
    assert torch.equal(batch.batch, torch.arange(5).repeat_interleave(16))
    assert torch.equal(batch.ptr, torch.arange(6) * 16)


def test_order_depends_on_seed_and_epoch_alone(numbered: GraphDataset) -> None:
    plain = list(range(COUNT))
    assert order_of(numbered) == plain
    assert order_of(numbered, seed=1, epoch=4) == plain
    first = order_of(numbered, shuffle=True, seed=1, epoch=4)
    assert sorted(first) == plain
    assert first != plain
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    for batch_size in (1, 7, 10, COUNT, 1000):
        assert order_of(numbered, batch_size, shuffle=True, seed=1, epoch=4) == first
    orders = {tuple(order_of(numbered, shuffle=True, seed=s, epoch=e)) for s in range(3) for e in range(3)}
    assert len(orders) == 9


def test_a_plan_can_be_walked_again(numbered: GraphDataset) -> None:
    plan = numbered.batches(10, shuffle=True, seed=2)
    assert len(plan) == 6
    first, again = ([batch.number.tolist() for batch in plan] for _ in range(2))
    assert first == again
    assert len(first) == 6


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("start", [0, 1, 5, 6, 9])
def test_start_leaves_out_the_first_batches(numbered: GraphDataset, shuffle: bool, start: int) -> None:
    whole = order_of(numbered, shuffle=shuffle)
    assert order_of(numbered, shuffle=shuffle, start=start) == whole[10 * start :]
    assert len(numbered.batches(10, start=start)) == max(0, 6 - start)


@pytest.mark.parametrize("shuffle", [False, True])
def test_drop_last(numbered: GraphDataset, shuffle: bool) -> None:
    assert order_of(numbered, shuffle=shuffle, drop_last=True) == order_of(numbered, shuffle=shuffle)[:50]
    assert len(numbered.batches(10, drop_last=True)) == 5
    assert list(numbered.batches(COUNT + 1, drop_last=True)) == []
    assert len(numbered.batches(COUNT, drop_last=True)) == 1


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("world", [2, 3])
def test_shares_partition_every_batch(numbered: GraphDataset, shuffle: bool, world: int) -> None:
    whole = list(numbered.batches(10, shuffle=shuffle, seed=7))
    shares = [list(numbered.batches(10, shuffle=shuffle, seed=7, share=(rank, world))) for rank in range(world)]
    for i, batch in enumerate(whole):
        expected = batch.number.tolist()
        for rank in range(world):
            assert shares[rank][i].number.tolist() == expected[rank::world]
            assert shares[rank][i].num_graphs == len(expected[rank::world])


def test_a_share_may_be_empty(numbered: GraphDataset) -> None:
    last = list(numbered.batches(26, share=(1, 2)))[-1]  # the last batch holds one graph, of the first rank
    assert last.num_graphs == 0
    assert last.num_nodes == 0
    assert last.edge_index.shape == (2, 0)


@pytest.mark.parametrize("name", ["flow", "mst", "topological_sort", "steiner_tree"])
@pytest.mark.parametrize("transform", [None, lambda data: data.update({"word": "w", "twice": 2 * data.y})])
def test_an_empty_share_has_the_fields_of_the_others(name: str, transform: Any, root: Path) -> None:
    full, empty = open_split(name, root, transform=transform)[:21].batches(20, share=(1, 2))
    assert empty.num_graphs == empty.num_nodes == empty.num_edges == 0
    assert sorted(empty.keys()) == sorted(full.keys())
    assert empty.ptr.tolist() == [0]
    for name, value in full.items():
        if name == "word":
            assert empty.word == []
        elif isinstance(value, torch.Tensor) and name != "ptr":
            dim = full.__cat_dim__(name, value)
            expected = list(value.shape)
            expected[dim] = 0
            assert list(empty[name].shape) == expected
            assert empty[name].dtype == value.dtype


def test_batches_of_a_selection(numbered: GraphDataset) -> None:
    part = numbered[[9, 4, 30, 2]]
    assert order_of(part, 3) == [9, 4, 30, 2]
    shuffled = order_of(part, 3, shuffle=True, seed=1)
    assert sorted(shuffled) == [2, 4, 9, 30]
    positions = np.random.Generator(np.random.Philox(key=1, counter=0)).permutation(4)
    assert shuffled == [[9, 4, 30, 2][p] for p in positions]
    assert order_of(part, 2, share=(1, 2)) == [4, 2]


def test_batches_with_a_transform_hold_the_same_graphs(root: Path) -> None:
    def mark(data: Data) -> Data:
        data.marked = data.weight + 1
        return data

    plain, changed = open_split("mst", root), open_split("mst", root, transform=mark)
    for shuffle in (False, True):
        for a, b in zip(plain.batches(20, shuffle), changed.batches(20, shuffle), strict=True):
            assert torch.equal(a.edge_index, b.edge_index)
            assert torch.equal(a.weight + 1, b.marked)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": -3}, "got -3"),
        ({"batch_size": 2, "start": -1}, "start must be at least 0, got -1"),
        ({"batch_size": 2, "seed": -1}, "seed must be at least 0, got -1"),
        ({"batch_size": 2, "epoch": -1}, "epoch must be at least 0, got -1"),
        ({"batch_size": 2, "share": (2, 2)}, r"\(rank, world\).*got \(2, 2\)"),
        ({"batch_size": 2, "share": (-1, 2)}, "share must be"),
        ({"batch_size": 2, "share": (0, 0)}, "share must be"),
    ],
)
def test_bad_arguments(trees: GraphDataset, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        trees.batches(**options)
    assert isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("option", ["batch_size", "seed", "epoch", "start"])
@pytest.mark.parametrize("value", [1.5, None, "1", True])
def test_arguments_that_are_no_whole_numbers(trees: GraphDataset, option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{option}.*{value!r}"):
        trees.batches(**{"batch_size": 2, option: value})
    assert len(trees.batches(**{"batch_size": 2, option: np.int64(1)})) > 0


@pytest.mark.parametrize("share", [3, (1,), (0, 2, 3), ("0", 2), (0, True), None])
def test_shares_that_are_no_pair(trees: GraphDataset, share: Any) -> None:
    with pytest.raises(ArgumentError, match="share must be"):
        trees.batches(2, share=share)
