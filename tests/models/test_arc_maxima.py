"""The largest value of the other arcs into a node, compiled and in torch, against a search through all arcs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphbench.models import fused
from graphbench.models.arc_maxima import max_of_others, reversed_arcs
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


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_THREADS", torch.get_num_threads())


@pytest.mark.parametrize("width", [COMPILED, PLAIN])
@pytest.mark.parametrize(("nodes", "edges"), [(3, 0), (2, 1), (5, 3), (6, 9), (20, 60)])
def test_values_and_gradients_equal_brute_force(nodes: int, edges: int, width: int) -> None:
    arcs, values = random_arcs(nodes, edges), torch.randn(2 * edges, width, requires_grad=True)
    assert fused.is_compiled(width, values) == (width == COMPILED)
    found, expected = max_of_others(values, arcs), brute_force(values, arcs)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    weights = torch.randn_like(found)
    gradients = (torch.autograd.grad(result, values, weights)[0] for result in (found, expected))
    torch.testing.assert_close(*gradients)
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
