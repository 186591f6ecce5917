"""Differentiable functions whose forward and backward passes are compiled for the CPU, see ``_fused_cpu``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LANES = 16
"""Numbers in a vector of the kernels: ``_vectors.LANES``, which takes a second to import."""
_THREADS = 4  # with more threads, torch's parallel operations are faster


def is_compiled(width: int = 0, *values: Tensor) -> bool:
    """Return whether the functions of this file support the given tensors and rows of ``width`` numbers.

    The functions support float32 on the CPU, outside ``torch.compile``, and are meant for few threads. A width of 0
    stands for functions of single numbers.
    """
    if width % LANES or torch.compiler.is_compiling() or torch.get_num_threads() > _THREADS:
        return False
    return all(v.device.type == "cpu" and v.dtype == torch.float32 for v in values)


def relu_messages(nodes: Tensor, edges: Tensor, ends: Tensor) -> Tensor:
    """Return the sums over arcs a = (u, v) of ``ReLU(nodes[u] + edges[a % R])`` for every v, float32 [N, d].

    Args:
        nodes: float32 [N, d].
        edges: float32 [R, d], where R divides E: copies of one graph share the rows of their edges.
        ends: int64 [2, E], sources and targets.

    Raises:
        IndexError: If an arc ends at no node, or R does not divide E.
    """
    if ends.shape[1] % max(len(edges), 1):
        raise IndexError(f"{len(edges)} rows of edges do not divide {ends.shape[1]} arcs; give one row per arc")
    if ends.numel() and not 0 <= int(ends.min()) <= int(ends.max()) < len(nodes):
        message = f"edge_index holds {int(ends.min())} to {int(ends.max())}"
        raise IndexError(f"{message}, but there are {len(nodes)} nodes; number them from 0")
    result: Tensor = _ReluMessages.apply(nodes.contiguous(), edges.contiguous(), ends.contiguous())  # type: ignore[no-untyped-call]
    return result


def relu_pairs(vectors: Tensor, values: Tensor, counts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``sum over j < counts[n] of ReLU(W [vectors[n, j], values[n, j]] + b)`` for every n, float32 [N, d].

    Args:
        vectors: float32 [N, k]; it receives no gradient.
        values: float32 [N, k].
        counts: int64 [N], at most k.
        weight: float32 [d, 2].
        bias: float32 [d].
    """
    inputs = (vectors.detach().contiguous(), values.contiguous(), counts.contiguous())
    result: Tensor = _ReluPairs.apply(*inputs, weight.t().contiguous(), bias)  # type: ignore[no-untyped-call]
    return result


def scaled_where_kept(values: Tensor, bits: Tensor, lowest: int, scale: float) -> Tensor:
    """Return ``scale * values`` where ``bits >= lowest``, else 0, float32, in the shape of ``values``.

    Args:
        values: float32 or bfloat16.
        bits: int16, as many as values.
        lowest: The lowest random number that keeps a value.
        scale: Factor of the kept values.
    """
    result: Tensor = _Kept.apply(values, bits, lowest, scale)  # type: ignore[no-untyped-call]
    return result


class _ReluMessages(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, nodes: Tensor, edges: Tensor, ends: Tensor) -> Tensor:
        from graphbench.models._fused_cpu import add_messages

        ctx.save_for_backward(nodes, edges, ends)
        sums, (source, target) = torch.zeros_like(nodes), ends.numpy()
        add_messages(_flat(nodes), _flat(edges), source, target, nodes.shape[1], _flat(sums))
        return sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        from graphbench.models._fused_cpu import add_message_gradients

        nodes, edges, ends = ctx.saved_tensors
        of_nodes, of_edges = torch.zeros_like(nodes), torch.zeros_like(edges)
        (source, target), of_sums = ends.numpy(), _flat(gradient.contiguous())
        inputs = (_flat(nodes), _flat(edges), source, target, nodes.shape[1], of_sums)
        add_message_gradients(*inputs, _flat(of_nodes), _flat(of_edges))
        return of_nodes, of_edges, None


class _ReluPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, values: Tensor, counts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from graphbench.models._fused_cpu import sum_of_pairs

        ctx.save_for_backward(vectors, values, counts, weight, bias)
        sums = vectors.new_empty(vectors.shape[0], bias.numel())
        inputs = (vectors.numpy(), values.detach().numpy(), counts.numpy(), _flat(weight), _flat(bias))
        sum_of_pairs(*inputs, _flat(sums))
        return sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None, Tensor, Tensor]:
        from graphbench.models._fused_cpu import add_gradients_of_pairs

        vectors, values, counts, weight, bias = ctx.saved_tensors
        gradients = [torch.zeros_like(tensor) for tensor in (values, weight, bias)]
        inputs = (vectors.numpy(), values.detach().numpy(), counts.numpy(), _flat(weight), _flat(bias))
        outputs = (gradients[0].numpy(), _flat(gradients[1]), _flat(gradients[2]))
        add_gradients_of_pairs(*inputs, _flat(gradient.contiguous()), *outputs)
        return None, gradients[0], None, gradients[1], gradients[2]


class _Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bits: Tensor, lowest: int, scale: float) -> Tensor:
        ctx.save_for_backward(bits)
        ctx.settings = (lowest, scale, values.dtype)
        return _kept(values, bits, lowest, scale)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (bits,), (lowest, scale, dtype) = ctx.saved_tensors, ctx.settings
        return _kept(gradient, bits, lowest, scale).to(dtype), None, None, None


def _kept(values: Tensor, bits: Tensor, lowest: int, scale: float) -> Tensor:
    from graphbench.models._fused_cpu import keep

    rows = values.float().contiguous()
    kept = torch.empty_like(rows)
    keep(_flat(rows), bits.numpy(), lowest, np.float32(scale), _flat(kept))
    return kept


def _flat(values: Tensor) -> Any:
    """Return a contiguous tensor as an array of one dimension that shares its memory."""
    return values.detach().view(-1).numpy()
