"""Return probabilities of random walks on the CPU, compiled, and the vector type of the encodings' kernels.

For one graph, ``diag(P^1), ..., diag(P^k)`` with ``P = D^-1 A`` are computed for a block of columns at a time. A block
of a matrix power is a small dense matrix that stays in the first-level cache; the next power is one sparse product, a
sum of rows. When A is symmetric, so is ``S = D^-1/2 A D^-1/2``, and ``diag(P^(i+j)) = colsum(S^i * S^j)``: half the
powers do.

A row of a block is one vector value of ``LANES`` numbers. Numba has no such type, and its loops over arrays of unknown
overlap compile to scalar code, so the type is defined here: ``load``, ``store``, ``splat``, ``sqrt``, ``where_less``,
and ``+ - * /``, each one LLVM instruction on whole vectors, on any processor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

LANES = 16  # numbers in a vector
_LINE = 64  # bytes
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class _Vector(types.Type):  # type: ignore[misc]
    """Numba's type of a vector of ``LANES`` numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype}, {LANES})")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    """A vector is one LLVM value."""

    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, _llvm_type(vector.dtype))


def _llvm_type(dtype: Any) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), LANES)


def _add_operator(symbol: Callable[..., Any], instruction: str) -> None:
    """Give two vectors of one type an operator; products and sums may be fused."""

    class _Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            both = len(args) == 2 and isinstance(args[0], _Vector) and args[0] == args[1]
            return signature(args[0], *args) if both else None

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=("contract",))

    infer_global(symbol)(_Template)
    lower_builtin(symbol, _Vector, _Vector)(lower)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.isub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _add_operator(_symbol, _instruction)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    pointer = builder.bitcast(data, _llvm_type(array_type.dtype).as_pointer())
    return builder.gep(pointer, [index])


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return vector number ``index`` of a contiguous array."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig.args[0], *args), align=array.dtype.bitwidth // 8)

    return _Vector(array.dtype)(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, vector: Any) -> Any:
    """Write vector number ``index`` of a contiguous array, converted to its precision."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = args[2]
        if vector.dtype != array.dtype:
            convert = builder.fptrunc if array.dtype == types.float32 else builder.fpext
            value = convert(value, _llvm_type(array.dtype))
        builder.store(value, _address(context, builder, sig.args[0], *args[:2]), align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def splat(typing_context: Any, value: Any) -> Any:
    """Return the vector that holds one number everywhere."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind, lane = _llvm_type(value), ir.IntType(32)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), args[0], lane(0))
        places = ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), places)

    return _Vector(value)(value), generate


@intrinsic
def sqrt(typing_context: Any, vector: Any) -> Any:
    """Return the square roots."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind, name = _llvm_type(vector.dtype), f"llvm.sqrt.v{LANES}f{vector.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(function, args)

    return vector(vector), generate


@intrinsic
def where_less(typing_context: Any, left: Any, right: Any, chosen: Any, other: Any) -> Any:
    """Return ``chosen`` where ``left < right``, else ``other``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return chosen(left, right, chosen, other), generate


@inner
def empty_vectors(count: int) -> NDArray[np.float32]:
    """Return an uninitialised float32 [count, LANES] that begins a cache line: vectors across two lines are slow."""
    numbers = np.empty((count + 1) * LANES, np.float32)
    skipped = (_LINE - np.int64(numbers.ctypes.data) % _LINE) % _LINE // numbers.itemsize
    return numbers[skipped : skipped + count * LANES].reshape(count, LANES)


