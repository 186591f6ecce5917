"""The processor of pairs: equivariant to node numbers, the same alone and in a batch, for every kind of output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from graphbench.core.errors import ConfigError
from graphbench.models.build import Model
from graphbench.models.decoders import Head
from graphbench.models.pair_layout import PairLayout
from graphbench.models.processors.pairs import PairLayer, PairOptions
from graphbench.models.semirings import semiring_closure, semiring_product

from .conftest import TASKS, assert_near_under_autocast, batch_of, graph, small_model

OPTIONS: dict[str, dict[str, Any]] = {
    "closure": {"closure": 4},
    "all": {"closure": 4, "triangle": 4, "minima": 0.25, "pools": ["mean", "max"]},
    "recurrent": {"closure": 0, "triangle": 4, "recurrent": True},
    "noise": {"closure": 4, "minima": 1.0, "noise": 3},
    "bare": {"closure": 0},
    "means": {"closure": 0, "means": 4, "pools": ["mean"]},
    "edges": {"closure": 4, "pools": ["edges", "max"], "node_pools": ["edges"]},
}


def pair_model(task: str, kind: str) -> Model:
    layers = 1 if kind == "recurrent" else 2
    return small_model("pairs", task, positional={"type": "none"}, options=OPTIONS[kind], layers=layers).eval()


def outputs(model: Model, graphs: list[Data]) -> torch.Tensor:
    (raw,) = model(model.prepare(batch_of(graphs))).values()
    return raw


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("task", TASKS)
def test_graphs_are_treated_alike_alone_and_in_a_batch(task: str, kind: str) -> None:
    model, graphs = pair_model(task, kind), [graph(n, task, n) for n in (7, 12, 5, 9)]
    together = outputs(model, graphs)
    alone = torch.cat([outputs(model, [one]) for one in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["all", "edges"])
@pytest.mark.parametrize("task", ["mst", "topological_sort", "max_clique", "flow"])
def test_numbers_of_nodes_do_not_matter(task: str, kind: str) -> None:
    model, one = pair_model(task, kind), graph(9, task, 3)
    order = torch.randperm(9)
    place = order.argsort()  # node v is node place[v] of the relabelled graph
    other = one.clone()
    other.edge_index = place[one.edge_index]
    for name, feature in ((n, t) for n, t in TASKS[task].items() if t[1] == "node"):
        other[name] = one[name][order]
        assert feature
    raw, relabelled = outputs(model, [one]), outputs(model, [other])
    on_nodes = TASKS[task][list(TASKS[task])[-1]][1] == "node"
    torch.testing.assert_close(relabelled, raw[order] if on_nodes else raw, rtol=1e-4, atol=1e-5)


def test_sums_over_edges_grow_with_the_degree_and_not_with_the_graph() -> None:
    layout = PairLayout(np.array([4, 2]), torch.device("cpu"))
    values = torch.arange(20.0).unsqueeze(1)
    star = torch.tensor(
        [1 * 4 + 0, 2 * 4 + 0, 3 * 4 + 0, 16 + 1]
    )  # 1, 2, 3 to 0 in the first graph, 0 to 1 in the other
    assert layout.summed(values, star).flatten().tolist() == [24.0, 0.0, 0.0, 0.0, 0.0, 17.0]


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_weight_receives_a_gradient(kind: str) -> None:
    model = pair_model("mst", kind).train()
    outputs(model, [graph(n, "mst", n) for n in (7, 12)]).square().sum().backward()
    without = [name for name, weight in model.processor.named_parameters() if weight.grad is None]
    assert without == ["of_nodes.weight", "of_nodes.bias"]


@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("sizes", [(5, 3, 0, 2), (7, 7), (17,)])
def test_layers_compute_their_equations(sizes: tuple[int, ...], recall: bool) -> None:
    layout = PairLayout(np.array(sizes, np.int64), torch.device("cpu"))
    options = PairOptions(closure=4, triangle=6, means=3, minima=0.5, pools=("mean", "max"))
    layer = PairLayer(16, options, recall=recall)
    pairs, start = (torch.randn(layout.size, 16, requires_grad=True) for _ in range(2))

    def means(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        through = [layout.through(w) for w in range(layout.most_nodes)]
        total = sum((a[i] * b[j]) * there.unsqueeze(1) for i, j, there in through)
        return total / layout.sizes.unsqueeze(1)

    def plain() -> torch.Tensor:
        columns = layer.direct(torch.cat([pairs, start], 1) if recall else pairs)
        columns = columns + layout.transposed(layer.reverse(pairs))
        low, lengths, left, right, a, b, hidden = columns.split([2, 2, 6, 6, 3, 3, 32], dim=1)
        closed = semiring_closure(torch.cat([low, -nn.functional.softplus(lengths)], 1), layout, 2)
        combined = torch.cat([closed, semiring_product(left, right, layout, 3), means(a, b)], 1)
        pooled = torch.cat([layout.pooled(pairs, kind) for kind in options.pools], 1)
        tails, heads = layer.tails(pooled)[layout.tails], layer.heads(pooled)[layout.heads]
        update = layer.out(torch.relu(hidden + layer.combined(combined) + tails + heads))
        value, gate = update.chunk(2, dim=1)
        return torch.lerp(pairs, value, torch.sigmoid(gate)) if recall else pairs + update

    inputs = [pairs, *([start] if recall else []), *layer.parameters()]
    weights = torch.randn(layout.size, 16)
    expected, found = plain(), layer(pairs, layout, start if recall else None)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad(value, inputs, weights) for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_the_order_of_nodes_is_read_where_it_is_asked_for() -> None:
    options = {"closure": 4, "order": True}
    model = small_model("pairs", "max_clique", positional={"type": "none"}, options=options).eval()
    torch.nn.init.normal_(model.processor.order)
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=4, in_clique=torch.zeros(4))
    assert len(outputs(model, [empty]).unique()) == 4


def test_noise_is_drawn_for_every_training_step_and_fixed_when_scoring() -> None:
    model, batch = pair_model("bridges", "noise"), batch_of([graph(n, "bridges", n) for n in (7, 12)])
    first, second = (model.prepare(batch, generator=torch.Generator().manual_seed(s), training=True) for s in (0, 1))
    assert not torch.equal(first["_processor_noise"], second["_processor_noise"])
    assert model.prepare(batch) is model.prepare(batch)
    alone = model.prepare(batch_of([graph(12, "bridges", 12)]))["_processor_noise"]
    assert torch.equal(model.prepare(batch)["_processor_noise"][-len(alone) :], alone)


@pytest.mark.parametrize(("kind", "layers"), [("closure", 3), ("recurrent", 1)])
def test_earlier_states_are_decoded_in_training_alone(kind: str, layers: int) -> None:
    options = {**OPTIONS[kind], "supervised": 2}
    model = small_model("pairs", "mst", positional={"type": "none"}, options=options, layers=layers, dropout=0.0)
    batch = model.prepare(batch_of([graph(n, "mst", n) for n in (7, 12)]))
    trained = model(batch)
    assert len(trained.earlier) == 2
    raw = [outputs["in_tree"] for outputs in (trained, *trained.earlier)]
    assert all(one.shape == raw[0].shape for one in raw) and not torch.equal(raw[0], raw[1])
    assert not hasattr(model.eval()(batch), "earlier")


def test_outputs_without_a_normalisation_grow_with_the_states() -> None:
    heads = [Head(8, 1, "relu", norm=norm) for norm in (True, False)]
    rows = 1e3 * torch.rand(5, 8)
    bound, free = ((head(rows).abs().max() / head(rows / 1e3).abs().max()).item() for head in heads)
    assert bound < 10 < 100 < free


def test_wrong_options_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="closure"):
        small_model("pairs", "mst", options={"closur": 4})
    with pytest.raises(ConfigError, match="closure"):
        small_model("pairs", "mst", options={"closure": 10**9})
    with pytest.raises(ConfigError, match=r"set model\.layers to 1"):
        small_model("pairs", "mst", options={"recurrent": True}, layers=2)
    with pytest.raises(ConfigError, match="supervised is 3"):
        small_model("pairs", "mst", options={"supervised": 3}, layers=2)


@pytest.mark.parametrize("kind", OPTIONS)
def test_outputs_under_autocast_are_near(kind: str) -> None:
    model = pair_model("mst", kind)
    assert_near_under_autocast(model, model.prepare(batch_of([graph(n, "mst", n) for n in (7, 12)])), "in_tree")
