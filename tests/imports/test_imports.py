"""Own graphs become datasets: arrays come back unchanged, types, splits and leakage are found, wrong input is named."""

from __future__ import annotations

import csv
import gzip
import json
import re
from datetime import UTC, date, datetime, timedelta, timezone

import networkx as nx
import numpy as np
import pytest
import torch
import yaml
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.catalog.names import list_datasets
from graphbench.core.errors import ArgumentError, DataImportError, StoreError, UnknownDataset
from graphbench.imports.dataset import remove
from graphbench.imports.splits import SplitRule, divided
from graphbench.verification.verify import verify

from .conftest import molecule


def edges_of(data):
    return {tuple(pair) for pair in data.edge_index.T.tolist()}


def test_graphs_come_back_with_their_values_and_splits(molecules):
    made = graphbench.from_pyg("mine/toy", train=molecules[:60], val=molecules[60:70], test=molecules[70:])
    assert repr(made) == "Imported('mine/toy'; train 60, val 10, test 10; target: graph mask; f1)"
    assert [f"{f.name} {f.type_name}" for f in made.card.features] == [
        "node_features_0 categorical(4)",
        "node_features_1 categorical(4)",
        "edge_features categorical(3)",
        "target mask",
    ]
    assert not made.card.directed
    assert "left out: 'group'" in made.notes[0]
    splits = graphbench.Loader("mine/toy").load()
    for i, data in enumerate(splits.test):
        given = molecules[70 + i]
        assert edges_of(data) == edges_of(given) and data.num_nodes == given.num_nodes
        assert torch.equal(torch.stack([data.node_features_0, data.node_features_1], 1), given.x)
        assert data.target.item() == given.y.item()
        kinds = dict(zip(map(tuple, given.edge_index.T.tolist()), given.edge_attr.tolist(), strict=True))
        pairs = map(tuple, data.edge_index.T.tolist())
        assert [kinds[pair] for pair in pairs] == data.edge_features.tolist()


@pytest.mark.thorough
def test_everything_else_works_with_the_dataset(molecules, tmp_path):
    graphbench.from_pyg("mine/toy", molecules, metric="roc_auc", also=["accuracy"])
    assert "mine/toy" in list_datasets("mine/*") and graphbench.card("mine/toy").floor["test"]["random"].keys() == {
        "roc_auc", "accuracy",
    }  # fmt: skip
    outcome = verify("mine/toy", progress=False)
    assert outcome.passed and sum(row.check == "leakage" for row in outcome.rows) == 3
    options = {"evaluate": ["val", "test"], "progress": False}
    result = graphbench.train("mine/toy", "gin_small", steps=30, output=tmp_path / "gin", **options)
    assert result.record.model == "gin_small" and 0 <= result.scores["test"]["roc_auc"] <= 1
    forest = graphbench.train("mine/toy", "random_forest", output=tmp_path / "forest", **options)
    assert len(forest.scores["test"].replicates or ()) in (0, 200)
    again = graphbench.evaluate_run(tmp_path / "gin", ["test"])
    assert again["test"] == result.scores["test"]


def test_a_rule_divides_and_keeps_equal_graphs_together(molecules):
    made = graphbench.from_pyg("mine/toy", [*molecules, *molecules[:30]], seed=3)
    assert any("30 graphs equal others" in note for note in made.notes)
    assert sum(spec.count for spec in made.card.splits.values()) == 110 and not made.card.overlapping
    made = graphbench.from_pyg("mine/groups", molecules, split="group", by="group")
    loaded = graphbench.from_pyg("mine/kept", molecules, split="group", by="group", meta=["group"])
    splits = graphbench.Loader(loaded.name).load()
    groups = [{int(data.group_value if "group_value" in data else data.group) for data in splits[s]} for s in splits]
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    made = graphbench.from_pyg("mine/sizes", molecules, split="size")
    splits = graphbench.Loader(made.name).load()
    sizes = [[data.num_nodes for data in splits[s]] for s in ("train", "val", "test")]
    assert max(sizes[0]) < min(sizes[1]) and max(sizes[1]) < min(sizes[2])


def test_folds_are_datasets_of_one_family(molecules):
    made = graphbench.from_pyg("mine/toy", molecules, folds=4)
    assert [card.id for card in made.cards] == [f"mine/toy_fold{k}" for k in range(4)] == list_datasets("mine/toy")
    tests = [graphbench.Loader(card.id).load().test for card in made.cards]
    assert sum(map(len, tests)) == 80
    assert verify("mine/toy_fold2", progress=False).passed


