"""Parts of steps on arcs, compiled and in torch, against a search through all arcs and against plain formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphbench.models import fused
from graphbench.models.arc_steps import gated, max_of_others, relu_of_directions, reversed_arcs
from graphbench.models.arcs import Arcs

COMPILED, PLAIN = 32, 5  # widths


def random_arcs(nodes: int, edges: int) -> Arcs:
    """Return both directions of random edges, among them loops and parallel edges."""
    pairs = torch.randint(nodes, (edges, 2))
    return Arcs(torch.stack([pairs, pairs.flip(1)], dim=1).reshape(-1, 2).t().contiguous(), nodes, nodes)


def brute_force(values: Tensor, arcs: Arcs) -> Tensor:
    tails, heads = arcs.ends.tolist()
    rows = []
    for arc, tail in enumerate(tails):
        others = [b for b, head in enumerate(heads) if head == tail and b != arc ^ 1]
        rows.append(values[others].amax(0) if others else 0.0 * values[arc])
    return torch.stack(rows) if rows else values


def assert_same_gradients(found: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    weights = torch.randn_like(found)
    gradients = (torch.autograd.grad(result, inputs, weights) for result in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_THREADS", torch.get_num_threads())


@pytest.mark.parametrize("width", [COMPILED, PLAIN])
@pytest.mark.parametrize(("nodes", "edges"), [(3, 0), (2, 1), (5, 3), (6, 9), (20, 60)])
def test_values_and_gradients_equal_brute_force(nodes: int, edges: int, width: int) -> None:
    arcs, values = random_arcs(nodes, edges), torch.randn(2 * edges, width, requires_grad=True)
    found, expected = max_of_others(values, arcs), brute_force(values, arcs)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert_same_gradients(found, expected, [values])
    with torch.no_grad():
        torch.testing.assert_close(max_of_others(values, arcs), found, rtol=0, atol=0)


def test_an_arc_does_not_receive_the_message_of_its_reverse() -> None:
    star = Arcs(torch.tensor([[0, 3, 1, 3, 2, 3], [3, 0, 3, 1, 3, 2]]), 4, 4)
    values = torch.tensor([5.0, 0.0, 7.0, 0.0, 2.0, 0.0]).unsqueeze(1)  # of 0 -> 3, 1 -> 3 and 2 -> 3
    assert max_of_others(values, star).squeeze(1).tolist() == [0.0, 7.0, 0.0, 5.0, 0.0, 7.0]


@pytest.mark.parametrize("width", [COMPILED, PLAIN])
def test_the_first_of_equal_values_receives_the_gradient(width: int) -> None:
    star = Arcs(torch.tensor([[0, 3, 1, 3, 2, 3], [3, 0, 3, 1, 3, 2]]), 4, 4)
    values = torch.zeros(6, width, requires_grad=True)
    (gradient,) = torch.autograd.grad(max_of_others(values, star).sum(), values)
    assert gradient[:, 0].tolist() == [2.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_negative_values_are_not_raised_to_zero() -> None:
    path = Arcs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, 3)
    values = torch.tensor([-1.0, -2.0, -3.0, -4.0]).unsqueeze(1)
    assert max_of_others(values, path).squeeze(1).tolist() == [0.0, -4.0, -1.0, 0.0]


def test_reversing_twice_changes_nothing() -> None:
    values = torch.randn(6, 3)
    assert torch.equal(reversed_arcs(values)[0], values[1])
    assert torch.equal(reversed_arcs(reversed_arcs(values)), values)


def test_values_of_other_arcs_are_refused() -> None:
    with pytest.raises(IndexError, match="4 rows"):
        max_of_others(torch.zeros(4, COMPILED), random_arcs(5, 3))
    for function in (relu_of_directions, gated):
        with pytest.raises(IndexError, match=r"\[4, 32\] and \[2, 64\]"):
            function(torch.zeros(4, COMPILED), torch.zeros(2, 2 * COMPILED))
        with pytest.raises(IndexError, match=r"\[3, 32\]"):
            function(torch.zeros(3, COMPILED), torch.zeros(3, 2 * COMPILED))


@pytest.mark.parametrize("width", [16, COMPILED, PLAIN])
@pytest.mark.parametrize("edges", [0, 1, 7])
def test_both_directions_are_added_below_a_relu(edges: int, width: int) -> None:
    constants, terms = (torch.randn(2 * edges, k, requires_grad=True) for k in (width, 2 * width))
    found = relu_of_directions(constants, terms)
    reverse = torch.arange(2 * edges) ^ 1
    expected = torch.relu(constants + terms[:, :width] + terms[reverse, width:])
    torch.testing.assert_close(found, expected)
    assert_same_gradients(found, expected, [constants, terms])


@pytest.mark.parametrize("width", [16, COMPILED, PLAIN])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_gates_mix_states_and_values(scale: float, width: int) -> None:
    states, updates = torch.randn(6, width, requires_grad=True), (scale * torch.randn(6, 2 * width)).requires_grad_()
    found = gated(states, updates)
    share = torch.sigmoid(updates[:, width:])
    expected = (1.0 - share) * states + share * updates[:, :width]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert_same_gradients(found, expected, [states, updates])
