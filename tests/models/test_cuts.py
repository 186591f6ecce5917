"""The readout of cuts: never below the maximum flow, never above a rule, and exact where the potentials are."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import Model, build_model
from graphbench.models.config import ModelConfig
from graphbench.models.cuts import CutDecoder, _smallest_bound, _smallest_cut
from graphbench.models.graphs import Layout

from .conftest import TASKS, batch_of, graph, small_model

SIZES = (7, 12, 5, 9, 16, 2)


def marked(nodes: int, seed: int) -> Data:
    """Return a graph whose source and sink differ."""
    one = graph(nodes, "flow", seed, p=0.5)
    source, sink = np.random.default_rng(seed).choice(nodes, 2, replace=False).tolist()
    for name, node in (("source", source), ("sink", sink)):
        one[name] = (torch.arange(nodes) == node).to(torch.uint8)
    return one


def graphs(first: int = 0) -> list[Data]:
    return [marked(nodes, first + number) for number, nodes in enumerate(SIZES)]


def network(one: Data) -> tuple[nx.DiGraph, int, int]:
    arcs = nx.DiGraph()
    arcs.add_nodes_from(range(one.num_nodes))
    for (u, v), capacity in zip(one.edge_index.T.tolist(), one.capacity.tolist(), strict=True):
        arcs.add_edge(u, v, capacity=capacity)
    return arcs, int(one.source.argmax()), int(one.sink.argmax())


def cut_model(processor: str = "gin", **settings: object) -> Model:
    torch.manual_seed(1)
    return small_model(processor, "flow", readout="cut", dropout=0.0, stochastic_depth=0.0, **settings)


def value(model: Model, of: list[Data]) -> torch.Tensor:
    with torch.no_grad():
        return model(model.prepare(batch_of(of)))["value"]


@pytest.mark.parametrize("processor", ["gin", "gt", "deepsets"])
def test_untrained_values_lie_between_the_flow_and_the_smaller_capacity_of_source_and_sink(processor: str) -> None:
    model = cut_model(processor)
    given = graphs()
    scored, bound = value(model.eval(), given), value(model.train(), given)
    assert scored.shape == (len(SIZES),) and scored.dtype == torch.float32
    for one, smallest, upper in zip(given, scored.tolist(), bound.tolist(), strict=True):
        arcs, source, sink = network(one)
        flow = nx.maximum_flow_value(arcs, source, sink)
        out = sum(data["capacity"] for _, _, data in arcs.out_edges(source, data=True))
        into = sum(data["capacity"] for _, _, data in arcs.in_edges(sink, data=True))
        assert flow - 1e-4 <= smallest <= min(out, into) + 1e-4
        assert smallest <= upper + 1e-4


def test_a_sweep_finds_what_brute_force_finds_also_with_equal_values() -> None:
    rng = np.random.default_rng(3)
    given = graphs(20)
    batch = batch_of(given)
    order = torch.tensor(rng.integers(1, 5, batch.num_nodes) / 8, dtype=torch.float64)
    order[batch.source > 0], order[batch.sink > 0] = 2.0, -1.0
    found = _smallest_cut(order, batch.capacity.double(), Layout.of(batch, directed=False))
    for number, (first, last) in enumerate(pairwise(batch.ptr.tolist())):
        arcs, _, _ = network(given[number])
        own = order[first:last].numpy()
        cuts = [
            sum(data["capacity"] for u, v, data in arcs.edges(data=True) if own[u] >= limit > own[v])
            for limit in sorted(set(own.tolist()))[1:]
        ]
        assert float(found[number]) == pytest.approx(min(cuts))


def test_the_potentials_of_a_smallest_cut_give_the_maximum_flow() -> None:
    for one in graphs(40):
        arcs, source, sink = network(one)
        flow, (side, _) = nx.minimum_cut(arcs, source, sink)
        potentials = torch.tensor([[float(node in side)] for node in range(one.num_nodes)])
        layout = Layout.of(batch_of([one]), directed=False)
        assert float(_smallest_bound(potentials, one.capacity, layout)) == pytest.approx(flow, rel=1e-5)
        order = potentials[:, 0].double()
        order[source], order[sink] = 2.0, -1.0
        assert float(_smallest_cut(order, one.capacity.double(), layout)) == pytest.approx(flow, rel=1e-5)


def test_graphs_are_treated_alike_alone_and_in_a_batch_and_numbers_of_nodes_do_not_matter() -> None:
    model, given = cut_model().eval(), graphs(60)
    together = value(model, given)
    torch.testing.assert_close(together, torch.cat([value(model, [one]) for one in given]))
    order = torch.randperm(16)
    other = given[4].clone()
    other.edge_index = order[given[4].edge_index]
    for name in ("source", "sink"):
        other[name] = torch.empty_like(given[4][name]).index_copy(0, order, given[4][name])
    torch.testing.assert_close(value(model, [other]), together[4:5])


def test_training_lowers_the_bound() -> None:
    model, given = cut_model().train(), graphs(80)
    batch = model.prepare(batch_of(given))
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    begin = float(model(batch)["value"].mean().detach())
    for _ in range(60):
        optimiser.zero_grad()
        loss = model(batch)["value"].mean()
        loss.backward()
        optimiser.step()
    bound = loss.detach()
    flows = [nx.maximum_flow_value(*network(one)) for one in given]
    assert np.mean(flows) - 1e-4 <= float(bound) < begin
    (decoder,) = model.decoders
    assert isinstance(decoder, CutDecoder)
    assert all(weight.grad is not None for weight in decoder.parameters())


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (TASKS["mst"], "'cut' needs an input of the type mask_one"),
        ({**TASKS["flow"], "value": ["output", "graph", "scalar(2)"]}, "gives one number per graph"),
        ({**TASKS["flow"], "value": ["output", "graph", "mask"]}, "gives one number per graph"),
        ({**TASKS["flow"], "length": ["input", "edge", "scalar"]}, "there are 2 and 2"),
        ({name: spec for name, spec in TASKS["flow"].items() if name != "sink"}, "there are 1 and 1"),
        ({**TASKS["flow"], "value": ["output", "node", "scalar"]}, "for outputs of graphs"),
    ],
)
def test_what_has_no_cut_is_refused(features: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        build_model(ModelConfig(hidden=8, layers=1, readout="cut"), parse_features(features), directed=False)


def test_the_gradient_is_that_of_the_bound_also_when_scored() -> None:
    model, batch = cut_model(), batch_of(graphs(100))
    gradients = []
    for mode in (True, False):
        model.train(mode).zero_grad()
        model(model.prepare(batch))["value"].sum().backward()
        gradients.append([weight.grad.clone() for weight in model.parameters() if weight.grad is not None])
    for trained, scored in zip(*gradients, strict=True):
        torch.testing.assert_close(trained, scored)
    with torch.no_grad():
        plain = model.eval()(model.prepare(batch))["value"]
    torch.testing.assert_close(plain, model(model.prepare(batch))["value"].detach())
