"""Differentiable functions whose forward and backward passes are compiled for the CPU, see ``_fused_cpu``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphbench.models.operations import is_counting

LANES = 16
"""Numbers in a vector of the kernels: ``_vectors.LANES``, which takes a second to import."""
_THREADS = 4  # with more threads, torch's parallel operations are faster


def is_compiled(width: int = 0, *values: Tensor) -> bool:
    """Return whether the functions of this file support the given tensors and rows of ``width`` numbers.

    The functions support float32 on the CPU, outside ``torch.compile``, and are meant for few threads. They are not
    used while operations are counted. A width of 0
    stands for functions of single numbers.
    """
    if width % LANES or torch.compiler.is_compiling() or torch.get_num_threads() > _THREADS or is_counting():
        return False
    return all(v.device.type == "cpu" and v.dtype == torch.float32 for v in values)


def relu_messages(nodes: Tensor, edges: Tensor, ends: Tensor, start: Tensor | None = None) -> Tensor:
    """Return the sums over arcs a = (u, v) of ``ReLU(nodes[u] + edges[a % R])`` for every v, float32 [N, d].

    Args:
        nodes: float32 [N, d].
        edges: float32 [R, d], where R divides E: copies of one graph share the rows of their edges.
        ends: int64 [2, E], sources and targets.
        start: float32 [N, d], to which the messages are added one after another; None for zeros.

    Raises:
        IndexError: If an arc ends at no node, or R does not divide E.
    """
    if ends.shape[1] % max(len(edges), 1) or (ends.numel() and not len(edges)):
        raise IndexError(f"{len(edges)} rows of edges do not divide {ends.shape[1]} arcs; give one row per arc")
    _require_ends(ends, len(nodes))
    result: Tensor = _ReluMessages.apply(nodes.contiguous(), edges.contiguous(), ends.contiguous(), start)  # type: ignore[no-untyped-call]
    return result


def sums_at_ends(edges: Tensor, sent: Tensor, taken: Tensor, ends: Tensor) -> Tensor:
    """Return ``edges[a] + sent[u] + taken[v]`` for every arc a = (u, v), float32 [E, d].

    Args:
        edges: float32 [E, d].
        sent: float32 [N, d].
        taken: float32 [N, d].
        ends: int64 [2, E], sources and targets.

    Raises:
        IndexError: If an arc ends at no node, or ``edges`` has not one row per arc.
    """
    if len(edges) != ends.shape[1]:
        raise IndexError(f"{len(edges)} rows of edges for {ends.shape[1]} arcs; give one row per arc")
    _require_ends(ends, min(len(sent), len(taken)))
    rows = (tensor.contiguous() for tensor in (edges, sent, taken, ends))
    result: Tensor = _SumsAtEnds.apply(*rows)  # type: ignore[no-untyped-call]
    return result


def with_reverse(pairs: Tensor, counts: NDArray[np.int64]) -> Tensor:
    """Return the rows of (u, v) and (v, u) beside each other for all pairs of nodes of every graph, float32 [P, 2 d].

    Args:
        pairs: float32 [P, d], one row per pair of nodes of a graph, row by row and graph after graph.
        counts: int64 [B], the nodes of every graph.

    Raises:
        IndexError: If the sum of the squared numbers of nodes is not P.
    """
    if int((counts**2).sum()) != len(pairs):
        raise IndexError(f"{len(pairs)} rows for {int((counts**2).sum())} pairs of nodes; give one row per pair")
    result: Tensor = _WithReverse.apply(pairs.contiguous(), counts)  # type: ignore[no-untyped-call]
    return result


def _require_ends(ends: Tensor, nodes: int) -> None:
    """Raise an IndexError if an arc of ``ends`` int64 [2, E] ends at none of ``nodes`` nodes."""
    if ends.numel():
        low, high = (int(bound) for bound in ends.aminmax())
        if not 0 <= low <= high < nodes:
            raise IndexError(f"edge_index holds {low} to {high}, but there are {nodes} nodes; number them from 0")


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
    def forward(ctx: Any, nodes: Tensor, edges: Tensor, ends: Tensor, start: Tensor | None) -> Tensor:
        from graphbench.models._fused_cpu import add_messages

        needed, width = any(ctx.needs_input_grad), nodes.shape[1]
        positive = torch.empty(ends.shape[1] * width // LANES if needed else 0, dtype=torch.uint16)
        ctx.save_for_backward(positive, ends)
        ctx.shapes = (nodes.shape, edges.shape)
        sums, (source, target) = torch.zeros_like(nodes) if start is None else _copy(start), ends.numpy()
        add_messages(flat(nodes), flat(edges), source, target, width, flat(sums), positive.numpy())
        return sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, Tensor | None]:
        from graphbench.models._fused_cpu import add_message_gradients

        (positive, ends), (of_nodes, of_edges) = ctx.saved_tensors, (gradient.new_empty(s) for s in ctx.shapes)
        source, target = ends.numpy()
        inputs = (positive.numpy(), source, target, gradient.shape[1], flat(gradient.contiguous()))
        add_message_gradients(*inputs, flat(of_nodes.zero_()), flat(of_edges))
        return of_nodes, of_edges, None, gradient if ctx.needs_input_grad[3] else None


class _SumsAtEnds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Tensor, sent: Tensor, taken: Tensor, ends: Tensor) -> Tensor:
        from graphbench.models._fused_cpu import add_ends

        ctx.save_for_backward(ends)
        ctx.nodes = (len(sent), len(taken))
        sums, (source, target) = torch.empty_like(edges), ends.numpy()
        add_ends(flat(edges), flat(sent), flat(taken), source, target, edges.shape[1], flat(sums))
        return sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        from graphbench.models._fused_cpu import add_to_ends

        (ends,), width = ctx.saved_tensors, gradient.shape[1]
        of_sent, of_taken = (gradient.new_zeros(count, width) for count in ctx.nodes)
        (source, target), of_sums = ends.numpy(), flat(gradient.contiguous())
        add_to_ends(of_sums, source, target, width, flat(of_sent), flat(of_taken))
        return gradient, of_sent, of_taken, None


class _WithReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pairs: Tensor, counts: NDArray[np.int64]) -> Tensor:
        from graphbench.models._fused_cpu import join_reverse

        ctx.counts = counts
        rows, width = pairs.shape
        joined = pairs.new_empty(rows, 2 * width)
        join_reverse(flat(pairs), counts, width, flat(joined))
        return joined

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        from graphbench.models._fused_cpu import add_joined

        rows, width = len(gradient), gradient.shape[1] // 2
        of_pairs = gradient.new_empty(rows, width)
        add_joined(flat(gradient.contiguous()), ctx.counts, width, flat(of_pairs))
        return of_pairs, None


class _ReluPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, values: Tensor, counts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from graphbench.models._fused_cpu import sum_of_pairs

        ctx.save_for_backward(vectors, values, counts, weight, bias)
        sums = vectors.new_empty(vectors.shape[0], bias.numel())
        inputs = (vectors.numpy(), values.detach().numpy(), counts.numpy(), flat(weight), flat(bias))
        sum_of_pairs(*inputs, flat(sums))
        return sums

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None, Tensor, Tensor]:
        from graphbench.models._fused_cpu import add_gradients_of_pairs

        vectors, values, counts, weight, bias = ctx.saved_tensors
        gradients = [torch.zeros_like(tensor) for tensor in (values, weight, bias)]
        inputs = (vectors.numpy(), values.detach().numpy(), counts.numpy(), flat(weight), flat(bias))
        outputs = (gradients[0].numpy(), flat(gradients[1]), flat(gradients[2]))
        add_gradients_of_pairs(*inputs, flat(gradient.contiguous()), *outputs)
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
    keep(flat(rows), bits.numpy(), lowest, np.float32(scale), flat(kept))
    return kept


def _copy(values: Tensor) -> Tensor:
    return values.detach().clone(memory_format=torch.contiguous_format)


def flat(values: Tensor) -> Any:
    """Return a contiguous tensor as an array of one dimension that shares its memory."""
    return values.detach().view(-1).numpy()
