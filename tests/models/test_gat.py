"""GAT against PyG's layer, and its own settings."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv

from graphbench.core.errors import ConfigError
from graphbench.models.graphs import Layout
from graphbench.models.processors.gat import GATLayer, softmax_with_loops

from .kinship import batch_of, graph_model, puzzles

WIDTH, EDGE_WIDTH, HEADS = 6, 5, 3


def layout_of(edge_index: torch.Tensor, nodes: int) -> Layout:
    graph = torch.zeros(nodes, dtype=torch.long)
    return Layout(edge_index, graph, torch.tensor([0, nodes]), 1, directed=True)


@pytest.mark.parametrize("arcs", [0, 1, 25])
def test_a_layer_is_pygs_when_edges_are_left_out_of_the_sum(arcs: int) -> None:
    layer = GATLayer(WIDTH, EDGE_WIDTH, HEADS, 0.2)
    theirs = GATConv(WIDTH, WIDTH, HEADS, concat=False, edge_dim=EDGE_WIDTH, fill_value=0.0)
    with torch.no_grad():
        layer.output.weight.copy_(torch.cat([torch.eye(WIDTH), torch.zeros(WIDTH, EDGE_WIDTH)], dim=1))
        layer.output.bias.normal_()
        theirs.bias.copy_(layer.output.bias)
        theirs.lin.weight.copy_(layer.values.weight)
        theirs.att_src[0].copy_(layer.source_score)
        theirs.att_dst[0].copy_(layer.target_score)
        scores = torch.einsum("hw,hwe->he", theirs.att_edge[0], theirs.lin_edge.weight.view(HEADS, WIDTH, EDGE_WIDTH))
        layer.edge_score.copy_(scores)
    nodes, edges = torch.randn(7, WIDTH), torch.randn(arcs, EDGE_WIDTH)
    pairs = [(u, v) for u in range(7) for v in range(7) if u != v]
    edge_index = torch.tensor(pairs)[torch.randperm(len(pairs))[:arcs]].t().reshape(2, arcs)
    expected = theirs(nodes, edge_index, edges)
    torch.testing.assert_close(layer(nodes, edges, layout_of(edge_index, 7)), expected, atol=1e-5, rtol=1e-4)


def test_a_layer_is_the_formula_written_out() -> None:
    layer = GATLayer(WIDTH, EDGE_WIDTH, HEADS, 0.1)
    nodes, edges = torch.randn(3, WIDTH), torch.randn(3, EDGE_WIDTH)
    arcs = [(0, 1), (2, 1), (0, 1)]  # two arcs from 0 to 1
    found = layer(nodes, edges, layout_of(torch.tensor(arcs).t(), 3))
    values = layer.values(nodes).view(3, HEADS, WIDTH)
    incoming = [(u, edges[i]) for i, (u, v) in enumerate(arcs) if v == 1] + [(1, torch.zeros(EDGE_WIDTH))]
    total = torch.zeros(WIDTH + EDGE_WIDTH)
    for head in range(HEADS):
        a = torch.cat([layer.target_score[head], layer.source_score[head], layer.edge_score[head]])
        logits = torch.stack([a @ torch.cat([values[1, head], values[u, head], edge]) for u, edge in incoming])
        weights = F.leaky_relu(logits, 0.1).softmax(0)
        rows = torch.stack([torch.cat([values[u, head], edge]) for u, edge in incoming])
        total = total + weights @ rows / HEADS
    torch.testing.assert_close(found[1], layer.output(total))


def test_weights_sum_to_one_however_large_the_scores() -> None:
    target = torch.tensor([0, 0, 2])
    on_arcs, on_loops = softmax_with_loops(torch.randn(3, 2) * 1e3, torch.randn(3, 2) * 1e3, target)
    total = on_loops.index_add(0, target, on_arcs)
    torch.testing.assert_close(total, torch.ones(3, 2))


def test_rounds_share_their_layers() -> None:
    once = graph_model("gat", dropout=0.0).eval()
    thrice = graph_model("gat", dropout=0.0, options={"rounds": 3}).eval()
    thrice.load_state_dict(once.state_dict())
    batch = batch_of(puzzles(4))
    assert not torch.allclose(once(batch)["answer"], thrice(batch)["answer"])


def test_edges_may_be_narrower_and_all_layers_but_the_last_have_heads() -> None:
    model = graph_model("gat", layers=3, heads=5, options={"edge_width": 7})
    assert model.processor.edges.weight.shape == (7, 16)
    assert [layer.heads for layer in model.processor.layers] == [5, 5, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"round": 3},
            "unknown key 'model.options.round'; did you mean 'rounds'? (keys: rounds, edge_width, negative_",
        ),
        ({"rounds": 0}, "model.options.rounds = 0 is refused: Input should be greater than or equal to 1"),
        (
            {"rounds": 0, "edge_width": "x"},
            "model.options.edge_width = 'x' is refused: Input should be a valid integer",
        ),
    ],
)
def test_options_are_refused_in_the_words_of_other_keys(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        graph_model("gat", options=options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value) and "http" not in str(caught.value)


@pytest.mark.parametrize(
    ("ignore", "readout", "warns"),
    [
        (["asker", "asked"], "pooled", True),
        (["asker", "asked", "entity"], "pooled", True),
        (["asker"], "pooled", False),
        (["asker", "asked"], "query", False),
        (["relation"], "pooled", False),
    ],
)
def test_a_model_that_cannot_know_the_question_is_warned_of(
    ignore: list[str], readout: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    graph_model("gat", ignore=ignore, readout=readout)
    assert ("ignores asker and asked and pools all nodes" in caplog.text) is warns


def test_outputs_are_float32_under_autocast() -> None:
    model, batch = graph_model("gat", inverse_edges=True).eval(), batch_of(puzzles(4))
    expected = model(batch)["answer"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(batch)["answer"]
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, expected, atol=0.1, rtol=0.1)
