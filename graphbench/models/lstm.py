"""An LSTM cell with layer normalisations, whose step is compiled for the CPU, see ``_lstm_cpu``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from graphbench.models.fused import flat, is_compiled
from graphbench.models.layers import Dropout, activation_function

_GATES = 4


class NormalisedLSTMCell(nn.Module):
    """An LSTM cell with a layer normalisation of each gate and of the cell (Ba et al., 2016).

    ``i, g, f, o = LN(W [x, h])``, ``c' = LN(c sigmoid(f + 1) + sigmoid(i) dropout(act(g)))`` and
    ``h' = act(c') sigmoid(o)``. The authors of NeuroSAT use this cell with ReLU as the activation.
    """

    def __init__(self, inputs: int, width: int, activation: str, dropout: float) -> None:
        """Create a cell with ``inputs`` input numbers and ``width`` state numbers."""
        super().__init__()
        self.width = width
        self.gates = nn.Linear(inputs + width, _GATES * width, bias=False)
        self.scale = nn.Parameter(torch.ones(_GATES, width))
        self.shift = nn.Parameter(torch.zeros(_GATES, width))
        self.norm = nn.LayerNorm(width)
        self.activation = activation_function(activation)
        self.dropout = Dropout(dropout)

    def forward(self, received: Sequence[Tensor], hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new state and cell [items, d]; ``received`` are the parts of the input [items, ...]."""
        raw = self.gates(torch.cat([*received, hidden], dim=1))
        if isinstance(self.activation, nn.ReLU) and not self.dropout.drops and is_compiled(self.width, raw, cell):
            parameters = (self.scale, self.shift, self.norm.weight, self.norm.bias)
            state, cell = _Step.apply(raw, cell, *parameters)  # type: ignore[no-untyped-call]
            return state, cell
        normed = F.layer_norm(raw.view(-1, _GATES, self.width), (self.width,)) * self.scale + self.shift
        enter, candidate, keep, leave = normed.unbind(1)
        new = self.dropout(self.activation(candidate)) * torch.sigmoid(enter)
        cell = self.norm(cell * torch.sigmoid(keep + 1.0) + new)
        return self.activation(cell) * torch.sigmoid(leave), cell


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, raw: Tensor, cell: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        from graphbench.models._lstm_cpu import step

        inputs = tuple(tensor.contiguous() for tensor in (raw, cell, *parameters))
        ctx.save_for_backward(*inputs)
        state, updated = torch.empty_like(inputs[1]), torch.empty_like(inputs[1])
        arrays: tuple[Any, ...] = tuple(map(flat, (*inputs, state, updated)))
        step(*arrays)
        return state, updated

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, of_state: Tensor, of_updated: Tensor) -> tuple[Tensor, ...]:
        from graphbench.models._lstm_cpu import step_gradients

        inputs = ctx.saved_tensors
        raw, cell, scale, shift, weight, bias = inputs
        of_raw, of_cell = torch.empty_like(raw), torch.empty_like(cell)
        sums = torch.zeros(2 * (_GATES + 1) * cell.shape[1], dtype=torch.float64)
        given = (of_state.contiguous(), of_updated.contiguous())
        arrays: tuple[Any, ...] = tuple(map(flat, (*inputs, *given, of_raw, of_cell, sums)))
        step_gradients(*arrays)
        sizes = [scale.numel(), weight.numel(), shift.numel(), bias.numel()]
        of_scale, of_weight, of_shift, of_bias = torch.split(sums.to(raw.dtype), sizes)
        return of_raw, of_cell, of_scale.view_as(scale), of_shift.view_as(shift), of_weight, of_bias
