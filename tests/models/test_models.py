"""Whole models: sizes, symmetries, gradients and learning."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
import torch
import yaml
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.models.build import ModelConfig, build_model, count_parameters
from graphbench.models.encoders import DegreeEncoder
from graphbench.models.graphs import Layout
from graphbench.models.losses import loss

from .conftest import (
    PROCESSOR_NAMES,
    SMALL,
    TASKS,
    assert_near_under_autocast,
    batch_of,
    features_of,
    graph,
    random_batch,
    small_model,
)

CONFIGS = Path(__file__).parents[2] / "baselines" / "algoreas"


def task_config(name: str, task: str) -> ModelConfig:
    content = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    override = content.get("tasks", {}).get(task, {}).get("model", {})
    return ModelConfig.model_validate({**content["model"], **override})


def relabelled(data: Data, order: torch.Tensor, task: str) -> Data:
    """Return the same graph with node ``order[i]`` renamed to ``i``; its edges keep their order."""
    rank = torch.argsort(order)
    result = data.clone()
    result.edge_index = rank[data.edge_index]
    for feature in features_of(task):
        if feature.location.value == "node":
            result[feature.name] = data[feature.name][order]
    return result


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("processor", ["gin", "gt"])
def test_parameter_counts_are_those_of_the_paper(processor: str, task: str) -> None:
    published = yaml.safe_load((CONFIGS / f"{processor}.yaml").read_text())["parameters"][task]
    with torch.device("meta"):
        model = build_model(task_config(processor, task), features_of(task), directed=task == "topological_sort")
    assert count_parameters(model) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("task", [["graph", "scalar"], ["node", "mask"]])
@pytest.mark.parametrize("name", ["gin", "gt", "mlp", "deepsets"])
def test_parameter_counts_of_combinatorial_optimisation_are_those_of_table_26(name: str, task: list[str]) -> None:
    content = yaml.safe_load((CONFIGS.parent / "co" / f"{name}.yaml").read_text())
    features = parse_features({"answer": ["output", *task]})
    with torch.device("meta"):
        model = build_model(ModelConfig.model_validate(content["model"]), features, directed=False)
    assert set(content["parameters"]) == {"rb", "er", "ba"}
    for published in content["parameters"].values():
        assert count_parameters(model) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("name", ["gin", "gt", "mlp", "deepsets", "gin_small", "gt_small"])
def test_every_configuration_builds_a_model_for_every_task(name: str) -> None:
    content = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    assert set(content) <= {"model", "training", "tasks", "parameters"}
    assert set(content.get("tasks", {})) <= set(TASKS)
    for task in TASKS:
        with torch.device("meta"):
            build_model(task_config(name, task), features_of(task), directed=task == "topological_sort")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("processor", PROCESSOR_NAMES)
def test_relabelling_nodes_permutes_the_outputs(processor: str, task: str) -> None:
    model = small_model(processor, task).eval()
    data = graph(10, task, seed=4)
    order = torch.randperm(10)
    feature = model.decoders[0].feature
    before = model(batch_of([data]))[feature.name]
    after = model(batch_of([relabelled(data, order, task)]))[feature.name]
    expected = before[order] if feature.location.value == "node" else before
    torch.testing.assert_close(after, expected, atol=1e-4, rtol=0)
    assert before.numel() == 1 or before.std() > 1e-6


@pytest.mark.parametrize("encoding", ["rwse", "lpe"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("processor", PROCESSOR_NAMES)
def test_a_graph_is_treated_alike_alone_and_in_a_batch(processor: str, task: str, encoding: str) -> None:
    model = small_model(processor, task, positional={"type": encoding, "k": 4, "hidden": 16}).eval()
    graphs = [graph(n, task, seed=n) for n in (7, 13, 4)]
    name = model.decoders[0].feature.name
    if encoding == "lpe":  # signs and bases of eigenvectors are not unique, so both calls get the same
        for g in graphs:
            g.lpe_values, g.lpe_vectors = torch.rand(g.num_nodes, 4), torch.rand(g.num_nodes, 4)
    together = model(batch_of(graphs))[name]
    alone = torch.cat([model(batch_of([g]))[name] for g in graphs])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("processor", PROCESSOR_NAMES)
def test_both_directions_of_an_edge_get_exactly_the_same_output(processor: str) -> None:
    model = small_model(processor, "mst").eval()
    batch = random_batch("mst")
    output = model(batch)["in_tree"]
    assert output.shape == (batch.edge_index.shape[1],)
    assert torch.equal(output[::2], output[1::2])
    turned = batch.clone()
    turned.edge_index = batch.edge_index.flip(0)
    torch.testing.assert_close(model(turned)["in_tree"], output, atol=1e-5, rtol=1e-5)


def test_arcs_are_told_from_their_reverses() -> None:
    features = parse_features({"w": ["input", "node", "scalar"], "t": ["output", "edge", "mask"]})
    model = build_model(ModelConfig.model_validate({**SMALL, "processor": "mlp"}), features, directed=True).eval()
    one_way = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), w=torch.tensor([1.0, 2.0, 5.0]), num_nodes=3)
    other_way = Data(edge_index=torch.tensor([[1, 2], [0, 1]]), w=one_way.w, num_nodes=3)
    assert model(batch_of([one_way]))["t"].shape == (2,)
    assert not torch.allclose(model(batch_of([one_way]))["t"], model(batch_of([other_way]))["t"])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("processor", PROCESSOR_NAMES)
def test_every_parameter_gets_a_gradient(processor: str, task: str) -> None:
    for encoding in ("rwse", "lpe", "none"):
        positional = {"type": encoding, "k": 4, "hidden": 16, "self_loops": encoding == "rwse"}
        model = small_model(processor, task, positional=positional, dropout=0.0, stochastic_depth=0.0)
        output = model(random_batch(task))[model.decoders[0].feature.name]
        (output * torch.randn_like(output[:1])).pow(2).sum().backward()
        dead = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        assert not dead


@pytest.mark.parametrize(
    ("processor", "task"),
    [
        *(("gin", task) for task in ("mst", "max_clique", "flow")),
        ("gt", "max_clique"),
        *(pytest.param("gt", task, marks=pytest.mark.slow) for task in ("mst", "flow")),
    ],
)
def test_a_tiny_problem_is_learned(processor: str, task: str) -> None:
    model = small_model(processor, task, hidden=32, dropout=0.0, stochastic_depth=0.0)
    batch = random_batch(task, (6, 7, 8))
    if task == "mst":
        batch.in_tree = (batch.weight < 5).long()
    if task == "max_clique":  # equivalent nodes cannot be told apart, so the label must not
        batch.in_clique = (torch.bincount(batch.edge_index[0], minlength=21) > 2).long()
    model.fit_normalisation(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    history = []
    for _ in range(150):
        optimizer.zero_grad()
        current = loss(model(batch), batch, features_of(task))
        current.backward()
        optimizer.step()
        history.append(current.item())
        if history[-1] < 0.1 * history[0]:
            break
    assert history[-1] < 0.1 * history[0]


@pytest.mark.parametrize("processor", PROCESSOR_NAMES)
def test_training_mode_is_random_and_evaluation_is_not(processor: str) -> None:
    model = small_model(processor, "steiner_tree", dropout=0.2)
    batch = random_batch("steiner_tree")
    assert not torch.equal(model(batch)["in_tree"], model(batch)["in_tree"])
    model.eval()
    assert torch.equal(model(batch)["in_tree"], model(batch)["in_tree"])


def test_normalisation_makes_outputs_live_in_the_target_unit() -> None:
    model = small_model("gin", "flow").eval()
    batch = random_batch("flow", (6,) * 20)
    batch.value = batch.value + 1000.0
    model.fit_normalisation(batch)
    output = model(batch)["value"]
    assert output.shape == (20,)
    assert 900 < output.mean() < 1100
    model_again = small_model("gin", "flow").eval()
    model_again.load_state_dict(model.state_dict())
    torch.testing.assert_close(model_again(batch)["value"], output)


@pytest.mark.parametrize("processor", ["gin", "mlp"])
def test_a_sum_over_nodes_grows_with_the_graph(processor: str) -> None:
    model = small_model(processor, "flow", pooling="sum", positional={"type": "none"}).eval()
    batch = random_batch("flow", (6, 7, 8))
    batch.value = 3.0 * torch.tensor([6.0, 7.0, 8.0]) + torch.tensor([0.1, -0.1, 0.0])
    model.fit_normalisation(batch)
    once = model(batch)["value"]
    assert torch.allclose(once, batch.value, rtol=0.05)  # 3 per node before any training
    one = batch.to_data_list()[0]
    twice = one.clone()
    twice.edge_index = torch.cat([one.edge_index, one.edge_index + 6], dim=1)
    for feature in features_of("flow"):
        if feature.location.value != "graph":
            twice[feature.name] = torch.cat([one[feature.name]] * 2)
    twice.num_nodes = 12
    torch.testing.assert_close(model(Batch.from_data_list([twice]))["value"], 2 * once[:1], atol=1e-3, rtol=1e-4)


def test_a_sum_over_nodes_warns_if_all_training_graphs_have_one_size(caplog: pytest.LogCaptureFixture) -> None:
    model = small_model("gin", "flow", pooling="sum", positional={"type": "none"})
    model.fit_normalisation(random_batch("flow", (6, 7, 7)))
    assert not caplog.records
    model.fit_normalisation(random_batch("flow", (7, 7, 7)))
    assert "all training graphs have 7 nodes" in caplog.text
    caplog.clear()
    small_model("gin", "flow", positional={"type": "none"}).fit_normalisation(random_batch("flow", (7, 7, 7)))
    assert not caplog.records


def test_a_sum_counts_beyond_the_training_sizes_and_a_mean_does_not() -> None:
    train, larger = (random_batch("flow", sizes) for sizes in ((5, 7, 9, 11, 13), (30, 40)))
    errors = {}
    for pooling in ("sum", "mean"):
        torch.manual_seed(0)
        model = small_model("gin", "flow", hidden=32, dropout=0.0, pooling=pooling, positional={"type": "none"})
        train.value = 2.0 * train.ptr.diff()
        model.fit_normalisation(train)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(30):
            optimizer.zero_grad()
            (model(train)["value"] - train.value).abs().mean().backward()
            optimizer.step()
        errors[pooling] = (model(larger)["value"] - 2.0 * larger.ptr.diff()).abs().mean().item()
    assert errors["sum"] < 10 < 40 < errors["mean"]


def test_normalisation_removes_the_unit_of_an_input() -> None:
    outputs = []
    for scale in (1.0, 50.0):
        torch.manual_seed(1)
        model = small_model("gin", "mst").eval()
        batch = random_batch("mst")
        batch.weight = batch.weight * scale + 7.0
        model.fit_normalisation(batch)
        outputs.append(model(batch)["in_tree"])
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-4, rtol=1e-4)


def test_a_constant_column_is_not_blown_up() -> None:
    model = small_model("gin", "mst").eval()
    batch = random_batch("mst")
    batch.weight = torch.full_like(batch.weight, 3.0)
    model.fit_normalisation(batch)
    assert torch.isfinite(model(batch)["in_tree"]).all()


def test_a_single_graph_needs_no_batch() -> None:
    model = small_model("gin", "mst").eval()
    data = graph(8, "mst")
    torch.testing.assert_close(model(data)["in_tree"], model(batch_of([data]))["in_tree"])


def test_graphs_without_edges() -> None:
    data = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=3)
    for processor in PROCESSOR_NAMES:
        assert small_model(processor, "max_clique").eval()(Batch.from_data_list([data]))["in_clique"].shape == (3,)


@pytest.mark.parametrize("processor", ["gin", "gt"])
def test_outputs_are_float32_under_autocast(processor: str) -> None:
    assert_near_under_autocast(small_model(processor, "mst").eval(), random_batch("mst"), "in_tree")


def test_degrees_are_what_networkx_counts_and_the_model_sees_them() -> None:
    batch = random_batch("max_clique")
    layout = Layout.of(batch, directed=False)
    graph = nx.Graph(batch.edge_index.t().tolist())
    graph.add_nodes_from(range(batch.num_nodes))
    assert layout.degrees.tolist() == [graph.degree[node] for node in range(batch.num_nodes)]
    mlp = small_model("mlp", "max_clique", positional={"type": "none"}, degrees=True)
    mlp.fit_normalisation(batch)
    answer = mlp.eval()(batch)["in_clique"]
    assert torch.equal((answer[:, None] - answer).abs() < 1e-6, layout.degrees[:, None] == layout.degrees)
    blind = small_model("mlp", "max_clique", positional={"type": "none"}).eval()(batch)["in_clique"]
    assert blind.std() < 1e-6


def test_both_degrees_of_directed_graphs_are_read() -> None:
    batch = random_batch("topological_sort")
    graph = nx.DiGraph(batch.edge_index.t().tolist())
    graph.add_nodes_from(range(batch.num_nodes))
    expected = [[graph.out_degree[node], graph.in_degree[node]] for node in range(batch.num_nodes)]
    assert Layout.of(batch, directed=True).both_degrees.tolist() == expected
    encoder = DegreeEncoder(8, both=True)
    encoder.fit(Layout.of(batch, directed=True))
    rows = encoder.of(Layout.of(batch, directed=True))
    same = torch.tensor([[one == other for other in expected] for one in expected])
    assert torch.equal((rows[:, None] - rows).abs().amax(2) < 1e-6, same) and not same.all()
    with pytest.raises(ConfigError, match="degrees is 'both', but the graphs are undirected"):
        small_model("gin", "mst", degrees="both")


@pytest.mark.parametrize("processor", ["gin", "gt", "pairs"])
def test_undirected_edges_in_another_order_are_refused(processor: str) -> None:
    """The reverse of an arc is read from the column beside it: a transform that sorts columns would change answers."""
    batch = random_batch("mst")
    order = batch.edge_index[0].argsort(stable=True)
    batch.edge_index, batch.weight = batch.edge_index[:, order], batch.weight[order]
    model = small_model(processor, "mst")
    with pytest.raises(ArgumentError, match=r"column 0 of edge_index, \[0, \d+\], is not followed by its reverse"):
        model.prepare(batch)
    with pytest.raises(ArgumentError, match="both directions of an edge from neighbouring columns"):
        model(batch)
    odd = random_batch("mst")
    odd.edge_index = odd.edge_index[:, :-1]
    with pytest.raises(ArgumentError, match=rf"column {odd.edge_index.shape[1] - 1} of edge_index"):
        model(odd)


def test_outputs_of_graphs_read_the_size_where_they_are_asked_to() -> None:
    def triangles(count: int) -> Data:
        arcs = [
            (3 * i + u, 3 * i + v) for i in range(count) for u, v in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))
        ]
        return Data(edge_index=torch.tensor(arcs).t(), num_nodes=3 * count, answer=torch.tensor([float(count)]))

    features = parse_features({"answer": ["output", "graph", "scalar"]})
    batch = Batch.from_data_list([triangles(1), triangles(4), triangles(4)])
    settings = {**SMALL, "positional": {"type": "none"}, "processor": "gin"}
    for sees in (False, True):
        torch.manual_seed(0)
        model = build_model(ModelConfig(**settings, graph_size=sees), features, directed=False)
        model.fit_normalisation(batch)
        one, four, again = model.eval()(batch)["answer"].tolist()
        assert (abs(one - four) > 1e-3) == sees and four == pytest.approx(again)
        alone = model(Batch.from_data_list([triangles(4)]))["answer"]
        assert alone.item() == pytest.approx(four, abs=1e-6)
    assert "graph_size" not in ModelConfig(**settings).model_dump()
    with pytest.raises(ConfigError, match=r"graph_size adds the size of a graph .* but pooling is sum"):
        build_model(ModelConfig(**settings, graph_size=True, pooling="sum"), features, directed=False)


def test_outputs_of_graphs_read_the_mean_of_every_class_of_nodes() -> None:
    features = parse_features({"kind": ["input", "node", "categorical(3)"], "answer": ["output", "graph", "scalar"]})
    settings = {"hidden": 8, "layers": 1, "dropout": 0.0, "positional": {"type": "none"}, "input_network": False}
    config = ModelConfig(**settings, processor="mlp", pooling="classes", pooled_by="kind")
    model = build_model(config, features, directed=False).eval()
    states = torch.randn(6, 8)
    batch = Batch.from_data_list(
        [Data(num_nodes=4, kind=torch.tensor([0, 2, 2, 0])), Data(num_nodes=2, kind=torch.tensor([1, 1]))]
    )
    batch.edge_index = torch.zeros(2, 0, dtype=torch.long)
    layout, means, weight = Layout.of(batch, False), model.class_means, model.class_means.maps.weight
    by_hand = torch.stack(
        [
            weight[:, :8] @ states[[0, 3]].mean(0) + weight[:, 16:] @ states[[1, 2]].mean(0),
            weight[:, 8:16] @ states[[4, 5]].mean(0),
        ]
    )
    torch.testing.assert_close(means(states, batch.kind, layout), by_hand)
    grown = Batch.from_data_list([Data(num_nodes=9, kind=torch.tensor([0] + [1] * 8))])  # a port among more devices
    small = Batch.from_data_list([Data(num_nodes=2, kind=torch.tensor([0, 1]))])
    for one in (grown, small):
        one.edge_index = torch.zeros(2, 0, dtype=torch.long)
    torch.testing.assert_close(model(grown)["answer"], model(small)["answer"])
    assert "pooled_by" not in ModelConfig(**settings).model_dump()
    assert any("means by class of kind" in part.name for part in model.parts())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "classes", "pooled_by": "kin"}, "pooled_by is 'kin'.*no categorical input of nodes .kind"),
        ({"pooling": "classes", "pooled_by": "size"}, "pooled_by is 'size'.*no categorical input of nodes .kind"),
    ],
)
def test_means_of_classes_need_a_categorical_input_of_nodes(settings: dict[str, str], message: str) -> None:
    features = parse_features(
        {
            "kind": ["input", "node", "categorical(3)"],
            "size": ["input", "node", "scalar"],
            "answer": ["output", "graph", "scalar"],
        }
    )
    with pytest.raises(ConfigError, match=message):
        build_model(ModelConfig(hidden=8, layers=1, **settings), features, directed=False)
    with pytest.raises(ValueError, match="do not fit; pooling=classes needs"):
        ModelConfig(pooling="classes")
    with pytest.raises(ValueError, match="do not fit; pooling=classes needs"):
        ModelConfig(pooled_by="kind")


def test_means_of_classes_are_for_outputs_of_graphs() -> None:
    features = parse_features({"kind": ["input", "node", "categorical(3)"], "answer": ["output", "node", "scalar"]})
    with pytest.raises(ConfigError, match="no outputs of graphs"):
        build_model(ModelConfig(hidden=8, layers=1, pooling="classes", pooled_by="kind"), features, directed=False)


def test_a_graph_without_its_one_marked_node_or_with_several_is_refused() -> None:
    batch = random_batch("flow")
    (name, *_) = [f.name for f in features_of("flow") if f.type_name == "mask_one"]
    model = small_model("gin", "flow").eval()
    model.prepare(batch)
    for marks in (0, 2):
        wrong = batch.clone()
        wrong[name][wrong.batch == 1] = 0
        wrong[name][wrong.ptr[1] : wrong.ptr[1] + marks] = 1
        with pytest.raises(ArgumentError, match=f"the input '{name}' marks {marks} nodes of graph 1; mark exactly one"):
            model.prepare(wrong)
