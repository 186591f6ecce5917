"""Parts of steps on arcs: the largest message of the other arcs, sums of both directions of an edge, and gates.

An arc u -> v receives ``max of values[w -> u] over w != v``, as in belief propagation for matchings. All arcs come in
pairs of opposite directions, the rows ``2j`` and ``2j + 1``. Compiled kernels do the work on CPUs, each in one pass
over its rows; elsewhere the same values are computed by torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.arcs import Arcs
from graphbench.models.fused import LANES, flat, is_compiled

MAX_COMPILED_ARCS = 1 << 24
"""Arcs of a batch that the kernel numbers exactly: it keeps the numbers as float32."""


def max_of_others(values: Tensor, arcs: Arcs) -> Tensor:
    """Return ``max of values[w -> u] over the arcs into u but v -> u`` for every arc u -> v, 0 if there are none.

    Of equal values the first arc receives the gradient.

    Args:
        values: float [A, C], one row per arc.
        arcs: The arcs; the columns ``2j`` and ``2j + 1`` are the two directions of an edge.

    Returns:
        float32 [A, C].

    Raises:
        IndexError: If ``values`` has not one row per arc.
    """
    if len(values) != arcs.ends.shape[1]:
        raise IndexError(f"{len(values)} rows of values for {arcs.ends.shape[1]} arcs; give one row per arc")
    values = values.float()
    on_cpu = values.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and values.shape[1] % LANES == 0 and len(values) < MAX_COMPILED_ARCS:
        result: Tensor = _MaxOfOthers.apply(values.contiguous(), arcs)  # type: ignore[no-untyped-call]
        return result
    chosen = _chosen_rows(values.detach(), arcs)
    return torch.where(chosen < 0, 0.0, values.gather(0, chosen.clamp(min=0)))


def reversed_arcs(values: Tensor) -> Tensor:
    """Return ``values`` [A, C] with the rows of the two directions of every edge exchanged."""
    return values.view(-1, 2, values.shape[1]).flip(1).view(values.shape)


def relu_of_directions(constants: Tensor, terms: Tensor) -> Tensor:
    """Return ``ReLU(constants[a] + terms[a, :k] + terms[reverse of a, k:])`` for every arc a, float [A, k].

    Args:
        constants: float [A, k].
        terms: float [A, 2 k].

    Raises:
        IndexError: If the shapes do not fit, or A is odd.
    """
    _require_halves(constants, terms)
    if is_compiled(constants.shape[1], constants, terms):
        result: Tensor = _ReluOfDirections.apply(constants.contiguous(), terms.contiguous())  # type: ignore[no-untyped-call]
        return result
    ahead, back = terms.chunk(2, dim=1)
    return torch.relu(constants + ahead + reversed_arcs(back))


def gated(states: Tensor, updates: Tensor) -> Tensor:
    """Return ``states + sigmoid(gates) (values - states)``, float [A, C].

    Args:
        states: float [A, C].
        updates: float [A, 2 C], the values and the gates of every row.

    Raises:
        IndexError: If the shapes do not fit, or A is odd.
    """
    _require_halves(states, updates)
    if is_compiled(states.shape[1], states, updates):
        result: Tensor = _Gated.apply(states.contiguous(), updates.contiguous())  # type: ignore[no-untyped-call]
        return result
    value, gate = updates.to(states.dtype).chunk(2, dim=1)
    return torch.lerp(states, value, torch.sigmoid(gate))


def _require_halves(rows: Tensor, doubled: Tensor) -> None:
    """Raise an IndexError unless ``rows`` is [A, C] and ``doubled`` [A, 2 C] with an even number of arcs."""
    if len(rows) % 2 or doubled.shape != (len(rows), 2 * rows.shape[1]):
        raise IndexError(
            f"rows of shapes {list(rows.shape)} and {list(doubled.shape)}; give [A, C] and [A, 2 C], A even"
        )


class _MaxOfOthers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, arcs: Arcs) -> Tensor:
        from graphbench.models._arc_steps_cpu import other_maxima

        width, bags = values.shape[1], arcs.incoming
        out = torch.empty_like(values)
        places = values.new_empty(2 * arcs.targets * width if ctx.needs_input_grad[0] else 0)
        inputs = (flat(values), bags.rows.numpy(), bags.offsets.numpy(), width)
        other_maxima(*inputs, flat(out), places.numpy())
        ctx.arcs = arcs
        ctx.save_for_backward(places)
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        from graphbench.models._arc_steps_cpu import other_maxima_gradients

        (places,), bags, gradient = ctx.saved_tensors, ctx.arcs.incoming, gradient.contiguous()
        of_values = torch.empty_like(gradient)
        inputs = (places.numpy(), bags.rows.numpy(), bags.offsets.numpy(), gradient.shape[1])
        other_maxima_gradients(*inputs, flat(gradient), flat(of_values))
        return of_values, None


class _ReluOfDirections(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, constants: Tensor, terms: Tensor) -> Tensor:
        from graphbench.models._arc_steps_cpu import add_directions

        hidden = torch.empty_like(constants)
        add_directions(flat(terms), flat(constants), constants.shape[1], flat(hidden))
        ctx.save_for_backward(hidden)
        return hidden

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        from graphbench.models._arc_steps_cpu import add_directions_gradients

        (hidden,), gradient = ctx.saved_tensors, gradient.contiguous()
        rows, width = hidden.shape
        of_constants, of_terms = torch.empty_like(hidden), hidden.new_empty(rows, 2 * width)
        add_directions_gradients(flat(hidden), width, flat(gradient), flat(of_terms), flat(of_constants))
        return of_constants, of_terms


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, updates: Tensor) -> Tensor:
        from graphbench.models._arc_steps_cpu import mix

        mixed = torch.empty_like(states)
        mix(flat(states), flat(updates), states.shape[1], flat(mixed))
        ctx.save_for_backward(states, updates)
        return mixed

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        from graphbench.models._arc_steps_cpu import mix_gradients

        (states, updates), gradient = ctx.saved_tensors, gradient.contiguous()
        of_states, of_updates = torch.empty_like(states), torch.empty_like(updates)
        inputs = (flat(states), flat(updates), states.shape[1], flat(gradient))
        mix_gradients(*inputs, flat(of_states), flat(of_updates))
        return of_states, of_updates


def _chosen_rows(values: Tensor, arcs: Arcs) -> Tensor:
    """Return the row whose value every arc receives, int64 [A, C]; -1 if there is none."""
    tails, heads = arcs.ends
    numbers = torch.arange(len(values), device=values.device)
    at = _first_maxima(values, heads, arcs.targets)
    is_best = at.index_select(0, heads) == numbers.unsqueeze(1)
    next_at = _first_maxima(values.masked_fill(is_best, -torch.inf), heads, arcs.targets)
    is_reverse = at.index_select(0, tails) == (numbers ^ 1).unsqueeze(1)
    return torch.where(is_reverse, next_at.index_select(0, tails), at.index_select(0, tails))


def _first_maxima(values: Tensor, heads: Tensor, nodes: int) -> Tensor:
    """Return the first row of the largest value into every node, int64 [N, C]; -1 where no value is above -inf."""
    index = heads.unsqueeze(1).expand_as(values)
    best = values.new_full((nodes, values.shape[1]), -torch.inf).scatter_reduce(0, index, values, "amax")
    largest = (values == best.index_select(0, heads)) & (values > -torch.inf)
    rows = torch.arange(len(values), device=values.device).unsqueeze(1)
    rows = torch.where(largest, rows, len(values))
    first = rows.new_full(best.shape, len(values)).scatter_reduce(0, index, rows, "amin")
    return torch.where(first < len(values), first, -1)
