"""Export to ``datasets`` of Hugging Face and back: the same arrays, the same graphs, no object per graph."""

import numpy as np
import pytest
import torch

import graphbench
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.texts import Texts
from graphbench.interop import huggingface

pytest.importorskip("datasets.features", reason="pip install 'graphbench[hf]'")  # our folder datasets/ has none
datasets = pytest.importorskip("datasets")

NAMES = (
    "algoreas/mst_easy",
    "algoreas/topological_sort_easy",
    "algoreas/flow_easy",
    "clutrr/gen_23",
    "circuits/converters_5",
    "clrs/bfs",
)


def assert_same(found, expected, card):
    assert np.array_equal(found.num_nodes, expected.num_nodes) and found.num_nodes.dtype == np.int64
    assert np.array_equal(found.num_edges, expected.num_edges)
    if not card.complete:
        assert np.array_equal(found.edges, expected.edges) and found.edges.dtype == expected.edges.dtype
    assert set(found.values) == {f.name for f in card.stored_features}
    for name, value in found.values.items():
        other = expected.values[name]
        if isinstance(value, Texts):
            assert value.strings() == other.strings()
        else:
            assert value.dtype == other.dtype and value.shape == other.shape, name
            assert value.tobytes() == np.ascontiguousarray(other).tobytes(), name


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back_bit_for_bit(name, small, tmp_path):
    split = small(name).train
    exported = huggingface.to_hf(split, hints=False)
    assert len(exported) == len(split) and exported.column_names[0] == "num_nodes"
    assert_same(huggingface.from_hf(exported, name), split.samples, split.card)
    exported.save_to_disk(str(tmp_path / "saved"))
    assert_same(huggingface.from_hf(datasets.load_from_disk(str(tmp_path / "saved")), name), split.samples, split.card)
    exported.to_parquet(str(tmp_path / "rows.parquet"))
    again = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path / "cache"))
    assert_same(huggingface.from_hf(again, name), split.samples, split.card)


@pytest.mark.parametrize("name", NAMES)
def test_rows_hold_what_data_holds(name, small):
    split = small(name).train
    row, data = huggingface.to_hf(split, hints=False)[2], split[2]
    assert row["num_nodes"] == data.num_nodes
    if not split.card.complete:
        assert row["edge_index"] == data.edge_index.tolist()
    for feature in split.card.stored_features:
        value = data[feature.name]
        value = value.tolist() if isinstance(value, torch.Tensor) else value
        value = value[0] if feature.location == "graph" and isinstance(value, list) else value
        assert np.array_equal(np.asarray(row[feature.name], dtype=object), np.asarray(value, dtype=object)) or (
            np.allclose(row[feature.name], value, rtol=1e-6)  # a float64 of the store is a float32 in ``Data``
        ), feature.name


def test_the_description_says_what_every_column_means(small):
    split = small("algoreas/mst_easy").train
    first, *lines = huggingface.to_hf(split).info.description.splitlines()
    assert split.card.summary in first
    assert lines == [f"{feature.name}: {feature.meaning}" for feature in split.card.stored_features]


def test_selections_and_rows_in_another_order(small):
    split = small("algoreas/mst_easy").train
    card, chosen = split.card, np.array([7, 3, 11, 20])
    expected = split.samples.take(card.stored_schema, chosen)
    assert_same(huggingface.from_hf(huggingface.to_hf(split[torch.from_numpy(chosen)]), card), expected, card)
    assert_same(huggingface.from_hf(huggingface.to_hf(split).select(chosen), card), expected, card)
    assert_same(
        huggingface.from_hf(huggingface.to_hf(split).select(range(5, 9)), card),
        split.samples.part(card.stored_schema, 5, 9),
        card,
    )
    shuffled = huggingface.to_hf(split).add_column("number", list(range(len(split)))).shuffle(seed=1)
    assert_same(
        huggingface.from_hf(shuffled, split), split.samples.take(card.stored_schema, np.array(shuffled["number"])), card
    )


