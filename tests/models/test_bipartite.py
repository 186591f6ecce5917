"""The recurrent processor of bipartite graphs: against dense matrices, its symmetries, and what its options ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from graphbench import card
from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.domains.sat import Cnf, graph
from graphbench.models.base import TaskFeatures
from graphbench.models.build import Model, ModelConfig, build_model
from graphbench.models.graphs import Layout
from graphbench.models.lstm import NormalisedLSTMCell
from graphbench.models.processors import Context, State
from graphbench.models.processors.bipartite import Bipartite
from graphbench.models.registry import build_task_model
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.training.config import load_config

from .conftest import assert_near_under_autocast, batch_of

LINKS = {"side": "is_clause", "links": "link"}
POLARITY = {"side": "is_clause", "polarity": "negated"}
FEATURES = {
    "vcg": {"is_clause": ["input", "node", "mask"], "negated": ["input", "edge", "mask"]},
    "lcg": {
        "is_clause": ["input", "node", "mask"],
        "occurrences": ["input", "node", "scalar(2)"],
        "link": ["input", "edge", "mask"],
    },
}
ANSWER = {"answer": ["output", "graph", "scalar"]}
CLAUSES = ((1, -2, 3), (-1, 2), (2, 3, -4), (-3, 4), (1, 4), (-2, -4))
WIDTH = 6


def data_of(kind: str, clauses: tuple[tuple[int, ...], ...], variables: int) -> Data:
    """Return the graph of a formula: literals 2(v - 1) and 2(v - 1) + 1, or variables v - 1, and then the clauses."""
    count = variables * (2 if kind == "lcg" else 1)
    pairs, marks = [], []
    if kind == "lcg":
        pairs += [(2 * v, 2 * v + 1) for v in range(variables)]
        marks += [1] * variables
    for number, clause in enumerate(clauses):
        for literal in clause:
            variable, negated = abs(literal) - 1, int(literal < 0)
            pairs.append((2 * variable + negated if kind == "lcg" else variable, count + number))
            marks.append(0 if kind == "lcg" else negated)
    columns = [column for u, v in pairs for column in ((u, v), (v, u))]
    nodes = count + len(clauses)
    data = Data(edge_index=torch.tensor(columns, dtype=torch.long).reshape(-1, 2).t().contiguous(), num_nodes=nodes)
    data.is_clause = torch.arange(nodes) >= count
    data["link" if kind == "lcg" else "negated"] = torch.tensor(marks, dtype=torch.uint8).repeat_interleave(2)
    if kind == "lcg":
        own = torch.zeros(nodes, 2)
        for clause in clauses:
            for literal in clause:
                node = 2 * (abs(literal) - 1) + int(literal < 0)
                own[node, 0] += 1
                own[node ^ 1, 1] += 1
        data.occurrences = own
    return data


def model_of(kind: str, **changes: Any) -> Model:
    """Return a small model of formulas in evaluation mode."""
    options = {**(LINKS if kind == "lcg" else POLARITY), **changes.pop("options", {})}
    shown = {"processor": "bipartite", "layers": 4, "hidden": 16, "dropout": 0.0, "activation": "relu"}
    config = ModelConfig.model_validate({**shown, **changes, "options": options})
    return build_model(config, parse_features({**FEATURES[kind], **ANSWER}), directed=False).eval()


def processor_of(options: dict[str, Any], **changes: Any) -> Bipartite:
    """Return a processor in float64 whose scales and shifts are random, too."""
    shown = {"processor": "bipartite", "layers": 3, "hidden": WIDTH, "dropout": 0.0, "activation": "relu"}
    config = ModelConfig.model_validate({**shown, **changes, "options": options})
    found = Bipartite(config, Context(directed=False, edge_tokens=False, graph_token=False)).double().eval()
    with torch.no_grad():
        for parameter in found.parameters():
            if parameter.dim() == 1 or parameter.shape[0] == 4:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return found


def state_of(data: Data, nodes: Tensor) -> State:
    """Return what a processor receives of a graph, given the embeddings of the nodes."""
    batch = batch_of([data])
    masks = {name: batch[name] for name in ("is_clause", "link", "negated") if name in batch}
    return State(nodes, None, None, Layout.of(batch, directed=False), masks)


def answer(model: Model, data: Data) -> Tensor:
    """Return the answer of a model to one graph."""
    with torch.no_grad():
        return model(batch_of([data]))["answer"]


def flipped(clauses: tuple[tuple[int, ...], ...], variable: int) -> tuple[tuple[int, ...], ...]:
    """Return the clauses with a variable replaced by its negation everywhere."""
    return tuple(tuple(-x if abs(x) == variable else x for x in clause) for clause in clauses)


def drawn(seed: int, variables: int = 8, count: int = 20) -> tuple[tuple[int, ...], ...]:
    """Return random clauses of one to three distinct variables."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        chosen = rng.choice(variables, rng.integers(1, 4), replace=False) + 1
        found.append(tuple(int(v) if rng.random() < 0.5 else -int(v) for v in chosen))
    return tuple(found)


