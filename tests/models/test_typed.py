"""Message passing with weights per class of nodes, against the formula written out."""

from __future__ import annotations

import pytest
import torch

from graphbench.core.errors import ConfigError
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.processors.base import Context, State
from graphbench.models.processors.typed import Classes, Typed, TypedLayer, TypedOptions

CONTEXT = Context(directed=False, edge_tokens=False, graph_token=False)
ARCS = torch.tensor([[0, 1, 2, 2, 3], [1, 0, 1, 3, 2]])


def config(**options: object) -> ModelConfig:
    return ModelConfig(processor="typed", hidden=8, layers=2, options={"by": "kind", "classes": 3, **options})


def layout() -> Layout:
    return Layout(ARCS, torch.zeros(4, dtype=torch.long), torch.tensor([0, 4]), 1, directed=True)


def test_a_layer_is_the_formula_written_out() -> None:
    layer = TypedLayer(config(), 3).eval()
    nodes, edges, kinds = torch.randn(4, 8), torch.randn(5, 8), [2, 0, 2, 1]
    normed = layer.norm(nodes)
    rows = []
    for v in range(4):
        update = layer.own.maps[kinds[v]](normed[v])
        for arc, (u, w) in enumerate(ARCS.t().tolist()):
            if w == v:
                update = update + torch.relu(layer.sent.maps[kinds[u]](normed[u]) + edges[arc])
        rows.append(nodes[v] + update)
    expected = layer.feed_forward(torch.stack(rows))
    torch.testing.assert_close(
        layer(nodes, edges, Classes.of(torch.tensor(kinds), ARCS, 3)), expected, atol=1e-5, rtol=1e-4
    )


def test_rounds_repeat_the_same_layers_and_a_class_without_nodes_is_no_error() -> None:
    one, three = Typed(config(), CONTEXT).eval(), Typed(config(rounds=3), CONTEXT).eval()
    three.load_state_dict(one.state_dict())
    inputs = {"kind": torch.tensor([0, 2, 2, 0])}
    nodes, edges = torch.randn(4, 8), torch.randn(1, 8)
    expected = nodes
    for _ in range(3):
        expected = one(State(expected, edges, None, layout(), inputs)).nodes
    torch.testing.assert_close(three(State(nodes, edges, None, layout(), inputs)).nodes, expected)


def test_a_larger_graph_takes_more_rounds_alone_and_in_a_batch() -> None:
    torch.manual_seed(1)
    grown = Typed(config(rounds=1, rounds_per_doubling=1.0), CONTEXT).eval()  # 3 rounds of 4 nodes, 2 of 2 nodes
    fixed = {rounds: Typed(config(rounds=rounds), CONTEXT).eval() for rounds in (2, 3)}
    for model in fixed.values():
        model.load_state_dict(grown.state_dict())
    pair = Layout(torch.tensor([[0, 1], [1, 0]]), torch.zeros(2, dtype=torch.long), torch.tensor([0, 2]), 1, True)
    both = Layout(
        torch.cat([ARCS, pair.edge_index + 4], dim=1), torch.tensor([0] * 4 + [1] * 2), torch.tensor([0, 4, 6]), 2, True
    )
    kinds, nodes, edges = torch.tensor([2, 0, 2, 1, 0, 1]), torch.randn(6, 8), torch.randn(1, 8)
    large = fixed[3](State(nodes[:4], edges, None, layout(), {"kind": kinds[:4]})).nodes
    small = fixed[2](State(nodes[4:], edges, None, pair, {"kind": kinds[4:]})).nodes
    together = grown(State(nodes, edges, None, both, {"kind": kinds})).nodes
    torch.testing.assert_close(together, torch.cat([large, small]), atol=1e-5, rtol=1e-4)
    alone = grown(State(nodes[4:], edges, None, pair, {"kind": kinds[4:]})).nodes
    torch.testing.assert_close(alone, small)


def test_training_draws_the_number_of_rounds_and_scoring_takes_all() -> None:
    model = Typed(config(rounds=4, least_share=0.5), CONTEXT)
    inputs = {"kind": torch.tensor([2, 0, 2, 1])}
    nodes, edges = torch.randn(4, 8), torch.randn(1, 8)
    taken: list[int] = []
    model.layers[0].register_forward_hook(lambda *_: taken.append(1))

    def rounds() -> int:
        taken.clear()
        model(State(nodes, edges, None, layout(), inputs))
        return len(taken)

    assert {rounds() for _ in range(60)} == {3, 4}  # a share of exactly 0.5 has no chance
    torch.manual_seed(7)
    first = [rounds() for _ in range(10)]
    torch.manual_seed(7)
    assert [rounds() for _ in range(10)] == first
    model.eval()
    assert {rounds() for _ in range(10)} == {4}


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("rows", [1, 5])
def test_values_and_gradients_are_those_of_copied_rows_and_single_maps(width: int, rows: int) -> None:
    torch.manual_seed(2)
    model = Typed(config().model_copy(update={"hidden": width}), CONTEXT).eval()
    kinds = torch.tensor([2, 0, 2, 1])
    nodes, edges = torch.randn(4, width, requires_grad=True), torch.randn(rows, width, requires_grad=True)
    inputs = [nodes, edges, *model.parameters()]

    def plain() -> torch.Tensor:
        x = nodes
        for layer in model.layers:
            h = layer.norm(x)
            sent, kept = (
                torch.stack([m.maps[kind](row) for kind, row in zip(kinds.tolist(), h, strict=True)])
                for m in (layer.sent, layer.own)
            )
            x = layer.feed_forward(x + kept.index_add(0, ARCS[1], torch.relu(sent[ARCS[0]] + edges)))
        return x

    computed, expected = model(State(nodes, edges, None, layout(), {"kind": kinds})).nodes, plain()
    torch.testing.assert_close(computed, expected, atol=1e-5, rtol=1e-4)
    weights = torch.arange(computed.numel()).view(computed.shape).cos()
    for ours, theirs in zip(
        *(torch.autograd.grad((out * weights).sum(), inputs) for out in (computed, expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_graphs_are_treated_alike_alone_and_in_a_batch_that_shares_edges() -> None:
    torch.manual_seed(3)
    model = Typed(config().model_copy(update={"hidden": 16}), CONTEXT).eval()
    kinds, nodes, edges = torch.tensor([2, 0, 2, 1]), torch.randn(8, 16), torch.randn(5, 16)
    both = Layout(torch.cat([ARCS, ARCS + 4], dim=1), torch.arange(8) // 4, torch.tensor([0, 4, 8]), 2, directed=True)
    together = model(State(nodes, edges, None, both, {"kind": kinds.repeat(2)})).nodes
    alone = [model(State(part, edges, None, layout(), {"kind": kinds})).nodes for part in nodes.split(4)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-4)


def test_settings_that_older_versions_did_not_have_are_stated_only_where_they_are_set() -> None:
    assert TypedOptions(by="kind", classes=3).model_dump() == {"by": "kind", "classes": 3, "rounds": 1}
    assert TypedOptions(by="kind", classes=3, least_share=0.5).model_dump()["least_share"] == 0.5


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="classes"):
        Typed(ModelConfig(processor="typed", hidden=8, layers=1, options={"by": "kind"}), CONTEXT)
    (feature,) = Typed.reads(config())
    assert (feature.name, feature.classes) == ("kind", 3)
