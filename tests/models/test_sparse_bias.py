"""Attention with a bias on single pairs: equal to attention with a dense bias, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphbench.models._attention_cpu import _multiply_eight, _multiply_four
from graphbench.models._vectors import LANES, empty_vectors, exponential, load, splat, store
from graphbench.models.processors import attention
from graphbench.models.processors.attention import ArcBias, RelationBias, attention_function

from .test_attention import HEADS, arc_bias, queries_keys_values, relation_bias

ATOL = 1e-5


def results(mode: str, bias: ArcBias | RelationBias, inputs: list[Tensor], learned: list[Tensor]) -> list[Tensor]:
    """Return the attended values of real tokens, and the gradients of inputs and biases."""
    tensors = [*inputs, *learned]
    for tensor in tensors:
        tensor.requires_grad_(True).grad = None
    out = attention_function(mode, bias)(*inputs)
    real = (torch.arange(bias.size) < bias.lengths.unsqueeze(1))[:, None, :, None]
    out = out * real
    (out * torch.arange(out.numel()).view(out.shape).cos()).sum().backward()
    gradients = [tensor.grad for tensor in tensors]
    assert all(gradient is not None for gradient in gradients)
    return [out.detach(), *(gradient.clone() for gradient in gradients if gradient is not None)]


def learned_values(bias: ArcBias | RelationBias) -> list[Tensor]:
    values = bias.weight if isinstance(bias, RelationBias) else bias.values
    return [values] if bias.token is None else [values, bias.token]


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("kind", ["relation", "arc"])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_pairs_equal_the_dense_bias(kind: str, token: bool, scale: float) -> None:
    torch.manual_seed(0)
    bias = relation_bias(token)[0] if kind == "relation" else arc_bias(token)
    learned = learned_values(bias)
    for tensor in learned:
        tensor.mul_(scale)
    inputs = queries_keys_values(bias)
    expected = results("sdpa", bias, [x.detach() for x in inputs], learned)
    computed = results("pairs", bias, [x.detach() for x in inputs], learned)
    for ours, theirs in zip(computed, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=ATOL * max(1.0, float(theirs.abs().max())), rtol=0)


@pytest.mark.parametrize("strength", [-40.0, 15.0, 60.0])
def test_rows_whose_weight_lies_on_few_pairs_are_exact(strength: float) -> None:
    torch.manual_seed(1)
    bias = arc_bias()
    values = torch.full_like(bias.values, strength)
    precise, floats = (ArcBias(v, bias.arcs, bias.lengths, bias.size, None) for v in (values.double(), values))
    inputs = [x.detach() for x in queries_keys_values(bias)]
    expected = results("sdpa", precise, [x.double() for x in inputs], [precise.values])
    computed = results("pairs", floats, inputs, [floats.values])
    for ours, theirs in zip(computed, expected, strict=True):
        atol = ATOL * max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(ours.double(), theirs, atol=atol, rtol=0)


def test_several_arcs_between_two_tokens_add_up() -> None:
    torch.manual_seed(2)
    bias = arc_bias()
    doubled = ArcBias(bias.values.repeat(2, 1), bias.arcs.repeat(1, 2), bias.lengths, bias.size, None)
    inputs = [x.detach() for x in queries_keys_values(bias)]
    expected = results("sdpa", doubled, inputs, [doubled.values])
    computed = results("pairs", doubled, inputs, [doubled.values])
    for ours, theirs in zip(computed, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=ATOL, rtol=0)


def test_results_are_the_same_in_every_run() -> None:
    torch.manual_seed(3)
    bias, _ = relation_bias(True)
    inputs, learned = [x.detach() for x in queries_keys_values(bias)], learned_values(bias)
    first, second = (results("pairs", bias, inputs, learned) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_large_graphs_with_few_arcs_are_corrected_and_small_ones_are_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    monkeypatch.setattr(attention, "pairs_attention", lambda pairs: used.append("pairs"))
    monkeypatch.setattr(attention, "_dense_attention", lambda bias: used.append("dense"))
    nodes = 200
    ring = torch.stack([torch.zeros(nodes, dtype=torch.long), torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    lengths = torch.tensor([nodes])
    attention_function("auto", ArcBias(torch.randn(nodes, 2), ring, lengths, nodes, None))
    everything = torch.cartesian_prod(torch.zeros(1, dtype=torch.long), torch.arange(nodes), torch.arange(nodes)).t()
    attention_function("auto", ArcBias(torch.randn(nodes**2, 2), everything, lengths, nodes, None))
    attention_function("auto", arc_bias())
    assert used == ["pairs", "dense", "dense"]


def large_bias(lengths: list[int], arcs: int) -> ArcBias:
    """Return biases on random pairs of graphs that need several blocks of keys and groups of queries."""
    graph = torch.randint(len(lengths), (arcs,))
    sizes = torch.tensor(lengths)[graph]
    query, key = (torch.randint(10_000, (2, arcs)) % sizes).unbind()
    unique = torch.unique(torch.stack([graph, query, key]), dim=1)
    return ArcBias(torch.randn(unique.shape[1], HEADS), unique, torch.tensor(lengths), max(lengths), None)


@pytest.mark.parametrize("width", [1, 8, 16, 20, 40])
def test_graphs_of_many_blocks_equal_the_dense_bias(width: int) -> None:
    torch.manual_seed(4)
    bias = large_bias([1, 150, 64, 131], 2_000)
    inputs = [torch.randn(4, HEADS, 150, width) for _ in range(3)]
    precise = ArcBias(bias.values.double(), bias.arcs, bias.lengths, bias.size, None)
    expected = results("sdpa", precise, [x.double() for x in inputs], [precise.values])
    computed = results("pairs", bias, inputs, [bias.values])
    for ours, theirs in zip(computed, expected, strict=True):
        atol = ATOL * max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(ours.double(), theirs, atol=atol, rtol=0)


def test_a_graph_has_the_same_bits_alone_and_in_a_batch_and_with_any_number_of_threads() -> None:
    torch.manual_seed(5)
    bias = large_bias([150, 70], 900)
    inputs = [torch.randn(2, HEADS, 150, 16) for _ in range(3)]
    together = attention_function("pairs", bias)(*inputs)
    of_second = bias.arcs[0] == 1
    arcs = bias.arcs[:, of_second] * torch.tensor([[0], [1], [1]])
    alone = attention_function("pairs", ArcBias(bias.values[of_second], arcs, bias.lengths[1:], 70, None))
    assert torch.equal(alone(*(x[1:, :, :70] for x in inputs)), together[1:, :, :70])
    threads = torch.get_num_threads()
    one = results("pairs", bias, [x.clone() for x in inputs], [bias.values])
    torch.set_num_threads(3)
    try:
        three = results("pairs", bias, [x.clone() for x in inputs], [bias.values])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


@pytest.mark.parametrize("size", [1e4, float("nan")])
def test_large_scores_and_numbers_that_are_none_are_treated_as_by_torch(size: float) -> None:
    torch.manual_seed(6)
    bias = large_bias([80], 50)
    inputs = [torch.randn(1, HEADS, 80, 16) for _ in range(3)]
    inputs[0][0, 0, 3] = size
    dense, computed = (attention_function(mode, bias)(*inputs) for mode in ("sdpa", "pairs"))
    assert not torch.isnan(computed[0, 1:]).any()
    torch.testing.assert_close(computed, dense, atol=ATOL, rtol=1e-4, equal_nan=True)


def test_exponentials_are_those_of_double_precision() -> None:
    x = np.concatenate([np.linspace(-87, 88, 100_000), [-1e30, 0.0, 1e-20, np.nan, -0.5, 1.0]]).astype(np.float32)
    x = np.resize(x, -(-len(x) // LANES) * LANES)
    computed = np.empty_like(x)
    _exponentials(x, computed)
    expected = np.exp(np.clip(x.astype(np.float64), -87, 88))
    np.testing.assert_allclose(computed, expected, rtol=3e-7, atol=1e-37)


@njit
def _exponentials(x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    for i in range(x.size // LANES):
        store(out, i, exponential(load(x, i)))


@njit  # type: ignore[untyped-decorator]
def products(
    a: NDArray[np.float32], b: NDArray[np.float32], before: NDArray[np.float32], at_once: int
) -> NDArray[np.float32]:
    """Return half of ``before`` [8, LANES] plus the product of ``a`` [8 * K] and ``b`` [K, LANES]."""
    columns, half = b.shape[0], splat(np.float32(0.5))
    vectors, out = empty_vectors(columns), empty_vectors(8)
    vectors[:] = b
    out[:] = before
    for row in range(0, 8, at_once):
        steps = (row * columns, columns, 1)
        if at_once == 8:
            _multiply_eight(a, steps, columns, vectors, (0, 1), out, (row, 1), half)
        else:
            _multiply_four(a, steps, columns, vectors, (0, 1), out, (row, 1), half)
    return out


@pytest.mark.thorough
def test_four_rows_at_once_have_the_bits_of_eight() -> None:
    """Processors with and without AVX-512 give the same result."""
    random = np.random.default_rng(0)
    a, b, before = (random.normal(size=size).astype(np.float32) for size in ((8, 33), (33, LANES), (8, LANES)))
    eight, four = (products(a.ravel(), b, before, at_once) for at_once in (8, 4))
    np.testing.assert_array_equal(eight, four)
    np.testing.assert_allclose(eight, 0.5 * before + a @ b, atol=1e-4)