@pytest.mark.parametrize("how", ["random", "group"])
def test_folds_test_every_sample_once(how):
    groups = np.arange(100) // 7
    folds = divided(SplitRule(how, folds=5), 100, groups)
    assert sorted(np.concatenate([fold["test"] for fold in folds]).tolist()) == list(range(100))
    for fold in folds:
        assert sorted(np.concatenate(list(fold.values())).tolist()) == list(range(100))
        of_split = [set(groups[numbers]) for numbers in fold.values()]
        assert not of_split[0] & of_split[1] and not of_split[0] & of_split[2] and not of_split[1] & of_split[2]


def test_time_splits_do_not_look_ahead():
    times = np.random.default_rng(0).integers(0, 40, 300)
    (fold,) = divided(SplitRule("time"), 300, times)
    assert times[fold["train"]].max() < times[fold["val"]].min() <= times[fold["val"]].max() < times[fold["test"]].min()


def test_times_may_be_dates_and_texts():
    rng = np.random.default_rng(1)
    moments = [datetime(2024, 12, 31, 20, tzinfo=UTC) + timedelta(minutes=int(m)) for m in rng.permutation(200)]
    (expected,) = divided(SplitRule("time"), 200, [moment.timestamp() for moment in moments])
    zone = timezone(timedelta(hours=-5))
    for values in (
        moments,
        [moment.astimezone(zone).isoformat() for moment in moments],  # as text, these sort by the hour there
        [moment.replace(tzinfo=None).isoformat(" ") for moment in moments],
        np.array([moment.replace(tzinfo=None) for moment in moments], "datetime64[s]"),
    ):
        (fold,) = divided(SplitRule("time"), 200, values)
        assert all(np.array_equal(fold[split], expected[split]) for split in fold)
    days = [moment.date() for moment in moments]
    (fold,) = divided(SplitRule("time", fractions=(1, 1, 1)), 3, [days[0], date(2030, 1, 1), date(1999, 1, 1)])
    assert [fold[split].tolist() for split in fold] == [[2], [0], [1]]


@pytest.mark.parametrize(
    ("how", "by", "message"),
    [
        ("time", ["2026-01-01", "31.12.2026", "2026-02-01"], "by= has '31.12.2026', which is no time"),
        ("time", [0.5, float("nan"), float("nan")], "no time for 2 samples (the first is number 1)"),
        ("time", np.array(["2026-01-01", "NaT", "2026-01-03"], "datetime64[D]"), "no time for 1 sample"),
        ("time", ["", "2026-01-01", "2026-01-02"], "by= has '', which is no time"),
        ("time", [None, 1, 2], "by= has None, which is no time"),
        ("size", ["small", "large", "huge"], "by= has 'small', which is no size"),
    ],
)
def test_values_that_are_no_times_are_named(how, by, message):
    with pytest.raises(DataImportError, match=re.escape(message)):
        divided(SplitRule(how), 3, by)


def test_missing_labels_are_neither_learned_nor_scored(molecules, tmp_path):
    graphs = [data.clone() for data in molecules]
    for i, data in enumerate(graphs):
        data.y = torch.tensor([[data.y.item(), float("nan") if i % 3 else float(i % 2)]])
    made = graphbench.from_pyg("mine/two", graphs, metric="roc_auc", also=["accuracy"])
    assert [f.name for f in made.card.outputs] == ["target_0", "target_1"]
    batch = next(iter(graphbench.Loader("mine/two").load().train.batches(64)))
    assert (batch.target_1 == -1).sum() > 10
    for model in ("gin_small", "random_forest"):
        result = graphbench.train(
            "mine/two", model, steps=20 if model == "gin_small" else None, output=tmp_path / model, evaluate=["train"],
            progress=False,
        )  # fmt: skip
        assert 0 <= result.scores["train"]["roc_auc"] <= 1


