"""Attention: the bias of every pair, padding, and the equality of the three ways to compute it."""

from __future__ import annotations

import pytest
import torch

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import ModelConfig, build_model
from graphbench.models.graphs import Layout
from graphbench.models.processors import attention
from graphbench.models.processors.attention import ArcBias, RelationBias, attention_function, flex_attention_function
from graphbench.models.processors.gt import _endpoints, _positions

from .conftest import graph, random_batch, small_model

HEADS = 3


def relation_bias(token: bool = False) -> tuple[RelationBias, Layout]:
    layout = Layout.of(random_batch("bridges", (4, 6, 5)), directed=False)
    places = _positions(layout, edge_tokens=True, graph_token=token)
    ends = _endpoints(layout, places, token)
    extra = torch.randn(3, HEADS) if token else None
    return RelationBias(torch.randn(2, HEADS), ends, places.lengths, extra), layout


def arc_bias(token: bool = False) -> ArcBias:
    layout = Layout.of(random_batch("flow", (4, 6, 5)), directed=False)
    places = _positions(layout, edge_tokens=False, graph_token=token)
    tail, head = layout.edge_index
    arcs = torch.stack([layout.graph[head], places.nodes[head], places.nodes[tail]])
    values = torch.randn(tail.numel(), HEADS)
    return ArcBias(values, arcs, places.lengths, places.size, torch.randn(3, HEADS) if token else None)


