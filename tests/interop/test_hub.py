"""A folder for a hub: its metadata are valid Croissant for every card, and its files give the same arrays back."""

import json
import os
import re
import subprocess
import warnings
from dataclasses import replace
from importlib.util import find_spec

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphbench
from graphbench.catalog.names import catalog
from graphbench.cli import main
from graphbench.core.errors import ArgumentError, GraphBenchError, StoreError
from graphbench.data.arrays.hashing import samples_hash
from graphbench.interop import hub
from graphbench.interop.croissant import HubFile, croissant_of

NAMES = (
    "algoreas/mst_easy",
    "algoreas/flow_easy",
    "clutrr/gen_23",
    "circuits/converters_5",
    "clrs/bfs",
    "clrs_text/bfs",
)


def _problems(described, tmp_path):
    """Return what mlcroissant finds wrong in metadata."""
    mlcroissant = pytest.importorskip("mlcroissant")
    path = tmp_path / "croissant.json"
    path.write_text(json.dumps(described))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        issues = mlcroissant.Dataset(jsonld=str(path)).metadata.ctx.issues
    return [*issues.errors, *issues.warnings]


parquet = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pip install 'graphbench[hf]'")


@pytest.mark.parametrize("domain", sorted({card.domain for card in catalog().cards.values()}))
@pytest.mark.thorough
def test_the_metadata_of_every_card_are_valid(domain, tmp_path):
    for card in (card for card in catalog().cards.values() if card.domain == domain):
        files = [HubFile(f"data/{name}.parquet", name, spec.count, 1, "0" * 64) for name, spec in card.splits.items()]
        assert _problems(croissant_of(card, files, url="https://example.org"), tmp_path) == []


def test_wrong_metadata_are_found(tmp_path):
    described = croissant_of(graphbench.card("mst_easy"), [HubFile("data/val.parquet", "val", 1, 1, "0" * 64)])
    del described["recordSet"][0]["field"][0]["dataType"]
    with pytest.raises(Exception, match="dataType"):
        _problems(described, tmp_path)


@pytest.mark.parametrize("name", NAMES)
@parquet
def test_there_and_back_the_bytes_are_the_same(name, small, tmp_path):
    splits = small(name)
    hub.write_hub(splits, tmp_path / "hub", names=("train", "val", "test"))
    assert (tmp_path / "hub" / "card.yaml").read_bytes() == splits.card.path.read_bytes()
    again = hub.read_hub(tmp_path / "hub", splits.card)
    for split, samples in again.items():
        expected = replace(splits[split].samples, hints=splits[split].flat.hints)
        if splits.card.complete:  # no edges are stored, so their empty array has any type
            expected = replace(expected, edges=samples.edges)
        assert samples_hash(samples.arrays()) == samples_hash(expected.arrays())
    reader = hub.hub_reader(name)
    loaded = graphbench.Loader(name, source=reader, folder=tmp_path / "hub", root=tmp_path / "root").load()
    if not splits.card.hints:  # labels included
        assert loaded.val.content_hash == splits.val.content_hash
        return
    for name, values in loaded.val.flat.hints.arrays().items():  # in the types that the loader gives any reader
        np.testing.assert_array_equal(values, again["val"].hints.arrays()[name])