def test_one_array_of_several_outputs_is_read_from_a_file(molecules, tmp_path):
    graphs = [data.clone() for data in molecules]
    for data in graphs:
        data.y = torch.rand(1, 2)
    graphbench.from_pyg("mine/numbers", graphs, types={"y": "scalar"})
    for data in graphs:
        data.y = torch.tensor([[data.y[0, 0] > 0.5, data.y[0, 1] > 0.5]])
    made = graphbench.from_pyg("mine/masks", graphs)
    assert [f.name for f in made.card.outputs] == ["target_0", "target_1"]
    from graphbench.tasks.registry import task_of

    split = graphbench.Loader("mine/masks").load().test
    rows = np.random.default_rng(0).random((len(split), 2))
    np.save(tmp_path / "both.npy", rows)
    np.savez(tmp_path / "named.npz", target_0=rows[:, 0], target_1=rows[:, 1])
    task = task_of(made.card)
    scores = [task.score_file(tmp_path / name, split)["test"].to_dict() for name in ("both.npy", "named.npz")]
    assert scores[0] == scores[1]
    (batch,) = split.batches(len(split))
    assert graphbench.Evaluator("mine/masks").evaluate(batch.y, rows).to_dict() == scores[0]


def test_a_single_graph_is_divided_by_nodes(tmp_path):
    graph = nx.karate_club_graph()
    made = graphbench.from_networkx("mine/karate", graph, target="club", fractions=(0.4, 0.3, 0.3))
    assert made.card.classes == {"club": ("Mr. Hi", "Officer")} and made.card.overlapping
    assert made.card.outputs[0].type_name == "categorical(2)" and made.card.inputs[0].name == "weight"
    splits = graphbench.Loader("mine/karate").load()
    known = [set(np.flatnonzero(next(iter(splits[s])).club.numpy() >= 0)) for s in ("train", "val", "test")]
    assert sorted(set.union(*known)) == list(range(34)) and sum(map(len, known)) == 34
    names = [graph.nodes[node]["club"] for node in graph]
    for split, nodes in zip(("train", "val", "test"), known, strict=True):
        labels = next(iter(splits[split])).club
        assert all(made.card.classes["club"][labels[node]] == names[node] for node in nodes)
    assert verify("mine/karate", progress=False).passed
    result = graphbench.train(
        "mine/karate", "gin_small", steps=20, output=tmp_path / "run", evaluate=["test"], progress=False
    )
    assert 0 <= result.scores["test"]["accuracy"] <= 1 and result.scores["test"].items_scored == len(known[2])


def test_masks_of_pyg_divide_nodes_and_columns_of_masks_are_folds():
    data = molecule(0, nodes=40)
    data.y = torch.arange(40) % 3
    order = torch.arange(40)
    data.train_mask, data.val_mask, data.test_mask = order < 20, (order >= 20) & (order < 30), order >= 30
    made = graphbench.from_pyg("mine/masks", data)
    assert made.card.outputs[0].type_name == "categorical(3)"
    labels = next(iter(graphbench.Loader("mine/masks").load().val)).target
    assert torch.equal(torch.nonzero(labels >= 0).reshape(-1), order[20:30])
    for name in ("train_mask", "val_mask", "test_mask"):
        mask = getattr(data, name)
        setattr(data, name, torch.stack([mask, mask.roll(5)], 1))
    assert len(graphbench.from_pyg("mine/two_masks", data).cards) == 2


def test_numbers_of_one_graph_cannot_be_divided():
    data = molecule(0, nodes=30)
    data.y = torch.rand(30)
    with pytest.raises(DataImportError, match=r"'target' of a single graph cannot be divided by nodes"):
        graphbench.from_pyg("mine/numbers", data)


