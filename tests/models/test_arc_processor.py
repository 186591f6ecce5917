"""The processor of arcs: equivariant to node numbers, the same alone and in a batch, with steps that grow with size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import Model, build_model
from graphbench.models.config import ModelConfig
from graphbench.models.processors.recurrence import supervised_states

from .conftest import SMALL, TASKS, assert_near_under_autocast, batch_of, graph, small_model

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"steps": 1, "steps_per_doubling": 1},
    "wide": {"steps": 2, "steps_per_doubling": 0.5, "inner": 2},
    "noise": {"steps": 3, "steps_per_doubling": 0, "noise": 3},
    "flows": {"steps": 2, "steps_per_doubling": 0, "circulations": 3},
    "bare": {"steps": 0, "steps_per_doubling": 0},
}
STEPS = {"steps": 1, "steps_per_doubling": 2}


def arc_model(task: str, options: dict[str, Any], **settings: Any) -> Model:
    return small_model("arcs", task, positional={"type": "none"}, options=options, layers=1, **settings).eval()


def outputs(model: Model, graphs: list[Data]) -> torch.Tensor:
    (raw,) = model(model.prepare(batch_of(graphs))).values()
    return raw


def calls_of_the_step(model: Model, graphs: list[Data]) -> int:
    calls: list[object] = []
    handle = model.processor.step.register_forward_hook(lambda *_: calls.append(None))
    outputs(model, graphs)
    handle.remove()
    return len(calls)


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("task", TASKS)
def test_graphs_are_treated_alike_alone_and_in_a_batch(task: str, kind: str) -> None:
    model, graphs = arc_model(task, OPTIONS[kind]), [graph(n, task, n) for n in (7, 18, 5, 9)]
    together = outputs(model, graphs)
    alone = torch.cat([outputs(model, [one]) for one in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", ["mst", "topological_sort", "max_clique", "flow", "max_matching"])
def test_numbers_of_nodes_do_not_matter(task: str) -> None:
    model, one = arc_model(task, OPTIONS["plain"]), graph(9, task, 3)
    order = torch.randperm(9)
    other = one.clone()
    other.edge_index = order.argsort()[one.edge_index]
    *_, (_, output) = TASKS[task].items()
    for name in (name for name, kinds in TASKS[task].items() if kinds[1] == "node"):
        other[name] = one[name][order]
    raw, relabelled = outputs(model, [one]), outputs(model, [other])
    torch.testing.assert_close(relabelled, raw[order] if output[1] == "node" else raw, rtol=1e-4, atol=1e-5)


def test_both_directions_of_an_edge_have_one_output_and_may_be_listed_in_either_order() -> None:
    model, one = arc_model("max_matching", OPTIONS["plain"]), graph(9, "max_matching", 3)
    flipped = one.clone()
    flipped.edge_index = one.edge_index.view(2, -1, 2).flip(2).reshape(2, -1)
    raw = outputs(model, [one])
    assert torch.equal(raw[::2], raw[1::2])
    torch.testing.assert_close(outputs(model, [flipped]), raw, rtol=1e-4, atol=1e-5)


def test_arcs_of_directed_graphs_differ_from_their_reverses() -> None:
    features = parse_features({"cost": ["input", "edge", "scalar"], "used": ["output", "edge", "mask"]})
    config = ModelConfig.model_validate(
        {**SMALL, "processor": "arcs", "layers": 1, "positional": {"type": "none"}, "options": OPTIONS["plain"]}
    )
    model = build_model(config, features, directed=True).eval()
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, cost=torch.ones(2), used=torch.zeros(2))
    raw = outputs(model, [path])
    assert raw.shape == (2,) and raw[0] != raw[1]  # one arc leaves the end of the path, the other one enters it


def test_graphs_without_edges_have_outputs() -> None:
    model = arc_model("max_clique", OPTIONS["plain"])
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=4, in_clique=torch.zeros(4))
    assert outputs(model, [empty]).isfinite().all()


def test_steps_grow_with_the_size_of_the_graph() -> None:
    model = arc_model("max_matching", STEPS)
    assert [calls_of_the_step(model, [graph(n, "max_matching")]) for n in (4, 8, 16, 17, 32)] == [5, 7, 9, 10, 11]
    assert calls_of_the_step(model, [graph(n, "max_matching") for n in (4, 32, 8)]) == 11


def test_more_steps_change_the_states_of_the_larger_graphs_of_a_batch_alone() -> None:
    model, graphs = arc_model("max_matching", STEPS), [graph(n, "max_matching") for n in (4, 16)]
    few = outputs(model, graphs[:1])
    torch.testing.assert_close(outputs(model, graphs)[: len(few)], few, rtol=1e-4, atol=1e-5)
    model.processor.options = model.processor.options.model_copy(update={"steps": 2.0})
    assert not torch.allclose(outputs(model, graphs[:1]), few, rtol=1e-3, atol=1e-4)


def test_training_takes_a_random_share_of_the_steps() -> None:
    model = arc_model("max_matching", {"steps": 20, "steps_per_doubling": 0, "least_share": 0.5})
    graphs = [graph(6, "max_matching")]
    counts = [calls_of_the_step(model.train(), graphs) for _ in range(30)]
    assert 10 <= min(counts) < 13 and 17 < max(counts) <= 20
    assert {calls_of_the_step(model.eval(), graphs) for _ in range(3)} == {20}


@pytest.mark.parametrize("kind", ["plain", "wide", "noise"])
def test_every_weight_receives_a_gradient(kind: str) -> None:
    model = arc_model("mst", OPTIONS[kind]).train()
    outputs(model, [graph(n, "mst", n) for n in (7, 12)]).square().sum().backward()
    without = [name for name, weight in model.processor.named_parameters() if weight.grad is None]
    assert without == ["of_nodes.weight", "of_nodes.bias"]


@pytest.mark.parametrize("hidden", [16, 12])  # compiled, and in torch
def test_a_matching_of_a_path_is_learned(hidden: int) -> None:
    graphs = []
    for seed in range(16):
        weights = torch.rand(3, generator=torch.Generator().manual_seed(seed)) * 5
        matched = torch.tensor([1, 0, 1] if weights[0] + weights[2] > weights[1] else [0, 1, 0])
        ends = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        values = {"weight": weights.repeat_interleave(2), "matched": matched.repeat_interleave(2)}
        graphs.append(Data(edge_index=ends, num_nodes=4, **values))
    batch = batch_of(graphs)
    model = arc_model("max_matching", {"steps": 4, "steps_per_doubling": 0}, hidden=hidden, dropout=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch)["matched"], batch.matched.float())
        if loss < 0.02:  # later, such large steps make the loss jump, at a step that depends on the processor
            break
        loss.backward()
        optimizer.step()
    assert ((model.eval()(batch)["matched"] > 0) == batch.matched.bool()).all()


def test_noise_is_shared_by_the_directions_of_an_edge_and_fixed_when_scoring() -> None:
    model, one = arc_model("bridges", OPTIONS["noise"]), graph(9, "bridges", 2)
    facts = model.prepare(batch_of([one]))["_processor_noise"]
    assert facts.shape == (one.num_edges // 2, 3)
    assert torch.equal(model.prepare(batch_of([graph(7, "bridges"), one]))["_processor_noise"][-len(facts) :], facts)


def test_earlier_states_are_decoded_in_training_alone() -> None:
    model = arc_model("mst", {**STEPS, "supervised": 2}, dropout=0.0)
    batch = batch_of([graph(n, "mst", n) for n in (7, 12)])
    assert len(model.train()(batch).earlier) == 2
    assert not hasattr(model.eval()(batch), "earlier")


def test_supervised_states_are_evenly_spaced_and_end_with_the_last() -> None:
    states = [torch.tensor(step) for step in range(10)]
    assert [int(state) for state in supervised_states(states, 2)] == [9, 6, 3]
    assert [int(state) for state in supervised_states(states[:2], 5)] == [1, 0]


def test_scored_batches_hold_fewer_graphs_than_the_memory_would_allow() -> None:
    rows = small_model("arcs", "mst", layers=1).processor.rows(np.array([128, 16]), np.array([700, 36]))
    assert (rows > 4 * np.array([128 + 2 * 700, 16 + 2 * 36])).all()


def test_outputs_stay_near_under_autocast() -> None:
    batch = batch_of([graph(n, "max_matching", n) for n in (7, 12)])
    assert_near_under_autocast(arc_model("max_matching", OPTIONS["plain"]), batch, "matched")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"step": 4}}, "steps"),
        ({"options": {"least_share": 0}}, "least_share"),
        ({"options": {"steps": -1}}, "steps"),
        ({"layers": 3}, r"set model\.layers to 1"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small_model("arcs", "mst", **{"layers": 1, **settings})


def test_inverse_edges_are_refused() -> None:
    with pytest.raises(ConfigError, match="inverse_edges"):
        small_model("arcs", "topological_sort", layers=1, inverse_edges=True)
