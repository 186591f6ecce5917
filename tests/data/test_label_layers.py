"""Labels of several labellers, recorded outcomes in tables, and representations of graphs."""

from __future__ import annotations

import json
import lzma
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from pydantic import BaseModel, ConfigDict

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family
from graphbench.catalog.features import Stage
from graphbench.catalog.names import catalog
from graphbench.cli.app import main
from graphbench.core.errors import CardError, GenerationError, StoreError, UnknownDataset
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.build.label_export import import_tables, recorded_tables
from graphbench.data.build.label_tables import LabelTable, read_tables, write_tables
from graphbench.data.components.domain import find, unregister
from graphbench.data.components.generators import Labeller, Recorded
from graphbench.data.components.representations import Representation
from graphbench.data.store.layout import Manifest, label_folder
from graphbench.verification import verify
from graphbench.verification.measuring import measure

CONTENT: dict[str, Any] = {
    "version": 1,
    "title": "Layers",
    "summary": "Graphs with the labels of two labellers.",
    "generator": "layers.graphs",
    "features": {},
    "labels": {
        "layers.size": {
            "effort": {"factor": 3},
            "features": {
                "extent": ["meta", "graph", "scalar"],
                "parity": ["meta", "graph", "categorical(2)"],
                "size_failed": ["meta", "graph", "mask"],
            },
        },
        "layers.degree": {
            "features": {"degree": ["meta", "graph", "scalar(2)"], "degree_failed": ["meta", "graph", "mask"]}
        },
        "layers.nodes": {"features": {"own": ["meta", "node", "scalar"], "own_failed": ["meta", "graph", "mask"]}},
    },
    "tasks": {
        "both": {
            "title": "t",
            "summary": "s",
            "labels": ["layers.size", "layers.degree"],
            "inputs": ["degree"],
            "outputs": ["extent"],
            "metrics": {"primary": "mae"},
        },
        "one": {
            "title": "t",
            "summary": "s",
            "labels": "layers.size",
            "outputs": ["extent"],
            "metrics": {"primary": "mae"},
        },
        "nodes": {
            "title": "t",
            "summary": "s",
            "labels": "layers.nodes",
            "outputs": ["own"],
            "metrics": {"primary": "mae"},
        },
    },
    "representations": {
        "complement": {
            "derived_by": "layers.complement",
            "title": "pairs that are not joined",
            "features": {"rank": ["input", "node", "scalar"]},
        }
    },
    "parameters": {"nodes": [9, 14], "p": 0.4},
    "splits": {"train": {"count": 20}, "val": {"count": 6, "like": "train"}, "test": {"count": 6, "like": "train"}},
    "licence": "CC0",
    "source": {"paper": "none"},
}


