"""The compiled step of the normalised LSTM cell: equal to torch's operations in double precision, forward and back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphbench.models import lstm
from graphbench.models.lstm import NormalisedLSTMCell


def cell_of(width: int, dropout: float = 0.0, activation: str = "relu") -> NormalisedLSTMCell:
    """Return a cell with parameters that are not those of its start."""
    torch.manual_seed(0)
    cell = NormalisedLSTMCell(width, width, activation, dropout)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return cell


def tensors(items: int, width: int, scale: float = 1.0) -> list[Tensor]:
    torch.manual_seed(1)
    return [scale * torch.randn(items, width) for _ in range(3)]


def results(cell: NormalisedLSTMCell, inputs: list[Tensor]) -> list[Tensor]:
    """Return the new state and cell, and the gradients of inputs and parameters."""
    given = [tensor.clone().requires_grad_() for tensor in inputs]
    cell.zero_grad()
    state, memory = cell(given[:1], *given[1:])
    weights = torch.arange(state.numel()).view(state.shape).to(state.dtype)
    (state * weights.cos() + memory * weights.sin()).sum().backward()
    gradients = [tensor.grad for tensor in (*given, *cell.parameters())]
    assert all(gradient is not None for gradient in gradients)
    return [state.detach(), memory.detach(), *(g.clone() for g in gradients if g is not None)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of items of all compiled steps."""
    seen: list[int] = []
    apply = lstm._Step.apply

    def counted(raw: Tensor, *rest: Any) -> Any:
        seen.append(len(raw))
        return apply(raw, *rest)

    monkeypatch.setattr(lstm._Step, "apply", counted)
    return seen


@pytest.mark.parametrize(("items", "width", "scale"), [(7, 16, 1.0), (2500, 32, 1.0), (40, 48, 30.0), (0, 16, 1.0)])
def test_the_compiled_step_equals_torch_in_double_precision(
    items: int, width: int, scale: float, steps: list[int]
) -> None:
    cell, inputs = cell_of(width), tensors(items, width, scale)
    compiled = results(cell, inputs)
    assert steps == [items]
    exact = results(cell.double(), [tensor.double() for tensor in inputs])
    assert steps == [items]
    for ours, theirs in zip(compiled, exact, strict=True):
        largest = float(theirs.abs().max()) if theirs.numel() else 0.0
        torch.testing.assert_close(ours.double(), theirs, atol=2e-5 * max(1.0, largest), rtol=0)


def test_rows_of_equal_numbers_are_normalised_to_zero(steps: list[int]) -> None:
    """The variance is 0 there, and the gradient finite."""
    cell = cell_of(16)
    with torch.no_grad():
        cell.gates.weight.fill_(0.25)
    inputs = tensors(3, 16)
    compiled, exact = results(cell, inputs), results(cell.double(), [tensor.double() for tensor in inputs])
    assert steps == [3]
    for ours, theirs in zip(compiled[:2], exact[:2], strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-3, rtol=0)
    assert all(torch.isfinite(tensor).all() for tensor in compiled)


@pytest.mark.parametrize("settings", [{"activation": "gelu"}, {"dropout": 0.5}, {"width": 24}])
def test_other_cells_are_computed_by_torch(settings: dict[str, Any], steps: list[int]) -> None:
    width = settings.get("width", 16)
    results(cell_of(**{"width": width} | settings), tensors(5, width))
    assert not steps


def test_dropout_is_inactive_in_evaluation(steps: list[int]) -> None:
    state, memory, *_ = results(cell_of(16, dropout=0.5).eval(), tensors(5, 16))
    without = results(cell_of(16), tensors(5, 16))
    assert steps == [5, 5] and torch.equal(state, without[0]) and torch.equal(memory, without[1])
