"""Expressions of a function of 64 bits by few ANDs of functions that a circuit has already, in compiled code.

A target is a pair of words ``(f, care)``: a function has to agree with ``f`` where ``care`` is 1, and may be anything
elsewhere. ``column`` holds one word of the truth table of every variable of a circuit (:mod:`~.aig` numbers them), so
the literal ``2 v`` is ``column[v]`` and ``2 v + 1`` its complement. The functions below look for an expression of
a few ANDs: resubstitution with don't-cares (Mishchenko, Brayton, Jiang and Jang, "Scalable don't-care-based logic
optimization and resubstitution", 2011), here by complete enumeration of a few forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.domains.chip_design.aig_kernels import Ints, Words

NOTHING = -1_000_000
"""The number that stands for no literal."""
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE = np.uint64(0)


@inner
def literal_word(literal: Any, column: Words) -> np.uint64:
    """Return the word of a literal."""
    return column[literal >> 1] ^ (_ONES if literal & 1 else _NONE)


@inner
def find_literal(f: Any, care: Any, column: Words, count: Any) -> Any:
    """Return a literal that agrees with a target, the one of the lowest variable; NOTHING if there is none."""
    for v in range(count):
        wrong = (column[v] ^ f) & care
        if wrong == _NONE:
            return np.int64(2 * v)
        if wrong == care:
            return np.int64(2 * v + 1)
    return np.int64(NOTHING)


@inner
def covering(f: Any, care: Any, column: Words, count: Any, literals: Ints) -> Any:
    """Write the literals that are 1 wherever the target is, except literals that are 1 on the whole care set."""
    ones = f & care
    size = np.int64(0)
    for v in range(1, count):
        value = column[v] & care
        if value & ones == ones and value != care:
            literals[size] = 2 * v
            size += 1
        if value & ones == _NONE and value != _NONE:
            literals[size] = 2 * v + 1
            size += 1
    return size


@inner
def find_one(f: Any, care: Any, column: Words, count: Any, space: Ints, pair: Ints) -> Any:
    """Write two literals whose AND agrees with a target, or with its complement.

    Args:
        f: The target.
        care: Where it matters.
        column: uint64 ``[count]``.
        count: Number of variables.
        space: Working space, at least ``2 * count``.
        pair: Room for the two literals.

    Returns:
        0 if their AND agrees with the target, 1 if its complement does, and NOTHING if there are no such literals.
    """
    for flip in range(2):
        target = f ^ (_ONES if flip else _NONE)
        zeros = ~target & care
        size = covering(target, care, column, count, space)
        for i in range(size):
            rest = literal_word(space[i], column) & zeros
            for j in range(i + 1, size):
                if literal_word(space[j], column) & rest == _NONE:
                    pair[0], pair[1] = space[i], space[j]
                    return np.int64(flip)
    return np.int64(NOTHING)


@inner
def find_chain(
    f: Any, care: Any, column: Words, count: Any, length: Any, space: NDArray[np.int64], chain: NDArray[np.int64]
) -> Any:
    """Write a chain of ``length`` ANDs, 2 or 3, that agrees with a target.

    A chain is ``a & g`` or its dual ``a | g``, where a is a literal and g a chain of one AND less that agrees with the
    target wherever a does not decide.

    Args:
        f: The target.
        care: Where it matters.
        column: uint64 ``[count]``.
        count: Number of variables.
        length: Number of ANDs, 2 or 3.
        space: Working space, at least ``[3, 2 * count]``.
        chain: Room for the chain: row 0 is the innermost pair of literals and 1 if it is an OR of their complements;
            row k the literal that is added and 1 if it is added by an OR, after its complement.

    Returns:
        Whether there is such a chain.
    """
    for flip in range(2):
        target = f ^ (_ONES if flip else _NONE)
        size = covering(target, care, column, count, space[length - 1])
        for i in range(size):
            a = space[length - 1, i]
            inside = care & literal_word(a, column)
            if length == 2:
                kind = find_one(target, inside, column, count, space[0], chain[0])
                if kind != NOTHING:
                    chain[0, 2] = kind
                    chain[1, 0], chain[1, 2] = a, flip
                    return True
            else:
                for inner_flip in range(2):
                    goal = target ^ (_ONES if inner_flip else _NONE)
                    smaller = covering(goal, inside, column, count, space[1])
                    for k in range(smaller):
                        b = space[1, k]
                        kind = find_one(goal, inside & literal_word(b, column), column, count, space[0], chain[0])
                        if kind != NOTHING:
                            chain[0, 2] = kind
                            chain[1, 0], chain[1, 2] = b, inner_flip
                            chain[2, 0], chain[2, 2] = a, flip
                            return True
    return False


@inner
def find_multiplexer(f: Any, care: Any, column: Words, count: Any, triple: Ints) -> Any:
    """Write literals s, a and b so that ``s ? a : b`` agrees with a target, and return whether there are any."""
    for s in range(1, count):
        inside, outside = care & column[s], care & ~column[s]
        if inside == _NONE or outside == _NONE:
            continue
        a = find_literal(f, inside, column, count)
        if a == NOTHING:
            continue
        b = find_literal(f, outside, column, count)
        if b != NOTHING:
            triple[0], triple[1], triple[2] = 2 * s, a, b
            return True
    return False


@inner
def find_wide_multiplexer(f: Any, care: Any, column: Words, count: Any, space: Ints, result: Ints) -> Any:
    """Write literals s, a, b and c so that ``s ? a : g`` agrees with a target, where g is ``b & c`` or its complement.

    Args:
        f: The target.
        care: Where it matters.
        column: uint64 ``[count]``.
        count: Number of variables.
        space: Working space, at least ``2 * count``.
        result: Room for the four literals, b and c first.

    Returns:
        0 if g is ``b & c``, 1 if it is the complement, and NOTHING if there are no such literals.
    """
    for s in range(2, 2 * count):
        near = care & literal_word(s, column)
        far = care & ~near
        if near == _NONE or far == _NONE:
            continue
        a = find_literal(f, near, column, count)
        if a != NOTHING:
            flip = find_one(f, far, column, count, space, result)
            if flip != NOTHING:
                result[2], result[3] = s, a
                return flip
    return np.int64(NOTHING)


@inner
def find_exclusive_or(f: Any, care: Any, column: Words, count: Any, space: Ints, result: Ints) -> Any:
    """Write literals b, c and s so that ``s ^ (b & c)`` agrees with a target or with its complement.

    The arguments are as in :func:`find_wide_multiplexer`.

    Returns:
        0 if it agrees with the target, 1 if its complement does, and NOTHING if there are no such literals.
    """
    for v in range(1, count):
        flip = find_one(f ^ column[v], care, column, count, space, result)
        if flip != NOTHING:
            result[2] = 2 * v
            return flip
    return np.int64(NOTHING)