def test_types_and_directions_are_found_and_can_be_said(molecules):
    graphs = [data.clone() for data in molecules]
    for data in graphs:
        data.x = torch.rand(data.num_nodes, 5)
        data.pos = torch.rand(data.num_nodes, 3)
        data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
        data.edge_attr = torch.rand(data.num_edges, 2)
        data.y = torch.rand(1, 3)
    arcs = graphbench.from_pyg("mine/arcs", graphs)
    assert arcs.card.directed and any("directed=False" in note for note in arcs.notes)
    found = {f.name: f"{f.location} {f.type_name}" for f in arcs.card.features}
    assert found == {
        "node_features": "node scalar(5)", "position": "node scalar(3)", "edge_features": "edge scalar(2)",
        "target": "graph scalar(3)",
    }  # fmt: skip
    assert arcs.card.metrics.primary == "mae"
    edges = graphbench.from_pyg("mine/edges", graphs, directed=False, inputs=["x"], types={"x": "scalar"})
    assert not edges.card.directed and [f.name for f in edges.card.inputs] == ["node_features"]
    data = next(iter(graphbench.Loader("mine/edges").load().train))
    assert data.num_edges % 2 == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update({"edge_index": torch.tensor([[0, 99], [99, 0]])}), r"data\[0\] has the edge 0-99, but"),
        (lambda d: d.update({"x": torch.full((d.num_nodes, 2), float("nan"))}), "'x' that are not finite"),
        (lambda d: d.update({"y": torch.rand(3)}), r"3 rows of 'y'.*\[1, numbers\]"),
        (lambda d: d.__delattr__("x"), r"data\[0\] has no 'x'"),
        (lambda d: d.update({"edge_attr": torch.arange(d.num_edges)}), "two values of 'edge_attr'"),
        (
            lambda d: d.update({"edge_index": torch.cat([d.edge_index, torch.tensor([[2], [2]])], 1)}),
            "1 loop, the first at node 2",
        ),
    ],
)
def test_wrong_graphs_are_named(molecules, own, change, message):
    graphs = [data.clone() for data in molecules]
    for data in graphs:
        del data.group
    change(graphs[0])
    options = {"directed": False}
    if "loop" in message or "edge 0-99" in message:
        for data in graphs:
            del data.edge_attr
    with pytest.raises(DataImportError, match=message):
        graphbench.from_pyg("mine/toy", graphs, **options)
    assert not [path for path in own.rglob("*") if path.is_file()]


def test_loops_and_repeated_edges_are_dropped_where_asked(molecules):
    graphs = [data.clone() for data in molecules]
    for data in graphs:
        del data.edge_attr
        first = data.edge_index[:, :1]
        data.edge_index = torch.cat([data.edge_index, first, torch.tensor([[1], [1]])], 1)
    with pytest.raises(DataImportError, match="repair=True"):
        graphbench.from_pyg("mine/toy", graphs, directed=False)
    made = graphbench.from_pyg("mine/toy", graphs, directed=False, repair=True)
    assert "160 loops and repeated edges were dropped" in made.notes
    stored = graphbench.Loader("mine/toy").load()
    assert sorted(d.num_edges for s in stored for d in stored[s]) == sorted(d.num_edges for d in molecules)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("mine/Toy", {}, DataImportError, "small letters"),
        ("algoreas/toy", {}, DataImportError, "a domain of the benchmark"),
        ("mine/toy", {"target": "z"}, DataImportError, "target names 'z'"),
        ("mine/toy", {"task": "graph"}, None, ""),
        ("mine/toy", {"task": "graph number"}, DataImportError, "'number' is no type"),
        ("mine/toy", {"task": "vertex mask"}, DataImportError, "task='vertex mask' is unknown"),
        ("mine/toy", {"metric": "rmse"}, Exception, "rmse"),
        ("mine/toy", {"split": "best"}, DataImportError, "split='best' is unknown"),
        ("mine/toy", {"split": "time"}, DataImportError, "needs by="),
        ("mine/toy", {"fractions": (1, 0, 0)}, DataImportError, "three positive shares"),
        ("mine/toy", {"folds": 2}, DataImportError, "at least 3 folds"),
        ("mine/toy", {"licenze": "MIT"}, ArgumentError, "did you mean 'licence'"),
        ("mine/toy", {"inputs": ["x", "y"]}, DataImportError, "'y' is a target and an input"),
    ],
)
def test_wrong_options_are_named(molecules, name, options, error, message):
    if error is None:
        graphbench.from_pyg(name, molecules, **options)
        return
    with pytest.raises(error, match=message):
        graphbench.from_pyg(name, molecules, **options)


def test_leakage_is_refused_unless_allowed(molecules):
    parts = {"train": molecules[:60], "val": molecules[50:70], "test": molecules[70:]}
    with pytest.raises(DataImportError, match="10 graphs of 'val' also occur in 'train'"):
        graphbench.from_pyg("mine/toy", **parts)
    assert graphbench.from_pyg("mine/toy", **parts, overlap=True).card.overlapping


