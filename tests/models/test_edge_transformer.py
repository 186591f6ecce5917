"""The edge transformer: attention against loops, equivariance, the same alone and in a batch, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphbench.core.errors import ConfigError
from graphbench.models.build import Model
from graphbench.models.pair_layout import PairLayout
from graphbench.models.processors.edge_transformer import TriangularAttention, from_squares, to_squares

from .conftest import TASKS, batch_of, graph, small_model
from .kinship import batch_of as puzzle_batch
from .kinship import graph_model, puzzles


def transformer(task: str, **settings: Any) -> Model:
    torch.manual_seed(0)
    return small_model("edge_transformer", task, positional={"type": "none"}, **settings).eval()


def outputs(model: Model, graphs: list[Data]) -> torch.Tensor:
    (raw,) = model(model.prepare(batch_of(graphs))).values()
    return raw


def layout_of(*sizes: int) -> PairLayout:
    return PairLayout(np.array(sizes, np.int64), torch.device("cpu"))


@pytest.mark.parametrize("sizes", [(3, 5, 1, 2), (4, 4)])
def test_attention_is_that_of_loops_over_nodes(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layout, attention, heads, width = layout_of(*sizes), TriangularAttention(6, 2), 2, 6
    pairs = torch.randn(layout.size, width)
    found = attention(pairs, layout).detach()
    query, key, first, second = attention.read(pairs).detach().double().chunk(4, dim=1)
    start, each = 0, width // heads
    for n in sizes:
        for u in range(n):
            for v in range(n):
                rows = [(start + u * n + w, start + w * n + v) for w in range(n)]
                parts = []
                for h in range(heads):
                    own = slice(h * each, (h + 1) * each)
                    scores = torch.stack([query[a, own] @ key[b, own] for a, b in rows]) / each**0.5
                    weights = scores.exp() / scores.exp().sum()
                    parts.append(
                        sum(p * first[a, own] * second[b, own] for p, (a, b) in zip(weights, rows, strict=True))
                    )
                expected = attention.out.double()(torch.cat(parts)).detach()
                torch.testing.assert_close(found[start + u * n + v].double(), expected, rtol=1e-4, atol=1e-5)
        start += n * n
    attention.float()


def test_squares_hold_every_pair_and_zeros() -> None:
    layout = layout_of(2, 3)
    values = torch.arange(1.0, 14.0).unsqueeze(1)
    squares = to_squares(values, layout)
    assert squares[0, :2, :2, 0].tolist() == [[1, 2], [3, 4]]
    assert squares[1, :, :, 0].tolist() == [[5, 6, 7], [8, 9, 10], [11, 12, 13]]
    assert float(squares[0, 2].abs().sum() + squares[0, :, 2].abs().sum()) == 0.0
    assert torch.equal(from_squares(squares, layout), values)


@pytest.mark.parametrize("task", TASKS)
def test_graphs_are_treated_alike_alone_and_in_a_batch(task: str) -> None:
    model, graphs = transformer(task), [graph(n, task, n) for n in (7, 12, 5, 9)]
    together = outputs(model, graphs)
    alone = torch.cat([outputs(model, [one]) for one in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", ["mst", "topological_sort", "max_clique", "flow"])
def test_numbers_of_nodes_do_not_matter(task: str) -> None:
    model, one = transformer(task), graph(9, task, 3)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    place = order.argsort()  # node v is node place[v] of the relabelled graph
    other = one.clone()
    other.edge_index = place[one.edge_index]
    for name in (n for n, t in TASKS[task].items() if t[1] == "node"):
        other[name] = one[name][order]
    raw, relabelled = outputs(model, [one]), outputs(model, [other])
    on_nodes = TASKS[task][list(TASKS[task])[-1]][1] == "node"
    torch.testing.assert_close(relabelled, raw[order] if on_nodes else raw, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_every_weight_receives_a_gradient(shared: bool) -> None:
    for task, unread in (("mst", {"of_nodes.weight", "of_nodes.bias"}), ("max_clique", set())):
        model = transformer(task, options={"shared": shared}, layers=2).train()
        outputs(model, [graph(n, task, n) for n in (7, 12)]).square().sum().backward()
        assert {n for n, weight in model.processor.named_parameters() if weight.grad is None} == unread


def test_shared_layers_are_one_layer_repeated() -> None:
    one, two = transformer("mst", layers=1), transformer("mst", layers=2)
    assert len(one.processor.layers) == len(two.processor.layers) == 1
    assert len(transformer("mst", layers=2, options={"shared": False}).processor.layers) == 2
    two.load_state_dict(one.state_dict())
    graphs = [graph(6, "mst", 0)]
    assert not torch.allclose(outputs(one, graphs), outputs(two, graphs))


def test_a_marked_question_is_answered_after_some_training() -> None:
    torch.manual_seed(0)
    model = graph_model("edge_transformer", readout="marked", ignore=["entity"], dropout=0.0, hidden=16)
    batch = puzzle_batch(puzzles(24, facts=(2, 2), words=3))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(model(batch)["answer"], batch.answer.long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float((model.eval()(batch)["answer"].argmax(1) == batch.answer).float().mean()) > 0.9


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.heads is 3"):
        transformer("mst", hidden=8, heads=3)
    with pytest.raises(ConfigError, match="expansion"):
        transformer("mst", options={"expansion": 0})
