"""Attention that corrects biased pairs: equal to attention with a dense bias, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphbench.models.processors import attention
from graphbench.models.processors.attention import ArcBias, RelationBias, attention_function

from .test_attention import arc_bias, queries_keys_values, relation_bias

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
