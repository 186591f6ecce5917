"""Kernels that write the clauses of gates, words and sums of words, the parts of an encoding of a hash function.

A bit is a literal: a variable, its negation, or one of the constants ``TRUE`` and ``-TRUE``. A gate whose value follows
from constant, equal or opposite operands costs no variable. A word is 32 bits, int64 ``[32]``, the least significant
bit first. Every variable gets its clauses, and its value under the given values of the inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner

TRUE = 1 << 30
"""The literal of the constant that is true; no variable has this number."""

Word = NDArray[np.int64]


def _table(clauses: list[list[int]]) -> NDArray[np.uint8]:
    """Return a table of clauses in which the numbers -4 .. 4 are 0 .. 8."""
    return (np.array(clauses) + 4).astype(np.uint8)


# The clauses of gates g of operands x, y, z: 1, 2, 3 stand for x, y, z, and 4 for g.
_BOTH = _table([[-4, 1, 0, 0], [-4, 2, 0, 0], [4, -1, -2, 0]])
_ODD = _table([[-4, 1, 2, 0], [-4, -1, -2, 0], [4, -1, 2, 0], [4, 1, -2, 0]])
_ODD_OF_THREE = _table(
    [
        [-1, -2, -3, 4],
        [1, -2, -3, -4],
        [-1, 2, -3, -4],
        [1, 2, -3, 4],
        [-1, -2, 3, -4],
        [1, -2, 3, 4],
        [-1, 2, 3, 4],
        [1, 2, 3, -4],
    ],
)
_MAJORITY = _table([[-4, 1, 2, 0], [-4, 1, 3, 0], [-4, 2, 3, 0], [4, -1, -2, 0], [4, -1, -3, 0], [4, -2, -3, 0]])
# The last two clauses of a choice follow from the others; they let unit propagation derive every implied literal.
_CHOICE = _table([[-1, -4, 2, 0], [-1, 4, -2, 0], [1, -4, 3, 0], [1, 4, -3, 0], [-2, -3, 4, 0], [2, 3, -4, 0]])


class Builder(NamedTuple):
    """A formula that grows, with clauses of at most four literals.

    Attributes:
        sizes: int64 ``[2]``: the numbers of variables and of clauses so far.
        clauses: int32 ``[M, 4]``, room for the clauses: the literals of a clause, followed by zeros.
        values: bool, room for the values of the variables; variable v has ``values[v]``.
        operands: int32 ``[9]``, room for the literals of one gate: code c of a table like ``_BOTH`` stands for
            ``operands[4 + c]``.
    """

    sizes: NDArray[np.int64]
    clauses: NDArray[np.int32]
    values: NDArray[np.bool_]
    operands: NDArray[np.int32]


@inner
def empty_builder(max_variables: int, max_clauses: int) -> Builder:
    """Return a formula without variables and clauses, with room for some."""
    clauses, values = np.empty((max_clauses, 4), np.int32), np.empty(max_variables + 1, np.bool_)
    return Builder(np.zeros(2, np.int64), clauses, values, np.zeros(9, np.int32))


@inner
def value(b: Builder, x: int) -> bool:
    """Return the value of a bit."""
    if abs(x) == TRUE:
        return x > 0
    return b.values[abs(x)] == (x > 0)


@inner
def new_variable(b: Builder, holds: bool) -> int:
    """Return a new variable with a value."""
    b.sizes[0] += 1
    b.values[b.sizes[0]] = holds
    return b.sizes[0]


@inner
def _new_gate(b: Builder, table: NDArray[np.uint8], x: int, y: int, z: int, holds: bool) -> int:
    """Return a new variable g with a value, and add its clauses from a table like ``_BOTH``.

    A gate of two operands may have any z.
    """
    g = new_variable(b, holds)
    b.operands[5], b.operands[6], b.operands[7], b.operands[8] = x, y, z, g
    b.operands[3], b.operands[2], b.operands[1], b.operands[0] = -x, -y, -z, -g
    m = b.sizes[1]
    for row in range(len(table)):
        for i in range(4):
            b.clauses[m + row, i] = b.operands[table[row, i]]
    b.sizes[1] = m + len(table)
    return g


@inner
def both(b: Builder, x: int, y: int) -> int:
    """Return the bit (x and y)."""
    if x == -TRUE or y == -TRUE or x == -y:
        return -TRUE
    if x in (TRUE, y):
        return y
    if y == TRUE:
        return x
    return _new_gate(b, _BOTH, x, y, y, value(b, x) and value(b, y))


@inner
def either(b: Builder, x: int, y: int) -> int:
    """Return the bit (x or y)."""
    return -both(b, -x, -y)


@inner
def odd(b: Builder, x: int, y: int) -> int:
    """Return the bit x + y mod 2."""
    if abs(x) == TRUE:
        return -y if x > 0 else y
    if abs(y) == TRUE:
        return -x if y > 0 else x
    if abs(x) == abs(y):
        return -TRUE if x == y else TRUE
    return _new_gate(b, _ODD, x, y, y, value(b, x) != value(b, y))


@inner
def odd_of_three(b: Builder, x: int, y: int, z: int) -> int:
    """Return the bit x + y + z mod 2."""
    if abs(y) == TRUE:
        x, y = y, x
    elif abs(z) == TRUE or abs(y) == abs(z):
        x, z = z, x
    elif abs(x) == abs(z):
        y, z = z, y
    if abs(x) == TRUE or abs(x) == abs(y):
        return odd(b, odd(b, x, y), z)  # the inner gate costs nothing
    return _new_gate(b, _ODD_OF_THREE, x, y, z, value(b, x) ^ value(b, y) ^ value(b, z))


@inner
def majority(b: Builder, x: int, y: int, z: int) -> int:
    """Return the bit that is the value of at least two of three bits."""
    if abs(y) == TRUE or abs(y) == abs(z):
        x, y = y, x
    elif abs(z) == TRUE:
        x, z = z, x
    if abs(x) == TRUE:
        return either(b, y, z) if x > 0 else both(b, y, z)
    if abs(x) == abs(y):
        return x if x == y else z
    if abs(x) == abs(z):
        return x if x == z else y
    return _new_gate(b, _MAJORITY, x, y, z, int(value(b, x)) + int(value(b, y)) + int(value(b, z)) >= 2)


@inner
def choice(b: Builder, x: int, y: int, z: int) -> int:
    """Return the bit y if x else z."""
    if abs(x) == TRUE:
        return y if x > 0 else z
    if y == z:
        return y
    if y == -z:
        return odd(b, x, z)
    if y in (TRUE, x):
        return either(b, x, z)
    if y in (-TRUE, -x):
        return both(b, -x, z)
    if z in (TRUE, -x):
        return either(b, -x, y)
    if z in (-TRUE, x):
        return both(b, x, y)
    return _new_gate(b, _CHOICE, x, y, z, value(b, y) if value(b, x) else value(b, z))


@inner
def constant_word(number: int) -> Word:
    """Return the word of a whole number below 2^32."""
    word = np.empty(32, np.int64)
    for i in range(32):
        word[i] = TRUE if (number >> i) & 1 else -TRUE
    return word


@inner
def set_row(words: NDArray[np.int64], row: int, word: Word) -> None:
    """Set a row of ``words`` int64 ``[rows, 32]``; a loop compiles much faster than an assignment to the row."""
    for i in range(32):
        words[row, i] = word[i]


@inner
def rotated_left(word: Word, distance: int) -> Word:
    """Return a word rotated towards its most significant bit."""
    result = np.empty(32, np.int64)
    for i in range(32):
        result[(i + distance) % 32] = word[i]
    return result


@inner
def odd_words(b: Builder, x: Word, y: Word, z: Word) -> Word:
    """Return the bitwise sum modulo 2 of three words."""
    result = np.empty(32, np.int64)
    for i in range(32):
        result[i] = odd_of_three(b, x[i], y[i], z[i])
    return result


@inner
def majority_words(b: Builder, x: Word, y: Word, z: Word) -> Word:
    """Return the bitwise majority of three words."""
    result = np.empty(32, np.int64)
    for i in range(32):
        result[i] = majority(b, x[i], y[i], z[i])
    return result


@inner
def choice_words(b: Builder, x: Word, y: Word, z: Word) -> Word:
    """Return, bit by bit, y where x holds and z elsewhere."""
    result = np.empty(32, np.int64)
    for i in range(32):
        result[i] = choice(b, x[i], y[i], z[i])
    return result


@inner
def sum_words(b: Builder, x: Word, y: Word, z: Word, w: Word, k: Word) -> Word:
    """Return the sum of five words modulo 2^32; bits that are constant cost nothing.

    The bits of a column, and the carries from the column below, are reduced three at a time by full adders until one
    or two are left; two bits are reduced by a half adder. A constant 1 enters the last adder of a column, and pairs of
    ones are carried to the next column.
    """
    result = np.empty(32, np.int64)
    column, carries = np.empty(24, np.int64), np.empty(24, np.int64)
    carried = ones_carried = 0
    for i in range(32):
        ones = ones_carried
        for c in range(carried):
            column[c] = carries[c]
        last, first = carried, 0
        for bit in (x[i], y[i], z[i], w[i], k[i]):
            if abs(bit) == TRUE:
                ones += 1 if bit > 0 else 0
            else:
                column[last] = bit
                last += 1
        ones_carried, carried = ones // 2, 0
        single = TRUE if ones % 2 else -TRUE
        while last - first >= 2 or (last - first == 1 and single == TRUE):
            left = last - first
            second = column[first + 1] if left >= 2 else -TRUE
            third = column[first + 2] if left >= 3 else single
            total = odd_of_three(b, column[first], second, third)
            carry = majority(b, column[first], second, third) if i < 31 else -TRUE
            first += min(left, 3)
            if left < 3:
                single = -TRUE
            if abs(total) != TRUE:
                column[last] = total
                last += 1
            elif total > 0:
                single = TRUE
            if abs(carry) != TRUE:
                carries[carried] = carry
                carried += 1
            elif carry > 0:
                ones_carried += 1
        result[i] = column[first] if last > first else single
    return result