class Factor(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    factor: int = 1


class Calls:
    measured = 0
    wrong = False


def key(graph: Samples) -> str:
    return f"{int(graph.num_nodes[0])}-{graph.edges.astype(np.int64).tobytes().hex()}"


def measured(effort: Factor, number: int, graph: Samples) -> Mapping[str, int]:
    Calls.measured += 1
    return {"edges": int(graph.num_edges[0]), "seconds": Calls.measured}


def size_label(effort: Factor, outcome: Mapping[str, int]) -> Mapping[str, Any]:
    return {"extent": effort.factor * outcome["edges"], "parity": outcome["edges"] % 2}


def degree_label(effort: Factor, number: int, graph: Samples) -> Mapping[str, Any]:
    return {"degree": np.array([2 * graph.num_edges[0] / graph.num_nodes[0], graph.num_nodes[0]], np.float32)}


def agreement(values: Mapping[str, Any]) -> list[str]:
    assert len({len(column) for column in values.values()}) == 1, "labels of different graphs are compared"
    return ["graph 3: sizes differ"] if Calls.wrong else []


def complement(samples: Samples) -> Samples:
    parts = []
    for i in range(len(samples)):
        n = int(samples.num_nodes[i])
        joined = {tuple(edge) for edge in samples.edges[samples.edge_ptr[i] : samples.edge_ptr[i + 1]].tolist()}
        own = [(u, v) for u in range(n) for v in range(u + 1, n) if (u, v) not in joined]
        parts.append(np.array(own, np.int64).reshape(-1, 2))
    ranks = np.concatenate([np.arange(n, dtype=np.float32) for n in samples.num_nodes.tolist()])
    counts = np.array([len(part) for part in parts], np.int64)
    return Samples(samples.num_nodes, counts, np.concatenate(parts), {"rank": ranks})


def labeller(name: str, label: Any, recorded: Recorded | None = None) -> Labeller:
    return Labeller(
        name=f"layers.{name}",
        version=1,
        effort=Factor,
        label=label,
        check=lambda graph, values: [],
        failed=f"{name}_failed" if name != "nodes" else "own_failed",
        statistics=lambda samples: {},
        baselines=lambda samples: {},
        shard_size=lambda effort: 7,
        recorded=recorded,
        agreement=agreement,
    )


@pytest.fixture(autouse=True)
def domain() -> Iterator[None]:
    Calls.measured, Calls.wrong = 0, False
    own = replace(find("generator", "co.er"), name="layers.graphs")
    labellers = {
        "size": labeller("size", None, Recorded(("edges", "seconds"), key, measured, size_label)),
        "degree": labeller("degree", degree_label),
        "nodes": labeller("nodes", lambda effort, number, graph: {"own": np.arange(graph.num_nodes[0])}),
    }
    representations = {"complement": Representation("layers.complement", 1, complement)}
    graphbench.register_domain(
        graphbench.Domain("layers", generators={"graphs": own}, labellers=labellers, representations=representations)
    )
    yield
    unregister("layers")


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Card:
    path = tmp_path / "cards" / "layers" / "toy.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(CONTENT, sort_keys=False))
    (found,) = load_family(path)
    monkeypatch.setitem(catalog().cards, found.id, found)
    return found


def test_each_labeller_has_files_of_its_own_that_tasks_share(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    measured = Calls.measured
    assert measured >= 20
    assert ensure_split(card.with_task("one"), "train", tmp_path, workers=1) == path
    assert Calls.measured == measured, "the labels of the first task were not used"
    names = {folder.name.split("-")[1] for folder in path.parent.glob("labels-*")}
    assert names == {"size", "degree"}
    both, one = (GraphDataset(own, "train", path) for own in (card, card.with_task("one")))
    assert len(both.label_paths) == 2 and len(one.label_paths) == 1
    assert torch.equal(both.y, one.y)
    assert both.content_hash != one.content_hash
    data = both[3]
    assert data.extent.item() == 3 * data.edge_index.shape[1] / 2
    assert data.degree.tolist() == [pytest.approx([data.edge_index.shape[1] / data.num_nodes, data.num_nodes])]


def test_labels_that_a_task_names_are_inputs(card: Card) -> None:
    assert {f.name for f in card.inputs} == {"degree"} and {f.name for f in card.outputs} == {"extent"}
    assert card.with_task("one").inputs == ()
    assert card.labellers == ("layers.size", "layers.degree") and set(card.label_schemas) >= set(card.labellers)
    assert all(f.stage is Stage.META for schema in card.label_schemas.values() for f in schema.features)


def test_samples_in_memory_are_those_of_the_files(card: Card, tmp_path: Path) -> None:
    drawn = draw_samples(card, "val", range(6))
    stored = GraphDataset(card, "val", ensure_split(card, "val", tmp_path, workers=1))
    for name in ("extent", "parity", "degree"):
        assert np.array_equal(drawn.values[name], stored.flat.values[name])


def test_verification_and_measuring_know_all_labellers(card: Card, tmp_path: Path) -> None:
    ensure_split(card, "train", tmp_path, workers=1)
    outcome = verify(card.id, root=tmp_path, progress=False)
    assert outcome.passed, outcome.failures
    checks = {row.check for row in outcome.rows}
    assert {"first labels, layers.size", "stored labels, layers.degree"} <= checks
    found = measure(card, progress=False)
    assert set(found.labels) == {"layers.size", "layers.degree", "layers.nodes"}
    assert set(found.tasks) == {"both", "one", "nodes"} and found.tasks["both"].floor == found.tasks["one"].floor


def test_what_is_on_this_machine_counts_the_labels_of_all_labellers(
    card: Card, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ensure_split(card.with_task("one"), "train", tmp_path, workers=1)
    main_ok("info", "layers/toy", "--root", str(tmp_path), "--json")
    assert "labels" not in json.loads(capsys.readouterr().out)["files"]["train"], "one labeller is missing"
    ensure_split(card, "train", tmp_path, workers=1)
    main_ok("info", "layers/toy", "--root", str(tmp_path), "--json")
    labels = json.loads(capsys.readouterr().out)["files"]["train"]["labels"]
    assert [own["count"] for own in labels] == [20, 20]
    sizes = [own.stat().st_size for own in (path, *path.parent.glob("labels-*/train.h5"))]
    main_ok("list", "layers/toy", "--root", str(tmp_path), "--json")
    assert len(sizes) == 3 and json.loads(capsys.readouterr().out)
    main_ok("list", "layers/toy", "--root", str(tmp_path))
    main_ok("info", "layers/toy@complement", "--root", str(tmp_path))
    shown = capsys.readouterr().out
    assert "20 graphs" in shown and "20 labelled" in shown and "layers/toy@complement" in shown
    main_ok("generate", "layers/toy", "--splits", "train", "--root", str(tmp_path), "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert len(row["labels"]) == 2 and row["failed"] == 0


def test_files_of_labels_may_hold_different_numbers_of_graphs(card: Card, tmp_path: Path) -> None:
    ensure_split(card.with_task("one"), "train", tmp_path, workers=1)
    path = ensure_split(card, "train", tmp_path, 5, workers=1)
    dataset = GraphDataset(card, "train", path, limit=5)
    assert [own.name for own in dataset.label_paths] == ["train.h5", "train-first5.h5"] and len(dataset) == 5


def test_labels_that_contradict_each_other_are_refused(card: Card, tmp_path: Path) -> None:
    Calls.wrong = True
    ensure_split(card.with_task("one"), "train", tmp_path, workers=1)
    with pytest.raises(GenerationError, match="layers/toy:both train: graph 3"):
        ensure_split(card, "train", tmp_path, workers=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["layers.size", "layers.degree", "layers.none"]}, "no labels 'layers.none'"),
        ({"inputs": ["height"]}, r"inputs \['height'\]"),
        ({"inputs": ["extent"]}, r"\['extent'\] are inputs and outputs"),
        ({"labels": []}, "labels"),
    ],
)
def test_tasks_that_do_not_fit_their_labels_are_refused(changes: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "layers" / "toy.yaml"
    path.parent.mkdir()
    tasks = {**CONTENT["tasks"], "both": {**CONTENT["tasks"]["both"], **changes}}
    path.write_text(yaml.safe_dump({**CONTENT, "tasks": tasks}))
    with pytest.raises(CardError, match=message):
        load_family(path)


# ------------------------------------------------------------------------------------------------------- tables


def exported(card: Card, root: Path) -> LabelTable:
    (table,) = recorded_tables([card], root)
    return table


def test_exported_outcomes_replace_the_work_elsewhere(card: Card, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    path = ensure_split(card, "train", first, workers=1)
    main_ok("labels", "export", card.id, "--output", str(tmp_path / "out.csv.xz"), "--root", str(first))
    main_ok("labels", "import", str(tmp_path / "out.csv.xz"), "--root", str(second))
    Calls.measured = 100
    again = ensure_split(card, "train", second, workers=1)
    assert Calls.measured == 100, "outcomes of the table were measured again"
    entries = [Manifest(label_folder(card, card.labellers[0], own.parent)).entry("train.h5") for own in (path, again)]
    assert entries[0]["content"] == entries[1]["content"] and entries[0]["outcomes"] == entries[1]["outcomes"]
    ensure_split(card, "test", second, workers=1)
    assert Calls.measured >= 106, "graphs that no table holds were not measured"


def test_a_table_of_another_effort_is_not_used(card: Card, tmp_path: Path) -> None:
    ensure_split(card, "train", tmp_path / "a", workers=1)
    table = exported(card, tmp_path / "a")
    other = LabelTable(table.head.model_copy(update={"effort": {"factor": 4}}), table.rows)
    write_tables([other], tmp_path / "other.csv.xz")
    main_ok("labels", "import", str(tmp_path / "other.csv.xz"), "--root", str(tmp_path / "b"))
    Calls.measured = 0
    ensure_split(card, "train", tmp_path / "b", workers=1)
    assert Calls.measured >= 20


def test_imports_add_to_each_other_and_old_rows_stay(card: Card, tmp_path: Path, capsys: Any) -> None:
    ensure_split(card, "train", tmp_path / "a", workers=1)
    table = exported(card, tmp_path / "a")
    rows = sorted(table.rows.items())
    same = (rows[0][0], (rows[0][1][0], 99))  # the label depends on the first number alone
    for i, own in enumerate((rows[:5], [same, *rows[5:7]])):
        write_tables([LabelTable(table.head, dict(own))], tmp_path / f"{i}.csv.xz")
        capsys.readouterr()
        main_ok("labels", "import", str(tmp_path / f"{i}.csv.xz"), "--root", str(tmp_path / "b"), "--json")
        assert json.loads(capsys.readouterr().out)[0]["new"] == (5, 2)[i]
    (found,) = read_tables(next((tmp_path / "b" / "labels").iterdir()))
    assert dict(found.rows) == dict(rows[:7])


def test_impossible_imports_are_refused_whole(card: Card, tmp_path: Path) -> None:
    ensure_split(card, "train", tmp_path / "a", workers=1)
    table = exported(card, tmp_path / "a")
    (first, own), (second, other) = sorted(table.rows.items())[:2]
    write_tables([LabelTable(table.head, {first: own})], tmp_path / "good.csv.xz")
    (found,) = import_tables(tmp_path / "good.csv.xz", tmp_path / "b")
    assert found["datasets"] == ["layers/toy:both", "layers/toy:one"]
    (place,) = (tmp_path / "b" / "labels").iterdir()
    before = place.read_bytes()
    good = LabelTable(table.head, {second: other})
    for changes, rows, message in (
        ({}, {first: (own[0] + 1, own[1])}, "contradicts the recorded one"),
        ({"effort": {"factor": 3, "x": 1}}, {}, "'x'"),
        ({"version": 2}, {}, "it is of version 2 with edges, seconds, not of version 1 with edges, seconds"),
        ({"columns": ("edges", "hours")}, {}, "edges, hours, not of version 1 with edges, seconds"),
        ({"labeller": "layers.sise"}, {}, "sise"),
        ({"labeller": "layers.degree"}, {}, "no labels of this labeller are recorded"),
    ):
        write_tables([good, LabelTable(table.head.model_copy(update=changes), rows)], tmp_path / "bad.csv.xz")
        with pytest.raises(StoreError, match=message):
            import_tables(tmp_path / "bad.csv.xz", tmp_path / "b")
    assert [place] == list((tmp_path / "b" / "labels").iterdir()) and place.read_bytes() == before
    unread = LabelTable(table.head.model_copy(update={"effort": {"factor": 5}}), {first: own})
    write_tables([unread], tmp_path / "unread.csv.xz")
    assert import_tables(tmp_path / "unread.csv.xz", tmp_path / "b")[0]["datasets"] == []


def test_files_of_tables_are_equal_bytes_and_damaged_ones_refused(card: Card, tmp_path: Path) -> None:
    ensure_split(card, "train", tmp_path, workers=1)
    table = exported(card, tmp_path)
    write_tables([table, table], tmp_path / "a.csv.xz")
    write_tables([table, LabelTable(table.head, dict(reversed(table.rows.items())))], tmp_path / "b.csv.xz")
    assert (tmp_path / "a.csv.xz").read_bytes() == (tmp_path / "b.csv.xz").read_bytes()
    assert read_tables(tmp_path / "a.csv.xz")[1].rows == table.rows
    text = lzma.decompress((tmp_path / "a.csv.xz").read_bytes())
    for content, message in (
        (b"not compressed", "is no xz file, or a damaged one"),
        (lzma.compress(text)[:-20], "cannot be read"),
        (lzma.compress(b"key,1\n" + text), "line 1: 'key,1' is no row"),
        (lzma.compress(text.replace(b'"version"', b'"versoin"')), "versoin"),
        (lzma.compress(text + b"abc,1\n"), "'abc,1' is no row"),
        (lzma.compress(text + b"abc,1,x\n"), "'abc,1,x' holds other than whole numbers"),
        (lzma.compress(text + b"abc,1,2\nabc,1,2\n"), "the key abc is in the table twice"),
        (lzma.compress(b""), "holds no table of labels"),
    ):
        (tmp_path / "c.csv.xz").write_bytes(content)
        with pytest.raises(StoreError, match=message):
            read_tables(tmp_path / "c.csv.xz")


def test_nothing_to_export_is_an_error(card: Card, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="labels of layers/toy:both whose outcomes"):
        recorded_tables([card], tmp_path)


def main_ok(*words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    assert caught.value.code == 0


# ------------------------------------------------------------------------------------------------ representations


def test_a_view_has_other_graphs_and_the_same_labels(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    representation = card.with_representation("complement")
    assert representation.address == "layers/toy:both@complement"
    assert ensure_split(representation, "train", tmp_path, workers=1) == path
    stored, represented = GraphDataset(card, "train", path), GraphDataset(representation, "train", path)
    assert stored.content_hash != represented.content_hash and stored.data_fingerprint != represented.data_fingerprint
    assert torch.equal(stored.y, represented.y)
    for i in (0, 7, 19):
        one, other = stored[i], represented[i]
        n = one.num_nodes
        assert other.num_nodes == n and one.num_edges + other.num_edges == n * (n - 1)
        assert other["rank"].tolist() == list(range(n)) and torch.equal(one.degree, other.degree)
    for chosen in (slice(2, 9), np.array([11, 0, 5])):
        batch = represented.make_batch(chosen)
        parts = [represented[i] for i in (range(2, 9) if isinstance(chosen, slice) else chosen.tolist())]
        assert batch.num_graphs == len(parts)
        assert torch.equal(batch.x, torch.cat([part.x for part in parts]))
        assert batch.num_edges == sum(part.num_edges for part in parts)
    assert sum(batch.num_graphs for batch in represented[3:].batches(4, shuffle=True)) == 17
    again = pickle.loads(pickle.dumps(represented))
    assert torch.equal(again[2].edge_index, represented[2].edge_index)


def test_views_are_addressed_and_unknown_ones_refused(card: Card, tmp_path: Path) -> None:
    splits = graphbench.Loader("layers/toy:one@complement", root=tmp_path, workers=1).load(())
    assert splits.card.address == "layers/toy:one@complement" and splits.card.representation == "complement"
    assert graphbench.list_datasets("layers/toy@complement") == ["layers/toy@complement"]
    assert catalog().card("layers/toy:one@complement").stored_schema == card.with_task("one").sample_schema
    with pytest.raises(UnknownDataset, match=r"representation 'complemen'.*'complement'"):
        graphbench.card("layers/toy:one@complemen")
    with pytest.raises(UnknownDataset, match="it has none"):
        graphbench.card("mst_easy@vg")
    with pytest.raises(CardError, match="the labels own belong to nodes or edges"):
        graphbench.card("layers/toy:nodes@complement")


def test_a_view_that_lacks_a_feature_is_refused(card: Card, tmp_path: Path) -> None:
    path = ensure_split(card, "train", tmp_path, workers=1)
    unregister("layers")
    representations = {
        "complement": Representation("layers.complement", 1, lambda samples: replace(complement(samples), values={}))
    }
    graphbench.register_domain(
        graphbench.Domain(
            "layers",
            representations=representations,
            labellers={"size": labeller("size", None), "degree": labeller("degree", degree_label)},
            generators={"graphs": replace(find("generator", "co.er"), name="layers.graphs")},
        )
    )
    with pytest.raises(CardError, match=r"layers\.complement does not give rank"):
        GraphDataset(card.with_representation("complement"), "train", path)[0]


def test_a_file_may_be_like_another(tmp_path: Path) -> None:
    folder = tmp_path / "layers"
    folder.mkdir()
    (folder / "toy.yaml").write_text(yaml.safe_dump(CONTENT))
    (folder / "other.yaml").write_text("like: toy\ntitle: Other\nsplits: {train: {count: 7}}\n")
    (card,) = load_family(folder / "other.yaml")
    assert (card.id, card.title, card.splits["train"].count, card.splits["val"].count) == (
        "layers/other",
        "Other",
        7,
        6,
    )
    for content, message in (("like: none\n", "no file"), ("like: other\n", "circle"), ("like: [1]\n", "no file")):
        (folder / "other.yaml").write_text(content)
        with pytest.raises(CardError, match=message):
            load_family(folder / "other.yaml")
