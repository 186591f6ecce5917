"""What is dropped, rounded, missing or guessed is said, or refused where a score would mean nothing."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphbench
from graphbench.catalog.features import Location, Stage
from graphbench.core.errors import DataImportError
from graphbench.imports.collect import Collected, collect
from graphbench.imports.graphs import Column, RawGraph
from graphbench.imports.splits import SplitRule, divided, usual_split
from graphbench.imports.tables import values_of

PATH = np.array([[0, 1], [1, 2]]).T
BOTH = np.concatenate([PATH, PATH[::-1]], axis=1)


def collected(labels, *, edges=BOTH, given=None, type_name=None, **options) -> Collected:
    """Return one graph per label, with further values at edges."""
    graphs = [
        RawGraph(3, edges, {"y": np.array([label]), **(given or {})}, f"graph {i}") for i, label in enumerate(labels)
    ]
    columns = [Column(name, Location.EDGE, Stage.INPUT, None) for name in given or {}]
    columns.append(Column("y", Location.GRAPH, Stage.OUTPUT, type_name))
    return collect({"all": graphs}, columns, **options)


@pytest.mark.parametrize("type_name", [None, "mask", "categorical(3)"])
def test_labels_of_minus_one_and_one_are_refused(type_name):
    with pytest.raises(DataImportError, match=r"'target' is 1 everywhere but at 2 labels of -1.* write 0 for it"):
        collected([-1, 1, -1, 1], type_name=type_name)


def test_missing_labels_are_counted():
    (note,) = collected([-1, 0, 1, 1]).notes
    assert note.startswith("1 of 4 labels of 'target' are missing (-1 or nan)")
    missing, alike = collected([np.nan, 1.0, 1.0, 1.0]).notes
    assert missing.startswith("1 of 4 labels") and alike == "all known labels of 'target' are 1"
    assert not collected([0, 1, 1, 0]).notes


def test_numbers_that_become_equal_are_named():
    with pytest.raises(DataImportError, match=r"the 3 different numbers of 'y' are all 1700000000.0 as float32"):
        collected([1.7e9, 1.7e9 + 1, 1.7e9 + 2])
    (note,) = collected([1.7e9 + 40.0 * k for k in range(30)]).notes
    rounded = len({float(np.float32(1.7e9 + 40.0 * k)) for k in range(30)})
    assert note.startswith(f"'y' has 30 different numbers, and {rounded} as float32")
    assert not collected([0.1 * k for k in range(30)]).notes


def test_amounts_that_look_like_classes_are_named():
    (note,) = collected([50, 60, 99]).notes
    assert "'y' is read as classes" in note
    assert not collected(list(range(12))).notes


def test_a_single_arc_makes_all_edges_arcs_with_a_note():
    graphs = [RawGraph(3, edges, {"y": np.array([i % 2])}, f"graph {i}") for i, edges in enumerate([BOTH] * 4 + [PATH])]
    found = collect({"all": graphs}, [Column("y", Location.GRAPH, Stage.OUTPUT, None)])
    assert found.directed
    assert found.notes[0].startswith("graph 4 has edges without their reverse") and "(--undirected)" in found.notes[0]


def test_repair_counts_edges_with_several_values():
    kinds = np.array([0, 1, 0, 2])
    with pytest.raises(DataImportError, match="two values of 'kind' for the edge"):
        collected([0, 1], given={"kind": kinds}, directed=False)
    notes = collected([0, 1], given={"kind": kinds}, directed=False, repair=True).notes
    assert notes[0].startswith("2 edges had several values, such as one per direction")


def test_only_numbers_become_numbers():
    assert values_of(["1", "-2"]).tolist() == [1, -2]
    assert values_of(["1.5", "", "NA", "1e3", "-.5"])[[0, 3, 4]].tolist() == [1.5, 1000.0, -0.5]
    assert values_of(["1_1", "1_2"]).tolist() == ["1_1", "1_2"]  # Python's int reads 11 and 12
    assert values_of(["01", "1"]).tolist() == ["01", "1"]
    assert values_of(["None", "single", ""]).tolist() == ["None", "single", ""]
    assert values_of(["99999999999999999999"]).tolist() == [1e20]


def test_values_that_divide_are_complete():
    for by in (["a", None, "b", "c"], [1.0, np.nan, 2.0, 3.0]):
        with pytest.raises(DataImportError, match=r"by= has no group for 1 sample \(the first is number 1\)"):
            divided(SplitRule("group"), 4, by)
    (fold,) = divided(SplitRule("group"), 30, (k % 10 for k in range(30)))
    assert sum(map(len, fold.values())) == 30
    assert [usual_split(name) for name in ("Train", "VALID", "dev", "hidden")] == ["train", "val", "val", "hidden"]


def test_rules_beside_given_splits_are_refused(molecules):
    parts = {"train": molecules[:60], "val": molecules[60:70], "test": molecules[70:]}
    with pytest.raises(DataImportError, match="folds= would divide nothing"):
        graphbench.from_pyg("mine/toy", **parts, folds=3)
    with pytest.raises(DataImportError, match="for 'train', but for 'training', 'val'"):
        graphbench.from_hf("mine/toy", {name: [{"edge_index": [[0], [1]], "y": [1]}] for name in ("training", "val")})


def test_masks_beside_a_rule_are_named():
    graph = Data(x=torch.rand(30, 2), edge_index=torch.randint(0, 30, (2, 60)), y=torch.arange(30) % 3)
    for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
        graph[name] = torch.arange(30) // 10 == k
    made = graphbench.from_pyg("mine/masked", graph, seed=1, repair=True)
    assert any("masks of the graph are not used" in note for note in made.notes)


def test_targets_of_two_types_are_refused(molecules):
    graphs = [graph.clone() for graph in molecules]
    for i, graph in enumerate(graphs):
        graph.z2 = torch.tensor([i / 10])
    with pytest.raises(DataImportError, match=r"'target' \(mask\) and 'z2' \(scalar\) are of different types"):
        graphbench.from_pyg("mine/two", graphs, target=["y", "z2"])


def test_a_number_that_divides_is_no_input():
    graphs = [nx.path_graph(4 + k) for k in range(30)]
    for k, graph in enumerate(graphs):
        graph.graph.update(scaffold=k % 10, y=k % 2)
        nx.set_node_attributes(graph, {node: (node * k) % 7 for node in graph}, "a")
    made = graphbench.from_networkx("mine/groups", graphs, split="group", by="scaffold")
    assert [f.name for f in made.card.inputs] == ["a"]


def test_folds_do_not_take_the_names_of_other_datasets(molecules, own):
    first = graphbench.from_pyg("mine/q_fold0", molecules)
    before = first.card.floor
    with pytest.raises(DataImportError, match="the fold 'mine/q_fold0' would have the name of the dataset"):
        graphbench.from_pyg("mine/q", molecules, folds=3)
    assert graphbench.card("mine/q_fold0").floor == before and not (own / "datasets" / "mine" / "q.yaml").exists()
    with pytest.raises(DataImportError, match="more than 100 letters"):
        graphbench.from_pyg("mine/" + "q" * 300, molecules)


def test_splits_csv_names_every_graph(molecules, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    torch.save(molecules, folder / "dataset.pt")
    rows = [f"{k},{'train' if k < 60 else 'val' if k < 70 else 'test'}" for k in range(75)]
    (folder / "splits.csv").write_text("\n".join(["number,split", *rows]) + "\n")
    with pytest.raises(DataImportError, match=r"names 75 graphs of 80 \(graph 75 is missing; they count from 0\)"):
        graphbench.from_folder("mine/folder", folder)
    (folder / "splits.csv").write_text("graph,split\n0,train\n")
    with pytest.raises(DataImportError, match="no column 'number'; it needs 'number'"):
        graphbench.from_folder("mine/folder", folder)


def test_a_split_of_nodes_that_is_none_is_named(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{k},{k + 1}\n" for k in range(11)))
    splits = ["Train"] * 6 + ["valid"] * 3 + ["tset"] * 2 + [""]
    rows = [f"{k},{k % 2},{split}" for k, split in enumerate(splits)]
    (tmp_path / "nodes.csv").write_text("\n".join(["node,y,split", *rows]) + "\n")
    with pytest.raises(DataImportError, match="'split' has 'tset' at 2 nodes"):
        graphbench.from_csv("mine/path", tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv")


def test_a_split_without_labels_is_named(molecules):
    test = [graph.clone() for graph in molecules[70:]]
    for graph in test:
        graph.y = torch.tensor([float("nan")])
    with pytest.raises(DataImportError, match="all labels 'target' of the split 'test' are missing"):
        graphbench.from_pyg("mine/toy", train=molecules[:60], val=molecules[60:70], test=test)


def test_a_meaning_of_no_feature_is_named(molecules):
    with pytest.raises(DataImportError, match=r"meanings names 'node_feature_0'.*'node_features_0'"):
        graphbench.from_pyg("mine/toy", molecules, meanings={"node_feature_0": "kind of the atom"})


def test_folds_that_are_no_more_leave_no_measurements(molecules, own):
    graphbench.from_pyg("mine/toy", molecules, folds=3)
    measured = own / "datasets" / "mine" / "measured"
    assert sorted(path.stem for path in measured.glob("*.json")) == ["toy_fold0", "toy_fold1", "toy_fold2"]
    graphbench.from_pyg("mine/toy", molecules, replace=True)
    assert [path.stem for path in measured.glob("*.json")] == ["toy"]
