"""The batch of a whole split is kept, and a caller who changes a batch changes no other batch."""

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphbench.catalog.names import catalog
from graphbench.data.batches import kept_batch, layouts
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.batches.sample_ids import ids_of
from graphbench.data.build.generation import ensure_split

COUNT = 7
SameBatches = Callable[[Batch, Batch], None]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


def opened(root: Path, name: str = "mst") -> GraphDataset:
    card = catalog().cards[f"algoreas/{name}_easy"]
    return GraphDataset(card, "val", ensure_split(card, "val", root, COUNT, workers=1))


@pytest.fixture
def split(root: Path) -> GraphDataset:
    return opened(root)


def whole(dataset: GraphDataset) -> Batch:
    (batch,) = dataset.batches(COUNT)
    return batch


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The samples of every batch that is made of the arrays."""
    calls: list[Any] = []
    make_batch = layouts.make_batch

    def counting(flat: Any, samples: Any, device: Any = None) -> Batch:
        calls.append(samples)
        return make_batch(flat, samples, device)

    monkeypatch.setattr(layouts, "make_batch", counting)
    return calls


@pytest.mark.parametrize("name", ["mst", "flow", "bridges", "topological_sort", "steiner_tree"])
def test_every_request_gives_the_same_batch(name: str, root: Path, assert_equal_batches: SameBatches) -> None:
    split = opened(root, name)
    expected = Batch.from_data_list([split[i] for i in range(COUNT)])
    for _ in range(4):
        batch = whole(split)
        assert_equal_batches(batch, expected)
        assert_equal_batches(batch, Batch.from_data_list(batch.to_data_list()))
        assert batch.num_graphs == COUNT and ids_of(batch) is not None


def test_arrays_are_read_for_two_requests_only(split: GraphDataset, made: list[Any]) -> None:
    for _ in range(5):
        whole(split)
    assert len(made) == 2
    for batch in split[np.arange(COUNT)].batches(COUNT):
        assert batch.num_graphs == COUNT
    assert len(made) == 2


def test_other_batches_are_not_kept(split: GraphDataset, made: list[Any]) -> None:
    for _ in range(3):
        sum(1 for _ in split.batches(COUNT - 1))
        sum(1 for _ in split[np.arange(COUNT)[::-1].copy()].batches(COUNT))
    assert len(made) == 9


WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda tensor: tensor.add_(1),
    "fill": lambda tensor: tensor.fill_(5),
    "item": lambda tensor: tensor.__setitem__(0, 3),
    "view": lambda tensor: tensor.view(-1).zero_(),
    "numpy": lambda tensor: tensor.numpy().fill(7),
    "data": lambda tensor: tensor.data.fill_(7),
    "shared": lambda tensor: tensor.share_memory_().fill_(7),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_changed_batch_changes_no_other_batch(
    write: str, split: GraphDataset, assert_equal_batches: SameBatches
) -> None:
    expected = Batch.from_data_list([split[i] for i in range(COUNT)])
    earlier = [whole(split) for _ in range(3)]
    for changed in (whole(split), earlier[0], earlier[1]):
        for name in ("edge_index", "x", "y", "ptr", "batch"):
            if name in changed:
                WRITES[write](changed[name])
                assert write == "item" or not torch.equal(changed[name], expected[name])
    assert_equal_batches(earlier[2], expected)
    assert_equal_batches(whole(split), expected)


def test_a_batch_is_read_without_a_copy_of_its_tensors(split: GraphDataset) -> None:
    batch = [whole(split) for _ in range(3)][-1]
    weights = torch.ones(batch.edge_attr.shape[1], 2)
    assert (batch.edge_attr @ weights).sum() and batch.edge_index.max() > 0 and batch.edge_attr[:3].sum()
    assert torch._C._is_cow_tensor(batch.edge_attr) and torch._C._is_cow_tensor(batch.edge_index)  # type: ignore[attr-defined]


def test_fields_of_one_memory_stay_one_memory(split: GraphDataset) -> None:
    for _ in range(4):
        batch = whole(split)
        tensors = [name for name in batch.keys() if isinstance(batch[name], torch.Tensor)]  # noqa: SIM118
        shared = [
            (a, b)
            for a, b in itertools.combinations(tensors, 2)
            if batch[a].untyped_storage()._cdata == batch[b].untyped_storage()._cdata
        ]
        assert shared
        for first, second in shared:
            batch[first].fill_(1)
            assert (batch[second] == 1).all()


def test_a_kept_batch_can_be_stored_and_cloned(split: GraphDataset, assert_equal_batches: SameBatches) -> None:
    batch = [whole(split) for _ in range(3)][-1]
    stream = io.BytesIO()
    torch.save(batch, stream)
    stream.seek(0)
    assert_equal_batches(torch.load(stream, weights_only=False), batch)
    assert_equal_batches(batch.clone(), batch)


def test_a_large_batch_is_not_kept(split: GraphDataset, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_batch, "_MOST_BYTES", 100)
    for _ in range(4):
        whole(split)
    assert len(made) == 4


def test_memory_that_two_fields_share_in_part_is_not_kept() -> None:
    values = torch.arange(6.0)
    assert kept_batch._fields_of_same_memory({"a": values, "b": values[:3]}) is None
    assert kept_batch._fields_of_same_memory({"a": values.view(2, 3), "b": values.view(2, 3).T}) is None
    assert kept_batch._fields_of_same_memory({"a": values, "b": values.view(3, 2)}) == {"b": "a"}


def test_texts_of_a_kept_batch_are_copies() -> None:
    kept = kept_batch.KeptBatch()

    def make() -> Batch:
        texts = ["a", "b"]
        return Batch(edge_index=torch.zeros((2, 1), dtype=torch.long), texts=[["a"], ["b"]], story=texts, y=texts)

    batches = [kept.copy(make) for _ in range(4)]
    batches[2].story.append("c")
    batches[2].texts[0].append("d")
    assert batches[2].y == ["a", "b", "c"]
    assert batches[3].story == ["a", "b"] and batches[3].texts == [["a"], ["b"]]