def queries_keys_values(bias: ArcBias | RelationBias) -> list[torch.Tensor]:
    shape = (bias.lengths.numel(), HEADS, bias.size, 8)
    return [torch.randn(shape, requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("token", [False, True])
def test_relation_bias_is_that_of_the_edge_transform(token: bool) -> None:
    bias, layout = relation_bias(token)
    dense = bias.dense()
    for g in range(layout.num_graphs):
        nodes = [(v, v) for v in range(int(layout.ptr[g]), int(layout.ptr[g + 1]))]
        inside = layout.graph[layout.edges[0]] == g
        tokens = [*([None] if token else []), *nodes, *map(tuple, layout.edges[:, inside].t().tolist())]
        assert len(tokens) == bias.lengths[g]
        for i, first in enumerate(tokens):
            for j, second in enumerate(tokens):
                if first is None or second is None:
                    assert bias.token is not None
                    expected = bias.token[0 if i == j else 1 if first is None else 2]
                elif i == j:
                    expected = bias.weight[0]
                else:
                    expected = bias.weight[1] if set(first) & set(second) else torch.zeros(HEADS)
                torch.testing.assert_close(dense[g, :, i, j], expected)


def test_arc_bias_lets_the_head_attend_to_the_tail() -> None:
    bias = arc_bias()
    expected = torch.zeros(3, HEADS, bias.size, bias.size)
    for value, (g, query, key) in zip(bias.values, bias.arcs.t().tolist(), strict=True):
        expected[g, :, query, key] = value
    torch.testing.assert_close(bias.dense(), expected)


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("kind", ["relation", "arc"])
def test_slices_equal_the_dense_bias(kind: str, token: bool) -> None:
    bias = relation_bias(token)[0] if kind == "relation" else arc_bias(token)
    dense = bias.dense()
    for g, length in enumerate(bias.lengths.tolist()):
        for start, stop in ((0, 1), (0, length), (2, length - 1)):
            torch.testing.assert_close(bias.rows(g, start, stop, length), dense[g, :, start:stop, :length])


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("kind", ["relation", "arc"])
def test_chunked_attention_equals_dense(kind: str, token: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_SLICE_BYTES", 4 * HEADS * 7 * 2)
    bias = relation_bias(token)[0] if kind == "relation" else arc_bias(token)
    leaf = bias.weight if isinstance(bias, RelationBias) else bias.values
    leaf.requires_grad_()
    inputs = queries_keys_values(bias)
    results = []
    for mode in ("sdpa", "chunked"):
        output = attention_function(mode, bias)(*inputs)
        real = (torch.arange(bias.size) < bias.lengths[:, None])[:, None, :, None]
        output = torch.where(real, output, 0.0)
        results.append((output, *torch.autograd.grad(output.pow(2).sum(), [*inputs, leaf])))
    for dense, chunked in zip(*results, strict=True):
        torch.testing.assert_close(chunked, dense, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("token", [False, True])
def test_flex_attention_equals_dense(token: bool) -> None:
    bias, _ = relation_bias(token)
    inputs = [t.detach() for t in queries_keys_values(bias)]
    real = (torch.arange(bias.size) < bias.lengths[:, None])[:, None, :, None]
    flexible = torch.where(real, flex_attention_function(bias, compiled=False)(*inputs), 0.0)
    dense = torch.where(real, attention_function("sdpa", bias)(*inputs), 0.0)
    torch.testing.assert_close(flexible, dense, atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compiled flex_attention needs CUDA")
def test_compiled_flex_attention_trains_like_dense() -> None:
    gradients = []
    for mode in ("sdpa", "flex"):
        torch.manual_seed(0)
        model = small_model("gt", "mst", hidden=64, attention=mode, dropout=0.0, stochastic_depth=0.0).cuda()
        model(random_batch("mst").cuda())["in_tree"].pow(2).sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    for dense, flexible in zip(*gradients, strict=True):
        torch.testing.assert_close(flexible, dense, atol=1e-3, rtol=1e-2)


def test_attention_is_the_softmax_of_scaled_scores_plus_bias() -> None:
    bias, _ = relation_bias()
    queries, keys, values = (t.detach() for t in queries_keys_values(bias))
    output = attention_function("sdpa", bias)(queries, keys, values)
    length = int(bias.lengths[0])
    scores = queries[0, :, :length] @ keys[0, :, :length].mT / 8**0.5 + bias.dense()[0, :, :length, :length]
    torch.testing.assert_close(output[0, :, :length], scores.softmax(-1) @ values[0, :, :length], atol=1e-5, rtol=1e-4)


def test_padding_has_no_influence() -> None:
    bias = arc_bias()
    queries, keys, values = (t.detach() for t in queries_keys_values(bias))
    real = (torch.arange(bias.size) < bias.lengths[:, None])[:, None, :, None]
    attend = attention_function("sdpa", bias)
    before = attend(queries, keys, values)
    after = attend(queries, torch.where(real, keys, 1e3), torch.where(real, values, 1e3))
    assert torch.equal(torch.where(real, before, 0.0), torch.where(real, after, 0.0))


def test_a_large_bias_is_processed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("gt", "mst").eval()
    batch = random_batch("mst", (20, 30))
    expected = model(batch)["in_tree"]
    monkeypatch.setattr(attention, "DENSE_BIAS_BYTES", 1000)
    monkeypatch.setattr(attention, "_SLICE_BYTES", 4 * 4 * 100 * 9)

    def fail(*_: object) -> None:
        raise AssertionError("the dense bias was made")

    monkeypatch.setattr(RelationBias, "dense", fail)
    torch.testing.assert_close(model(batch)["in_tree"], expected, atol=1e-5, rtol=1e-4)


def test_flex_is_refused_on_the_cpu() -> None:
    with pytest.raises(ConfigError, match="flex"):
        small_model("gt", "mst", attention="flex")(random_batch("mst"))


@pytest.mark.parametrize("edge_tokens", [True, False])
def test_edge_tokens_can_be_chosen(edge_tokens: bool) -> None:
    model = small_model("gt", "mst", edge_tokens=edge_tokens).eval()
    batch = random_batch("mst")
    output = model(batch)["in_tree"]
    assert (model.processor.relation_bias is not None) is edge_tokens
    assert torch.equal(output[::2], output[1::2])


def test_edge_and_graph_outputs_together_use_all_tokens() -> None:
    features = parse_features(
        {"w": ["input", "edge", "scalar"], "e": ["output", "edge", "mask"], "g": ["output", "graph", "categorical(3)"]}
    )
    config = ModelConfig(processor="gt", layers=2, hidden=16, heads=4)
    model = build_model(config, features, directed=False).eval()
    data = graph(7, "mst")
    data.w = data.weight
    outputs = model(data)
    assert outputs["g"].shape == (1, 3) and outputs["e"].shape == (data.edge_index.shape[1],)
    assert model.processor.graph_token is not None