def test_a_split_without_both_kinds_is_refused_where_the_metric_needs_them(molecules, own):
    graphs = [data.clone() for data in molecules]
    for data in graphs[60:70]:
        data.y = torch.tensor([1.0])
    with pytest.raises(DataImportError, match="roc_auc is undefined on the split 'val'"):
        graphbench.from_pyg("mine/toy", train=graphs[:60], val=graphs[60:70], test=graphs[70:], metric="roc_auc")
    assert not [path for path in own.rglob("*") if path.is_file()]


def test_a_name_is_taken_until_it_is_replaced_or_removed(molecules, own):
    first = graphbench.from_pyg("mine/toy", molecules)
    with pytest.raises(DataImportError, match="replace=True"):
        graphbench.from_pyg("mine/toy", molecules)
    second = graphbench.from_pyg("mine/toy", molecules[:50], replace=True)
    assert (first.card.version, second.card.version) == (1, 2)
    assert graphbench.card("mine/toy").version == 2 and graphbench.card("mine/toy").splits["train"].count == 40
    assert not list(own.glob(".importing*"))
    remove("mine/toy")
    with pytest.raises(UnknownDataset):
        graphbench.card("mine/toy")
    assert not [path for path in own.rglob("*") if path.is_file()]
    with pytest.raises(StoreError, match="no dataset mine/toy"):
        remove("mine/toy")


def test_changed_files_are_noticed_and_a_wrong_card_stops_nothing(molecules, own, caplog):
    made = graphbench.from_pyg("mine/toy", molecules)
    file = own / "files" / "mine" / "toy" / "train.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"train\.npz"):
        graphbench.Loader("mine/toy").load()
    file.unlink()
    with pytest.raises(StoreError, match="has no file"):
        graphbench.Loader("mine/toy").load()
    card = yaml.safe_load(made.path.read_text(encoding="utf-8"))
    made.path.with_name("wrong.yaml").write_text(yaml.safe_dump({**card, "version": 0}), encoding="utf-8")
    assert "mine/toy" in list_datasets("mine/*") and "mine/wrong" not in list_datasets("mine/*")
    assert "a dataset of your own is left out" in caplog.text


def test_a_folder_elsewhere_is_known_in_this_process_and_can_be_moved(molecules, tmp_path, monkeypatch):
    graphbench.from_pyg("mine/toy", molecules, folder=tmp_path / "shared")
    assert len(graphbench.Loader("mine/toy").load().train) == 64
    (tmp_path / "shared").rename(tmp_path / "moved")
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "moved"))
    from graphbench.catalog import resources

    resources._FOLDERS.remove(str(tmp_path / "shared"))
    assert verify("mine/toy", progress=False).passed


def write_csv(path, heads, rows):
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        writer = csv.writer(file)
        if heads:
            writer.writerow(heads)
        writer.writerows(rows)


def test_tables_of_several_graphs(molecules, tmp_path):
    ends, atoms, labels = [], [], []
    for i, data in enumerate(molecules):
        half = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].T.tolist()
        ends += [[f"g{i}", f"n{u}", f"n{v}", "single" if (u + v) % 2 else "double"] for u, v in half]
        atoms += [[f"g{i}", f"n{k}", x, y / 2] for k, (x, y) in enumerate(data.x.tolist())]
        labels.append([f"g{i}", ["no", "yes"][int(data.y)], ["train", "train", "valid", "test"][i % 4]])
    write_csv(tmp_path / "edges.csv", ["graph", "source", "target", "bond"], ends)
    write_csv(tmp_path / "nodes.csv.gz", ["graph", "node", "kind", "charge"], atoms)
    write_csv(tmp_path / "graphs.csv", ["graph", "y", "split"], labels)
    files = {"nodes": tmp_path / "nodes.csv.gz", "graphs": tmp_path / "graphs.csv"}
    made = graphbench.from_csv("mine/table", tmp_path / "edges.csv", **files, directed=False)
    assert made.card.classes == {"bond": ("double", "single"), "target": ("no", "yes")}
    assert {name: spec.count for name, spec in made.card.splits.items()} == {"train": 40, "val": 20, "test": 20}
    found = {f.name: f"{f.location} {f.type_name}" for f in made.card.inputs}
    assert found == {"bond": "edge categorical(2)", "kind": "node categorical(4)", "charge": "node scalar"}
    splits = graphbench.Loader("mine/table").load()
    for number, data in zip(range(2, 80, 4), splits.val, strict=True):
        assert (
            edges_of(data) == edges_of(molecules[number]) and data.kind.tolist() == molecules[number].x[:, 0].tolist()
        )
        assert data.charge.tolist() == pytest.approx((molecules[number].x[:, 1] / 2).tolist())


