"""Training on parts of one large graph: what is drawn, and that it estimates what the whole graph gives."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest
import torch
import yaml

import graphbench
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.loader import Loader
from graphbench.models.base import TaskFeatures
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.registry import build_task_model
from graphbench.tasks.registry import task_of
from graphbench.training.neighbours import NeighbourBatches, incoming
from graphbench.training.run import train
from graphbench.training.settings import NeighbourSettings

USERS = 1500
MODEL = {"processor": "graphconv", "layers": 2, "hidden": 8, "dropout": 0.0, "positional": {"type": "none"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("network")
    return Loader("social/sim_replies_small", root=root, limit=USERS, progress=False, workers=1).load()


@pytest.fixture(scope="module")
def whole(data):
    (batch,) = data.train.batches(1)
    return batch


def test_incoming_arcs_are_those_of_a_stable_sort():
    random = np.random.default_rng(0)
    senders, receivers = random.integers(0, 30, (2, 200)).astype(np.int32)
    ptr, arcs = incoming(senders, receivers, 31)
    assert np.array_equal(arcs, np.argsort(receivers, kind="stable"))
    assert np.array_equal(np.diff(ptr), np.bincount(receivers, minlength=31))


@pytest.mark.parametrize("per_hop", [(3,), (4, 2), (1, 1, 5)])
def test_every_hop_draws_incoming_arcs_without_replacement(data, whole, per_hop):
    sampler = NeighbourBatches(data.train, NeighbourSettings(nodes=16, per_hop=per_hop))
    arcs = defaultdict(set)
    for sender, receiver in whole.edge_index.T.tolist():
        arcs[receiver].add(sender)
    for number in range(5):
        chosen = np.random.default_rng(number).choice(sampler.nodes, 16, replace=False)
        batch = sampler.batch(chosen, seed=3, number=number)
        nodes = batch.nodes.tolist()
        assert nodes[:16] == chosen.tolist() and len(set(nodes)) == len(nodes) == batch.num_nodes
        drawn = defaultdict(list)
        for sender, receiver in batch.edge_index.T.tolist():
            drawn[nodes[receiver]].append(nodes[sender])
        reached, frontier = set(nodes[:16]), nodes[:16]
        for most in per_hop:
            for node in frontier:
                assert len(drawn[node]) == len(set(drawn[node])) == min(most, len(arcs[node]))
                assert set(drawn[node]) <= arcs[node]
            new = {sender for node in frontier for sender in drawn[node]} - reached
            reached |= new
            frontier = [node for node in nodes if node in new]
        assert reached == set(nodes)
        assert all(not drawn[node] for node in frontier)  # nodes of the last hop have no arcs of their own


@pytest.mark.thorough
def test_every_incoming_arc_is_drawn_equally_often(data, whole):
    sampler = NeighbourBatches(data.train, NeighbourSettings(nodes=1, per_hop=(3,)))
    degrees = torch.bincount(whole.edge_index[1], minlength=sampler.nodes)
    node = int((degrees == 8).nonzero()[0])
    counts = defaultdict(int)
    for number in range(3000):
        batch = sampler.batch(np.array([node]), number=number)
        for sender in batch.nodes[batch.edge_index[0]].tolist():
            counts[sender] += 1
    assert len(counts) == 8 and sum(counts.values()) == 9000
    statistic = sum((count - 1125) ** 2 / 1125 for count in counts.values())  # beyond 3/8 of the variance: dependent
    assert statistic < 24.3  # chi-square of 7 degrees of freedom, 0.1 %


def test_rows_are_those_of_the_whole_graph(data, whole):
    sampler = NeighbourBatches(data.train, NeighbourSettings(nodes=20, per_hop=(5, 5)))
    batch = sampler.batch(np.arange(20, 40), number=1)
    assert batch.seeds == 20 and batch.content.shape == (batch.num_nodes, 64)
    torch.testing.assert_close(batch.content, whole.content[batch.nodes])
    torch.testing.assert_close(batch.likes, whole.likes[20:40])
    torch.testing.assert_close(batch.y, whole.y[20:40])


@pytest.mark.parametrize("degrees", [False, True, "both"])
def test_the_model_learns_the_chosen_nodes_and_is_exact_with_all_arcs(data, whole, degrees):
    card = data.card
    torch.manual_seed(0)
    model = build_task_model(ModelConfig(**MODEL, degrees=degrees), {card.address: TaskFeatures.of(card)}).eval()
    everything = int(torch.bincount(whole.edge_index[1]).max())
    sampler = NeighbourBatches(data.train, NeighbourSettings(nodes=30, per_hop=(everything,) * 2))
    batch, task = sampler.batch(np.arange(30)), task_of(card)
    with torch.no_grad():
        part, full = model(batch, card.address), model(whole, card.address)
    for output, rows in part.items():
        torch.testing.assert_close(rows, full[output][:30], rtol=1e-4, atol=1e-5)
    assert set(task.loss_weights(batch).values()) == {30.0}
    losses = task.losses(part, batch)
    for output in part:
        expected = (full[output][:30] - whole[output][:30]).abs().mean()
        torch.testing.assert_close(losses[output], expected, rtol=1e-3, atol=1e-4)


def test_degrees_are_those_of_the_whole_graph(data, whole):
    batch = NeighbourBatches(data.train, NeighbourSettings(nodes=30, per_hop=(2,))).batch(np.arange(30))
    part, layout = Layout.of(batch, directed=True), Layout.of(whole, directed=True)
    assert torch.equal(part.degrees, layout.degrees[batch.nodes])
    assert torch.equal(part.both_degrees, torch.stack([layout.degrees, layout.in_degrees], 1)[batch.nodes])
    assert not torch.equal(part.both_degrees[:, 1], part.in_degrees)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"model.inverse_edges": True}, "model.inverse_edges=false"),
        ({"model.graph_size": True}, "model.graph_size=false"),
        ({"model.positional": {"type": "rwse", "k": 4, "hidden": 8}}, "model.positional.type=none"),
    ],
)
def test_what_needs_all_arcs_is_refused_in_parts(changes, name, tmp_path):
    overrides = {"training.neighbours": {"per_hop": [4]}, **changes}
    where = {"root": tmp_path / "data", "output": tmp_path / "run"}
    with pytest.raises(ConfigError, match=re.escape(f"graphconv need all arcs; set {name}, or")):
        train("social/sim_quotes_small", "graphconv", overrides=overrides, **where)
    assert not list(tmp_path.iterdir())


def test_batches_follow_from_seed_and_number(data):
    sampler = NeighbourBatches(data.train, NeighbourSettings(nodes=64, per_hop=(4, 4)))
    stream = sampler.batches(seed=5)
    first = [next(stream) for _ in range(len(sampler) + 2)]
    learned = torch.cat([b.nodes[: b.seeds] for b in first[: len(sampler)]])
    assert sorted(learned.tolist()) == list(range(sampler.nodes))
    again = sampler.batches(seed=5, start=len(sampler) + 1)
    other = next(again)
    assert torch.equal(other.nodes, first[-1].nodes) and torch.equal(other.edge_index, first[-1].edge_index)
    parts = [next(sampler.batches(seed=5, share=(rank, 3))) for rank in range(3)]
    joined = torch.stack([p.nodes[:21] for p in parts], dim=1).flatten()
    assert torch.equal(joined[:63], first[0].nodes[:63])
    assert next(sampler.batches(seed=5, share=(64, 65))) is None


def test_runs_train_and_resume(data, tmp_path):
    settings = {"eval_every": 3, "lr": 1e-2, "schedule_steps": 6, "neighbours": {"nodes": 100, "per_hop": [5, 5]}}
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({"model": MODEL, "training": {"steps": 6, **settings}}))
    options = {"model": path, "seed": 0, "data": data, "progress": False, "evaluate": "val"}
    whole = train(data.card.address, output=tmp_path / "a", **options)
    train(data.card.address, steps=3, output=tmp_path / "b", **options)
    resumed = train(data.card.address, output=tmp_path / "b", **options)
    assert resumed.record.scores["val"]["mae"] == whole.record.scores["val"]["mae"]
    assert resumed.record.steps == 6


def test_other_datasets_are_refused(tmp_path):
    several = Loader("algoreas/mst_easy", root=tmp_path, limit=4, progress=False, workers=1).load()
    with pytest.raises(ConfigError, match=r"4 graphs.*training\.neighbours"):
        NeighbourBatches(several.train, NeighbourSettings(per_hop=(2,)))
    with pytest.raises(ConfigError, match="undirected"):
        NeighbourBatches(several.train[:1], NeighbourSettings(per_hop=(2,)))
    assert graphbench.card("algoreas/mst_easy").directed is False


@pytest.mark.parametrize("chosen", [[0, 10**7], [-1], [3, 3], []])
def test_nodes_must_be_different_and_exist(data, chosen):
    sampler = NeighbourBatches(data.train, NeighbourSettings(per_hop=(2,)))
    with pytest.raises(ArgumentError, match="different nodes from 0 to"):
        sampler.batch(np.array(chosen))


def test_hops_draw_at_least_one_arc():
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        NeighbourSettings(per_hop=(3, 0))
