"""Graph models on puzzles about people: questions, arcs seen backwards, symmetries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import ModelConfig, build_model
from graphbench.models.losses import loss, predictions
from graphbench.models.positional import laplacian_encoding

from .conftest import features_of
from .kinship import CLASSES, FEATURES, SPEC, batch_of, graph_model, puzzles

PROCESSORS = ("gat", "gin", "gt", "deepsets", "mlp")
SEEING = ("gat", "gin", "gt")  # those that read edges


def answers(model: torch.nn.Module, samples: list[dict[str, Any]]) -> torch.Tensor:
    return model.eval()(batch_of(samples))["answer"].detach()


def relabelled(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the puzzle with its people and facts in another order."""
    order, facts = rng.permutation(len(sample["entity"])), rng.permutation(len(sample["edges"]))
    rank = np.argsort(order)
    nodes = {name: sample[name][order] for name in ("asker", "asked", "entity")}
    return {**sample, **nodes, "edges": rank[sample["edges"]][facts], "relation": sample["relation"][facts]}


def renamed(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**sample, "entity": rng.permutation(32)[sample["entity"]]}


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_every_weight_matters_and_texts_are_ignored(processor: str, inverse: bool) -> None:
    model = graph_model(processor, inverse_edges=inverse, dropout=0.0, stochastic_depth=0.0)
    batch = batch_of(puzzles(6))
    output = model(batch)["answer"]
    assert output.shape == (6, CLASSES)
    (output * torch.randn_like(output)).sum().backward()
    dead = {n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert not dead
    torch.testing.assert_close(predictions({"answer": output}, FEATURES)["answer"].sum(1), torch.ones(6))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_order_of_people_and_facts_does_not_matter(processor: str, inverse: bool) -> None:
    model, rng, samples = graph_model(processor, inverse_edges=inverse), np.random.default_rng(1), puzzles(5)
    before = answers(model, samples)
    torch.testing.assert_close(answers(model, [relabelled(s, rng) for s in samples]), before, atol=1e-5, rtol=1e-4)
    assert before.std(0).max() > 1e-4


@pytest.mark.parametrize("processor", PROCESSORS)
def test_names_of_people_do_not_matter_to_a_model_that_ignores_them(processor: str) -> None:
    rng, samples = np.random.default_rng(2), puzzles(5)
    others = [renamed(s, rng) for s in samples]
    blind = graph_model(processor, ignore=["entity"])
    assert torch.equal(answers(blind, samples), answers(blind, others))
    seeing = graph_model(processor)
    assert not torch.allclose(answers(seeing, samples), answers(seeing, others))


@pytest.mark.parametrize("encoding", ["none", "rwse", "lpe"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_puzzle_is_treated_alike_alone_and_in_a_batch(processor: str, encoding: str) -> None:
    positional = {"type": encoding, "k": 4, "hidden": 16}
    model = graph_model(processor, inverse_edges=True, positional=positional)
    samples = puzzles(5, facts=(2, 7))
    if encoding == "lpe":
        model.positional.forward = lambda batch, layout: batch.entity.unsqueeze(1) / 32.0  # signs are arbitrary
    alone = torch.cat([answers(model, [sample]) for sample in samples])
    torch.testing.assert_close(answers(model, samples), alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("processor", SEEING)
def test_an_arc_is_told_from_its_inverse(processor: str) -> None:
    samples = puzzles(4)
    turned = [{**s, "edges": s["edges"][:, ::-1]} for s in samples]
    for inverse in (False, True):
        model = graph_model(processor, inverse_edges=inverse, ignore=["entity"])
        assert not torch.allclose(answers(model, samples), answers(model, turned), atol=1e-4)


@pytest.mark.parametrize("processor", SEEING)
def test_inverse_arcs_are_arcs_of_further_classes(processor: str) -> None:
    model = graph_model(processor, inverse_edges=True, ignore=["entity"])
    doubled = parse_features({**SPEC, "relation": ["input", "edge", f"categorical({2 * CLASSES})"]})
    config = model.config.model_copy(update={"inverse_edges": False})
    plain = build_model(config, doubled, directed=True)
    state = model.state_dict()
    tables = [state.pop(f"encoder.encoders.{place}.0.embedding.weight") for place in ("edge", "inverse")]
    state["encoder.encoders.edge.0.embedding.weight"] = torch.cat(tables)
    plain.load_state_dict(state)
    samples = puzzles(6)
    explicit = [
        {
            **s,
            "edges": np.concatenate([s["edges"], s["edges"][:, ::-1]]),
            "relation": np.concatenate([s["relation"], s["relation"] + CLASSES]),
        }
        for s in samples
    ]
    expected = plain.eval()(batch_of(explicit, doubled))["answer"]
    torch.testing.assert_close(answers(model, samples), expected, atol=1e-5, rtol=1e-4)


def test_inverse_arcs_carry_messages_backwards() -> None:
    samples = puzzles(3, facts=(2, 2))
    changed = [{**s, "entity": np.where(s["asked"] == 1, (s["entity"] + 1) % 32, s["entity"])} for s in samples]
    for inverse in (False, True):  # does the asker, where the path begins, hear of its end?
        model = graph_model("gin", inverse_edges=inverse).eval()
        seen = []
        model.processor.register_forward_hook(lambda _, __, result, kept=seen: kept.append(result.nodes))
        for version in (samples, changed):
            model(batch_of(version))
        asker = batch_of(samples).asker.bool()
        assert torch.allclose(seen[0][asker], seen[1][asker], atol=1e-6) is not inverse


def test_laplacian_positions_do_not_count_an_arc_twice() -> None:
    batch = batch_of(puzzles(3))
    both = torch.stack([batch.edge_index, batch.edge_index.flip(0)], dim=2).flatten(1)
    once, twice = (laplacian_encoding(e, batch.ptr, 3)[0] for e in (batch.edge_index, both))
    torch.testing.assert_close(once, twice, atol=1e-5, rtol=1e-5)


def test_scalars_of_arcs_seen_backwards_are_standardised() -> None:
    features = parse_features({**SPEC, "age": ["input", "edge", "scalar"]})
    model = build_model(ModelConfig(hidden=8, layers=1, inverse_edges=True), features, directed=True).eval()
    batch = batch_of(puzzles(4))
    outputs = []
    for scale in (1.0, 100.0):
        batch.age = scale * torch.arange(batch.edge_index.shape[1], dtype=torch.float32)
        model.fit_normalisation(batch)
        outputs.append(model(batch)["answer"])
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-5, rtol=1e-4)


def test_arcs_without_features_have_a_direction() -> None:
    features = parse_features({name: words for name, words in SPEC.items() if name != "relation"})
    for processor in SEEING:
        config = ModelConfig(processor=processor, hidden=16, layers=2, inverse_edges=True, ignore=("entity",))
        model = build_model(config, features, directed=True)
        samples = puzzles(3)
        turned = [{**s, "edges": s["edges"][:, ::-1]} for s in samples]
        assert not torch.allclose(answers(model, samples), answers(model, turned), atol=1e-5)


def test_outputs_on_arcs_are_one_per_arc() -> None:
    features = parse_features({**SPEC, "role": ["output", "edge", "mask"]})
    config = ModelConfig(processor="gin", hidden=8, layers=1, inverse_edges=True)
    model = build_model(config, features, directed=True).eval()
    batch = batch_of(puzzles(3))
    assert model(batch)["role"].shape == (batch.edge_index.shape[1],)


@pytest.mark.parametrize("pooling", ["mean", "sum", "cls"])
def test_the_query_is_read_beside_the_pooled_graph(pooling: str) -> None:
    model = graph_model("gt", pooling=pooling).eval()
    read, processed = [], []
    model.decoders[0].register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    model.processor.register_forward_hook(lambda _, __, result: processed.append(result))
    batch = batch_of(puzzles(4))
    model(batch)
    (rows,), (result,) = read, processed
    owner = batch.batch if pooling == "sum" else torch.arange(4)  # a sum is over the outputs of nodes
    assert rows.shape == (len(owner), 48)
    torch.testing.assert_close(rows[:, 16:32], result.nodes[batch.asker.bool()][owner])
    torch.testing.assert_close(rows[:, 32:], result.nodes[batch.asked.bool()][owner])
    if pooling == "sum":
        torch.testing.assert_close(rows[:, :16], result.nodes)
    if pooling == "mean":
        torch.testing.assert_close(rows[:, :16], torch.stack([n.mean(0) for n in result.nodes.split(
            (batch.ptr[1:] - batch.ptr[:-1]).tolist())]))  # fmt: skip


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_marked_nodes_can_be_read_alone(pooling: str) -> None:
    model = graph_model("gt", readout="marked", pooling=pooling).eval()
    read, processed = [], []
    model.decoders[0].register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    model.processor.register_forward_hook(lambda _, __, result: processed.append(result))
    batch = batch_of(puzzles(4))
    model(batch)
    (rows,), (result,) = read, processed
    torch.testing.assert_close(rows, torch.cat([result.nodes[m.bool()] for m in (batch.asker, batch.asked)], dim=1))


def test_a_query_can_be_read_that_is_no_input_of_the_nodes() -> None:
    model = graph_model("gat", ignore=["asker", "asked"])
    samples = puzzles(4)
    swapped = [{**s, "asker": s["asked"], "asked": s["asker"]} for s in samples]
    assert not torch.allclose(answers(model, samples), answers(model, swapped), atol=1e-4)
    pooled = graph_model("gat", ignore=["asker", "asked"], readout="pooled")
    assert torch.equal(answers(pooled, samples), answers(pooled, swapped))


def test_fixed_vectors_stay_as_they_were_drawn() -> None:
    model = graph_model("gat", fixed=["entity"], dropout=0.0)
    batch, before = batch_of(puzzles(8)), {k: v.clone() for k, v in model.state_dict().items()}
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    loss(model(batch), batch, FEATURES).backward()
    optimizer.step()
    same = {name for name, value in model.state_dict().items() if torch.equal(value, before[name])}
    assert same == {"encoder.encoders.node.2.embedding.weight"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ignore": ["entiti"]}, "ignore names \\['entiti'\\]"),
        ({"fixed": ["tokens"]}, "fixed names \\['tokens'\\]"),
        ({"fixed": ["entity"], "ignore": ["entity"]}, "fixed names"),
    ],
)
def test_names_that_are_no_inputs(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graph_model("gin", **settings)


@pytest.mark.parametrize(
    ("settings", "task", "directed", "message"),
    [
        ({"inverse_edges": True}, "mst", False, "undirected"),
        ({"readout": "query"}, "mst", False, "'query' needs an input of the type mask_one"),
        ({"readout": "marked"}, "mst", False, "'marked' needs an input of the type mask_one"),
        ({"inverse_edges": True, "processor": "gt", "edge_tokens": True}, "topological_sort", True, "edge tokens"),
    ],
)
def test_settings_that_do_not_fit_the_data(settings: dict[str, Any], task: str, directed: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(ModelConfig(hidden=16, **settings), features_of(task), directed=directed)


def test_a_query_needs_an_output_of_graphs() -> None:
    features = parse_features({"s": ["input", "node", "mask_one"], "t": ["output", "node", "mask"]})
    with pytest.raises(ConfigError, match="outputs of graphs"):
        build_model(ModelConfig(hidden=8, readout="query"), features, directed=True)


@pytest.mark.parametrize("processor", SEEING)
def test_32_puzzles_are_learned(processor: str) -> None:
    settings = {"inverse_edges": True, "ignore": ["entity"], "dropout": 0.0, "stochastic_depth": 0.0}
    model, batch = graph_model(processor, hidden=32, layers=4, **settings), batch_of(puzzles(32))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        current = loss(model(batch), batch, FEATURES)
        current.backward()
        optimizer.step()
        if current < 0.02:
            break
    assert current < 0.02
    assert torch.equal(model.eval()(batch)["answer"].argmax(1), batch.answer)