def test_parts_in_a_file_are_read_memory_mapped(small, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "_ROWS", 7)
    split = small("clutrr/gen_23").train
    exported = huggingface.to_hf(split, file=tmp_path / "graphs.arrow")
    assert exported.cache_files and len(exported) == len(split)
    assert_same(huggingface.from_hf(exported, split), split.samples, split.card)


def test_parts_end_by_their_values(small, monkeypatch, tmp_path):
    """A part has few graphs where graphs are large, at least one, and a broken export leaves no file."""
    split = small("algoreas/mst_easy").train
    whole = huggingface.to_hf(split)
    monkeypatch.setattr(huggingface, "_PART", 1)
    table = huggingface.to_hf(split[::-1])
    assert table.data.column("num_nodes").num_chunks == len(split)
    assert table[0] == whole[len(split) - 1]
    monkeypatch.setattr(huggingface, "_ELEMENTS", 1)
    with pytest.raises(ArgumentError, match=r"export fewer at once, split\[:100\]"):
        huggingface.to_hf(split, file=tmp_path / "graphs.arrow")
    assert not list(tmp_path.iterdir())


def test_arrays_are_not_copied(small):
    split = small("algoreas/topological_sort_easy").train
    (feature,) = split.card.outputs
    stored = split.samples.values[feature.name]
    found = huggingface.to_hf(split).data.column(feature.name).chunk(0).flatten().to_numpy()
    assert np.shares_memory(found, stored)


def test_the_loader_reads_what_was_saved(small, tmp_path):
    name = "algoreas/mst_easy"
    splits = small(name)
    whole = datasets.DatasetDict({split: huggingface.to_hf(splits[split]) for split in ("train", "val", "test")})
    whole.save_to_disk(str(tmp_path / "saved"))
    options = {"source": huggingface.hf_reader(name), "folder": tmp_path / "saved", "root": tmp_path / "root"}
    read = graphbench.Loader(name, **options).load()
    for split in ("train", "val", "test"):
        assert len(read[split]) == len(splits[split])
        for mine, other in zip(read[split], splits[split], strict=True):
            assert all(
                torch.equal(mine[key], other[key]) for key in ("edge_index", "weight", "in_tree", "y", "edge_attr")
            )


def test_datasets_as_other_libraries_take_them(small):
    split = small("algoreas/mst_easy").train
    row = huggingface.to_hf(split).with_format("torch")[0]
    assert row["weight"].dtype == torch.float32 and torch.equal(row["weight"], split[0].weight)
    assert torch.equal(torch.as_tensor(row["edge_index"]), split[0].edge_index)


def test_wrong_input_is_refused(small):
    split = small("algoreas/mst_easy").train
    with pytest.raises(ArgumentError, match=r"clrs/bfs has hints, .* give hints=False"):
        huggingface.to_hf(small("clrs/bfs").train)
    changed = graphbench.Loader("mst_easy", transform=lambda data: data, root=small.root, limit=40).load(()).train
    with pytest.raises(ArgumentError, match="transform or pre_transform"):
        huggingface.to_hf(changed)
    exported = huggingface.to_hf(split)
    with pytest.raises(ArgumentError, match="columns weight of algoreas/mst_easy"):
        huggingface.from_hf(exported.remove_columns("weight"), "mst_easy")

    def one_way(row):
        row["edge_index"] = [row["edge_index"][0][1:], row["edge_index"][1][1:]]
        return row

    with pytest.raises(ArgumentError, match="two directions of an edge"):
        huggingface.from_hf(exported.select([0, 1]).map(one_way), "mst_easy")

    def short(row):
        row["weight"] = row["weight"][:-1]
        return row

    with pytest.raises(ArgumentError, match=r"row 0.*\d+ values of weight"):
        huggingface.from_hf(exported.map(short), "mst_easy")