# Against matrices


def normalised(x: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / ((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def dense_cell(cell: NormalisedLSTMCell, x: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Return hidden state and memory of the cell, with one matrix per gate."""
    gates = []
    for number, weight in enumerate(cell.gates.weight.split(WIDTH)):
        raw = x @ weight[:, : x.shape[1]].t() + hidden @ weight[:, x.shape[1] :].t()
        gates.append(normalised(raw) * cell.scale[number] + cell.shift[number])
    enter, candidate, keep, leave = gates
    memory = memory / (1 + (-keep - 1).exp()) + candidate.clamp(min=0) / (1 + (-enter).exp())
    memory = normalised(memory) * cell.norm.weight + cell.norm.bias
    return memory.clamp(min=0) / (1 + (-leave).exp()), memory


def dense_network(network: torch.nn.Module, x: Tensor) -> Tensor:
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    for layer in layers[:-1]:
        x = (x @ layer.weight.t() + layer.bias).clamp(min=0)
    return x @ layers[-1].weight.t() + layers[-1].bias


def dense_rounds(
    processor: Bipartite, literals: Tensor, clauses: Tensor, holds: Tensor, partner: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the states of both sides after all rounds.

    ``holds`` [literals, clauses] and ``partner`` [literals, literals] are matrices of zeros and ones.
    """
    literal_memory, clause_memory = torch.zeros_like(literals), torch.zeros_like(clauses)
    for _ in range(processor.rounds):
        received = holds.t() @ dense_network(processor.to_right, literals)
        clauses, clause_memory = dense_cell(processor.right_update, received, clauses, clause_memory)
        received = holds @ dense_network(processor.to_left, clauses)
        if partner is not None:
            received = torch.cat([received, partner @ literals], dim=1)
        literals, literal_memory = dense_cell(processor.left_update, received, literals, literal_memory)
    return literals, clauses


def matrices(clauses: tuple[tuple[int, ...], ...], variables: int) -> tuple[Tensor, Tensor]:
    holds = torch.zeros(2 * variables, len(clauses), dtype=torch.float64)
    partner = torch.zeros(2 * variables, 2 * variables, dtype=torch.float64)
    for number, clause in enumerate(clauses):
        for literal in clause:
            holds[2 * (abs(literal) - 1) + int(literal < 0), number] = 1
    for v in range(variables):
        partner[2 * v, 2 * v + 1] = partner[2 * v + 1, 2 * v] = 1
    return holds, partner


@pytest.mark.parametrize("message_layers", [0, 3])
def test_linked_nodes_are_updated_as_matrices_say(message_layers: int) -> None:
    clauses, variables = drawn(1), 8
    processor = processor_of({**LINKS, "message_layers": message_layers})
    nodes = torch.randn(2 * variables + len(clauses), WIDTH, dtype=torch.float64)
    found = processor(state_of(data_of("lcg", clauses, variables), nodes)).nodes
    expected = dense_rounds(processor, nodes[:16], nodes[16:], *matrices(clauses, variables))
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-10, rtol=1e-9)


def test_nodes_with_two_states_are_updated_as_matrices_say() -> None:
    clauses, variables = drawn(2), 8
    processor = processor_of(POLARITY)
    nodes = torch.randn(variables + len(clauses), WIDTH, dtype=torch.float64)
    found = processor(state_of(data_of("vcg", clauses, variables), nodes)).nodes
    doubled = nodes[:8].repeat_interleave(2, dim=0)
    left, right = dense_rounds(processor, doubled, nodes[8:], *matrices(clauses, variables))
    expected = torch.cat([(left[0::2] + left[1::2]) / 2, right])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-9)


def test_without_pairs_the_two_sides_alone_are_read() -> None:
    clauses, variables = drawn(3), 8
    processor = processor_of({"side": "is_clause"})
    assert processor.left_update.gates.in_features == 2 * WIDTH
    nodes = torch.randn(2 * variables + len(clauses), WIDTH, dtype=torch.float64)
    found = processor(state_of(data_of("lcg", clauses, variables), nodes)).nodes
    holds, _ = matrices(clauses, variables)
    expected = dense_rounds(processor, nodes[:16], nodes[16:], holds, None)
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-10, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(3, 9))
def test_links_and_polarity_are_two_ways_to_write_the_same(seed: int, count: int, variables: int) -> None:
    torch.manual_seed(seed)
    clauses = drawn(seed, variables, count)
    linked, signed = processor_of(LINKS), processor_of(POLARITY)
    signed.load_state_dict(linked.state_dict())
    nodes = torch.randn(variables + count, WIDTH, dtype=torch.float64)
    doubled = torch.cat([nodes[:variables].repeat_interleave(2, dim=0), nodes[variables:]])
    expected = linked(state_of(data_of("lcg", clauses, variables), doubled)).nodes
    found = signed(state_of(data_of("vcg", clauses, variables), nodes)).nodes
    pairs = expected[: 2 * variables].view(variables, 2, WIDTH).mean(1)
    torch.testing.assert_close(found, torch.cat([pairs, expected[2 * variables :]]), atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("options", [LINKS, POLARITY])
@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_are_those_of_finite_differences(options: dict[str, Any], recompute: bool) -> None:
    kind = "lcg" if options is LINKS else "vcg"
    data = data_of(kind, ((1, -2), (-1, 2), (2,)), 2)
    processor = processor_of({**options, "recompute": recompute}, layers=2, activation="gelu")
    nodes = torch.randn(data.num_nodes, WIDTH, dtype=torch.float64, requires_grad=True)
    weights = [processor.to_right[0].weight, processor.left_update.gates.weight, processor.right_update.scale]

    def run(nodes: Tensor, *_: Tensor) -> Tensor:
        return processor(state_of(data, nodes)).nodes

    assert torch.autograd.gradcheck(run, (nodes, *weights), atol=1e-6, fast_mode=True)


def test_rounds_that_are_computed_again_give_the_same_gradients() -> None:
    batch = batch_of([data_of("vcg", CLAUSES, 4)])
    found = []
    for recompute in (False, True):
        torch.manual_seed(5)
        model = model_of("vcg", dropout=0.3, options={"recompute": recompute}).train()
        torch.manual_seed(6)
        model(batch)["answer"].sum().backward()
        found.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


# Symmetries


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from(["lcg", "vcg"]))
def test_a_variable_and_its_negation_may_be_exchanged(seed: int, variable: int, kind: str) -> None:
    torch.manual_seed(seed)
    clauses, model = drawn(seed), model_of(kind)
    before = answer(model, data_of(kind, clauses, 8))
    torch.testing.assert_close(
        answer(model, data_of(kind, flipped(clauses, variable), 8)), before, atol=1e-5, rtol=1e-4
    )


def colours(clauses: tuple[tuple[int, ...], ...], rounds: int) -> str:
    """Return a hash of the colours that refinement gives the literals and clauses of four variables."""
    data = data_of("lcg", clauses, 4)
    found = nx.Graph()
    found.add_nodes_from((v, {"kind": str(kind)}) for v, kind in enumerate(data.is_clause.tolist()))
    for (u, v), link in zip(data.edge_index.t().tolist(), data.link.tolist(), strict=True):
        found.add_edge(u, v, kind=str(link))
    return nx.weisfeiler_lehman_graph_hash(found, edge_attr="kind", node_attr="kind", iterations=rounds)


@pytest.mark.parametrize("kind", ["lcg", "vcg"])
def test_the_polarity_of_an_occurrence_matters_where_colour_refinement_sees_it(kind: str) -> None:
    processor = processor_of(LINKS if kind == "lcg" else POLARITY, layers=6, activation="gelu")
    initial, direction = torch.randn(2, WIDTH, dtype=torch.float64), torch.randn(WIDTH, dtype=torch.float64)

    def seen(clauses: tuple[tuple[int, ...], ...]) -> Tensor:
        data = data_of(kind, clauses, 4)
        nodes = processor(state_of(data, initial[data.is_clause.long()])).nodes
        return (nodes @ direction).sort().values  # in an order that does not depend on that of the nodes

    changed = []
    for number, clause in enumerate(CLAUSES):
        for place in range(len(clause)):
            turned = (*clause[:place], -clause[place], *clause[place + 1 :])
            changed.append((*CLAUSES[:number], turned, *CLAUSES[number + 1 :]))
    changed += [flipped(clauses, 3) for clauses in (CLAUSES, *changed[:5])]
    told_apart = [colours(clauses, 6) != colours(CLAUSES, 6) for clauses in changed]
    assert sum(told_apart) == len(changed) - 1
    for clauses, expected in zip(changed, told_apart, strict=True):
        difference = (seen(clauses) - seen(CLAUSES)).abs().max().item()
        assert difference > 1e-9 if expected else difference < 1e-12, clauses


def test_without_polarity_no_sign_matters() -> None:
    model = model_of("vcg", options={"polarity": None})
    signs = tuple(tuple(-x if x % 2 else x for x in clause) for clause in CLAUSES)
    assert torch.equal(answer(model, data_of("vcg", CLAUSES, 4)), answer(model, data_of("vcg", signs, 4)))


@pytest.mark.parametrize("kind", ["lcg", "vcg"])
def test_nodes_and_edges_may_stand_in_any_order(kind: str) -> None:
    data, model = data_of(kind, drawn(4), 8), model_of(kind)
    before = answer(model, data)
    nodes = torch.randperm(data.num_nodes)
    edges = torch.randperm(data.num_edges // 2)
    columns = torch.stack([2 * edges, 2 * edges + 1], dim=1).flatten()
    moved = data.clone()
    moved.edge_index = torch.argsort(nodes)[data.edge_index][:, columns]
    for name in FEATURES[kind]:
        at_edges = FEATURES[kind][name][1] == "edge"
        moved[name] = data[name][columns if at_edges else nodes]
    torch.testing.assert_close(answer(model, moved), before, atol=1e-5, rtol=1e-5)
    assert not torch.equal(moved.is_clause, data.is_clause)


@pytest.mark.parametrize("kind", ["lcg", "vcg"])
def test_formulas_are_treated_alike_alone_and_in_a_batch(kind: str) -> None:
    model = model_of(kind)
    graphs = [data_of(kind, drawn(n, count=n), 8) for n in (3, 0, 17)]
    graphs.insert(1, data_of(kind, CLAUSES, 4))
    with torch.no_grad():
        together = model(batch_of(graphs))["answer"]
    torch.testing.assert_close(together, torch.cat([answer(model, g) for g in graphs]), atol=1e-5, rtol=1e-4)
    assert len(together.unique()) == 4


@pytest.mark.parametrize("kind", ["lcg", "vcg"])
def test_edges_within_a_side_that_are_no_links_carry_nothing(kind: str) -> None:
    data, model = data_of(kind, CLAUSES, 4), model_of(kind)
    clause = data.num_nodes - len(CLAUSES)
    more = data.clone()
    extra = torch.tensor([[0, 2, clause, clause + 1], [2, 0, clause + 1, clause]])
    more.edge_index = torch.cat([data.edge_index, extra], dim=1)
    mark = "link" if kind == "lcg" else "negated"
    zeros = torch.zeros(4, dtype=torch.uint8)
    more[mark] = torch.cat([data[mark], zeros])
    assert torch.equal(answer(model, more), answer(model, data))
    more[mark] = torch.cat([data[mark], zeros + 1])  # between two left nodes it is a link now
    assert torch.equal(answer(model, more), answer(model, data)) is (kind == "vcg")


# Training and execution


@pytest.mark.parametrize("kind", ["lcg", "vcg"])
@pytest.mark.thorough
def test_every_parameter_gets_a_gradient_and_labels_are_learned(kind: str) -> None:
    model = model_of(kind, layers=3, activation="gelu").train()
    batch = batch_of([data_of(kind, drawn(n, 6, 8), 6) for n in range(6)])
    wanted = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    history = []
    for step in range(80):
        optimizer.zero_grad()
        loss = (model(batch)["answer"] - wanted).pow(2).mean()
        loss.backward()
        if step == 0:
            unread = {n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()}
            assert not unread
        optimizer.step()
        history.append(loss.item())
        if history[-1] < 0.05 * history[0]:
            break
    assert history[-1] < 0.05 * history[0]


def test_outputs_are_float32_and_near_under_autocast() -> None:
    model, batch = model_of("lcg"), batch_of([data_of("lcg", drawn(n), 8) for n in range(4)])
    assert_near_under_autocast(model, batch, "answer")


@pytest.mark.slow
def test_a_compiled_model_gives_the_same() -> None:
    model, batch = model_of("vcg", layers=2), batch_of([data_of("vcg", drawn(n), 8) for n in range(2)])
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(batch)["answer"], model(batch)["answer"], atol=1e-5, rtol=1e-5)


# Options and data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the key 'model.options.side' is missing"),
        ({**LINKS, "link": "x"}, r"unknown key 'model\.options\.link'.*'links'"),
        ({**LINKS, "polarity": "negated"}, "links = 'link' and polarity = 'negated'"),
        (
            {"side": "is_left"},
            r"is_left \(node mask\).*is_clause \(node mask\)",
        ),
        ({"side": "link"}, r"input link \(node mask\).*link \(edge mask\)"),
        (POLARITY, r"negated \(edge mask\).*is_clause"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    config = ModelConfig(processor="bipartite", hidden=8, options=options)
    with pytest.raises(ConfigError, match=message):
        build_model(config, parse_features({**FEATURES["lcg"], **ANSWER}), directed=False)


def test_directed_graphs_and_trajectories_are_refused() -> None:
    config = ModelConfig(processor="bipartite", hidden=8, options={"side": "is_clause"})
    with pytest.raises(ConfigError, match="'bipartite' is for undirected graphs"):
        build_model(config, parse_features({**FEATURES["lcg"], **ANSWER}), directed=True)
    recurrent = TrajectoryModelConfig(processor="bipartite", hidden=8, options={"side": "s"})
    with pytest.raises(ConfigError, match=r"input s \(node mask\).*none"):
        build_task_model(recurrent, {"clrs/bfs": TaskFeatures.of(card("clrs/bfs"))})


def test_tasks_that_share_the_processor_each_give_it_their_masks() -> None:
    features = parse_features({**FEATURES["vcg"], **ANSWER})
    tasks = {name: TaskFeatures(features, False) for name in ("toys/a", "toys/b")}
    shown = {"processor": "bipartite", "layers": 2, "hidden": 8, "dropout": 0.0}
    model = build_task_model(ModelConfig.model_validate({**shown, "options": POLARITY}), tasks).eval()
    before, after = (
        batch_of([data_of("vcg", clauses, 4)]) for clauses in (CLAUSES, (*CLAUSES[:3], (3, 4), *CLAUSES[4:]))
    )
    for name in tasks:
        assert not torch.allclose(model(before, name)["answer"], model(after, name)["answer"])
    other = {"toys/c": TaskFeatures(parse_features({**FEATURES["lcg"], **ANSWER}), False)}
    with pytest.raises(ConfigError, match="reads the input negated"):
        build_task_model(ModelConfig.model_validate({**shown, "options": POLARITY}), {**tasks, **other})


@pytest.mark.parametrize("name", ["neurosat", "neurosat_small"])
@pytest.mark.parametrize("view", ["", "@vcg", "@lcg"])
def test_the_shipped_configurations_read_the_polarity_of_formulas(name: str, view: str) -> None:
    about = card(f"sat/small:kissat{view}")
    linked = ["model.options.polarity=null", "model.options.links=link"] if view == "@lcg" else []
    config = load_config(about.id, name, family=about.family, overrides=["model.hidden=8", "model.layers=3", *linked])
    model = build_task_model(config.model, {"a": TaskFeatures.of(about)}).eval()
    answers = []
    for clauses in (CLAUSES, (*CLAUSES[:3], (3, 4), *CLAUSES[4:])):
        found = graph(Cnf.from_clauses(clauses), view[1:] or "vcg", link_literals=view == "@lcg")
        data = Data(num_nodes=found.num_nodes)
        data.edge_index = torch.tensor(np.stack([found.edges, found.edges[:, ::-1]], axis=1).reshape(-1, 2).T.copy())
        data.edge_index = data.edge_index.long()
        data.is_clause = torch.tensor(found.node_arrays["type"] == 1)
        data.occurrences = torch.zeros(found.num_nodes, 2)  # which would tell the two apart without messages
        mark, values = ("link", found.edge_arrays["link"]) if linked else ("negated", found.edge_arrays["polarity"] < 0)
        data[mark] = torch.tensor(values).repeat_interleave(2)
        answers.append(model(batch_of([data]))["kissat_log_par10"])
    assert (answers[0] - answers[1]).abs().max() > 1e-5


def test_the_configuration_of_the_paper_is_kept() -> None:
    about = yaml.safe_load((Path(__file__).parents[2] / "baselines" / "sat" / "neurosat.yaml").read_text())
    model, training = about["model"], about["training"]
    assert (model["hidden"], model["layers"], model["activation"]) == (128, 26, "relu")
    assert (training["lr"], training["gradient_clip"], training["weight_decay"]) == (2e-5, 0.65, 1e-10)
    assert model["options"] == {**POLARITY, "message_layers": 3, "recompute": True}
