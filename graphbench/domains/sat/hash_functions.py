"""Encodings of MD4, SHA-1 and SHA-256 as clauses: one block, any number of rounds, from the standard initial value.

MD4 is RFC 1320; SHA-1 and SHA-256 are FIPS 180-4. With fewer rounds than the function has, the loop over the steps ends
early and the initial value is added as in the full function. (In MD4 each step updates one of the registers A, D, C, B
in turn, and the registers keep their names.) No padding is applied: the 512 bits of the message are the block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.hash_gates import (
    TRUE,
    Builder,
    Word,
    choice_words,
    constant_word,
    empty_builder,
    majority_words,
    new_variable,
    odd_words,
    rotated_left,
    set_row,
    sum_words,
    value,
)

HashName = Literal["md4", "sha1", "sha256"]
ROUNDS: dict[HashName, int] = {"md4": 48, "sha1": 80, "sha256": 64}
"""The number of steps of the full functions."""
MESSAGE_BITS = 512

FUNCTIONS: tuple[HashName, ...] = ("md4", "sha1", "sha256")
"""The functions in the order of their numbers in `encoded_hash`."""
_ROUND_VARIABLES, _ROUND_CLAUSES, _DIGEST_BITS = 1200, 8192, 256
_INITIAL = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0], np.int64)

_MD4_CONSTANTS = np.array([0, 0x5A827999, 0x6ED9EBA1], np.int64)
_MD4_SHIFTS = np.array([[3, 7, 11, 19], [3, 5, 9, 13], [3, 9, 11, 15]], np.int64)
_MD4_WORDS = np.array(
    [
        range(16),
        [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
        [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15],
    ],
    np.int64,
)
_SHA1_CONSTANTS = np.array([0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6], np.int64)
_SHA1_SHIFTS = np.array([5, 30, 1], np.int64)  # of a and b, and of the words of the schedule

_PRIMES = [p for p in range(2, 312) if all(p % d for d in range(2, math.isqrt(p) + 1))]


def _cube_root(number: int) -> int:
    """Return the largest whole number whose cube is at most ``number``."""
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low


# the first 32 fractional bits of the cube roots of the first 64 primes, and of the square roots of the first 8
_SHA256_CONSTANTS = np.array([_cube_root(p << 96) % (1 << 32) for p in _PRIMES], np.int64)
_SHA256_INITIAL = np.array([math.isqrt(p << 64) % (1 << 32) for p in _PRIMES[:8]], np.int64)
# The sigmas: capital 1 and 0 (of the registers e and a), small 1 and 0 (of the schedule). The third operand of a small
# sigma is shifted, the others are rotated.
_SHA256_ROTATIONS = np.array([[6, 11, 25], [2, 13, 22], [17, 19, 10], [7, 18, 3]], np.int64)


@dataclass(frozen=True, eq=False)
class HashEncoding:
    """The clauses of a hash function, without any condition on its digest.

    Message and digest are numbered as the bits of the standards: bit i is in byte i // 8, the most significant bit of a
    byte first, as `numpy.unpackbits` does. Constant bits are the literals `hash_gates.TRUE` and ``-TRUE``.

    Attributes:
        formula: The clauses. The free bits of the message are the first variables.
        message: int32 ``[512]``: the literals of the message.
        digest: int32 ``[128]``, ``[160]`` or ``[256]``: the literals of the digest.
        model: bool ``[n]``: the assignment that belongs to the given message.
        digest_bits: bool, as long as ``digest``: the digest of the given message.
    """

    formula: Cnf
    message: NDArray[np.int32]
    digest: NDArray[np.int32]
    model: NDArray[np.bool_]
    digest_bits: NDArray[np.bool_]


def encode_hash(
    name: HashName,
    rounds: int,
    message: NDArray[np.bool_] | None = None,
    constant_bits: NDArray[np.bool_] | None = None,
) -> HashEncoding:
    """Return the clauses that define the digest of a message under a hash function.

    Args:
        name: The function.
        rounds: Number of steps, from 1 to ``ROUNDS[name]``.
        message: bool ``[512]``, a message; None for all zeros. It gives the values of the constant bits and the model.
        constant_bits: bool ``[512]``, the bits of the message that are constants; None for none.

    Raises:
        ValueError: If the number of rounds is not in 1 .. ``ROUNDS[name]``.
    """
    if not 1 <= rounds <= ROUNDS[name]:
        raise ValueError(f"{name} with {rounds} rounds; give 1 to {ROUNDS[name]}")
    bits = np.zeros(MESSAGE_BITS, np.bool_) if message is None else message
    constant = np.zeros(MESSAGE_BITS, np.bool_) if constant_bits is None else constant_bits
    return hash_encoding(encoded_hash(FUNCTIONS.index(name), rounds, bits, constant))


def hash_encoding(encoded: EncodedHash) -> HashEncoding:
    """Return the clauses that a kernel has written, without the digest, as a formula."""
    formula = Cnf(len(encoded.values), *clauses_of_rows(encoded.clauses[: encoded.num_clauses]))
    return HashEncoding(formula, encoded.message, encoded.digest, encoded.values, encoded.digest_bits)


class EncodedHash(NamedTuple):
    """The clauses of a hash function as `encoded_hash` writes them.

    Attributes:
        clauses: int32 ``[M, 4]``: the literals of every clause, followed by zeros. The last rows are the digest of the
            given message as unit clauses, without the constant bits.
        num_clauses: The number of clauses before the digest.
        values: bool ``[n]``, ``model`` of `HashEncoding`.
        message: As in `HashEncoding`.
        digest: As in `HashEncoding`.
        digest_bits: As in `HashEncoding`.
    """

    clauses: NDArray[np.int32]
    num_clauses: int
    values: NDArray[np.bool_]
    message: NDArray[np.int32]
    digest: NDArray[np.int32]
    digest_bits: NDArray[np.bool_]


@kernel
def encoded_hash(function: int, rounds: int, message: NDArray[np.bool_], fixed: NDArray[np.bool_]) -> EncodedHash:
    """Encode function 0 (MD4), 1 (SHA-1) or 2 (SHA-256); ``message`` and ``fixed`` are as in `encode_hash`.

    A round of SHA-256, the largest, has up to 14 full adders (2 variables, 14 clauses), 4 sums of three bits (1
    variable, 8 clauses) and 2 other gates (1 variable, 6 clauses at most) per bit; adding the initial value at the end
    takes 8 half adders per bit. This bounds the room for one round and the end.
    """
    size = rounds + 1
    b = empty_builder(MESSAGE_BITS + _ROUND_VARIABLES * size, _ROUND_CLAUSES * size + _DIGEST_BITS)
    bits = np.empty(512, np.int32)
    words = np.empty((16, 32), np.int64)
    for i in range(512):
        if fixed[i]:
            bits[i] = TRUE if message[i] else -TRUE
        else:
            bits[i] = new_variable(b, message[i])
        words[i // 32, _bit_position(function, i)] = bits[i]
    if function == 0:
        state = _md4(b, rounds, words)
    elif function == 1:
        state = _sha1(b, rounds, words)
    else:
        state = _sha256(b, rounds, words)
    n, m = b.sizes
    end = m
    digest = np.empty(32 * len(state), np.int32)
    digest_bits = np.empty(32 * len(state), np.bool_)
    for i in range(len(digest)):
        digest[i] = state[i // 32, _bit_position(function, i)]
        digest_bits[i] = value(b, digest[i])
        if abs(digest[i]) != TRUE:
            b.clauses[end, 0] = digest[i] if digest_bits[i] else -digest[i]
            b.clauses[end, 1] = b.clauses[end, 2] = b.clauses[end, 3] = 0
            end += 1
    return EncodedHash(b.clauses[:end], m, b.values[1 : n + 1].copy(), bits, digest, digest_bits)


@kernel
def clauses_of_rows(rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the literals int32 ``[L]`` and the starts of the clauses int64 ``[m + 1]`` of rows as in `EncodedHash`."""
    literals, ptr = np.empty(rows.size, np.int32), np.zeros(len(rows) + 1, np.int64)
    size = 0
    for j in range(len(rows)):
        for i in range(4):
            literals[size] = rows[j, i]
            size += 1 if rows[j, i] != 0 else 0
        ptr[j + 1] = size
    return literals[:size].copy(), ptr