def test_an_edge_list_of_one_graph(tmp_path):
    graph = nx.les_miserables_graph()
    write_csv(
        tmp_path / "edges.csv", ["source", "target", "weight"], [[*e, d["weight"]] for *e, d in graph.edges(data=True)]
    )
    parts = [[node, int(degree > 8)] for node, degree in graph.degree]
    write_csv(tmp_path / "nodes.csv", ["node", "busy"], parts)
    made = graphbench.from_csv(
        "mine/people", tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv", target="busy", directed=False
    )
    assert made.card.outputs[0].type_name == "mask"
    data = next(iter(graphbench.Loader("mine/people").load().train))
    assert data.num_nodes == 77 and data.num_edges == 2 * graph.number_of_edges()


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ("from,to\na,b\n", None, "has no column 'source'"),
        ("source,target\na\n", None, "1 cells in line 2"),
        ("source,target,source\na,b,c\n", None, "each once"),
        ("source,target\na,zz\n", "node,y\na,1\nb,0\n", "has the node 'zz' in line 2"),
        ("source,target\na,b\n", "node,y\na,1\na,0\n", "the node 'a' twice in line 3"),
        ("source,target\na,b\n", "graph,node,y\n1,a,1\n", "has the column 'graph'"),
        ("", None, "names of its columns"),
    ],
)
def test_wrong_tables_are_named(tmp_path, edges, nodes, message):
    (tmp_path / "edges.csv").write_text(edges)
    files = {}
    if nodes is not None:
        (tmp_path / "nodes.csv").write_text(nodes)
        files = {"nodes": tmp_path / "nodes.csv"}
    with pytest.raises(DataImportError, match=message):
        graphbench.from_csv("mine/toy", tmp_path / "edges.csv", **files)


def write_ogb(folder, molecules):
    raw, scheme = folder / "raw", folder / "split" / "scaffold"
    raw.mkdir(parents=True)
    scheme.mkdir(parents=True)
    halves = [data.edge_index[:, data.edge_index[0] < data.edge_index[1]] for data in molecules]
    write_csv(raw / "edge.csv.gz", None, [pair for half in halves for pair in half.T.tolist()])
    write_csv(raw / "num-node-list.csv.gz", None, [[data.num_nodes] for data in molecules])
    write_csv(raw / "num-edge-list.csv.gz", None, [[half.shape[1]] for half in halves])
    write_csv(raw / "node-feat.csv.gz", None, [row for data in molecules for row in data.x.tolist()])
    write_csv(raw / "graph-label.csv.gz", None, [[int(d.y), "" if i % 5 else 1] for i, d in enumerate(molecules)])
    for name, numbers in (("train", range(60)), ("valid", range(60, 70)), ("test", range(70, 80))):
        write_csv(scheme / f"{name}.csv.gz", None, [[i] for i in numbers])


def test_a_folder_of_ogb(molecules, tmp_path):
    write_ogb(tmp_path / "ogb", molecules)
    with pytest.raises(DataImportError, match=r"directed=False"):
        graphbench.from_ogb("mine/ogb", tmp_path / "ogb")
    with pytest.raises(DataImportError, match="are scaffold, not 'random'"):
        graphbench.from_ogb("mine/ogb", tmp_path / "ogb", scheme="random", directed=False)
    made = graphbench.from_ogb("mine/ogb", tmp_path / "ogb", directed=False, metric="accuracy")
    assert [f.type_name for f in made.card.outputs] == ["mask", "mask"]
    data = list(graphbench.Loader("mine/ogb").load().val)
    assert [edges_of(d) for d in data] == [edges_of(d) for d in molecules[60:70]]
    assert [int(d.target_1) for d in data] == [-1 if i % 5 else 1 for i in range(60, 70)]


def test_an_object_of_ogb(molecules):
    class PygGraphPropPredDataset(list):
        eval_metric = "rocauc"

        def get_idx_split(self):
            parts = {"train": range(60), "valid": range(60, 70), "test": range(70, 80)}
            return {name: torch.tensor(list(numbers)) for name, numbers in parts.items()}

    made = graphbench.from_ogb("mine/ogb", PygGraphPropPredDataset(molecules))
    assert made.card.metrics.primary == "roc_auc" and made.card.splits["val"].count == 10


