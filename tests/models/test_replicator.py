"""The processor of competing masses: replicator dynamics on cliques, the same alone and in a batch."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphbench.core.errors import ConfigError
from graphbench.models.build import Model
from graphbench.models.graphs import Layout
from graphbench.models.processors.replicator import ReplicatorProcessor, _around, _masses, _ranks

from .conftest import assert_near_under_autocast, batch_of, graph, small_model

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"copies": 3, "scored_copies": 5, "steps": 4, "steps_per_node": 0.5, "rounds": 1},
    "ordered": {"copies": 3, "scored_copies": 5, "steps": 4, "steps_per_node": 0, "order": True, "rounds": 2},
}


def replicator(task: str, options: dict[str, Any], **settings: Any) -> Model:
    model = small_model("replicator", task, positional={"type": "none"}, options=options, layers=1, **settings)
    torch.nn.init.normal_(model.processor.out.weight, std=0.3)  # the network of a new model changes nothing
    return model.eval()


def outputs(model: Model, graphs: list[Data]) -> torch.Tensor:
    (raw,) = model(model.prepare(batch_of(graphs))).values()
    return raw


def undirected(drawn: nx.Graph) -> Data:
    pairs = np.array(drawn.edges(), dtype=np.int64)
    columns = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2).T
    nodes = drawn.number_of_nodes()
    ends = torch.tensor(np.ascontiguousarray(columns))
    return Data(edge_index=ends, num_nodes=nodes, in_clique=torch.zeros(nodes, dtype=torch.uint8))


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("task", ["topological_sort", "max_clique", "flow"])
def test_graphs_are_treated_alike_alone_and_in_a_batch(task: str, kind: str) -> None:
    model, graphs = replicator(task, OPTIONS[kind]), [graph(n, task, n) for n in (7, 18, 5, 9)]
    together = outputs(model, graphs)
    alone = torch.cat([outputs(model, [one]) for one in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_numbers_of_nodes_do_not_matter_when_the_random_numbers_follow_the_nodes() -> None:
    model, one, order = replicator("max_clique", OPTIONS["plain"]), graph(9, "max_clique", 3), torch.randperm(9)
    other = one.clone()
    other.edge_index = order.argsort()[one.edge_index]
    batch, relabelled = model.prepare(batch_of([one])), model.prepare(batch_of([other]))
    relabelled["_processor_noise"] = batch["_processor_noise"][order]
    torch.testing.assert_close(model(relabelled)["in_clique"], model(batch)["in_clique"][order], rtol=1e-3, atol=1e-4)


def test_the_mass_around_a_uniform_distribution_on_a_clique_is_that_of_motzkin_and_straus() -> None:
    drawn = nx.gnp_random_graph(12, 0.2, seed=1)
    drawn.add_edges_from((u, v) for u in range(5) for v in range(u))
    layout = Layout.of(batch_of([undirected(drawn)]), directed=False)
    _, mass = _masses(torch.where(torch.arange(12) < 5, 0.0, -1000.0).unsqueeze(1), layout)
    assert float((mass * _around(mass, layout)).sum()) == pytest.approx(1 - 1 / (2 * 5), abs=1e-5)


def test_a_step_without_its_network_adds_the_standardised_mass_of_the_neighbours() -> None:
    one = graph(9, "max_clique", 4, p=0.6)
    model = replicator("max_clique", {**OPTIONS["plain"], "steps": 1, "steps_per_node": 0, "pace": 0.7})
    processor: ReplicatorProcessor = model.processor
    torch.nn.init.zeros_(processor.out.weight)
    adjacency = np.zeros((9, 9))
    adjacency[tuple(one.edge_index.numpy())] = 1
    layout = Layout.of(batch_of([one]), directed=False)
    scores, kept = torch.randn(9, 2), torch.zeros(9, 4, 2)
    found, _ = processor._step(scores, kept, torch.zeros(9, 16), None, torch.full((9, 1), 0.7), layout)
    for copy in range(2):
        values = scores[:, copy].numpy().astype(np.float64)
        mass = np.exp(values) / np.exp(values).sum()
        around = adjacency @ mass + mass / 2
        mean = (mass * around).sum()
        gain = (around - mean) / np.sqrt((mass * (around - mean) ** 2).sum() + 1e-6)
        expected = values - values.max() + 0.7 * 0.5 * np.clip(gain, -4, 4)
        np.testing.assert_allclose(found[:, copy].detach().numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("task", ["topological_sort", "max_clique"])
@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.thorough
def test_compiled_steps_give_what_steps_in_torch_give(task: str, kind: str) -> None:
    model = replicator(task, {**OPTIONS[kind], "scored_copies": 32})
    graphs = [graph(n, task, n) for n in (7, 18, 5, 9)]
    layout = Layout.of(batch_of(graphs), directed=task == "topological_sort")
    places = layout.numbers / layout.sizes[layout.graph] if kind == "ordered" else None
    inputs = (torch.randn(39, 32), torch.randn(39, 4, 32), torch.randn(39, 16), places, layout)
    expected = model.processor._run(*inputs)
    with torch.inference_mode():
        found = model.processor._run(*inputs)
    for compiled, in_torch in zip(_masses(found[0], layout), _masses(expected[0], layout), strict=True):
        torch.testing.assert_close(compiled, in_torch.detach(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found[1], expected[1].detach(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_an_untrained_model_concentrates_its_mass_on_the_only_maximum_clique(seed: int) -> None:
    drawn = nx.gnp_random_graph(40, 0.25, seed=seed)
    clique = np.random.default_rng(seed).choice(40, 9, replace=False)
    drawn.add_edges_from((int(u), int(v)) for u in clique for v in clique if u != v)
    cliques = sorted(nx.find_cliques(drawn), key=len)
    assert set(cliques[-1]) == set(clique.tolist()) and len(cliques[-2]) < 9
    model = replicator("max_clique", {"scored_copies": 32})
    torch.nn.init.zeros_(model.processor.out.weight)
    read: list[torch.Tensor] = []
    model.processor.of_nodes.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    outputs(model, [undirected(drawn)])
    assert set(torch.nonzero(read[0][:, 0] > 0.5).flatten().tolist()) == set(clique.tolist())


def test_the_order_of_the_nodes_chooses_among_cliques_of_one_size() -> None:
    drawn = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4))
    drawn.add_edge(0, 4)
    model = replicator("max_clique", {"scored_copies": 32, "order": True})
    torch.nn.init.zeros_(model.processor.out.weight)
    read: list[torch.Tensor] = []
    model.processor.of_nodes.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    outputs(model, [undirected(drawn)])
    assert (read[0][:4, 0] > 0.9).all() and (read[0][4:, 0] < 0.1).all()


def test_ranks_are_those_of_the_sorted_sets_of_nodes() -> None:
    sizes, copies = (9, 200, 3), 40
    layout = Layout.of(batch_of([graph(n, "max_clique", n) for n in sizes]), directed=False)
    members = torch.rand(sum(sizes), copies, generator=torch.Generator().manual_seed(0)) < 0.1
    members[:, 20:] = members[:, :20].roll(3, dims=1)  # every set twice
    given = torch.randint(0, 3, (len(sizes), 20)).float()
    given = torch.cat([given, given.roll(3, dims=1)], dim=1)
    found = _ranks(given, members, layout)
    for number, rows in enumerate(members.split(sizes)):
        sets = [tuple(-int(bit) for bit in column) for column in rows.t()]  # a member sorts before a node outside
        for size in given[number].unique().tolist():
            group = [copy for copy in range(copies) if given[number, copy] == size]
            order = sorted({sets[copy] for copy in group})
            assert found[number, group].tolist() == [order.index(sets[copy]) for copy in group]


def test_the_best_copies_of_a_round_survive_as_they_are() -> None:
    model, one = replicator("max_clique", {"scored_copies": 16, "copies": 16}), graph(12, "max_clique", 4, p=0.6)
    layout = Layout.of(batch_of([one]), directed=False)
    scores, mass = _masses(torch.randn(12, 16) * 3, layout)
    within = (mass * _around(mass, layout)).sum(dim=0)
    survivors = model.processor._survivors(scores, layout)
    assert survivors.shape == (12, 2)
    best = torch.round(0.5 / (1 - within))
    kept = [int((scores - column.unsqueeze(1)).abs().sum(dim=0).argmin()) for column in survivors.t()]
    assert sorted(best[kept].tolist()) == best.sort().values[-2:].tolist()
    near = model.processor._near(survivors, torch.zeros(12, 4))
    assert torch.equal(near[:, 0], near[:, 2]) and torch.equal(near[:, 1], near[:, 3])
    assert near.min() >= 0 and near.max() <= model.processor.options.carried


def calls_of_a_step(model: Model, graphs: list[Data]) -> int:
    calls: list[object] = []
    original = model.processor._step
    model.processor._step = lambda *values: calls.append(None) or original(*values)
    outputs(model, graphs)
    del model.processor._step
    return len(calls)


def test_steps_grow_with_the_size_of_the_graph_and_training_takes_a_random_share() -> None:
    model = replicator("max_clique", {"steps": 4, "steps_per_node": 0.5, "least_share": 0.5, "rounds": 1})
    assert [calls_of_a_step(model, [graph(n, "max_clique")]) for n in (4, 16, 33)] == [6, 12, 21]
    counts = [calls_of_a_step(model.train(), [graph(32, "max_clique")]) for _ in range(30)]
    assert 10 <= min(counts) < 13 and 17 < max(counts) <= 20


def test_copies_are_more_when_a_model_is_scored() -> None:
    model, batch = replicator("max_clique", OPTIONS["plain"]), batch_of([graph(6, "max_clique")])
    assert model.prepare(batch, training=True)["_processor_noise"].shape == (6, 3)
    assert model.prepare(batch)["_processor_noise"].shape == (6, 5)
    more = replicator("max_clique", {**OPTIONS["plain"], "rounds": 3})
    assert more.prepare(batch, training=True)["_processor_noise"].shape == (6, 3)
    assert more.prepare(batch)["_processor_noise"].shape == (6, 15)


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_weight_receives_a_gradient(kind: str) -> None:
    model = replicator("max_clique", OPTIONS[kind]).train()
    outputs(model, [graph(n, "max_clique", n) for n in (7, 12)]).square().sum().backward()
    without = [n for n, w in model.processor.named_parameters() if w.grad is None or not w.grad.isfinite().all()]
    assert without == []


def test_graphs_without_edges_have_outputs() -> None:
    model = replicator("max_clique", OPTIONS["ordered"])
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=4, in_clique=torch.zeros(4))
    assert outputs(model, [empty]).isfinite().all()


def test_outputs_stay_near_under_autocast() -> None:
    batch = batch_of([graph(n, "max_clique", n) for n in (7, 12)])
    assert_near_under_autocast(replicator("max_clique", OPTIONS["plain"]), batch, "in_clique")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"copy": 4}}, "copies"),
        ({"options": {"pace": 0}}, "pace"),
        ({"layers": 3}, r"set model\.layers to 1"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small_model("replicator", "max_clique", **{"layers": 1, **settings})
