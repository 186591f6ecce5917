"""The compiled parts of training steps, and their gradients, against the same functions in separate steps of torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from graphbench.models import fused, layers
from graphbench.models.config import PositionalConfig
from graphbench.models.graphs import Layout
from graphbench.models.layers import Dropout
from graphbench.models.pair_layout import PairLayout
from graphbench.models.positional import LaplacianEncoder
from graphbench.models.processors.gin import neighbour_sum


def with_gradients(function: Callable[[], Tensor], inputs: list[Tensor]) -> list[Tensor]:
    value = function()
    weights = torch.sin(torch.arange(value.numel(), dtype=value.dtype)).view(value.shape)
    return [value, *torch.autograd.grad((value * weights).sum(), inputs)]


def assert_same(found: list[Tensor], expected: list[Tensor]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.fixture
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_THREADS", torch.get_num_threads())


@pytest.mark.usefixtures("few_threads")
@pytest.mark.parametrize("arcs", [0, 1, 70])
@pytest.mark.parametrize("width", [16, 48, 20])
def test_messages_are_those_of_copied_rows(arcs: int, width: int) -> None:
    nodes = torch.randn(9, width, requires_grad=True)
    edges = torch.randn(max(arcs, 2), width, requires_grad=True)[:arcs]
    ends = torch.randint(9, (2, arcs))
    layout = Layout(ends, torch.zeros(9, dtype=torch.long), torch.tensor([0, 9]), 1, True)
    assert fused.is_compiled(width, nodes, edges) == (width % 16 == 0)

    def copied() -> Tensor:
        messages = torch.relu(nodes.index_select(0, ends[0]) + edges)
        return torch.zeros_like(nodes).index_add(0, ends[1], messages)

    about = [nodes, edges]
    if arcs != 1:  # one row stands for all arcs
        assert_same(with_gradients(lambda: neighbour_sum(nodes, edges, layout), about), with_gradients(copied, about))
    elif width % 16 == 0:
        found = with_gradients(lambda: fused.relu_messages(nodes, edges, ends), about)
        assert_same(found, with_gradients(copied, about))


@pytest.mark.parametrize(("rows", "arcs"), [(1, 70), (35, 70), (70, 70), (2, 0)])
def test_messages_are_added_to_a_start_in_the_order_of_the_arcs(rows: int, arcs: int) -> None:
    nodes, start = (torch.randn(9, 16, requires_grad=True) for _ in range(2))
    edges, ends = torch.randn(rows, 16, requires_grad=True), torch.randint(9, (2, arcs))

    def copied() -> Tensor:
        messages = torch.relu(nodes.index_select(0, ends[0]) + edges.repeat(arcs // rows, 1))
        return start.index_add(0, ends[1], messages)

    inputs = [nodes, edges, start]
    found, expected = (
        with_gradients(function, inputs)
        for function in (lambda: fused.relu_messages(nodes, edges, ends, start), copied)
    )
    assert torch.equal(found[0], expected[0]) or rows < arcs  # copies of a graph do not share nodes, random arcs do
    assert_same(found, expected)
    again = with_gradients(lambda: fused.relu_messages(nodes, edges, ends, start), inputs)
    assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize("arcs", [0, 1, 70])
def test_sums_at_ends_have_the_bits_of_copied_rows(arcs: int) -> None:
    edges = torch.randn(arcs, 32, requires_grad=True)
    sent, taken = (torch.randn(9, 32, requires_grad=True) for _ in range(2))
    ends = torch.randint(9, (2, arcs))
    inputs = [edges, sent, taken]
    found = with_gradients(lambda: fused.sums_at_ends(edges, sent, taken, ends), inputs)
    expected = with_gradients(lambda: edges + sent.index_select(0, ends[0]) + taken.index_select(0, ends[1]), inputs)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_sums_at_ends_refuse_foreign_nodes_and_missing_rows() -> None:
    rows, ends = torch.randn(2, 16), torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(IndexError, match="2"):
        fused.sums_at_ends(rows, rows, rows, ends)
    with pytest.raises(IndexError, match="3 rows"):
        fused.sums_at_ends(torch.randn(3, 16), rows, rows, ends.clamp(max=1))


@pytest.mark.usefixtures("few_threads")
@pytest.mark.parametrize("sizes", [[5, 5], [1, 7, 3]], ids=["equal", "unequal"])
def test_sums_of_pairs_are_those_of_one_layer_per_pair(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    encoder = LaplacianEncoder(PositionalConfig(type="lpe", k=6, hidden=32), 8)
    counts = torch.tensor([n for n in sizes for _ in range(n)])
    values, vectors = torch.rand(len(counts), 6, requires_grad=True), torch.randn(len(counts), 6)
    layer = encoder.phi_inner
    about = [values, layer.weight, layer.bias]

    def total() -> Tensor:
        return encoder._sum_of_pairs(values, vectors, counts, min(sizes))

    found = with_gradients(total, about)
    reference = torch.zeros(len(counts), 32)
    for n, count in enumerate(counts.tolist()):
        for j in range(min(count, 6)):
            reference[n] += torch.relu(layer(torch.stack([vectors[n, j], values[n, j]]))).detach()
    torch.testing.assert_close(found[0], reference, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr("graphbench.models.positional.is_compiled", lambda *_: False)
    assert_same(found, with_gradients(total, about))


@pytest.mark.usefixtures("few_threads")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (7, 5), (64, 32)])
def test_dropout_drops_the_same_numbers_either_way(
    dtype: torch.dtype, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values, layer = torch.randn(shape).to(dtype).requires_grad_(), Dropout(0.3)

    def dropped() -> Tensor:
        torch.manual_seed(11)
        return layer(values)

    found = with_gradients(dropped, [values])
    monkeypatch.setattr(layers, "is_compiled", lambda *_: False)
    separate = with_gradients(dropped, [values])
    assert [t.dtype for t in found] == [t.dtype for t in separate]
    for one, other in zip(found, separate, strict=True):
        torch.testing.assert_close(one, other)
    if shape == (64, 32):
        assert 0.25 < float((found[0] == 0).float().mean()) < 0.35


def test_other_tensors_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.zeros(2, 16)
    monkeypatch.setattr(fused, "_THREADS", torch.get_num_threads())
    assert fused.is_compiled(16, rows)
    assert not fused.is_compiled(16, rows.double()) and not fused.is_compiled(12, rows)
    assert not fused.is_compiled(16, torch.zeros(2, 16, device="meta"))
    monkeypatch.setattr(fused, "_THREADS", torch.get_num_threads() - 1)
    assert not fused.is_compiled(16, rows)


def test_a_gradient_of_a_gradient_is_refused() -> None:
    nodes, edges = torch.randn(3, 16, requires_grad=True), torch.randn(4, 16)
    sums = fused.relu_messages(nodes, edges, torch.randint(3, (2, 4)))
    (first,) = torch.autograd.grad((sums**2).sum(), nodes, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize("wrong", [-1, 3])
def test_arcs_that_end_at_no_node_are_refused(wrong: int) -> None:
    nodes, edges, ends = torch.randn(3, 16), torch.randn(4, 16), torch.randint(3, (2, 4))
    ends[1, 2] = wrong
    with pytest.raises(IndexError, match="3 nodes; number them"):
        fused.relu_messages(nodes, edges, ends)


@pytest.mark.parametrize("sizes", [(), (1,), (5, 3, 0, 2), (17, 33, 16)])
def test_pairs_and_their_reverses_are_those_of_copied_rows(sizes: tuple[int, ...]) -> None:
    counts = np.array(sizes, np.int64)
    layout = PairLayout(counts, torch.device("cpu"))
    pairs = torch.randn(layout.size, 32, requires_grad=True)

    def copied() -> Tensor:
        squares = pairs.split((counts**2).tolist()) if sizes else ()
        parts = [s.view(n, n, 32).transpose(0, 1).reshape(-1, 32) for n, s in zip(sizes, squares, strict=True)]
        return torch.cat([pairs, torch.cat([pairs[:0], *parts])], dim=1)

    found, expected = (with_gradients(f, [pairs]) for f in (lambda: fused.with_reverse(pairs, counts), copied))
    assert torch.equal(found[0], expected[0])
    assert_same(found, expected)
    with pytest.raises(IndexError, match="one row per pair"):
        fused.with_reverse(torch.zeros(layout.size + 1, 32), counts)
