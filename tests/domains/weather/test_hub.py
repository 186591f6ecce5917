"""A folder for a hub with states of the atmosphere: every state once, and the graph of all samples once."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.hashing import samples_hash
from graphbench.interop import hub, to_hf

pytest.importorskip("pyarrow")


@pytest.fixture
def written(load, tmp_path):
    splits = load()
    hub.write_hub(splits, tmp_path / "hub")
    return splits, tmp_path / "hub"


def test_states_come_back_with_the_same_bits(written):
    splits, folder = written
    again = hub.read_hub(folder, splits.card)
    for name in ("train", "val", "test"):
        expected = splits[name].samples
        assert len(again[name]) == len(expected) == splits[name].stored_graphs
        assert again[name].values["state"].dtype == np.float16
        assert samples_hash(again[name].arrays()) == samples_hash(expected.arrays())


def test_the_folder_is_a_source_of_the_loader(written, tmp_path):
    splits, folder = written
    name = splits.card.id
    again = graphbench.Loader(name, source=hub.hub_reader(name), folder=folder, root=tmp_path / "other").load()
    for split in ("train", "val", "test"):
        assert len(again[split]) == len(splits[split]) and again[split].content_hash == splits[split].content_hash
        for field in ("state", "change", "edge_index"):
            np.testing.assert_array_equal(again[split][1][field], splits[split][1][field])


def test_other_programs_find_the_graph_and_the_states(written):
    import pyarrow.parquet

    splits, folder = written
    graph = pyarrow.parquet.read_table(folder / "graph" / "graph.parquet").to_pylist()
    sample = splits.val[0]
    assert len(graph) == 1 and graph[0]["num_nodes"] == sample.num_nodes
    np.testing.assert_array_equal(graph[0]["edge_index"], sample.edge_index)
    np.testing.assert_array_equal(np.asarray(graph[0]["position"], np.float32), sample.position)
    rows = pyarrow.parquet.read_table(folder / "data" / "val.parquet").to_pylist()
    packed = splits.card.packed["state"]
    states = [np.asarray(row["state"], np.float32) * packed.scale + packed.offset for row in rows]
    np.testing.assert_allclose(states[0], sample.state[: len(states[0])], rtol=1e-6)
    change = states[splits.card.series.lead] - states[0]
    np.testing.assert_allclose(change, sample.change[: len(change)], rtol=1e-3, atol=1e-3)


def test_the_metadata_are_valid_and_describe_states(written):
    mlcroissant = pytest.importorskip("mlcroissant")
    splits, folder = written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
        assert not [*dataset.metadata.ctx.issues.errors, *dataset.metadata.ctx.issues.warnings]
        assert len(list(dataset.records("val"))) == splits.val.stored_graphs
        (shared,) = list(dataset.records("graph"))
    assert shared["graph/num_nodes"] == splits.val[0].num_nodes
    described = json.loads((folder / "croissant.json").read_text())
    fields = {part["@id"]: [field["name"] for field in part["field"]] for part in described["recordSet"]}
    assert "change" not in fields["val"] and fields["graph"][2:] == ["grid", "position", "relation", "geometry"]


def test_the_data_card_says_what_a_sample_is(written):
    _, folder = written
    text = (folder / "README.md").read_text()
    assert "One row per time: a state of the series." in text
    assert "its target is `change`, the change of `state` to the row 2 rows later, where `run` is the same." in text
    assert "in `graph/graph.parquet` with `grid`, `position`, `relation`, `geometry`." in text
    assert "`state` holds (value - offset) / scale; `packed` in `card.yaml`" in text


def test_what_is_no_whole_series_is_refused(load):
    splits = load()
    with pytest.raises(ArgumentError, match="use write_hub"):
        to_hf(splits.val)
    with pytest.raises(ArgumentError, match="exported whole"):
        list(hub.tables(splits.train[[0, 2]]))
