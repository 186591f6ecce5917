"""Models of several tasks: what they share, what they do not, and recurrent models on tasks without hints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphbench import card
from graphbench.catalog.features import Location, parse_features
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, batch_of_samples
from graphbench.data.build.generation import draw_samples
from graphbench.models.base import TaskFeatures, TaskModel
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.joint import JointModel
from graphbench.models.losses import loss, predictions
from graphbench.models.processors import State
from graphbench.models.registry import build_task_model
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import PairVectors
from graphbench.models.trajectory.model import TrajectoryModel
from graphbench.models.trajectory.processors import Step
from graphbench.training.checkpoint import load_model

from .conftest import TASKS, batch_of, features_of, graph, random_batch, small_model

GRAPH_TASKS = {f"toys/{name}": TaskFeatures(features_of(name), name == "topological_sort") for name in TASKS}
BFS = "clrs/bfs"
DENSE = ("mpnn", "pgn", "triplet_gmpnn", "gat", "gatv2", "deepsets", "memnet")
SPARSE = ("gin", "gt", "mlp")


def trace_batch(name: str = BFS, count: int = 3) -> TrajectoryBatch:
    about = card(name)
    return batch_of_samples(draw_samples(about, "train", np.arange(count)), about.features)


def recurrent(tasks: dict[str, TaskFeatures], **settings: Any) -> TrajectoryModel:
    torch.manual_seed(0)
    model = build_task_model(TrajectoryModelConfig(**{"hidden": 16, "heads": 2, "steps": 2, **settings}), tasks)
    assert isinstance(model, TrajectoryModel)
    return model


def touched(model: TaskModel) -> set[str]:
    """Return the names of the parameters that have a gradient, and forget the gradients."""
    found = {name for name, p in model.named_parameters() if p.grad is not None and bool(p.grad.any())}
    model.zero_grad(set_to_none=True)
    return found


def require_shared_once(model: TaskModel) -> None:
    """Require that the state has every tensor once, and that it brings the model back."""
    state = model.state_dict()
    assert len({value.data_ptr() for value in state.values() if value.numel()}) == len(
        [value for value in state.values() if value.numel()]
    )
    assert set(dict(model.named_parameters(remove_duplicate=False))) <= set(state)
    model.load_state_dict(state)


# Graph models


@pytest.mark.parametrize("processor", ["gin", "gt", "gat", "deepsets", "mlp", "pairs", "arcs", "replicator"])
def test_every_task_of_graphs_reaches_the_shared_processor(processor: str) -> None:
    torch.manual_seed(0)
    layers = 1 if processor in ("arcs", "replicator") else 2
    config = ModelConfig(processor=processor, hidden=16, heads=4, layers=layers, dropout=0.0, stochastic_depth=0.0)
    model = build_task_model(config, GRAPH_TASKS)
    assert isinstance(model, JointModel)
    require_shared_once(model)
    shared = {name for name in model.state_dict() if name.startswith("processor.")}
    assert shared
    reached: set[str] = set()
    for name in TASKS:
        batch, id_ = random_batch(name), f"toys/{name}"
        model.fit_normalisation(batch, id_)
        outputs = model(batch, id_)
        loss(outputs, batch, features_of(name)).backward()
        found = touched(model)
        assert found & shared
        assert all(key.startswith(("processor.", f"tasks.toys__{name}.")) for key in found)
        reached |= found
        assert predictions(outputs, features_of(name), batch).keys() == outputs.keys()
    assert shared <= reached


def test_a_task_of_a_joint_model_computes_what_a_model_of_its_own_does() -> None:
    config = ModelConfig.model_validate({"layers": 2, "hidden": 16, "heads": 4})
    joint = build_task_model(config, {"a": TaskFeatures(features_of("mst")), "b": TaskFeatures(features_of("flow"))})
    for id_, name in (("a", "mst"), ("b", "flow")):
        own = build_task_model(config, {id_: TaskFeatures(features_of(name))})
        state = joint.state_dict()
        weights = {k.removeprefix(f"tasks.{id_}."): v for k, v in state.items() if not k.startswith("tasks.")}
        weights |= {k.removeprefix(f"tasks.{id_}."): v for k, v in state.items() if k.startswith(f"tasks.{id_}.")}
        own.load_state_dict(weights)
        batch = random_batch(name)
        for key, value in own.eval()(batch).items():
            assert torch.equal(joint.eval()(batch, id_)[key], value)


def test_one_task_keeps_the_names_and_the_draws_of_a_single_model() -> None:
    torch.manual_seed(3)
    single = small_model("gin", "mst")
    torch.manual_seed(3)
    built = build_task_model(single.config, {"a": TaskFeatures(features_of("mst"))})
    assert list(built.state_dict()) == list(single.state_dict())
    for name, value in built.state_dict().items():
        assert torch.equal(value, single.state_dict()[name])


def test_a_readout_applies_to_the_tasks_whose_outputs_lie_on_graphs() -> None:
    tasks = {name: TaskFeatures(features_of(name)) for name in ("mst", "flow")}
    model = build_task_model(ModelConfig(hidden=8, layers=1, readout="marked"), tasks)
    assert isinstance(model, JointModel)
    assert [model.tasks[name].config.readout for name in tasks] == ["pooled", "marked"]
    for name in tasks:
        assert all(value.isfinite().all() for value in model(random_batch(name), name).values())
    del tasks["flow"]
    with pytest.raises(ConfigError, match="'marked' is for outputs of graphs, and no task has any"):
        build_task_model(ModelConfig(hidden=8, layers=1, readout="marked"), {**tasks, "b": tasks["mst"]})


def test_what_joint_graph_models_refuse() -> None:
    tasks = {"a": TaskFeatures(features_of("mst")), "b": TaskFeatures(features_of("flow"))}
    model = build_task_model(ModelConfig(hidden=8, layers=1, ignore=("capacity",)), tasks)
    with pytest.raises(ConfigError, match=r"2 tasks.*task_id.*a, b"):
        model(random_batch("mst"))
    with pytest.raises(ConfigError, match="not built for 'c'; it knows a, b"):
        model(random_batch("mst"), "c")
    with pytest.raises(ConfigError, match=r"ignore names \['age'\].*\['capacity'"):
        build_task_model(ModelConfig(hidden=8, layers=1, ignore=("age",)), tasks)
    with pytest.raises(ConfigError, match=r"clrs/bfs has hints.*kind graph"):
        build_task_model(ModelConfig(), {BFS: TaskFeatures.of(card(BFS))})
    with pytest.raises(ConfigError, match="'answer' is a text, which models of graphs do not write"):
        build_task_model(ModelConfig(), {"a": TaskFeatures(parse_features({"answer": ["output", "graph", "text"]}))})


# Recurrent models


@pytest.mark.parametrize("processor", [*DENSE, *SPARSE])
@pytest.mark.thorough
def test_traces_and_single_answers_share_a_processor(processor: str) -> None:
    tasks = {BFS: TaskFeatures.of(card(BFS)), **GRAPH_TASKS}
    model = recurrent(tasks, processor=processor)
    require_shared_once(model)
    shared = {name for name, _ in model.named_parameters() if name.startswith("processor.")}
    batch = model.prepare(trace_batch(), BFS, torch.Generator().manual_seed(0), training=True)
    model.loss(batch, BFS).backward()
    found = touched(model)
    assert {name for name in shared if "graph" not in name} <= found  # nothing lies at the graph
    for name in ("bridges", "flow", "max_clique"):
        graphs, id_ = random_batch(name), f"toys/{name}"
        assert model.prepare(graphs, id_) is graphs
        model.fit_normalisation(graphs, id_)
        loss(model(graphs, id_), graphs, features_of(name)).backward()
        found = touched(model)
        assert found & shared
        assert all(key.startswith(("processor.", f"heads.toys__{name}.")) for key in found)


@pytest.mark.parametrize("processor", ["mpnn", "triplet_gmpnn", "gin"])
@pytest.mark.parametrize("name", TASKS)
def test_single_answers_have_the_form_of_graph_models(processor: str, name: str) -> None:
    batch = random_batch(name)
    model = recurrent({"a": GRAPH_TASKS[f"toys/{name}"]}, processor=processor).eval()
    model.fit_normalisation(batch)
    found, expected = model(batch), small_model("gin", name)(batch)
    assert {key: value.shape for key, value in found.items()} == {key: value.shape for key, value in expected.items()}
    assert model.predict(batch)[next(iter(found))].equal(found[next(iter(found))])
    if name in ("mst", "bridges"):
        for value in found.values():
            assert torch.equal(value[::2], value[1::2])


@pytest.mark.parametrize("processor", ["mpnn", "gatv2", "gin", "gt"])
def test_a_batch_is_answered_as_its_graphs_are(processor: str) -> None:
    graphs = [graph(n, "steiner_tree", seed) for seed, n in enumerate((5, 8, 5, 3, 8))]
    model = recurrent({"a": TaskFeatures(features_of("steiner_tree"))}, processor=processor).eval()
    together = model(batch_of(graphs))["in_tree"]
    alone = torch.cat([model(batch_of([one]))["in_tree"] for one in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_single_answers_are_those_of_the_dense_formulas() -> None:
    """One step of MPNN on one graph, written out pair by pair from the weights."""
    data = graph(5, "mst", 1)
    batch = batch_of([data])
    model = recurrent({"a": TaskFeatures(features_of("mst"))}, processor="mpnn", steps=1, use_layer_norm=False).eval()
    model.fit_normalisation(batch)
    heads, processor = model.heads["a"], model.processor
    n, hidden = 5, 16
    weight = (data.weight - data.weight.mean()) / data.weight.std(unbiased=False)
    columns = torch.zeros(n, n, 2)
    for k, (u, v) in enumerate(data.edge_index.t().tolist()):
        columns[u, v] = torch.stack([weight[k], torch.tensor(1.0)])
    pairs = heads.input_encoder.linear(Location.EDGE)(columns)
    empty = torch.zeros(n, 2 * hidden)
    total = processor.sender(empty).unsqueeze(1) + processor.receiver(empty).unsqueeze(0) + processor.pair(pairs)
    total = total + processor.graph(torch.zeros(hidden))
    received = processor.outer(torch.relu(processor.inner(torch.relu(total)))).amax(0)
    after = torch.relu(processor.of_nodes(empty) + processor.of_messages(received))
    decoder, rows = heads.output_decoders.decoders["in_tree"], torch.cat([empty, after], -1)
    raw = decoder.first(rows).unsqueeze(1) + decoder.second(rows).unsqueeze(0) + decoder.pair(pairs)
    tails, ends = data.edge_index
    expected = (raw[tails, ends] + raw[ends, tails]).squeeze(-1) / 2
    torch.testing.assert_close(model(batch)["in_tree"], expected, rtol=1e-4, atol=1e-5)


def test_pointers_classes_and_wide_scalars_of_single_answers() -> None:
    features = parse_features(
        {
            "place": ["input", "node", "scalar(3)"],
            "kind": ["input", "edge", "categorical(3)"],
            "flag": ["input", "graph", "mask"],
            "next": ["output", "node", "pointer"],
            "best": ["output", "node", "mask_one"],
            "force": ["output", "node", "scalar(2)"],
            "class": ["output", "edge", "categorical(4)"],
        }
    )
    graphs = []
    for n in (3, 5):
        data = graph(n, "bridges", n, p=0.9)
        count = data.edge_index.shape[1]
        data.update({"place": torch.randn(n, 3), "kind": torch.randint(3, (count,)), "flag": torch.ones(1)})
        data.update({"next": torch.randint(n, (n,)), "best": torch.eye(n)[0], "force": 100 + torch.randn(n, 2)})
        data["class"] = torch.randint(4, (count,))
        graphs.append(data)
    batch = batch_of(graphs)
    model = recurrent({"a": TaskFeatures(features)}, processor="mpnn")
    model.fit_normalisation(batch)
    found = model(batch)
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "next": (8, 5), "best": (8,), "force": (8, 2), "class": (batch.edge_index.shape[1], 4),
    }  # fmt: skip
    assert torch.isneginf(found["next"][:3, 3:]).all() and torch.isfinite(found["next"][:3, :3]).all()
    assert 90 < float(found["force"].detach().mean()) < 110
    loss(found, batch, features).backward()
    assert predictions(found, features, batch)["best"].sum() == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"t": ["output", "edge", "pointer"]}, "no decoder"),
        (
            {"p": ["input", "graph", "pointer"], "t": ["output", "node", "mask"]},
            "no encoder for a pointer of the graph",
        ),
        ({"p": ["input", "node", "scalar"]}, "no output"),
        ({"t": ["output", "graph", "text"]}, "whose kind does, such as text"),
    ],
)
def test_tasks_that_recurrent_models_refuse(spec: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        recurrent({"a": TaskFeatures(parse_features(spec))})


def test_more_steps_change_single_answers_and_add_no_weights() -> None:
    tasks = {"a": TaskFeatures(features_of("mst"))}
    batch, one, four = random_batch("mst"), recurrent(tasks, steps=1), recurrent(tasks, steps=4)
    assert all(torch.equal(value, four.state_dict()[name]) for name, value in one.state_dict().items())
    assert not torch.equal(one.eval()(batch)["in_tree"], four.eval()(batch)["in_tree"])


def test_a_recurrent_model_learns_a_task_without_hints() -> None:
    batch, features = batch_of([graph(8, "steiner_tree", seed) for seed in range(24)]), features_of("steiner_tree")
    marked = batch.is_terminal.bool()
    batch.in_tree = (marked[batch.edge_index[0]] & marked[batch.edge_index[1]]).long()
    for processor in ("mpnn", "gin"):
        model = recurrent({"a": TaskFeatures(features)}, processor=processor, hidden=32)
        model.fit_normalisation(batch)
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for _ in range(80):
            optimizer.zero_grad()
            value = loss(model(batch), batch, features)
            value.backward()
            optimizer.step()
        right = ((model.eval()(batch)["in_tree"] > 0) == batch.in_tree.bool()).float().mean()
        assert right > 0.97, processor


# Sparse processors on traces


@pytest.mark.parametrize("processor", ["gin", "gt", "gat"])
def test_the_adapter_runs_a_sparse_processor_on_the_neighbours_of_every_step(processor: str) -> None:
    from graphbench.models.processor_registry import processor_class
    from graphbench.models.trajectory.adapter import SparseAdapter

    torch.manual_seed(0)
    config = TrajectoryModelConfig(processor=processor, hidden=8, heads=2, layers=2, dropout=0.1)
    adapter = SparseAdapter(config, processor_class(processor, "sparse")).eval()
    samples, n = 2, 4
    neighbours = torch.rand(samples, n, n) > 0.5
    neighbours |= neighbours.transpose(1, 2) | torch.eye(n, dtype=torch.bool)
    pairs = PairVectors(torch.randn(samples, n, n, 3), torch.randn(8, 3), torch.randn(8))
    step = Step(torch.randn(samples, n, 16), pairs, torch.randn(samples, 8), neighbours)
    found = adapter(step)
    for i in range(samples):
        arcs = [(u, v) for u in range(n) for v in range(n) if neighbours[i, u, v]]
        edges = torch.stack([pairs.weight @ pairs.columns[i, u, v] + pairs.bias for u, v in arcs])
        ptr, owner = torch.tensor([0, n]), torch.zeros(n, dtype=torch.long)
        layout = Layout(torch.tensor(arcs).t(), owner, ptr, 1, True)
        nodes = adapter.embed(step.nodes[i]) + step.graph[i]
        expected = adapter.norm(adapter.processor(State(nodes, edges, None, layout)).nodes)
        torch.testing.assert_close(found[i], expected, rtol=1e-4, atol=1e-5)


def test_weights_of_the_former_dense_gin_do_not_fit_and_the_message_says_so() -> None:
    model = recurrent({BFS: TaskFeatures.of(card(BFS))}, processor="gin")
    state = {f"model.{name}": value for name, value in model.state_dict().items() if "processor.processor" not in name}
    state["model.processor.epsilon"] = torch.zeros(())
    with pytest.raises(CheckpointError, match=r"does not fit the model.*epsilon"):
        load_model(model, state)


def test_settings_of_a_sparse_processor_reach_it() -> None:
    model = recurrent({BFS: TaskFeatures.of(card(BFS))}, processor="gin", layers=3, dropout=0.25, activation="gelu")
    layers = model.processor.processor.layers
    assert len(layers) == 3 and layers[0].dropout.rate == 0.25
    assert isinstance(layers[0].feed_forward.activation, torch.nn.GELU)


def test_batches_of_scoring_shrink_with_the_graphs() -> None:
    class Split:
        graph_numbers = None

        class flat:
            node_ptr, hints = np.array([0, 16, 48]), None

    model = recurrent({"a": TaskFeatures(features_of("mst"))})
    assert model.largest_batch(Split()) == 2**14 // 32**2  # type: ignore[arg-type]


def test_a_pyg_batch_of_one_graph_is_enough() -> None:
    model = recurrent({"a": TaskFeatures(features_of("bridges"))})
    assert isinstance(random_batch("bridges", (4,)), Batch)
    assert model(random_batch("bridges", (4,)))["is_bridge"].dim() == 1