def test_other_programs_read_the_folder(small, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    splits = small("algoreas/mst_easy")
    hub.write_hub(splits, tmp_path, names=("val",))
    assert _problems(json.loads((tmp_path / "croissant.json").read_text()), tmp_path) == []
    rows = list(mlcroissant.Dataset(jsonld=str(tmp_path / "croissant.json")).records("val"))
    assert len(rows) == len(splits.val)
    data = splits.val[3]
    np.testing.assert_array_equal(np.stack(list(rows[3]["val/edge_index"])), data.edge_index)
    np.testing.assert_array_equal(rows[3]["val/weight"], data.weight)


def test_hugging_face_reads_the_folder(small, tmp_path):
    pytest.importorskip("datasets.features", reason="pip install 'graphbench[hf]'")
    import datasets

    splits = small("algoreas/mst_easy")
    hub.write_hub(splits, tmp_path / "hub")
    rows = datasets.load_dataset(str(tmp_path / "hub"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in rows.items()} == {name: len(splits[name]) for name in rows}
    assert rows["test"][1]["in_tree"] == splits.test[1].in_tree.int().tolist()


@parquet
def test_a_changed_file_is_refused(small, tmp_path):
    splits = small("algoreas/mst_easy")
    hub.write_hub(splits, tmp_path, names=("val",))
    file = tmp_path / "data" / "val.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match=r"val\.parquet has the SHA-256"):
        hub.read_hub(tmp_path, splits.card)
    metadata = tmp_path / "croissant.json"
    metadata.write_text(
        metadata.read_text().replace('"contentUrl": "data/val.parquet"', '"contentUrl": "../val.parquet"')
    )
    with pytest.raises(StoreError, match="no file of the folder"):
        hub.read_hub(tmp_path, splits.card)
    metadata.write_text("{}")
    with pytest.raises(GraphBenchError, match=r"croissant\.json"):
        hub.read_hub(tmp_path, splits.card)
    metadata.unlink()
    with pytest.raises(StoreError, match=r"has no croissant\.json"):
        hub.read_hub(tmp_path, splits.card)


@parquet
def test_nothing_half_written_remains(small, tmp_path):
    splits = small("algoreas/mst_easy")
    with pytest.raises(GraphBenchError, match="no split"):
        hub.write_hub(splits, tmp_path / "hub", names=("val", "nothing"))
    assert not (tmp_path / "hub").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(StoreError, match="not empty"):
        hub.write_hub(splits, tmp_path / "full")
    assert (tmp_path / "full" / "file").exists()
    splits.val.transform = lambda data: data
    try:
        with pytest.raises(ArgumentError, match="transform"):
            hub.write_hub(splits, tmp_path / "hub", names=("val",))
    finally:
        splits.val.transform = None


@parquet
def test_the_data_card_names_hashes_and_columns(small, tmp_path):
    splits = small("algoreas/mst_easy")
    hub.write_hub(splits, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("---\npretty_name")
    assert splits.test.content_hash[:16] in text
    assert "not whole splits" in text and f"--splits train,val,test --limit {len(splits.test)}" in text
    for feature in splits.card.stored_features:
        assert f"`{feature.name}`" in text


def test_the_data_card_of_whole_splits_has_trivial_scores():
    card = graphbench.card("mst_easy")
    files = [HubFile(f"data/{name}.parquet", name, card.splits[name].count, 1, "0" * 64) for name in ("val", "test")]
    text = hub.data_card(card, files, {"val": "a" * 64, "test": "b" * 64}, "0.2")
    assert re.search(r"The best trivial predictions have .*0\.\d+ on test", text)
    assert "--limit" not in text


@parquet
def test_the_command_writes_the_folder(tmp_path, capsys):
    place = ["--root", str(tmp_path / "root"), "-o", str(tmp_path / "hub"), "--url", "https://example.org/mst"]
    with pytest.raises(SystemExit) as end:
        main(["export", "mst_easy", "--format", "hub", "--limit", "20", *place])
    assert end.value.code == 0
    assert json.loads((tmp_path / "hub" / "croissant.json").read_text())["url"] == "https://example.org/mst"
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["export", "mst_easy", "--format", "hubb", "-o", str(tmp_path / "other")])
    assert "did you mean 'hub'" in capsys.readouterr().err


@parquet
def test_missing_labels_come_back(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    edges = torch.stack([torch.arange(29), torch.arange(1, 30)])
    graph = Data(x=torch.rand(30, 2), edge_index=edges, y=torch.arange(30) % 2)
    graphbench.from_pyg("mine/nodes", [graph], target="y", directed=True)
    splits = graphbench.Loader("mine/nodes", root=tmp_path / "data").load()
    hub.write_hub(splits, tmp_path / "hub")
    place = {"source": hub.hub_reader("mine/nodes"), "folder": tmp_path / "hub", "root": tmp_path / "other"}
    assert graphbench.Loader("mine/nodes", **place).load().test.content_hash == splits.test.content_hash
    text = (tmp_path / "hub" / "README.md").read_text()
    assert "cannot be generated again" in text and "-1 is no value" in text


@parquet
def test_a_part_of_another_draw_says_how_to_make_it(tmp_path):
    splits = graphbench.Loader("mst_easy", root=tmp_path / "data", limit=9, data_seed=3, workers=1).load(())
    hub.write_hub(splits, str(tmp_path / "hub"), names=("val",))
    text = (tmp_path / "hub" / "README.md").read_text()
    assert "version 1, draw 3;" in text and "trivial" not in text
    assert "graphbench generate algoreas/mst_easy --splits val --data-seed 3 --limit 9" in text
    assert len(hub.read_hub(str(tmp_path / "hub"), "mst_easy")["val"]) == 9


@parquet
def test_two_readers_are_two_sources(small, tmp_path):
    loaded = {}
    for name in ("algoreas/mst_easy", "algoreas/flow_easy"):
        hub.write_hub(small(name), tmp_path / name)
        place = {"source": hub.hub_reader(name), "folder": tmp_path / name, "root": tmp_path / "root"}
        loaded[name] = graphbench.Loader(name, **place).load(())
    for name, splits in loaded.items():
        assert splits.val.content_hash == small(name).val.content_hash


def test_a_group_is_no_dataset(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["export", "algoreas_easy", "--format", "hub", "-o", str(tmp_path / "hub")])
    assert end.value.code == 2
    assert "fault of graphbench" not in capsys.readouterr().err


@parquet
def test_another_machine_reads_own_graphs_as_the_data_card_says(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    graphs = [nx.cycle_graph(3 + k) for k in range(20)]
    for k, graph in enumerate(graphs):
        graph.graph["y"] = k % 2
        nx.set_node_attributes(graph, {node: (node * k) % 5 for node in graph}, "a")
    made = graphbench.from_networkx("mine/rings", graphs)
    splits = graphbench.Loader("mine/rings", root=tmp_path / "data").load()
    folder = tmp_path / "hub"
    hub.write_hub(splits, folder)
    script = re.search(r"```console\n(export GRAPHBENCH_OWN.*?)```", (folder / "README.md").read_text(), re.DOTALL)[1]
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "GRAPHBENCH_OWN": ""}
    subprocess.run(["bash", "-ec", script], cwd=folder, env=environment, check=True)
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "home" / "graphbench_own"))
    there = graphbench.Loader(
        "mine/rings", source=hub.hub_reader("mine/rings"), folder=folder, root=tmp_path / "there"
    ).load()
    assert [getattr(there, name).content_hash for name in ("train", "val", "test")] == [
        getattr(splits, name).content_hash for name in ("train", "val", "test")
    ]
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    graphbench.from_networkx("mine/rings", graphs[:15], replace=True)
    with pytest.raises(StoreError, match=r"version 1.0.0 of the dataset, the card of mine/rings has version 2"):
        graphbench.Loader(
            "mine/rings", source=hub.hub_reader("mine/rings"), folder=folder, root=tmp_path / "data"
        ).load()
    assert made.card.version == 1
