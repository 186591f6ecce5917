"""A vector type for Numba, for the kernels of models on the CPU.

Numba has no vector type, and its loops over arrays of unknown overlap compile to scalar code. Here a vector holds
``LANES`` numbers. All functions of vectors, and ``+ - * /``, are one or two LLVM instructions on any processor, except
for ``exponential``, a polynomial.
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

from graphbench.core.kernels import inner

LANES = 16  # numbers in a vector
_LINE = 64  # bytes
_MANTISSA_BITS = 23  # of float32
_ROUNDING = np.float32(1.5 * 2**23)  # a float32 plus this number is a whole number in the low bits


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
    """Define an operator on two vectors of the same type; products and sums may be fused."""

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
def spread(typing_context: Any, array: Any, index: Any) -> Any:
    """Return the vector that holds number ``index`` of a contiguous array everywhere."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        number = builder.load(builder.gep(data, [args[1]]))
        kind, lane = _llvm_type(array.dtype), ir.IntType(32)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, lane(0))
        places = ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), places)

    return _Vector(array.dtype)(array, types.intp), generate


@intrinsic
def has_many_registers(typing_context: Any) -> Any:
    """Return whether the processor's registers hold 32 vectors, as with AVX-512; those of AVX2 hold 8.

    It is a constant of the compiled code, and code in the cache is of one kind of processor.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, _, features = context.codegen().magic_tuple()
        return ir.Constant(ir.IntType(1), int("+avx512f" in features.split(",")))

    return types.boolean(), generate


@intrinsic
def _times_power_of_two(typing_context: Any, vector: Any, exponents: Any) -> Any:
    """Return ``vector * 2^n`` for float32 ``exponents`` that hold n + 1.5 * 2^23, the form of rounding by addition."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = ir.VectorType(ir.IntType(32), LANES)
        bits = builder.shl(builder.bitcast(args[1], whole), ir.Constant(whole, [_MANTISSA_BITS] * LANES))
        return builder.bitcast(builder.add(builder.bitcast(args[0], whole), bits), _llvm_type(vector.dtype))

    return vector(vector, exponents), generate


@inner
def exponential(x: Any) -> Any:
    """Return the exponentials of float32 numbers within 2 units in the last place; x is limited to [-87, 88].

    ``exp(x) = 2^n exp(r)`` with ``|r| <= ln(2) / 2``, and a polynomial for the second factor (Cephes, ``expf``).
    """
    low, high, shift = splat(np.float32(-87.0)), splat(np.float32(88.0)), splat(_ROUNDING)
    x = where_less(x, low, low, x)
    x = where_less(high, x, high, x)
    rounded = x * splat(np.float32(1.44269504088896341)) + shift
    n = rounded - shift
    r = x - n * splat(np.float32(0.693359375)) + n * splat(np.float32(2.12194440e-4))
    p = r * splat(np.float32(1.9875691500e-4)) + splat(np.float32(1.3981999507e-3))
    p = p * r + splat(np.float32(8.3334519073e-3))
    p = p * r + splat(np.float32(4.1665795894e-2))
    p = p * r + splat(np.float32(1.6666665459e-1))
    p = p * r + splat(np.float32(5.0000001201e-1))
    return _times_power_of_two(p * r * r + r + splat(np.float32(1.0)), rounded)


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


@intrinsic
def total(typing_context: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers, added in an order of the processor's choice."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = _llvm_type(vector.dtype)
        name = f"llvm.vector.reduce.fadd.v{LANES}f{vector.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind.element, [kind.element, kind]), name
        )
        return builder.call(function, [ir.Constant(kind.element, 0.0), args[0]], fastmath=("reassoc",))

    return vector.dtype(vector), generate


@inner
def empty_vectors(count: int) -> NDArray[np.float32]:
    """Return an uninitialised float32 [count, LANES] that begins a cache line: vectors across two lines are slow."""
    numbers = np.empty((count + 1) * LANES, np.float32)
    skipped = (_LINE - np.int64(numbers.ctypes.data) % _LINE) % _LINE // numbers.itemsize
    return numbers[skipped : skipped + count * LANES].reshape(count, LANES)


@intrinsic
def bits_less(typing_context: Any, left: Any, right: Any) -> Any:
    """Return ``left < right`` as the bits of a uint16."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(builder.fcmp_ordered("<", *args), ir.IntType(LANES))

    return types.uint16(left, right), generate


@intrinsic
def where_bits(typing_context: Any, bits: Any, chosen: Any, other: Any) -> Any:
    """Return ``chosen`` where the bits of a uint16 are 1, else ``other``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.bitcast(args[0], ir.VectorType(ir.IntType(1), LANES)), args[1], args[2])

    return chosen(types.uint16, chosen, other), generate