@kernel
def neighbour_lists(
    source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int, self_loops: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (starts int64[N+1], targets of the arcs that leave each node)."""
    starts = np.zeros(num_nodes + 1, np.int64)
    extra = 1 if self_loops else 0
    for s in source:
        starts[s + 1] += 1
    for v in range(num_nodes):
        starts[v + 1] += starts[v] + extra
    fill = starts[:num_nodes].copy()
    neighbours = np.empty(starts[num_nodes], np.int64)
    if self_loops:
        for v in range(num_nodes):
            neighbours[fill[v]] = v
            fill[v] += 1
    for j in range(source.size):
        s = source[j]
        neighbours[fill[s]] = target[j]
        fill[s] += 1
    return starts, neighbours


@inner
def _symmetric_block(
    first: int,
    size: int,
    block: int,
    width: int,
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    inverse: NDArray[np.float32],
    now: NDArray[np.float32],
    after: NDArray[np.float32],
    columns: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the rows of ``out`` of one block; ``now`` holds ``Y_i = D^-1/2 S^i``, so that ``D Y_(i+1) = A Y_i``."""
    steps = out.shape[1]
    now[:size] = _ZERO
    columns[0] = _ZERO
    for c in range(width):
        v = first + block + c
        scale = np.sqrt(inverse[v])
        for j in range(starts[v], starts[v + 1]):
            now[neighbours[j] - first, c] += scale * inverse[neighbours[j]]
        columns[0, c] = now[block + c, c] / scale if inverse[v] > 0 else _ZERO
    even = splat(_ZERO)
    for u in range(size):
        degree = np.float32(starts[first + u + 1] - starts[first + u])
        row = load(now, u)
        even += row * row * splat(degree)
    store(columns, 1, even)
    power = 2
    while 2 * power - 1 <= steps:
        odd, even = splat(_ZERO), splat(_ZERO)
        for u in range(size):
            total = splat(_ZERO)
            for j in range(starts[first + u], starts[first + u + 1]):
                total += load(now, neighbours[j] - first)
            row = splat(inverse[first + u]) * total
            odd += load(now, u) * total
            even += row * total
            store(after, u, row)
        store(columns, 2 * power - 2, odd)
        store(columns, 2 * power - 1, even)
        now, after = after, now
        power += 1
    for c in range(width):
        for i in range(steps):
            out[first + block + c, i] = columns[i, c]


@inner
def _general_block(
    first: int,
    size: int,
    block: int,
    width: int,
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    inverse: NDArray[np.float32],
    now: NDArray[np.float32],
    after: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Fill the rows of ``out`` of one block of columns of ``P^1 ... P^k``; no symmetry is assumed."""
    now[:size] = _ZERO
    for c in range(width):
        now[block + c, c] = _ONE
    for power in range(out.shape[1]):
        for u in range(size):
            total = splat(_ZERO)
            for j in range(starts[first + u], starts[first + u + 1]):
                total += load(now, neighbours[j] - first)
            store(after, u, splat(inverse[first + u]) * total)
        for c in range(width):
            out[first + block + c, power] = after[block + c, c]
        now, after = after, now


@kernel
def return_probabilities(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    ptr: NDArray[np.int64],
    steps: int,
    symmetric: bool,
    self_loops: bool,
) -> NDArray[np.float32]:
    """Return ``diag(P^1) ... diag(P^steps)`` of every graph of a batch.

    Args:
        source: int64 [E], tails of the arcs, numbered through the batch.
        target: int64 [E], heads of the arcs.
        ptr: int64 [B+1], graph ``g`` holds the nodes ``ptr[g] .. ptr[g+1]-1``.
        steps: Longest walk.
        symmetric: Whether every arc is present in both directions, equally often.
        self_loops: Whether one loop is added to every node.

    Returns:
        float32 [N, steps].
    """
    num_nodes = ptr[-1]
    starts, neighbours = neighbour_lists(source, target, num_nodes, self_loops)
    inverse = np.zeros(num_nodes, np.float32)
    largest = 0
    for v in range(num_nodes):
        if starts[v + 1] > starts[v]:
            inverse[v] = _ONE / np.float32(starts[v + 1] - starts[v])
    for g in range(ptr.size - 1):
        largest = max(largest, ptr[g + 1] - ptr[g])
    now, after, columns = empty_vectors(largest), empty_vectors(largest), empty_vectors(steps + 2)
    out = np.zeros((num_nodes, steps), np.float32)
    for g in range(ptr.size - 1):
        first, size = ptr[g], ptr[g + 1] - ptr[g]
        for block in range(0, size, LANES):
            width = min(LANES, size - block)
            if symmetric:
                _symmetric_block(first, size, block, width, starts, neighbours, inverse, now, after, columns, out)
            else:
                _general_block(first, size, block, width, starts, neighbours, inverse, now, after, out)
    return out