def test_a_folder_of_torch_files(molecules, tmp_path):
    torch.save(molecules, tmp_path / "dataset.pt")
    write_csv(
        tmp_path / "splits.csv",
        ["number", "split"],
        [[i, ["train", "val", "test"][min(i // 40, 1) + i // 60 * 1]] for i in range(80)],
    )
    made = graphbench.from_folder("mine/folder", tmp_path)
    assert {name: spec.count for name, spec in made.card.splits.items()} == {"train": 40, "val": 20, "test": 20}
    torch.save(
        [{"edge_index": d.edge_index, "num_nodes": d.num_nodes, "y": d.y} for d in molecules], tmp_path / "dataset.pt"
    )
    (tmp_path / "splits.csv").unlink()
    assert graphbench.from_folder("mine/dicts", tmp_path, overlap=True).card.splits["train"].count == 64


def test_a_file_that_runs_code_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    torch.save([Evil()], tmp_path / "dataset.pt")
    with pytest.raises(DataImportError, match=r"dataset\.pt"):
        graphbench.from_folder("mine/evil", tmp_path)


def test_rows_of_hugging_face(molecules, tmp_path):
    def row(data):
        return {
            "edge_index": data.edge_index.tolist(), "num_nodes": data.num_nodes, "node_feat": data.x.tolist(),
            "edge_attr": data.edge_attr.reshape(-1, 1).tolist(), "y": [int(data.y)],
        }  # fmt: skip

    rows = [row(data) for data in molecules]
    parts = {"train": rows[:60], "validation": rows[60:70], "test": rows[70:]}
    made = graphbench.from_hf("mine/hf", parts)
    data = list(graphbench.Loader(made.name).load().val)
    assert [edges_of(d) for d in data] == [edges_of(d) for d in molecules[60:70]]
    pytest.importorskip("datasets.features", reason="pip install 'graphbench[hf]'")  # our folder datasets/ has none
    datasets = pytest.importorskip("datasets")
    stored = datasets.DatasetDict({split: datasets.Dataset.from_list(part) for split, part in parts.items()})
    stored.save_to_disk(tmp_path / "stored")
    again = graphbench.from_hf("mine/hf_folder", tmp_path / "stored")
    assert again.card.splits["train"].parameters == made.card.splits["train"].parameters


def test_the_command(molecules, tmp_path, capsys):
    from graphbench.cli.app import main

    torch.save(molecules, tmp_path / "dataset.pt")
    write_csv(tmp_path / "edges.csv", ["source", "target"], [["a", "b"], ["b", "c"]])

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main(["import", *map(str, words)])
        told = capsys.readouterr()
        return end.value.code or 0, " ".join(told.out.split()), " ".join(told.err.split())

    code, out, _ = call("mine/toy", tmp_path, "--metric", "roc_auc", "--input", "x", "--type", "x=scalar")
    assert code == 0 and "node_features input node scalar(2)" in out and "graphbench train mine/toy" in out
    code, _, err = call("mine/toy", tmp_path)
    assert code == 2 and "--replace" in err
    code, out, _ = call("mine/toy", tmp_path, "--replace", "--json")
    assert code == 0 and json.loads(out)["version"] == 2
    code, out, _ = call("mine/toy", "--remove")
    assert code == 0 and "removed" in out
    for words, message in (
        (["mine/toy", tmp_path / "nothing"], "is not there"),
        (["mine/toy"], "name the file or the folder"),
        (["mine/toy", tmp_path, "--type", "x"], "COLUMN=TYPE"),
        (["mine/toy", tmp_path, "--fractions", "a,b"], "0.8,0.1,0.1"),
        (["mine/toy", tmp_path, "--nodes", "nodes.csv"], "are for CSV files"),
        (["mine/toy", tmp_path / "edges.csv"], "target names 'y'"),
    ):
        code, _, err = call(*words)
        assert code == 2 and message in err.replace("│ ", "")


def test_batches_of_own_graphs_are_pyg_batches(molecules):
    graphbench.from_pyg("mine/toy", molecules)
    batch = next(iter(graphbench.Loader("mine/toy").load().train.batches(8)))
    assert isinstance(batch, Batch) and batch.num_graphs == 8
    assert isinstance(batch[0] if hasattr(batch, "__getitem__") else Data(), Data)
