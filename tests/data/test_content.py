"""Content hashes of parts of a file: those of the graphs, whichever file they come from."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphbench.catalog.features import Kind
from graphbench.catalog.names import catalog
from graphbench.core.errors import GraphBenchError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.data.store import split_files as opened
from graphbench.data.store.content import first_graphs_hash
from graphbench.data.store.files import map_arrays

Open = Callable[..., GraphDataset]


@pytest.fixture(scope="module")
def open_file(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Return a function that opens the val file of a dataset that was built with ``count`` graphs."""
    root = tmp_path_factory.mktemp("content")

    def open_(count: int, name: str = "algoreas/mst_easy", split: str = "val", **options: Any) -> GraphDataset:
        card = catalog().cards[name]
        return GraphDataset(card, split, ensure_split(card, split, root / str(count), count, workers=1), **options)

    return open_


def with_degree(data: Data) -> Data:
    data.degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    return data


@pytest.mark.parametrize("name", ["algoreas/mst_easy", "algoreas/topological_sort_easy", "algoreas/flow_easy"])
def test_the_first_graphs_of_a_longer_file_hash_like_the_file_of_that_size(open_file: Open, name: str) -> None:
    short, long = open_file(5, name), open_file(12, name)
    assert open_file(12, name, limit=5).content_hash == short.content_hash
    assert long[:5].content_hash == short.content_hash
    assert open_file(12, name, limit=9)[:5].content_hash == short.content_hash
    assert long.content_hash != short.content_hash
    assert open_file(12, name, limit=100).content_hash == long.content_hash


@pytest.mark.parametrize("name", ["clrs/bfs", "clrs/insertion_sort", "clrs/quickselect"])
def test_hints_and_wider_types_of_longer_files_do_not_matter(open_file: Open, name: str) -> None:
    long, short = open_file(12, name, "train"), open_file(3, name, "train")
    assert long[:3].content_hash == short.content_hash
    arrays = map_arrays(short.path)
    assert arrays["edges"].dtype == np.uint8
    ids = {f.name for f in short.card.stored_features if f.kind is Kind.POINTER} | {"edges", "node_ptr", "edge_ptr"}
    wider = {n: a.astype(np.int64) if n in ids or n.endswith(("cells", "counts")) else a for n, a in arrays.items()}
    assert first_graphs_hash(short.card.graph_schema, wider, 3) == short.content_hash


def test_selections_and_filters_hash_like_their_graphs(open_file: Open) -> None:
    long, limited = open_file(12), open_file(12, limit=8)
    hashes = {
        tuple(chosen): long[chosen].content_hash for chosen in ([0], [0, 1], [1, 0], [5, 2], [5, 3], [5, 2, 2], [])
    }
    assert len(set(hashes.values())) == len(hashes)
    assert limited[[5, 2]].content_hash == long[[5, 2]].content_hash
    numbers = [i for i in range(12) if long[i].num_edges % 4 == 0]
    assert 0 < len(numbers) < 12
    filtered = open_file(12, pre_filter=lambda data: data.num_edges % 4 == 0)
    assert filtered.content_hash == long[numbers].content_hash
    assert open_file(12, pre_filter=lambda _: True).content_hash == long.content_hash


def test_transformed_graphs_hash_by_their_tensors(open_file: Open) -> None:
    plain, once = open_file(12), open_file(12, pre_transform=with_degree)
    assert once.content_hash == open_file(12, pre_transform=with_degree).content_hash
    assert once.content_hash != plain.content_hash
    assert once[:4].content_hash == open_file(12, limit=4, pre_transform=with_degree).content_hash
    assert once[:4].content_hash != once[1:5].content_hash

    def named(value: Any) -> Callable[[Data], Data]:
        def add(data: Data) -> Data:
            data.extra = value
            return data

        return add

    values = ["a", "b", 1, 1.5, None, ["a", "b"], ["ab"], np.ones(2), torch.ones(2), torch.ones(2, dtype=torch.int64)]
    hashes = [open_file(12, limit=2, pre_transform=named(value)).content_hash for value in values]
    assert len(set(hashes)) == len(values)
    with pytest.raises(GraphBenchError, match=r"field 'extra'.*object"):
        _ = open_file(12, limit=2, pre_transform=named(object())).content_hash


def test_hashes_are_computed_once_and_never_inherited(open_file: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = open_file(12, limit=7)
    expected = limited.content_hash
    part = limited[2:4]
    assert part.content_hash != expected
    assert limited.copy().content_hash != expected
    again = pickle.loads(pickle.dumps(limited))
    monkeypatch.setattr(opened, "first_graphs_hash", None)
    assert limited.content_hash == again.content_hash == expected


def test_a_whole_file_needs_no_reading(open_file: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = open_file(12)
    monkeypatch.setattr(opened, "first_graphs_hash", None)
    assert len(whole.content_hash) == 64
    assert isinstance(whole.path, Path)
