"""Truth tables as arrays of bits, as 64-bit words, and as text.

Row j of a table belongs to output j. Column x belongs to the assignment in which input i has the value of bit i of x:
``(x >> i) & 1``. So input 0 changes fastest, and the table of input 0 begins 0, 1, 0, 1.

- *Bits*: bool ``[m, 2^n]``.
- *Words*: uint64 ``[m, W]`` with ``W = max(1, 2^n / 64)``; column x is bit ``x % 64`` of word ``x // 64``. The unused
  bits of a table of fewer than 6 inputs are 0.
- *Text*: one hexadecimal number per output, separated by spaces; column x is bit x of the number, so the last column is
  the most significant bit, as in ABC's ``read_truth``. A number has ``max(1, 2^n / 4)`` digits, in lower case. A table
  of fewer than 2 inputs needs the number of inputs and its text; datasets have no such tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]
MOST_INPUTS = 20
"""Most inputs of a function whose truth table is computed: 2^20 bits per output."""


def as_bits(table: Any) -> Bits:
    """Return a truth table as bool ``[m, 2^n]``.

    Args:
        table: An array of 0 and 1, ``[m, 2^n]``, or ``[2^n]`` for one output.

    Raises:
        CircuitError: If the array has another shape or other values.
    """
    array = np.asarray(table)
    bits = array[None] if array.ndim == 1 else array
    if bits.ndim != 2 or not bits.shape[0] or bits.shape[1].bit_count() != 1:
        raise CircuitError(
            f"a truth table has the shape {list(array.shape)}; give one row per output and 2^n columns, one per "
            "assignment of the n inputs"
        )
    if bits.shape[1] > 1 << MOST_INPUTS:
        raise CircuitError(
            f"a truth table has {bits.shape[1].bit_length() - 1} inputs; at most {MOST_INPUTS} are allowed"
        )
    if bits.dtype != np.bool_:
        if bits.dtype.kind not in "iuf" or not np.isin(bits, (0, 1)).all():
            raise CircuitError(f"a truth table of the dtype {array.dtype} has values other than 0 and 1")
        bits = bits == 1
    return bits


def num_inputs(bits: Bits) -> int:
    """Return the number of inputs of a table given as bits."""
    return int(bits.shape[1]).bit_length() - 1


def to_words(bits: Bits) -> Words:
    """Return bits ``[m, 2^n]`` as words ``[m, W]``."""
    columns = bits.shape[1]
    padded = np.zeros((len(bits), max(64, columns)), np.bool_)
    padded[:, :columns] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def to_bits(words: Words, n: int) -> Bits:
    """Return words ``[m, W]`` of functions of n inputs as bits ``[m, 2^n]``."""
    raw = np.ascontiguousarray(words).astype("<u8").view(np.uint8).reshape(len(words), 8 * words.shape[1])
    return np.unpackbits(raw, axis=1, bitorder="little")[:, : 1 << n].astype(np.bool_)


def to_text(bits: Bits) -> str:
    """Return a truth table as text."""
    return " ".join(_hexadecimal(row) for row in bits)


def _hexadecimal(row: Bits) -> str:
    digits = max(1, len(row) // 4)
    return np.packbits(np.pad(row, (0, -len(row) % 8)), bitorder="little")[::-1].tobytes().hex()[-digits:]


def from_text(text: str, n: int | None = None) -> Bits:
    """Return the truth table that a text holds, bool ``[m, 2^n]``.

    Args:
        text: The text.
        n: Number of inputs; None for the number that the digits of an output make, at least 2.

    Raises:
        CircuitError: If the text is no table of that number of inputs.
    """
    numbers = text.split()
    digits = len(numbers[0]) if numbers else 0
    if n is None:
        n = digits.bit_length() + 1
    if (
        not 0 <= n <= MOST_INPUTS
        or digits != max(1, (1 << n) // 4)
        or any(len(text_digits) != digits for text_digits in numbers)
    ):
        raise CircuitError(
            f"{text[:40]!r} is no truth table; give one hexadecimal number of 2^n / 4 digits per output, separated by "
            "spaces"
        )
    return np.concatenate([_bits_of(text_digits, n) for text_digits in numbers])


def _bits_of(number: str, n: int) -> Bits:
    try:
        raw = bytes.fromhex(number.rjust(2, "0") if len(number) < 2 else number)
    except ValueError:
        raise CircuitError(f"{number[:40]!r} is no hexadecimal number") from None
    bits = np.unpackbits(np.frombuffer(raw[::-1], np.uint8), bitorder="little").astype(np.bool_)
    if bits[1 << n :].any():
        raise CircuitError(f"{number!r} has more than the 2^{n} bits of a function of {n} inputs")
    return bits[None, : 1 << n]


def tables_as_bits(tables: Sequence[Any]) -> list[Bits]:
    """Return truth tables as bits; raise an error for the first invalid table.

    Raises:
        CircuitError: If one is malformed; the message gives its number.
    """
    bits = []
    for number, table in enumerate(tables):
        try:
            bits.append(as_bits(table))
        except CircuitError as error:
            raise CircuitError(f"table {number}: {error}") from None
    return bits