@inner
def _bit_position(function: int, i: int) -> int:
    """Return the position of bit i of a message or digest within its word, counted from the least significant bit.

    MD4 reads the bytes of a word from the least significant byte, the other functions from the most significant byte.
    """
    return 8 * (i % 32 // 8) + 7 - i % 8 if function == 0 else 31 - i % 32


@inner
def _initial_state(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    state = np.empty((len(numbers), 32), np.int64)
    for r in range(len(numbers)):
        set_row(state, r, constant_word(numbers[r]))
    return state


@inner
def _with_initial(b: Builder, state: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the registers with the initial values added."""
    nothing = constant_word(0)
    for r in range(len(numbers)):
        set_row(state, r, sum_words(b, state[r], nothing, nothing, nothing, constant_word(numbers[r])))
    return state


@inner
def _md4(b: Builder, rounds: int, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the registers A to D after the steps and the final addition, int64 ``[4, 32]``."""
    state, nothing = _initial_state(_INITIAL[:4]), constant_word(0)
    for step in range(rounds):
        part, i = step // 16, step % 16
        target = (4 - i % 4) % 4
        x, y, z = state[(target + 1) % 4], state[(target + 2) % 4], state[(target + 3) % 4]
        if part == 0:
            mixed = choice_words(b, x, y, z)
        elif part == 1:
            mixed = majority_words(b, x, y, z)
        else:
            mixed = odd_words(b, x, y, z)
        constant = constant_word(_MD4_CONSTANTS[part])
        total = sum_words(b, state[target], mixed, words[_MD4_WORDS[part, i]], nothing, constant)
        set_row(state, target, rotated_left(total, _MD4_SHIFTS[part, i % 4]))
    return _with_initial(b, state, _INITIAL[:4])


@inner
def _sha1(b: Builder, rounds: int, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the registers a to e after the steps and the final addition, int64 ``[5, 32]``."""
    schedule = np.empty((max(rounds, 16), 32), np.int64)
    for t in range(16):
        set_row(schedule, t, words[t])
    state, nothing = _initial_state(_INITIAL), constant_word(0)
    for t in range(rounds):
        if t >= 16:
            half = odd_words(b, schedule[t - 3], schedule[t - 8], schedule[t - 14])
            set_row(schedule, t, rotated_left(odd_words(b, half, schedule[t - 16], nothing), _SHA1_SHIFTS[2]))
        if t < 20:
            mixed = choice_words(b, state[1], state[2], state[3])
        elif 40 <= t < 60:
            mixed = majority_words(b, state[1], state[2], state[3])
        else:
            mixed = odd_words(b, state[1], state[2], state[3])
        constant = constant_word(_SHA1_CONSTANTS[t // 20])
        total = sum_words(b, rotated_left(state[0], _SHA1_SHIFTS[0]), mixed, state[4], schedule[t], constant)
        set_row(state, 4, state[3])
        set_row(state, 3, state[2])
        set_row(state, 2, rotated_left(state[1], _SHA1_SHIFTS[1]))
        set_row(state, 1, state[0])
        set_row(state, 0, total)
    return _with_initial(b, state, _INITIAL)


@inner
def _sigma(b: Builder, x: Word, row: int) -> Word:
    """Return the bitwise sum modulo 2 of the rotations and shifts to the right in a row of ``_SHA256_ROTATIONS``."""
    first, second, third = _SHA256_ROTATIONS[row, 0], _SHA256_ROTATIONS[row, 1], _SHA256_ROTATIONS[row, 2]
    last = rotated_left(x, 32 - third)
    if row >= 2:
        for i in range(32 - third, 32):
            last[i] = -TRUE
    return odd_words(b, rotated_left(x, 32 - first), rotated_left(x, 32 - second), last)


@inner
def _sha256(b: Builder, rounds: int, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the registers a to h after the steps and the final addition, int64 ``[8, 32]``."""
    schedule = np.empty((max(rounds, 16), 32), np.int64)
    for t in range(16):
        set_row(schedule, t, words[t])
    state, nothing = _initial_state(_SHA256_INITIAL), constant_word(0)
    for t in range(rounds):
        if t >= 16:
            low = _sigma(b, schedule[t - 15], 3)
            high = _sigma(b, schedule[t - 2], 2)
            set_row(schedule, t, sum_words(b, high, schedule[t - 7], low, schedule[t - 16], nothing))
        mixed = choice_words(b, state[4], state[5], state[6])
        high = _sigma(b, state[4], 0)
        first = sum_words(b, state[7], high, mixed, schedule[t], constant_word(_SHA256_CONSTANTS[t]))
        low = _sigma(b, state[0], 1)
        joint = majority_words(b, state[0], state[1], state[2])
        renewed = sum_words(b, state[3], first, nothing, nothing, nothing)
        total = sum_words(b, first, low, joint, nothing, nothing)
        for r in range(7, 0, -1):
            set_row(state, r, state[r - 1])
        set_row(state, 4, renewed)
        set_row(state, 0, total)
    return _with_initial(b, state, _SHA256_INITIAL)
