"""Own graphs whose edges are hidden: who reads which edge in which split, times, shares and wrong input."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphbench
from graphbench.core.errors import ArgumentError, CardError, DataImportError, UnknownDataset
from graphbench.interop import hf_reader, to_hf, to_networkx
from graphbench.verification.verify import verify

from .conftest import molecule


def ring(nodes=60):
    u = np.arange(nodes)
    v = (u + 1) % nodes
    edges = np.stack([np.r_[u, v], np.r_[v, u]])
    return Data(edge_index=torch.tensor(edges), num_nodes=nodes, when=torch.tensor(np.r_[u, u]).float())


def read_and_asked(split):
    graph = split[0]
    both = (
        {tuple(sorted(e)) for e in edges.T.tolist()} for edges in (graph.edge_index, graph.pair_index[:, graph.y == 1])
    )
    return tuple(both)


def splits_of(loaded):
    return loaded.train, loaded.val, loaded.test


def test_a_single_graph_is_divided_by_its_edges():
    made = graphbench.from_pyg("mine/ring", [ring()], task="link", progress=False)
    assert made.card.metrics.primary == "mrr" and made.card.overlapping and made.card.links.queries == 5000
    splits = graphbench.Loader("mine/ring").load()
    (train, train_asked), (val, val_asked), (test, test_asked) = map(read_and_asked, splits_of(splits))
    assert (len(train_asked), len(val_asked), len(test_asked)) == (14, 6, 6)
    assert val == train | train_asked and test == val | val_asked
    assert not train & train_asked and not val & val_asked and not test & test_asked
    assert len(test | test_asked) == 60
    assert verify("mine/ring", progress=False).passed


def test_later_edges_are_asked_for_by_time():
    made = graphbench.from_pyg(
        "mine/timed", [ring()], task="link", split="time", by="when", hidden=0.25, progress=False
    )
    assert [f.name for f in made.card.features] == ["link"]
    splits = graphbench.Loader("mine/timed").load()

    def times(pairs):
        return [u if v == u + 1 else v for u, v in pairs]

    (train, train_asked), (_, val_asked), (_, test_asked) = map(read_and_asked, splits_of(splits))
    assert max(times(train)) < min(times(train_asked)) <= max(times(train_asked)) < min(times(val_asked))
    assert max(times(val_asked)) < min(times(test_asked)) and len(train_asked) == 12


@pytest.mark.parametrize("form", ["seconds", "texts"])
def test_edges_of_a_table_are_divided_by_seconds_and_by_dates(tmp_path, form):
    """The times differ by one second, and would be equal as float32."""
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(60)]
    cells = [m.timestamp() if form == "seconds" else m.isoformat() for m in moments]
    lines = [f"{n},{(n + 1) % 60},{cell}" for n, cell in enumerate(cells)]
    path, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    path.write_text("\n".join(["source,target,when", *lines[::-1]]))
    nodes.write_text("\n".join(["node", *map(str, range(60))]))
    options = {"directed": False, "task": "link", "split": "time", "by": "when", "progress": False}
    made = graphbench.from_csv(f"mine/by_{form}", edges=path, nodes=nodes, inputs=[], **options)
    assert [f.name for f in made.card.features] == ["link"]
    (_, train_asked), (_, val_asked), (_, test_asked) = map(
        read_and_asked, splits_of(graphbench.Loader(f"mine/by_{form}").load())
    )
    assert val_asked == {(n, n + 1) for n in range(48, 54)} and test_asked == {(0, 59)} | {
        (n, n + 1) for n in range(54, 59)
    }
    assert train_asked == {(n, n + 1) for n in range(34, 48)}


def test_users_and_items_are_told_how_to_draw_items(tmp_path):
    rng = np.random.default_rng(0)
    pairs = sorted({(int(u), int(v)) for u, v in zip(rng.integers(0, 40, 300), rng.integers(0, 60, 300), strict=True)})
    path = tmp_path / "edges.csv"
    path.write_text("\n".join(["source,target", *(f"user{u},item{v}" for u, v in pairs)]))
    made = graphbench.from_csv("mine/shop", edges=path, task="link", progress=False)
    assert any("negatives={'ends': 50}" in note for note in made.notes)
    again = graphbench.from_csv(
        "mine/shop", edges=path, task="link", negatives={"ends": 20}, replace=True, progress=False
    )
    assert "ends" not in " ".join(again.notes)
    graph = graphbench.Loader("mine/shop").load().test[0]
    is_item = torch.zeros(graph.num_nodes, dtype=torch.bool)
    is_item[graph.edge_index[1]] = True
    assert is_item[graph.pair_index[1][graph.y == 0]].all() and not is_item[graph.pair_index[0]].any()


def test_texts_that_divide_are_no_input(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,when\n" + "\n".join(f"{n},{n + 1},2026-01-{n + 1:02}" for n in range(30)))
    options = {"directed": False, "task": "link", "by": "when", "progress": False}
    made = graphbench.from_csv("mine/default", edges=path, split="time", **options)
    assert [f.name for f in made.card.features] == ["link"]
    made = graphbench.from_csv("mine/chosen", edges=path, inputs=["when"], split="time", **options)
    assert [f.name for f in made.card.features] == ["when", "link"]


def test_a_share_of_the_edges_of_each_of_several_graphs_is_hidden():
    graphs = [molecule(i) for i in range(40)]
    made = graphbench.from_pyg("mine/many", graphs, task="link", hidden=0.5, negatives={"near": 3}, progress=False)
    assert "left out: 'y', 'group'" in made.notes[0]
    splits = graphbench.Loader("mine/many").load()
    for graph in splits.train:
        edges = graph.edge_index.shape[1] // 2 + int(graph.y.sum())
        assert int(graph.y.sum()) == min(max(round(0.5 * edges), 1), edges - 1)
        assert len(graph.edge_features) == graph.edge_index.shape[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 1.5}, "hidden=1.5 is no share"),
        ({"negatives": {"close": 3}}, "'close'"),
        ({"negatives": {"uniform": 0}}, "'uniform': 0"),
        ({"negatives": 25}, "negatives=25"),
        ({"negatives": {}}, "negatives={}"),
        ({"queries": 0}, "queries=0"),
        ({"hidden": "a"}, "hidden='a'"),
        ({"target": "when"}, "target='when'"),
        ({"metric": "f1"}, "'f1'"),
        ({"by": "colour", "split": "time"}, "by='colour'"),
        ({"by": [1, 2], "split": "time"}, "the name of a column"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises((DataImportError, CardError), match=re.escape(message)):
        graphbench.from_pyg("mine/wrong", [ring()], task="link", progress=False, **options)
    with pytest.raises(UnknownDataset):
        graphbench.card("mine/wrong")


def test_options_of_links_belong_to_links():
    graphs = [molecule(i) for i in range(20)]
    with pytest.raises(DataImportError, match="options of task='link'"):
        graphbench.from_pyg("mine/wrong", graphs, hidden=0.5, progress=False)
    with pytest.raises(DataImportError, match="say task='link'"):
        graphbench.from_pyg("mine/wrong", graphs, task="link mask", progress=False)


def test_graphs_whose_links_have_too_few_negatives_say_so():
    with pytest.raises(DataImportError, match="no link of the split 'test' has a negative"):
        graphbench.from_networkx("mine/complete", [nx.complete_graph(12)], task="link", inputs=[], progress=False)
    made = graphbench.from_networkx("mine/star", [nx.star_graph(40)], task="link", inputs=[], progress=False)
    assert any("have fewer than 50 negatives" in note for note in made.notes)


def test_arcs_whose_reverse_tells_the_answer_are_noted_and_scored():
    rng = np.random.default_rng(0)
    u, v = np.array(nx.barabasi_albert_graph(120, 3, seed=1).edges).T
    edges = torch.tensor(np.stack([np.r_[u, v], np.r_[v, u]]))
    data = Data(edge_index=edges, edge_attr=torch.tensor(rng.random(edges.shape[1])), num_nodes=120)
    made = graphbench.from_pyg("mine/arcs", [data], task="link", progress=False)
    assert any("have their reverse" in note for note in made.notes)
    floor = made.card.floor["test"]
    assert floor["reverse_arc"]["mrr"] > 0.8 > floor["adamic_adar"]["mrr"]


def test_equal_graphs_stay_together_and_masks_of_nodes_are_noted():
    graphs = [molecule(i) for i in range(20)] * 3
    made = graphbench.from_pyg("mine/copies", graphs, task="link", progress=False)
    assert not made.card.overlapping and any("equal graphs are in one split" in note for note in made.notes)
    data = ring()
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = torch.ones(60, dtype=torch.bool)
    noted = graphbench.from_pyg("mine/masked", [data], task="link", progress=False).notes
    assert any("train_mask" in note and "divide nodes" in note for note in noted)


def test_such_a_dataset_goes_to_hugging_face_and_back(tmp_path):
    pytest.importorskip("datasets.features", reason="pip install 'graphbench[hf]'")  # our folder datasets/ has none
    datasets = pytest.importorskip("datasets")
    made = graphbench.from_pyg("mine/hub", [molecule(i) for i in range(30)], task="link", progress=False)
    splits = graphbench.Loader("mine/hub").load()
    saved = datasets.DatasetDict({name: to_hf(splits[name]) for name in ("train", "val", "test")})
    saved.save_to_disk(str(tmp_path / "saved"))
    reader = hf_reader(made.card)
    again = graphbench.Loader("mine/hub", source=reader, folder=tmp_path / "saved", root=tmp_path / "two").load()
    for name in ("edge_index", "pair_index", "query_batch", "link"):
        assert torch.equal(again.test[0][name], splits.test[0][name])
    with pytest.raises(ArgumentError, match="candidate pairs"):
        to_networkx(splits.test[0], made.card)


def test_too_few_edges_are_refused():
    with pytest.raises(DataImportError, match="too few to hide"):
        graphbench.from_pyg("mine/few", [ring(3)], task="link", progress=False)


def test_the_command_line_makes_such_a_dataset(tmp_path):
    from typer.testing import CliRunner

    from graphbench.cli.app import app

    rows = ["source,target", *(f"a{u},a{(u * 7 + 1) % 40}" for u in range(40)), *(f"a{u},a{u + 1}" for u in range(39))]
    (tmp_path / "edges.csv").write_text("\n".join(dict.fromkeys(rows)) + "\n")
    words = ["import", "mine/csv", str(tmp_path / "edges.csv"), "--task", "link", "--undirected", "--repair"]
    outcome = CliRunner().invoke(app, [*words, "--negatives", "uniform=8", "--hidden", "0.2"])
    assert outcome.exit_code == 0, outcome.output
    assert graphbench.card("mine/csv").links.negatives == {"uniform": 8}
    assert CliRunner().invoke(app, [*words, "--replace", "--negatives", "uniform"]).exit_code == 2
